"""Doing what a plan says, step by step, and telling what came of it.

Each kind of step has its own module in console/actions/steps; a new kind is a line in `Run`. A unit that was stopped
for the sake of its rows is started again, whatever happens in between.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import msgspec

from console.actions.steps.doing import Doing, StepFailed
from console.actions.steps.files import FileSteps
from console.actions.steps.rows import RowSteps
from console.actions.steps.units import UnitSteps
from console.actions.steps.waits import ProcessSteps
from console.actions.summary import outcome_of
from console.errors import WorktopError
from console.fleet.plan import Outcome, Step, StepOutcome

Doer = Callable[[Step], Awaitable[StepOutcome]]


class Run:
    """One apply of one plan. `steps` never raises for what queue or host do; the outcome says it."""

    def __init__(self, doing: Doing) -> None:
        self._doing = doing
        self._plan = doing.plan
        self._rows = RowSteps(doing) if any(step.kind == "sql" for step in doing.plan.steps) else None
        self._units = UnitSteps(doing)
        processes, files = ProcessSteps(doing), FileSteps(doing)
        self._doers: dict[str, Doer] = {
            "unit": self._units.do,
            "signal": processes.do,
            "wait": processes.wait,
            "program": processes.program,
            "file": files.replace,
            "reload": files.reload,
        }
        if self._rows is not None:
            self._doers["sql"] = self._rows.do
        self._done: list[StepOutcome] = []

    async def steps(self) -> None:
        """Do them all, or up to the first that fails; then start again what was stopped for this plan."""
        doing = self._doing
        if self._rows is not None:
            try:
                await self._rows.look_again()
            except WorktopError as error:
                self._done.append(StepOutcome(state="failed", text="look at the holders again", problem=error.problem))
                return
        for number, step in enumerate(self._plan.steps):
            doing.at = number
            if doing.stop.is_set():
                self._done.append(StepOutcome(state="stopped", text="stopped before this step"))
                break
            if doing.ends_here and not step.units:
                self._done.append(StepOutcome(state="skipped", text=f"not done: {step.title}"))
                continue
            began = time.monotonic()
            doing.tell()
            outcome = msgspec.structs.replace(await self._one(step), took=time.monotonic() - began)
            self._done.append(outcome)
            if outcome.state in ("failed", "stopped") and not (step.alone and outcome.state == "failed"):
                break
        await self._start_again()
        for look in doing.afterwards:
            await look()

    async def _one(self, step: Step) -> StepOutcome:
        try:
            outcome = await self._doers[step.kind](step)
        except StepFailed as failed:
            outcome = failed.outcome
        except WorktopError as error:
            outcome = StepOutcome(state="failed", text=step.title, problem=error.problem)
        if step.kind != "sql":  # its batches say how far it came
            self._doing.journal.step_ended(self._doing.at, outcome)
        return outcome

    async def _start_again(self) -> None:
        """After a plan that ended early: units it has stopped do not stay stopped because of that."""
        for number in range(len(self._done), len(self._plan.steps)):
            step = self._plan.steps[number]
            if step.kind == "unit" and step.verb == "start" and step.unit in self._units.stopped:
                self._doing.at = number
                self._done.append(await self._one(step))
            else:
                self._done.append(StepOutcome(state="skipped", text=f"not done: {step.title}"))

    def outcome(self, took: float) -> Outcome:
        """What it came to, before anything is verified."""
        return outcome_of(self._doing, self._done, took)
