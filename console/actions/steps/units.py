"""Steps that do something to a unit of systemd: its state is in the journal before, and looked at afterwards.

A step ends at the end of systemd's job and with the state the unit settled in. When the agent is lost on the way,
systemd goes on: the step waits for the agent, and looks whether it was done.
"""

from __future__ import annotations

import asyncio
import time
from typing import Literal, cast

import msgspec

from console.actions.steps.doing import Doing, StepFailed
from console.actions.steps.held import HeldBefore, kill_question
from console.actions.steps.watching import Watcher
from console.errors import AgentLost
from console.fleet.model import HostFacts, Unit
from console.fleet.operations import UnitJob, UnitProgress
from console.fleet.plan import Step, StepOutcome, UnitChange, UnitVerb
from console.text import duration

RUNS = ("active", "activating", "reloading")
ENABLED = ("enabled", "enabled-runtime", "linked", "linked-runtime")  # started at boot
_TIMEOUT = 60.0
_TOLD = 3.0  # seconds until the host tells what was switched
_STOPPED_WITHIN = 120.0  # seconds a stop may take beyond what the unit itself allows
_TRIES = 3  # an agent that is lost in the same step each time is given up
_ENDS: frozenset[str] = frozenset({"stop", "restart", "kill"})


class UnitSteps:
    """The step kind "unit"."""

    def __init__(self, doing: Doing) -> None:
        self._doing = doing
        self._watcher = Watcher(doing)
        self._reloads = doing.host.facts.reloads
        self.stopped: set[str] = set()  # units that were stopped by this plan
        self._started: set[str] = set()

    async def do(self, step: Step) -> StepOutcome:
        doing = self._doing
        if step.units:
            return await self._switch(step)
        if step.ident is not None and step.ident in doing.skip:
            return StepOutcome(state="skipped", text=f"{step.title}: {doing.skip[step.ident]}")
        if step.verb == "start" and self._stoppable(step.unit) and step.unit not in self.stopped:
            return StepOutcome(state="skipped", text=f"{step.unit} was not stopped")
        if step.verb == "stop":
            self.stopped.add(step.unit)  # also when it fails: it may be stopping
        before = as_it_is(doing.host.facts, step.unit)
        held = await HeldBefore.look(doing, step.unit) if step.verb in _ENDS else None
        watched = await self._watcher.begin(step) if step.watch is not None else None
        doing.journal.unit_change(before)
        job = await self._drained(step, held) if step.drains else await self._job(step, cast("UnitVerb", step.verb))
        if held is not None:
            doing.afterwards.append(held.tell_what_became_of_them)
        if not job.ok:
            raise StepFailed(StepOutcome(state="failed", text=job.text or f"{step.title}: {job.result}"))
        if step.verb in ("start", "restart"):
            self._started.add(step.unit)
        text = job.text
        if watched is not None:
            text += await watched.end(job)
        self._look_for_reloads()
        return StepOutcome(state="done", text=text)

    # --- one job ----------------------------------------------------------------------------------------------------

    async def _job(self, step: Step, verb: UnitVerb, patience: float = 0.0, signal: str = "") -> UnitJob:
        doing = self._doing
        timeout = patience + (step.timeout or _TIMEOUT)
        if verb in ("stop", "restart"):
            timeout = max(timeout, patience + _unit(doing.host.facts, step.unit).timeout_stop + _STOPPED_WITHIN)
        before = _unit(doing.host.facts, step.unit)
        for tried in range(_TRIES):
            greetings = doing.host.greetings
            try:
                # a job of a unit is not called back: the wait for it ends, the job goes on
                return await doing.host.unit_job(
                    step.unit, verb, timeout, signal=signal or step.signal or "KILL", patience=patience,
                    on_progress=self._said,
                )  # fmt: skip
            except AgentLost:
                if not await doing.agent_is_back(greetings) or tried == _TRIES - 1:
                    doing.lost = True
                    raise
                done = _done_meanwhile(_unit(doing.host.facts, step.unit), before, verb)
                if done is not None:
                    doing.seen.append(f"the agent was lost during “{step.title}”; systemd went on with it")
                    return done
        raise AssertionError("the last try returns or raises")

    async def _drained(self, step: Step, held: HeldBefore | None) -> UnitJob:
        """Ask it to end and wait for that; whether it is killed when it does not, is asked."""
        doing = self._doing
        patience = step.timeout or _unit(doing.host.facts, step.unit).timeout_stop
        job = await self._job(step, "stop", patience)
        if job.ok or job.result != "timeout" or not job.main_pid:
            return job
        jobs = await held.still() if held is not None else ()
        who = f"{step.unit} (pid {job.main_pid})"
        question = kill_question(doing.at, who, job.text, jobs, unit=step.unit)
        if not await doing.agreed(question):
            return msgspec.structs.replace(job, text=f"{question.text[0]}; it was not killed, and goes on")
        stopping = asyncio.ensure_future(self._job(step, "stop"))  # killed while it stops, it is not started again
        try:
            await self._job(step, "kill", signal="KILL")
        finally:
            stopped = await stopping
        return msgspec.structs.replace(stopped, text=f"{stopped.text}; it was killed after {duration(patience)}")

    async def _switch(self, step: Step) -> StepOutcome:
        """Enable or disable: of those that this plan was to start, only the ones that run."""
        doing = self._doing
        starts = {one.unit for one in doing.plan.steps if one.kind == "unit" and one.verb == "start"}
        names = [name for name in step.units if name not in starts or name in self._started or step.verb == "disable"]
        if not names:
            return StepOutcome(state="skipped", text=f"none of them was started: {step.title}")
        for name in names:
            doing.journal.unit_change(as_it_is(doing.host.facts, name))
        job = await doing.host.unit_job(
            names[0], cast("UnitVerb", step.verb), step.timeout or _TIMEOUT, also=tuple(names[1:])
        )
        await self._until_told(names, step.verb == "enable")
        return StepOutcome(state="done", text=job.text)

    async def _until_told(self, names: list[str], enabled: bool) -> None:
        """An undo that is planned at once must see what has been done."""
        host, until = self._doing.host, time.monotonic() + _TOLD
        while any((as_it_is(host.facts, name).enabled in ENABLED) != enabled for name in names):
            if time.monotonic() > until:
                return
            host.refresh()
            await asyncio.sleep(0.1)

    def _said(self, said: UnitProgress) -> None:
        self._doing.tell(text=said.text, remaining=said.remaining)

    def _stoppable(self, unit: str) -> bool:
        """The plan itself stops it first, for the sake of something else."""
        steps = self._doing.plan.steps
        return any(step.kind == "unit" and step.verb == "stop" and step.unit == unit for step in steps)

    def _look_for_reloads(self) -> None:
        doing = self._doing
        if doing.host.facts.reloads > self._reloads:
            doing.unseen.append(
                f"somebody made systemd read its files again before “{doing.plan.steps[doing.at].title}” had ended: "
                "the units may have changed since the plan was made"
            )
        self._reloads = doing.host.facts.reloads


def as_it_is(facts: HostFacts, name: str) -> UnitChange:
    """The unit as the host told it last; one that is not loaded does not run."""
    unit = _unit(facts, name)
    return UnitChange(unit=name, active=unit.active in RUNS, enabled=unit.enabled)


def boot_differs(was: UnitChange, now: UnitChange) -> bool:
    """It was known of both whether the unit is started at boot, and one is and the other is not."""
    return bool(was.enabled and now.enabled) and (was.enabled in ENABLED) != (now.enabled in ENABLED)


def _unit(facts: HostFacts, name: str) -> Unit:
    return next((unit for unit in facts.units.value or () if unit.name == name), Unit(name=name))


def _done_meanwhile(unit: Unit, before: Unit, verb: UnitVerb) -> UnitJob | None:
    """The job as it must have ended without the agent; None: nothing shows that it has."""
    result: Literal["lost"] = "lost"
    if verb in ("start", "restart"):
        again = unit.invocation != before.invocation
        if unit.active == "active" and (again or verb == "start"):
            text = f"{unit.name} runs as pid {unit.main_pid}"
            return UnitJob(
                unit=unit.name, verb=verb, result=result, ok=True, active=unit.active, sub=unit.sub,
                main_pid=unit.main_pid, invocation=unit.invocation, text=text,
            )  # fmt: skip
    if verb == "stop" and unit.active in ("inactive", "failed"):
        return UnitJob(unit=unit.name, verb=verb, result=result, ok=True, active=unit.active, text="it is stopped")
    return None
