"""`worktop scale`: bring a role to so many workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from console.cli.act import EXIT_CODES, Agreement, agreeing, carry_out
from console.cli.options import configuration
from console.cli.units import span_option
from console.fleet.plan import Plan

if TYPE_CHECKING:
    from console.actions.desk import Actions


@click.command("scale", epilog=f"{EXIT_CODES}\n\nExample: worktop scale thumbnails 6 --watch 30s")
@click.argument("role")
@click.argument("count", type=click.IntRange(0, 1000))
@span_option("--watch", "How long each new worker is watched before the next [default: watch of the role].")
@click.option("--not-at-boot", is_flag=True, help="Leave what starts at the next boot as it is.")
@agreeing
@click.pass_context
def command(
    ctx: click.Context, agreement: Agreement, role: str, count: int, watch: float | None, not_at_boot: bool
) -> int:
    """Bring ROLE to COUNT workers.

    Up: one at a time, each watched: no restart, jobs finished, memory below its limit. It ends by itself when one more
    made it no faster, or more jobs fail. Down: those that hold no job first, then those that have held theirs for the
    shortest time; each finishes what it holds. Over a budget (instances, memory, connections, processes) the role's
    name must be typed.
    """

    async def make(actions: Actions) -> Plan:
        return await actions.plan_scale(role, count, watch=watch, at_boot=not not_at_boot, why=agreement.why)

    return carry_out(ctx, configuration(ctx), make, agreement, holders=True)
