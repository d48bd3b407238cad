"""One worker: what systemd says of its unit, its files, its processes, who owns it, and its last words."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from console.fleet.model import Fleet, UnitDetail
from console.tui.asked import Asked
from console.tui.commands import Scope, bindings
from console.tui.screens.detail import DETAIL_BINDINGS, DETAIL_SCOPES, DetailScreen
from console.view.cells import Part, safe
from console.view.headline import clock_text
from console.view.listing import look_of
from console.view.offers import Offer, find_role, worker_offers
from console.view.sections import Section
from console.view.unit_offers import unit_offers
from console.view.worker import worker_sections, worker_title
from console.view.workers import Item, worker_items


class WorkerScreen(DetailScreen):
    """Follows the worker by its identity; when it is gone the screen keeps what it was, and says so."""

    SCOPES: ClassVar[tuple[Scope, ...]] = (*DETAIL_SCOPES, "worker", "acts", "units")
    BINDINGS: ClassVar[list[BindingType]] = [*DETAIL_BINDINGS, *bindings("worker", "acts", "units")]

    def __init__(self, item: Item) -> None:
        super().__init__()
        self._item = item
        self._gone_since: float | None = None
        self._unit: Asked[UnitDetail] | None = None

    def on_mount(self) -> None:
        self._unit = self.asked = Asked(self.console_app, self.show)
        self.asked_again()

    def asked_again(self) -> None:
        unit, app = self._item.worker.unit, self.console_app
        if unit is not None and self._unit is not None:
            self._unit.ask(lambda: app.feed.unit_detail(unit.name))

    def subject(self) -> tuple[Part, ...]:
        gone = clock_text(self._gone_since) if self._gone_since is not None else ""
        return worker_title(self._item, self.console_app.glyphs, gone)

    def sections(self, fleet: Fleet | None, width: int) -> tuple[Section, ...]:
        app = self.console_app
        found = next((item for item in worker_items(fleet) if item.key == self._item.key), None) if fleet else None
        if found is not None:
            self._item, self._gone_since = found, None
        elif fleet is not None and self._gone_since is None:
            self._gone_since = app.clock()
        unit = self._unit
        return worker_sections(
            self._item,
            unit.value if unit is not None else None,
            unit.problem if unit is not None else None,
            unit is None or unit.asking,
            width,
            look_of(fleet, app.glyphs, app.clock()),
        )

    def selection_text(self) -> str:
        return safe(f"{self._item.worker.role} {self._item.worker.name}", 60)

    def offers(self) -> tuple[Offer, ...]:
        status = find_role(self.console_app.fleet, self._item.worker.role)
        return (*unit_offers([self._item.worker], status), *worker_offers(self._item.claims, status))

    def action_diagnose(self) -> None:
        """What is wrong with it."""
        from console.tui.screens.diagnosis import of_worker

        worker = self._item.worker
        self.app.push_screen(of_worker(worker.role, worker.key, worker.name))

    def action_log(self) -> None:
        """The log of this worker."""
        unit = self._item.worker.unit
        self.console_app.show_log_of(self._item.worker.role, unit.name if unit is not None else None)
