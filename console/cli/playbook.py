"""`worktop playbook`: what there is, and runs: begin one, take it up again, take it back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click
import msgspec

from console.cli.act import Agreement, agreeing
from console.cli.options import configuration, json_option, print_json, run, width
from console.cli.terminal import glyphs, say
from console.errors import EXIT_FAILED, EXIT_NOTHING, EXIT_OK, ConfigError
from console.playbook.model import Playbook, RunStatus, Settings, Shelved, StepView
from console.text import clean
from console.view.plan import lines_text
from console.view.playbook import book_lines, run_lines, shelf_lines, step_lines

if TYPE_CHECKING:
    from console.playbook.desk import Playbooks

_CODES = (
    "Exit codes: 0 done to the end, 1 a step failed or does not hold, 2 wrong usage, refused or not agreed to, "
    "4 there is nothing to do, 5 it was left and can be taken up again."
)
_TOLD = "Exit codes: 0 told, 2 there is no such playbook or run."
_FIRST = "cron-launcher-to-systemd"
_LINT_CODES = "Exit codes: 0 without fault, 1 with faults, 2 it cannot be read."
_NAME = "[PLAYBOOK|ROLE|RUN]"


@click.group(
    "playbook",
    epilog=f"{_CODES}\n\nExample: worktop playbook run {_FIRST} --role reports --entry deploy:4",
)
def command() -> None:
    """Follow a playbook step by step. Each step is shown, agreed to, done, verified and recorded.

    A run can be left at any step and taken up again, after a crash or a reboot too, and taken back step by step.
    """


@command.command("list", epilog=f"{_TOLD}\n\nExample: worktop playbook list")
@json_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> int:
    """List the playbooks: shipped ones, those in /etc/worktop/playbooks, and in ~/.config/worktop/playbooks."""
    shelf = _offline(ctx).shelf()
    if as_json:
        print_json([_bare(each) for each in shelf])
    else:
        say(lines_text(shelf_lines(shelf, width(), glyphs())))
    return EXIT_OK


@command.command("show", epilog=f"{_TOLD}\n\nExample: worktop playbook show cron-launcher-to-systemd")
@click.argument("name", metavar="PLAYBOOK")
@json_option
@click.pass_context
def show(ctx: click.Context, name: str, as_json: bool) -> int:
    """Print a playbook: what it is for, what it needs, its steps."""
    book = _offline(ctx).book(name)
    if as_json:
        print_json(book)
    else:
        say(lines_text(book_lines(book, width(), glyphs())))
    return EXIT_OK


@command.command(
    "check",
    epilog=f"{_LINT_CODES}\n\nExample: worktop playbook check mine.md",
)
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path())
@json_option
@click.pass_context
def check(ctx: click.Context, files: tuple[str, ...], as_json: bool) -> int:
    """Look for faults in playbook files: unknown actions, missing blocks, wrong inputs; each with its line."""
    desk = _offline(ctx)
    found = [desk.check(path) for path in files]
    if as_json:
        print_json([_bare(each) for each in found])
    else:
        for each in found:
            for flaw in each.flaws:
                say(clean(flaw))
            if not each.flaws:
                say(f"{clean(each.path)}: without fault")
    return EXIT_FAILED if any(each.flaws for each in found) else EXIT_OK


def _valued(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--set", "sets", metavar="NAME=VALUE", multiple=True, help="A value the playbook takes."),
        click.option("--entry", metavar="ENTRY", help="The same as --set entry=…: a line of worktop schedules."),
        click.option("--role", metavar="ROLE", help="The same as --set role=…"),
    ):
        function = option(function)
    return function


@command.command("run", epilog=f"{_CODES}\n\nExample: worktop playbook run scale-up-safely --role mail --set count=4")
@click.argument("name", metavar="PLAYBOOK")
@_valued
@click.option("--kill", "kills", is_flag=True, help="Agree beforehand to killing what does not end in time.")
@agreeing
@click.pass_context
def run_(
    ctx: click.Context, agreement: Agreement, name: str, role: str | None, entry: str | None, sets: tuple[str, ...],
    kills: bool,
) -> int:  # fmt: skip
    """Follow a playbook from its first step; one that is open for the same role is taken up where it was left.

    With --dry-run every step is shown as things stand now, and nothing is changed. With --yes nobody is asked; a step
    that asks for a typed word takes it from --type. Ctrl-C leaves the run after what is being done; what waits goes on.
    """
    values = _values(role, entry, sets)

    async def follow(desk: Playbooks) -> int:
        if agreement.dry_run:
            return _previewed(await desk.preview(name, values), agreement)
        from console.cli.playbook_run import follow as follow_run

        return await follow_run(await desk.start(name, values), agreement, kills)

    return _live(ctx, follow)


@command.command("resume", epilog=f"{_CODES}\n\nExample: worktop playbook resume reports")
@click.argument("name", metavar=_NAME)
@click.option("--kill", "kills", is_flag=True, help="Agree beforehand to killing what does not end in time.")
@agreeing
@click.pass_context
def resume(ctx: click.Context, agreement: Agreement, name: str, kills: bool) -> int:
    """Take up a run where it was left, or where worktop, its agent or the host was lost. With --dry-run its next step
    is shown."""

    async def follow(desk: Playbooks) -> int:
        from console.cli.playbook_run import follow as follow_run

        return await follow_run(await desk.resume(name), agreement, kills)

    return _live(ctx, follow)


@command.command("rollback", epilog=f"{_CODES}\n\nExample: worktop playbook rollback reports --to 2")
@click.argument("name", metavar=_NAME)
@click.option(
    "--to", "to", type=click.IntRange(0), default=0, show_default=True, help="Up to and with this step it stays."
)
@click.option("--kill", "kills", is_flag=True, help="Agree beforehand to killing what does not end in time.")
@agreeing
@click.pass_context
def rollback(ctx: click.Context, agreement: Agreement, name: str, to: int, kills: bool) -> int:
    """Take a run back, the last step first; each is looked at afterwards."""

    async def follow(desk: Playbooks) -> int:
        from console.cli.playbook_run import take_back

        return await take_back(await desk.resume(name), to, agreement, kills)

    return _live(ctx, follow)


@command.command("abandon", epilog=f"{_TOLD}\n\nExample: worktop playbook abandon reports")
@click.argument("name", metavar=_NAME)
@click.option("--why", metavar="TEXT", default="", help="What it is for; stands in the audit.")
@click.pass_context
def abandon(ctx: click.Context, name: str, why: str) -> int:
    """Give a run up where it stands: what was done stays, and can be undone plan by plan."""

    async def give_up(desk: Playbooks) -> int:
        taken = await desk.resume(name)
        try:
            _told(taken.abandon(why))
        finally:
            taken.close()
        return EXIT_OK

    return _live(ctx, give_up)


@command.command("status", epilog=f"{_TOLD}\n\nExample: worktop playbook status")
@click.argument("name", metavar=_NAME, required=False)
@json_option
@click.pass_context
def status(ctx: click.Context, name: str | None, as_json: bool) -> int:
    """Tell how far runs have come; without a name all of them, newest first."""
    desk = _offline(ctx)
    found = (desk.status(name),) if name else desk.runs()
    if as_json:
        print_json(found)
        return EXIT_OK
    if not found:
        say("no playbook has been run")
        return EXIT_NOTHING
    for place, each in enumerate(found):
        if place:
            say("")
        _told(each)
    return EXIT_OK


# ---------------------------------------------------------------------------------------------------------------------


def _told(found: RunStatus) -> None:
    say(lines_text(run_lines(found, time.time(), width(), glyphs())))


def _previewed(views: tuple[StepView, ...], agreement: Agreement) -> int:
    if agreement.as_json:
        print_json(views)
    else:
        say("Nothing is changed: this is what each step would do as things stand now.\n")
        for view in views:
            say(lines_text(step_lines(view, width(), glyphs(), len(views))) + "\n")
    return EXIT_OK


def _bare(shelved: Shelved) -> Shelved:
    """Without the whole text of the file."""
    book: Playbook | None = shelved.playbook
    return msgspec.structs.replace(shelved, playbook=msgspec.structs.replace(book, text="") if book else None)


def _values(role: str | None, entry: str | None, sets: tuple[str, ...]) -> Settings:
    values: Settings = {}
    for text in sets:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ConfigError("--set", f"found {text!r}", "expected NAME=VALUE")
        values[name] = value
    for name, given in (("role", role), ("entry", entry)):
        if given:
            values[name] = given
    return values


def _offline(ctx: click.Context) -> Playbooks:
    """For what needs neither host nor queue; its sources are never started."""
    from console.wiring import Sources

    return Sources(configuration(ctx), read_only="nothing is changed by this").playbooks


def _live(ctx: click.Context, act: Callable[[Playbooks], Awaitable[int]]) -> int:
    from console.wiring import ONCE_INTERVAL, ONCE_TIMEOUT, Sources

    config = configuration(ctx)
    read_only = str((ctx.find_root().obj or {}).get("read_only") or "")

    async def acted() -> int:
        sources = Sources(config, interval=ONCE_INTERVAL, read_only=read_only)
        ready = asyncio.create_task(sources.host.ready(ONCE_TIMEOUT))
        try:
            await ready
            return await act(sources.playbooks)
        finally:
            ready.cancel()
            await sources.stop()

    return run(acted())
