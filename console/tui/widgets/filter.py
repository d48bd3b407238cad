"""The filter of a list: a line that stays visible with its match count while it filters."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widgets import Input

from console.text import grouped
from console.tui.commands import bindings
from console.tui.widgets.line import Line
from console.view.cells import Part, Tone, columns, safe

_LONGEST = 200  # characters


class FilterInput(Input):
    """One line of typed text; control characters that were pasted are shown, not kept."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("filter")]

    def validate_value(self, value: str) -> str:
        return value if value.isascii() and value.isprintable() else safe(value, _LONGEST)


class FilterBar(Horizontal):
    """ "/words        7 of 212"; not there while nothing is filtered."""

    DEFAULT_CSS = """
    FilterBar { height: 1; width: 100%; background: $panel; }
    FilterBar Line { background: $panel; }
    FilterBar #filter-sign { width: 1; }
    FilterBar FilterInput { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    FilterBar FilterInput:focus { border: none; background-tint: transparent; }
    """

    def __init__(self) -> None:
        super().__init__(id="filter")
        self._sign = Line(id="filter-sign")
        self.input = FilterInput(compact=True, max_length=_LONGEST, select_on_focus=False)
        self.input.cursor_blink = False  # it would repaint twice a second
        self._count = Line(id="filter-count")
        self.display = False

    def compose(self) -> ComposeResult:
        yield self._sign
        yield self.input
        yield self._count

    @property
    def text(self) -> str:
        """What is filtered for; "" when nothing is."""
        return self.input.value if self.display else ""

    def open(self) -> None:
        """Let the person type."""
        self.display = True
        self.screen.set_focus(self.input)

    def close(self) -> None:
        """Filter nothing."""
        self.display = False
        self.input.value = ""

    def count(self, found: int, of: int, tones: dict[Tone, Style], also: str = "") -> None:
        """Say how many match; `also` stands behind it."""
        if not self.display:
            return
        tone: Tone = "bad" if not found and self.input.value else "strong"
        text = f" {grouped(found)} of {grouped(of)}{also}"
        parts: tuple[Part, ...] = ((text, tone),)
        self._sign.show(((("/", "key"),),), tones)
        self._count.styles.width = columns(text)
        self._count.show((parts,), tones)
