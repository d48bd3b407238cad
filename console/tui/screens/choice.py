"""A small window over the screen in which one of several entries is taken: the palette and the menu."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widget import Widget

from console.text import fit, pad
from console.tui.commands import bindings
from console.tui.widgets.line import Line
from console.view.cells import Part, cell, columns, wrap

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

_WIDEST = 76
_TALLEST = 14  # entries


class Entry(NamedTuple):
    """What can be taken: safe texts, and what is done then."""

    label: str
    keys: str
    help: str
    action: str
    able: bool = True  # False: shown dimmed


class Entries(Line):
    """The entries; a click takes one."""

    ALLOW_SELECT = False

    def on_click(self, event: events.Click) -> None:
        event.stop()
        cast("ChoiceScreen", self.screen).take_line(event.y)


class ChoiceScreen(ModalScreen[str | None]):
    """Dismissed with the action of the entry that was taken, None when none was."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("choice")]
    HELP_LINES: ClassVar[int] = 4  # of the chosen entry's help, below the entries
    TAKES: ClassVar[str] = "run"  # what Enter does with it, a word
    DEFAULT_CSS = """
    ChoiceScreen #window { width: 1fr; height: auto; background: $panel; margin: 1 1 0 1; }
    ChoiceScreen #window Line { background: $panel; }
    ChoiceScreen #window Input { height: 1; border: none; padding: 0; background: $panel; }
    ChoiceScreen #window Input:focus { border: none; background-tint: transparent; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._head = Line(id="choice-title")
        self._lines = Entries(id="entries")
        self._hint = Line(id="choice-hint")
        self._found: tuple[Entry, ...] = ()
        self._at = 0
        self._top = 0

    @property
    def console_app(self) -> ConsoleApp:
        return cast("ConsoleApp", self.app)

    def heading(self) -> str:
        """The title of the window."""
        raise NotImplementedError

    def entries(self) -> tuple[Entry, ...]:
        """What can be taken now."""
        raise NotImplementedError

    def nothing(self) -> str:
        """What stands there when nothing can be taken."""
        raise NotImplementedError

    def typing(self) -> Widget | None:
        """A widget to type in, above the entries."""
        return None

    def compose(self) -> ComposeResult:
        with Vertical(id="window"):
            yield self._head
            typing = self.typing()
            if typing is not None:
                yield typing
            yield self._lines
            yield self._hint

    def on_mount(self) -> None:
        self.look_again()

    def on_resize(self, event: events.Resize) -> None:
        self.show()

    def look_again(self) -> None:
        """The entries are others."""
        self._found, self._at, self._top = self.entries(), 0, 0
        self.show()

    def show(self) -> None:
        """Show title, entries and hint."""
        app = self.console_app
        width = max(1, min(_WIDEST, self.size.width - 2))
        room = max(1, min(_TALLEST, self.size.height - 5))
        self._top = max(min(self._top, self._at), self._at - room + 1)
        window = self.query_one("#window")
        window.styles.width = width
        self._head.show((cell(((f" {self.heading()}", "head"),), width).parts,), app.tones)
        lines: list[tuple[Part, ...]] = []
        names = min(max((columns(entry.label) for entry in self._found), default=0), width * 2 // 3)
        keys = max((columns(entry.keys) for entry in self._found), default=0)
        for number, entry in enumerate(self._found[self._top : self._top + room], self._top):
            label = pad(entry.label, names)
            text = f" {label}  {pad(entry.keys, keys)}  "
            if number == self._at:
                lines.append(cell(((f"{text}{entry.help}", "sorted"),), width).parts)
            else:
                help = fit(entry.help, max(0, width - columns(text)))
                name: Part = (f" {label}  ", "" if entry.able else "dim")
                key: Part = (f"{pad(entry.keys, keys)}  ", "key" if entry.able else "dim")
                lines.append(cell((name, key, (help, "dim")), width).parts)
        if not lines:
            lines.append(cell(((f" {self.nothing()}", "note"),), width).parts)
        self._lines.show(tuple(lines), app.tones)
        more = len(self._found) - room
        hint = f" {app.glyphs.enter} {self.TAKES}  Esc back" + (f"  {more} more" if more > 0 else "")
        below = self._cut_help(width, 4 + names + keys + 1)
        self._hint.show((*below, cell(((hint, "dim"),), width).parts), app.tones)

    def _cut_help(self, width: int, before: int) -> tuple[tuple[Part, ...], ...]:
        """The label and the help of the chosen entry in lines of their own, where they were cut."""
        entry = self._found[self._at] if self._found else None
        if entry is None or before + columns(entry.help) <= width:
            return ()
        said: tuple[Part, ...] = (
            ("  ", ""),
            (f"{entry.label}: ", "strong"),
            (entry.help, "" if entry.able else "warn"),
        )
        room = max(0, self.size.height - 6 - min(len(self._found), _TALLEST))
        return tuple(cell(line, width).parts for line in wrap(said, width - 1, 2)[: min(room, self.HELP_LINES)])

    def action_move(self, by: int) -> None:
        """Go to another entry."""
        if self._found:
            self._at = (self._at + by) % len(self._found)
            self.show()

    def action_leave(self) -> None:
        """Close the window."""
        self.dismiss(None)

    def action_take(self) -> None:
        """Take the entry."""
        self.dismiss(self._found[self._at].action if self._found else None)

    def take_line(self, line: int) -> None:
        """Take the entry on this line of the window."""
        if 0 <= self._top + line < len(self._found):
            self._at = self._top + line
            self.action_take()
