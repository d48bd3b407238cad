"""Lines of toned parts that repaint only when they change: the head, the titles, the footer."""

from __future__ import annotations

from itertools import groupby

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from console.tui.commands import Scope, footer_keys
from console.view.cells import Part, Tone, columns, part_columns

Lines = tuple[tuple[Part, ...], ...]


class Line(Widget):
    """Some fixed lines of text."""

    DEFAULT_CSS = """
    Line { height: 1; width: 100%; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: Lines = ()
        self._tones: dict[Tone, Style] = {}
        self.display = False  # until there is something to show

    def show(self, lines: Lines, tones: dict[Tone, Style]) -> bool:
        """Show the lines; True when something was repainted. Height follows the number of lines."""
        if lines == self._lines and tones is self._tones:
            return False
        old, self._lines = self._lines, lines
        if len(lines) != len(old):
            self.display = bool(lines)
            self.styles.height = len(lines)
        if len(lines) != len(old) or tones is not self._tones:
            self.refresh()
        else:
            changed = [(y, *pair) for y, pair in enumerate(zip(old, lines, strict=True)) if pair[0] != pair[1]]
            self.refresh(*(changed_region(y, before, now) for y, before, now in changed))
        self._tones = tones
        return True

    @property
    def line_count(self) -> int:
        return len(self._lines)

    def render_line(self, y: int) -> Strip:
        # Straight to segments: the way through Rich renderables costs three milliseconds a line.
        base, width = self.rich_style, self.size.width
        if y >= len(self._lines):
            return Strip.blank(width, base)
        runs = groupby(self._lines[y], key=lambda part: part[1])
        segments = [Segment("".join(text for text, _ in run), base + self._tones[tone]) for tone, run in runs]
        return Strip(segments).adjust_cell_length(width, base)


def changed_region(y: int, old: tuple[Part, ...], new: tuple[Part, ...]) -> Region:
    """The part of line `y` that must be painted again: from the first part that differs to the last."""
    start = 0
    for before, now in zip(old, new, strict=False):
        if before != now:
            break
        start += columns(now[0])
    end = width = max(part_columns(old), part_columns(new))
    if part_columns(old) == part_columns(new):
        for before, now in zip(reversed(old), reversed(new), strict=False):
            if before != now:
                break
            end -= columns(now[0])
    return Region(start, y, max(1, end - start), 1) if end > start else Region(0, y, max(1, width), 1)


class KeyLine(Line):
    """The footer: the keys of the moment, those that do not fit left out, the least needed first."""

    def fill(self, scopes: tuple[Scope, ...], width: int, unicode: bool, tones: dict[Tone, Style]) -> None:
        """Show the keys of `scopes` in `width` columns."""
        self.show((keys_parts(scopes, width, unicode),), tones)


def keys_parts(scopes: tuple[Scope, ...], width: int, unicode: bool) -> tuple[Part, ...]:
    """The keys and labels that fit into `width` columns."""
    parts: list[Part] = []
    for key, label in footer_keys(scopes, unicode):
        more: list[Part] = [("  ", "")] if parts else []
        more += [(key, "key"), (f" {label}", "dim")]
        if part_columns((*parts, *more)) > width:
            continue
        parts += more
    return tuple(parts)
