"""`worktop undo`: restore the rows of an applied plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from console.cli.act import EXIT_CODES, Agreement, agreeing, carry_out
from console.cli.jobs import database_configuration, local
from console.cli.options import print_json, width
from console.cli.table import table
from console.errors import EXIT_NOTHING, EXIT_OK
from console.fleet.plan import Plan, Undoable

if TYPE_CHECKING:
    from console.actions.desk import Actions

_HEADS = ("PLAN", "WHEN", "WHO", "ROWS", "STATE", "WHAT")


@click.command("undo", epilog=f"{EXIT_CODES}\n\nExample: worktop undo --list; worktop undo 20261129T203107Z-3f2a91")
@click.argument("plan_id", metavar="[PLAN]", required=False)
@click.option("--list", "lists", is_flag=True, help="List what can be undone, newest first.")
@agreeing
@click.pass_context
def command(ctx: click.Context, agreement: Agreement, plan_id: str | None, lists: bool) -> int:
    """Restore the rows that an action has changed; without PLAN, the last one that was not undone.

    A row is restored only while it is exactly as the action left it, its fencing token too: one that was claimed or
    changed since stays as it is, and is named.
    """
    from console.actions.journal import read, undoable
    from console.actions.state import StateDirectory

    state = StateDirectory.find()
    found = undoable(state)
    if lists:
        return _list(found, agreement.as_json)
    chosen = plan_id or next((one.plan for one in found if one.state != "undone"), None)
    if chosen is None:
        click.echo("worktop: there is nothing to undo", err=True)
        return EXIT_NOTHING
    read(state, chosen)
    config = database_configuration(ctx)

    async def make(actions: Actions) -> Plan:
        return await actions.plan_undo(chosen, agreement.why)

    return carry_out(ctx, config, make, agreement)


def _list(found: tuple[Undoable, ...], as_json: bool) -> int:
    if as_json:
        print_json(found)
    elif found:
        rows = [(one.plan, local(one.at), one.who.name, one.rows, one.state, one.title) for one in found]
        click.echo(table(_HEADS, rows, width(), frozenset({"ROWS"})))
    else:
        click.echo("nothing to undo")
    return EXIT_OK
