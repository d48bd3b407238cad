"""A screen that is one list: the habits of all of them, in one place.

To build a list screen, derive from `ListScreen[T]`, T being the type of an item, and say

    SCOPES     what its keys are: (*LIST_SCOPES, "workers"); add the screen's own commands to commands.py under a scope
               of its own and BINDINGS = [*LIST_BINDINGS, *bindings("workers")]
    columns()  the columns (console.view.listing.ListColumn), made in a pure module of console/view
    items()    the items of a fleet, or None while they are not known; cheap and pure, called on every refresh
    key_of()   the identity of an item: cursor, marks and scroll position follow it
    heading()  what stands at the left of the title line: (("WORKERS", "head"),)
    nothing()  why the list is empty, and the next key: one sentence
    open()     Enter: a level in.   describe() d (the same by default), show_log() l, copied() y, doings() x

and nothing of filter, marks, sorting, copying, pause or the mouse. screens/workers.py is an example.

A list whose rows come from a question (`console.tui.asked.Asked`): keep the Asked in the screen, make it in on_mount,
ask in on_mount, `asked_again` (ctrl+r) and when filter or order change; `items` returns what it has; `failure` returns
its problem and `asking` whether an answer is awaited: the title says so. While `self.paused`, do not ask.
A list that is sorted or filtered at the source: override `arranged` (and return the items as they are), set `order`
and react in `order_changed`, `filter_changed`; `total` is the number in the match count ("7 of 212"), and `near_end`
is called when the cursor comes to the last rows: load the next page there. `present` says which marks are still true.
More widgets: override `above` and `below`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import DataTable, Input

from console.errors import Problem
from console.fleet.model import Fleet
from console.text import grouped
from console.tui.commands import Scope, bindings
from console.tui.screens.base import ConsoleScreen
from console.tui.widgets.filter import FilterBar
from console.tui.widgets.line import Line
from console.tui.widgets.table import Table
from console.view.cells import Grid, Part, cell, part_columns, plain, safe, wrap
from console.view.listing import (
    MARK_KEY,
    ListColumn,
    Look,
    Order,
    filtered,
    list_grid,
    look_of,
    next_order,
    ordered,
    words_of,
)

T = TypeVar("T")

LIST_SCOPES: tuple[Scope, ...] = ("console", "common", "list", "rows", "table")
LIST_BINDINGS: list[BindingType] = [*bindings("common", "list", "rows")]
_NEAR_END = 5  # rows


class ListScreen(ConsoleScreen, Generic[T]):
    """A title, a filter, and a table of items."""

    SCOPES: ClassVar[tuple[Scope, ...]] = LIST_SCOPES
    BINDINGS: ClassVar[list[BindingType]] = LIST_BINDINGS

    def __init__(self) -> None:
        super().__init__()
        self.order = Order()
        self.marked: set[str] = set()
        self._gone = 0  # marks dropped because their rows vanished
        self._items: Sequence[T] = ()
        self._shown: Sequence[T] = ()
        self._widths: dict[str, int] = {}
        self._laid_out_for = 0
        self.title_line = Line(id="title")
        self.filter_bar = FilterBar()
        self.table = Table(id="list")
        self.message = Line(id="message")

    # --- what a list says of itself -----------------------------------------------------------------------------

    def columns(self) -> tuple[ListColumn[T], ...]:
        """The columns, in their order."""
        raise NotImplementedError

    def items(self, fleet: Fleet | None) -> Sequence[T] | None:
        """The items; None while they are not known."""
        raise NotImplementedError

    def key_of(self, item: T) -> str:
        """The identity of an item."""
        raise NotImplementedError

    def heading(self) -> tuple[Part, ...]:
        """The left end of the title line."""
        raise NotImplementedError

    def nothing(self, fleet: Fleet | None) -> str:
        """Why there are no items, and the next key."""
        return "nothing here; ctrl+r asks again"

    def open(self, item: T) -> None:
        """Enter."""

    def describe(self, item: T) -> None:
        """d: everything about the item."""
        self.open(item)

    def show_log(self, item: T) -> None:
        """l: the log of the item."""

    def summary(self, items: Sequence[T], look: Look) -> tuple[Part, ...]:
        """What follows the heading: how many of which state; a part each, those that do not fit are left out."""
        return ()

    def failure(self) -> Problem | None:
        """Why there is nothing, or nothing newer."""
        return None

    def asking(self) -> bool:
        """An answer is awaited."""
        return False

    def total(self, items: Sequence[T]) -> int:
        """How many there are without the filter."""
        return len(items)

    def arranged(self, items: Sequence[T], look: Look) -> Sequence[T]:
        """The items that match the filter, in order."""
        specs = self.columns()
        kept, _ = filtered(items, words_of(self.filter_bar.text), specs, look)
        return ordered(kept, specs, self.order)

    def present(self, items: Sequence[T]) -> Collection[str]:
        """The keys of what still exists: marks on others are dropped."""
        return {self.key_of(item) for item in items}

    def order_changed(self) -> None:
        """The person sorted."""

    def filter_changed(self) -> None:
        """The person filtered."""

    def near_end(self) -> None:
        """The cursor has come to the last rows."""

    def above(self) -> Iterable[Line | Table | FilterBar]:
        """Widgets between title and table."""
        return ()

    def below(self) -> ComposeResult:
        """Widgets between table and footer."""
        yield from ()

    # --- showing ---------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield self.head_line
        yield self.banner
        yield self.title_line
        yield from self.above()
        yield self.filter_bar
        yield self.message
        yield self.table
        yield from self.below()
        yield self.foot_line

    def on_mount(self) -> None:
        self.set_focus(self.table)

    @property
    def look(self) -> Look:
        """What cells need to know."""
        app = self.console_app
        now = app.clock() if self.paused is None else self.paused.since
        return look_of(self.shown_fleet, app.glyphs, now)

    def show_body(self, fleet: Fleet | None) -> None:
        app, look = self.console_app, self.look
        if self.paused is None or not self._items:
            known = self.items(fleet)
            self._items = known if known is not None else ()
            if known is not None:
                self._drop_marks(known)
        items = self._items
        self._shown = self.arranged(items, look)
        grid = self._grid(look)
        self.table.show(grid, app.tones)
        self._show_title(items, look)
        self._show_message(fleet, items)
        self.filter_bar.count(len(self._shown), self.total(items), app.tones)

    def _grid(self, look: Look) -> Grid:
        width = self.size.width - (1 if len(self._shown) + 1 > self.body_height - 1 else 0)
        if width != self._laid_out_for:
            self._laid_out_for = width
            self._widths.clear()
        keys = [self.key_of(item) for item in self._shown]
        return list_grid(
            self._shown, keys, self.columns(), width, look, self.order, frozenset(self.marked), self._widths
        )

    def _drop_marks(self, items: Sequence[T]) -> None:
        if not self.marked:
            return
        left = self.marked & set(self.present(items))
        self._gone += len(self.marked) - len(left)
        self.marked = left

    def _show_title(self, items: Sequence[T], look: Look) -> None:
        app = self.console_app
        parts: list[Part] = [*self.heading()]
        failure = self.failure()
        if failure is not None:
            parts.append((f"  {app.glyphs.bad} {safe(failure.line(), 160)}", "bad"))
        elif self.asking():
            parts.append((f"  asking{'…' if app.glyphs.unicode else '...'}", "note"))
        right: list[Part] = []
        if self.marked or self._gone:
            shown = {self.key_of(item) for item in self._shown}
            hidden = len(self.marked - shown)
            text = f"{grouped(len(self.marked))} marked"
            text += f" ({hidden} not shown)" if hidden else ""
            text += f", {self._gone} gone" if self._gone else ""
            right.append((text, "key"))
        width = self.size.width
        room = width - part_columns(tuple(right)) - (1 if right else 0)
        for text, tone in self.summary(items, look) if items else ():
            if part_columns(tuple(parts)) + part_columns(((text, tone),)) + 2 > room:
                break
            parts.append((f"  {text}", tone))
        left = cell(tuple(parts), max(0, room), gap=1 if right and room >= 0 else 0)
        self.title_line.show((cell((*left.parts, *right), width).parts,), app.tones)

    def _show_message(self, fleet: Fleet | None, items: Sequence[T]) -> None:
        app = self.console_app
        dots = "…" if app.glyphs.unicode else "..."
        if self._shown:
            text = ""
        elif items:
            text = "no row matches the filter; Esc ends it"
        elif self.failure() is not None:
            text = "ctrl+r asks again"
        elif fleet is None or self.asking():
            text = f"asking{dots}   q quits, ? help"
        else:
            text = self.nothing(fleet)
        lines = wrap(((safe(text), "note"),), self.size.width) if text else []
        self.message.show(tuple(lines), app.tones)

    # --- the selection -------------------------------------------------------------------------------------------

    @property
    def current(self) -> T | None:
        """The item under the cursor."""
        key = self.table.cursor_key
        return next((item for item in self._shown if self.key_of(item) == key), None)

    @property
    def selection(self) -> tuple[T, ...]:
        """The marked items, also those the filter hides; without marks the one under the cursor."""
        if self.marked:
            return tuple(item for item in self._items if self.key_of(item) in self.marked)
        current = self.current
        return () if current is None else (current,)

    def selection_text(self) -> str:
        if self.marked:
            return f"{len(self.marked)} marked"
        current = self.current
        return "" if current is None else safe(self.key_of(current), 60)

    def copied(self) -> str:
        keys = {self.key_of(item) for item in self.selection}
        look, specs = self.look, self.columns()
        rows = [item for item in self._items if self.key_of(item) in keys]
        return "\n".join("\t".join(plain(spec.parts(item, look)).strip() for spec in specs) for item in rows)

    # --- commands --------------------------------------------------------------------------------------------

    def action_open(self) -> None:
        """A level in."""
        if (item := self.current) is not None:
            self.open(item)

    def action_describe(self) -> None:
        """Everything about the row."""
        if (item := self.current) is not None:
            self.describe(item)

    def action_log(self) -> None:
        """The log of the row."""
        if (item := self.current) is not None:
            self.show_log(item)

    def action_mark(self) -> None:
        """Mark the row or take its mark away, and go on to the next."""
        key = self.table.cursor_key
        if key is None:
            return
        self.marked ^= {key}
        self._gone = 0
        if self.table.cursor_row < self.table.row_count - 1:
            self.table.action_cursor_down()
        self.show()

    def action_mark_all(self) -> None:
        """Mark all rows shown; when all are, none."""
        shown = {self.key_of(item) for item in self._shown}
        self.marked = self.marked - shown if shown <= self.marked else self.marked | shown
        self._gone = 0
        self.show()

    def action_sort(self) -> None:
        """Sort by the next column."""
        shown = {column.key for column in self.table.grid.columns}
        self._sort(next_order(self.columns(), shown, self.order))

    def action_invert(self) -> None:
        """Sort the other way round."""
        if self.order.key:
            self._sort(Order(self.order.key, not self.order.descending))

    def _sort(self, order: Order) -> None:
        self.order = order
        self.order_changed()
        self.show()

    def action_filter(self) -> None:
        """Let the person type a filter."""
        self.filter_bar.open()
        self.show()

    def action_filter_done(self) -> None:
        """Keep the filter, go to the rows."""
        if not self.filter_bar.text:
            self.filter_bar.close()
        self.set_focus(self.table)
        self.show()

    def back(self) -> bool:
        if self.filter_bar.display:
            self.filter_bar.close()
            self.set_focus(self.table)
            self.filter_changed()
            self.show()
            return True
        if self.marked or self._gone:
            self.marked, self._gone = set(), 0
            self.show()
            return True
        return False

    # --- events ----------------------------------------------------------------------------------------------

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.filter_changed()
        self.show()

    @on(DataTable.RowSelected, "#list")
    def _clicked(self) -> None:
        self.action_open()

    @on(DataTable.HeaderSelected, "#list")
    def _head_clicked(self, event: DataTable.HeaderSelected) -> None:
        key = str(event.column_key.value)
        spec = next((spec for spec in self.columns() if spec.key == key and spec.sort is not None), None)
        if key == MARK_KEY:
            self.action_mark_all()
        elif self.order.key == key:
            self.action_invert()
        elif spec is not None:
            self._sort(Order(key, spec.descends))

    @on(DataTable.RowHighlighted, "#list")
    def _moved(self) -> None:
        if self.table.cursor_row >= self.table.row_count - _NEAR_END:
            self.near_end()
