"""Actions that answer what they are told to, and plans and outcomes that are made up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_args

from console.errors import WorktopError
from console.fleet.model import Claim, Count, Holder, Job, Value
from console.fleet.plan import (
    Actor,
    AuditEntry,
    Blocked,
    Consent,
    JobVerb,
    Outcome,
    Plan,
    Progress,
    Question,
    QueueVerb,
    Statement,
    Step,
    StepOutcome,
    Unfinished,
    UnitVerb,
    Verb,
)
from tests.examples import BOOT, NOW

CONFIRM = Consent()
VERBS: tuple[Verb, ...] = (
    *get_args(JobVerb), *get_args(QueueVerb), *get_args(UnitVerb), "undo", "drain", "scale", "limits"
)  # fmt: skip


class Asked(Value, frozen=True, kw_only=True):
    """A plan that was asked for."""

    verb: Verb
    options: Mapping[str, Any]


class StillActions:
    """Actions that change nothing; `plan` and `outcome` are what is answered, None: no answer ever comes."""

    def __init__(self) -> None:
        self.consents: Mapping[Verb, Consent] | WorktopError = {verb: Consent() for verb in VERBS}
        self.plan: Plan | WorktopError | None = reclaim_plan()
        self.outcome: Outcome | WorktopError | Exception | None = None
        self.entries: tuple[AuditEntry, ...] | WorktopError = ()
        self.asked: list[Asked] = []
        self.applied: list[tuple[Plan, str, str]] = []  # plan, what was typed, why
        self.going: Callable[[Progress], None] | None = None
        self.stop: asyncio.Event | None = None
        self.asking: Callable[[Question], Awaitable[bool]] | None = None
        self.cut_off: tuple[Unfinished, ...] = ()
        self.abandoned: list[str] = []
        self.ended = asyncio.Event()  # the apply answers then

    async def allowed(self) -> Mapping[Verb, Consent]:
        if isinstance(self.consents, WorktopError):
            raise self.consents
        return self.consents

    async def plan_jobs(self, verb: JobVerb, **options: Any) -> Plan:
        return await self._planned(verb, options)

    async def plan_queue(self, verb: Verb, role: str, why: str = "") -> Plan:
        return await self._planned(verb, {"role": role, "why": why})

    async def plan_units(self, verb: UnitVerb, **options: Any) -> Plan:
        return await self._planned(verb, options)

    async def plan_drain(self, **options: Any) -> Plan:
        return await self._planned("drain", options)

    async def plan_scale(self, role: str, count: int, **options: Any) -> Plan:
        return await self._planned("scale", {"role": role, "count": count, **options})

    async def plan_limits(self, role: str, settings: Mapping[str, str] | None = None, **options: Any) -> Plan:
        return await self._planned("limits", {"role": role, "settings": settings, **options})

    async def plan_crontab(self, verb: Verb, **options: Any) -> Plan:
        return await self._planned(verb, options)

    async def plan_undo(self, plan_id: str, why: str = "") -> Plan:
        return await self._planned("undo", {"plan": plan_id, "why": why})

    async def plan_continue(self, plan_id: str, why: str = "") -> Plan:
        return await self._planned("continue", {"plan": plan_id, "why": why})

    def unfinished(self) -> tuple[Unfinished, ...]:
        return self.cut_off

    def abandon(self, plan_id: str, why: str = "") -> AuditEntry:
        self.abandoned.append(plan_id)
        return AuditEntry(at=NOW, plan=plan_id, verb="restart", title="Restart mail", state="stopped")

    async def _planned(self, verb: Verb, options: Mapping[str, Any]) -> Plan:
        self.asked.append(Asked(verb=verb, options=options))
        await asyncio.sleep(0)
        if self.plan is None:
            await asyncio.Event().wait()
        if isinstance(self.plan, WorktopError):
            raise self.plan
        assert self.plan is not None
        return self.plan

    async def apply(
        self,
        plan: Plan,
        *,
        typed: str = "",
        why: str = "",
        on_progress: Callable[[Progress], None] | None = None,
        on_question: Callable[[Question], Awaitable[bool]] | None = None,
        stop: asyncio.Event | None = None,
    ) -> Outcome:
        self.applied.append((plan, typed, why))
        self.going, self.stop, self.asking = on_progress, stop, on_question
        await self.ended.wait()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome if self.outcome is not None else outcome_of(plan)

    def audit(self, limit: int = 200) -> tuple[AuditEntry, ...]:
        if isinstance(self.entries, WorktopError):
            raise self.entries
        return self.entries[:limit]

    def say(self, progress: Progress) -> None:
        """The apply has come so far."""
        assert self.going is not None
        self.going(progress)


def dead_claim(job_id: str = "918233", role: str = "thumbnails", token: str = "t-1") -> Claim:
    """A stuck job whose holder is gone."""
    job = Job(
        id=job_id,
        queue=role,
        type="resize",
        state="running",
        attempts=2,
        max_attempts=3,
        reclaims=1,
        overdue=1862.0,
        running_for=1900.0,
        holder=Holder(host="wrk01", unit=f"{role}-worker@3.service", pid=812, start=99, boot_id=BOOT),
        token=token,
    )
    evidence = ("pid 812 no longer exists", f"{role}-worker@3.service is failed (failed), result oom-kill")
    return Claim(job=job, role=role, verdict="DEAD", evidence=evidence, stuck=True, worker=f"{role}-worker@3.service")


SQL = """UPDATE "public".worktop_jobs j
   SET status = 'waiting', lease_token = NULL, reclaims = reclaims + 1
 WHERE j.id = ANY(%(ids)s) AND j.status = 'running' AND j.lease_token = %(token)s"""


def reclaim_plan(consent: Consent = CONFIRM, **changes: Any) -> Plan:
    """Two jobs of a dead holder go back to waiting."""
    claims = (dead_claim(), dead_claim("918240"))
    values: dict[str, Any] = {
        "id": "20251129T164207Z-3f2a91",
        "made": NOW,
        "verb": "reclaim",
        "title": "Reclaim 2 jobs of thumbnails",
        "role": "thumbnails",
        "rows": Count(2),
        "reasons": ("both holders are dead", "a late finish would be rejected: the lease token changes"),
        "claims": claims,
        "samples": tuple(claim.job for claim in claims),
        "behind": ("no job waits for a lock these hold",),
        "late_finish": "rejected",
        "steps": (
            Step(
                kind="sql",
                title="return 2 jobs to waiting",
                statement=Statement(sql=SQL, parameters=(("ids", "'{918233,918240}'"), ("token", "'t-1'"))),
                rows=Count(2),
                undo="the rows as they were",
            ),
            Step(kind="notify", title="wake idle workers", text="NOTIFY worktop_jobs, 'thumbnails'"),
            Step(kind="check", title="see that they wait again"),
        ),
        "command": "worktop reclaim --id 918233,918240",
        "psql": "BEGIN;\nUPDATE worktop_jobs …;\nCOMMIT;",
        "consent": consent,
    }
    return Plan(**(values | changes))


def outcome_of(plan: Plan, **changes: Any) -> Outcome:
    """All went well."""
    values: dict[str, Any] = {
        "plan": plan.id,
        "state": "done",
        "text": "2 jobs wait again",
        "steps": tuple(StepOutcome(state="done", rows=2, took=0.2) for _ in plan.steps),
        "rows": 2,
        "verified": ("both rows are waiting", "a late finish of pid 812 would be rejected"),
        "not_verified": ("no worker has claimed them yet",),
        "undo": f"worktop undo {plan.id}",
        "took": 0.4,
    }
    return Outcome(**(values | changes))


def blocked_outcome(plan: Plan) -> Outcome:
    """One of them could not be moved."""
    blocked = Blocked(
        id="918240", why="another job with its key is waiting", by="918999", choices=("worktop discard --id 918240",)
    )
    return outcome_of(plan, state="partly", text="1 of 2 jobs waits again", rows=1, blocked=(blocked,))


def audit_entry(plan: Plan | None = None, outcome: Outcome | None = None, **changes: Any) -> AuditEntry:
    """An entry of the audit."""
    plan = plan or reclaim_plan()
    outcome = outcome or outcome_of(plan)
    values: dict[str, Any] = {
        "at": NOW - 60,
        "plan": plan.id,
        "verb": plan.verb,
        "title": plan.title,
        "role": plan.role,
        "who": Actor(login="deploy", sudo="deploy", user="root", uid=0),
        "host": "wrk01",
        "why": "OPS-12",
        "state": outcome.state,
        "text": outcome.text,
        "rows": outcome.rows,
        "undo": outcome.undo,
        "shown": plan,
        "outcome": outcome,
    }
    return AuditEntry(**(values | changes))
