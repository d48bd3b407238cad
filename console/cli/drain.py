"""`worktop drain`: let workers finish what they hold, then stop them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from console.cli.act import EXIT_CODES, Agreement, agreeing, carry_out
from console.cli.options import configuration
from console.cli.units import span_option
from console.errors import ConfigError
from console.fleet.plan import Plan

if TYPE_CHECKING:
    from console.actions.desk import Actions


@click.command("drain", epilog=f"{EXIT_CODES}\n\nExample: worktop drain mail@2 --timeout 5min")
@click.argument("names", metavar="ROLE|UNIT|PID…", nargs=-1)
@click.option("--pid", "pids", type=int, multiple=True, help="A worker outside of units; may be repeated.")
@span_option("--timeout", "How long they have [default: the unit's TimeoutStopSec].")
@span_option("--kill-after", "The same, and those that have not ended then are killed without being asked.")
@agreeing
@click.pass_context
def command(
    ctx: click.Context,
    agreement: Agreement,
    names: tuple[str, ...],
    pids: tuple[int, ...],
    timeout: float | None,
    kill_after: float | None,
) -> int:
    """Ask workers to end, wait until they have finished what they hold, and stop their units.

    One that has not ended in time is killed only when that is agreed to; where nobody can be asked it goes on. Jobs
    that are left over are named, with the command that reclaims exactly them.
    """
    if timeout is not None and kill_after is not None:
        raise ConfigError("drain", "found both --timeout and --kill-after", "expected one of them")
    patience = timeout if kill_after is None else kill_after

    async def make(actions: Actions) -> Plan:
        named = await actions.named((*names, *(str(pid) for pid in pids)))
        return await actions.plan_drain(
            units=named.units, processes=named.processes, role=named.role, timeout=patience, why=agreement.why
        )

    return carry_out(ctx, configuration(ctx), make, agreement, holders=True, kills=kill_after is not None)
