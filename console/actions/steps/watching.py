"""Watching a unit after it was started: that it is healthy before the next one, that one more was worth it."""

from __future__ import annotations

import asyncio
import time
from typing import Literal

from console.actions.scene import look
from console.actions.steps.doing import Doing, StepFailed
from console.errors import WorktopError
from console.fleet.growth import Window, worth
from console.fleet.model import JobQuery, Role, RoleStatus, Unit, template_of
from console.fleet.operations import UnitJob
from console.fleet.plan import Step, StepOutcome, Watch
from console.text import duration, size

_EVERY = 0.5  # seconds between two looks
_NEAR = 0.95  # of MemoryMax
_COUNTED = 1000  # ended jobs of a window that are counted
_DOWN = ("inactive", "failed", "deactivating")


class Watcher:
    """Makes the watches of one plan; the window after one start is the window before the next."""

    def __init__(self, doing: Doing) -> None:
        self._doing = doing
        self.last: Window | None = None

    async def begin(self, step: Step) -> Watched:
        """Before the unit is started: what ends in this time is what it is compared with."""
        assert step.watch is not None
        template = template_of(step.unit)
        role = next((one for one in self._doing.config.roles if one.template and one.template == template), None)
        watched = Watched(self._doing, self, step, step.watch, role)
        if step.watch.kind == "growth" and self.last is None and role is not None:
            self.last = await watched.window(step.watch.seconds)
        return watched


class Watched:
    """One unit that is started."""

    def __init__(self, doing: Doing, watcher: Watcher, step: Step, watch: Watch, role: Role | None) -> None:
        self._doing = doing
        self._watcher = watcher
        self._step = step
        self._watch = watch
        self._role = role
        unit = self._unit()
        self._before = unit.invocation if unit is not None else ""
        self._invocation = ""
        self._told = False  # the host has told of the unit since it was started
        self._memory = ""  # how near it is to its limit
        self._seen: str | None = None  # why the jobs could not be looked at; None: they could

    async def end(self, job: UnitJob) -> str:
        """After its start: a clause that is added to what was done. StepFailed: it is not healthy."""
        self._invocation = job.invocation
        if self._watch.kind == "growth":
            return await self._growth()
        return await self._healthy()

    # --- healthy ----------------------------------------------------------------------------------------------------

    async def _healthy(self) -> str:
        """Active for longer than RestartSec=, and where jobs wait it has claimed or finished one."""
        began = time.monotonic()
        works = ""
        while True:
            lived = time.monotonic() - began
            self._must_run()
            if lived >= self._watch.lived and self._told:
                works = await self._works() if self._watch.jobs else "none wanted"
                if works:
                    break
            if self._doing.stop.is_set():
                return "; not watched to the end"
            if lived >= max(self._watch.seconds, self._watch.lived):
                why = "jobs wait, and it has claimed none within" if self._told else "the host has not told of it for"
                raise StepFailed(self._failed(f"{why} {duration(lived)}"))
            self._doing.tell(
                text=f"watching whether {self._step.unit} works", remaining=max(0.0, self._watch.seconds - lived)
            )
            await asyncio.sleep(_EVERY)
        if self._seen:
            self._note(f"whether {self._step.unit} takes jobs is not known: {self._seen}")
        return f"; healthy after {duration(time.monotonic() - began)}" + (f": {works}" if self._watch.jobs else "")

    async def _works(self) -> str:
        """How it shows that it works; "" while it does not. What cannot be looked at does not hold anybody up."""
        doing = self._doing
        if doing.reader is None or self._role is None:
            self._seen = "no database is configured"
            return "its jobs are not looked at"
        try:
            scene = await look(doing.config, doing.host, doing.reader)
        except WorktopError as error:
            self._seen = error.problem.line()
            return "its jobs could not be looked at"
        if scene.unseen:
            self._seen = scene.unseen
            return "its jobs could not be looked at"
        status = scene.status(self._role.name)
        worker = next((one for one in status.workers if one.key == self._step.unit), None)
        if worker is not None and worker.jobs:
            return f"it has claimed job {worker.jobs[0]}"
        room = await doing.reader.room(self._role)
        unit = self._unit()
        done = [job for job in room.finished if job.holder is not None and unit and job.holder.pid == unit.main_pid]
        if done:
            return f"it has finished job {done[0].id}"
        if not _jobs_wait(status):
            return "no job waits"
        if set(self._role.queues) <= set(room.paused):
            return "its queue is paused"
        return ""

    # --- growth -----------------------------------------------------------------------------------------------------

    async def _growth(self) -> str:
        await self._for(self._watch.lived)
        before, seconds = self._watcher.last, self._watch.seconds
        await self._for(seconds)
        after = await self.window(seconds)
        number = self._number()
        self._watcher.last = after
        if self._doing.stop.is_set():
            return "; not watched to the end"
        if before is None or after is None:
            self._note(f"what {self._step.unit} brings is not known: {self._seen or 'its jobs could not be counted'}")
            return f"; it runs for {duration(self._watch.lived + seconds)} without a restart"
        found = worth(before, after, number)
        if found.verdict == "no better":  # a window may be unlucky: twice as long before it is believed
            await self._for(seconds)
            longer = await self.window(2 * seconds)
            self._watcher.last = longer
            if longer is not None:
                found = worth(before, longer, number)
        if self._memory:
            self._end(self._memory)
        elif found.verdict in ("no better", "worse", "enough"):
            self._end(found.text)
        return f"; {found.text}"

    def _end(self, why: str) -> None:
        """The plan ends with this one, where it would have started more."""
        later = self._doing.plan.steps[self._doing.at + 1 :]
        if any(step.watch is not None for step in later):
            self._doing.ends_here = why
        else:
            self._note(why)

    async def window(self, seconds: float) -> Window | None:
        """What ended in the last seconds, by the database's clock; None: it cannot be counted."""
        reader, role = self._doing.reader, self._role
        if reader is None or role is None or not role.queues:
            self._seen = "no database is configured" if reader is None else "it has no queue"
            return None
        facts = await reader.poll()
        if facts.value is None or facts.problem is not None:
            self._seen = facts.problem.line() if facts.problem else "no answer"
            return None
        since = facts.value.now - seconds
        try:
            done, failed = await self._ended("done", since), await self._ended("failed", since)
        except WorktopError as error:
            self._seen = error.problem.line()
            return None
        waiting = [count.waiting.n for count in facts.value.counts if count.queue in role.queues]
        return Window(
            seconds=seconds, done=done, failed=failed, waiting=sum(waiting), capped=max(done, failed) >= _COUNTED
        )

    async def _ended(self, state: Literal["done", "failed"], since: float) -> int:
        assert self._doing.reader is not None and self._role is not None
        query = JobQuery(
            state=state, queues=self._role.queues, types=self._role.types, sort="finished", descending=True,
            limit=_COUNTED,
        )  # fmt: skip
        jobs = (await self._doing.reader.page(query)).jobs
        return sum(job.finished is not None and job.finished >= since for job in jobs)

    def _number(self) -> int:
        assert self._role is not None
        units = self._doing.host.facts.units.value or ()
        return sum(unit.template == self._role.template and unit.active == "active" for unit in units)

    # --- both -------------------------------------------------------------------------------------------------------

    async def _for(self, seconds: float) -> None:
        """Let it run so long; StepFailed when it does not."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._doing.stop.is_set():
            self._must_run()
            self._doing.tell(text=f"watching {self._step.unit}", remaining=left)
            await asyncio.sleep(min(_EVERY, left))

    def _must_run(self) -> None:
        unit = self._unit()
        if unit is None or self._doing.host.facts.agent.problem is not None:
            return  # not known at the moment
        if unit.invocation != self._invocation and unit.invocation in ("", self._before):
            return  # not told yet
        self._told = True
        if unit.invocation and self._invocation and unit.invocation != self._invocation:
            raise StepFailed(self._failed(f"it has started again by itself ({unit.restarts} restarts)"))
        if unit.active in _DOWN or unit.sub == "auto-restart":
            raise StepFailed(self._failed(f"it has ended: {unit.active} ({unit.sub}), result {unit.result}"))
        used = unit.memory_now
        if unit.memory_max and used is not None and used >= _NEAR * unit.memory_max:
            self._memory = f"{unit.name} uses {size(used)} of its {size(unit.memory_max)}"

    def _unit(self) -> Unit | None:
        units = self._doing.host.facts.units.value or ()
        return next((unit for unit in units if unit.name == self._step.unit), None)

    def _failed(self, why: str) -> StepOutcome:
        return StepOutcome(state="failed", text=f"{self._step.unit} is not healthy: {why}")

    def _note(self, sentence: str) -> None:
        if sentence not in self._doing.unseen:
            self._doing.unseen.append(sentence)


def _jobs_wait(status: RoleStatus) -> bool:
    return status.queue is not None and status.queue.waiting.n > 0
