"""Help: the keys, from the table of commands, and what the signs mean."""

from __future__ import annotations

from collections.abc import Iterable
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
    ("WAITING 15 MIN", "the last 15 minutes of WAITING, the highest bar being the most; WAIT 15M: two minutes a bar"),
    ("RST/MIN", "restarts per minute; MEM, PEAK, LIMIT: memory now, at most so far, and allowed"),
    ("JOB, FOR", "the job a worker holds, and for how long; red when its lease has expired"),
)


def help_lines(width: int, glyphs: Glyphs, first: tuple[Scope, ...] = ()) -> tuple[tuple[Part, ...], ...]:
    """The help in lines of at most `width` columns, the keys of the scopes `first` at its beginning."""
    own: list[Scope] = [scope for scope in reversed(first) if scope not in ("console", "acts")]
    own += ["console", "acts"] if "acts" in first else ["console"]
    lines = _keys(own, width, glyphs)
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
    lines.append(())
    lines += _keys([scope for scope in SCOPE_TITLES if scope not in own], width, glyphs)
    return tuple(lines[:-1])


def _keys(scopes: Iterable[Scope], width: int, glyphs: Glyphs) -> list[tuple[Part, ...]]:
    """The keys of these scopes, an empty line after each."""
    lines: list[tuple[Part, ...]] = []
    for scope in scopes:
        commands = [command for command in of(scope) if command.keys]  # the menu says of the others itself
        if not commands:
            continue
        lines += wrap(((SCOPE_TITLES[scope].upper(), "head"),), width)
        for command in commands:
            keys = pad(command.shown_keys(glyphs.unicode), _KEYS_WIDTH)
            lines += wrap((("  ", ""), (keys, "key"), (command.help, "")), width, _KEYS_WIDTH + 2)
        lines.append(())
    return lines


class HelpScreen(ConsoleScreen):
    """Keys and signs."""

    SCOPES: ClassVar[tuple[Scope, ...]] = ("console", "pager")

    def __init__(self, scopes: tuple[Scope, ...] = ()) -> None:
        """`scopes` are those of the screen it was asked on."""
        super().__init__()
        self._scopes = scopes
        self.pager = Pager(id="body")

    def compose(self) -> ComposeResult:
        yield self.head_line
        yield self.pager
        yield self.foot_line

    def show_body(self, fleet: Fleet | None) -> None:
        app = self.console_app
        self.pager.show(help_lines(min(100, self.size.width - 1), app.glyphs, self._scopes), app.tones)
