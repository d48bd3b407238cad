"""A list of jobs that may have millions of rows: pages side by side, of which a few hundred rows are kept.

A page is found by the key of the last row before it (keyset paging), so page 4 000 costs what page 1 costs. The keys
where pages start are remembered; pages that have scrolled out of sight are dropped and asked for again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

import msgspec

from console.errors import Problem, WorktopError
from console.fleet.model import Count, Job, JobPage, JobQuery

PAGE = 100  # rows
KEPT_AT_MOST = 1000  # rows
NEAR = 40  # rows from an end, within which the next page is asked for
REFRESH_EVERY = 2.0  # seconds
_SHARE = 10  # and no oftener than ten times what a refresh takes


class Page(msgspec.Struct, frozen=True):
    """A page as it was read, and the database's clock then."""

    jobs: tuple[Job, ...]
    next: str | None
    now: float


class Window:
    """Consecutive pages of one query. `starts[n]` is the key after which page n starts."""

    def __init__(self, query: JobQuery) -> None:
        self.query = msgspec.structs.replace(query, limit=PAGE, after=None)
        self.total: Count | None = None
        self.starts: list[str | None] = [None]
        self.first = 0  # number of the first page that is kept
        self.pages: list[Page] = []
        self._most = KEPT_AT_MOST

    @property
    def loaded(self) -> bool:
        return bool(self.pages)

    @property
    def more(self) -> bool:
        """Rows follow those that are kept."""
        return bool(self.pages) and self.pages[-1].next is not None

    @property
    def before(self) -> int:
        """About how many rows lie before those that are kept."""
        return self.first * PAGE

    def rows(self) -> Iterator[tuple[Job, float]]:
        """The jobs that are kept, each once, with the time its page was read."""
        newest: dict[str, float] = {}
        for page in self.pages:
            for job in page.jobs:
                newest[job.id] = max(newest.get(job.id, page.now), page.now)
        seen: set[str] = set()
        for page in self.pages:
            for job in page.jobs:
                # One that changed between two readings can be in both pages: the later reading is right.
                if job.id not in seen and newest[job.id] <= page.now:
                    seen.add(job.id)
                    yield job, page.now

    def numbers(self, first_row: int, last_row: int) -> tuple[int, int]:
        """Numbers of the pages that hold these rows (counted from the first row that is kept)."""
        edges: list[int] = []
        rows = 0
        for page in self.pages:
            rows += len(page.jobs)
            edges.append(rows)
        low = next((n for n, edge in enumerate(edges) if first_row < edge), max(0, len(edges) - 1))
        high = next((n for n, edge in enumerate(edges) if last_row < edge), max(0, len(edges) - 1))
        return self.first + low, self.first + high

    def wanted(self, first_row: int, last_row: int) -> int | None:
        """The page to ask for when these rows are looked at; None: what is needed is there."""
        if not self.pages:
            return 0
        rows = sum(len(page.jobs) for page in self.pages)
        if self.more and last_row >= rows - NEAR:
            return self.first + len(self.pages)
        if self.first > 0 and first_row < NEAR:
            return self.first - 1
        return None

    def put(self, number: int, read: list[Page]) -> None:
        """Keep these consecutive pages, the first of them page `number`.

        Pages behind them stay when they still start where these end; else they are dropped and asked for again.
        """
        if not read:
            return
        end = number + len(read)
        old = dict(enumerate(self.pages, self.first))
        same_end = end < len(self.starts) and self.starts[end] == read[-1].next
        self.starts = [
            *self.starts[: number + 1],
            *(page.next for page in read[:-1]),
            *(self.starts[end:] if same_end else [read[-1].next] if read[-1].next is not None else []),
        ]
        for place, page in enumerate(read, number):
            old[place] = page
        last = end - 1
        while same_end and last + 1 in old:
            last += 1
        first = number
        while first - 1 in old:
            first -= 1
        forward = number > self.first  # the far end is dropped
        self.first, self.pages = first, [old[n] for n in range(first, last + 1)]
        while sum(len(page.jobs) for page in self.pages) > self._most and len(self.pages) > len(read):
            if forward:
                self.pages.pop(0)
                self.first += 1
            else:
                self.pages.pop()


class Loader:
    """Asks for the pages of one query after another, one question at a time; the newest query wins."""

    def __init__(
        self,
        ask: Callable[[JobQuery], Awaitable[JobPage]],
        run: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        changed: Callable[[], None],
        database_now: Callable[[], float],
    ) -> None:
        """`run` starts a task and looks after what it raises; `changed` is called when there is something to show."""
        self._ask, self._run, self._changed, self._now = ask, run, changed, database_now
        self.window = Window(JobQuery())
        self.query = self.window.query  # what is asked for; the window may still show the one before
        self.problem: Problem | None = None
        self.version = 0  # counts what changed
        self.asked = 0  # pages that were asked for
        self._task: asyncio.Task[None] | None = None
        self._read_at: float | None = None  # monotonic
        self._tried_at: float | None = None
        self._pause = REFRESH_EVERY

    @property
    def busy(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def waiting(self) -> bool:
        """The first page of the query is not there yet."""
        return self.window.query != self.query or not self.window.loaded

    @property
    def age(self) -> float | None:
        """Seconds since the rows were read; None: never."""
        return None if self._read_at is None else time.monotonic() - self._read_at

    def start(self, query: JobQuery, *, clear: bool, after: float = 0.0) -> None:
        """Ask for this query from its first page on, `after` seconds from now unless another one supersedes it.

        `clear`: what is shown goes at once; else it stays until the answer is there.
        """
        self.cancel()
        wanted = Window(query)
        self.query = wanted.query
        self.problem = None
        if clear:
            self.window, self._read_at = Window(query), None
        self._begin(self._first(wanted, after))
        self._change()

    def look(self, first_row: int, last_row: int) -> None:
        """These rows are looked at: ask for the page beyond them when it is near and nothing else is asked."""
        if self.busy or self.waiting or self.problem is not None:
            return
        number = self.window.wanted(first_row, last_row)
        if number is not None:
            self._begin(self._read(self.window, number, number))

    def refresh(self, first_row: int, last_row: int, *, now: bool = False) -> None:
        """Read the pages of these rows again, when it is time to (or `now`) and nothing else is asked."""
        if self.busy and not now:
            return
        if not now and self._tried_at is not None and time.monotonic() - self._tried_at < self._pause:
            return
        self.cancel()
        if self.waiting:
            self._begin(self._first(Window(self.query), 0.0))
        else:
            low, high = self.window.numbers(first_row, last_row)
            self._begin(self._read(self.window, low, high))

    def cancel(self) -> None:
        """What is being asked is no longer wanted."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._task = self._run(work)

    async def _first(self, wanted: Window, after: float) -> None:
        if after > 0:
            await asyncio.sleep(after)
        await self._read(wanted, 0, 0)

    async def _read(self, window: Window, low: int, high: int) -> None:
        """Read the pages `low` to `high` into the window and show it; what fails is kept as the problem."""
        began = time.monotonic()
        read: list[Page] = []
        start = window.starts[low]
        total = window.total
        try:
            for number in range(low, high + 1):
                self.asked += 1
                answer = await self._ask(msgspec.structs.replace(window.query, after=start))
                if number == 0 or answer.total is not None:
                    total = answer.total
                read.append(Page(answer.jobs, answer.next, self._now()))
                start = answer.next
                if start is None:
                    break
        except WorktopError as error:
            self._done()
            self.problem = error.problem
            if window is not self.window:  # rows of another query would be taken for this one's
                self.window, self._read_at = Window(self.query), None
            self._pause = REFRESH_EVERY
            self._change()
            return
        window.put(low, read)
        window.total = total
        self.window, self.problem = window, None
        self._done()
        self._read_at = self._tried_at
        self._pause = max(REFRESH_EVERY, _SHARE * (time.monotonic() - began))
        self._change()

    def _done(self) -> None:
        self._task = None  # before it is shown: what is shown may ask for the next page
        self._tried_at = time.monotonic()

    def _change(self) -> None:
        self.version += 1
        self._changed()
