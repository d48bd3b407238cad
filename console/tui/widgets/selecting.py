"""Selecting text with the mouse in widgets that draw their lines themselves.

Textual finds the place under the mouse by the "offset" in a segment's style: the number of the character in its line,
and of the line in the widget. The widget paints what is selected and says what its text is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

_REVERSED = Style(reverse=True)


@lru_cache(maxsize=2048)
def offset(x: int, y: int) -> Style:
    """Says that a segment begins with character `x` of line `y`."""
    return Style.from_meta({"offset": (x, y)})


def placed(runs: Iterable[tuple[str, Style]], y: int) -> list[Segment]:
    """Line `y` as segments that say where they stand."""
    segments: list[Segment] = []
    x = 0
    for text, style in runs:
        segments.append(Segment(text, style + offset(x, y)))
        x += len(text)
    return segments


def painted(widget: Widget, strip: Strip, y: int) -> Strip:
    """Line `y` with what is selected of it marked."""
    selection = widget.text_selection
    span = selection.get_span(y) if selection is not None else None
    if span is None:
        return strip
    text = strip.text
    first, last = cell_len(text[: span[0]]), strip.cell_length if span[1] < 0 else cell_len(text[: span[1]])
    if last <= first:
        return strip
    # Below 256 colours, and with none, a blended ground cannot be told from another.
    app = cast("ConsoleApp", widget.app)
    plain = getattr(app, "no_color", False) or app.has_class("-sixteen")
    style = _REVERSED if plain else widget.screen.get_component_rich_style("screen--selection")
    before, chosen, after = strip.crop(0, first), strip.crop(first, last), strip.crop(last)
    marked = (Segment(text, (old or Style.null()) + style, control) for text, old, control in chosen)
    # The pieces of a segment begin elsewhere than it did.
    return Strip([*before, *marked, *after], strip.cell_length).apply_offsets(0, y)


def selected(selection: Selection, lines: Sequence[str]) -> tuple[str, str] | None:
    """What Textual wants to know: the selected text of these lines, without blanks at their ends, and what ends it."""
    if not lines or (selection.start is not None and selection.start.y >= len(lines)):
        return None
    text = "\n".join(lines)
    return "\n".join(line.rstrip() for line in selection.extract(text).split("\n")), "\n"
