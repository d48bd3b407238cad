"""Steps that end a process outside of a unit's job: a signal to exactly it, and the wait for its end."""

from __future__ import annotations

from console.actions.steps.doing import Doing, StepFailed
from console.actions.steps.held import HeldBefore, kill_question
from console.errors import HostError, Problem
from console.fleet.plan import Step, StepOutcome
from console.host.protocol import SupervisorKind
from console.text import duration

_KILLED_WITHIN = 5.0


class ProcessSteps:
    """The step kinds "signal" and "wait"."""

    def __init__(self, doing: Doing) -> None:
        self._doing = doing

    async def do(self, step: Step) -> StepOutcome:
        return await (self.drain(step) if step.drains else self.signal(step))

    async def signal(self, step: Step) -> StepOutcome:
        assert step.ident is not None
        host = self._doing.host
        if step.ident in self._doing.skip:
            return StepOutcome(state="skipped", text=f"{step.title}: {self._doing.skip[step.ident]}")
        if await host.wait_gone(step.ident, 0.0):
            return StepOutcome(state="skipped", text=f"pid {step.ident.pid} is gone already")
        try:
            await host.signal(step.ident, step.signal)
        except HostError as error:
            if await host.wait_gone(step.ident, 0.0):
                return StepOutcome(state="skipped", text=f"pid {step.ident.pid} is gone already")
            raise StepFailed(StepOutcome(state="failed", text=step.title, problem=error.problem)) from None
        return StepOutcome(state="done", text=step.title)

    async def drain(self, step: Step) -> StepOutcome:
        """SIGTERM, and the wait for its end; whether it is killed when it has not ended is asked."""
        assert step.ident is not None
        doing, ident = self._doing, step.ident
        held = await HeldBefore.look(doing, step.unit) if step.unit else None
        sent = await self.signal(step)
        if sent.state != "done":
            return sent
        patience = step.timeout or 10.0
        text = f"pid {ident.pid} has ended"
        if not await doing.ticking(doing.host.wait_gone(ident, patience), patience):
            jobs = await held.still() if held is not None else ()
            said = f"pid {ident.pid} was asked to end {duration(patience)} ago and has not ended"
            question = kill_question(doing.at, f"pid {ident.pid}", said, jobs, ident=ident)
            if not await doing.agreed(question):
                text = f"{question.text[0]}; it was not killed, and goes on"
                raise StepFailed(StepOutcome(state="failed", text=text))
            await doing.host.signal(ident, "KILL")
            await doing.host.wait_gone(ident, _KILLED_WITHIN)
            text = f"pid {ident.pid} was killed after {duration(patience)}"
        if held is not None:
            doing.afterwards.append(held.tell_what_became_of_them)
        return StepOutcome(state="done", text=text)

    async def program(self, step: Step) -> StepOutcome:
        assert step.ident is not None
        kind: SupervisorKind = "pm2" if step.verb == "pm2" else "supervisord"
        timeout = step.timeout or 60.0
        text = await self._doing.ticking(self._doing.host.stop_program(kind, step.ident, timeout), timeout)
        return StepOutcome(state="done", text=text)

    async def wait(self, step: Step) -> StepOutcome:
        assert step.ident is not None
        doing = self._doing
        if step.ident in doing.skip:
            return StepOutcome(state="skipped", text=f"{step.title}: {doing.skip[step.ident]}")
        timeout = step.timeout or 10.0
        if await doing.ticking(doing.host.wait_gone(step.ident, timeout), timeout):
            return StepOutcome(state="done", text=f"pid {step.ident.pid} is gone")
        later = doing.plan.steps[doing.at + 1 :]
        if any(one.kind == "signal" and one.ident == step.ident for one in later):
            return StepOutcome(state="done", text=f"pid {step.ident.pid} is still there after {timeout:g} s")
        problem = Problem(
            f"wait for pid {step.ident.pid}", f"it is still there after {timeout:g} s", "nothing was taken from it"
        )
        raise StepFailed(StepOutcome(state="failed", text=step.title, problem=problem))
