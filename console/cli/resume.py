"""`worktop resume`: give out the jobs of a role again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from console.cli.act import EXIT_CODES, Agreement, agreeing, carry_out
from console.cli.jobs import database_configuration
from console.fleet.plan import Plan

if TYPE_CHECKING:
    from console.actions.desk import Actions


@click.command("resume", epilog=f"{EXIT_CODES}\n\nExample: worktop resume mail --why 'the provider is down'")
@click.argument("role", required=False)
@click.option("--role", "role_option", metavar="ROLE", help="The same as the argument.")
@agreeing
@click.pass_context
def command(ctx: click.Context, agreement: Agreement, role: str | None, role_option: str | None) -> int:
    """Let the queues of ROLE give out jobs again after a pause."""
    named = role or role_option
    if not named:
        raise click.UsageError("Name a role: worktop resume ROLE")
    config = database_configuration(ctx)

    async def make(actions: Actions) -> Plan:
        return await actions.plan_queue("resume", named, agreement.why)

    return carry_out(ctx, config, make, agreement)
