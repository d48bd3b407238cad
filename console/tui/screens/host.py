"""The host: memory and load, accounts against their limits, and its processes as trees by owner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import DataTable

from console.errors import Problem
from console.fleet.model import Fleet, HostDetail
from console.tui.asked import Asked
from console.tui.commands import Scope, bindings
from console.tui.screens.list import LIST_BINDINGS, LIST_SCOPES, ListScreen
from console.tui.widgets.line import Line
from console.tui.widgets.table import Table
from console.view.cells import Part
from console.view.host import (
    TREE_COLUMNS,
    TreeRow,
    account_grid,
    group_keys,
    host_lines,
    tree_row_text,
    tree_rows,
    trees_title,
)
from console.view.listing import ListColumn, Look, look_of

_ACCOUNTS_SHARE = 4  # accounts take at most a quarter of the screen


class HostScreen(ListScreen[TreeRow]):
    """Accounts above, trees below; the trees are read when the screen is opened and on ctrl+r."""

    SCOPES: ClassVar[tuple[Scope, ...]] = (*LIST_SCOPES, "described", "host")
    BINDINGS: ClassVar[list[BindingType]] = [*LIST_BINDINGS, *bindings("described", "host")]

    def __init__(self) -> None:
        super().__init__()
        self.collapsed: set[str] = set()
        self.detail: Asked[HostDetail] | None = None
        self.accounts = Table(id="accounts")
        self.host_line = Line(id="host")
        self._accounts_height = 0
        self._matching = 0
        self._made_for: object = None
        self._rows: list[TreeRow] = []

    def on_mount(self) -> None:
        self.detail = Asked(self.console_app, self.show)
        self.asked_again()

    def on_unmount(self) -> None:
        if self.detail is not None:
            self.detail.stop()

    def asked_again(self) -> None:
        if self.detail is not None:
            self.detail.ask(self.console_app.feed.host_detail)

    # --- the list ----------------------------------------------------------------------------------------------

    def columns(self) -> tuple[ListColumn[TreeRow], ...]:
        return TREE_COLUMNS

    def items(self, fleet: Fleet | None) -> Sequence[TreeRow] | None:
        known = self.detail.value if self.detail is not None else None
        if known is None:
            return None
        made_for = (id(known), frozenset(self.collapsed), self.filter_bar.text)
        if made_for != self._made_for:
            self._made_for = made_for
            self._rows, self._matching = tree_rows(known, self.collapsed, self.filter_bar.text)
        return self._rows

    def key_of(self, item: TreeRow) -> str:
        return item.key

    def arranged(self, items: Sequence[TreeRow], look: Look) -> Sequence[TreeRow]:
        return items  # a tree has its own order, and is filtered with the ancestors of what matches

    def total(self, items: Sequence[TreeRow]) -> int:
        known = self.detail.value if self.detail is not None else None
        return len(known.trees) if known is not None else 0

    def heading(self) -> tuple[Part, ...]:
        detail = self.detail
        known = detail.value if detail is not None else None
        return trees_title(known, detail.taken if detail is not None else None, self.size.width)

    def failure(self) -> Problem | None:
        return self.detail.problem if self.detail is not None else None

    def asking(self) -> bool:
        return self.detail is not None and self.detail.asking

    def nothing(self, fleet: Fleet | None) -> str:
        if self.filter_bar.text:
            return "no process matches the filter; Esc ends it"
        return "no process can be seen; ctrl+r reads them again"

    def compose(self) -> ComposeResult:
        yield self.head_line
        yield self.banner
        yield self.host_line
        yield self.accounts
        yield self.title_line
        yield self.filter_bar
        yield self.message
        yield self.table
        yield self.foot_line

    def copied(self) -> str:
        keys = {item.key for item in self.selection}
        return "\n".join(tree_row_text(item) for item in self._items if item.key in keys)

    # --- showing -----------------------------------------------------------------------------------------------

    def show_body(self, fleet: Fleet | None) -> None:
        app, width = self.console_app, self.size.width
        look = look_of(fleet, app.glyphs, app.clock())
        room = self.body_height
        lines = host_lines(fleet, width, app.glyphs)
        self.host_line.show(lines if room >= 8 else (), app.tones)
        count = len(fleet.host.accounts) if fleet is not None and fleet.host is not None else 0
        height = min(count + 1, max(3, room // _ACCOUNTS_SHARE)) if count and room >= 8 else 0
        if height != self._accounts_height:
            self._accounts_height = height
            self.accounts.styles.height = height
        self.accounts.display = height > 0
        self.accounts.show(account_grid(fleet, width - (1 if count + 1 > height else 0), look), app.tones)
        super().show_body(fleet)
        self.filter_bar.count(self._matching, self.total(()), app.tones)

    # --- commands ------------------------------------------------------------------------------------------------

    def action_other_table(self) -> None:
        """Accounts or trees."""
        target = self.table if self.focused is self.accounts else self.accounts
        if target.row_count and target.display:
            self.set_focus(target)

    def action_open(self) -> None:
        """On an account: its processes. On an owner, or one of its processes: hide or show them."""
        if self.focused is self.accounts:
            self._open_account()
        elif (item := self.current) is not None:
            self.open(item)

    def _open_account(self) -> None:
        fleet, key = self.console_app.fleet, self.accounts.cursor_key
        known = fleet.host.accounts if fleet is not None and fleet.host is not None else ()
        account = next((account for account in known if str(account.uid) == key), None)
        if account is not None:
            self.filter_bar.display = True
            self.filter_bar.input.value = account.user
            self.set_focus(self.table)
            self.show()

    def open(self, item: TreeRow) -> None:
        if self.filter_bar.text:
            return  # nothing is hidden while it filters
        self.collapsed ^= {item.group}
        self.show()
        self.table.go_to(item.group)

    def action_fold_all(self) -> None:
        """Hide the processes of all owners, or show all."""
        known = self.detail.value if self.detail is not None else None
        groups = group_keys(known) if known is not None else frozenset()
        current = self.current
        self.collapsed = set() if groups <= self.collapsed else set(groups)
        self.show()
        if current is not None and self.collapsed:
            self.table.go_to(current.group)

    @on(DataTable.RowSelected, "#accounts")
    def _account_clicked(self) -> None:
        self._open_account()

    @on(Table.Edge)
    def _left(self, event: Table.Edge) -> None:
        if event.table is self.accounts and event.direction > 0 and self.table.row_count:
            self.set_focus(self.table)
        elif event.table is self.table and event.direction < 0 and self.accounts.display:
            self.set_focus(self.accounts)
