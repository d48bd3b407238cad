"""Who holds the rows of a selection, and whether they live: asked anew for every plan, and again when it is applied."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence

import msgspec

from console.actions.scene import host_answers
from console.config import Config
from console.errors import ConfigError, HostError
from console.fleet.assemble import is_of
from console.fleet.model import Claim, Count, Holder, HostFacts, Ident, Job, Process, QueueFacts, Role, Unit, Verdict
from console.fleet.plan import HolderRows, RowRef, Selection
from console.fleet.verdicts import WATCHED_LONG_ENOUGH, Judge, pending, undecided
from console.host.client import HostClient
from console.queue.client import QueueClient
from console.queue.writer import QueueWriter

LIVE: tuple[Verdict, ...] = ("ALIVE_SLOW", "HUNG")
NAMED_AT_MOST = 1000  # rows that can be named one by one
_WATCH = WATCHED_LONG_ENOUGH + 2.0


class Held(msgspec.Struct, frozen=True):
    """Running rows of one holder, and the verdict on it."""

    rows: HolderRows
    claim: Claim
    jobs: tuple[Job, ...] = ()  # the rows one by one, where they were named

    @property
    def holder(self) -> Holder | None:
        return self.rows.holder

    @property
    def verdict(self) -> Verdict:
        return self.claim.verdict

    def refs(self, *, overdue_only: bool = False) -> tuple[RowRef, ...]:
        """Its named rows, with the token each had when it was read."""
        return tuple(RowRef(job.id, job.token) for job in self.jobs if not overdue_only or is_overdue(job))


def is_overdue(job: Job) -> bool:
    """Its lease has run out by the database's clock."""
    return job.overdue is not None and job.overdue > 0


class Holders:
    """Asks the queue for holders and the host for their processes."""

    def __init__(self, config: Config, host: HostClient, queue: QueueWriter, reader: QueueClient | None) -> None:
        self._roles = config.roles
        self._host = host
        self._queue = queue
        self._reader = reader
        self._rows: QueueFacts | None = None  # read where rows name no process

    async def named(self, rows: Sequence[RowRef]) -> tuple[tuple[Job, ...], tuple[str, ...]]:
        """The rows as they are now, and the ids of those that are not there. A row whose token is no longer the one
        that was seen counts as not there. QueueError; ConfigError when they are too many."""
        if len(rows) > NAMED_AT_MOST:
            raise ConfigError(f"{len(rows)} jobs", f"no more than {NAMED_AT_MOST} can be named", "name their role")
        assert self._reader is not None
        found: list[Job] = []
        missing: list[str] = []
        for row in rows:
            job = await self._reader.job(row.id)
            if job is None or (row.token and job.token != row.token):
                missing.append(row.id)
            else:
                found.append(msgspec.structs.replace(job, payload=""))
        return tuple(found), tuple(missing)

    async def of(self, selection: Selection, *, decide: bool = False) -> tuple[Held, ...]:
        """The holders of the running rows of a selection. `decide`: watch those that live until slow can be told from
        hung. QueueError; a host that does not answer makes verdicts UNKNOWN, with the reason as evidence."""
        if selection.rows and self._reader is not None:
            jobs, _ = await self.named(selection.rows)
            return await self.of_jobs(jobs, decide=decide)
        return await self._watched([(rows, ()) for rows in await self._queue.holders(selection)], decide)

    async def of_jobs(self, jobs: Sequence[Job], *, decide: bool = False) -> tuple[Held, ...]:
        """The holders of those of the jobs that are running."""
        groups: dict[Holder | None, list[Job]] = {}
        for job in jobs:
            if job.state == "running":
                groups.setdefault(job.holder, []).append(job)
        found = []
        for holder, own in groups.items():
            longest = max(own, key=lambda job: job.overdue if job.overdue is not None else float("-inf"))
            found.append((HolderRows(holder=holder, rows=Count(len(own)), longest=longest), tuple(own)))
        return await self._watched(found, decide)

    async def _watched(self, found: Sequence[tuple[HolderRows, tuple[Job, ...]]], decide: bool) -> tuple[Held, ...]:
        if not found:
            return ()
        await host_answers(self._host)
        await self._read_queue(found)
        held = await self._judged(found)
        deadline = time.monotonic() + _WATCH
        while time.monotonic() < deadline and (
            self._worth_waiting(held) or (decide and any(undecided(one.claim) for one in held))
        ):
            await asyncio.sleep(0.5)
            held = await self._judged(found)
        return held

    def _worth_waiting(self, held: Sequence[Held]) -> bool:
        """A holder is not judged yet, and will be: a process that has just started could be taken for another."""
        facts = self._host.facts
        told = facts.agent.problem is None and facts.holders.problem is None and facts.hello is not None
        return told and any(pending(one.claim) for one in held)

    async def _judged(self, found: Sequence[tuple[HolderRows, tuple[Job, ...]]]) -> tuple[Held, ...]:
        await self._look_up([rows.holder for rows, _ in found if rows.holder is not None])
        judges = Judge(self._host.facts, self._rows, self._roles, time.time())
        return tuple(
            Held(rows, judges.claim(rows.longest, role_of(rows.longest, self._roles)), jobs) for rows, jobs in found
        )

    async def _read_queue(self, found: Sequence[tuple[HolderRows, tuple[Job, ...]]]) -> None:
        """Where rows name no process, who works on the queue is read too: its workers, the database's connections."""
        self._rows = None
        if self._reader is None or all(rows.holder is not None and rows.holder.pid is not None for rows, _ in found):
            return
        self._rows = (await self._reader.poll()).value

    async def _look_up(self, holders: Sequence[Holder]) -> None:
        """The pids the console watches stay among those that are asked for: its screen must not forget them."""
        facts = self._host.facts
        if facts.hello is None:
            return
        pids = {one.pid for one in holders if one.pid is not None and one.host in ("", facts.hello.host)}
        pids |= {state.pid for state in facts.holders.value or ()}
        if self._rows is not None and self._rows.backends is not None:
            with contextlib.suppress(HostError):  # the verdicts say what could not be seen
                clients = await self._host.clients(self._rows.backends, self._rows.server_port)
                pids |= {client.ident.pid for client in clients if client.ident is not None}
        if pids:
            await self._host.look_up(tuple(sorted(pids)))


def role_of(job: Job, roles: Sequence[Role]) -> str:
    """The role whose row it is; its queue when no role wants it."""
    return next((role.name for role in roles if is_of(job, role)), job.queue)


def process_of(held: Held, facts: HostFacts) -> Process | None:
    """The process that holds the rows, among those the host watches: by the row's pid, else as the verdict found it."""
    holder = held.holder
    processes = facts.processes.value or ()
    if holder is not None and holder.pid is not None:
        return next((one for one in processes if one.ident.pid == holder.pid), None)
    pid, _, start = held.claim.worker.partition(":")
    if pid.isdigit() and start.isdigit():
        return next((one for one in processes if (one.ident.pid, one.ident.start) == (int(pid), int(start))), None)
    main = next((unit.main_pid for unit in facts.units.value or () if unit.name == held.claim.worker), 0)
    return next((one for one in processes if main and one.ident.pid == main), None)


def stopping_unit(held: Held, facts: HostFacts, roles: Sequence[Role]) -> Unit | None:
    """The unit whose stop ends this holder: its main process is the holder, or it is a worker unit of a role and the
    holder runs in it. A stray of cron lives in cron.service, which nobody wants stopped: it is signalled."""
    process, holder = process_of(held, facts), held.holder
    pid = process.ident.pid if process is not None else holder.pid if holder is not None else None
    if pid is None:
        return None
    units = facts.units.value or ()
    main = next((unit for unit in units if unit.main_pid == pid), None)
    if main is not None:
        return main
    name = process.unit if process is not None else holder.unit if holder is not None else ""
    templates = {role.template for role in roles if role.template}
    return next((unit for unit in units if unit.name == name and unit.template and unit.template in templates), None)


def ident_of(held: Held, facts: HostFacts) -> Ident | None:
    """The process that holds the rows, as the host sees it now; None when it is not known well enough to signal it."""
    holder, hello = held.holder, facts.hello
    process = process_of(held, facts)
    if holder is None or holder.pid is None or hello is None:
        return process.ident if process is not None else None
    start = holder.start
    if start is None:
        start = next((state.start for state in facts.holders.value or () if state.pid == holder.pid), None)
    return Ident(hello.boot_id, holder.pid, start) if start is not None else None
