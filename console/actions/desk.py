"""The facade of the actions: plan, apply, undo, audit. Nothing else changes the world."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from console.actions import audit, journal
from console.actions.draft import Asked
from console.actions.gates import Gates
from console.actions.jobs import JobPlans
from console.actions.journal import Journal
from console.actions.locks import locked
from console.actions.queues import queue_plan
from console.actions.run import Run
from console.actions.state import StateDirectory
from console.actions.undo import undo_plan
from console.actions.verify import verify
from console.actions.who import this_machine, this_person
from console.config import Config
from console.errors import ConfigError, RefusedError, WorktopError
from console.fleet.model import Verdict
from console.fleet.plan import (
    AuditEntry,
    Consent,
    JobVerb,
    Outcome,
    Plan,
    Progress,
    RowRef,
    Undoable,
    Verb,
)
from console.host.client import HostClient
from console.queue.client import QueueClient
from console.queue.writer import QueueWriter


class Actions:
    """Plans are made here and applied here; between the two a person has seen the plan and agreed to it."""

    def __init__(
        self,
        config: Config,
        host: HostClient,
        queue: QueueWriter | None,
        reader: QueueClient | None,
        state: StateDirectory,
        read_only: str = "",
    ) -> None:
        """`read_only`: why nothing may be changed ("--read-only was given"); "" when it may."""
        self._config = config
        self._host = host
        self._queue = queue
        self._reader = reader
        self._state = state
        self._read_only = read_only
        self._gates = Gates(host, queue, read_only)

    async def allowed(self) -> Mapping[Verb, Consent]:
        """For menus: which verbs can be planned at all. "refused" with the reason, and what would allow it."""
        return await self._gates.all(tuple(role.name for role in self._config.roles if role.template))

    async def plan_jobs(
        self,
        verb: JobVerb,
        *,
        role: str = "",
        rows: tuple[RowRef, ...] = (),
        verdicts: tuple[Verdict, ...] = (),
        older_than: float | None = None,
        priority: int | None = None,
        quarantine_after: int | None = None,
        batch: int = 1000,
        why: str = "",
        leave_running: bool = False,
    ) -> Plan:
        """A plan for these rows, or for all rows of a role that the verb can be applied to. Changes nothing.

        reclaim: of a whole role only the rows of dead holders unless `verdicts` names others; with `rows`, whatever
        the holder is, with the steps that takes (its unit is stopped first). `leave_running`: do not stop a live
        holder; the queue must reject its late finish, and the person types the role's name. `older_than` is seconds.
        A plan that cannot be applied has consent "refused" and says why. QueueError, ConfigError.
        """
        asked = Asked(
            verb=verb,
            role=role,
            rows=rows,
            verdicts=verdicts,
            older_than=older_than,
            priority=priority,
            quarantine_after=quarantine_after,
            batch=batch,
            why=why,
            leave_running=leave_running,
        )
        return await JobPlans(self._config, self._host, self._writer(), self._reader, self._gates).plan(asked)

    async def plan_queue(self, verb: Literal["pause", "resume"], role: str, why: str = "") -> Plan:
        """A plan that makes a role's queues give out nothing, or give out jobs again. QueueError, ConfigError."""
        return await queue_plan(self._config, self._writer(), self._gates, verb, role, why)

    async def plan_undo(self, plan_id: str, why: str = "") -> Plan:
        """A plan that restores the rows of an applied plan. ConfigError: there is no such plan in the journal."""
        return await undo_plan(journal.read(self._state, plan_id), self._config, self._writer(), self._gates, why)

    async def apply(
        self,
        plan: Plan,
        *,
        typed: str = "",
        why: str = "",
        on_progress: Callable[[Progress], None] | None = None,
        stop: asyncio.Event | None = None,
    ) -> Outcome:
        """Do what the plan says. `typed` is what the person typed where the consent asks for a word.

        Does not raise for what goes wrong with the queue or the host on the way: the outcome says it. RefusedError,
        QueueError, ConfigError before anything was done: the consent was not given, another console is acting on the
        role, the database or the journal cannot be reached. When the task is cancelled, the audit says so.
        """
        agreed(plan, typed)
        if self._read_only:
            raise RefusedError(plan.title, f"read-only: {self._read_only}")
        writer = self._writer()
        if why:
            plan = msgspec.structs.replace(plan, why=why)
        identity = await writer.identity()
        record = journal.read(self._state, plan.undoes) if plan.undoes else None
        began = time.monotonic()
        with locked(identity, self._lock_names(plan)):
            written = Journal.begin(self._state, plan, identity, this_person(), this_machine())
            try:
                self._note(plan, None)
            except WorktopError:
                written.close()
                raise
            run = Run(plan, self._config, self._host, writer, self._reader, written, record, on_progress, stop)
            outcome: Outcome | None = None
            try:
                await run.steps()
                outcome = run.outcome(time.monotonic() - began)
                outcome = await self._verified(plan, outcome, written, stop)
            finally:
                if outcome is None:  # cancelled, or a defect
                    outcome = msgspec.structs.replace(run.outcome(time.monotonic() - began), state="stopped")
                written.ended(outcome.state, outcome.rows)
                written.close()
                if record is not None and outcome.state in ("done", "partly"):
                    journal.mark_undone(self._state, plan.undoes, plan.id, outcome.rows, len(outcome.blocked))
                self._note(plan, outcome)
        return outcome

    def audit(self, limit: int = 200) -> tuple[AuditEntry, ...]:
        """What was applied, newest first. ConfigError: it cannot be read."""
        try:
            return audit.entries(self._state, limit)
        except OSError as error:
            raise ConfigError(f"audit in {self._state.path}", error.strerror or str(error)) from None

    def undoable(self) -> tuple[Undoable, ...]:
        """Plans whose rows can be restored, newest first."""
        return journal.undoable(self._state)

    async def close(self) -> None:
        if self._queue is not None:
            await self._queue.close()

    # ----------------------------------------------------------------------------------------------------------------

    def _writer(self) -> QueueWriter:
        if self._queue is None:
            raise ConfigError(
                "database",
                "none is configured",
                "set [database] dsn or service in worktop.toml, or PGHOST, PGSERVICE, …",
            )
        return self._queue

    def _lock_names(self, plan: Plan) -> tuple[str, ...]:
        """The roles that are acted on; a plan for rows of several holds them all."""
        if plan.role:
            return (plan.role,)
        return tuple(role.name for role in self._config.roles) or ("",)

    async def _verified(self, plan: Plan, outcome: Outcome, written: Journal, stop: asyncio.Event | None) -> Outcome:
        if not outcome.rows or self._reader is None:
            return outcome
        found = await verify(plan, written.ids, self._config, self._host, self._writer(), self._reader, stop)
        return msgspec.structs.replace(
            outcome,
            verified=(*outcome.verified, *found.seen),
            not_verified=(*outcome.not_verified, *found.unseen),
        )

    def _note(self, plan: Plan, outcome: Outcome | None) -> None:
        """A line of the audit: that it begins, which must be written or nothing is done; how it ended."""
        entry = AuditEntry(
            at=time.time(),
            plan=plan.id,
            verb=plan.verb,
            title=plan.title,
            role=plan.role,
            who=this_person(),
            host=this_machine(),
            why=plan.why,
            state=outcome.state if outcome is not None else audit.STARTED,
            text=outcome.text if outcome is not None else "worktop was cut off before this had ended",
            rows=outcome.rows if outcome is not None else 0,
            undo=outcome.undo if outcome is not None else "",
            shown=audit.shown(plan),
            outcome=outcome,
        )
        try:
            audit.append(self._state, entry)
        except (OSError, ConfigError) as error:
            if outcome is not None:
                return  # it is done: the journal of the plan tells what
            reason = error.strerror or str(error) if isinstance(error, OSError) else error.problem.why
            raise RefusedError(
                f"audit in {self._state.path}",
                f"cannot be written ({reason})",
                "make room, or name another folder with WORKTOP_STATE",
            ) from None


def agreed(plan: Plan, typed: str) -> None:
    """RefusedError when the person has not agreed as the plan's consent asks."""
    consent = plan.consent
    if consent.kind == "refused":
        raise RefusedError(plan.title, "; ".join(consent.why), "; ".join(consent.allow))
    if consent.kind == "typed" and typed != consent.word:
        raise RefusedError(plan.title, f"it must be agreed to by typing {consent.word}")
