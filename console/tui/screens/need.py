"""Asks for a value that a playbook needs: chosen from what is known, or typed."""

from __future__ import annotations

from typing import ClassVar

from console.playbook.model import Playbook
from console.tui.screens.ask import TypedScreen
from console.tui.screens.choice import Entry
from console.view.cells import safe

_LONGEST = 300


class NeedScreen(TypedScreen):
    """Dismissed with the value."""

    TAKES: ClassVar[str] = "take"

    def __init__(self, book: Playbook, name: str, about: str, suggested: tuple[tuple[str, str], ...]) -> None:
        """`suggested`: values, and what each is; raw."""
        super().__init__(safe(about, 75), _LONGEST)
        self._title = f"{safe(book.title, 40)}: {safe(name, 30)}"
        self._suggested = suggested

    def heading(self) -> str:
        return self._title

    def entries(self) -> tuple[Entry, ...]:
        typed = self._input.value.strip()
        fits = [each for each in self._suggested if typed.casefold() in " ".join(each).casefold()]
        found = [Entry(safe(value, 40), "", safe(what, 200), value) for value, what in fits]
        if typed and typed not in (value for value, _ in self._suggested):
            found.append(Entry(safe(typed, 40), "", "as it is typed", typed))
        return tuple(found)

    def nothing(self) -> str:
        return "type it"
