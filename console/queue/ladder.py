"""How well each number of rows is known, and what it may cost: exact, at least 10 000, or the server's estimate.

A poll counts again what is small, and of what is large only as much as a share of index entries allows, the longest
uncounted first. So the time of a poll does not grow with the table; a large count is a few polls old at most.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from console.fleet.model import Count
from console.queue.rows import AGES, COUNT_CAP, COUNT_COLUMNS, count_of

Asked = tuple[str, tuple[str, ...]]  # a queue, and the types of its jobs that count; () : all

SHARE = 30_000  # index entries for large counts in one poll, about 5 ms where pages are all visible
FIRST_CAP = 1_000  # rows that the first counts go to
LEAST_CAP = 100  # where that took too long
FIRST_TIME = 0.04  # seconds that the first counts may take, for them to go on to COUNT_CAP at once
LEAST_SHARE = 1_500  # where each entry needs its row
SMALL = 30  # a count of less than this part of the share is made at every poll
TIME = 0.008  # seconds that the counts of one poll may take the database; the share follows
ESTIMATE_FROM = 2 * COUNT_CAP  # an estimate that is lower is not worth more than a count up to the cap


class _Seen(msgspec.Struct):
    # COUNTED: how many count, among how many; AGES: since when, or None, and how many were looked at in vain
    number: Sequence[Any] | None
    turn: int

    @property
    def entries(self) -> int:
        return int(self.number[1] or 0) if self.number else 0


class Ladder:
    """The numbers of every asked (queue, types), as they were last counted."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Asked, str], _Seen] = {}
        self._turn = 0
        self._share = SHARE
        self._cut: set[tuple[Asked, str]] = set()  # counts of the first turn that stopped at its cap
        self._first_cap = FIRST_CAP
        self.cap = FIRST_CAP  # how far to count now

    def wanted(self, asked: Sequence[Asked], estimated: Collection[Asked] = ()) -> list[list[str]]:
        """For each of `asked` the columns of COUNT_COLUMNS to find out now. What is done of `estimated` is left out."""
        self._turn += 1
        self._cut = set()
        self.cap = self._first_cap if self._turn == 1 else COUNT_CAP
        every = [(one, name) for one in asked for name in COUNT_COLUMNS if not (name == "done" and one in estimated)]
        kept = set(every)
        self._seen = {key: seen for key, seen in self._seen.items() if key in kept}
        large = [key for key in every if key in self._seen and self._seen[key].entries > self._share // SMALL]
        left_out, share = set(large), self._share
        for key in sorted(large, key=lambda key: self._seen[key].turn):
            size = self._seen[key].entries
            if size > share and len(left_out) < len(large):  # the first always, however large
                continue
            share -= size
            left_out.discard(key)
        return _by_asked(asked, kept - left_out)

    def rest(self, asked: Sequence[Asked], seconds: float) -> list[list[str]]:
        """What to count at once, further than the first turn went, after it has taken the database so long; or []."""
        cut, self._cut = self._cut, set()
        if not cut or seconds > FIRST_TIME:
            return []
        self.cap = COUNT_CAP
        return _by_asked(asked, cut)

    def gave_up(self) -> None:
        """Counting took the database too long: ask for less."""
        self._share = LEAST_SHARE
        if not self._seen:
            self._turn, self._first_cap = 0, LEAST_CAP

    def took(self, seconds: float) -> None:
        """Adapt to what the last counts took the database: rows that changed lately cost tenfold."""
        if self._turn > 1:  # the first has counted everything
            change = min(1.5, max(0.3, TIME / max(seconds, 1e-6)))
            self._share = int(min(SHARE, max(LEAST_SHARE, self._share * change)))

    def read(self, one: Asked, row: Sequence[Any], now: float) -> Mapping[str, Any]:
        """The values of COUNT_COLUMNS from a row, completed with what was found out before; ages are seconds."""
        found = dict(zip(COUNT_COLUMNS, row, strict=True))
        for name in COUNT_COLUMNS:
            key, value = (one, name), found[name]
            if value is not None or key not in self._seen:
                if value is not None:
                    value = self._aged(value, now) if name in AGES else self._widened(key, value)
                self._seen[key] = _Seen(value, self._turn)
            number = self._seen[key].number
            if name in AGES:
                found[name] = now - number[0] if number and number[0] is not None else None
            else:
                found[name] = number
        return found

    def _aged(self, age: Sequence[float | None], now: float) -> Sequence[float | None]:
        seconds, in_vain = age
        return (None if seconds is None else now - seconds, 2 * (in_vain or 0))  # looked for twice

    def _widened(self, key: tuple[Asked, str], number: Sequence[int]) -> Sequence[int]:
        """A count that stopped at a lower cap than COUNT_CAP says no more than one that stopped there."""
        if number[1] <= self.cap:
            return number
        if self.cap < COUNT_CAP:
            self._cut.add(key)
        return (number[0], max(number[1], COUNT_CAP + 1))


def _by_asked(asked: Sequence[Asked], keys: Collection[tuple[Asked, str]]) -> list[list[str]]:
    return [[name for name in COUNT_COLUMNS if (one, name) in keys] for one in asked]


def estimated(plan: Mapping[str, Any], asked: Sequence[Asked]) -> tuple[dict[Asked, int], set[str]]:
    """The rows that the plan of Reads.estimates expects for each of `asked`, and the tables they are in."""
    nodes = [node for node in plan.get("Plans", ()) if node.get("Parent Relationship") == "InitPlan"]
    if len(nodes) != len(asked):
        return {}, set()
    return {one: int(node["Plan Rows"]) for one, node in zip(asked, nodes, strict=True)}, _tables(plan)


def _tables(node: Mapping[str, Any]) -> set[str]:
    below = [name for child in node.get("Plans", ()) for name in _tables(child)]
    return {*below, *([node["Relation Name"]] if "Relation Name" in node else [])}


def best(counted: Sequence[int] | None, estimate: int | None) -> Count | None:
    """The best that is known: a count below the cap, else the estimate, else "at least"."""
    count = None if counted is None else count_of(counted)
    if (count is None or count.kind != "exact") and estimate is not None and estimate > COUNT_CAP:
        return Count(estimate, "estimate")
    return count
