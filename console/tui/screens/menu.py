"""The menu (x): what can be done with the selection. Things that change something live here or on capital letters.

What is not allowed stays in the list, dimmed, with the reason; taking it shows what would allow it.
"""

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
        """Each is taken as its number: what was selected when the menu was opened is what is meant."""
        return tuple(
            Entry(doing.label, doing.keys, doing.help, str(number), doing.able)
            for number, doing in enumerate(self._doings)
        )

    def nothing(self) -> str:
        return "nothing can be done with what is selected"
