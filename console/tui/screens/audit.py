"""Audit: what was done from any worktop on this machine that this account may read, newest first; one entry in full."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from console.fleet.model import Fleet
from console.fleet.plan import AuditEntry
from console.tui.commands import Scope, bindings
from console.tui.screens.asked_list import AskedListScreen
from console.tui.screens.detail import DETAIL_BINDINGS, DETAIL_SCOPES, DetailScreen
from console.tui.screens.list import LIST_BINDINGS, LIST_SCOPES
from console.view.audit import STATE_TONES, audit_columns, entry_sections
from console.view.cells import Part, safe
from console.view.listing import ListColumn
from console.view.offers import Offer, undo_offer
from console.view.sections import Section

_AT_MOST = 500  # entries


class AuditScreen(AskedListScreen[AuditEntry, tuple[AuditEntry, ...]]):
    """The actions that were applied."""

    SCOPES: ClassVar[tuple[Scope, ...]] = (*LIST_SCOPES, "described", "audit")
    BINDINGS: ClassVar[list[BindingType]] = [*LIST_BINDINGS, *bindings("described", "audit")]

    def __init__(self) -> None:
        super().__init__()
        self._seen: object = None  # the result after which it was read

    def on_screen_resume(self) -> None:
        self.asked_again()

    def asked_again(self) -> None:
        acting = self.console_app.desk.acting
        if self.asked is not None and acting is not None and self.paused is None and not self.asked.asking:
            self.asked.ask(lambda: asyncio.to_thread(acting.audit, _AT_MOST))

    def columns(self) -> tuple[ListColumn[AuditEntry], ...]:
        return audit_columns(self.console_app.zone)

    def items(self, fleet: Fleet | None) -> Sequence[AuditEntry] | None:
        if self.console_app.desk.acting is None:
            return ()
        return self.answer

    def key_of(self, item: AuditEntry) -> str:
        return f"{item.plan} {item.at}"

    def heading(self) -> tuple[Part, ...]:
        return (("AUDIT", "head"),)

    def nothing(self, fleet: Fleet | None) -> str:
        return "no action has been applied yet; x on Jobs or Fleet has what can be done"

    def role_in_hand(self) -> str | None:
        return (self.current.role or None) if self.current is not None else None

    def selection_text(self) -> str:
        return safe(self.current.title, 60) if self.current is not None else ""

    def offers(self) -> tuple[Offer, ...]:
        return entry_offers(self.current)

    def open(self, item: AuditEntry) -> None:
        self.app.push_screen(EntryScreen(item))


class EntryScreen(DetailScreen):
    """One action: what came of it, who did it and why, and the plan as it was shown."""

    SCOPES: ClassVar[tuple[Scope, ...]] = (*DETAIL_SCOPES, "audit")
    BINDINGS: ClassVar[list[BindingType]] = [*DETAIL_BINDINGS, *bindings("audit")]

    def __init__(self, entry: AuditEntry) -> None:
        super().__init__()
        self._entry = entry

    def subject(self) -> tuple[Part, ...]:
        entry = self._entry
        return (
            (f"{safe(entry.state, 12)}  ", STATE_TONES.get(entry.state, "")),
            (safe(entry.title), "strong"),
        )

    def sections(self, fleet: Fleet | None, width: int) -> tuple[Section, ...]:
        return entry_sections(self._entry, width, self.console_app.glyphs, self.console_app.zone)

    def offers(self) -> tuple[Offer, ...]:
        return entry_offers(self._entry)

    def selection_text(self) -> str:
        return safe(self._entry.title, 60)

    def role_in_hand(self) -> str | None:
        return self._entry.role or None


def entry_offers(entry: AuditEntry | None) -> tuple[Offer, ...]:
    """Undo, where the entry can be."""
    return (undo_offer(entry.plan, entry.title),) if entry is not None and entry.undo else ()
