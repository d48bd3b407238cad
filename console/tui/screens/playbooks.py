"""Playbooks: unfinished runs, the playbooks there are, and runs that are over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from console.fleet.model import Fleet
from console.playbook.model import RunStatus, Shelved
from console.tui.commands import Scope, bindings
from console.tui.screens.asked_list import AskedListScreen
from console.tui.screens.base import Doing
from console.tui.screens.list import LIST_BINDINGS, LIST_SCOPES
from console.view.cells import Part, safe
from console.view.listing import ListColumn, Look
from console.view.playbooks import COLUMNS, Row, rows, summary_parts


class PlaybooksScreen(AskedListScreen[Row, tuple[tuple[Shelved, ...], tuple[RunStatus, ...]]]):
    """Read when it is shown, and on ctrl+r."""

    SCOPES: ClassVar[tuple[Scope, ...]] = (*LIST_SCOPES, "described", "playbooks")
    BINDINGS: ClassVar[list[BindingType]] = [*LIST_BINDINGS, *bindings("described", "playbooks")]

    def __init__(self) -> None:
        super().__init__()
        self._made: tuple[object, tuple[Row, ...]] = (None, ())

    def on_screen_resume(self) -> None:
        self.asked_again()

    def asked_again(self) -> None:
        if self.asked is not None and self.paused is None and not self.asked.asking:
            self.asked.ask(self.console_app.playbooks.read)

    # --- the list ----------------------------------------------------------------------------------------------

    def columns(self) -> tuple[ListColumn[Row], ...]:
        return COLUMNS

    def items(self, fleet: Fleet | None) -> Sequence[Row] | None:
        known = self.answer
        if known is None:
            return None
        findings = fleet.findings if fleet is not None else ()
        if self._made[0] != (known, findings):
            self._made = ((known, findings), rows(*known, findings))
        return self._made[1]

    def key_of(self, item: Row) -> str:
        return item.key

    def heading(self) -> tuple[Part, ...]:
        return (("PLAYBOOKS", "head"),)

    def summary(self, items: Sequence[Row], look: Look) -> tuple[Part, ...]:
        return summary_parts(items)

    def nothing(self, fleet: Fleet | None) -> str:
        return "no playbook was found: /etc/worktop/playbooks and ~/.config/worktop/playbooks hold your own"

    # --- a row -------------------------------------------------------------------------------------------------

    def open(self, item: Row) -> None:
        from console.tui.screens.playbook import FaultyScreen, PlaybookScreen
        from console.tui.screens.wizard import WizardScreen

        playbooks, shelved = self.console_app.playbooks, item.shelved
        wizard = playbooks.wizard
        if item.run is not None and wizard is not None and wizard.follows(item.run.run):
            wizard.stay()  # at once: what goes on may end before the screen is there, and let go of the run
            self.app.push_screen(WizardScreen(wizard))
        elif item.run is not None:
            playbooks.resume(item.run)
        elif shelved is not None and shelved.playbook is not None:
            self.app.push_screen(PlaybookScreen(shelved.playbook, {}))
        elif shelved is not None:
            self.app.push_screen(FaultyScreen(shelved))

    def describe(self, item: Row) -> None:
        from console.tui.screens.playbook import RunScreen

        if item.run is not None:
            self.app.push_screen(RunScreen(item.run))
        else:
            self.open(item)

    def show_log(self, item: Row) -> None:
        if item.run is not None and item.run.role:
            self.console_app.show_log_of(item.run.role)

    def doings(self) -> tuple[Doing, ...]:
        current = self.current
        if current is None:
            return ()
        if current.run is None:
            return (Doing("show it", "screen.open", "", "what it is for, what it needs, its steps"),)
        words = "take it up" if current.run.state == "open" else "show how it ended"
        return (
            Doing(words, "screen.open", "", "its next step is shown; nothing is changed by that"),
            Doing("describe it", "screen.describe", "d", "every step, and what came of it"),
        )

    def selection_text(self) -> str:
        current = self.current
        if current is None:
            return ""
        return safe(current.run.title if current.run is not None else current.key.removeprefix("book "), 50)

    def role_in_hand(self) -> str | None:
        current = self.current
        return (current.run.role or None) if current is not None and current.run is not None else None
