"""`worktop continue`: go on with a plan that was cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from console.cli.act import EXIT_CODES, Agreement, agreeing, carry_out
from console.cli.options import configuration
from console.fleet.plan import Plan

if TYPE_CHECKING:
    from console.actions.desk import Actions


@click.command("continue", epilog=f"{EXIT_CODES}\n\nExample: worktop continue 20261129T203107Z-3f2a91")
@click.argument("plan_id", metavar="PLAN")
@agreeing
@click.pass_context
def command(ctx: click.Context, agreement: Agreement, plan_id: str) -> int:
    """Do the steps of PLAN that were not done when worktop, its agent or the connection to the host was lost.

    A restart that systemd went on with meanwhile is not done again. `worktop audit` lists what was cut off; what
    changes rows or files is planned anew instead. (Jobs of a paused role: worktop resume.)
    """

    async def make(actions: Actions) -> Plan:
        return await actions.plan_continue(plan_id, agreement.why)

    return carry_out(ctx, configuration(ctx), make, agreement, holders=True)
