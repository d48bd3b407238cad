"""`worktop abandon`: give up what is left of a plan that was cut off."""

from __future__ import annotations

import click

from console.cli.options import configuration, json_option, print_json
from console.errors import EXIT_OK
from console.text import clean


@click.command(
    "abandon",
    epilog="Exit codes: 0 done, 2 there is no such plan, or nothing is left of it.\n\n"
    "Example: worktop abandon 20261129T203107Z-3f2a91",
)
@click.argument("plan_id", metavar="PLAN")
@click.option("--why", metavar="TEXT", default="", help="What it is for; stands in the audit.")
@json_option
@click.pass_context
def command(ctx: click.Context, plan_id: str, why: str, as_json: bool) -> int:
    """Give up what is left of PLAN, which was cut off.

    Nothing is changed; the audit says what was done and what was not.
    """
    from console.wiring import Sources

    read_only = str((ctx.find_root().obj or {}).get("read_only") or "")
    entry = Sources(configuration(ctx), read_only=read_only).actions.abandon(plan_id, why)
    if as_json:
        print_json(entry)
    else:
        click.echo(f"{clean(entry.title)}: {clean(entry.text)}")
    return EXIT_OK
