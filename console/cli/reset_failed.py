"""`worktop reset-failed`."""

from __future__ import annotations

from console.cli.units import unit_command

command = unit_command(
    "reset-failed",
    """Clear the failed state of workers, and with it their start limit.""",
    "worktop reset-failed thumbnails",
)
