"""`worktop restart`."""

from __future__ import annotations

from console.cli.units import unit_command

command = unit_command(
    "restart",
    """Restart workers; those of a role, or several, one after another.

The next one is restarted only when the last one is healthy: active for longer than its RestartSec, and where jobs
wait it has claimed or finished one. Wanted instances that do not run are started. The first that fails ends it.""",
    "worktop restart mail; worktop restart mail@2 --dry-run",
)
