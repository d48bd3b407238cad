"""The queue of each role: its numbers of now, and plots of the last minutes of the role under the cursor."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.widgets import DataTable

from console.fleet.model import Fleet, RoleStatus
from console.tui.commands import Scope, bindings
from console.tui.screens.base import ConsoleScreen
from console.tui.widgets.line import Line
from console.tui.widgets.plot import TrendPlot
from console.tui.widgets.table import Table
from console.view.cells import Grid, safe, wrap
from console.view.listing import look_of
from console.view.rows import unique
from console.view.trends import MEASURES, Measure, plot_data, queue_grid, roles_with_rows, title_parts, why_nothing

_SIDE_BY_SIDE = 60  # columns from which on two plots stand beside each other
_LEAST = 6  # lines of a plot with its title
_TABLE_SHARE = 3  # the table takes at most one third


class QueueScreen(ConsoleScreen):
    """Waiting, oldest, done and failed of one role; the table chooses the role."""

    SCOPES: ClassVar[tuple[Scope, ...]] = ("console", "common", "table", "queue")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("common", "queue")]
    CSS = """
    QueueScreen #plots { layout: grid; height: 1fr; grid-gutter: 0 1; }
    QueueScreen #plots.quiet { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.measure: Measure | None = None  # the only one that is shown; None: as many as there is room for
        self._height = 0
        self._for: object = None
        self.table = Table(id="roles")
        self.title_line = Line(id="title")
        self.message = Line(id="message")
        self.plots = {measure: TrendPlot(measure) for measure in MEASURES}
        self.frame = Container(*self.plots.values(), id="plots")

    def compose(self) -> ComposeResult:
        yield self.head_line
        yield self.banner
        yield self.table
        yield self.title_line
        yield self.message
        yield self.frame
        yield self.foot_line

    def on_mount(self) -> None:
        self.set_focus(self.table)

    # --- showing ---------------------------------------------------------------------------------------------

    def show_body(self, fleet: Fleet | None) -> None:
        app = self.console_app
        look = look_of(fleet, app.glyphs, app.clock())
        known = roles_with_rows(fleet) if fleet is not None else []
        room = self.body_height
        rows = len(known) + 1 if known else 0
        height = min(rows, max(3, room // _TABLE_SHARE)) if room > 8 else min(rows, 2)
        if height != self._height:
            self._height = height
            self.table.styles.height = height
            self.table.display = height > 0
        width = self.size.width
        grid = queue_grid(fleet, width - (1 if rows > height else 0), look) if fleet is not None else Grid()
        self.table.show(grid, app.tones)
        why = why_nothing(fleet)
        told = wrap(((safe(why), "note"),), width) if why else []
        self.message.show(tuple(told), app.tones)
        self._show_plots()

    @property
    def status(self) -> RoleStatus | None:
        """The role under the cursor."""
        fleet = self.shown_fleet
        known = roles_with_rows(fleet) if fleet is not None else []
        keys = unique([status.role.name for status in known])
        return next((status for key, status in zip(keys, known, strict=True) if key == self.table.cursor_key), None)

    def _show_plots(self) -> None:
        app, fleet, status = self.console_app, self.shown_fleet, self.status
        width = self.size.width
        lines = self.body_height - self._height - self.message.line_count - 1
        self.frame.set_class(status is None or lines < 3, "quiet")
        taken = fleet.queue.trends_taken if fleet is not None and fleet.queue is not None else None
        age = None if taken is None else app.clock() - taken
        parts = title_parts(status, age, self.measure, width)
        self.title_line.show((parts,) if status is not None and lines >= 2 else (), app.tones)
        if status is None or lines < 3:
            return
        across = 2 if width >= _SIDE_BY_SIDE and self.measure is None else 1
        down = max(1, min(len(MEASURES) // across, lines // _LEAST)) if self.measure is None else 1
        shown = MEASURES[: across * down] if self.measure is None else (self.measure,)
        if (across, down, shown) != self._for:
            self._for = (across, down, shown)
            self.frame.styles.grid_size_columns = across
            self.frame.styles.grid_size_rows = down
            for measure, plot in self.plots.items():
                plot.display = measure in shown
        for measure in shown:
            data = plot_data(status.trend, measure)
            self.plots[measure].show(data, app.tones, app.glyphs.unicode, width // across, lines // down)

    def copied(self) -> str:
        return self.table.grid.text()

    # --- commands ------------------------------------------------------------------------------------------------

    def action_measure(self) -> None:
        """One plot large, the next one, and after the last as many as there is room for."""
        order: list[Measure | None] = [None, *MEASURES]
        self.measure = order[(order.index(self.measure) + 1) % len(order)]
        self.show()

    def action_role(self, by: int) -> None:
        """The next role, or the one before."""
        if self.table.row_count:
            self.table.move_cursor(row=(self.table.cursor_row + by) % self.table.row_count)

    def action_open(self) -> None:
        """The jobs of the role."""
        status = self.status
        if status is not None:
            from console.tui.screens.jobs import JobsScreen

            self.app.push_screen(JobsScreen(role=status.role.name))

    def back(self) -> bool:
        if self.measure is None:
            return False
        self.measure = None
        self.show()
        return True

    @on(DataTable.RowHighlighted, "#roles")
    def _moved(self) -> None:
        status = self.status
        if status is not None:
            self.console_app.chosen_role = status.role.name
        if self._ready:
            self._show_plots()

    @on(DataTable.RowSelected, "#roles")
    def _clicked(self) -> None:
        self.action_open()
