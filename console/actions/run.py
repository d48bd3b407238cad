"""Doing what a plan says, step by step, and telling what came of it.

Holders are looked at again first: rows of one that is no longer what the plan says are left out, and that is said.
A unit that was stopped for the sake of its rows is started again, whatever happens in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, TypeVar, cast

import msgspec

from console.actions import words
from console.actions.draft import BENEATH
from console.actions.holders import LIVE, Held, Holders, ident_of
from console.actions.journal import Journal, Record
from console.actions.summary import outcome_of
from console.config import Config
from console.errors import HostError, Problem, WorktopError
from console.fleet.model import Claim, Count, Holder, Ident, Verdict
from console.fleet.operations import UnitProgress
from console.fleet.plan import (
    Blocked,
    Outcome,
    Plan,
    Progress,
    RowChange,
    Selection,
    Step,
    StepOutcome,
    UnitVerb,
)
from console.host.client import HostClient
from console.queue.client import QueueClient
from console.queue.writer import QueueWriter

T = TypeVar("T")
_TELL_EVERY = 0.5  # seconds between two words of a wait


class _Failed(Exception):
    """A step did not do what the plan needs; the rest of the plan is not done."""

    def __init__(self, outcome: StepOutcome) -> None:
        self.outcome = outcome


class Run:
    """One apply of one plan. `steps` never raises for what queue or host do; the outcome says it."""

    def __init__(
        self,
        plan: Plan,
        config: Config,
        host: HostClient,
        queue: QueueWriter,
        reader: QueueClient | None,
        journal: Journal,
        record: Record | None,
        on_progress: Callable[[Progress], None] | None,
        stop: asyncio.Event | None,
    ) -> None:
        """`record`: the journal that a plan of verb undo restores from."""
        self._plan = plan
        self._host = host
        self._queue = queue
        self._journal = journal
        self._record = record
        self._tell = on_progress
        self._stop = stop or asyncio.Event()
        self._holders = Holders(config, host, queue, reader)
        self._done: list[StepOutcome] = []
        self._stopped_units: set[str] = set()
        self._skip: dict[Ident, str] = {}  # processes that need not be ended any more, and why
        self._left_out: list[str] = []
        self.rows = 0
        self.blocked: list[Blocked] = []
        self._unsure = 0
        self._at = 0

    async def steps(self) -> None:
        """Do them all, or up to the first that fails; then start again what was stopped for this plan."""
        try:
            await self._look_again()
        except WorktopError as error:
            self._done.append(StepOutcome(state="failed", text="look at the holders again", problem=error.problem))
            return
        for number, step in enumerate(self._plan.steps):
            self._at = number
            if self._stop.is_set():
                self._done.append(StepOutcome(state="stopped", text="stopped before this step"))
                break
            began = time.monotonic()
            self._progress()
            try:
                outcome = await self._one(step)
            except _Failed as failed:
                outcome = failed.outcome
            except WorktopError as error:
                outcome = StepOutcome(state="failed", text=step.title, problem=error.problem)
            self._done.append(msgspec.structs.replace(outcome, took=time.monotonic() - began))
            if outcome.state in ("failed", "stopped"):
                break
        await self._start_again()

    async def _start_again(self) -> None:
        """After a plan that ended early: units it has stopped do not stay stopped because of that."""
        for number in range(len(self._done), len(self._plan.steps)):
            step = self._plan.steps[number]
            if step.kind == "unit" and step.verb == "start" and step.unit in self._stopped_units:
                self._at = number
                try:
                    outcome = await self._unit(step)
                except (_Failed, WorktopError) as error:
                    outcome = (
                        error.outcome
                        if isinstance(error, _Failed)
                        else StepOutcome(state="failed", text=step.title, problem=error.problem)
                    )
                self._done.append(outcome)
            else:
                self._done.append(StepOutcome(state="skipped", text=f"not done: {step.title}"))

    # --- looking again ----------------------------------------------------------------------------------------------

    async def _look_again(self) -> None:
        """Before anything is ended: whoever has died or works again need not, or must not, be."""
        idents = {step.ident for step in self._plan.steps if step.ident is not None}
        if not idents:
            return
        for step in self._plan.steps:
            if step.selection is None or step.kind != "sql":
                continue
            for held in await self._holders.of(step.selection):
                ident = ident_of(held, self._host.facts)
                if ident not in idents:
                    continue
                if held.verdict == "DEAD":
                    self._skip[ident] = "it is dead by now"
                elif held.verdict == "ALIVE":
                    self._skip[ident] = "it works again and its lease is valid: it is left alone"
                else:
                    idents.discard(ident)  # as the plan says
        for ident in idents - set(self._skip):
            self._skip[ident] = "it holds none of these rows any more"

    async def _still(self, step: Step, selection: Selection) -> Selection | None:
        """The rows of the step whose holders are as the plan needs them now; None when there are none."""
        if not selection.holders or "running" not in selection.states:
            return selection
        held = await self._holders.of(selection)
        kept = [one for one in held if self._may_take(one, step)]
        for one in held:
            if one not in kept:
                proof = "; ".join(one.claim.evidence[:2])
                who = words.holder_word(one.holder)
                self._left_out.append(f"{who} keeps {words.jobs_word(one.rows.rows)}: {proof}")
        if not kept:
            return None
        rows = tuple(row for one in kept for row in one.refs(overdue_only=selection.overdue_only))
        if selection.rows and not rows:
            return None
        holders = tuple(one.holder if one.holder is not None else Holder() for one in kept)
        return msgspec.structs.replace(selection, rows=rows, holders=holders)

    def _may_take(self, held: Held, step: Step) -> bool:
        if held.verdict == "DEAD":
            return True
        if step.verb != BENEATH:
            return False
        before = self._verdict_before(held.holder)
        return held.verdict == before or (held.verdict in LIVE and before in LIVE)

    def _verdict_before(self, holder: Holder | None) -> Verdict | None:
        """The verdict the person saw and agreed to."""
        claims: Sequence[Claim] = self._plan.claims
        return next((claim.verdict for claim in claims if same_holder(claim.job.holder, holder)), None)

    # --- steps ------------------------------------------------------------------------------------------------------

    async def _one(self, step: Step) -> StepOutcome:
        if step.kind == "unit":
            return await self._unit(step)
        if step.kind == "signal":
            return await self._signal(step)
        if step.kind == "wait":
            return await self._wait(step)
        if self._plan.verb in ("pause", "resume"):
            return await self._switch(step)
        if self._plan.verb == "undo":
            return await self._restore(step)
        return await self._sql(step)

    async def _unit(self, step: Step) -> StepOutcome:
        if step.ident is not None and step.ident in self._skip:
            return StepOutcome(state="skipped", text=f"{step.title}: {self._skip[step.ident]}")
        if step.verb == "start" and self._stoppable(step.unit) and step.unit not in self._stopped_units:
            return StepOutcome(state="skipped", text=f"{step.unit} was not stopped")
        timeout = step.timeout or 60.0
        if step.verb == "stop":
            self._stopped_units.add(step.unit)  # also when it fails: it may be stopping
        # a job of a unit is not called back: the wait for it ends, the job goes on
        verb = cast("UnitVerb", step.verb)
        job = await self._host.unit_job(step.unit, verb, timeout, on_progress=self._unit_said)
        if not job.ok:
            raise _Failed(StepOutcome(state="failed", text=job.text or f"{step.title}: {job.result}"))
        return StepOutcome(state="done", text=job.text)

    def _unit_said(self, said: UnitProgress) -> None:
        self._progress(text=said.text, remaining=said.remaining)

    def _stoppable(self, unit: str) -> bool:
        return any(step.kind == "unit" and step.verb == "stop" and step.unit == unit for step in self._plan.steps)

    async def _signal(self, step: Step) -> StepOutcome:
        assert step.ident is not None
        if step.ident in self._skip:
            return StepOutcome(state="skipped", text=f"{step.title}: {self._skip[step.ident]}")
        if await self._host.wait_gone(step.ident, 0.0):
            return StepOutcome(state="skipped", text=f"pid {step.ident.pid} is gone already")
        try:
            await self._host.signal(step.ident, step.signal)
        except HostError as error:
            if await self._host.wait_gone(step.ident, 0.0):
                return StepOutcome(state="skipped", text=f"pid {step.ident.pid} is gone already")
            raise _Failed(StepOutcome(state="failed", text=step.title, problem=error.problem)) from None
        return StepOutcome(state="done", text=step.title)

    async def _wait(self, step: Step) -> StepOutcome:
        assert step.ident is not None
        if step.ident in self._skip:
            return StepOutcome(state="skipped", text=f"{step.title}: {self._skip[step.ident]}")
        timeout = step.timeout or 10.0
        if await self._ticking(self._host.wait_gone(step.ident, timeout), timeout):
            return StepOutcome(state="done", text=f"pid {step.ident.pid} is gone")
        later = self._plan.steps[self._at + 1 :]
        if any(one.kind == "signal" and one.ident == step.ident for one in later):
            return StepOutcome(state="done", text=f"pid {step.ident.pid} is still there after {timeout:g} s")
        problem = Problem(
            f"wait for pid {step.ident.pid}", f"it is still there after {timeout:g} s", "nothing was taken from it"
        )
        raise _Failed(StepOutcome(state="failed", text=step.title, problem=problem))

    async def _sql(self, step: Step) -> StepOutcome:
        assert step.selection is not None
        selection = await self._still(step, step.selection)
        if selection is None:
            return StepOutcome(state="skipped", text="no row is left whose holder is as it was")
        began, before = time.monotonic(), self.rows

        def on_batch(rows: int, seconds: float) -> bool:
            self._journal.committed()
            self.rows += rows
            done = self.rows - before
            took = max(1e-6, time.monotonic() - began)
            left = step.rows.n - done if step.rows is not None and step.rows.kind == "exact" else None
            self._progress(
                done=done, total=step.rows, per_second=done / took,
                remaining=max(0.0, left * took / done) if left is not None and done else None,
            )  # fmt: skip
            return not self._stop.is_set()

        applied = await self._queue.apply(
            selection, batch=self._plan.batch, before_commit=self._journal.before_commit, on_batch=on_batch
        )
        self.rows = before + applied.rows
        self.blocked += applied.blocked
        self._unsure += applied.unsure
        text = (
            f"{words.jobs_word(Count(applied.rows))} in {applied.batches} batch{'' if applied.batches == 1 else 'es'}"
        )
        if applied.quarantined and applied.reclaimed:
            text += f", {applied.quarantined} of them to failed"
        if applied.problem is not None:
            raise _Failed(StepOutcome(state="failed", text=text, rows=applied.rows, problem=applied.problem))
        state: Literal["done", "stopped"] = "stopped" if applied.stopped else "done"
        return StepOutcome(state=state, text=text, rows=applied.rows)

    async def _switch(self, step: Step) -> StepOutcome:
        changes = await self._queue.set_paused(step.queues, self._plan.verb == "pause", self._journal.before_commit)
        self._journal.committed()
        self.rows = len(changes)
        told = ", ".join(change.id for change in changes) or "nothing: it was so already"
        return StepOutcome(state="done", text=f"{self._plan.verb}d: {told}", rows=len(changes))

    async def _restore(self, step: Step) -> StepOutcome:
        assert self._record is not None
        verb = self._record.plan.verb
        began = time.monotonic()
        for images in self._record.images():
            if self._stop.is_set():
                return StepOutcome(state="stopped", text=f"{self.rows} rows restored", rows=self.rows)
            changes: list[RowChange] = list(images.changes)
            while changes:
                part, changes = changes[: self._plan.batch], changes[self._plan.batch :]
                restored = await self._queue.restore(verb, images.columns, part)
                self.rows += restored.rows
                self.blocked += [Blocked(id=row, why=why) for row, why in restored.refused]
                took = max(1e-6, time.monotonic() - began)
                self._progress(done=self.rows, total=step.rows, per_second=self.rows / took)
        return StepOutcome(state="done", text=f"{words.jobs_word(Count(self.rows))} restored", rows=self.rows)

    # --- telling ----------------------------------------------------------------------------------------------------

    def _progress(
        self,
        text: str = "",
        done: int = 0,
        total: Count | None = None,
        per_second: float | None = None,
        remaining: float | None = None,
    ) -> None:
        if self._tell is not None:
            self._tell(
                Progress(step=self._at, text=text, done=done, total=total, per_second=per_second, remaining=remaining)
            )

    async def _ticking(self, call: Coroutine[Any, Any, T], timeout: float) -> T:
        """Wait for a call of the host, telling how long it may still take."""
        task = asyncio.ensure_future(call)
        began = time.monotonic()
        try:
            while True:
                done, _ = await asyncio.wait({task}, timeout=_TELL_EVERY)
                if done:
                    return await task
                self._progress(remaining=max(0.0, timeout - (time.monotonic() - began)))
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, WorktopError):
                    await task

    def outcome(self, took: float) -> Outcome:
        """What it came to, before anything is verified."""
        return outcome_of(
            self._plan, self._done, rows=self.rows, blocked=self.blocked, left_out=self._left_out,
            unsure=self._unsure, took=took,
        )  # fmt: skip


def same_holder(one: Holder | None, other: Holder | None) -> bool:
    """The same holder, however its text is written."""
    if one is None or other is None:
        return one is other or (one or other) == Holder()
    return (one.host, one.unit, one.pid, one.start, one.boot_id, one.worker) == (
        other.host, other.unit, other.pid, other.start, other.boot_id, other.worker
    )  # fmt: skip
