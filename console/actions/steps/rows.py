"""Steps that change rows of the queue.

Holders are looked at again first: rows of one that is no longer what the plan says are left out, and that is said.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

import msgspec

from console.actions import words
from console.actions.draft import BENEATH
from console.actions.holders import LIVE, Held, Holders, ident_of
from console.actions.steps.doing import Doing, StepFailed
from console.fleet.model import Claim, Count, Holder, Verdict
from console.fleet.plan import Blocked, RowChange, Selection, Step, StepOutcome


class RowSteps:
    """The step kind "sql"."""

    def __init__(self, doing: Doing) -> None:
        self._doing = doing
        self._plan = doing.plan
        self._holders = Holders(doing.config, doing.host, doing.writer, doing.reader)

    async def look_again(self) -> None:
        """Before anything is ended: whoever has died or works again need not, or must not, be."""
        skip = self._doing.skip
        idents = {step.ident for step in self._plan.steps if step.ident is not None}
        if not idents:
            return
        for step in self._plan.steps:
            if step.selection is None or step.kind != "sql":
                continue
            for held in await self._holders.of(step.selection):
                ident = ident_of(held, self._doing.host.facts)
                if ident not in idents:
                    continue
                if held.verdict == "DEAD":
                    skip[ident] = "it is dead by now"
                elif held.verdict == "ALIVE":
                    skip[ident] = "it works again and its lease is valid: it is left alone"
                else:
                    idents.discard(ident)  # as the plan says
        for ident in idents - set(skip):
            skip[ident] = "it holds none of these rows any more"

    async def do(self, step: Step) -> StepOutcome:
        if self._plan.verb in ("pause", "resume"):
            return await self._switch(step)
        if self._plan.verb == "undo":
            return await self._restore(step)
        return await self._apply(step)

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
                self._doing.left_out.append(f"{who} keeps {words.jobs_word(one.rows.rows)}: {proof}")
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

    async def _apply(self, step: Step) -> StepOutcome:
        assert step.selection is not None
        doing = self._doing
        selection = await self._still(step, step.selection)
        if selection is None:
            return StepOutcome(state="skipped", text="no row is left whose holder is as it was")
        began, before = time.monotonic(), doing.rows

        def on_batch(rows: int, seconds: float) -> bool:
            doing.journal.committed()
            doing.rows += rows
            done = doing.rows - before
            took = max(1e-6, time.monotonic() - began)
            left = step.rows.n - done if step.rows is not None and step.rows.kind == "exact" else None
            doing.tell(
                done=done, total=step.rows, per_second=done / took,
                remaining=max(0.0, left * took / done) if left is not None and done else None,
            )  # fmt: skip
            return not doing.stop.is_set()

        applied = await doing.writer.apply(
            selection, batch=self._plan.batch, before_commit=doing.journal.before_commit, on_batch=on_batch
        )
        doing.rows = before + applied.rows
        doing.blocked += applied.blocked
        doing.unsure += applied.unsure
        text = (
            f"{words.jobs_word(Count(applied.rows))} in {applied.batches} batch{'' if applied.batches == 1 else 'es'}"
        )
        if applied.quarantined and applied.reclaimed:
            text += f", {applied.quarantined} of them to failed"
        if applied.problem is not None:
            raise StepFailed(StepOutcome(state="failed", text=text, rows=applied.rows, problem=applied.problem))
        state: Literal["done", "stopped"] = "stopped" if applied.stopped else "done"
        return StepOutcome(state=state, text=text, rows=applied.rows)

    async def _switch(self, step: Step) -> StepOutcome:
        doing = self._doing
        changes = await doing.writer.set_paused(step.queues, self._plan.verb == "pause", doing.journal.before_commit)
        doing.journal.committed()
        doing.rows = len(changes)
        told = ", ".join(change.id for change in changes) or "nothing: it was so already"
        return StepOutcome(state="done", text=f"{self._plan.verb}d: {told}", rows=len(changes))

    async def _restore(self, step: Step) -> StepOutcome:
        doing = self._doing
        assert doing.record is not None
        verb = doing.record.plan.verb
        began = time.monotonic()
        for images in doing.record.images():
            if doing.stop.is_set():
                return StepOutcome(state="stopped", text=f"{doing.rows} rows restored", rows=doing.rows)
            changes: list[RowChange] = list(images.changes)
            while changes:
                part, changes = changes[: self._plan.batch], changes[self._plan.batch :]
                restored = await doing.writer.restore(verb, images.columns, part)
                doing.rows += restored.rows
                doing.blocked += [Blocked(id=row, why=why) for row, why in restored.refused]
                took = max(1e-6, time.monotonic() - began)
                doing.tell(done=doing.rows, total=step.rows, per_second=doing.rows / took)
        return StepOutcome(state="done", text=f"{words.jobs_word(Count(doing.rows))} restored", rows=doing.rows)


def same_holder(one: Holder | None, other: Holder | None) -> bool:
    """The same holder, however its text is written."""
    if one is None or other is None:
        return one is other or (one or other) == Holder()
    return (one.host, one.unit, one.pid, one.start, one.boot_id, one.worker) == (
        other.host, other.unit, other.pid, other.start, other.boot_id, other.worker
    )  # fmt: skip
