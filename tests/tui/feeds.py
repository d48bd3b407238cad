"""Feeds of made-up fleets, for tests and for the launcher."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from console.errors import Problem, WorktopError
from console.fleet.diagnosis.model import Diagnosis
from console.fleet.model import Claim, Fleet, HostDetail, Job, JobPage, JobQuery, LogLine, UnitDetail
from console.schedules.inventory import Inventory, Translated
from console.tui.feed import Acting
from tests import examples
from tests.schedules import examples as schedules
from tests.tui.still_actions import StillActions
from tests.tui.still_playbooks import StillBooks

T = TypeVar("T")
Answer: TypeAlias = T | WorktopError | None


class StillFollow:
    """A journal that says what it is told to say."""

    def __init__(self, units: tuple[str, ...], on_lines: Callable[[tuple[LogLine, ...]], None]) -> None:
        self.units = units
        self.problem: Problem | None = None
        self.stopped = False
        self._on_lines = on_lines

    def say(self, *lines: LogLine) -> None:
        """There are new lines."""
        assert not self.stopped
        self._on_lines(lines)

    async def stop(self) -> None:
        self.stopped = True


class StillFeed:
    """A feed that says what it is told to say. What is asked for more closely is answered with the attribute of its
    name: a value, an error that is raised, or None: no answer ever comes.
    """

    def __init__(self, fleet: Fleet | None = None) -> None:
        self._fleet = fleet
        self._callbacks: list[Callable[[], None]] = []
        self.started = self.stopped = self.refreshed = 0
        self.rested: list[bool] = []
        self.unit_answer: Answer[UnitDetail] = examples.unit_detail()
        self.host_answer: Answer[HostDetail] = examples.host_detail()
        self.job_answer: Answer[tuple[Job | None, Claim | None]] = (None, None)
        self.pages: Callable[[JobQuery], Answer[JobPage]] = lambda query: JobPage()
        self.actions: Acting | None = StillActions()
        self.playbooks: StillBooks | None = StillBooks()
        self.log_answer: Answer[tuple[LogLine, ...]] = examples.log_lines()
        self.follows: list[StillFollow] = []
        self.diagnosis_answer: Answer[tuple[Diagnosis, ...]] = examples.diagnoses()
        self.diagnosed: list[str] = []  # "mail", "mail mail-worker@1.service", "job 12"
        self.schedules_answer: Answer[Inventory] = schedules.inventory()
        self.translated_answer: Answer[tuple[Translated, ...]] = schedules.translated()
        self.looked: list[bool] = []  # how the schedules were asked for
        self.asked: list[str] = []  # units whose detail was asked for
        self.read: list[tuple[tuple[str, ...], float, float]] = []  # units and times whose log was asked for
        self.past: tuple[tuple[LogLine, ...], Problem | None] = ((), None)
        self.queries: list[JobQuery] = []

    @property
    def fleet(self) -> Fleet | None:
        return self._fleet

    def subscribe(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def say(self, fleet: Fleet | None) -> None:
        """There is a new fleet."""
        self._fleet = fleet
        for callback in self._callbacks:
            callback()

    async def start(self) -> None:
        self.started += 1

    async def stop(self) -> None:
        self.stopped += 1

    def rest(self, resting: bool) -> None:
        self.rested.append(resting)

    async def refresh(self) -> None:
        self.refreshed += 1

    async def diagnose(self, role: str, key: str = "") -> tuple[Diagnosis, ...]:
        self.diagnosed.append(f"{role} {key}".strip())
        return await self._answer(self.diagnosis_answer)

    async def diagnose_job(self, job_id: str) -> tuple[Diagnosis, ...]:
        self.diagnosed.append(f"job {job_id}")
        return await self._answer(self.diagnosis_answer)

    async def unit_detail(self, name: str) -> UnitDetail:
        self.asked.append(name)
        return await self._answer(self.unit_answer)

    async def host_detail(self) -> HostDetail:
        return await self._answer(self.host_answer)

    async def schedules(self, anew: bool = False) -> Inventory:
        self.looked.append(anew)
        return await self._answer(self.schedules_answer)

    async def translate(self, names: tuple[str, ...], prove: bool = True) -> tuple[Translated, ...]:
        return await self._answer(self.translated_answer)

    async def read_log(
        self, units: tuple[str, ...], since: float, until: float
    ) -> tuple[tuple[LogLine, ...], Problem | None]:
        self.read.append((units, since, until))
        return self.past

    async def follow_log(
        self, units: tuple[str, ...], on_lines: Callable[[tuple[LogLine, ...]], None], mentions: str = ""
    ) -> StillFollow:
        lines = await self._answer(self.log_answer)
        follow = StillFollow(units, on_lines)
        self.follows.append(follow)
        follow.say(*lines)
        return follow

    async def jobs(self, query: JobQuery) -> JobPage:
        self.queries.append(query)
        return await self._answer(self.pages(query))

    async def job(self, job_id: str) -> tuple[Job | None, Claim | None]:
        return await self._answer(self.job_answer)

    async def _answer(self, answer: Answer[T]) -> T:
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, WorktopError):
            raise answer
        assert answer is not None
        return answer
