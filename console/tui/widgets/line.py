"""Lines of toned parts that repaint only when they change: the head, the titles, the footer."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from console.tui.commands import SCREENS, Scope, footer_keys
from console.tui.widgets.selecting import painted, placed, selected
from console.view.cells import Part, Tone, columns, part_columns, plain

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
        segments = placed((("".join(text for text, _ in run), base + self._tones[tone]) for tone, run in runs), y)
        return painted(self, Strip(segments).adjust_cell_length(width, base), y)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selected(selection, [plain(line) for line in self._lines])


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


_TIGHT = 100  # narrower than this the screens of the footer stand close: 1Fleet 2Workers
_KEYS_ONLY = 70  # and narrower than this they are left out
# Where its own keys are needed more: narrower than this.
_KEYS_FIRST: dict[Scope, int] = {"wizard": 150, "plan": 120, "evidence": 120}


class KeyLine(Line):
    """The footer: the screens, and the keys of the moment, those that do not fit left out, the least needed first.

    A click on a key is that key.
    """

    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._spans: tuple[Span, ...] = ()

    def fill(
        self,
        scopes: tuple[Scope, ...],
        width: int,
        unicode: bool,
        tones: dict[Tone, Style],
        current: str = "",
        idle: frozenset[str] = frozenset(),
    ) -> None:
        """Show the keys of `scopes` in `width` columns, but not of the commands that are `idle`; `current` names the
        screen that is shown."""
        parts, self._spans = keys_parts(scopes, width, unicode, current, idle)
        self.show((parts,), tones)

    def on_click(self, event: events.Click) -> None:
        key = next((span.key for span in self._spans if span.start <= event.x < span.end), None)
        if key is not None:
            event.stop()
            self.app.simulate_key(key)


class Span(NamedTuple):
    """Where in the footer a key stands."""

    start: int
    end: int
    key: str


@lru_cache(maxsize=64)
def keys_parts(
    scopes: tuple[Scope, ...], width: int, unicode: bool, current: str = "", idle: frozenset[str] = frozenset()
) -> tuple[tuple[Part, ...], tuple[Span, ...]]:
    """The screens, keys and labels that fit into `width` columns, and where they stand."""
    least = max(_KEYS_FIRST.get(scope, _KEYS_ONLY) for scope in scopes)
    screens = screen_parts(width, current) if width >= least and "console" in scopes else []
    entries: list[tuple[str, str, str]] = []
    room = width - sum(len(f"{key}{label}{gap}") for key, label, gap, _ in screens)
    names = {screen.key for screen in SCREENS}
    for key, label, pressed in footer_keys(scopes, unicode, idle):
        taken = columns(key) + 1 + columns(label) + (2 if entries or screens else 0)
        if pressed in names or taken > room:
            continue
        room -= taken
        entries.append((key, label, pressed))
    parts: list[Part] = []
    spans: list[Span] = []
    at = 0

    def add(pieces: list[Part], pressed: str) -> None:
        nonlocal at
        taken = part_columns(tuple(pieces))
        spans.append(Span(at, at + taken, pressed))
        parts.extend(pieces)
        at += taken

    for key, label, gap, here in screens:
        add([(key, "key"), (label, "strong" if here else "dim")], key)
        parts.append((gap, ""))
        at += len(gap)
    for number, (key, label, pressed) in enumerate(entries):
        if number or screens:
            parts.append(("  ", ""))
            at += 2
        add([(key, "key"), (f" {label}", "dim")], pressed)
    return tuple(parts), tuple(spans)


def screen_parts(width: int, current: str) -> list[tuple[str, str, str, bool]]:
    """Key, label, gap after it, and whether it is the one shown, of each screen."""
    narrow = width < _TIGHT
    between = "" if narrow else " "
    last = len(SCREENS) - 1
    return [
        (
            screen.key,
            f"{between}{screen.label(narrow)}",
            "" if number == last else " " + between,
            screen.name == current,
        )
        for number, screen in enumerate(SCREENS)
    ]
