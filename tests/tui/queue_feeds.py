"""Feeds whose job table has rows: small ones by hand, and one of any size that is made up as it is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC
from typing import Any

import msgspec

from console.errors import QueueError, WorktopError
from console.fleet.model import Account, Claim, Count, Fleet, Holder, Job, JobPage, JobQuery, Trend, TrendPoint
from console.tui.app import ConsoleApp
from tests.examples import BOOT, NOW, M
from tests.tui.feeds import StillFeed
from tests.tui.pilots import Driven

REFUSED = QueueError("read the queue", "connection refused", "is PostgreSQL running?")


class TableFeed(StillFeed):
    """`count` jobs with ids from 1 on, paged by id; `change` may replace a row, or leave it out with None."""

    def __init__(self, fleet: Fleet | None, count: int, change: Callable[[Job], Job | None] = lambda job: job) -> None:
        super().__init__(fleet)
        self.count = count
        self.change = change
        self.total: Count | None = Count(count)
        self.error: WorktopError | None = None
        self.hold: asyncio.Event | None = None  # answers wait for it
        self.cancelled = 0

    async def jobs(self, query: JobQuery) -> JobPage:
        self.queries.append(query)
        try:
            if self.hold is not None:
                await self.hold.wait()
            else:
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        return self.page(query)

    def page(self, query: JobQuery) -> JobPage:
        """The page of the query, by id, as a table with an index would answer."""
        numbers = range(self.count, 0, -1) if query.descending else range(1, self.count + 1)
        if query.after is not None:
            after = int(query.after)
            numbers = numbers[numbers.index(after) + 1 :] if after in numbers else range(0)
        rows: list[Job] = []
        for number in numbers:
            job = self.change(made_job(number, query))
            if job is None or query.contains not in f"{job.id} {job.type}":
                continue
            if len(rows) == query.limit:
                return JobPage(jobs=tuple(rows), total=self.total, next=rows[-1].id)
            rows.append(job)
        return JobPage(jobs=tuple(rows), total=self.total)

    async def job(self, job_id: str) -> tuple[Job | None, Claim | None]:
        if self.job_answer != (None, None):
            return await super().job(job_id)
        if self.error is not None:
            raise self.error
        return self.change(made_job(int(job_id), JobQuery())), None


def made_job(number: int, query: JobQuery) -> Job:
    """A job as `query` would list it."""
    state = "running" if query.state == "stuck" else query.state
    return Job(
        id=str(number),
        queue=("mail", "reports", "thumbnails")[number % 3],
        type=("welcome", "monthly", "resize")[number % 3],
        state=state,
        attempts=number % 4,
        max_attempts=3,
        priority=number % 2,
        created=NOW - 7200,
        run_after=NOW - 3600,
        waiting_for=3600.0 + number % 60 if state == "waiting" else None,
        started=NOW - 120 if state != "waiting" else None,
        finished=NOW - 60 if state in ("done", "failed") else None,
        error="Traceback (most recent call last):\n  File \"x.py\"\nKeyError: 'BUCKET'" if state == "failed" else "",
        overdue=60.0 if query.state == "stuck" else -60.0 if state == "running" else None,
        running_for=120.0 if state == "running" else None,
        heartbeat_age=3.0 if state == "running" else None,
        holder=Holder(host="wrk01", unit="mail-worker@1.service", pid=812, start=99, boot_id=BOOT)
        if state == "running"
        else None,
    )


def made_trend(queue: str, minutes: int = 60, unknown: range = range(20, 27)) -> Trend:
    """Minutes that rise and fall, with a gap where nobody watched."""
    return Trend(
        queue=queue,
        points=tuple(
            TrendPoint(at=NOW - 60 * (minutes - number))
            if number in unknown
            else TrendPoint(
                at=NOW - 60 * (minutes - number),
                waiting=300 + (number * 37) % 113,
                oldest=30.0 + (number * 7) % 90,
                done=110 + number % 9,
                failed=number % 3,
            )
            for number in range(minutes)
        ),
    )


def with_trends(fleet: Fleet) -> Fleet:
    """The fleet with trends of all roles but the last."""
    assert fleet.queue is not None
    roles = tuple(msgspec.structs.replace(s, trend=made_trend(s.role.name)) for s in fleet.roles[:-1])
    queue = msgspec.structs.replace(fleet.queue, trends_taken=NOW - 4)
    return msgspec.structs.replace(
        fleet, roles=(*roles, msgspec.structs.replace(fleet.roles[-1], trend=None)), queue=queue
    )


def with_accounts(fleet: Fleet) -> Fleet:
    """The fleet with two accounts, one near its limit."""
    assert fleet.host is not None
    accounts = (
        Account(user="root", uid=0, processes=61, tasks=150, memory=300 * M),
        Account(
            user="deploy", uid=1000, processes=120, tasks=900, limit=1000, limit_source="RLIMIT_NPROC", memory=700 * M
        ),
    )
    return msgspec.structs.replace(fleet, host=msgspec.structs.replace(fleet.host, accounts=accounts))


@asynccontextmanager
async def console_on(
    feed: StillFeed, size: tuple[int, int] = (80, 24), *keys: str, **options: Any
) -> AsyncIterator[Driven]:
    """The console on this feed; the keys are pressed first."""
    app = ConsoleApp(feed, **({"clock": lambda: NOW, "zone": UTC} | options))
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        driven = Driven(app, feed, pilot)
        if keys:
            await driven.press(*keys)
        await driven.shown()
        yield driven
    if app.fault is not None:
        raise app.fault
