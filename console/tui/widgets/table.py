"""A table that is changed by difference: what did not change is not touched, and nothing unseen is painted.

DataTable repaints itself whole for every changed cell. Here its refresh is swallowed while a difference is applied,
and then the changed rows that can be seen are repainted, in one call. The cursor and the scroll position follow the
rows' keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar, Self

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.geometry import Region
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from textual.widgets import DataTable
from textual.widgets.data_table import RowKey

from console.tui.commands import bindings
from console.tui.theme import paint
from console.tui.widgets.selecting import painted, selected
from console.view.cells import Column, Grid, Tone


@lru_cache(maxsize=2048)
def _place(row: int, column: int, x: int, line: int, outside: bool = False) -> Style:
    """What DataTable looks for where the mouse is; and Textual, to select text: character `x` of the line."""
    place: dict[str, object] = {"row": row, "column": column, "offset": (x, line)}
    return Style.from_meta(place | {"out_of_bounds": True} if outside else place)


@dataclass(frozen=True)
class _Anchor:
    cursor: list[str]  # keys the cursor may stand on, best first
    held: str | None  # key of the row whose place on the screen is kept
    line: int  # that place


class Table(DataTable[str]):
    """A table of a Grid with a row cursor. DataTable itself knows of each row only its key, as its first cell."""

    ALLOW_SELECT = True
    _applying = False  # a difference is being applied: refresh is swallowed

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("table")]

    DEFAULT_CSS = """
    Table {
        background: $background;
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        & > .datatable--header { background: $background; text-style: bold; }
        & > .datatable--odd-row, & > .datatable--even-row { background: $background; }
        &:focus { background-tint: transparent; }
        &:focus > .datatable--header { background-tint: transparent; }
        &:nocolor:focus > .datatable--cursor { text-style: reverse; }
        &:nocolor > .datatable--cursor { text-style: none; }
    }
    """

    class Edge(Message):
        """The cursor was asked to leave the table at its top (-1) or bottom (1)."""

        def __init__(self, table: Table, direction: int) -> None:
            super().__init__()
            self.table = table
            self.direction = direction

        @property
        def control(self) -> Table:
            return self.table

    def __init__(self, *, id: str, header: bool = True, keep_first: bool = False) -> None:
        """With `keep_first` the cursor stays on the first row, whichever that is, until a person moves it."""
        super().__init__(
            id=id,
            show_header=header,
            show_row_labels=False,
            cursor_type="row",
            cell_padding=0,
            cursor_foreground_priority="renderable",
            cursor_background_priority="css",
        )
        self._grid = Grid()
        self._tones: dict[Tone, Style] = {}
        self._keep_first = keep_first
        self._moved = False  # by a person
        self._base = Style.null()
        self.repainted: list[str] = []  # keys of the rows that the last difference repainted

    @property
    def grid(self) -> Grid:
        """What is shown."""
        return self._grid

    # --- showing -----------------------------------------------------------------------------------------------

    def show(self, grid: Grid, tones: dict[Tone, Style]) -> bool:
        """Make the table show `grid`; True when anything had to be painted."""
        self.repainted = []
        if grid == self._grid and tones is self._tones:
            return False
        old, self._grid = self._grid, grid
        if grid.columns != old.columns or tones is not self._tones:
            self._tones = tones
            self._rebuild(old, grid)
        elif [row.key for row in grid.rows] != [row.key for row in old.rows]:
            self._restructure(old, grid)
        else:
            self._update(old, grid)
        return True

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        if self._applying:
            return self
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    # DataTable goes through a Rich renderable for each cell, half a millisecond every time: a row goes straight to
    # segments here. The header, which hardly ever changes, is left to it.

    def render_lines(self, crop: Region) -> list[Strip]:
        self._base = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        head = self.header_height if self.show_header else 0
        if y < head:
            return painted(self, super().render_line(y).apply_offsets(self.scroll_offset.x, y), y)
        line = y + self.scroll_offset.y
        index = line - head
        if not index < len(self._grid.rows):
            return super().render_line(y).apply_offsets(0, line)
        before, after = self._cursor_styles(index)
        base = self._base + before
        segments: list[Segment] = []
        width, left = self.size.width, self.scroll_offset.x
        x = 0
        for number, cell in enumerate(self._grid.rows[index].cells):
            for text, tone in cell.parts:
                segments.append(Segment(text, base + self._tones[tone] + after + _place(index, number, x, line)))
                x += len(text)
        strip = Strip(segments, self._grid.width)
        if left or strip.cell_length > width:
            strip = strip.crop(left, left + width)
        rest = width - strip.cell_length
        if rest > 0:
            strip = Strip([*strip, Segment(" " * rest, base + after + _place(index, 0, x, line, outside=True))], width)
        return painted(self, strip, line)

    def _cursor_styles(self, index: int) -> tuple[Style, Style]:
        """What lies below and above the style of a text: the cursor's background wins, its foreground does not."""
        below, above = Style.null(), Style.null()
        if self.show_cursor and self._show_hover_cursor and self.hover_row == index:
            below += self.get_component_rich_style("datatable--hover")
        if self.show_cursor and self.cursor_row == index:
            below += self.get_component_rich_style("datatable--cursor")
        if below.bgcolor is not None:
            above = Style.from_color(None, below.bgcolor)
        return below, above

    # --- selecting text ----------------------------------------------------------------------------------------

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        head = ["".join(column.label for column in self._grid.columns)] if self.show_header else []
        return selected(selection, [*head, *("".join(cell.plain for cell in row.cells) for row in self._grid.rows)])

    def _unselect(self) -> None:
        """Rows moved: what was selected stands elsewhere."""
        if self.text_selection is not None:
            self.screen.clear_selection()

    # --- differences -------------------------------------------------------------------------------------------

    def _update_dimensions(self, new_rows: Iterable[RowKey]) -> None:
        # DataTable would measure each cell of each new row, though all columns have a width.
        super()._update_dimensions(())

    def _update(self, old: Grid, new: Grid) -> None:
        """Only cells changed. Regions are reckoned here: DataTable adds up the heights of all rows for each one."""
        edges = [0, *accumulate(column.width for column in new.columns)]
        head = self.header_height if self.show_header else 0
        top, left = int(self.scroll_y), int(self.scroll_x)
        regions: list[Region] = []
        for index in range(top, min(top + self.size.height - head, len(new.rows))):
            was, now = old.rows[index], new.rows[index]
            if was.cells == now.cells:
                continue
            self.repainted.append(now.key)
            cells = [number for number, pair in enumerate(zip(was.cells, now.cells, strict=True)) if pair[0] != pair[1]]
            # One region a row: Textual sends a line from the widget's edge to the end of each region.
            first, last = edges[cells[0]], edges[cells[-1] + 1]
            regions.append(Region(first - left, index + head - top, last - first, 1))
        if regions:
            self.refresh(*regions)

    def _restructure(self, old: Grid, new: Grid) -> None:
        """Rows came, went or moved."""
        self._unselect()
        self._clear_caches()  # of the header as it was with each number of changes before: never asked for again
        anchor = self._anchor(old)
        wanted = {row.key for row in new.rows}
        present = {row.key for row in old.rows}
        rank = {row.key: index for index, row in enumerate(new.rows)}
        with self.prevent(DataTable.RowHighlighted):
            self._applying = True
            try:
                for row in old.rows:
                    if row.key not in wanted:
                        self.remove_row(row.key)
                for row in new.rows:
                    if row.key not in present:
                        self.add_row(row.key, key=row.key)
                if new.rows:
                    self.sort(new.columns[0].key, key=rank.__getitem__)
            finally:
                self._applying = False
            self._restore(anchor)
        self.refresh(layout=True)

    def _rebuild(self, old: Grid, grid: Grid) -> None:
        """The columns are others: everything anew, the cursor back on its row."""
        self._unselect()
        anchor = self._anchor(old)
        with self.prevent(DataTable.RowHighlighted):
            self._applying = True
            try:
                self.clear(columns=True)
                for column in grid.columns:
                    self.add_column(self._paint_label(column), width=column.width, key=column.key)
                for row in grid.rows:
                    self.add_row(row.key, key=row.key)
            finally:
                self._applying = False
            self._restore(anchor)
        self.refresh(layout=True)

    def _paint_label(self, column: Column) -> Text:
        if not column.sorted:
            return Text(column.label, end="", no_wrap=True)
        name = column.label.strip()
        before = len(column.label) - len(column.label.lstrip())
        after = len(column.label) - before - len(name)
        return paint(((" " * before, ""), (name, "sorted"), (" " * after, "")), self._tones)

    # --- identity ----------------------------------------------------------------------------------------------

    def _anchor(self, old: Grid) -> _Anchor:
        """What must stay where it is: the cursor's row, and on which line of the screen it (or the top row) is."""
        keys = [row.key for row in old.rows]
        row, top = self.cursor_row, int(self.scroll_y)
        lines = max(1, self.size.height - (self.header_height if self.show_header else 0))
        held = row if top <= row < top + lines else top
        # A row that vanished hands the cursor to the next one that is left, or to the one before.
        return _Anchor(keys[row:] + keys[:row][::-1], keys[held] if held < len(keys) else None, held - top)

    def _restore(self, anchor: _Anchor) -> None:
        index = {row.key: number for number, row in enumerate(self._grid.rows)}
        if self._keep_first and not self._moved:
            self.move_cursor(row=0, scroll=False)
            self.call_after_refresh(self.scroll_to, y=0, animate=False)
            return
        cursor = next((index[key] for key in anchor.cursor if key in index), 0)
        self.move_cursor(row=cursor, scroll=False)
        held = index.get(anchor.held) if anchor.held is not None else None
        if held is not None:
            # After the refresh: DataTable learns its new height when it is idle.
            self.call_after_refresh(self.scroll_to, y=max(0, held - anchor.line), animate=False)

    # --- cursor ------------------------------------------------------------------------------------------------

    @property
    def cursor_key(self) -> str | None:
        """The key of the row under the cursor; None in an empty table."""
        rows = self._grid.rows
        return rows[self.cursor_row].key if 0 <= self.cursor_row < len(rows) else None

    def go_to(self, key: str) -> bool:
        """Put the cursor on the row with this key; False when there is none."""
        index = next((index for index, row in enumerate(self._grid.rows) if row.key == key), None)
        if index is None:
            return False
        self.move_cursor(row=index)
        return True

    def stay_first(self) -> None:
        """The cursor goes to the first row, and as `keep_first` says stays there."""
        self._moved = False
        self.move_cursor(row=0)

    def action_cursor_up(self) -> None:
        if self.cursor_row <= 0:
            self.post_message(self.Edge(self, -1))
        else:
            self._moved = True
            super().action_cursor_up()

    def action_cursor_down(self) -> None:
        if self.cursor_row >= self.row_count - 1:
            self.post_message(self.Edge(self, 1))
        else:
            self._moved = True
            super().action_cursor_down()

    def action_page_down(self) -> None:
        self._moved = True
        super().action_page_down()

    def action_page_up(self) -> None:
        self._moved = True
        super().action_page_up()

    def action_scroll_bottom(self) -> None:
        self._moved = True
        super().action_scroll_bottom()

    def action_scroll_top(self) -> None:
        self._moved = False  # the first row is wanted, whichever it is
        super().action_scroll_top()

    def on_click(self, event: events.Click) -> None:
        event.chain = 1  # a second click opens the row: it does not select all text, as Textual would
        if self.text_selection is not None:
            event.prevent_default()  # the mouse was drawn over text: no row was chosen
        else:
            self._moved = True

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._moved = True

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._moved = True
