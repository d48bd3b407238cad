"""Plans for rows: which ones, in what order, and what the person must agree to."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from console.actions.draft import Asked, Draft, rows_of
from console.actions.gates import Gates
from console.actions.holders import Holders
from console.actions.reclaim import Taking
from console.config import Config
from console.errors import ConfigError
from console.fleet.model import Job, JobState
from console.fleet.plan import JobVerb, Plan, RowRef, Selection
from console.host.client import HostClient
from console.queue.client import QueueClient
from console.queue.survey import HOLDERS
from console.queue.writer import QueueWriter

STATES: dict[JobVerb, tuple[JobState, ...]] = {
    "reclaim": ("running",),
    "retry": ("failed",),
    "discard": ("waiting", "failed"),
    "run-now": ("waiting",),
    "priority": ("waiting",),
    "quarantine": ("waiting",),  # and running, whose holders are looked at as in a reclaim
}
_NAMED_AT_MOST = 5  # jobs that are left out are named up to so many


class JobPlans:
    """Makes plans; changes nothing."""

    def __init__(
        self, config: Config, host: HostClient, queue: QueueWriter, reader: QueueClient | None, gates: Gates
    ) -> None:
        self._config = config
        self._queue = queue
        self._reader = reader
        self._gates = gates
        self._holders = Holders(config, host, queue, reader)
        self._taking = Taking(config, host, queue, gates, self._holders)

    async def plan(self, asked: Asked) -> Plan:
        """The plan for what was asked. QueueError, ConfigError."""
        if asked.verb == "priority" and asked.priority is None:
            raise ConfigError("priority", "none was given", "name the new one: --to N")
        if asked.verb == "quarantine" and not asked.rows and asked.quarantine_after is None:
            raise ConfigError(
                "quarantine", "neither jobs nor a number of reclaims were named", "use --id or --quarantine-after"
            )
        await self._queue.ready()
        asked = msgspec.structs.replace(asked, batch=min(1000, max(1, asked.batch)))
        selection = self._selection(asked)
        draft = Draft(asked, self._config, self._queue)
        draft.refuse(await self._gates.of(asked.verb))
        if self._queue.refusal(asked.verb):
            return draft.plan(selection)
        if asked.rows and self._reader is not None:
            jobs, missing = await self._holders.named(asked.rows)
            await self._named(draft, selection, jobs, missing)
        else:
            await self._matching(draft, selection)
        if asked.verb == "discard" and draft.parts:
            draft.warnings.append("the rows are deleted; undo inserts them again as they were")
        return draft.plan(selection)

    def _selection(self, asked: Asked) -> Selection:
        queues, types = rows_of(self._config, asked.role) if asked.role or not asked.rows else ((), ())
        return Selection(
            verb=asked.verb,
            role=asked.role,
            queues=queues,
            types=types,
            states=STATES[asked.verb],
            rows=asked.rows,
            older_than=asked.older_than,
            priority=asked.priority,
            quarantine_after=asked.quarantine_after,
            note=asked.why,
        )

    async def _matching(self, draft: Draft, selection: Selection) -> None:
        """All rows of a role."""
        asked = draft.asked
        if asked.verb != "reclaim":
            await draft.add(selection)
            return
        decide = ("HUNG" in asked.verdicts) != ("ALIVE_SLOW" in asked.verdicts)
        held = await self._holders.of(selection, decide=decide)
        if len(held) >= HOLDERS:
            draft.warnings.append(
                f"only the {HOLDERS} holders whose leases ran out first are looked at: plan again after"
            )
        await self._taking.fill(draft, selection, held)

    async def _named(self, draft: Draft, selection: Selection, jobs: Sequence[Job], missing: Sequence[str]) -> None:
        """These rows, each with the token it was seen with."""
        asked = draft.asked
        takes = asked.verb in ("reclaim", "quarantine")
        able = [job for job in jobs if job.state in STATES[asked.verb] and job.state != "running"]
        running = [job for job in jobs if job.state == "running"] if takes else []
        for job_id in missing[:_NAMED_AT_MOST]:
            draft.warnings.append(f"job {job_id} is not there any more, or was claimed anew since it was seen")
        others = [job for job in jobs if job not in able and job not in running]
        for job in others[:_NAMED_AT_MOST]:
            hint = ": worktop reclaim takes it from its holder" if job.state == "running" else ""
            draft.warnings.append(f"job {job.id} is {job.state} and left alone{hint}")
        left = max(0, len(missing) - _NAMED_AT_MOST) + max(0, len(others) - _NAMED_AT_MOST)
        if left:
            draft.warnings.append(f"{left} more of the named jobs are left alone")
        if able:
            rows = tuple(RowRef(job.id, job.token) for job in able)
            states = tuple(dict.fromkeys(job.state for job in able))
            await draft.add(msgspec.structs.replace(selection, rows=rows, states=states))
        if running:
            held = await self._holders.of_jobs(running)
            await self._taking.fill(draft, msgspec.structs.replace(selection, states=("running",)), held)
