"""Help: the keys, from the table of commands, and what the signs mean."""

from __future__ import annotations

from typing import ClassVar, get_args

from textual.app import ComposeResult

from console.fleet.model import Fleet, WorkerState
from console.text import pad
from console.tui.commands import SCOPE_TITLES, Scope, of
from console.tui.screens.base import ConsoleScreen
from console.tui.widgets.pager import Pager
from console.view.cells import Part, wrap
from console.view.glyphs import Glyphs, word
from console.view.rows import STATE_TONES

_KEYS_WIDTH = 16
_COLUMNS: tuple[tuple[str, str], ...] = (
    ("WORKERS", "running / desired, and after it the budget: most there may be"),
    ("STATES", "one sign per worker, then the words for what is not ok"),
    ("OWNER", "what started the workers and would start them again"),
    ("WAITING", "jobs due now; LATER: due at a later time; OLDEST: age of the oldest due one"),
    ("STUCK", "running, and the lease has expired or the holder is dead"),
    ("DONE/MIN", "jobs finished per minute, over five minutes; FAIL/MIN: failed"),
    ("MEMORY", "used / allowed by the workers' limits; ? where a worker has no limit"),
)


def help_lines(width: int, glyphs: Glyphs) -> tuple[tuple[Part, ...], ...]:
    """The help in lines of at most `width` columns."""
    lines: list[tuple[Part, ...]] = []
    scopes: tuple[Scope, ...] = ("console", "fleet", "table", "evidence", "pager")
    for scope in scopes:
        lines += wrap(((SCOPE_TITLES[scope].upper(), "head"),), width)
        for command in of(scope):
            keys = pad(command.shown_keys(glyphs.unicode), _KEYS_WIDTH)
            lines += wrap((("  ", ""), (keys, "key"), (command.help, "")), width, _KEYS_WIDTH + 2)
        lines.append(())
    lines += wrap((("SIGNS", "head"),), width)
    for state in get_args(WorkerState):
        lines += wrap((("  ", ""), (glyphs.state(state), STATE_TONES[state]), (f" {word(state)}", "")), width)
    lines += wrap(
        (
            ("  ", ""),
            (glyphs.bad, "bad"),
            (" error  ", ""),
            (glyphs.warning, "warn"),
            (" warning  ", ""),
            (glyphs.note, "note"),
            (" note", ""),
        ),
        width,
    )
    lines.append(())
    lines += wrap((("COLUMNS", "head"),), width)
    for label, meaning in _COLUMNS:
        lines += wrap((("  ", ""), (pad(label, _KEYS_WIDTH), "key"), (meaning, "")), width, _KEYS_WIDTH + 2)
    lines.append(())
    lines += wrap((("CONFIGURATION", "head"),), width)
    lines += wrap(
        (("worktop.toml is looked for in the current directory, ~/.config/worktop/ and /etc/worktop/.", ""),), width
    )
    lines += wrap(
        (("Environment: WORKTOP_THEME=dark, light or safe; WORKTOP_GLYPHS=ascii or unicode; NO_COLOR.", ""),), width
    )
    return tuple(lines)


class HelpScreen(ConsoleScreen):
    """Keys and signs."""

    SCOPES: ClassVar[tuple[Scope, ...]] = ("console", "pager")

    def __init__(self) -> None:
        super().__init__()
        self.pager = Pager(id="body")

    def compose(self) -> ComposeResult:
        yield self.head_line
        yield self.pager
        yield self.foot_line

    def show_body(self, fleet: Fleet | None) -> None:
        app = self.console_app
        self.pager.show(help_lines(min(100, self.size.width - 1), app.glyphs), app.tones)
