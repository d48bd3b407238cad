"""A small window that asks for a number before a plan is made."""

from __future__ import annotations

from textual import on
from textual.widget import Widget
from textual.widgets import Input

from console.tui.screens.choice import ChoiceScreen, Entry
from console.view.offers import Request

_SMALLEST, _LARGEST = -32768, 32767  # what every queue can hold


class NumberScreen(ChoiceScreen):
    """Dismissed with the number."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request
        self._input = Input(compact=True, max_length=6, placeholder="a whole number; higher comes first in most queues")
        self._input.cursor_blink = False

    def heading(self) -> str:
        return f"PRIORITY  {self._request.title}"

    def entries(self) -> tuple[Entry, ...]:
        number = whole_number(self._input.value)
        return () if number is None else (Entry(f"priority {number}", "", "shows the plan", str(number)),)

    def nothing(self) -> str:
        return "type a whole number" if not self._input.value.strip("+-") else "that is no number a queue can hold"

    def typing(self) -> Widget | None:
        return self._input

    def on_mount(self) -> None:
        self.set_focus(self._input)

    def action_take(self) -> None:
        if self.entries():
            super().action_take()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.look_again()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_take()


def whole_number(text: str) -> int | None:
    """The number, where it is one that every queue can hold."""
    text = text.strip()
    if not text.isascii() or not text.lstrip("+-").isdecimal() or len(text) - len(text.lstrip("+-")) > 1:
        return None
    number = int(text)
    return number if _SMALLEST <= number <= _LARGEST else None
