"""Pure: any list as a table: columns that leave by priority, sorted, filtered, with marks.

A `ListColumn` says how one value of an item is written and sorted; `list_grid` makes the table that fits a width.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from console.fleet.model import Fleet
from console.view.cells import Cell, Cells, Column, Grid, Part, Row, cell, columns, part_columns, plain
from console.view.glyphs import Glyphs
from console.view.rows import View, unique, view_of

T = TypeVar("T")
Parts = tuple[Part, ...]
MARK_KEY = "mark"
_GUTTER = 2  # columns of the mark
LUXURY = 8


class Look(View, frozen=True, kw_only=True):
    """What cells need to know beside their item: the signs, the time, and which sources are stale."""

    now: float = 0.0


def look_of(fleet: Fleet | None, glyphs: Glyphs, now: float) -> Look:
    """The look of a fleet's values at the time `now`."""
    if fleet is None:
        return Look(glyphs=glyphs, now=now)
    view = view_of(fleet, glyphs)
    return Look(glyphs=glyphs, now=now, queue_stale=view.queue_stale, host_stale=view.host_stale)


@dataclass(frozen=True, kw_only=True)
class ListColumn(Generic[T]):
    """One column.

    `parts` gives safe text (console.view.cells.safe). `sort` gives what rows are ordered by, None for not known
    (those come last in both directions); without it the column cannot be sorted by. `leave` says who gives way when
    it is narrow: the highest first, 0 never. A `fill` column takes the columns that are left, at least `least`; those
    whose `leave` is LUXURY or more give way already where it would have less than `wish`.
    """

    key: str
    label: str
    parts: Callable[[T, Look], Parts]
    sort: Callable[[T], Any] | None = None
    descends: bool = False  # the order it has when it is chosen first
    right: bool = False
    leave: int = 0
    least: int = 1  # terminal columns, so that a value may grow a little without moving the others
    most: int = 40
    fill: bool = False
    wish: int = 0


@dataclass(frozen=True)
class Order:
    """Sorted by this column."""

    key: str = ""
    descending: bool = False


# --- filter ------------------------------------------------------------------------------------------------------


def words_of(text: str) -> tuple[str, ...]:
    """What a filter looks for: its words, without regard to case; all must be found, literally, in any order."""
    return tuple(text.casefold().split())


def matches(words: tuple[str, ...], text: str) -> bool:
    """All the words stand in the text."""
    folded = text.casefold()
    return all(word in folded for word in words)


def filtered(
    items: Sequence[T], words: tuple[str, ...], specs: Sequence[ListColumn[T]], look: Look
) -> tuple[Sequence[T], int]:
    """The items that match, in what any of their columns shows, and how many there are in all."""
    if not words:
        return items, len(items)
    kept = [item for item in items if matches(words, " ".join(plain(spec.parts(item, look)) for spec in specs))]
    return kept, len(items)


# --- order -------------------------------------------------------------------------------------------------------


def ordered(items: Sequence[T], specs: Sequence[ListColumn[T]], order: Order) -> Sequence[T]:
    """The items in this order; what is not known comes last; equal ones keep their order."""
    by = next((spec.sort for spec in specs if spec.key == order.key), None)
    if by is None:
        return items
    known = [(value, item) for item in items if (value := by(item)) is not None]
    known.sort(key=lambda pair: pair[0], reverse=order.descending)
    return [*(item for _, item in known), *(item for item in items if by(item) is None)]


def next_order(specs: Sequence[ListColumn[T]], shown: Collection[str], order: Order) -> Order:
    """The order after this one: by the next column that is shown and can be sorted by; after the last: none."""
    able = [spec for spec in specs if spec.sort is not None and spec.key in shown]
    place = next((number for number, spec in enumerate(able) if spec.key == order.key), -1)
    if place + 1 >= len(able):
        return Order()
    return Order(able[place + 1].key, able[place + 1].descends)


# --- layout ------------------------------------------------------------------------------------------------------

_cell = Cells()


def list_grid(
    items: Sequence[T],
    keys: Sequence[str],
    specs: Sequence[ListColumn[T]],
    width: int,
    look: Look,
    order: Order = Order(),
    marked: Collection[str] | None = None,
    before: dict[str, int] | None = None,
) -> Grid:
    """The table of the items, at most `width` columns wide; `keys` name the items.

    `marked` is None where rows cannot be marked. `before` holds the widths of the last time and is kept up to date:
    columns grow, and do not shrink until it is cleared, so that nothing wobbles.
    """
    if width < 1:
        return Grid()
    _cell.begin()
    made = [tuple(spec.parts(item, look) for spec in specs) for item in items]
    widths: dict[str, int] = {}
    for number, spec in enumerate(specs):
        label = columns(spec.label) + (1 if spec.sort is not None else 0)
        wish = max((part_columns(parts[number]) for parts in made), default=0)
        widths[spec.key] = max(label, spec.least) if spec.fill else max(label, spec.least, min(spec.most, wish))
        if before is not None and not spec.fill:
            widths[spec.key] = before[spec.key] = max(before.get(spec.key, 0), widths[spec.key])
    gutter = min(_GUTTER, width - 1) if marked is not None else 0
    room = width - gutter
    wish = max((spec.wish - widths[spec.key] for spec in specs if spec.fill), default=0)
    for spec in sorted((spec for spec in specs if spec.leave), key=lambda spec: -spec.leave):
        if _total(widths) + (max(0, wish) if spec.leave >= LUXURY else 0) <= room:
            continue
        del widths[spec.key]
    shown = [(number, spec) for number, spec in enumerate(specs) if spec.key in widths]
    over = _total(widths) - room
    for _, spec in reversed(shown):  # those that never leave are cut
        if over <= 0:
            break
        narrower = min(over, widths[spec.key] - 1)
        widths[spec.key] -= narrower
        over -= narrower
    filling = next((spec for _, spec in shown if spec.fill), None)
    if filling is not None:
        widths[filling.key] += max(0, room - _total(widths))
        gap = 1
    else:
        gap = min(3, 1 + max(0, room - _total(widths)) // max(1, len(shown) - 1)) if shown else 1
    heads = [] if not gutter else [Column(MARK_KEY, " " * gutter, gutter)]
    for place, (_, spec) in enumerate(shown):
        after = gap if place < len(shown) - 1 else 0
        by = spec.key == order.key
        sign = (look.glyphs.down if order.descending else look.glyphs.up) if by else ""
        head = cell(((spec.label + sign, "head"),), widths[spec.key], spec.right, after)
        heads.append(Column(spec.key, head.plain, widths[spec.key] + after, by))
    last = len(shown) - 1
    no_mark, mark = _cell((("", ""),), gutter), _cell(((look.glyphs.mark, "key"),), gutter)
    rows: list[Row] = []
    for key, parts in zip(unique(list(keys)), made, strict=True):
        cells: list[Cell] = []
        if gutter:
            cells.append(mark if marked and key in marked else no_mark)
        for place, (number, spec) in enumerate(shown):
            cells.append(_cell(parts[number], widths[spec.key], spec.right, gap if place < last else 0))
        rows.append(Row(key, tuple(cells)))
    return Grid(columns=tuple(heads), rows=tuple(rows))


def _total(widths: dict[str, int]) -> int:
    return sum(widths.values()) + max(0, len(widths) - 1)
