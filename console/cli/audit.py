"""`worktop audit`: what was applied, by whom, and what came of it."""

from __future__ import annotations

import click

from console.cli.cut_off import cut_off_lines
from console.cli.jobs import local
from console.cli.options import json_option, print_json, width
from console.cli.table import table
from console.errors import EXIT_OK, ConfigError

_HEADS = ("WHEN", "WHO", "STATE", "ROWS", "PLAN", "WHAT")


@click.command("audit", epilog="Example: worktop audit -n 5 --json")
@click.option("-n", "limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Newest actions.")
@json_option
def command(limit: int, as_json: bool) -> int:
    """List what was applied, newest first; with --json the plans as they were shown and what came of each step.

    It is kept in the state directory ($WORKTOP_STATE, /var/lib/worktop for root, ~/.local/state/worktop for others),
    and the end of each action also in the system journal: journalctl -t worktop.

    Exit codes: 0 listed, 2 it cannot be read.
    """
    from console.actions.audit import entries
    from console.state import StateDirectory

    state = StateDirectory.find()
    try:
        found = entries(state, limit)
    except OSError as error:
        raise ConfigError(f"audit in {state.path}", error.strerror or str(error)) from None
    if as_json:
        print_json(found)
        return EXIT_OK
    for line in cut_off_lines():
        click.echo(line)
    if found:
        rows = [
            (local(one.at), one.who.name, one.state, one.rows, one.plan, f"{one.title}: {one.text}") for one in found
        ]
        click.echo(table(_HEADS, rows, width(), frozenset({"ROWS"})))
    else:
        click.echo(f"nothing was applied yet (looked in {state.path})")
    return EXIT_OK
