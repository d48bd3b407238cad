"""`worktop status`: what the first screen shows, as text or JSON."""

from __future__ import annotations

import asyncio
import time

import click

from console.cli.cut_off import cut_off_lines
from console.cli.options import (
    ascii_only,
    configuration,
    fleet_once,
    json_option,
    narrowed,
    print_json,
    role_option,
    width,
)
from console.config import Config
from console.errors import EXIT_FINDINGS
from console.fleet.model import Fleet

WATCH_INTERVAL = 2.0  # seconds between two prints of --watch


@click.command("status", epilog="Example: worktop status --check --role mail || echo look at it")
@role_option
@json_option
@click.option("--watch", is_flag=True, help=f"Print again every {WATCH_INTERVAL:g} s until interrupted.")
@click.option("--check", is_flag=True, help="Exit with 3 when there is an error finding.")
@click.option("--evidence", is_flag=True, help="Print each finding's evidence and what mends it.")
@click.pass_context
def command(ctx: click.Context, role: str | None, as_json: bool, watch: bool, check: bool, evidence: bool) -> int:
    """Print the roles and the findings, as the first screen shows them.

    Exit codes: 0 printed, 1 failed, 2 wrong configuration, 3 an error finding (--check).
    """
    config = configuration(ctx, role)
    if watch:
        return asyncio.run(_watch(config, role, as_json, evidence))
    fleet = narrowed(fleet_once(config), role)
    if as_json:
        print_json(fleet)
    else:
        click.echo(status_text(fleet, width(), evidence=evidence))
        for line in cut_off_lines():
            click.echo(line)
    failed = any(finding.severity == "error" for finding in fleet.findings)
    return EXIT_FINDINGS if check and failed else 0


async def _watch(config: Config, role: str | None, as_json: bool, evidence: bool) -> int:
    from console.wiring import Sources

    sources = Sources(config)
    await sources.start()
    try:
        await sources.host.ready(15.0)
        while True:
            await asyncio.sleep(WATCH_INTERVAL)
            if sources.fleet is None:
                continue
            fleet = narrowed(sources.fleet, role)
            if as_json:
                print_json(fleet)
            else:
                click.echo(status_text(fleet, width(), evidence=evidence) + "\n")
    finally:
        await sources.stop()


def status_text(fleet: Fleet, columns: int, evidence: bool = False) -> str:
    """The first screen as plain text, `columns` wide."""
    from console.view.cells import plain
    from console.view.findings import entries, evidence_lines, finding_grid, title_parts
    from console.view.glyphs import ASCII, UNICODE, to_ascii
    from console.view.headline import identity, notices, source_part
    from console.view.rows import role_grid

    glyphs = ASCII if ascii_only() else UNICODE
    shown = entries(fleet)
    lines = [
        plain(identity(fleet, time.time(), columns, glyphs, read_only=False)),
        *(plain((source_part(source, glyphs),)) for source in fleet.sources if source.state != "live"),
        *notices(fleet, glyphs),
        "",
    ]
    if fleet.roles:
        lines += [role_grid(fleet, columns, glyphs).text(), ""]
    lines.append(plain(title_parts(shown, None, columns, 0, glyphs)))
    if evidence:
        for entry in shown:
            lines += ["", *(plain(line) for line in evidence_lines(entry.finding, columns, glyphs))]
    elif shown:
        lines.append(finding_grid(shown, columns, glyphs).text())
    text = "\n".join(line.rstrip() for block in lines for line in block.split("\n"))
    return to_ascii(text) if glyphs is ASCII else text
