"""`worktop enable`."""

from __future__ import annotations

from console.cli.units import unit_command

command = unit_command(
    "enable",
    """Let workers start at boot. Needs root: polkit cannot allow it for single units.""",
    "worktop enable mail@4",
)
