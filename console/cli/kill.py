"""`worktop kill`: send a signal to every process of a unit."""

from __future__ import annotations

import click

from console.cli.act import EXIT_CODES, Agreement, agreeing
from console.cli.units import act_on_units


@click.command("kill", epilog=f"{EXIT_CODES}\n\nExample: worktop kill mail@2 --signal INT")
@click.argument("names", metavar="ROLE|UNIT…", nargs=-1, required=True)
@click.option("--signal", metavar="NAME", default="KILL", show_default=True, help="TERM, INT, HUP, USR1, …")
@agreeing
@click.pass_context
def command(ctx: click.Context, agreement: Agreement, names: tuple[str, ...], signal: str) -> int:
    """Send a signal to every process of workers' units.

    What a killed worker holds stays claimed until it is reclaimed, which is offered afterwards.
    """
    return act_on_units(ctx, "kill", names, agreement, signal)
