"""Schedules: everything that starts something on the host, what it is, and what is alive of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from console.fleet.model import Fleet
from console.schedules.inventory import Inventory, Listed
from console.tui.commands import Scope, bindings
from console.tui.screens.asked_list import AskedListScreen
from console.tui.screens.list import LIST_BINDINGS, LIST_SCOPES
from console.view.cells import Part, safe
from console.view.line_offers import line_offers
from console.view.listing import ListColumn, Look
from console.view.offers import Offer
from console.view.playbooks import Begin
from console.view.schedules import COLUMNS, Row, rows, summary_parts

_EVERY = 5.0  # seconds: what is alive; files are read again only when they have changed
_LATE = 3  # times as seldom while nobody touches the console


class SchedulesScreen(AskedListScreen[Row, Inventory]):
    """Read when the screen is opened, then every few seconds while it is the one that is shown."""

    SCOPES: ClassVar[tuple[Scope, ...]] = (*LIST_SCOPES, "described", "schedules")
    BINDINGS: ClassVar[list[BindingType]] = [*LIST_BINDINGS, *bindings("described", "schedules")]

    def __init__(self) -> None:
        super().__init__()
        self._made: tuple[object, tuple[Row, ...]] = (None, ())
        self._ticks = 0

    def ask_first(self) -> None:
        self._ask(anew=False)
        self.set_interval(_EVERY, self._tick)

    def asked_again(self) -> None:
        self._ask(anew=True)

    def _ask(self, anew: bool) -> None:
        feed = self.console_app.feed
        if self.asked is not None and self.paused is None and (anew or not self.asked.asking):
            self.asked.ask(lambda: feed.schedules(anew))

    def _tick(self) -> None:
        """Whoever looks at another screen needs none of it."""
        self._ticks += 1
        app = self.console_app
        if app.current_mode == "schedules" and (not app.resting or self._ticks % _LATE == 0):
            self._ask(anew=False)

    def heard(self) -> None:
        front = self.console_app.front
        (front if front is not None and self.console_app.current_mode == "schedules" else self).show()

    @property
    def inventory(self) -> Inventory | None:
        """What was heard last."""
        return self.answer

    def find(self, name: str) -> Listed | None:
        """The entry of that name, as it is now."""
        known = self.inventory
        return next((each for each in known.entries if each.name == name), None) if known is not None else None

    # --- the list ----------------------------------------------------------------------------------------------

    def columns(self) -> tuple[ListColumn[Row], ...]:
        return COLUMNS

    def items(self, fleet: Fleet | None) -> Sequence[Row] | None:
        known = self.inventory
        if known is None:
            return None
        if self._made[0] is not known:
            self._made = (known, rows(known))
        return self._made[1]

    def key_of(self, item: Row) -> str:
        return item.key

    def heading(self) -> tuple[Part, ...]:
        return (("SCHEDULES", "head"),)

    def summary(self, items: Sequence[Row], look: Look) -> tuple[Part, ...]:
        known = self.inventory
        return summary_parts(tuple(items), look.glyphs, known.notes if known is not None else ())

    def nothing(self, fleet: Fleet | None) -> str:
        return "nothing is scheduled on this host: no crontab, no timer, no supervisor; ctrl+r looks again"

    # --- a row -------------------------------------------------------------------------------------------------

    def open(self, item: Row) -> None:
        from console.tui.screens.schedule import ScheduleScreen

        if item.listed is not None:
            self.app.push_screen(ScheduleScreen(item.listed, self.find))
        elif item.unread is not None:
            self.notify(safe(item.unread.problem.line(), 300), markup=False, timeout=8)

    def action_translate(self) -> None:
        """The units the entry would become."""
        from console.tui.screens.schedule import ScheduleScreen

        current = self.current
        if current is not None and current.listed is not None:
            self.app.push_screen(ScheduleScreen(current.listed, self.find, units=True))

    def show_log(self, item: Row) -> None:
        if item.listed is not None and item.listed.role:
            self.console_app.show_log_of(item.listed.role)

    def role_in_hand(self) -> str | None:
        current = self.current
        return (current.listed.role or None) if current is not None and current.listed is not None else None

    def begins(self) -> tuple[Begin, ...]:
        return self.console_app.playbooks.about(self.selection[0].listed if len(self.selection) == 1 else None)

    def offers(self) -> tuple[Offer, ...]:
        selected = self.selection
        return line_offers(selected[0].listed) if len(selected) == 1 and selected[0].listed is not None else ()
