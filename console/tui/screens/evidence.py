"""The evidence behind a finding: every sentence of it, what mends it, and the next step."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from console.fleet.model import Fleet
from console.tui.commands import Scope, bindings
from console.tui.screens.base import ConsoleScreen
from console.tui.widgets.line import Line
from console.tui.widgets.pager import Pager
from console.view.cells import Part, cell, plain, safe
from console.view.findings import TONES, Entry, entries, evidence_lines
from console.view.offers import Offer, find_role, role_offers
from console.view.page import Lines
from console.view.unit_offers import role_unit_offers

if TYPE_CHECKING:
    from console.view.playbooks import Begin

_WIDEST = 110  # longer lines are hard to read


class EvidenceScreen(ConsoleScreen):
    """One finding; it stays on the screen when it is no longer the case, and says so."""

    SCOPES: ClassVar[tuple[Scope, ...]] = ("console", "pager", "evidence", "acts", "units")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("evidence", "acts", "units")]

    def __init__(self, entry: Entry, role: str | None) -> None:
        super().__init__()
        self._entry = entry
        self._role = role
        self._gone_since: float | None = None
        self.title_line = Line(id="title", classes="title")
        self.pager = Pager(id="body")

    def compose(self) -> ComposeResult:
        yield self.head_line
        yield self.title_line
        yield self.pager
        yield self.foot_line

    def show_body(self, fleet: Fleet | None) -> None:
        app = self.console_app
        known = entries(fleet, self._role) if fleet is not None else ()
        place = next((number for number, entry in enumerate(known) if entry.key == self._entry.key), None)
        if place is not None:
            self._entry, self._gone_since = known[place], None
        elif self._gone_since is None:
            self._gone_since = app.clock()
        finding = self._entry.finding
        title: list[Part] = [
            (f"{app.glyphs.severity(finding.severity)} ", TONES[finding.severity]),
            (safe(finding.role or "host", 24), "head"),
        ]
        if place is not None:
            title.append((f"  finding {place + 1} of {len(known)}", "dim"))
        else:
            since = datetime.fromtimestamp(self._gone_since or app.clock(), UTC).strftime("%H:%M:%S")
            title.append((f"  no longer the case since {since} UTC", "ok"))
        self.title_line.show((cell(tuple(title), self.size.width).parts,), app.tones)
        width = min(_WIDEST, self.size.width - 1)  # the scroll bar
        self.pager.show((*evidence_lines(finding, width, app.glyphs), *self._mending(width)), app.tones)

    def _mending(self, width: int) -> Lines:
        """The playbooks for it; where there are none their part of the console is not needed."""
        begins = self.begins()
        if not begins:
            return ()
        from console.view.playbooks import mending_lines

        return mending_lines(begins, width)

    def role_in_hand(self) -> str | None:
        return self._entry.finding.role or None

    def selection_text(self) -> str:
        return safe(self._entry.finding.what, 50)

    def begins(self) -> tuple[Begin, ...]:
        return self.console_app.playbooks.mending(self._entry.finding)

    def offers(self) -> tuple[Offer, ...]:
        status = find_role(self.console_app.fleet, self.role_in_hand())
        return (*role_offers(status), *role_unit_offers(status))

    def copied(self) -> str:
        return "\n".join(plain(line) for line in evidence_lines(self._entry.finding, 120, self.console_app.glyphs))

    def action_diagnose(self) -> None:
        """What is wrong with its role; a finding of the host has none."""
        from console.tui.screens.diagnosis import of_role

        role = self.role_in_hand()
        if role is not None:
            self.app.push_screen(of_role(role))

    def action_step(self, by: int) -> None:
        """Go to the next or the previous finding."""
        fleet = self.console_app.fleet
        known = entries(fleet, self._role) if fleet is not None else ()
        place = next((number for number, entry in enumerate(known) if entry.key == self._entry.key), None)
        if not known:
            return
        target = 0 if place is None else place + by
        if 0 <= target < len(known) and target != place:
            self._entry, self._gone_since = known[target], None
            self.pager.scroll_home(animate=False)
            self.show()
