"""The reference worker: claims jobs, runs their handlers, renews their leases, and ends without losing any.

One event loop does everything but the handlers: an async handler runs in it, any other in a thread of its own. The
worker never decides by its own clock who holds a job: the row's token does, and a rejected token means the result is
dropped (LeaseLost).
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg

from console.config import Database
from console.errors import EXIT_OK, LeaseLost
from console.fleet.model import Value
from console.queue.connection import passes, problem_of, queue_error
from console.text import ago
from console.worker.calls import call, told
from console.worker.handlers import ClaimedJob, Handlers
from console.worker.holder import this_process
from console.worker.log import Log
from console.worker.notify import Notifier
from console.worker.table import JobTable

T = TypeVar("T")

EXIT_UNFINISHED = 4  # jobs were left to their lease
_BACK_OFF = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)  # seconds between two tries of a database that is away
_STALLED = 45.0  # seconds; longer than the longest call and back-off, so a loop that is older does not progress


class Options(Value, frozen=True, kw_only=True):
    """What `worktop worker` was asked for; times in seconds."""

    role: str
    queues: tuple[str, ...]
    types: tuple[str, ...] = ()  # only these types; () : all
    lease: float = 60.0
    renew: bool = True
    poll: float = 5.0
    concurrency: int = 1
    max_jobs: int | None = None
    lifetime: float | None = None
    drain_timeout: float = 80.0  # systemd's own patience is 90 s
    wait: bool = True


class _Running:
    """A claimed job in work."""

    def __init__(self, job: ClaimedJob, lease: float) -> None:
        self.job = job
        self.since = time.monotonic()
        self.expires = self.since + lease  # by our clock, for the log only
        self.renewal_tried = self.since
        self.ended = asyncio.Event()
        self.call: asyncio.Future[Any] | None = None
        self.task: asyncio.Task[None] | None = None
        self.renewal: asyncio.Task[None] | None = None


class Worker:
    def __init__(self, options: Options, handlers: Handlers, database: Database, notifier: Notifier, log: Log) -> None:
        self._options = options
        self._handlers = handlers
        self._database = database
        self._table = JobTable(database, options.queues, f"worktop worker {options.role}")
        self._notifier = notifier
        self._log = log
        self._holder = this_process()
        self._running: dict[int, _Running] = {}  # by token
        self._stopping = ""  # why, once it stops
        self._asked = False  # by a signal
        self._given_up = asyncio.Event()
        self._ticked = time.monotonic()
        self._claimed = self._done = self._failed = 0
        self._away = ""  # what is wrong with the database, while something is

    async def run(self) -> int:
        """Work until told to stop; the exit code. QueueError when it cannot start."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, number)
        if self._options.lifetime is not None:
            loop.call_later(self._options.lifetime, self.stop, f"lifetime of {ago(self._options.lifetime)} is over")
        watchdog = asyncio.create_task(self._feed_watchdog())
        try:
            await self._start()
            await self._claim_until_stopped()
            return await self._drain()
        finally:
            watchdog.cancel()
            await self._table.close()

    def stop(self, why: str) -> None:
        """Claim nothing more and finish what is in work."""
        self._stopping = self._stopping or why
        self._table.woken.set()

    def _signalled(self, number: signal.Signals) -> None:
        """A second signal leaves what is in work; one that comes when it stops by itself does not."""
        if self._asked:
            self._given_up.set()
        self._asked = True
        self.stop(f"got {signal.Signals(number).name}")

    # --- the three phases ------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        self._status()
        for tries in range(1_000_000):
            try:
                await self._table.open()
                break
            except psycopg.Error as error:
                if not self._options.wait or not passes(error):
                    raise queue_error(error, self._database) from None
                await self._outage(error, tries)
            if self._stopping:
                return
        queues = ", ".join(self._options.queues)
        self._log(f"ready: queue {queues}, types {', '.join(sorted(self._handlers))}, lease {ago(self._options.lease)}")
        self._notifier.send("READY=1", self._status())

    async def _claim_until_stopped(self) -> None:
        tries = 0
        while not self._stopping:
            self._ticked = time.monotonic()
            self._table.woken.clear()
            free = self._free()
            if free:
                try:
                    jobs = await self._table.claim(self._holder, self._options.lease, free, self._options.types)
                except psycopg.Error as error:
                    await self._outage(error, tries)
                    tries += 1
                    continue
                tries = 0
                self._back()
                for job in jobs:
                    self._take(job)
            await self._woken(self._options.poll)

    async def _drain(self) -> int:
        waiting = f", {len(self._running)} in work" if self._running else ""
        self._log(f"stopping: {self._stopping}{waiting}; {self._done} done, {self._failed} failed")
        self._notifier.send("STOPPING=1", self._status())
        given_up = asyncio.ensure_future(self._given_up.wait())
        deadline = time.monotonic() + self._options.drain_timeout
        while self._running and not given_up.done() and (left := deadline - time.monotonic()) > 0:
            self._ticked = time.monotonic()
            tasks = [running.task for running in self._running.values() if running.task]
            await asyncio.wait([*tasks, given_up], timeout=min(left, 5.0), return_when=asyncio.FIRST_COMPLETED)
        given_up.cancel()
        for running in self._running.values():
            self._log(f"{running.job}: not finished in time, left to its lease", "error")
            if running.task:
                running.task.cancel()
        return EXIT_UNFINISHED if self._running else EXIT_OK

    def _free(self) -> int:
        free = self._options.concurrency - len(self._running)
        if self._options.max_jobs is None:
            return free
        left = self._options.max_jobs - self._claimed
        if left <= 0 and not self._running:
            self.stop(f"{self._options.max_jobs} jobs are done")
        return max(0, min(free, left))

    async def _woken(self, timeout: float) -> None:
        if not self._stopping:
            await _set_within(self._table.woken, timeout)

    # --- one job ---------------------------------------------------------------------------------------------------

    def _take(self, job: ClaimedJob) -> None:
        self._claimed += 1
        running = self._running[job.token] = _Running(job, self._options.lease)
        self._log(f"{job}: started")
        running.task = asyncio.create_task(self._work(running))
        self._status()

    async def _work(self, running: _Running) -> None:
        job = running.job
        if self._options.renew:
            running.renewal = asyncio.create_task(self._renew(running))
        try:
            error = await self._handle(running)
            if job.lost.is_set():
                self._log(f"{job}: result dropped, the lease was lost", "warning")
                return
            took = ago(time.monotonic() - running.since)
            try:
                if error is None:
                    await self._persist(lambda: self._table.finish(job))
                    self._done += 1
                    self._log(f"{job}: done in {took}")
                else:
                    became = await self._persist(lambda: self._table.fail(job, error))
                    self._failed += 1
                    after = "failed for good" if became == "failed" else "will be tried again"
                    self._log(f"{job}: failed after {took}, {after}: {error.strip().splitlines()[-1]}", "warning")
            except LeaseLost as lost:
                self._log(f"LeaseLost: {lost}; result dropped", "warning")
            except psycopg.Error as refused:
                self._log(f"{job}: its end cannot be written: {problem_of(refused, self._database).line()}", "error")
        finally:
            running.ended.set()
            del self._running[job.token]
            self._table.woken.set()
            self._status()

    async def _handle(self, running: _Running) -> str | None:
        """Run the handler; None when it returned, else its error as text."""
        job = running.job
        handler = self._handlers.get(job.type)
        if handler is None:
            return f"no handler for type {job.type!r}; this worker has {', '.join(sorted(self._handlers))}"
        running.call = call(handler, job)
        try:
            await running.call
        except asyncio.CancelledError:
            if not job.lost.is_set():
                raise
        except Exception as error:  # noqa: BLE001 - whatever a handler does ends its job, never the worker
            return told(error)
        return None

    async def _renew(self, running: _Running) -> None:
        pause = self._options.lease / 3
        # it is not cancelled at the end: a call that is cut off takes the connection with it
        while not await _set_within(running.ended, pause):
            running.renewal_tried = time.monotonic()
            try:
                await self._table.heartbeat(running.job, self._options.lease)
                running.expires = time.monotonic() + self._options.lease
                pause = self._options.lease / 3
            except LeaseLost as lost:
                if not running.ended.is_set():
                    self._log(f"LeaseLost: {lost}", "warning")
                    running.job.lost.set()
                    if isinstance(running.call, asyncio.Task):  # a thread cannot be stopped, an async handler can
                        running.call.cancel()
                return
            except psycopg.Error as error:
                late = time.monotonic() > running.expires
                problem = problem_of(error, self._database).line()
                expired = "; the lease has expired by now" if late else ""
                self._log(f"{running.job}: lease not renewed: {problem}{expired}", "warning")
                pause = min(self._options.lease / 3, 2.0)

    async def _persist(self, call: Callable[[], Awaitable[T]]) -> T:
        """The call's result, tried again while the database is away; LeaseLost, or an error that stays."""
        tries = 0
        while True:
            try:
                return await call()
            except psycopg.Error as error:
                if not passes(error):
                    raise
                self._away_now(error)
                await asyncio.sleep(_back_off(tries))
                tries += 1

    # --- the database comes and goes -----------------------------------------------------------------------------

    async def _outage(self, error: psycopg.Error, tries: int) -> None:
        self._away_now(error)
        self._table.woken.clear()
        await self._woken(_back_off(tries))

    def _away_now(self, error: psycopg.Error) -> None:
        problem = problem_of(error, self._database).line()
        if problem != self._away:
            self._log(f"{problem}; trying again", "warning")
        self._away = problem
        self._status()

    def _back(self) -> None:
        if self._away:
            self._away = ""
            self._log("the database is back")
            self._status()

    # --- the service manager ---------------------------------------------------------------------------------------

    def _status(self) -> str:
        text = f"{len(self._running)} running, {self._done} done, {self._failed} failed"
        if self._stopping:
            text = f"stopping ({self._stopping}): {text}"
        if self._away:
            text = f"{text}; {self._away}"
        line = f"STATUS={text}"
        self._notifier.send(line)
        return line

    async def _feed_watchdog(self) -> None:
        if self._notifier.watchdog is None:
            return
        while True:
            if self.progresses():
                self._notifier.send("WATCHDOG=1")
            await asyncio.sleep(self._notifier.watchdog / 2)

    def progresses(self) -> bool:
        """Whether the claim loop and every renewal came round lately; a database that is away does not count."""
        now = time.monotonic()
        due = self._options.lease / 3 + _STALLED
        renewed = not self._options.renew or all(now - job.renewal_tried < due for job in self._running.values())
        return renewed and now - self._ticked < self._options.poll + _STALLED


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


def _back_off(tries: int) -> float:
    # a fleet that lost its database together must not come back together
    return _BACK_OFF[min(tries, len(_BACK_OFF) - 1)] * random.uniform(0.7, 1.3)


def run(options: Options, handlers: Handlers, database: Database) -> int:
    """Run a worker in this process; its exit code. QueueError or ConfigError when it cannot start."""

    async def main() -> int:
        return await Worker(options, handlers, database, Notifier(), Log(f"worktop worker {options.role}")).run()

    return asyncio.run(main())
