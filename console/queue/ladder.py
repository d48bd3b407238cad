"""How well each number of rows is known, and what it may cost: exact, at least 10 000, or the server's estimate.

A poll counts again what is small, and of what is large only as much as a share of index entries allows, the longest
uncounted first. So the time of a poll does not grow with the table; a large count is a few polls old at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from console.fleet.model import Count
from console.queue.rows import COUNT_CAP, COUNT_COLUMNS, COUNTED, count_of

Asked = tuple[str, tuple[str, ...]]  # a queue, and the types of its jobs that count; () : all

SHARE = 30_000  # index entries for large counts in one poll, about 5 ms where pages are all visible
FIRST_CAP = 1_000  # rows that a first count goes to where counting is slow; the next ones go to COUNT_CAP
LEAST_SHARE = 1_500  # where each entry needs its row
SMALL = 30  # a count of less than this part of the share is made at every poll
TIME = 0.008  # seconds that the counts of one poll may take the database; the share follows
ESTIMATE_FROM = 2 * COUNT_CAP  # an estimate that is lower is not worth more than a count up to the cap


class _Seen(msgspec.Struct):
    number: Sequence[int] | None  # how many count, among how many
    turn: int

    @property
    def entries(self) -> int:
        return self.number[1] if self.number else 0


class Ladder:
    """The numbers of every asked (queue, types), as they were last counted.

    `slow`: each entry needs its row, because the types of jobs are looked at.
    """

    def __init__(self, slow: bool = False) -> None:
        self._slow = slow
        self._seen: dict[tuple[Asked, str], _Seen] = {}
        self._turn = 0
        self._share = SHARE

    def wanted(self, asked: Sequence[Asked]) -> list[list[str]]:
        """For each of `asked` the columns of COUNTED to count now."""
        self._turn += 1
        every = [(one, name) for one in asked for name in COUNTED]
        self._seen = {key: seen for key, seen in self._seen.items() if key in set(every)}
        large = [key for key in every if key in self._seen and self._seen[key].entries > self._share // SMALL]
        left_out, share = set(large), self._share
        for key in sorted(large, key=lambda key: self._seen[key].turn):
            size = self._seen[key].entries
            if size > share and len(left_out) < len(large):  # the first always, however large
                continue
            share -= size
            left_out.discard(key)
        return [[name for name in COUNTED if (one, name) not in left_out] for one in asked]

    @property
    def cap(self) -> int:
        """How far to count now."""
        return FIRST_CAP if self._slow and self._turn <= 1 else COUNT_CAP

    def gave_up(self) -> None:
        """Counting took the database too long: ask for less."""
        self._slow, self._share = True, LEAST_SHARE
        if not self._seen:
            self._turn = 0

    def took(self, seconds: float) -> None:
        """Adapt to what the last counts took the database: rows that changed lately cost tenfold."""
        if self._turn > 1:  # the first has counted everything
            change = min(1.5, max(0.3, TIME / max(seconds, 1e-6)))
            self._share = int(min(SHARE, max(LEAST_SHARE, self._share * change)))

    def read(self, one: Asked, row: Sequence[Any]) -> Mapping[str, Any]:
        """The values of COUNT_COLUMNS from a row, completed with what was counted before."""
        found = dict(zip(COUNT_COLUMNS, row, strict=True))
        for name in COUNTED:
            key = (one, name)
            if (counted := found[name]) is not None or key not in self._seen:
                if counted is not None and counted[1] > self.cap:
                    counted = [counted[0], max(counted[1], COUNT_CAP + 1)]
                self._seen[key] = _Seen(counted, self._turn)
            found[name] = self._seen[key].number
        return found


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
