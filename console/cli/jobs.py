"""`worktop jobs`: jobs by state."""

from __future__ import annotations

import shlex
from typing import Literal, get_args

import click

from console.cli.options import configuration, json_option, print_json, role_option, run, width
from console.cli.table import table
from console.config import Config
from console.errors import ConfigError
from console.fleet.model import Count, Job, JobPage, JobQuery, JobSort
from console.text import ago, clean, duration
from console.view.jobs import holder_text

ListedState = Literal["waiting", "running", "stuck", "failed", "done"]
STATES: tuple[ListedState, ...] = ("waiting", "running", "stuck", "failed", "done")
SORTS: tuple[JobSort, ...] = get_args(JobSort)

_HEADS: dict[str, tuple[str, ...]] = {
    "waiting": ("JOB", "QUEUE", "TYPE", "ATTEMPTS", "PRIORITY", "WAITS", "LAST ERROR"),
    "running": ("JOB", "QUEUE", "TYPE", "ATTEMPTS", "RUNS", "HEARTBEAT", "LEASE", "HOLDER"),
    "stuck": ("JOB", "QUEUE", "TYPE", "ATTEMPTS", "RUNS", "HEARTBEAT", "LEASE", "HOLDER"),
    "failed": ("JOB", "QUEUE", "TYPE", "ATTEMPTS", "FINISHED", "ERROR"),
    "done": ("JOB", "QUEUE", "TYPE", "ATTEMPTS", "FINISHED"),
}


@click.command("jobs", epilog="Example: worktop jobs --state failed --contains timeout --sort finished --desc")
@click.option("--state", type=click.Choice(STATES), default="waiting", show_default=True)
@click.option("--type", "types", metavar="TYPE", multiple=True, help="Only jobs of this type; may be repeated.")
@click.option("--contains", metavar="TEXT", default="", help="Only jobs with the text in id, type or error.")
@click.option("--sort", type=click.Choice(SORTS), default="id", show_default=True, help="What the jobs are sorted by.")
@click.option("--desc/--asc", "descending", default=None, help="The greatest first; ids of ended jobs by default.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@click.option("--after", metavar="NEXT", help='Go on where the last page ended: its "next".')
@role_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    state: ListedState,
    types: tuple[str, ...],
    contains: str,
    sort: JobSort,
    descending: bool | None,
    limit: int,
    after: str | None,
    role: str | None,
    as_json: bool,
) -> None:
    """List jobs by state, a page at a time.

    "stuck" are running jobs past their lease by the database's clock. TEXT is taken as it is, without regard to case;
    a filtered page may be short, and go on with --after. With --json: {"jobs", "total", "next"}; without "next" it was
    the last page.

    Exit codes: 0 listed, 1 failed, 2 wrong configuration.
    """
    config = database_configuration(ctx, role)
    query = JobQuery(
        state=state,
        queues=tuple(queue for known in config.roles for queue in known.queues) or ((role,) if role else ()),
        types=types or _types_of(config),
        contains=contains,
        sort=sort,
        descending=descending if descending is not None else sort == "id" and state in ("done", "failed"),
        limit=limit,
        after=after,
    )
    page = run(_ask(config, query))
    if as_json:
        print_json(page)
        return
    if page.jobs:
        click.echo(table(_HEADS[state], [_row(job, state) for job in page.jobs], width()))
    elif page.next is None:
        click.echo(f"no {state} jobs" + (f" of role {role}" if role else "") + (" like that" if contains else ""))
    if page.note:
        click.echo(page.note, err=True)
    if page.next is not None:
        said = f"{len(page.jobs)} of {_count(page.total)}; " if page.total is not None else ""
        click.echo(f"{said}more: {_again(ctx, page.next)}", err=True)


def _types_of(config: Config) -> tuple[str, ...]:
    """The types of the one role that was asked for; of several roles each has its own, so none narrows them all."""
    return config.roles[0].types if len(config.roles) == 1 else ()


def _count(count: Count) -> str:
    number = f"{count.n:,}".replace(",", " ")
    return {"exact": number, "at-least": f"more than {number}", "estimate": f"about {number}"}[count.kind]


def _again(ctx: click.Context, next: str) -> str:
    """The command that prints the next page."""
    options = {"--state": "state", "--contains": "contains", "--sort": "sort", "--limit": "limit", "--role": "role"}
    default = {option.name: option.default for option in ctx.command.params}
    given = [
        (option, str(value))
        for option, name in options.items()
        if (value := ctx.params[name]) and value != default[name]
    ]
    words = ["worktop", "jobs", *(word for pair in given for word in pair)]
    words += [word for type in ctx.params["types"] for word in ("--type", type)]
    if ctx.params["descending"] is not None:
        words.append("--desc" if ctx.params["descending"] else "--asc")
    return clean(shlex.join([*words, "--after", next]))


def database_configuration(ctx: click.Context, role: str | None = None) -> Config:
    """The configuration of a command that needs the database; ConfigError when none is named."""
    config = configuration(ctx, role)
    if not config.database.configured:
        raise ConfigError(
            "database", "none is configured", "set [database] dsn or service in worktop.toml, or PGHOST, PGSERVICE, …"
        )
    return config


async def _ask(config: Config, query: JobQuery) -> JobPage:
    from console.queue.client import QueueClient

    client = QueueClient(config, config.roles)
    try:
        return await client.page(query)
    finally:
        await client.close()


def _row(job: Job, state: ListedState) -> tuple[object, ...]:
    attempts = f"{job.attempts}/{job.max_attempts}" if job.max_attempts else job.attempts
    first = (job.id, job.queue, job.type, attempts)
    if state == "waiting":
        due = duration(job.waiting_for) if (job.waiting_for or 0) >= 0 else f"in {duration(-(job.waiting_for or 0))}"
        return (*first, job.priority if job.priority is not None else "", due, job.error)
    if state in ("running", "stuck"):
        return (
            *first,
            duration(job.running_for),
            _heartbeat(job),
            lease(job),
            holder_text(job.holder),
        )
    finished = f"{local(job.finished)}"
    return (*first, finished, job.error) if state == "failed" else (*first, finished)


def _heartbeat(job: Job) -> str:
    return f"{ago(job.heartbeat_age)} ago" if job.heartbeat_age is not None else "none"


def lease(job: Job) -> str:
    """The lease in words: "12:00 overdue", "for 0:41"."""
    if job.overdue is None:
        return "none"
    return f"{duration(job.overdue)} overdue" if job.overdue > 0 else f"for {duration(-job.overdue)}"


def local(when: float | None) -> str:
    """A moment in local time with its zone; "" when there is none."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(when, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z") if when is not None else ""
