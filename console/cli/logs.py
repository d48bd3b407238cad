"""`worktop logs`: the journal of a role, a unit, or everything that mentions a job."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
import time
from datetime import datetime
from pathlib import Path

import click
import msgspec

from console.cli.options import ascii_only, configuration, fleet_once, json_option, masked, print_json, run
from console.config import Config, time_span
from console.errors import EXIT_NOTHING, EXIT_OK, ConfigError, Problem
from console.fleet.model import LogLine, Role
from console.host.protocol import LOG_LINES
from console.state import write_new
from console.text import clean
from console.view.glyphs import to_ascii
from console.view.log import record_text

_WAIT = 10.0  # seconds for the agent's first word


class _Wanted(msgspec.Struct, frozen=True):
    units: tuple[str, ...]
    lines: int
    since: float | None
    mentions: str


def _since(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """Epoch seconds of "15min" ago, or of "2026-11-29 16:42" in the zone of this terminal."""
    if value is None:
        return None
    try:
        return datetime.fromisoformat(value).timestamp()
    except ValueError:
        return time.time() - time_span(value, "--since")


@click.command(
    "logs",
    epilog=f"Exit codes: {EXIT_OK} lines were printed, 1 failed, 2 wrong usage, {EXIT_NOTHING} nothing was logged.\n\n"
    "Example: worktop logs thumbnails --follow; worktop logs --job 918233",
)
@click.argument("what", metavar="[ROLE|UNIT]", required=False)
@click.option("--job", metavar="ID", default="", help="Only lines that mention this job; without a role of any role.")
@click.option("--follow", is_flag=True, help="Go on with what is written, until ctrl+c.")
@click.option("--since", metavar="TIME", callback=_since, help='"15min" ago, or "2026-11-29 16:42".')
@click.option("--lines", type=click.IntRange(1, LOG_LINES), help="So many at most; 200 when nothing else is said.")
@click.option("--export", type=click.Path(dir_okay=False, path_type=Path), help="Write to this new file (mode 0600).")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    what: str | None,
    job: str,
    follow: bool,
    since: float | None,
    lines: int | None,
    export: Path | None,
    as_json: bool,
) -> int:
    """Print the journal of a role's instances in one stream, of one unit, or what mentions a job.

    ROLE by its name, a worker as thumbnails@2 or by the name of its unit. Secrets are masked.
    """
    if what is None and not job:
        raise click.UsageError("Name a role or a unit, or a job: worktop logs ROLE, worktop logs --job ID")
    if follow and export is not None:
        raise click.UsageError("--export writes what there is; --follow never ends. Use one of them.")
    config = configuration(ctx)
    roles = config.roles or tuple(status.role for status in fleet_once(config).roles)
    units = units_of(roles, what)
    most = lines or (LOG_LINES if job or since is not None else 200)
    wanted = _Wanted(units, most, since, job)
    if follow:
        return run(_follow(config, wanted, as_json))
    found, problem = run(_read(config, wanted))
    _tell(problem, bool(found))
    if export is not None:
        _export(export, found, as_json)
    elif as_json:
        print_json(list(found))
    else:
        for line in found:
            _print(line, False)
    return EXIT_OK if found else EXIT_NOTHING


def units_of(roles: tuple[Role, ...], what: str | None) -> tuple[str, ...]:
    """The units that are meant, as names and globs. ConfigError: there are none."""
    with_units = [role for role in roles if role.template]
    if what is None:
        if not with_units:
            raise ConfigError("logs", "no role has a unit", "name one: worktop logs NAME.service")
        return tuple(dict.fromkeys(role.unit_name("*") for role in with_units))
    name, at, instance = what.partition("@")
    role = next((role for role in roles if role.name == name), None)
    if role is not None:
        if not role.template:
            raise ConfigError(f"role {name}", "it has no unit, so it has no log of its own", "see worktop workers")
        return (role.unit_name(instance if at and instance else "*"),)
    if re.fullmatch(r"[A-Za-z0-9:_.\\@-]+\.service", what):
        return (what,)
    known = ", ".join(role.name for role in roles) or "none"
    raise ConfigError(f"logs {what}", "it is no role and no unit", f"roles: {known}; a unit ends in .service")


async def _read(config: Config, wanted: _Wanted) -> tuple[tuple[LogLine, ...], Problem | None]:
    from console.wiring import Sources

    sources = Sources(config)
    try:
        await sources.host.ready(_WAIT)
        return await sources.host.read_log(
            wanted.units, lines=wanted.lines, since=wanted.since, mentions=wanted.mentions
        )
    finally:
        await sources.stop()


async def _follow(config: Config, wanted: _Wanted, as_json: bool) -> int:
    """Until ctrl+c, SIGTERM, or a reader that is gone."""
    from console.wiring import Sources

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, ended.set)

    def told(lines: tuple[LogLine, ...]) -> None:
        try:
            for line in lines:
                _print(line, as_json)
            sys.stdout.flush()
        except BrokenPipeError:
            ended.set()

    sources = Sources(config)
    try:
        await sources.host.ready(_WAIT)
        following = await sources.host.follow_log(
            wanted.units, told, lines=wanted.lines, since=wanted.since, mentions=wanted.mentions
        )
        problem: Problem | None = None
        while not ended.is_set():
            if following.problem != problem:
                problem = following.problem
                _tell(problem, True)
            try:
                async with asyncio.timeout(1.0):
                    await ended.wait()
            except TimeoutError:
                continue
    finally:
        await sources.stop()
    return EXIT_OK


def _print(line: LogLine, as_json: bool) -> None:
    sys.stdout.write(_text(line, as_json) + "\n")


def _text(line: LogLine, as_json: bool) -> str:
    if as_json:
        return msgspec.json.encode(masked(line)).decode()
    return to_ascii(record_text(line)) if ascii_only() else record_text(line)


def _tell(problem: Problem | None, some: bool) -> None:
    """On stderr, why there is nothing, or not all."""
    if problem is not None:
        click.echo(f"worktop: {clean(problem.line())}", err=True)
    elif not some:
        click.echo("worktop: nothing was logged", err=True)


def _export(path: Path, lines: tuple[LogLine, ...], as_json: bool) -> None:
    try:
        write_new(path, "\n".join(_text(line, as_json) for line in lines))
    except OSError as error:
        why = "there is such a file already" if isinstance(error, FileExistsError) else error.strerror or str(error)
        raise ConfigError(f"--export {path}", why, "name a new file") from None
    click.echo(f"{len(lines)} lines written to {clean(path)}", err=True)
