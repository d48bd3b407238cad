"""`worktop --plain [SCREEN]`: the screens as plain text, for screen readers, pipes and logs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

import click

from console.cli.options import ascii_only, configuration, run, width
from console.cli.status import status_text
from console.fleet.model import Fleet, JobQuery, LogLine
from console.view.cells import plain
from console.view.glyphs import ASCII, UNICODE, Glyphs, to_ascii
from console.view.listing import Look, list_grid, look_of

if TYPE_CHECKING:
    from console.wiring import Sources

ScreenName = Literal["fleet", "workers", "jobs", "queue", "log", "schedules", "host"]
SCREENS: tuple[ScreenName, ...] = ("fleet", "workers", "jobs", "queue", "log", "schedules", "host")
_JOB_STATES: tuple[Literal["stuck", "running", "waiting", "failed"], ...] = ("stuck", "running", "waiting", "failed")
_JOBS_EACH = 20
_LOG_SECONDS = 3.0  # the history of the journal is there by then


def print_plain(ctx: click.Context, screen: ScreenName) -> int:
    """Print one screen once and return the exit code."""
    config = configuration(ctx)

    async def ask() -> str:
        from console.wiring import ONCE_INTERVAL, Sources

        sources = Sources(config, interval=ONCE_INTERVAL)
        try:
            fleet = await sources.once()
            return await _text(screen, fleet, sources)
        finally:
            await sources.stop()

    text = run(ask())
    click.echo(to_ascii(text) if ascii_only() else text)
    return 0


async def _text(screen: ScreenName, fleet: Fleet, sources: Sources) -> str:
    columns, glyphs = width(), ASCII if ascii_only() else UNICODE
    look = look_of(fleet, glyphs, fleet.now)
    if screen == "fleet":
        return status_text(fleet, columns)
    if screen == "workers":
        return _workers(fleet, columns, look)
    if screen == "jobs":
        return await _jobs(fleet, sources, columns, look)
    if screen == "queue":
        return _queue(fleet, columns, look)
    if screen == "log":
        return await _log(fleet, sources, columns, glyphs)
    if screen == "schedules":
        return await _schedules(sources, columns, look)
    return await _host(fleet, sources, columns, look)


def _workers(fleet: Fleet, columns: int, look: Look) -> str:
    from console.view.workers import COLUMNS, summary_parts, worker_items

    items = worker_items(fleet)
    grid = list_grid(items, [item.key for item in items], COLUMNS, columns, look)
    return f"WORKERS  {plain(summary_parts(items, look.glyphs))}\n\n{grid.text()}"


async def _jobs(fleet: Fleet, sources: Sources, columns: int, look: Look) -> str:
    from console.view.jobs import JobRow, job_grid, role_name

    roles = tuple(status.role for status in fleet.roles)
    claims = {claim.job.id: claim for claim in fleet.claims}
    now = fleet.queue.now if fleet.queue is not None else fleet.now
    parts = []
    for state in _JOB_STATES:
        query = JobQuery(state=state, limit=_JOBS_EACH)
        page = await sources.jobs(query)
        rows = [JobRow(job=job, role=role_name(job, roles), now=now, claim=claims.get(job.id)) for job in page.jobs]
        shown = job_grid(rows, query, columns, look).text() if rows else "none"
        more = "\n…" if page.next is not None else ""
        parts.append(f"{state.upper()}\n{shown}{more}")
    return "\n\n".join(parts)


def _queue(fleet: Fleet, columns: int, look: Look) -> str:
    from console.view.cells import safe
    from console.view.trends import queue_grid, roles_with_rows

    parts = [queue_grid(fleet, columns, look).text()]
    if fleet.queue is not None and fleet.queue.recognised:
        parts.insert(0, safe(f"{fleet.queue.recognised}, in {fleet.queue.database}", columns))
    for status in roles_with_rows(fleet):
        if status.trend is None:
            continue
        minutes = [
            f"{_minute(point.at)}  waiting {_number(point.waiting)}  done {_number(point.done)}  "
            f"failed {_number(point.failed)}"
            for point in status.trend.points[-15:]
        ]
        parts.append("\n".join([f"{safe(status.role.name, 40)}, per minute", *minutes]))
    return "\n\n".join(parts)


def _minute(at: float) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(at, UTC):%H:%M} UTC"


def _number(value: int | None) -> str:
    return "not known" if value is None else str(value)


async def _log(fleet: Fleet, sources: Sources, columns: int, glyphs: Glyphs) -> str:
    from console.view.log import log_parts, name_width

    units = tuple(worker.unit.name for status in fleet.roles for worker in status.workers if worker.unit is not None)
    if not units:
        return "no unit to read the journal of"
    lines: list[LogLine] = []
    follow = await sources.follow_log(units, lines.extend)
    await asyncio.sleep(_LOG_SECONDS)
    problem = follow.problem
    await follow.stop()
    if problem is not None and not lines:
        return problem.line()
    names = name_width(units)
    return "\n".join(plain(log_parts(line, columns, glyphs, names)).rstrip() for line in lines[-100:])


async def _schedules(sources: Sources, columns: int, look: Look) -> str:
    from console.view.schedules import COLUMNS, rows, summary_parts

    inventory = await sources.schedules()
    shown = rows(inventory)
    grid = list_grid(shown, [row.key for row in shown], COLUMNS, columns, look)
    counts = "  ".join(text for text, _ in summary_parts(shown, look.glyphs, inventory.notes))
    return f"SCHEDULES  {counts}\n\n{grid.text()}"


async def _host(fleet: Fleet, sources: Sources, columns: int, look: Look) -> str:
    from console.view.host import TREE_COLUMNS, account_grid, host_lines, tree_rows, trees_title

    detail = await sources.host_detail()
    rows, _ = tree_rows(detail, ())
    trees = list_grid(rows, [row.key for row in rows], TREE_COLUMNS, columns, look).text()
    head = "\n".join(plain(line) for line in host_lines(fleet, columns, look.glyphs))
    return (
        f"{head}\n\n{account_grid(fleet, columns, look).text()}\n\n{plain(trees_title(detail, None, columns))}\n{trees}"
    )
