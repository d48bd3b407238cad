"""Pure: which roles and findings of a fleet are shown, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec

from console.fleet.model import Count, Fleet, QueueCounts, RoleStatus
from console.view.cells import Column, Grid, plain, safe_block
from console.view.findings import Entry
from console.view.glyphs import UNICODE, Glyphs, word
from console.view.listing import Order, matches
from console.view.rows import SPECS, WORST_FIRST, View, view_of

_UNREAD = ("trend", "ended", "states")  # bars and signs are not looked for; the words of the states are


def _queue(read: Callable[[QueueCounts], Count | float | None]) -> Callable[[RoleStatus], float | None]:
    def value(status: RoleStatus) -> float | None:
        found = read(status.queue) if status.queue is not None else None
        return found.n if isinstance(found, Count) else found

    return value


def _worst(status: RoleStatus) -> int:
    return min((WORST_FIRST.index(worker.state) for worker in status.workers), default=len(WORST_FIRST))


# By column: what roles are ordered by (None: not known, comes last), and whether the greatest is first at first.
ROLE_SORTS: dict[str, tuple[Callable[[RoleStatus], Any], bool]] = {
    "role": (lambda status: status.role.name.casefold(), False),
    "workers": (lambda status: status.running, True),
    "states": (_worst, False),
    "owner": (lambda status: " + ".join(status.owners).casefold(), False),
    "waiting": (_queue(lambda queue: queue.waiting), True),
    "later": (_queue(lambda queue: queue.scheduled), True),
    "oldest": (_queue(lambda queue: queue.oldest_waiting), True),
    "run": (_queue(lambda queue: queue.running), True),
    "stuck": (lambda status: status.stuck, True),
    "failed": (_queue(lambda queue: queue.failed), True),
    "done": (_queue(lambda queue: queue.done_per_minute), True),
    "failing": (_queue(lambda queue: queue.failed_per_minute), True),
    "last": (_queue(lambda queue: queue.last_finished), True),
    "memory": (lambda status: status.memory, True),
}


def chosen_roles(fleet: Fleet, words: tuple[str, ...], order: Order) -> Fleet:
    """The fleet with the roles in which all these words are read, in this order."""
    roles: Sequence[RoleStatus] = fleet.roles
    if words:
        view = view_of(fleet, UNICODE)
        roles = [status for status in roles if matches(words, _role_text(status, view))]
    by = ROLE_SORTS.get(order.key)
    if by is not None:
        known = [(value, status) for status in roles if (value := by[0](status)) is not None]
        known.sort(key=lambda pair: pair[0], reverse=order.descending)
        roles = [*(status for _, status in known), *(status for status in roles if by[0](status) is None)]
    return fleet if roles is fleet.roles else msgspec.structs.replace(fleet, roles=tuple(roles))


def _role_text(status: RoleStatus, view: View) -> str:
    shown = (plain(spec.forms[0](status, view)) for spec in SPECS if spec.key not in _UNREAD)
    return " ".join((*shown, *(word(worker.state) for worker in status.workers)))


def next_role_order(shown: Collection[str], order: Order) -> Order:
    """The order after this one: by the next column that is shown; after the last: the fleet's own."""
    able = [key for key in ROLE_SORTS if key in shown]
    place = able.index(order.key) if order.key in able else -1
    return Order(able[place + 1], ROLE_SORTS[able[place + 1]][1]) if place + 1 < len(able) else Order()


def chosen_findings(known: Sequence[Entry], words: tuple[str, ...], order: Order) -> tuple[Entry, ...]:
    """The findings in which all these words are read: by role, or as they are, the worst first."""
    kept = [entry for entry in known if not words or matches(words, _finding_text(entry))]
    if order.key:
        kept.sort(key=lambda entry: entry.finding.role.casefold(), reverse=order.descending)
    elif order.descending:
        kept.reverse()
    return tuple(kept)


def _finding_text(entry: Entry) -> str:
    found = entry.finding
    texts = (found.severity, found.role or "host", found.what, *found.evidence, found.remedy, found.next, found.code)
    return " ".join(safe_block(text) for text in texts)


def sorted_head(grid: Grid, order: Order, glyphs: Glyphs) -> Grid:
    """The table with the head of the column it is sorted by marked, and with an arrow where a blank is left for it."""
    if not order.key:
        return grid
    sign = glyphs.down if order.descending else glyphs.up

    def head(column: Column) -> Column:
        if column.key != order.key:
            return column
        label, name = column.label, column.label.strip()
        end = label.index(name) + len(name)
        if label[end : end + 2].isspace() and len(label) > end + 1:  # a blank after the arrow, too
            label = label[:end] + sign + label[end + 1 :]
        elif label.startswith(" "):
            label = label[: label.index(name) - 1] + name + sign + label[end:]
        return msgspec.structs.replace(column, label=label, sorted=True)

    return msgspec.structs.replace(grid, columns=tuple(head(column) for column in grid.columns))
