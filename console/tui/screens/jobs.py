"""Jobs by state, role and type: one long list, of which a few pages are kept (see console.tui.paging)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import ClassVar

from textual import events, on
from textual.binding import BindingType
from textual.widgets import DataTable

from console.errors import Problem
from console.fleet.model import Claim, Fleet, JobQuery, JobSort
from console.text import ago
from console.tui.commands import Scope, bindings
from console.tui.paging import Loader
from console.tui.screens.job import JobScreen, show_log_of
from console.tui.screens.list import LIST_BINDINGS, LIST_SCOPES, ListScreen
from console.tui.widgets.filter import FilterBar
from console.tui.widgets.line import Line
from console.tui.widgets.table import Table
from console.view.cells import Part, plain
from console.view.jobs import (
    COLUMNS,
    SORTS,
    STATES,
    JobRow,
    ListedState,
    asked_of,
    empty_text,
    next_sort,
    role_name,
    sorted_column,
    status_parts,
    tab_at,
    tab_parts,
    total_number,
    total_text,
    unlisted,
)
from console.view.listing import ListColumn, Look, Order
from console.view.offers import Held, Offer, job_offers

_FAR = 1_000_000_000  # rows: never near an end
_ONE_TAB = 20  # columns
TYPED_FOR = 0.3  # seconds without another key before the filter is asked for


class JobsScreen(ListScreen[JobRow]):
    """Jobs of a state; the queue filters, sorts and counts."""

    SCOPES: ClassVar[tuple[Scope, ...]] = (*LIST_SCOPES, "jobs", "acts")
    BINDINGS: ClassVar[list[BindingType]] = [*LIST_BINDINGS, *bindings("jobs", "acts")]

    def __init__(self, state: ListedState = "waiting", role: str | None = None) -> None:
        super().__init__()
        self.state: ListedState = state
        self.role = role
        self.kind = ""  # only jobs of this type
        self.sort: tuple[JobSort, bool] = SORTS[state][0]
        self.loader: Loader | None = None
        self.status_line = Line(id="status")
        self._asked_for: JobQuery | None = None
        self._rows: list[JobRow] = []
        self._claims: dict[str, Claim] = {}
        self._made_from: object = None
        self._drawn_for: object = None
        self._known: tuple[int, int, frozenset[str]] = (0, 0, frozenset())  # pages and ids of the rows shown last
        self._show_first = False

    # --- asking ------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        app = self.console_app
        self.loader = Loader(
            app.feed.jobs, lambda work: app.background(work, "list jobs"), self.show, self._database_now
        )
        self.watch(self.table, "scroll_y", self._scrolled, init=False)
        self._start(clear=True)

    def on_unmount(self) -> None:
        if self.loader is not None:
            self.loader.cancel()

    def _database_now(self) -> float:
        fleet = self.console_app.fleet
        skew = fleet.queue.skew if fleet is not None and fleet.queue is not None else None
        return self.console_app.clock() + (skew or 0.0)

    def _query(self) -> JobQuery | None:
        """What to ask for; None for a role that has no rows."""
        asked = asked_of(self.console_app.fleet, self.role)
        if asked is None:
            return None
        queues, types = asked
        if self.kind:
            types = (self.kind,)
        sort, descending = self.sort
        return JobQuery(
            state=self.state,
            queues=queues,
            types=types,
            contains=self.filter_bar.text.strip(),
            sort=sort,
            descending=descending,
        )

    def _start(self, *, clear: bool, after: float = 0.0) -> None:
        """Ask for what is chosen now, if that is anything else than before."""
        loader, query = self.loader, self._query()
        if loader is None:
            return
        before, self._asked_for = self._asked_for, query
        if query is None:
            loader.cancel()
        elif clear or query != before:
            self._show_first = True
            self._known = (0, 0, frozenset())
            self.order = Order(sorted_column(query), query.descending)
            loader.start(query, clear=clear, after=after)

    def _seen(self) -> tuple[int, int]:
        """The rows that can be seen, counted from the first one kept."""
        top = int(self.table.scroll_y)
        unlisted_rows = len(self._shown) - len(self._rows)
        first = max(0, top - unlisted_rows)
        last = first + max(1, self.table.size.height)
        cursor = max(0, self.table.cursor_row - unlisted_rows)
        return min(first, cursor), max(last, cursor)

    def _look(self) -> None:
        """Ask for the page beyond the cursor. Where the view is, is known only after a refresh: `_scrolled`."""
        top, lines = int(self.table.scroll_y), max(1, self.table.size.height)
        if not top - lines <= self.table.cursor_row <= top + 2 * lines:
            return  # the wheel has left it: asking for its page would drop the one in sight
        cursor = max(0, self.table.cursor_row - (len(self._shown) - len(self._rows)))
        self._look_at(cursor, cursor)

    def _look_at(self, first: int, last: int) -> None:
        if self.loader is not None and self.paused is None and self._asked_for is not None:
            self.loader.look(first, last)

    def asked_again(self) -> None:
        if self.loader is not None:
            self.loader.refresh(*self._seen(), now=True)

    # --- the list ----------------------------------------------------------------------------------------------

    def columns(self) -> tuple[ListColumn[JobRow], ...]:
        state = self.loader.window.query.state if self.loader is not None else self.state
        return COLUMNS[state]

    def key_of(self, item: JobRow) -> str:
        return item.job.id

    def items(self, fleet: Fleet | None) -> Sequence[JobRow] | None:
        if self.loader is None:
            return None
        window = self.loader.window
        judged = fleet.claims if fleet is not None and window.query.state in ("running", "stuck") else ()
        roles = tuple(status.role for status in fleet.roles) if fleet is not None else ()
        self._claims = {claim.job.id: claim for claim in judged}
        made_from = (self.loader.version, self._claims, roles)
        if made_from != self._made_from:
            self._made_from = made_from
            self._rows = [
                JobRow(job=job, role=role_name(job, roles), now=now, claim=self._claims.get(job.id))
                for job, now in window.rows()
            ]
        if self._asked_for is None:
            return ()
        if not window.loaded:
            return None
        more = unlisted(fleet, window.query, self.role, self._rows, self._database_now())
        return [*more, *self._rows] if more else self._rows

    def arranged(self, items: Sequence[JobRow], look: Look) -> Sequence[JobRow]:
        return items  # the queue did

    def present(self, items: Sequence[JobRow]) -> Collection[str]:
        """A mark falls when its row is gone from the pages that are kept; of other pages nothing is known."""
        assert self.loader is not None
        window = self.loader.window
        first, end = window.first, window.first + len(window.pages)
        ids = frozenset(item.job.id for item in items)
        old_first, old_end, old_ids = self._known
        self._known = (first, end, ids)
        vanished = old_ids - ids if first <= old_first and old_end <= end and not self.loader.waiting else frozenset()
        return self.marked - vanished

    def total(self, items: Sequence[JobRow]) -> int:
        return max(total_number(self.console_app.fleet, self.role, self.state), len(items))

    def asking(self) -> bool:
        return self.loader is not None and self._asked_for is not None and self.loader.waiting and not self.failure()

    def failure(self) -> Problem | None:
        """The queue did not answer: how old what is shown is, and why."""
        loader = self.loader
        if loader is None or loader.problem is None or self._asked_for is None:
            return None
        what = "queue not read" if loader.age is None else f"queue {ago(loader.age)} old"
        return Problem(what, loader.problem.why, loader.problem.do)

    def nothing(self, fleet: Fleet | None) -> str:
        return empty_text(self.state, self.filter_bar.text.strip(), self.role, self.kind, self._asked_for is None)

    def heading(self) -> tuple[Part, ...]:
        if self.failure() is None:
            return tab_parts(self.shown_fleet, self.role, self.state, self.size.width)
        # The failure stands behind it: the other states leave to make room.
        alone = tab_parts(self.shown_fleet, self.role, self.state, _ONE_TAB)
        return ((plain(alone).rstrip(), "head"),)

    def above(self) -> Iterable[Line | Table | FilterBar]:
        return (self.status_line,)

    def open(self, item: JobRow) -> None:
        self.app.push_screen(JobScreen(item, self))

    def show_log(self, item: JobRow) -> None:
        show_log_of(self, item.job, item.claim)

    def action_diagnose(self) -> None:
        """What is wrong with the holder of the job under the cursor."""
        from console.tui.screens.diagnosis import of_job

        if (row := self.current) is not None:
            self.app.push_screen(of_job(row.job.id, row.role or None))

    def offers(self) -> tuple[Offer, ...]:
        rows = self.selection
        left = (
            len(self.marked) - len(rows) if self.marked else 0
        )  # on pages that are not kept: their tokens are unknown
        return job_offers([Held(job=row.job, role=row.role, claim=row.claim) for row in rows], left)

    # --- showing -----------------------------------------------------------------------------------------------

    def show_body(self, fleet: Fleet | None) -> None:
        loader = self.loader
        if loader is None:
            return
        if self.paused is None and fleet is not None and self._query() != self._asked_for:
            self._start(clear=True)  # the role's queues became known, or are others now
            return
        drawn_for = (
            *(self._made_from, loader.version, self.size, tuple(self.marked), self.filter_bar.display, self.paused),
            *(self._gone, self.look.queue_stale, id(self.console_app.tones), loader.busy and loader.waiting),
            fleet.claims if fleet is not None and self.state in ("running", "stuck") else (),
        )
        if drawn_for != self._drawn_for or not loader.window.loaded:
            self._drawn_for = drawn_for
            super().show_body(fleet)
            if self._show_first and loader.window.loaded and not loader.waiting:
                self._show_first = False
                self.table.move_cursor(row=0)
        else:
            self._show_title(self._items, self.look)
        self._show_status()
        self._look()
        if self.paused is None and self._asked_for is not None:
            loader.refresh(*self._seen())

    def summary(self, items: Sequence[JobRow], look: Look) -> tuple[Part, ...]:
        return ()

    def _show_status(self) -> None:
        app, loader = self.console_app, self.loader
        assert loader is not None
        window = loader.window
        position = None
        if self._shown and self.table.cursor_row >= 0:
            position = window.before + self.table.cursor_row + 1
        total = self._total_text() if window.loaded else ""
        parts = status_parts(loader.query, self.role, self.kind, total, position, self.size.width, app.glyphs)
        self.status_line.show((parts,) if self.size.height > 8 else (), app.tones)

    # --- commands ------------------------------------------------------------------------------------------------

    def action_state(self, by: int) -> None:
        """Show the next state, or the one before."""
        self.show_state(STATES[(STATES.index(self.state) + by) % len(STATES)])

    def show_state(self, state: ListedState) -> None:
        """Show the jobs of this state, sorted as it is sorted at first."""
        self.state, self.sort = state, SORTS[state][0]
        self._forget()

    def action_role(self, by: int) -> None:
        """Only the jobs of the next role, or of the one before; between last and first: of all."""
        fleet = self.console_app.fleet
        names: list[str | None] = [None]
        names += [status.role.name for status in fleet.roles if status.role.queues] if fleet is not None else []
        place = names.index(self.role) if self.role in names else 0
        self.show_role(names[(place + by) % len(names)])

    def show_role(self, role: str | None) -> None:
        """Only the jobs of this role; None: of all."""
        self.role, self.kind = role, ""
        if role is not None:
            self.console_app.chosen_role = role
        self._forget()

    def action_kind(self) -> None:
        """Only jobs of the type under the cursor; again: of all types."""
        current = self.current
        self.kind = current.job.type if current is not None and not self.kind else ""
        self._forget()

    def _forget(self) -> None:
        self.marked, self._gone = set(), 0
        self._widths.clear()
        self._start(clear=True)
        self.show()

    def action_sort(self) -> None:
        """Sort by what the queue can sort by next."""
        self._sort_by(*next_sort(self.state, self.sort[0]))

    def action_invert(self) -> None:
        """Sort the other way round."""
        self._sort_by(self.sort[0], not self.sort[1])

    def _sort(self, order: Order) -> None:
        """The head of a column was clicked."""
        for sort, descending in SORTS[self.state]:
            if sorted_column(JobQuery(state=self.state, sort=sort)) == order.key:
                self._sort_by(sort, descending)

    def _sort_by(self, sort: JobSort, descending: bool) -> None:
        self.sort = (sort, descending)
        self._start(clear=False)
        self.show()

    def filter_changed(self) -> None:
        self._start(clear=False, after=TYPED_FOR if self.filter_bar.text else 0.0)

    def back(self) -> bool:
        if super().back():
            return True
        if self.kind:
            self.kind = ""
        elif self.role is not None:
            self.role = None
        else:
            return False
        self._forget()
        return True

    def step(self, job_id: str, by: int) -> JobRow | None:
        """The job after (or before) this one, and the cursor on it: for the screen that shows one job."""
        place = next((number for number, row in enumerate(self._shown) if row.job.id == job_id), self.table.cursor_row)
        if not 0 <= place + by < len(self._shown):
            return None
        row = self._shown[place + by]
        self.table.move_cursor(row=place + by)
        self._look()
        return row

    def place_of(self, job_id: str) -> str:
        """ "3 of 412", for the screen that shows one job."""
        assert self.loader is not None
        place = next((number for number, row in enumerate(self._shown) if row.job.id == job_id), None)
        if place is None:
            return ""
        window = self.loader.window
        return f"{window.before + place + 1} of {self._total_text()}"

    def _total_text(self) -> str:
        assert self.loader is not None
        window = self.loader.window
        extra = len(self._shown) - len(self._rows)
        return total_text(window.total, window.before + len(self._rows), window.more, extra)

    # --- events ------------------------------------------------------------------------------------------------

    def _scrolled(self, before: float, now: float) -> None:
        if now > before:
            self._look_at(_FAR, int(now) + self.table.size.height)
        else:
            self._look_at(int(now), -_FAR)

    @on(DataTable.RowHighlighted, "#list")
    def _cursor_moved(self) -> None:
        self._look()
        if self.loader is not None and self._ready:
            self._show_status()

    def on_click(self, event: events.Click) -> None:
        if self.title_line.text_selection is not None:
            return  # the mouse was drawn over it
        if event.widget is self.title_line and (state := tab_at(self.heading(), event.x)) is not None:
            self.show_state(state)
