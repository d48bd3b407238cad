"""One entry of the schedules: what it is and why, what is alive of it, its text, and the units it would become."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.binding import BindingType

from console.fleet.model import Fleet
from console.schedules.inventory import Listed, Translated
from console.tui.asked import Asked
from console.tui.commands import Scope, bindings
from console.tui.screens.detail import DETAIL_BINDINGS, DETAIL_SCOPES, DetailScreen
from console.view.cells import Part, safe
from console.view.line_offers import line_offers
from console.view.listing import look_of
from console.view.offers import Offer
from console.view.playbooks import Begin
from console.view.schedule import UNITS, schedule_sections, schedule_title
from console.view.sections import Section


class ScheduleScreen(DetailScreen):
    """Follows the entry by its name; the units are asked for when it is opened, since proving them takes a second."""

    SCOPES: ClassVar[tuple[Scope, ...]] = (*DETAIL_SCOPES, "schedule")
    BINDINGS: ClassVar[list[BindingType]] = [*DETAIL_BINDINGS, *bindings("schedule")]

    def __init__(self, listed: Listed, find: Callable[[str], Listed | None], units: bool = False) -> None:
        """`find`: the entry as it is now; `units`: go to the units as soon as they are there."""
        super().__init__()
        self._listed = listed
        self._find = find
        self._to_units = units
        self._translated: Asked[tuple[Translated, ...]] | None = None

    def on_mount(self) -> None:
        self._translated = self.asked = Asked(self.console_app, self._answered)
        self.asked_again()

    def asked_again(self) -> None:
        feed, name = self.console_app.feed, self._listed.name
        if self._translated is not None:
            self._translated.ask(lambda: feed.translate((name,)))

    def _answered(self) -> None:
        self.show()
        if self._to_units and self._translated is not None and not self._translated.asking:
            self._to_units = False
            self.call_after_refresh(self.action_translate)  # the text must have its new length

    def subject(self) -> tuple[Part, ...]:
        return schedule_title(self._listed, self.console_app.glyphs)

    def sections(self, fleet: Fleet | None, width: int) -> tuple[Section, ...]:
        app, asked = self.console_app, self._translated
        self._listed = self._find(self._listed.name) or self._listed
        told = asked.value[0] if asked is not None and asked.value else None
        problem = asked.problem if asked is not None else None
        asking = asked is None or asked.asking
        return schedule_sections(self._listed, told, problem, asking, width, look_of(fleet, app.glyphs, app.clock()))

    def action_translate(self) -> None:
        """Go to the units it would become."""
        self.go_to(UNITS)

    def selection_text(self) -> str:
        return safe(self._listed.name, 60)

    def role_in_hand(self) -> str | None:
        return self._listed.role or None

    def begins(self) -> tuple[Begin, ...]:
        return self.console_app.playbooks.about(self._listed)

    def offers(self) -> tuple[Offer, ...]:
        return line_offers(self._listed)
