"""`worktop jobs`: jobs by state."""

from __future__ import annotations

from typing import Literal

import click

from console.cli.options import configuration, json_option, print_json, role_option, run, width
from console.cli.table import table
from console.config import Config
from console.errors import ConfigError
from console.fleet.model import Job
from console.text import ago, duration

ListedState = Literal["waiting", "running", "stuck", "failed", "done"]
STATES: tuple[ListedState, ...] = ("waiting", "running", "stuck", "failed", "done")

_HEADS: dict[str, tuple[str, ...]] = {
    "waiting": ("JOB", "QUEUE", "TYPE", "ATTEMPTS", "PRIORITY", "WAITS", "LAST ERROR"),
    "running": ("JOB", "QUEUE", "TYPE", "ATTEMPTS", "RUNS", "HEARTBEAT", "LEASE", "HOLDER"),
    "stuck": ("JOB", "QUEUE", "TYPE", "ATTEMPTS", "RUNS", "HEARTBEAT", "LEASE", "HOLDER"),
    "failed": ("JOB", "QUEUE", "TYPE", "ATTEMPTS", "FINISHED", "ERROR"),
    "done": ("JOB", "QUEUE", "TYPE", "ATTEMPTS", "FINISHED"),
}


@click.command("jobs", epilog="Example: worktop jobs --state stuck --role thumbnails")
@click.option("--state", type=click.Choice(STATES), default="waiting", show_default=True)
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@click.option("--after", metavar="JOB", help="Go on after this job of the last page.")
@role_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, state: ListedState, limit: int, after: str | None, role: str | None, as_json: bool
) -> None:
    """List jobs by state, a page at a time.

    "stuck" are running jobs past their lease by the database's clock. Exit codes: 0 listed, 1 failed, 2 wrong
    configuration.
    """
    config = database_configuration(ctx, role)
    queues = tuple(queue for known in config.roles for queue in known.queues) or ((role,) if role else ())
    jobs = run(_ask(config, state, queues, limit, after))
    if as_json:
        print_json(jobs)
        return
    if not jobs:
        click.echo(f"no {state} jobs" + (f" of role {role}" if role else ""))
        return
    click.echo(table(_HEADS[state], [_row(job, state) for job in jobs], width()))
    if len(jobs) == limit:
        click.echo(f"more may follow: worktop jobs --state {state} --after {jobs[-1].id}", err=True)


def database_configuration(ctx: click.Context, role: str | None = None) -> Config:
    """The configuration of a command that needs the database; ConfigError when none is named."""
    config = configuration(ctx, role)
    if not config.database.configured:
        raise ConfigError(
            "database", "none is configured", "set [database] dsn or service in worktop.toml, or PGHOST, PGSERVICE, …"
        )
    return config


async def _ask(
    config: Config, state: ListedState, queues: tuple[str, ...], limit: int, after: str | None
) -> tuple[Job, ...]:
    from console.queue.client import QueueClient

    client = QueueClient(config, config.roles)
    try:
        return await client.jobs(state, queues, limit, after)
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
            job.holder.text if job.holder else "nobody",
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
