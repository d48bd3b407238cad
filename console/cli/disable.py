"""`worktop disable`."""

from __future__ import annotations

from console.cli.units import unit_command

command = unit_command(
    "disable",
    """Do not let workers start at boot any more; those that run go on.""",
    "worktop disable mail@4",
)
