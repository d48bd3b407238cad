"""`worktop stop`."""

from __future__ import annotations

from console.cli.units import unit_command

command = unit_command(
    "stop",
    """Stop workers. systemd kills those that do not end within their TimeoutStopSec; worktop drain asks before.""",
    "worktop stop mail@2",
)
