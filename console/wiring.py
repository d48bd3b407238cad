"""The composition root: the only module that knows the concrete sources together.

`Sources` keeps the host agent and the queue running side by side and joins what they say into a `Fleet` whenever
something changed. It is the feed of the console and what the one-shot commands ask once.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from console.config import Config
from console.errors import ConfigError
from console.fleet.assemble import assemble, is_of
from console.fleet.model import (
    Claim,
    Fleet,
    HostDetail,
    Job,
    JobPage,
    JobQuery,
    LogLine,
    QueueFacts,
    Reading,
    UnitDetail,
)
from console.fleet.verdicts import WATCHED_LONG_ENOUGH, judge, undecided
from console.host.client import HostClient
from console.queue.client import QueueClient

if TYPE_CHECKING:
    from console.host.follow import LogFollow

HOST_INTERVAL = 2.0  # seconds between readings of what the host does not signal
QUEUE_INTERVAL = 2.0  # seconds between polls; stretched to ten times what a poll takes when the database is slow
QUEUE_INTERVAL_MAX = 60.0
COALESCE = 0.1  # seconds within which changes are joined into one fleet
ONCE_TIMEOUT = 15.0
ONCE_INTERVAL = 0.5  # seconds between readings of the host while a command waits
SECOND_LOOK = WATCHED_LONG_ENOUGH + 2.0


class Sources:
    """The live sources of one configuration, on one event loop: `start` (or `once`), then `stop`."""

    def __init__(
        self, config: Config, agent: subprocess.Popen[bytes] | None = None, interval: float = HOST_INTERVAL
    ) -> None:
        self._config = config
        self._host = HostClient(
            config.roles,
            command=config.agent,
            user_manager=config.manager == "user",
            process=agent,
            on_change=self._wake,
            interval=interval,
        )
        self._queue = QueueClient(config, config.roles) if config.database.configured else None
        self._rows: Reading[QueueFacts] | None = Reading() if self._queue else None
        self._listeners: list[Callable[[], None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._looking: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._poll_now = asyncio.Event()
        self.fleet: Fleet | None = None

    @property
    def queue(self) -> QueueClient | None:
        return self._queue

    @property
    def host(self) -> HostClient:
        return self._host

    def subscribe(self, callback: Callable[[], None]) -> None:
        """`callback` is called on the event loop whenever there is a new fleet."""
        self._listeners.append(callback)

    async def start(self) -> None:
        self._tasks = [asyncio.create_task(self._host.run(), name="host agent")]
        if self._queue is not None:
            self._tasks.append(asyncio.create_task(self._poll_queue(), name="queue"))
        self._tasks.append(asyncio.create_task(self._join(), name="join"))
        for task in self._tasks:
            task.add_done_callback(_tell_of_a_defect)

    async def stop(self) -> None:
        tasks = [*self._tasks, *([self._looking] if self._looking else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._host.close()
        if self._queue is not None:
            await self._queue.close()

    async def refresh(self) -> None:
        """Ask every source now instead of at its next interval."""
        self._poll_now.set()
        self._host.refresh()

    # --- what a person looks at more closely -------------------------------------------------------------------------

    async def unit_detail(self, name: str) -> UnitDetail:
        return await self._host.unit_detail(name)

    async def host_detail(self) -> HostDetail:
        return await self._host.host_detail()

    async def follow_log(self, units: tuple[str, ...], on_lines: Callable[[tuple[LogLine, ...]], None]) -> LogFollow:
        return await self._host.follow_log(units, on_lines)

    async def jobs(self, query: JobQuery) -> JobPage:
        return await self._database().page(query)

    async def job(self, job_id: str) -> tuple[Job | None, Claim | None]:
        """One job, and the verdict on its holder when it is running. QueueError, ConfigError."""
        job = await self._database().job(job_id)
        if job is None or job.state != "running":
            return job, None
        holder, hello = job.holder, self._host.facts.hello
        if holder is not None and holder.pid is not None and hello is not None and holder.host in ("", hello.host):
            await self._look_up_holders(also=holder.pid)
        role = next((role.name for role in self._config.roles if is_of(job, role)), job.queue)
        return job, judge(job, role, self._host.facts)

    def _database(self) -> QueueClient:
        if self._queue is None:
            raise ConfigError(
                "database",
                "none is configured",
                "set [database] dsn or service in worktop.toml, or PGHOST, PGSERVICE, …",
            )
        return self._queue

    async def once(self, timeout: float = ONCE_TIMEOUT) -> Fleet:
        """The fleet after every source has answered or failed once; for commands that print and end.

        When the holder of an overdue job lives, it is watched for a few seconds more: slow and hung differ in that.
        """
        queue = asyncio.create_task(self._queue.poll()) if self._queue is not None else None
        await self._host.ready(timeout)
        if queue is not None:
            self._rows = await queue
            await self._look_up_holders()
        fleet = self._assembled()
        deadline = time.monotonic() + SECOND_LOOK
        while any(undecided(claim) for claim in fleet.claims) and time.monotonic() < deadline:
            await asyncio.sleep(ONCE_INTERVAL)
            fleet = self._assembled()
        return fleet

    async def _poll_queue(self) -> None:
        assert self._queue is not None
        while True:
            began = time.monotonic()
            self._rows = await self._queue.poll()
            failed = self._rows.problem is not None
            took = time.monotonic() - began if failed else self._rows.took
            if self._looking is None or self._looking.done():  # an agent that hangs must not hold the queue up
                self._looking = asyncio.create_task(self._look_up_holders())
            self._wake()
            pause = min(QUEUE_INTERVAL_MAX, max(QUEUE_INTERVAL, 10 * took))
            self._poll_now.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._poll_now.wait(), pause)

    async def _look_up_holders(self, also: int | None = None) -> None:
        """Tell the agent which pids hold jobs on its host: a verdict needs to know who has that pid now."""
        rows, hello = (self._rows.value if self._rows else None), self._host.facts.hello
        if hello is None or (rows is None and also is None):
            return
        pids = {
            job.holder.pid
            for job in (rows.running if rows is not None else ())
            if job.holder is not None and job.holder.pid is not None and job.holder.host in ("", hello.host)
        }
        await self._host.look_up(tuple(sorted(pids if also is None else pids | {also})))

    def _wake(self) -> None:
        self._changed.set()

    async def _join(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), 1.0)
            self._changed.clear()
            self.fleet = self._assembled()
            for listener in self._listeners:
                listener()
            await asyncio.sleep(COALESCE)

    def _assembled(self) -> Fleet:
        return assemble(self._host.facts, self._rows, self._config.roles, self._config.limits, time.time())


def with_user_manager(config: Config, user_manager: bool) -> Config:
    return msgspec.structs.replace(config, manager="user") if user_manager else config


def _tell_of_a_defect(task: asyncio.Task[None]) -> None:
    """A source's task ends only when it is cancelled: whoever runs the loop hears of anything else."""
    if not task.cancelled() and task.exception() is not None:
        task.get_loop().call_exception_handler(
            {"message": f"{task.get_name()} has ended", "exception": task.exception(), "task": task}
        )
