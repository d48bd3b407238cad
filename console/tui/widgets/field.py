"""A line to type in below a plan: a label, and what is typed."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widgets import Input

from console.tui.commands import bindings
from console.tui.widgets.line import Line
from console.view.cells import Part, Tone, part_columns, safe

_LONGEST = 300  # characters


class FieldInput(Input):
    """One line of typed text; control characters that were pasted are shown, not kept."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("field")]

    def validate_value(self, value: str) -> str:
        return value if value.isascii() and value.isprintable() else safe(value, _LONGEST)


class Field(Horizontal):
    """ "why: ____"; not there until it is shown."""

    DEFAULT_CSS = """
    Field { height: 1; width: 100%; background: $panel; }
    Field Line { background: $panel; }
    Field FieldInput { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    Field FieldInput:focus { border: none; background-tint: transparent; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._label = Line()
        self.input = FieldInput(compact=True, max_length=_LONGEST, select_on_focus=False)
        self.input.cursor_blink = False  # it would repaint twice a second
        self.display = False

    def compose(self) -> ComposeResult:
        yield self._label
        yield self.input

    @property
    def text(self) -> str:
        """What is typed."""
        return self.input.value.strip()

    def label(self, parts: tuple[Part, ...], tones: dict[Tone, Style]) -> None:
        """Show the field, with this before it."""
        self.display = True
        self._label.styles.width = part_columns(parts)
        self._label.show((parts,), tones)
