"""A screen that is one text in sections, which may have to be asked for: everything about one thing.

Derive from `DetailScreen`, and say

    SCOPES     (*DETAIL_SCOPES, "worker");  BINDINGS = [*DETAIL_BINDINGS, *bindings("worker")]
    subject()  the parts of the title line
    sections() the sections, made of safe lines of at most `width` columns; called on every refresh, so cheap and pure
    asked      an `Asked` made in on_mount (before you ask with it), where the answer is awaited; or None
"""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from console.fleet.model import Fleet
from console.tui.asked import Asked
from console.tui.commands import Scope, bindings
from console.tui.screens.base import ConsoleScreen
from console.tui.widgets.line import Line
from console.tui.widgets.pager import Pager
from console.view.cells import Part, cell, part_columns, plain
from console.view.sections import Section, place_of, section_lines, section_names, section_starts

DETAIL_SCOPES: tuple[Scope, ...] = ("console", "sections", "pager")
DETAIL_BINDINGS: list[BindingType] = [*bindings("sections")]


class DetailScreen(ConsoleScreen):
    """A title, the names of the sections, and the text."""

    SCOPES: ClassVar[tuple[Scope, ...]] = DETAIL_SCOPES
    BINDINGS: ClassVar[list[BindingType]] = DETAIL_BINDINGS

    def __init__(self) -> None:
        super().__init__()
        self.asked: Asked[Any] | None = None
        self._sections: tuple[Section, ...] = ()
        self.title_line = Line(id="title")
        self.names_line = Line(id="sections")
        self.pager = Pager(id="body")

    def subject(self) -> tuple[Part, ...]:
        """What this is about."""
        raise NotImplementedError

    def sections(self, fleet: Fleet | None, width: int) -> tuple[Section, ...]:
        """The text."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        yield self.head_line
        yield self.banner
        yield self.title_line
        yield self.names_line
        yield self.pager
        yield self.foot_line

    def on_mount(self) -> None:
        self.set_focus(self.pager)

    def on_unmount(self) -> None:
        if self.asked is not None:
            self.asked.stop()

    def show_body(self, fleet: Fleet | None) -> None:
        app = self.console_app
        width = max(1, self.size.width - 1)  # the scroll bar
        self._sections = self.sections(fleet, width)
        right: tuple[Part, ...] = ()
        if self.asked is not None and self.asked.asking:
            right = ((f"asking{'…' if app.glyphs.unicode else '...'}", "note"),)
        elif self.asked is not None and self.asked.problem is not None:
            right = ((f"{app.glyphs.bad} could not be read", "bad"),)
        room = max(0, self.size.width - part_columns(right))
        self.title_line.show((cell((*cell(self.subject(), room).parts, *right), self.size.width).parts,), app.tones)
        self.pager.show(section_lines(self._sections), app.tones)
        self._show_names()

    def _show_names(self) -> None:
        app = self.console_app
        here = place_of(self._sections, int(self.pager.scroll_y))
        parts = section_names(self._sections, here, self.size.width, app.glyphs)
        self.names_line.show((parts,) if self.size.height > 8 and parts else (), app.tones)

    def copied(self) -> str:
        return "\n".join(plain(line) for line in section_lines(self._sections))

    def action_section(self, by: int) -> None:
        """Go to the next section, or the one before."""
        starts = section_starts(self._sections)
        here = place_of(self._sections, int(self.pager.scroll_y))
        if starts:
            self._show_from(starts[min(max(0, here + by), len(starts) - 1)])

    def go_to(self, name: str) -> None:
        """Go to the section of that name."""
        for section, start in zip(self._sections, section_starts(self._sections), strict=True):
            if section.name == name:
                self._show_from(start)

    def _show_from(self, line: int) -> None:
        self.pager.scroll_to(y=line, animate=False, immediate=True)
        self._show_names()
