"""The plan of an action that is asked for from a screen; and why some cannot be asked for."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from console.fleet.model import Fleet
from console.fleet.plan import Consent, Plan
from console.tui.commands import Scope
from console.tui.screens.consent import ConsentScreen
from console.tui.screens.detail import DETAIL_BINDINGS, DETAIL_SCOPES, DetailScreen
from console.view.cells import Part
from console.view.offers import Request
from console.view.plan import consent_lines
from console.view.sections import Section


class PlanScreen(ConsentScreen):
    """Applies the plan of a request when the person says so."""

    def __init__(self, request: Request) -> None:
        super().__init__(request.title)
        self._request = request

    async def plan_anew(self, why: str) -> Plan:
        return await self.console_app.desk.make(self._request, why)

    def unready(self) -> str:
        return "another action runs: 0 shows it" if self.console_app.desk.run is not None else ""

    def agreed(self, plan: Plan, typed: str, why: str) -> None:
        from console.tui.screens.progress import ProgressScreen

        app = self.console_app
        if app.desk.start(plan, typed, why):
            app.switch_screen(ProgressScreen())


class RefusedScreen(DetailScreen):
    """Why something cannot be asked for, and what would allow it."""

    SCOPES: ClassVar[tuple[Scope, ...]] = DETAIL_SCOPES
    BINDINGS: ClassVar[list[BindingType]] = DETAIL_BINDINGS

    def __init__(self, request: Request, consent: Consent) -> None:
        super().__init__()
        self._request = request
        self._consent = consent

    def subject(self) -> tuple[Part, ...]:
        return ((f"{self.console_app.glyphs.bad} not allowed: ", "bad"), (self._request.title, "strong"))

    def sections(self, fleet: Fleet | None, width: int) -> tuple[Section, ...]:
        return (Section("NOT ALLOWED", consent_lines(self._consent, width, self.console_app.glyphs)),)
