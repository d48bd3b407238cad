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
from console.errors import ConfigError, HostError, Problem, QueueError
from console.fleet.assemble import Memory, assemble, is_of
from console.fleet.diagnosis import targets
from console.fleet.diagnosis.model import Diagnosis, Looked
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
    RoleStatus,
    UnitDetail,
    Worker,
)
from console.fleet.verdicts import WATCHED_LONG_ENOUGH, judge, undecided
from console.host.client import HostClient
from console.queue.client import QueueClient
from console.schedules.inventory import Inventory, Translated

if TYPE_CHECKING:
    from console.actions.desk import Actions
    from console.host.follow import LogFollow
    from console.playbook.desk import Playbooks
from console.host.protocol import LOG_LINES

HOST_INTERVAL = 2.0  # seconds between readings of what the host does not signal, and of other than states
RESTING_INTERVAL = 4.0  # seconds between both while nobody touches the console
QUEUE_INTERVAL = 2.0  # seconds between polls; stretched to ten times what a poll takes when the database is slow
QUEUE_INTERVAL_MAX = 60.0
COALESCE = 0.1  # seconds within which changes are joined into one fleet
CARRIED = 0.4  # seconds that what is not urgent waits for: the queue is polled with each reading of the host
ALIGNED = 0.5  # seconds by which a poll of the queue comes early or late for that
LONGEST = 2.5  # seconds after which ages are joined anew although nothing has come
ONCE_TIMEOUT = 15.0
ONCE_INTERVAL = 0.5  # seconds between readings of the host while a command waits
SECOND_LOOK = WATCHED_LONG_ENOUGH + 2.0


class Sources:
    """The live sources of one configuration, on one event loop: `start` (or `once`), then `stop`."""

    def __init__(
        self,
        config: Config,
        agent: subprocess.Popen[bytes] | None = None,
        interval: float = HOST_INTERVAL,
        read_only: str = "",
    ) -> None:
        """`read_only`: why nothing may be changed, "" when it may."""
        self._config = config
        self._host = HostClient(
            config.roles,
            command=config.agent,
            user_manager=config.manager == "user",
            process=agent,
            on_change=self._host_said,
            interval=interval,
        )
        self._queue = QueueClient(config, config.roles) if config.database.configured else None
        self._rows: Reading[QueueFacts] | None = Reading() if self._queue else None
        self._actions: Actions | None = None
        self._playbooks: Playbooks | None = None
        self._read_only = read_only
        self._listeners: list[Callable[[], None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._looking: asyncio.Task[None] | None = None
        self._memory = Memory()
        self._interval = interval
        self._resting = False
        self._due = 0.0  # monotonic: when the facts are to be joined next
        self._sooner = asyncio.Event()  # `_due` is sooner than it was
        self._poll_now = False
        self._poll_may = asyncio.Event()  # the host has been read, or a person asked for everything
        self._host_read: float | None = None  # when the host's last reading was taken
        self.fleet: Fleet | None = None

    @property
    def actions(self) -> Actions:
        """What changes the world; its connection to the database is opened when it is first needed."""
        if self._actions is None:
            from console.actions.desk import Actions
            from console.queue.writer import QueueWriter
            from console.state import StateDirectory

            config = self._config
            writer = QueueWriter(config, config.roles) if config.database.configured else None
            self._actions = Actions(config, self._host, writer, self._queue, StateDirectory.find(), self._read_only)
        return self._actions

    @property
    def playbooks(self) -> Playbooks:
        if self._playbooks is None:
            from console.playbook.desk import Playbooks

            self._playbooks = Playbooks(self.actions, self._config, self._host, self._queue)
        return self._playbooks

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
        if self._actions is not None:
            await self._actions.close()

    def rest(self, resting: bool) -> None:
        """Whether nobody is looking closely: then all that is not signalled is read half as often."""
        self._resting = resting
        self._host.pace(max(RESTING_INTERVAL, self._interval) if resting else self._interval)
        if not resting:
            self._poll_now = True
            self._poll_may.set()

    async def refresh(self) -> None:
        """Ask every source now instead of at its next interval."""
        self._poll_now = True
        self._poll_may.set()
        self._host.refresh()

    # --- what a person looks at more closely -------------------------------------------------------------------------

    async def unit_detail(self, name: str) -> UnitDetail:
        return await self._host.unit_detail(name)

    async def host_detail(self) -> HostDetail:
        return await self._host.host_detail()

    async def schedules(self, anew: bool = False) -> Inventory:
        return await self._host.schedules(anew)

    async def translate(self, names: tuple[str, ...], prove: bool = True) -> tuple[Translated, ...]:
        return await self._host.translate(names, prove)

    async def follow_log(
        self, units: tuple[str, ...], on_lines: Callable[[tuple[LogLine, ...]], None], mentions: str = ""
    ) -> LogFollow:
        return await self._host.follow_log(units, on_lines, lines=LOG_LINES if mentions else 200, mentions=mentions)

    async def read_log(
        self, units: tuple[str, ...], since: float, until: float
    ) -> tuple[tuple[LogLine, ...], Problem | None]:
        return await self._host.read_log(units, lines=LOG_LINES, since=since, until=until)

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
        rows = self._rows.value if self._rows else None
        return job, judge(job, role, self._host.facts, rows, self._config.roles, time.time())

    async def diagnose(self, role: str, key: str = "") -> tuple[Diagnosis, ...]:
        """Examine one worker by its key; or the role as a whole, and after it each of its workers. Changes nothing.

        ConfigError: there is no such role or worker. What cannot be asked is unknown in the examination.
        """
        from console.fleet.diagnosis.diagnose import diagnose, diagnose_role  # not needed at a start

        fleet = self._assembled()
        status, worker = targets.worker_of(fleet, role, key)
        workers = (worker,) if worker is not None else targets.worth_a_look(status)
        room = asyncio.create_task(self._queue.room(status.role)) if self._queue is not None else None
        looked = await self._look_at(status, workers)
        asked = await room if room is not None else None
        if worker is None:
            return diagnose_role(fleet, status, looked, asked)
        return (diagnose(fleet, status, worker, looked.get(worker.key), asked),)

    async def diagnose_named(self, fleet: Fleet, text: str, kind: targets.Kind | None = None) -> tuple[Diagnosis, ...]:
        """`diagnose` what the text names: a role, a unit, a pid or a job. ConfigError, QueueError: there is none."""
        target = targets.find(fleet, text, kind)
        return await self.diagnose_job(target.job) if target.job else await self.diagnose(target.role, target.key)

    async def diagnose_job(self, job_id: str) -> tuple[Diagnosis, ...]:
        """`diagnose` the worker that holds the job, or the job's role. ConfigError, QueueError: there is none."""
        from console.fleet.diagnosis.diagnose import about_job

        job, claim = await self.job(job_id)
        if job is None:
            raise QueueError(f"job {job_id}", "there is no such job", "list some with worktop jobs")
        target = targets.of_job(self._assembled(), job, claim)
        first, *others = await self.diagnose(target.role, target.key)
        return (about_job(job, claim, first), *others)

    async def _look_at(self, status: RoleStatus, workers: tuple[Worker, ...]) -> dict[str, Looked]:
        """By key; who else starts the role is searched for once. One that cannot be looked at is left out."""
        gate, found = asyncio.Semaphore(2), dict[str, Looked]()

        async def look(worker: Worker, starters: bool) -> None:
            unit, ident = worker.unit, worker.processes[0].ident if worker.processes else None
            name = unit.name if unit is not None else ""
            if unit is None and ident is None:
                return
            async with gate:
                with contextlib.suppress(HostError):
                    found[worker.key] = await self._host.examine(
                        status.role, name, None if name else ident, health=not self._read_only, starters=starters
                    )

        if workers:
            await look(workers[0], starters=True)
            await asyncio.gather(*(look(worker, starters=False) for worker in workers[1:]))
        first = found.get(workers[0].key) if workers else None
        if first is None:
            return found
        same = {"starters": first.starters, "starters_problem": first.starters_problem}
        return {key: msgspec.structs.replace(looked, **same) for key, looked in found.items()}

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
            before, self._rows = self._rows, await self._queue.poll()
            failed = self._rows.problem is not None
            took = time.monotonic() - began if failed else self._rows.took
            if self._looking is None or self._looking.done():  # an agent that hangs must not hold the queue up
                self._looking = asyncio.create_task(self._look_up_holders())
                self._looking.add_done_callback(lambda _: self._wake(0.0))
            first = before is None or before.taken is None or before.problem != self._rows.problem
            self._wake(0.0 if first else CARRIED)
            least = RESTING_INTERVAL if self._resting else QUEUE_INTERVAL
            await self._pause(min(QUEUE_INTERVAL_MAX, max(least, 10 * took)))

    async def _pause(self, pause: float) -> None:
        """Until the queue is to be polled again: about `pause` seconds, so that it comes right after a reading of the
        host and one join serves both."""
        earliest = time.monotonic() + pause - ALIGNED
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause + ALIGNED):
                while not self._poll_now and time.monotonic() < earliest:
                    self._poll_may.clear()
                    await self._poll_may.wait()
        self._poll_now = False

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
        if rows is not None and rows.backends is not None:  # rows that name no process: who is connected is asked too
            with contextlib.suppress(HostError):
                clients = await self._host.clients(rows.backends, rows.server_port)
                pids |= {client.ident.pid for client in clients if client.ident is not None}
        await self._host.look_up(tuple(sorted(pids if also is None else pids | {also})))

    def _host_said(self, at_once: bool) -> None:
        self._wake(0.0 if at_once else CARRIED)
        taken = self._host.facts.host.taken
        if taken != self._host_read:  # what is told last of each reading
            self._host_read = taken
            self._poll_may.set()

    def _wake(self, within: float) -> None:
        """Join the facts within so many seconds."""
        due = time.monotonic() + within
        if due < self._due:
            self._due = due
            self._sooner.set()

    async def _join(self) -> None:
        while True:
            wait = self._due - time.monotonic()
            if wait > 0:
                self._sooner.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._sooner.wait()
                continue
            self._due = time.monotonic() + (2 * LONGEST if self._resting else LONGEST)
            self.fleet = self._assembled()
            for listener in self._listeners:
                listener()
            await asyncio.sleep(COALESCE)

    def _assembled(self) -> Fleet:
        config = self._config
        return assemble(self._host.facts, self._rows, config.roles, config.limits, time.time(), self._memory)


def _tell_of_a_defect(task: asyncio.Task[None]) -> None:
    """A source's task ends only when it is cancelled: whoever runs the loop hears of anything else."""
    if not task.cancelled() and task.exception() is not None:
        task.get_loop().call_exception_handler(
            {"message": f"{task.get_name()} has ended", "exception": task.exception(), "task": task}
        )
