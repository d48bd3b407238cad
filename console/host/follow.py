"""The console's side of a follow of the journal: it goes on over the death of an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from console.errors import Problem
from console.fleet.model import LogLine
from console.host.protocol import FollowLog, LogUpdate


class LogFollow:
    """A journal that is being followed; `HostClient.follow_log` makes one."""

    def __init__(
        self,
        units: tuple[str, ...],
        on_lines: Callable[[tuple[LogLine, ...]], None],
        lines: int,
        stop: Callable[[LogFollow], Awaitable[None]],
        since: float | None = None,
        mentions: str = "",
    ) -> None:
        self._units = units
        self._lines = lines
        self._since = since
        self._mentions = mentions
        self._on_lines = on_lines
        self._stop = stop
        self._cursor = ""
        self._stopped = False
        self.number: int | None = None  # of the request, None while no agent reads for it
        self.problem: Problem | None = None  # why nothing comes, or not everything; None: all is well

    def request(self) -> FollowLog:
        """What to ask an agent: everything after the last line that came, or the history first."""
        return FollowLog(self._units, self._lines, self._cursor, self._since, self._mentions)

    def update(self, message: LogUpdate) -> None:
        if self._stopped:
            return
        self.problem = message.problem
        for line in reversed(message.lines):
            if line.cursor:
                self._cursor = line.cursor
                break
        if message.lines:
            self._on_lines(message.lines)

    def failed(self, problem: Problem) -> None:
        """The agent is gone, or refused."""
        self.number, self.problem = None, problem

    async def stop(self) -> None:
        """End it; no line is told after that. Raises nothing, also when it has been stopped before."""
        if not self._stopped:
            self._stopped = True
            await self._stop(self)
