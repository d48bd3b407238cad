"""`worktop start`."""

from __future__ import annotations

from console.cli.units import unit_command

command = unit_command(
    "start",
    """Start workers: of a role, the wanted instances that do not run.""",
    "worktop start mail; worktop start mail@4",
)
