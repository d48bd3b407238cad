"""worktop worker: the reference worker for worktop's own job table."""

from __future__ import annotations

import os
import sys

import click

from console.config import load


@click.command(
    "worker",
    epilog="Exit codes: 0 ended as asked and nothing left in work; 1 it could not start; 2 wrong options, handlers or "
    "configuration; 4 jobs were still in work when --drain-timeout was over and are left to their lease.",
)
@click.option("--role", required=True, help="The role this worker plays; roles are in worktop.toml.")
@click.option(
    "--handlers", "reference", required=True, metavar="MODULE:OBJECT", help="A mapping: job type -> function."
)
@click.option("--queue", "queues", multiple=True, help="Queue to serve, repeatable [default: the role's, or its name].")
@click.option("--lease", type=click.FloatRange(0.1), default=60, show_default=True, help="Seconds a claim lasts.")
@click.option("--renew/--no-renew", default=True, show_default=True, help="Renew leases (every third of --lease).")
@click.option(
    "--poll", type=click.FloatRange(0.05), default=5, show_default=True, help="Seconds; NOTIFY wakes it sooner."
)
@click.option(
    "--concurrency", type=click.IntRange(1, 1000), default=1, show_default=True, help="Jobs at the same time."
)
@click.option("--max-jobs", type=click.IntRange(1), help="End after so many jobs.")
@click.option("--lifetime", type=click.FloatRange(0.1), help="End after so many seconds.")
@click.option(
    "--drain-timeout", type=click.FloatRange(0), default=80, show_default=True, help="Seconds to finish work."
)
@click.option("--no-wait", is_flag=True, help="Exit when the database is not there at start, instead of waiting.")
@click.pass_context
def command(
    ctx: click.Context,
    role: str,
    reference: str,
    queues: tuple[str, ...],
    lease: float,
    renew: bool,
    poll: float,
    concurrency: int,
    max_jobs: int | None,
    lifetime: float | None,
    drain_timeout: float,
    no_wait: bool,
) -> int:
    """Claim jobs of a role and run their handlers.

    A handler is called with the job (id, type, payload, attempt, token, lost) and may be async. It returns: the job is
    done. It raises: the job waits 1, 5, then 30 minutes, and has failed when its attempts are used up. SIGTERM and
    SIGINT finish the work at hand; a second one leaves it to its lease. Under systemd it speaks sd_notify: Type=notify
    and WatchdogSec= work.

    Example: worktop worker --role mail --handlers app.jobs:HANDLERS
    """
    from console.worker.handlers import load_handlers
    from console.worker.worker import EXIT_UNFINISHED, Options, run

    config = load(ctx.obj["config"])
    configured = next((candidate for candidate in config.roles if candidate.name == role), None)
    handlers = load_handlers(reference)
    options = Options(
        role=role,
        queues=queues or (configured.queues if configured else (role,)),
        types=configured.types if configured else (),
        lease=lease,
        renew=renew,
        poll=poll,
        concurrency=concurrency,
        max_jobs=max_jobs,
        lifetime=lifetime,
        drain_timeout=drain_timeout,
        wait=not no_wait,
    )
    code = run(options, handlers, config.database)
    if code == EXIT_UNFINISHED:
        sys.stderr.flush()
        os._exit(code)  # handlers still run in threads; the interpreter's own way out may trip over them
    return code
