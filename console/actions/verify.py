"""Looking at the changed rows afterwards: what a person would otherwise look up by hand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from console.actions import words
from console.config import Config
from console.errors import SourceError
from console.fleet.model import Count, Job
from console.fleet.plan import Plan
from console.host.client import HostClient
from console.queue.client import QueueClient
from console.queue.writer import QueueWriter

WATCH = 5.0  # seconds a worker is given to claim one of the jobs
LOOKED_AT = 20  # rows
_EVERY = 0.25


class Verified:
    """Sentences: what was found as expected, and what could not be found out."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.unseen: list[str] = []


async def verify(
    plan: Plan,
    ids: Sequence[str],
    config: Config,
    host: HostClient,
    queue: QueueWriter,
    reader: QueueClient,
    stop: asyncio.Event | None,
) -> Verified:
    """Read the first changed rows again. Raises nothing: what cannot be read is said."""
    found = Verified()
    try:
        if plan.verb in ("reclaim", "retry", "run-now"):
            await _waits(plan, ids[:LOOKED_AT], config, host, queue, reader, stop, found)
        elif plan.verb == "discard":
            gone = [job_id for job_id in ids[:LOOKED_AT] if await reader.job(job_id) is None]
            _told(found, len(gone), len(ids[:LOOKED_AT]), "is gone", "are gone")
        elif plan.verb == "quarantine":
            jobs = await _read(reader, ids[:LOOKED_AT])
            failed = sum(job.state == "failed" for job in jobs)
            _told(found, failed, len(ids[:LOOKED_AT]), "is with the failed ones", "are with the failed ones")
        elif plan.verb == "priority" and plan.selection is not None:
            jobs = await _read(reader, ids[:LOOKED_AT])
            right = sum(job.priority == plan.selection.priority for job in jobs)
            _told(found, right, len(ids[:LOOKED_AT]), "has the new priority", "have the new priority")
    except SourceError as error:
        found.unseen.append(f"the rows could not be read again: {error.problem.line()}")
    return found


async def _waits(
    plan: Plan,
    ids: Sequence[str],
    config: Config,
    host: HostClient,
    queue: QueueWriter,
    reader: QueueClient,
    stop: asyncio.Event | None,
    found: Verified,
) -> None:
    was = {job.id: job for job in (*plan.samples, *(claim.job for claim in plan.claims))}
    jobs = await _read(reader, ids)
    moved = sum(_moved(job, was.get(job.id)) for job in jobs)
    _told(found, moved, len(ids), "waits again or was claimed anew", "wait again or were claimed anew")
    if plan.late_finish == "rejected":
        fenced = [job for job in jobs if (old := was.get(job.id)) is not None and old.token and old.token != job.token]
        if fenced:
            ones = "its" if len(fenced) == 1 else "their"
            found.seen.append(
                f"a late finish of {ones} former holder would be rejected: the token of {_named(fenced)} has changed"
            )
    paused = await queue.paused()
    if jobs and all(job.queue in paused for job in jobs):
        found.unseen.append(
            f"{words.listed(sorted({job.queue for job in jobs}))} is paused: no worker is given the jobs"
        )
        return
    if not _workers(plan, config, host):
        found.unseen.append("no worker of the role runs now: the jobs wait for one")
        return
    deadline = time.monotonic() + WATCH
    while True:
        taken = [job for job in jobs if job.state != "waiting" and _moved(job, was.get(job.id))]
        if taken:
            job = taken[0]
            how = "has claimed" if job.state == "running" else "has ended"
            found.seen.append(f"a worker {how} job {job.id}: {words.holder_word(job.holder)}")
            return
        if time.monotonic() >= deadline or (stop is not None and stop.is_set()):
            found.unseen.append(f"no worker has claimed one of them within {WATCH:g} s; others may be before them")
            return
        await asyncio.sleep(_EVERY)
        jobs = await _read(reader, ids)


def _moved(job: Job, was: Job | None) -> bool:
    """It waits, or has gone on since: it is not with its former holder any more."""
    if job.state == "waiting":
        return True
    return was is None or job.token != was.token or job.holder != was.holder or job.started != was.started


async def _read(reader: QueueClient, ids: Sequence[str]) -> list[Job]:
    jobs = [await reader.job(job_id) for job_id in ids]
    return [job for job in jobs if job is not None]


def _told(found: Verified, right: int, asked: int, one: str, several: str) -> None:
    if right:
        of = words.jobs_word(Count(asked))
        found.seen.append(
            f"{right} of {of} that {'was' if asked == 1 else 'were'} looked at {one if right == 1 else several}"
        )
    if right < asked:
        found.unseen.append(f"{words.jobs_word(Count(asked - right))} did not stay like that")


def _named(jobs: Sequence[Job]) -> str:
    return words.listed([job.id for job in jobs])


def _workers(plan: Plan, config: Config, host: HostClient) -> bool:
    """A worker of the plan's role runs, as far as the host tells."""
    roles = [role for role in config.roles if plan.role in ("", role.name)]
    templates = {role.template for role in roles if role.template}
    names = {role.name for role in roles}
    units = host.facts.units.value or ()
    if any(unit.template in templates and unit.active == "active" for unit in units):
        return True
    return any(process.role in names and process.main for process in host.facts.processes.value or ())
