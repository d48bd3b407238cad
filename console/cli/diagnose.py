"""`worktop diagnose`: what is wrong with a worker, before anybody restarts it."""

from __future__ import annotations

from typing import get_args

import click

from console.cli.options import ascii_only, configuration, json_option, print_json, run, width
from console.config import Config
from console.errors import EXIT_FAILED, EXIT_FINDINGS, EXIT_OK
from console.fleet.diagnosis.model import FINE, Diagnosis
from console.fleet.diagnosis.targets import Kind
from console.view.diagnosis import diagnosis_text
from console.view.glyphs import ASCII, UNICODE, to_ascii


@click.command(
    "diagnose",
    epilog="Exit codes: 0 healthy or working slowly, 1 failed or not permitted to see, 2 wrong usage or configuration, "
    "3 any other verdict. Example: worktop diagnose thumbnails@2",
)
@click.argument("what", metavar="ROLE|UNIT|PID|JOB")
@click.option(
    "--as",
    "kind",
    type=click.Choice(get_args(Kind)),
    help="What the argument is, where it could be more than one thing.",
)
@click.option("--all", "every", is_flag=True, help="Of a role, print the examination of each worker too.")
@json_option
@click.pass_context
def command(ctx: click.Context, what: str, kind: Kind | None, every: bool, as_json: bool) -> int:
    """Examine a worker in order, and say with evidence what is the case, and whether a restart would help.

    A role by its name, a worker as thumbnails@2 or by its unit or pid, or the worker that holds a job. Nothing is
    changed. The verdict is one of: healthy, working slowly, hung, crash loop, stopped on purpose, killed by limit,
    misconfigured, owned by somebody else, not permitted to see.
    """
    read_only = str((ctx.find_root().obj or {}).get("read_only") or "")
    found = run(_ask(configuration(ctx), what, kind, read_only))
    if as_json:
        print_json(list(found))
    else:
        text = diagnosis_text(found, width(), ASCII if ascii_only() else UNICODE, every)
        click.echo(to_ascii(text) if ascii_only() else text)
    verdict = found[0].verdict
    if verdict == "not permitted to see":
        return EXIT_FAILED
    return EXIT_OK if verdict in FINE else EXIT_FINDINGS


async def _ask(config: Config, what: str, kind: Kind | None, read_only: str) -> tuple[Diagnosis, ...]:
    from console.wiring import ONCE_INTERVAL, Sources

    sources = Sources(config, interval=ONCE_INTERVAL, read_only=read_only)
    try:
        fleet = await sources.once()
        return await sources.diagnose_named(fleet, what, kind)
    finally:
        await sources.stop()
