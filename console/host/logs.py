"""Follows of the journal: one `journalctl --follow` child for all units of a follow, its entries sent in batches.

The history is read first, by a child that ends; the one that follows begins after the cursor of its last entry, so
nothing is lost or doubled between them. (`--follow --lines=N` would be one child, but in systemd 252 it tells nothing,
ever, when no entry matched at its start.) When a child ends, or an instance appears that a glob of the follow names,
the next one goes on after the last entry that was read. A console that does not keep up loses the oldest entries and
is told how many.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections import deque
from collections.abc import Callable, Iterable

from console.ending import end
from console.errors import HostError, Problem
from console.fleet.model import LogLine
from console.host import children, journal
from console.host.log_query import check_units, expanded, mention_of, read_log
from console.host.protocol import FollowLog, LogUpdate, ReadLog

MOST = 16  # follows at a time
BATCH_SECONDS = 0.1
BATCH_LINES = 500
KEPT_LINES = 4000  # entries that wait for the console
LONGEST_ENTRY = 2 * 1024 * 1024  # bytes of JSON; a longer one is passed over
_GATHER_SECONDS = 0.02
_NEW_UNITS_SECONDS = 2.0  # a follow is not begun anew more often for instances that appear
_RETRY = (1.0, 2.0, 5.0, 10.0)


class LogFollows:
    """Every follow of one console, by the id of its request."""

    def __init__(
        self,
        send: Callable[[LogUpdate], None],
        busy: Callable[[], bool],
        loaded: Callable[[], Iterable[str]],
        user_manager: bool,
    ) -> None:
        """`busy`: the console does not keep up; `loaded`: names of the units that are known, for globs."""
        self._send = send
        self._busy = busy
        self._loaded = loaded
        self._user_manager = user_manager
        self._follows: dict[int, _Follow] = {}

    def start(self, number: int, wanted: FollowLog) -> None:
        """HostError when it cannot be."""
        if len(self._follows) >= MOST:
            raise HostError("follow the journal", f"{MOST} follows run already", "close one of them")
        check_units(wanted.units)
        self._follows[number] = _Follow(number, wanted, self._send, self._busy, self._loaded, self._user_manager)

    async def stop(self, number: int) -> None:
        """Its child is gone afterwards; nothing happens when there is no such follow."""
        follow = self._follows.pop(number, None)
        if follow is not None:
            await follow.close()

    def units_appeared(self) -> None:
        """Units that were not known before are there: a glob may name them."""
        for follow in self._follows.values():
            follow.units_appeared()

    async def close(self) -> None:
        for number in list(self._follows):
            await self.stop(number)


class _Follow:
    def __init__(
        self,
        number: int,
        wanted: FollowLog,
        send: Callable[[LogUpdate], None],
        busy: Callable[[], bool],
        loaded: Callable[[], Iterable[str]],
        user_manager: bool,
    ) -> None:
        self._number = number
        self._wanted = wanted
        self._send = send
        self._busy = busy
        self._loaded = loaded
        self._user_manager = user_manager
        self._mentions = mention_of(wanted.mentions) if wanted.mentions else None
        self._cursor = wanted.after
        self._since = ""  # from when on, as long as no entry has been read
        self._units: tuple[str, ...] = ()  # what the child was told
        self._began = 0.0
        self._read_some = False
        self._lines: deque[LogLine] = deque()
        self._left_out = 0
        self._problem: Problem | None = None
        self._told_problem: Problem | None = None
        self._flush: asyncio.TimerHandle | None = None
        self._flushed = 0.0
        self._anew = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"log {number}")

    async def close(self) -> None:
        if self._flush is not None:
            self._flush.cancel()
        await end(self._task)

    def units_appeared(self) -> None:
        if self._units and self._expanded() != self._units:
            self._anew.set()

    # --- the child --------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        failures = 0
        while True:
            self._anew.clear()
            self._read_some = False
            child_problem = await self._follow_once()
            if child_problem is None:  # ended for the sake of new units
                await asyncio.sleep(max(0.0, self._began + _NEW_UNITS_SECONDS - time.monotonic()))
                continue
            failures = 0 if self._read_some else failures + 1
            self._say(child_problem)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RETRY[min(failures, len(_RETRY) - 1)]):
                    await self._anew.wait()

    async def _follow_once(self) -> Problem | None:
        """Until the child ends: why it did; or until units appeared: None."""
        self._units = self._expanded()
        self._began = time.monotonic()
        units = [journal.which(name, self._user_manager) for name in self._units]
        if not self._cursor and not self._since:
            self._since = f"--since=@{time.time():.6f}"
            await self._read_history()
        after = f"--after-cursor={self._cursor}" if self._cursor else self._since
        command = ["journalctl", *journal.FORMAT, "--follow", "--no-tail", after, *units]
        try:
            child = await asyncio.create_subprocess_exec(
                *command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=children.environment()
            )
        except OSError as error:
            return Problem("journal", f"journalctl: {error.strerror or error}")
        assert child.stdout is not None and child.stderr is not None
        entries = asyncio.create_task(self._read_entries(child.stdout))
        words = asyncio.create_task(self._read_words(child.stderr))
        anew = asyncio.create_task(self._anew.wait())
        try:
            await asyncio.wait([entries, anew], return_when=asyncio.FIRST_COMPLETED)
            if anew.done():
                return None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await asyncio.shield(words)
            return self._problem or Problem("journal", "journalctl ended", "it is started again")
        finally:
            for task in (entries, words, anew):
                task.cancel()
            await asyncio.gather(entries, words, anew, return_exceptions=True)
            await children.end(child)

    def _expanded(self) -> tuple[str, ...]:
        return expanded(self._wanted.units, self._loaded())

    async def _read_history(self) -> None:
        wanted = self._wanted
        if wanted.lines < 1:
            return
        asked = ReadLog(self._units, wanted.lines, since=wanted.since, mentions=wanted.mentions)
        lines, problem = await read_log(asked, tuple, self._user_manager)
        for line in lines:
            self._add(line)
        if problem is not None and wanted.mentions:
            self._say(problem)

    async def _read_entries(self, stream: asyncio.StreamReader) -> None:
        rest = b""
        while data := await stream.read(65536):
            *complete, rest = (rest + data).split(b"\n")
            if len(rest) > LONGEST_ENTRY:  # its end is passed over as a line that is no JSON
                rest = b"-"
                self._left_out += 1
            for part in complete:
                line = journal.line_of(part)
                if line is not None and (self._mentions is None or self._mentions.search(line.text)):
                    self._add(line)
            await asyncio.sleep(0)

    async def _read_words(self, stream: asyncio.StreamReader) -> None:
        text = ""
        while data := await stream.read(4096):
            text = (text + data.decode("utf-8", "replace"))[-4096:]
            problem = journal.problem_of(text)
            if problem is not None and problem != self._problem:
                self._say(problem)

    # --- to the console ---------------------------------------------------------------------------------------------

    def _add(self, line: LogLine) -> None:
        if not self._read_some:
            self._read_some = True
            if self._problem is not None and "not permitted" not in self._problem.why:
                self._problem = None
        self._cursor = line.cursor or self._cursor
        if len(self._lines) >= KEPT_LINES:
            self._lines.popleft()
            self._left_out += 1
        self._lines.append(line)
        self._soon()

    def _say(self, problem: Problem) -> None:
        self._problem = problem
        self._soon()

    def _soon(self) -> None:
        if self._flush is None:
            pause = max(_GATHER_SECONDS, self._flushed + BATCH_SECONDS - time.monotonic())
            self._flush = asyncio.get_running_loop().call_later(pause, self._send_batch)

    def _send_batch(self) -> None:
        self._flush = None
        self._flushed = time.monotonic()
        if self._busy():
            self._soon()
            return
        batch: list[LogLine] = []
        if self._left_out and self._lines:
            batch.append(left_out(self._left_out, self._lines[0].at))
            self._left_out = 0
        while self._lines and len(batch) < BATCH_LINES:
            batch.append(self._lines.popleft())
        if batch or self._problem != self._told_problem:
            self._told_problem = self._problem
            self._send(LogUpdate(self._number, tuple(batch), self._problem))
        if self._lines:
            self._soon()


def left_out(count: int, at: float) -> LogLine:
    """The line that stands for those that were not sent: it has no unit and no cursor."""
    return LogLine(at=at, priority=5, text=f"… {count} {'line' if count == 1 else 'lines'} left out")
