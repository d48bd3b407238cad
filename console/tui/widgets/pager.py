"""A text longer than the screen."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from console.tui.commands import bindings
from console.tui.theme import paint
from console.tui.widgets.line import Lines
from console.view.cells import Tone


class Pager(VerticalScroll):
    """Lines to scroll through by line and page."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("pager")]

    DEFAULT_CSS = """
    Pager { scrollbar-size-vertical: 1; background: $background; height: 1fr; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._shown: Lines = ()
        self._tones: dict[Tone, Style] = {}
        self._text = Static(id="lines", markup=False)

    def compose(self) -> ComposeResult:
        yield self._text

    def on_resize(self) -> None:
        # In one column the scrollbar leaves no room for the text, which then is short and needs none: without end.
        self.styles.overflow_y = "auto" if self.outer_size.width > 1 else "hidden"

    def show(self, lines: Lines, tones: dict[Tone, Style]) -> None:
        """Show the lines; the scroll position stays. The text can be selected with the mouse."""
        if lines == self._shown and tones is self._tones:
            return
        self._shown, self._tones = lines, tones
        text = Text("\n", no_wrap=True, end="").join(paint(line, tones) for line in lines)
        self._text.update(text)
