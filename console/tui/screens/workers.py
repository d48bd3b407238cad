"""Workers: desired instances, missing ones and strays in one list, of a role or of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from console.fleet.model import Fleet
from console.tui.commands import Scope, bindings
from console.tui.screens.list import LIST_BINDINGS, LIST_SCOPES, ListScreen
from console.view.cells import Part, safe
from console.view.headline import notices
from console.view.listing import ListColumn, Look
from console.view.offers import Offer, find_role, worker_offers
from console.view.unit_offers import unit_offers
from console.view.workers import COLUMNS, OF_ONE_ROLE, Item, summary_parts, worker_items


class WorkersScreen(ListScreen[Item]):
    """The workers of one role, or of all."""

    SCOPES: ClassVar[tuple[Scope, ...]] = (*LIST_SCOPES, "workers", "acts", "units")
    BINDINGS: ClassVar[list[BindingType]] = [*LIST_BINDINGS, *bindings("workers", "acts", "units")]

    def __init__(self, role: str | None = None) -> None:
        super().__init__()
        self._role = role

    def columns(self) -> tuple[ListColumn[Item], ...]:
        return COLUMNS if self._role is None else OF_ONE_ROLE

    def items(self, fleet: Fleet | None) -> Sequence[Item] | None:
        return worker_items(fleet, self._role) if fleet is not None else None

    def key_of(self, item: Item) -> str:
        return item.key

    def heading(self) -> tuple[Part, ...]:
        of = f" of {safe(self._role, 24)}" if self._role is not None else ""
        return ((f"WORKERS{of}", "head"),)

    def summary(self, items: Sequence[Item], look: Look) -> tuple[Part, ...]:
        return summary_parts(tuple(items), look.glyphs)

    def nothing(self, fleet: Fleet | None) -> str:
        told = notices(fleet, self.console_app.glyphs)
        if self._role is not None or not told:
            return "no workers, and none are desired; Esc goes back, ctrl+r asks again"
        return told[0]

    def offers(self) -> tuple[Offer, ...]:
        roles = {item.worker.role for item in self.selection}
        name = next(iter(roles)) if len(roles) == 1 else self._role
        claims = [claim for item in self.selection for claim in item.claims]
        status = find_role(self.shown_fleet, name)
        workers = [item.worker for item in self.selection]
        return (*unit_offers(workers, status), *worker_offers(claims, status))

    def role_in_hand(self) -> str | None:
        current = self.current
        return self._role if current is None else current.worker.role

    def open(self, item: Item) -> None:
        from console.tui.screens.worker import WorkerScreen

        self.app.push_screen(WorkerScreen(item))

    def action_diagnose(self) -> None:
        """What is wrong with the worker under the cursor."""
        from console.tui.screens.diagnosis import of_worker

        if (item := self.current) is not None:
            self.app.push_screen(of_worker(item.worker.role, item.worker.key, item.worker.name))

    def show_log(self, item: Item) -> None:
        unit = item.worker.unit
        self.console_app.show_log_of(item.worker.role, unit.name if unit is not None else None)
