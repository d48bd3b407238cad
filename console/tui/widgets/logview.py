"""The lines of a log that fit the screen: nothing is drawn that is not seen, however many lines there are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from console.fleet.model import LogLine
from console.tui.widgets.selecting import painted, placed
from console.view.cells import Tone, plain
from console.view.glyphs import UNICODE, Glyphs
from console.view.log import log_parts

_WHOLE = 10_000  # columns, more than any line has


class LogView(ScrollView, can_focus=True):
    """Lines to scroll through; `following` keeps the last one in sight."""

    DEFAULT_CSS = """
    LogView { height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; background: $background; }
    """

    class Scrolled(Message):
        """A person scrolled with the mouse."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.following = True
        self.aside = 0  # columns of the text that are scrolled out at the left
        self._lines: Sequence[LogLine] = ()
        self._tones: dict[Tone, Style] = {}
        self._glyphs = UNICODE
        self._names = 0
        self._shown: object = None

    def show(
        self,
        lines: Sequence[LogLine],
        tones: dict[Tone, Style],
        glyphs: Glyphs,
        names: int,
        gone: int = 0,
        version: int = 0,
    ) -> None:
        """Show the lines; `names` is the width of the instance column, `gone` how many left at the beginning.

        With the same `version` of the lines, and all else the same, nothing is painted.
        """
        shown = (version, len(lines), names, self.following, self.size, id(tones))
        if shown == self._shown:
            return
        self._shown = shown
        if self.text_selection is not None and (gone or lines is not self._lines):
            self.screen.clear_selection()  # what was selected stands elsewhere, or not at all
        self._lines, self._tones, self._glyphs, self._names = lines, tones, glyphs, names
        self.virtual_size = Size(max(1, self.size.width), len(lines))
        if self.following:
            self.scroll_end(animate=False, immediate=True)
        elif gone:
            self.scroll_to(y=max(0, self.scroll_y - gone), animate=False, immediate=True)
        self.refresh()

    def move(self, lines: int) -> None:
        """Scroll by so many lines; upwards ends following."""
        if lines < 0:
            self.following = False
        self.scroll_to(y=max(0, self.scroll_y + lines), animate=False, immediate=True)

    def go_to(self, line: int) -> None:
        """Have the line in the middle of what is seen; following ends."""
        self.following = False
        self.scroll_to(y=max(0, line - self.size.height // 2), animate=False, immediate=True)

    def render_line(self, y: int) -> Strip:
        base, width = self.rich_style, self.size.width
        index = int(self.scroll_y) + y
        if not 0 <= index < len(self._lines):
            return Strip.blank(width, base).apply_offsets(0, index)
        parts = log_parts(self._lines[index], width, self._glyphs, self._names, self.aside)
        runs = groupby(parts, key=lambda part: part[1])
        strip = Strip(
            placed((("".join(text for text, _ in run), base + self._tones[tone]) for tone, run in runs), index)
        )
        return painted(self, strip.adjust_cell_length(width, base), index)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """What is selected of each line, also what is cut off at the right edge where it goes on to that."""
        last = len(self._lines) - 1
        top = 0 if selection.start is None else selection.start.y
        bottom = last if selection.end is None else min(last, selection.end.y)
        texts: list[str] = []
        for number in range(top, bottom + 1):
            shown, whole = (
                plain(log_parts(self._lines[number], width, self._glyphs, self._names, self.aside))
                for width in (self.size.width, _WHOLE)
            )
            start, end = selection.get_span(number) or (0, 0)
            texts.append(whole[start:].rstrip() if end < 0 or end >= len(shown) else whole[start:end])
        return ("\n".join(texts), "\n") if texts else None

    @property
    def below(self) -> int:
        """How many lines lie below the last one in sight."""
        return max(0, len(self._lines) - int(self.scroll_y) - self.size.height)

    def on_click(self, event: events.Click) -> None:
        event.chain = 1  # two clicks would select all lines: some thousands

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.following = False
        self.post_message(self.Scrolled())

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.post_message(self.Scrolled())
