"""The facade of the actions: plan, apply, undo, audit. Nothing else changes the world."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from console.actions import audit, crontab_lines, journal
from console.actions.became import Became, became, not_as_before
from console.actions.crontab_lines import CrontabPlans
from console.actions.draft import Asked
from console.actions.drain import DrainPlans
from console.actions.gates import Gates
from console.actions.install import InstallPlans, UnitText
from console.actions.jobs import JobPlans
from console.actions.journal import Journal
from console.actions.limits import LimitPlans, look_afterwards
from console.actions.locks import locked, on_host
from console.actions.queues import queue_plan
from console.actions.records import Record
from console.actions.resuming import abandoned, continue_plan
from console.actions.run import Run
from console.actions.scale import ScalePlans, count_afterwards
from console.actions.scene import host_answers, look
from console.actions.steps.doing import Doing, OnProgress, OnQuestion, no_database
from console.actions.timers import TimerPlans
from console.actions.undo import undo_plan
from console.actions.unitdraft import Named, named_in
from console.actions.units import UnitPlans
from console.actions.verify import verify
from console.actions.who import this_machine, this_person
from console.config import Config
from console.errors import ConfigError, QueueError, RefusedError, WorktopError
from console.fleet.model import Ident, Verdict
from console.fleet.plan import (
    AuditEntry,
    Consent,
    JobVerb,
    LineVerb,
    Outcome,
    Plan,
    RowRef,
    Undoable,
    Unfinished,
    UnitVerb,
    Verb,
)
from console.host.client import HostClient
from console.queue.client import QueueClient
from console.queue.writer import QueueWriter
from console.schedules.inventory import Inventory
from console.state import StateDirectory


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

    async def plan_limits(self, role: str, settings: Mapping[str, str] | None = None, *, why: str = "") -> Plan:
        """A plan that sets limits of a role's units by a drop-in of worktop; without `settings` those that what was
        measured speaks for, "" takes one back. ConfigError, HostError."""
        return await LimitPlans(self._config, self._host, self._gates).plan(role, settings, why)

    async def plan_crontab(
        self, verb: LineVerb, *, path: str, line: int, raw: bytes | None = None, why: str = ""
    ) -> Plan:
        """A plan that makes a line of a crontab a comment, or takes that back; `line` as in `crontab -e`, `raw` its
        bytes when it was chosen. HostError."""
        await host_answers(self._host)
        return await CrontabPlans(self._host, self._gates).plan(verb, path, line, raw, why)

    async def schedules(self) -> Inventory:
        """What starts something on the host: a line of it is named for a plan. HostError."""
        await host_answers(self._host)
        return await self._host.schedules()

    async def named(self, names: Sequence[str]) -> Named:
        """What a person means by these names: a role, units ("mail@1", "mail-worker@1"), pids of workers outside of
        units. HostError, ConfigError: there is nothing of that name."""
        return named_in(await look(self._config, self._host, self._reader), names)

    async def plan_units(
        self, verb: UnitVerb, *, units: tuple[str, ...] = (), role: str = "", signal: str = "KILL", why: str = ""
    ) -> Plan:
        """A plan for these units, or for those of a role; restart of several is one after another, the next only when
        the last one is healthy. `signal` is of kill. HostError, ConfigError."""
        return await UnitPlans(self._config, self._host, self._reader, self._gates).plan(verb, units, role, signal, why)

    async def plan_drain(
        self,
        *,
        units: tuple[str, ...] = (),
        processes: tuple[Ident, ...] = (),
        role: str = "",
        timeout: float | None = None,
        why: str = "",
    ) -> Plan:
        """A plan that lets these workers finish what they hold, within `timeout` seconds (of units by default their
        TimeoutStopSec=), and stops them. Whether one is killed that has not ended is asked. HostError, ConfigError."""
        plans = DrainPlans(self._config, self._host, self._reader, self._gates)
        return await plans.plan(units, processes, role, timeout, why)

    async def plan_scale(
        self, role: str, count: int, *, watch: float | None = None, at_boot: bool = True, why: str = ""
    ) -> Plan:
        """A plan that brings a role to so many workers: up one at a time, each watched for `watch` seconds (of the
        role by default); down by draining. Over a budget it must be typed. HostError, ConfigError."""
        return await ScalePlans(self._config, self._host, self._reader, self._gates).plan(
            role, count, watch, at_boot, why
        )

    async def plan_install(self, files: Sequence[UnitText], role: str, why: str = "") -> Plan:
        """A plan that installs files of units (path, text, mode of a new one): whole, verified, with one reload.
        HostError."""
        return await InstallPlans(self._host, self._gates).plan(files, role, why)

    async def plan_timers(self, timers: Sequence[str], *, on: bool, why: str = "") -> Plan:
        """A plan that lets timers run, now and at boot, or ends that. HostError, ConfigError: one is no timer."""
        return await TimerPlans(self._host, self._gates).plan(timers, on, why)

    def became(self, plan_id: str) -> Became:
        """What became of a plan whose id was noted before it was applied. ConfigError: its journal cannot be read."""
        return became(self._state, plan_id)

    async def not_as_before(self, plan_id: str) -> tuple[str, ...]:
        """What is not as it was before the plan, of what it has changed: sentences. ConfigError, HostError."""
        return await not_as_before(journal.read(self._state, plan_id), self._host)

    def note(self, entry: AuditEntry) -> None:
        """A line of the audit on what was made of several plans. OSError, ConfigError: it cannot be written."""
        audit.append(self._state, entry)

    @property
    def state(self) -> StateDirectory:
        return self._state

    @property
    def read_only(self) -> str:
        """Why nothing may be changed; "" when it may."""
        return self._read_only

    async def plan_continue(self, plan_id: str, why: str = "") -> Plan:
        """A plan of what is left of one that was cut off. ConfigError, RefusedError."""
        return await continue_plan(self._state, plan_id, self._config, self._host, self._gates, why)

    def abandon(self, plan_id: str, why: str = "") -> AuditEntry:
        """Give up what is left of a plan that was cut off; it is in the audit. ConfigError, RefusedError."""
        if self._read_only:
            raise RefusedError(f"abandon {plan_id}", f"read-only: {self._read_only}")
        record, text = abandoned(self._state, plan_id)
        plan = msgspec.structs.replace(record.plan, why=why or record.plan.why)
        undo = f"worktop undo {plan_id}" if record.changes_something else ""
        return self._note(plan, Outcome(plan=plan_id, state="stopped", text=f"abandoned: {text}", undo=undo))

    async def plan_undo(self, plan_id: str, why: str = "") -> Plan:
        """A plan that restores what an applied plan has changed. ConfigError: there is no such plan in the journal."""
        record = journal.read(self._state, plan_id)
        return await undo_plan(record, self._config, self._host, self._queue, self._gates, why)

    async def apply(
        self,
        plan: Plan,
        *,
        typed: str = "",
        why: str = "",
        on_progress: OnProgress | None = None,
        on_question: OnQuestion | None = None,
        stop: asyncio.Event | None = None,
    ) -> Outcome:
        """Do what the plan says. `typed` is what the person typed where the consent asks for a word. `on_question`
        is awaited when something must be decided on the way; without it the answer is no.

        Does not raise for what goes wrong with the queue or the host on the way: the outcome says it. RefusedError,
        QueueError, ConfigError before anything was done: the consent was not given, another console is acting on the
        role, the database or the journal cannot be reached. When the task is cancelled, the audit says so.
        """
        agreed(plan, typed)
        if self._read_only:
            raise RefusedError(plan.title, f"read-only: {self._read_only}")
        if why:
            plan = msgspec.structs.replace(plan, why=why)
        identity = await self._identity(plan)
        record = journal.read(self._state, plan.undoes) if plan.undoes else None
        roles = self._lock_names(plan)
        with locked(identity or this_machine(), roles):
            async with on_host(self._host, plan, roles) as hold:
                written = self._begun(plan, identity)
                doing = Doing(
                    plan, self._config, self._host, self._queue, self._reader, written, record, on_progress,
                    on_question, stop, hold,
                )  # fmt: skip
                return await self._done(doing, Run(doing), stop)

    def _begun(self, plan: Plan, identity: str) -> Journal:
        """The journal and the audit have the plan before anything is done."""
        written = Journal.begin(self._state, plan, identity, this_person(), this_machine())
        try:
            self._note(plan, None)
            if plan.continues:
                journal.close(self._state, plan.continues, plan.id)
        except (WorktopError, OSError):
            written.close()
            raise
        return written

    async def _done(self, doing: Doing, run: Run, stop: asyncio.Event | None) -> Outcome:
        """Do the steps; however that ends, the journal and the audit say it."""
        plan, written, began = doing.plan, doing.journal, time.monotonic()
        outcome: Outcome | None = None
        try:
            await run.steps()
            outcome = run.outcome(time.monotonic() - began)
            outcome = await self._verified(plan, outcome, written, stop)
        finally:
            if outcome is None:  # cancelled, or a defect
                doing.lost = any(step.kind != "sql" for step in plan.steps)
                outcome = msgspec.structs.replace(run.outcome(time.monotonic() - began), state="stopped")
            written.ended(outcome.state, outcome.rows, doing.lost)
            written.close()
            if plan.undoes and doing.record is not None and _is_undone(outcome, doing.record):
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
        """Plans that can be undone, newest first."""
        return journal.undoable(self._state)

    def unfinished(self) -> tuple[Unfinished, ...]:
        """Plans that were cut off, or that somebody applies now, newest first."""
        return journal.unfinished(self._state)

    async def close(self) -> None:
        if self._queue is not None:
            await self._queue.close()

    # ----------------------------------------------------------------------------------------------------------------

    def _writer(self) -> QueueWriter:
        if self._queue is None:
            raise no_database()
        return self._queue

    async def _identity(self, plan: Plan) -> str:
        """Of the database; "" where the plan can do without it. QueueError, ConfigError."""
        if any(step.kind == "sql" for step in plan.steps):
            return await self._writer().identity()
        try:
            return await self._queue.identity() if self._queue is not None else ""
        except QueueError:
            return ""

    def _lock_names(self, plan: Plan) -> tuple[str, ...]:
        """The roles that are acted on; a plan for rows of several holds them all, one for files alone holds those."""
        if plan.role:
            return (plan.role,)
        if plan.steps and all(step.file is not None for step in plan.steps):
            return tuple(step.file.path for step in plan.steps if step.file is not None)
        return tuple(role.name for role in self._config.roles) or ("",)

    async def _verified(self, plan: Plan, outcome: Outcome, written: Journal, stop: asyncio.Event | None) -> Outcome:
        if plan.verb == "scale":
            return await count_afterwards(plan, outcome, self._host, self._config)
        if plan.verb == "limits":
            return await look_afterwards(plan, outcome, self._host, self._config)
        if plan.verb in ("disable-line", "restore-line") and outcome.state == "done":
            seen, unseen = await crontab_lines.look_afterwards(self._host, plan)
            return msgspec.structs.replace(outcome, verified=seen, not_verified=unseen)
        if not outcome.rows or self._reader is None:
            return outcome
        found = await verify(plan, written.ids, self._config, self._host, self._writer(), self._reader, stop)
        return msgspec.structs.replace(
            outcome,
            verified=(*outcome.verified, *found.seen),
            not_verified=(*outcome.not_verified, *found.unseen),
        )

    def _note(self, plan: Plan, outcome: Outcome | None) -> AuditEntry:
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
                return entry  # it is done: the journal of the plan tells what
            reason = error.strerror or str(error) if isinstance(error, OSError) else error.problem.why
            raise RefusedError(
                f"audit in {self._state.path}",
                f"cannot be written ({reason})",
                "make room, or name another folder with WORKTOP_STATE",
            ) from None
        return entry


def _is_undone(outcome: Outcome, record: Record) -> bool:
    """Units and files that did not all go back can be tried again; rows that did not are not as they were left."""
    return outcome.state == "done" or (outcome.state == "partly" and bool(record.batches))


def agreed(plan: Plan, typed: str) -> None:
    """RefusedError when the person has not agreed as the plan's consent asks."""
    consent = plan.consent
    if consent.kind == "refused":
        raise RefusedError(plan.title, "; ".join(consent.why), "; ".join(consent.allow))
    if consent.kind == "typed" and typed != consent.word:
        raise RefusedError(plan.title, f"it must be agreed to by typing {consent.word}")
