"""A run of a playbook: show a step, do it, verify it, take it back. What is done is in the journal before and after.

A plan's id is noted before the plan is applied. Whoever takes the run up after a crash asks the journal of that plan
what became of it: what was done is not done again, what is left is planned from the facts, and nothing is assumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

import msgspec

from console.actions.steps.doing import OnQuestion
from console.errors import ConfigError, RefusedError, WorktopError
from console.fleet.plan import Outcome, Plan, Progress
from console.playbook import journal
from console.playbook.ending import Ending
from console.playbook.journal import Applied, Edited, Ended, Found, Line, Planned, Record, RunJournal, StepResult
from console.playbook.kinds import Given
from console.playbook.looking import Left, Waits
from console.playbook.model import (
    BackView,
    Draft,
    Playbook,
    PlaybookStep,
    RunStatus,
    Settings,
    Shown,
    StepEnd,
    StepView,
    Telling,
)
from console.playbook.settling import settled
from console.playbook.showing import Tools, emptied, in_words, inputs_for, refusal, show, standing
from console.playbook.status import status_of
from console.playbook.taking_back import differs_from_before, undoing, went_on

OnTelling = Callable[[Telling | Progress], None]
OnAgree = Callable[[Plan], Awaitable[tuple[bool, str]]]  # whether a person agrees, and the word they typed
_RISKS = ("low", "medium", "high")
_MOST_ROUNDS = 200


class Run:
    """One run that this process holds. Use it from one task at a time; `close` lets go of it."""

    def __init__(self, tools: Tools, book: Playbook, written: RunJournal, held: ExitStack) -> None:
        self._tools = tools
        self.book = book
        self._journal = written
        self._held = held
        self._record = self._read()

    # --- where it stands ---------------------------------------------------------------------------------------------

    @property
    def status(self) -> RunStatus:
        return status_of(self._record, self.book)

    @property
    def step(self) -> PlaybookStep | None:
        """The next one; None when all are done, or the run is over."""
        status = self.status
        number = status.number
        return self.book.steps[number - 1] if status.state == "open" and number <= len(self.book.steps) else None

    async def show(self) -> StepView:
        """The next step with what it would do. ConfigError: there is none. RefusedError: somebody else applies a plan
        of it now."""
        step = self._next()
        given = self._given()
        left = await self._settle(step)
        begun = bool(self._record.plans_of(step.number))
        view = await show(self._tools, given, step, begun=begun, planned=left)
        waits = self._waits(step).remaining("step")
        return msgspec.structs.replace(view, waits=waits)

    async def edit(self, path: str, text: str) -> None:
        """Another text for a file that the step installs; show it again then."""
        mode = next((draft.mode for draft in self._given().drafts.values() if draft.path == path), 0o644)
        self._write(Edited(Draft(path=path, text=text, mode=mode)))

    # --- forward -----------------------------------------------------------------------------------------------------

    async def go(
        self,
        view: StepView,
        *,
        typed: str = "",
        why: str = "",
        on_progress: OnTelling | None = None,
        on_question: OnQuestion | None = None,
        on_agree: OnAgree | None = None,
        stop: asyncio.Event | None = None,
    ) -> StepEnd:
        """Do the step that was shown, and verify it. RefusedError: it may not be done, it was not agreed to, or the
        journal cannot be written; then nothing was done. What goes wrong on the way is in what is returned."""
        step = self._next()
        if step.number != view.step.number:
            raise RefusedError(f"step {view.step.number}", f"step {step.number} is the next one", "look again")
        if not view.may_go:
            raise RefusedError(f"step {step.number}: {view.step.title}", view.problem or "it is refused")
        given = self._given(on_progress, stop, step.number)
        doing = _Doing(typed=typed, why=why, on_progress=on_progress, on_question=on_question, on_agree=on_agree)
        evidence: list[str] = []
        try:
            text = ""
            if view.shown is not None:
                text = await self._act(step, view.shown, given, doing, evidence)
            if step.check:
                text = await self._check(step, "step", step.check, step.inputs, given, evidence)
            for place, condition in enumerate(step.after):
                await self._check(step, f"after:{place}", condition.check, condition.inputs, given, evidence)
        except Left:
            return await self._left(step, evidence)
        except _Failed as failed:
            return await self._ended(step, "failed", failed.text, evidence)
        except WorktopError as error:
            return await self._ended(step, "failed", error.problem.line(), evidence)
        return await self._ended(step, "done", text or "done", evidence)

    async def skip(self, view: StepView, why: str = "") -> StepEnd:
        """Pass over the step. RefusedError: that is not allowed."""
        step = self._next()
        if not step.skippable or step.number != view.step.number:
            raise RefusedError(f"step {step.number}: {view.step.title}", "it may not be skipped")
        return await self._ended(step, "skipped", why or "skipped", [])

    async def _act(self, step: PlaybookStep, shown: Shown, given: Given, doing: _Doing, evidence: list[str]) -> str:
        if shown.found:
            self._write(Found(shown.found))
            given.values |= shown.found
        evidence += [*shown.facts, *shown.evidence] if shown.plan is None else shown.evidence
        text, risk = shown.nothing, 0
        for turn in range(_MOST_ROUNDS):
            plan = shown.plan
            if plan is None:
                break
            if turn:
                doing.typed = await doing.agreed(plan, risk)
            risk = max(risk, _RISKS.index(plan.risk))
            outcome = await self._applied(step, plan, given, doing, more=shown.more)
            evidence += [*outcome.verified, *(f"not seen: {each}" for each in outcome.not_verified)]
            text = outcome.text
            if outcome.state == "stopped":
                raise Left
            if outcome.state == "failed" or (outcome.state == "partly" and not step.after):
                raise _Failed(text)
            if not shown.more and outcome.state != "cancelled":
                break
            again = emptied(await self._planned(step, given))
            assert again is not None
            if stands_against := (*again.refused, *refusal(again.plan)):
                raise _Failed("; ".join(stands_against))
            if again.found:
                self._write(Found(again.found))
                given.values |= again.found
            shown, text = again, again.nothing or text
            if given.stop.is_set() and again.plan is not None:
                raise Left
        else:
            raise _Failed(f"it is not done after {_MOST_ROUNDS} rounds")
        return text

    async def _planned(self, step: PlaybookStep, given: Given) -> Shown:
        action = self._tools.registry.actions[step.action]
        return await action.plan(given, inputs_for(action, step.inputs, given.values))

    async def _applied(
        self, step: PlaybookStep, plan: Plan, given: Given, doing: _Doing, *, more: bool = False, back: bool = False
    ) -> Outcome:
        """Apply it between two lines of the journal. WorktopError: it was refused, and nothing was done."""
        self._write(Planned(step.number, plan.id, plan.title, back=back, more=more))
        if doing.on_progress is not None:
            doing.on_progress(Telling(number=step.number, text=plan.title, plan=plan))
        try:
            outcome = await self._tools.actions.apply(
                plan, typed=doing.typed, why=doing.why or self._purpose(step), on_progress=doing.on_progress,
                on_question=doing.on_question, stop=given.stop,
            )  # fmt: skip
        except WorktopError as error:
            self._write(Applied(step.number, plan.id, "refused", error.problem.line(), back=back))
            raise
        self._write(Applied(step.number, plan.id, outcome.state, outcome.text, back=back))
        return outcome

    async def _check(
        self, step: PlaybookStep, slot: str, name: str, settings: Settings, given: Given, evidence: list[str]
    ) -> str:
        check = self._tools.registry.checks[name]
        seen = await self._waits(step).hold(slot, check, given, inputs_for(check, settings, given.values))
        evidence += [seen.text, *seen.evidence]
        if seen.state != "holds":
            raise _Failed(seen.text)
        return seen.text

    # --- back --------------------------------------------------------------------------------------------------------

    async def show_back(self) -> BackView:
        """What takes the last step that did anything back. ConfigError: there is none."""
        if self.status.state == "open" and not self._standing() and self._record.steps:
            await self._ending().finish("rolled-back", self._given())  # worktop was cut off before it could say so
            self._record = self._read()
        step = self._last()
        await self._settle(step)
        given = self._given()
        told = in_words(step, given.values)
        plans = self._record.plans_of(step.number)
        where = await standing(given)
        inverse = step.inverse
        if inverse.kind == "none":
            return BackView(step=told, nothing=inverse.reason, standing=where)
        if not plans and inverse.kind == "undo":
            return BackView(step=told, nothing="it has changed nothing", standing=where)
        try:
            todo, more = await undoing(self._tools, step, given, plans)
        except WorktopError as error:
            return BackView(step=told, problem=error.problem.line(), standing=where)
        nothing = "" if todo else "everything is as it was before it"
        return BackView(step=told, plans=todo, more=more, nothing=nothing, standing=where)

    async def back(
        self,
        view: BackView,
        *,
        typed: str = "",
        why: str = "",
        on_progress: OnTelling | None = None,
        on_question: OnQuestion | None = None,
        stop: asyncio.Event | None = None,
    ) -> StepEnd:
        """Take the step back that was shown, and look whether everything is as it was. RefusedError as of `go`."""
        step = self._last()
        if step.number != view.step.number:
            raise RefusedError(f"step {view.step.number}", f"step {step.number} is the last one", "look again")
        if view.problem:
            raise RefusedError(f"take back step {step.number}", view.problem)
        given = self._given(on_progress, stop, step.number)
        doing = _Doing(typed=typed, why=why, on_progress=on_progress, on_question=on_question)
        done: list[str] = []
        left = 0
        try:
            plans, more = view.plans, view.more
            for _ in range(_MOST_ROUNDS):
                for plan in plans:
                    outcome = await self._applied(step, plan, given, doing, back=True)
                    done += [outcome.text, *outcome.verified]
                    if outcome.state == "stopped":
                        return await self._left(step, done)
                    if outcome.state not in ("done", "cancelled") and not went_on(outcome):
                        raise _Failed(outcome.text)
                    left += len(outcome.blocked)
                if not more:
                    break
                plans, more = await undoing(self._tools, step, given, self._record.plans_of(step.number))
            else:
                raise _Failed(f"it is not taken back after {_MOST_ROUNDS} rounds")
            differs = await differs_from_before(self._tools, step, self._record.plans_of(step.number))
        except _Failed as failed:
            return await self._end(step, "failed", f"not taken back: {failed.text}", done)
        except WorktopError as error:
            return await self._end(step, "failed", f"not taken back: {error.problem.line()}", done)
        if differs:
            return await self._end(step, "failed", f"not taken back: {'; '.join(differs)}", done)
        text = view.nothing or "taken back, and as it was before"
        if left:
            text = f"taken back; {left} jobs are left as they are: changed since, or as they were already"
        return await self._ended(step, "undone", text, done)

    # --- its end -----------------------------------------------------------------------------------------------------

    def abandon(self, why: str = "") -> RunStatus:
        """Give it up where it stands: what was done stays. RefusedError: the journal cannot be written."""
        self._ending().end("abandoned", why or "given up")
        self._record = self._read()
        return self.status

    def close(self) -> None:
        """Let go of it: it can be taken up again, here or elsewhere."""
        self._held.close()

    # -----------------------------------------------------------------------------------------------------------------

    async def _settle(self, step: PlaybookStep) -> Shown | None:
        return await settled(self._tools, lambda: self._record, self._write, step)

    async def _left(self, step: PlaybookStep, evidence: list[str]) -> StepEnd:
        again = f"worktop playbook resume {self._record.head.run}"
        return StepEnd(
            number=step.number, state="left", text="left here; what waits goes on", evidence=tuple(evidence),
            standing=await standing(self._given()), next=(again,),
        )  # fmt: skip

    async def _ended(self, step: PlaybookStep, state: StepResult, text: str, evidence: list[str]) -> StepEnd:
        """Note how the step ended; with the last one, the run."""
        end = await self._end(step, state, text, evidence)
        status = self.status
        if state in ("done", "skipped") and status.number > len(self.book.steps):
            await self._ending().finish("done", self._given())
        elif state == "undone" and not self._standing():
            await self._ending().finish("rolled-back", self._given())
        self._record = self._read()
        return end

    async def _end(self, step: PlaybookStep, state: StepResult, text: str, evidence: list[str]) -> StepEnd:
        given = self._given()
        self._write(
            Ended(step=step.number, state=state, text=text, evidence=tuple(evidence), at=self._tools.clock.now().wall)
        )
        run = self._record.head.run
        undo = (f"worktop playbook resume {run}", f"worktop playbook rollback {run}") if state == "failed" else ()
        return StepEnd(
            number=step.number, state=state, text=text, evidence=tuple(evidence), standing=await standing(given),
            next=undo,
        )  # fmt: skip

    def _ending(self) -> Ending:
        return Ending(self._tools, self.book, self._record, self._write)

    def _purpose(self, step: PlaybookStep) -> str:
        return f"playbook {self.book.name}, step {step.number}: {step.title}"

    def _next(self) -> PlaybookStep:
        step = self.step
        if step is None:
            raise ConfigError(f"run {self._record.head.run}", "no step is left", "worktop playbook status shows it")
        return step

    def _last(self) -> PlaybookStep:
        """The last step that was done, passed over, or begun."""
        record = self._record
        if record.end is not None and record.end.state != "done":
            raise ConfigError(f"run {record.head.run}", f"it is over: {record.end.state}")
        standing = self._standing()
        if standing:
            return standing[-1]
        raise ConfigError(f"run {record.head.run}", "nothing has been done that could be taken back")

    def _standing(self) -> list[PlaybookStep]:
        """Steps that were done, passed over, or begun, and not taken back."""
        record = self._record
        ended = {number for number, each in record.steps.items() if each.state != "undone"}
        return [step for step in self.book.steps if step.number in ended or record.plans_of(step.number)]

    def _given(self, on_progress: OnTelling | None = None, stop: asyncio.Event | None = None, number: int = 0) -> Given:
        tools, record = self._tools, self._record

        def tell(text: str, remaining: float | None) -> None:
            if on_progress is not None:
                on_progress(Telling(number=number, text=text, remaining=remaining))

        return Given(
            tools.actions, tools.config, tools.host, tools.reader, values=record.values,
            plans={step.number: record.plans_of(step.number) for step in self.book.steps}, drafts=record.drafts,
            tell=tell, stop=stop, now=lambda: tools.clock.now().wall,
        )  # fmt: skip

    def _waits(self, step: PlaybookStep) -> Waits:
        return Waits(step.number, dict(self._record.waiting), self._write, self._tools.clock)

    def _write(self, line: Line) -> None:
        self._journal.write(line)
        self._record = self._read()

    def _read(self) -> Record:
        return journal.read(self._tools.actions.state, self._journal.path.stem)


class _Failed(Exception):
    def __init__(self, text: str) -> None:
        self.text = text


class _Doing:
    """What a person has agreed to, and who is told and asked."""

    def __init__(
        self,
        *,
        typed: str,
        why: str,
        on_progress: OnTelling | None,
        on_question: OnQuestion | None,
        on_agree: OnAgree | None = None,
    ) -> None:
        self.typed = typed
        self.why = why
        self.on_progress = on_progress
        self.on_question = on_question
        self._on_agree = on_agree

    async def agreed(self, plan: Plan, risk: int) -> str:
        """The word that was typed for another round. One like the first was agreed to with it. Left: it was not."""
        if plan.consent.kind == "confirm" and _RISKS.index(plan.risk) <= risk:
            return ""
        if self._on_agree is not None:
            agreed, typed = await self._on_agree(plan)
            if agreed:
                return typed
        raise Left
