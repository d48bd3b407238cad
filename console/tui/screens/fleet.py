"""The first screen: a row per role, and below it what a person should know, worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import DataTable, Input

from console.fleet.model import Fleet
from console.tui.commands import Scope, bindings
from console.tui.screens.base import ConsoleScreen
from console.tui.screens.evidence import EvidenceScreen
from console.tui.widgets.filter import FilterBar
from console.tui.widgets.line import Line
from console.tui.widgets.table import Table
from console.view.cells import Grid, Part, part_columns, plain, safe, wrap
from console.view.choosing import ROLE_SORTS, chosen_findings, chosen_roles, next_role_order, sorted_head
from console.view.findings import Entry, detail_lines, entries, evidence_lines, finding_grid, title_parts
from console.view.headline import notices
from console.view.listing import Order, words_of
from console.view.offers import Offer, find_role, role_offers
from console.view.rows import role_grid
from console.view.unit_offers import role_unit_offers

if TYPE_CHECKING:
    from console.view.playbooks import Begin

_WORDS_FROM = 60  # columns from which on the filter says of what it counts
_DETAIL_FROM = 4  # so many lines must be left over for the evidence below the findings


def split_height(height: int, roles: int, findings: int) -> tuple[int, int]:
    """Lines for the table of roles (with its header) and for the findings; both together at most `height`.

    Both whole where there is room; else the findings get what they need up to half, the roles the rest.
    """
    height = max(0, height)
    wanted_roles = roles + 1 if roles else 0
    if wanted_roles + findings <= height:
        return wanted_roles, findings
    given = min(findings, max(height // 2, height - wanted_roles))
    return min(wanted_roles, height - given), given


class FleetScreen(ConsoleScreen):
    """Roles and findings."""

    SCOPES: ClassVar[tuple[Scope, ...]] = ("console", "common", "fleet", "table", "acts", "units")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("common", "fleet", "acts", "units")]

    def __init__(self) -> None:
        super().__init__()
        self._role: str | None = None  # findings of this role only
        self._order = Order()  # of the roles; by no column: as they are configured
        self._findings_order = Order()  # by "role", or by none: the worst first
        self._entries: tuple[Entry, ...] = ()
        self._heights: dict[Table, int] = {}
        self._detail_room = 0
        self._finding_lines = 0

        self.notice = Line(id="notice")
        self.filter_bar = FilterBar()
        self.roles = Table(id="roles")
        self.title_line = Line(id="title", classes="title")
        self.findings = Table(id="findings", header=False, keep_first=True)
        self.rule = Line(id="rule")
        self.detail = Line(id="detail")

    def compose(self) -> ComposeResult:
        yield self.head_line
        yield self.banner
        yield self.notice
        yield self.filter_bar
        yield self.roles
        yield self.title_line
        yield self.findings
        yield self.rule
        yield self.detail
        yield self.foot_line

    def on_mount(self) -> None:
        self.set_focus(self.roles)

    # --- showing ---------------------------------------------------------------------------------------------

    def show_body(self, fleet: Fleet | None) -> None:
        app = self.console_app
        width = self.size.width
        most = max(0, self.size.height - 6) // 3 + 1
        told = [line for text in notices(fleet, app.glyphs) for line in wrap(((text, "note"),), width)][:most]
        self.notice.show(tuple(told), app.tones)
        words = words_of(self.filter_bar.text)
        known = entries(fleet, self._role) if fleet is not None else ()
        self._entries = chosen_findings(known, words, self._findings_order)
        chosen = chosen_roles(fleet, words, self._order) if fleet is not None else None
        count = len(chosen.roles) if chosen is not None else 0
        title = fleet is not None and self.size.height > 2
        room = self.body_height - len(told) - (1 if title else 0) - (1 if self.filter_bar.display else 0)
        spare = room - (count + 1 if count else 0) - len(self._entries)
        airy = spare > 0 and title
        lines = split_height(room - (1 if airy else 0), count, len(self._entries))
        self._finding_lines = lines[1]
        for table, given in ((self.roles, lines[0]), (self.findings, lines[1])):
            if self._heights.get(table) != given:
                self._heights[table] = given
                table.display = given > 0
                table.styles.height = given
        roles_wide = width - (1 if count + 1 > lines[0] else 0)
        findings_wide = width - (1 if len(self._entries) > lines[1] else 0)
        grid = role_grid(chosen, roles_wide, app.glyphs) if chosen is not None else Grid()
        self.roles.show(sorted_head(grid, self._order, app.glyphs), app.tones)
        self.findings.show(finding_grid(self._entries, findings_wide, app.glyphs), app.tones)
        self.title_line.set_class(airy, "airy")
        self._show_title()
        self.title_line.display = title
        every = len(fleet.roles) if fleet is not None else 0
        of_roles, of_findings = (" roles", " findings") if width >= _WORDS_FROM else ("", "")
        also = f"{of_roles}, {len(self._entries)} of {len(known)}{of_findings}"
        self.filter_bar.count(count, every, app.tones, also)
        self._show_detail(spare - 1)

    def _show_title(self) -> None:
        app = self.console_app
        hidden = len(self._entries) - self._finding_lines
        order, right = self._findings_order, list[Part]()
        if order.key or order.descending:
            sign = app.glyphs.down if order.descending else app.glyphs.up
            right = [("  ", ""), (f"by {order.key}{sign}" if order.key else "worst last", "sorted")]
        width = max(0, self.size.width - part_columns(tuple(right)))
        parts = title_parts(self._entries, self._role, width, hidden, app.glyphs)
        self.title_line.show(((*parts, *right),), app.tones)

    def _show_detail(self, room: int) -> None:
        """Where lines are left over: the evidence of the finding under the cursor."""
        app = self.console_app
        entry = self._current()
        if room < _DETAIL_FROM or entry is None:
            self.rule.show((), app.tones)
            self.detail.show((), app.tones)
            return
        lines = detail_lines(entry.finding, min(110, self.size.width), room - 1, app.glyphs)
        line = "─" if app.glyphs.unicode else "-"
        self.rule.show((((line * self.size.width, "dim"),),), app.tones)
        self.detail.show(lines, app.tones)
        self._detail_room = room

    # --- moving ----------------------------------------------------------------------------------------------

    def _current(self) -> Entry | None:
        key = self.findings.cursor_key
        return next((entry for entry in self._entries if entry.key == key), None)

    @on(DataTable.RowHighlighted, "#findings")
    def _moved(self) -> None:
        if self.detail.display:
            self._show_detail(self._detail_room)

    @on(DataTable.RowSelected)
    def _clicked(self, event: DataTable.RowSelected) -> None:
        self.action_open()

    @on(Table.Edge)
    def _left(self, event: Table.Edge) -> None:
        if event.table is self.roles and event.direction > 0 and self.findings.row_count:
            self.findings.stay_first()
            self.set_focus(self.findings)
        elif event.table is self.findings and event.direction < 0 and self.roles.row_count:
            self.roles.move_cursor(row=self.roles.row_count - 1)
            self.set_focus(self.roles)

    def action_other_table(self) -> None:
        """Move between roles and findings."""
        target = self.findings if self.focused is self.roles else self.roles
        if target.row_count:
            self.set_focus(target)  # at once: focus() would let the next key overtake it

    def action_open(self) -> None:
        """On a finding: its evidence. On a role: its workers."""
        if self.focused is not self.roles:
            self._describe(self._current())
            return
        role = self._role_under_cursor()
        if role is not None:
            from console.tui.screens.workers import WorkersScreen

            self.app.push_screen(WorkersScreen(role))

    def action_findings(self) -> None:
        """Findings of the role under the cursor only."""
        role = self._role_under_cursor()
        if role is None or self.focused is not self.roles:
            return
        self._filter(role)
        if self.findings.row_count:
            self.findings.stay_first()
            self.set_focus(self.findings)

    def action_log(self) -> None:
        """The log of the role under the cursor, or of the finding's."""
        role = self.role_in_hand()
        if role:
            self.console_app.show_log_of(role)

    def copied(self) -> str:
        if self.focused is self.findings:
            entry = self._current()
            if entry is None:
                return ""
            return "\n".join(plain(line) for line in evidence_lines(entry.finding, 120, self.console_app.glyphs))
        return self.roles.grid.text()

    def selection_text(self) -> str:
        if self.focused is self.findings:
            entry = self._current()
            return safe(entry.finding.what, 50) if entry is not None else ""
        return safe(self._role_under_cursor() or "", 50)

    def begins(self) -> tuple[Begin, ...]:
        fleet, entry = self.shown_fleet, self._current()
        if self.focused is self.findings:
            return self.console_app.playbooks.mending(entry.finding) if entry is not None else ()
        role = self._role_under_cursor()
        own = (each for each in fleet.findings if each.role == role) if fleet is not None and role is not None else ()
        return self.console_app.playbooks.mending(*own)

    def offers(self) -> tuple[Offer, ...]:
        status = find_role(self.shown_fleet, self.role_in_hand())
        return (*role_offers(status), *role_unit_offers(status))

    def action_diagnose(self) -> None:
        """What is wrong with the role under the cursor, or with that of the finding; of the host: the evidence."""
        from console.tui.screens.diagnosis import of_role

        role = self.role_in_hand()
        if role:
            self.app.push_screen(of_role(role))
        elif self.focused is self.findings:
            self._describe(self._current())

    # --- filter and order ------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Let the person type a filter for roles and findings."""
        self.filter_bar.open()
        self.show()

    def action_filter_done(self) -> None:
        """Keep the filter, go to the rows that are left."""
        if not self.filter_bar.text:
            self.filter_bar.close()
        self.show()
        self._to_rows()

    def _to_rows(self) -> None:
        self.set_focus(self.roles if self.roles.row_count or not self.findings.row_count else self.findings)

    def action_sort(self) -> None:
        """Sort the roles by the next column; where the findings have the focus, those by role or the worst first."""
        if self.focused is self.findings:
            self._findings_order = Order() if self._findings_order.key else Order("role")
        else:
            self._order = next_role_order({column.key for column in self.roles.grid.columns}, self._order)
        self.show()

    def action_invert(self) -> None:
        """Sort the other way round."""
        if self.focused is self.findings:
            self._findings_order = Order(self._findings_order.key, not self._findings_order.descending)
        elif self._order.key:
            self._order = Order(self._order.key, not self._order.descending)
        self.show()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.show()

    @on(DataTable.HeaderSelected, "#roles")
    def _head_clicked(self, event: DataTable.HeaderSelected) -> None:
        key = str(event.column_key.value)
        if key == self._order.key:
            self.action_invert()
        elif key in ROLE_SORTS:
            self._order = Order(key, ROLE_SORTS[key][1])
            self.show()

    def back(self) -> bool:
        if self.filter_bar.display:
            self.filter_bar.close()
            self.show()
            self._to_rows()
            return True
        if self._role is None:
            return False
        self._filter(None)
        self.set_focus(self.roles)
        return True

    def _describe(self, entry: Entry | None) -> None:
        if entry is not None:
            self.app.push_screen(EvidenceScreen(entry, self._role))

    def _filter(self, role: str | None) -> None:
        self._role = role
        self.show()

    def role_in_hand(self) -> str | None:
        entry = self._current()
        return entry.finding.role if self.focused is self.findings and entry else self._role_under_cursor()

    def _role_under_cursor(self) -> str | None:
        key = self.roles.cursor_key
        return key.partition("\0")[0] if key is not None else None
