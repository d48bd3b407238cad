"""What happened in each of the last minutes, kept while the console runs, over reconnects as well.

How many ended is read from the table, back to an hour. How many waited is known only for the minutes in which the
console looked: a row does not tell when it waited before it was retried, and rows are deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from console.fleet.model import QueueCounts, Trend, TrendPoint
from console.queue.ladder import Asked

SHORTEST, LONGEST = 15, 60  # minutes of a trend
AT_LEAST = 2  # minutes that are always read again: the running one and the two before, where late ends may appear
FIRST_READ = 0.050  # seconds of the database for the first reading
LATER_READ = 0.0075  # and for each of the others
ENTRY = 0.25e-6  # seconds for an index entry where pages are all visible; rows that changed lately cost tenfold
MEASURED_FROM = 2_000  # entries: what takes less says nothing about one
ROW_CAP = 60_000  # ended jobs of one queue that one reading visits


class Trends:
    """The minutes of every asked (queue, types)."""

    def __init__(self) -> None:
        self._ended: dict[tuple[Asked, int], dict[str, int]] = {}  # whole minutes: done and failed
        self._waited: dict[tuple[Asked, int], tuple[int | None, float | None]] = {}
        self._kept: set[Asked] = set()  # the minutes of these go back to the first reading
        self._per_minute: float | None = None  # rows that end, of all asked together
        self._entry = ENTRY  # seconds, as last measured

    def minutes(self, asked: Sequence[Asked]) -> list[int]:
        """How many minutes back to read; one reading after the other."""
        if self._per_minute is None or not set(asked) <= self._kept:
            self._kept = set(asked)
            return [AT_LEAST, LONGEST]
        return [self._affordable(LATER_READ)]

    def longest(self, minutes: int) -> int:
        """Of so many minutes those that a first reading can afford, after a reading of a few."""
        return min(minutes, self._affordable(FIRST_READ)) if minutes > AT_LEAST else minutes

    def ended(
        self, asked: Sequence[Asked], minutes: int, now: float, rows: Sequence[Sequence[Any]], seconds: float = 0.0
    ) -> None:
        """Take in a reading of Reads.ended, which took so long: (place, kind, start of the minute, number, looked at,
        clock)."""
        running = _minute(now)
        complete_from = dict.fromkeys(asked, running - minutes)
        found: dict[tuple[Asked, int], dict[str, int]] = {}
        oldest: dict[tuple[int, str], int] = {}
        for place, kind, moment, number, of_kind, _ in rows:
            minute = int(moment) // 60
            found.setdefault((asked[place], minute), {})[kind] = number
            if of_kind >= ROW_CAP:
                oldest[place, kind] = min(minute, oldest.get((place, kind), minute))
        for (place, _), minute in oldest.items():
            complete_from[asked[place]] = max(complete_from[asked[place]], minute + 1)
        for one, first in complete_from.items():
            for minute in range(first, running):
                self._ended[one, minute] = {"done": 0, "failed": 0} | found.get((one, minute), {})
        entries = sum({(row[0], row[1]): row[4] for row in rows}.values())
        self._per_minute = entries / (minutes + (now / 60 - running))
        if entries >= MEASURED_FROM:
            self._entry = max(ENTRY, seconds / entries)
        self._forget(running)

    def polled(self, counts: Iterable[QueueCounts], now: float) -> None:
        """Take in what waits now; the last look in a minute is that minute's."""
        for one in counts:
            known = one.waiting.n if one.waiting.kind == "exact" else None
            self._waited[(one.queue, one.types), _minute(now)] = (known, one.oldest_waiting)
        self._forget(_minute(now))

    def trends(self, asked: Sequence[Asked], now: float, done: bool, failed: bool) -> tuple[Trend, ...]:
        """The trends, up to the running minute, in which what has ended is not yet known."""
        return tuple(self._trend(one, _minute(now), done, failed) for one in asked)

    def _trend(self, one: Asked, running: int, done: bool, failed: bool) -> Trend:
        known = [minute for kept in (self._ended, self._waited) for key, minute in kept if key == one]
        length = min(LONGEST, max(SHORTEST, running - min(known, default=running)))
        points = []
        for minute in range(running - length, running + 1):
            waiting, oldest = self._waited.get((one, minute), (None, None))
            # a reading that came later may be of the next minute, and know this one already
            ended = self._ended.get((one, minute), {}) if minute < running else {}
            points.append(
                TrendPoint(
                    at=minute * 60.0,
                    waiting=waiting,
                    oldest=oldest,
                    done=ended.get("done") if done else None,
                    failed=ended.get("failed") if failed else None,
                )
            )
        return Trend(queue=one[0], types=one[1], points=tuple(points))

    def _affordable(self, seconds: float) -> int:
        per_minute = max((self._per_minute or 0.0) * self._entry, 1e-12)
        return int(min(LONGEST, max(AT_LEAST, seconds / per_minute - 1)))

    def _forget(self, running: int) -> None:
        oldest = running - LONGEST
        self._ended = {key: value for key, value in self._ended.items() if key[1] >= oldest}
        self._waited = {key: value for key, value in self._waited.items() if key[1] >= oldest}


def _minute(moment: float) -> int:
    return int(moment // 60)
