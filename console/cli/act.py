"""What the commands that change something share: options, the plan on the screen, the question, the outcome."""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

import click
import msgspec

from console.cli.jobs import database_configuration
from console.cli.options import json_option, print_json, run, width
from console.cli.terminal import ask_line, glyphs, is_terminal, overwrite, say, stopping
from console.config import Config, time_span
from console.errors import EXIT_FAILED, EXIT_NOTHING, EXIT_OK, EXIT_USAGE, ConfigError
from console.fleet.model import HostFacts, Verdict
from console.fleet.plan import JobVerb, Outcome, Plan, Progress, Question, RowRef
from console.text import clean
from console.view.cells import plain
from console.view.plan import lines_text, outcome_lines, plan_text, progress_parts

if TYPE_CHECKING:
    from console.actions.desk import Actions

F = TypeVar("F", bound=Callable[..., Any])
EXIT_CODES = (
    "Exit codes: 0 done (or, with --dry-run, it could be), 1 failed, stopped or not done in full, 2 wrong usage, "
    "refused or not agreed to, 4 there is nothing to do."
)
_VERDICTS: dict[str, Verdict] = {name.lower().replace("_", "-"): name for name in get_args(Verdict)}
del _VERDICTS["alive"]  # it works within its lease, and keeps its jobs
_VERDICTS["slow"] = "ALIVE_SLOW"


class Agreement(msgspec.Struct, frozen=True):
    """How the plan is shown, and what was agreed to beforehand."""

    dry_run: bool
    yes: bool
    typed: str
    why: str
    as_json: bool


class Answer(msgspec.Struct, frozen=True):
    plan: Plan
    outcome: Outcome | None


def agreeing(function: F) -> F:
    """--dry-run, --yes, --type, --why, --json; passed on as `agreement`."""

    @functools.wraps(function)
    def wrapped(dry_run: bool, yes: bool, typed: str, why: str, as_json: bool, **options: Any) -> Any:
        return function(agreement=Agreement(dry_run, yes, typed, why, as_json), **options)

    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print plan and outcome as JSON instead of text."),
        click.option("--why", metavar="TEXT", default="", help="What it is for; stands in the audit."),
        click.option("--type", "typed", metavar="WORD", default="", help="Agree to a plan that asks for a typed word."),
        click.option("--yes", is_flag=True, help="Agree to the plan without being asked."),
        click.option("--dry-run", is_flag=True, help="Show the plan and change nothing."),
    ):
        wrapped = option(wrapped)
    return cast("F", wrapped)


def selecting(function: F) -> F:
    """ROLE, --role, --id, --older-than, --batch."""
    for option in (
        click.option(
            "--batch", type=click.IntRange(1, 1000), default=1000, show_default=True, help="Rows of one transaction."
        ),
        click.option(
            "--older-than", metavar="SPAN", callback=_span, help="Only jobs like that for longer: 90s, 15min."
        ),
        click.option(
            "--id", "rows", metavar="ID[,ID…]", multiple=True, callback=_rows, help="These jobs; may be repeated."
        ),
        click.option("--role", "role_option", metavar="ROLE", help="The same as the argument."),
        click.argument("role", required=False),
    ):
        function = option(function)
    return function


def verdict_option(function: F) -> F:
    return click.option(
        "--verdict",
        "verdicts",
        metavar="VERDICT[,…]",
        multiple=True,
        callback=_verdicts,
        help="Also of holders like that: dead, alive-slow, hung, unknown. A live one is stopped first.",
    )(function)


def quarantine_option(function: F) -> F:
    return click.option(
        "--quarantine-after",
        type=click.IntRange(1),
        metavar="N",
        help="Jobs taken from a holder N times already go to failed.",
    )(function)


def job_plan(
    ctx: click.Context,
    verb: JobVerb,
    agreement: Agreement,
    *,
    role: str | None,
    role_option: str | None,
    rows: tuple[RowRef, ...],
    whole: bool = False,
    **options: Any,
) -> int:
    """Plan a verb for rows, show it, ask, apply it; the exit code. `whole`: without a role and jobs, all roles."""
    if role and role_option and role != role_option:
        raise ConfigError("--role", f"found {role_option!r} beside {role!r}", "expected one role")
    named = role or role_option or ""
    if named and rows:
        raise ConfigError(verb, "found both a role and --id", "expected one of them")
    if rows and options.get("older_than") is not None:
        raise ConfigError(verb, "found both --id and --older-than", "expected one of them")
    if not named and not rows and not whole:
        raise ConfigError(
            verb, "neither a role nor jobs were named", f"worktop {verb} ROLE, or worktop {verb} --id 12,13"
        )
    config = database_configuration(ctx)
    if named and config.roles:
        config.only(named)

    async def make(actions: Actions) -> Plan:
        return await actions.plan_jobs(verb, role=named, rows=rows, why=agreement.why, **options)

    return carry_out(ctx, config, make, agreement, holders=verb in ("reclaim", "quarantine"))


def carry_out(
    ctx: click.Context,
    config: Config,
    make: Callable[[Actions], Awaitable[Plan]],
    agreement: Agreement,
    *,
    holders: bool = False,
    kills: bool = False,
) -> int:
    """Make the plan, show it, ask, apply it; the exit code. `holders`: the plan asks the host about processes. `kills`:
    what is asked in the middle is agreed to beforehand."""
    read_only = str((ctx.find_root().obj or {}).get("read_only") or "")
    return run(_carried_out(config, read_only, make, agreement, holders, kills))


async def _carried_out(
    config: Config,
    read_only: str,
    make: Callable[[Actions], Awaitable[Plan]],
    agreement: Agreement,
    holders: bool,
    kills: bool,
) -> int:
    from console.wiring import ONCE_INTERVAL, ONCE_TIMEOUT, Sources

    sources = Sources(config, interval=ONCE_INTERVAL, read_only=read_only)
    ready: asyncio.Task[HostFacts] | None = None
    try:
        if holders:  # the plan waits for it where it has to
            ready = asyncio.create_task(sources.host.ready(ONCE_TIMEOUT))
        plan = await make(sources.actions)
        if not agreement.as_json:
            say(plan_text(plan, width(), glyphs()))
        if plan.consent.kind == "refused":
            return _told(agreement, plan, None, EXIT_NOTHING if plan.consent.empty else EXIT_USAGE)
        if agreement.dry_run:
            return _told(agreement, plan, None, EXIT_OK)
        typed = agreement.typed
        if not agreement.as_json and is_terminal():
            agreed, typed = await _asked(plan, agreement)
            if not agreed:
                click.echo("worktop: nothing was done", err=True)
                return EXIT_USAGE
        elif (lacking := _lacking(plan, agreement)) is not None:
            click.echo(f"worktop: not applied: {lacking}", err=True)
            return _told(agreement, plan, None, EXIT_USAGE)
        await (ready or sources.host.ready(ONCE_TIMEOUT))
        outcome = await _applied(sources.actions, plan, typed, agreement, kills)
    finally:
        if ready is not None:
            ready.cancel()
        await sources.stop()
    if not agreement.as_json:
        say("\n" + lines_text(outcome_lines(plan, outcome, width(), glyphs())))
    code = {"done": EXIT_OK, "cancelled": EXIT_NOTHING}.get(outcome.state, EXIT_FAILED)
    return _told(agreement, plan, outcome, code)


async def _applied(actions: Actions, plan: Plan, typed: str, agreement: Agreement, kills: bool) -> Outcome:
    """Apply it. A signal that would end worktop stops it between two batches; the second one ends it."""
    stop = asyncio.Event()
    shows = sys.stderr.isatty() and not agreement.as_json

    def progress(now: Progress) -> None:
        overwrite(plain(progress_parts(plan, now, width() - 1)))

    async def decide(question: Question) -> bool:
        if kills or agreement.as_json or not is_terminal():
            return kills
        click.echo("\r\x1b[K" + "\n".join(clean(line) for line in (question.title, *question.text)), err=True)
        return (await ask_line("Kill it? [y/N] ")).lower() in ("y", "yes")

    with stopping(stop, "stopping after this batch or step"):
        try:
            return await actions.apply(
                plan, typed=typed, on_progress=progress if shows else None, on_question=decide, stop=stop
            )
        finally:
            if shows:
                overwrite("")


def _lacking(plan: Plan, agreement: Agreement) -> str | None:
    """What must be said beforehand where nobody can be asked."""
    if plan.consent.kind == "typed":
        return None if agreement.typed == plan.consent.word else f"it asks for --type {plan.consent.word}"
    return None if agreement.yes else "nobody can be asked here; --yes agrees to the plan"


async def _asked(plan: Plan, agreement: Agreement) -> tuple[bool, str]:
    """Whether the person agrees, and the word they typed."""
    if _lacking(plan, agreement) is None:
        return True, agreement.typed
    if plan.consent.kind == "typed":
        word = await ask_line(f"\nType {plan.consent.word} to apply this: ")
        return word == plan.consent.word, word
    return (await ask_line("\nApply this? [y/N] ")).lower() in ("y", "yes"), ""


def _told(agreement: Agreement, plan: Plan, outcome: Outcome | None, code: int) -> int:
    if agreement.as_json:
        print_json(Answer(plan, outcome))
    return code


def _rows(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[RowRef, ...]:
    ids = [part.strip() for text in value for part in text.split(",")]
    return tuple(RowRef(job_id) for job_id in dict.fromkeys(ids) if job_id)


def _span(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    return None if value is None else time_span(value, "--older-than")


def _verdicts(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[Verdict, ...]:
    found: list[Verdict] = []
    for text in (part.strip().lower().replace("_", "-") for one in value for part in one.split(",")):
        if text not in _VERDICTS:
            raise click.BadParameter(f"found {text!r}, expected some of {', '.join(sorted(_VERDICTS))}")
        found.append(_VERDICTS[text])
    return tuple(dict.fromkeys(found))


__all__ = ["EXIT_CODES", "Agreement", "agreeing", "carry_out", "job_plan", "json_option", "selecting"]
