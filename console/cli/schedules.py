"""`worktop schedules`: everything that starts something on a host, what it is, the unit it would become; off and on."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from console.cli.act import EXIT_CODES, Agreement, agreeing, carry_out
from console.cli.options import ascii_only, configuration, json_option, print_json, run, width
from console.errors import EXIT_FAILED, EXIT_NOTHING, EXIT_OK, ConfigError
from console.schedules.inventory import Inventory, Listed, Translated, accepted, find, short_name
from console.text import clean, clean_block
from console.view.cells import plain
from console.view.glyphs import ASCII, UNICODE, Glyphs, to_ascii
from console.view.listing import Look, list_grid
from console.view.schedule import schedule_sections, schedule_text, schedule_title
from console.view.schedules import COLUMNS, rows, said

if TYPE_CHECKING:
    from console.actions.desk import Actions
    from console.fleet.plan import LineVerb, Plan

_WHOLE = 100_000  # columns: unit text is printed as it is written

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Source(Protocol):
    """This host through its agent, or the files below another root."""

    async def schedules(self) -> Inventory: ...

    async def translate(self, names: tuple[str, ...], prove: bool = True) -> tuple[Translated, ...]: ...


def root_option(function: F) -> F:
    return click.option(
        "--root",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False),
        help="Read the files of another host that were copied below DIR, and nothing of this one.",
    )(function)


@click.group("schedules", invoke_without_command=True, epilog="Example: worktop schedules explain deploy:4")
@root_option
@json_option
@click.pass_context
def command(ctx: click.Context, root: str | None, as_json: bool) -> int:
    """List what starts something on the host: crontabs, cron folders, anacron, timers, rc.local, supervisord, pm2.

    ENTRY names a line: deploy:4 (line 4 of deploy's crontab), /etc/cron.d/reports:2, /etc/cron.daily/dpkg,
    timer:apt-daily.timer. A file, an account or a role names all its lines.

    Exit codes: 0 told, 1 a source could not be read (the others are told), 2 wrong usage or no such entry.
    """
    if ctx.invoked_subcommand is not None:
        return EXIT_OK
    inventory = _asked(ctx, root, lambda source: source.schedules())
    if as_json:
        from console.cli.schedules_json import inventory_json

        print_json(inventory_json(inventory))
    else:
        _say(_table(inventory))
    return EXIT_FAILED if inventory.unread else EXIT_OK


@command.command("explain", epilog="Example: worktop schedules explain deploy:4")
@click.argument("entry", required=False)
@root_option
@json_option
@click.pass_context
def explain(ctx: click.Context, entry: str | None, root: str | None, as_json: bool) -> int:
    """Tell what an entry is and why, when it runs, what it starts, what is alive of it; without ENTRY: all of them.

    With --json: a list, one object per entry, with the text of the units it would become.

    Exit codes: 0 told, 1 a source could not be read (the others are told), 2 wrong usage or no such entry.
    """

    async def ask(source: Source) -> tuple[Inventory, tuple[Translated, ...]]:
        inventory = await source.schedules()
        wanted = _named(inventory, entry) if entry is not None else inventory.entries
        return inventory, await source.translate(_names_of(wanted), prove=False)

    inventory, told = _asked(ctx, root, ask)
    if as_json:
        from console.cli.schedules_json import entry_json

        print_json([entry_json(each) for each in told])
    else:
        _say("\n\n\n".join(_explained(each) for each in told) or _nothing(inventory))
    return EXIT_FAILED if entry is None and inventory.unread else EXIT_OK


@command.command("translate", epilog="Example: worktop schedules translate deploy:4 --out reports-units")
@click.argument("entry")
@click.option("--out", metavar="DIR", type=click.Path(file_okay=False), help="Write the files there instead.")
@root_option
@json_option
@click.pass_context
def translate(ctx: click.Context, entry: str, out: str | None, root: str | None, as_json: bool) -> int:
    """Print the units an entry would become, or write them to DIR with a README.md. Nothing is installed.

    Before that systemd-analyze reads each unit, and the timer's times are compared with cron's: every difference is
    listed. Files in DIR that are there already are not written over.

    Exit codes: 0 every check held, 1 one did not, or could not be made, 2 wrong usage or no such entry, 4 there is
    nothing to translate.
    """

    async def ask(source: Source) -> tuple[Translated, ...]:
        return await source.translate(_names_of(_named(await source.schedules(), entry)), prove=True)

    told = _asked(ctx, root, ask)
    offered = [each for each in told if each.listed.explained.units]
    if out is not None and offered:
        from console.cli.schedules_files import write

        for path in write(Path(out), offered):
            click.echo(f"written: {path}", err=as_json)
    if as_json:
        from console.cli.schedules_json import entry_json

        print_json([entry_json(each) for each in told])
    else:
        for each in told:
            _say(_offered(each, files=out is None))
    if not offered:
        return EXIT_NOTHING
    return EXIT_FAILED if any(each.failed for each in offered) else EXIT_OK


@command.command("disable", epilog=f"{EXIT_CODES}\n\nExample: worktop schedules disable deploy:4 --dry-run")
@click.argument("entry")
@agreeing
@click.pass_context
def disable(ctx: click.Context, entry: str, agreement: Agreement) -> int:
    """Switch a line of a crontab off: a mark before it, and no other byte of the file is another."""
    return _switch(ctx, "disable-line", entry, agreement)


@command.command("restore", epilog=f"{EXIT_CODES}\n\nExample: worktop schedules restore deploy:4")
@click.argument("entry")
@agreeing
@click.pass_context
def restore(ctx: click.Context, entry: str, agreement: Agreement) -> int:
    """Switch a line on again that was switched off with disable: the file is what it was, byte for byte."""
    return _switch(ctx, "restore-line", entry, agreement)


def _switch(ctx: click.Context, verb: LineVerb, entry: str, agreement: Agreement) -> int:
    async def make(actions: Actions) -> Plan:
        found = _named(await actions.schedules(), entry)
        lines = [each for each in found if each.entry.source.kind in ("user", "system", "cron.d")]
        if len(lines) != 1:
            many = ", ".join(short_name(each.name) for each in lines[:8])
            why = f"it names {len(lines)} lines: {many}" if lines else "it is no line of a crontab"
            raise ConfigError(f"ENTRY {entry}", why, "name one line of a crontab, as worktop schedules lists it")
        line = lines[0].entry
        return await actions.plan_crontab(verb, path=line.source.path, line=line.line, raw=line.raw, why=agreement.why)

    return carry_out(ctx, configuration(ctx), make, agreement, holders=True)


# --- where it is asked -----------------------------------------------------------------------------------------------


def _asked(ctx: click.Context, root: str | None, ask: Callable[[Source], Coroutine[Any, Any, T]]) -> T:
    """The answer of this host, or of the files below the root."""
    root = root or (ctx.parent.params.get("root") if ctx.parent is not None else None)
    if root is not None:
        from console.host.offline import Offline

        return run(ask(Offline(root)))

    async def here() -> T:
        from console.wiring import ONCE_INTERVAL, ONCE_TIMEOUT, Sources

        sources = Sources(configuration(ctx), interval=ONCE_INTERVAL)
        try:
            await sources.host.ready(ONCE_TIMEOUT)
            return await ask(sources)
        finally:
            await sources.stop()

    return run(here())


def _named(inventory: Inventory, entry: str) -> tuple[Listed, ...]:
    found = find(inventory.entries, entry)
    if not found:
        raise ConfigError(f"ENTRY {entry}", "there is no such entry", accepted(inventory.entries))
    return found


def _names_of(entries: tuple[Listed, ...]) -> tuple[str, ...]:
    return tuple(each.name for each in entries)


# --- what is printed -------------------------------------------------------------------------------------------------


def _glyphs() -> Glyphs:
    return ASCII if ascii_only() else UNICODE


def _say(text: str) -> None:
    click.echo(to_ascii(text) if ascii_only() else text)


def _table(inventory: Inventory) -> str:
    shown = rows(inventory)
    if not shown:
        return _nothing(inventory)
    look = Look(glyphs=_glyphs(), now=time.time())
    grid = list_grid(shown, [row.key for row in shown], COLUMNS, width(), look)
    return "\n".join([*(clean(note) for note in inventory.notes), grid.text()])


def _nothing(inventory: Inventory) -> str:
    return (
        "\n".join([*(each.problem.line() for each in inventory.unread), *inventory.notes])
        or "nothing is scheduled here"
    )


def _explained(told: Translated) -> str:
    look = Look(glyphs=_glyphs(), now=time.time())
    title = plain(schedule_title(told.listed, look.glyphs))
    lines = schedule_text(schedule_sections(told.listed, told, None, False, width(), look, _WHOLE))
    return "\n".join([title, "", *(plain(line).rstrip() for line in lines)])


def _offered(told: Translated, files: bool) -> str:
    """The checks, and the files unless they were written."""
    glyphs = _glyphs()
    lines = [plain(schedule_title(told.listed, glyphs))]
    lines += [f"{glyphs.good} {clean(text)}" for text in told.held]
    lines += [f"{glyphs.bad} {clean(text)}" for text in told.failed]
    lines += [f"{glyphs.warning} {clean(text)}" for text in told.lost]
    explained = told.listed.explained
    if not explained.units:
        lines += [clean(text) for text in said(told.listed)] or ["it is not offered as a unit"]
    for name, text in (*explained.units, *((path, text) for path, text, _ in explained.extras)) if files else ():
        lines += ["", f"# {clean(name)}", clean_block(text).rstrip()]
    return "\n".join(lines)
