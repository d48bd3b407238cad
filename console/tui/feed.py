"""What the console needs from the layers below it: a fleet, and a word when there is a new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from console.errors import Problem
from console.fleet.model import Claim, Fleet, HostDetail, Job, JobPage, JobQuery, LogLine, UnitDetail


class Feed(Protocol):
    """A source of fleets. All of it is used on the event loop; none of it may block.

    `start` and `refresh` may raise WorktopError: it is shown, and the console goes on with what it has.
    """

    @property
    def fleet(self) -> Fleet | None:
        """The newest fleet; None until the first one is there."""
        ...

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the event loop whenever there is a new fleet."""
        ...

    async def start(self) -> None:
        """Start the sources; may return before they have said anything."""
        ...

    async def stop(self) -> None:
        """End the sources; the console does not wait for it longer than half a second."""
        ...

    async def refresh(self) -> None:
        """Ask every source again now."""
        ...

    # What a person looks at more closely is asked for when they do. Each raises WorktopError within a few seconds.

    async def unit_detail(self, name: str) -> UnitDetail:
        """Properties, files, process tree and last journal lines of a unit."""
        ...

    async def host_detail(self) -> HostDetail:
        """The process trees of the host, under their owners."""
        ...

    async def follow_log(self, units: tuple[str, ...], on_lines: Callable[[tuple[LogLine, ...]], None]) -> LogFollow:
        """The journal of these units, history first; `on_lines` is called on the event loop until `stop`."""
        ...

    async def jobs(self, query: JobQuery) -> JobPage:
        """A page of jobs."""
        ...

    async def job(self, job_id: str) -> tuple[Job | None, Claim | None]:
        """One job with its payload, and the verdict on its holder when it is running."""
        ...


class LogFollow(Protocol):
    """A journal that is being followed."""

    @property
    def problem(self) -> Problem | None:
        """Why nothing comes, if nothing can."""
        ...

    async def stop(self) -> None:
        """End it; no line is told after that."""
        ...
