"""`worktop undo`: restore what an applied plan has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from console.cli.act import EXIT_CODES, Agreement, agreeing, carry_out
from console.cli.jobs import database_configuration, local
from console.cli.options import configuration, print_json, width
from console.cli.table import table
from console.errors import EXIT_NOTHING, EXIT_OK
from console.fleet.plan import Plan, Undoable
from console.text import grouped

if TYPE_CHECKING:
    from console.actions.desk import Actions

_HEADS = ("PLAN", "WHEN", "WHO", "CHANGED", "STATE", "WHAT")


@click.command("undo", epilog=f"{EXIT_CODES}\n\nExample: worktop undo --list; worktop undo 20261129T203107Z-3f2a91")
@click.argument("plan_id", metavar="[PLAN]", required=False)
@click.option("--list", "lists", is_flag=True, help="List what can be undone, newest first.")
@agreeing
@click.pass_context
def command(ctx: click.Context, agreement: Agreement, plan_id: str | None, lists: bool) -> int:
    """Restore what an action has changed: rows, units, files; without PLAN, the last one that was not undone.

    A row is restored only while it is exactly as the action left it, its fencing token too: one that was claimed or
    changed since stays as it is, and is named. Units are started, stopped, enabled and disabled as they were before;
    a file is put back while it still is as the action left it.
    """
    from console.actions.journal import read, undoable
    from console.state import StateDirectory

    state = StateDirectory.find()
    found = undoable(state)
    if lists:
        return _list(found, agreement.as_json)
    chosen = plan_id or next((one.plan for one in found if one.state != "undone"), None)
    if chosen is None:
        click.echo("worktop: there is nothing to undo", err=True)
        return EXIT_NOTHING
    record = read(state, chosen)
    of_host = bool(record.units or record.files)
    config = configuration(ctx) if of_host else database_configuration(ctx)

    async def make(actions: Actions) -> Plan:
        return await actions.plan_undo(chosen, agreement.why)

    return carry_out(ctx, config, make, agreement, holders=of_host)


def _list(found: tuple[Undoable, ...], as_json: bool) -> int:
    if as_json:
        print_json(found)
    elif found:
        rows = [(one.plan, local(one.at), one.who.name, _changed(one), one.state, one.title) for one in found]
        click.echo(table(_HEADS, rows, width()))
    else:
        click.echo("nothing to undo")
    return EXIT_OK


def _changed(one: Undoable) -> str:
    """ "412 rows", "3 units, 1 file"."""
    parts = ((one.rows, "row"), (one.units, "unit"), (one.files, "file"))
    return ", ".join(f"{grouped(number)} {kind}{'' if number == 1 else 's'}" for number, kind in parts if number)
