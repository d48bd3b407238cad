"""The menu (x): what can be done with the selection. Things that change something live here or on capital letters."""

from __future__ import annotations

from console.tui.screens.base import Doing
from console.tui.screens.choice import ChoiceScreen, Entry


class MenuScreen(ChoiceScreen):
    """The actions for a selection."""

    def __init__(self, selected: str, doings: tuple[Doing, ...]) -> None:
        super().__init__()
        self._selected = selected
        self._doings = doings

    def heading(self) -> str:
        return f"ACTIONS  {self._selected}".rstrip()

    def entries(self) -> tuple[Entry, ...]:
        return tuple(Entry(doing.label, "", "", doing.action) for doing in self._doings)

    def nothing(self) -> str:
        return "read-only: nothing here changes anything yet"
