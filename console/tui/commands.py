"""Every key and what it does, in one table: bindings, footer and help are all made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding

Scope = Literal["console", "table", "pager", "fleet", "evidence"]

SCOPE_TITLES: dict[Scope, str] = {
    "console": "Everywhere",
    "table": "In a table",
    "fleet": "Fleet",
    "evidence": "Evidence",
    "pager": "In a text",
}


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command. `action` is the Textual action; `place` orders the footer, lower stays longer, 0 is not shown."""

    id: str
    scope: Scope
    keys: tuple[str, ...]
    action: str
    label: str  # one or two words, for the footer
    help: str  # a sentence
    place: int = 0

    def binding(self) -> Binding:
        return Binding(",".join(self.keys), self.action, self.label, show=False, id=self.id)

    def shown_keys(self, unicode: bool) -> str:
        """The keys as a person reads them: "↑ k"."""
        names = _NAMES if unicode else _ASCII_NAMES
        return " ".join(names.get(key, key) for key in self.keys)


_ASCII_NAMES = {
    "question_mark": "?",
    "escape": "Esc",
    "enter": "Enter",
    "up": "Up",
    "down": "Down",
    "tab": "Tab",
    "shift+tab": "Shift+Tab",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "space": "Space",
    "home": "Home",
    "end": "End",
    "left": "Left",
    "right": "Right",
}
_NAMES = _ASCII_NAMES | {"enter": "⏎", "up": "↑", "down": "↓", "left": "←", "right": "→"}


def _command(id: str, scope: Scope, keys: str, action: str, label: str, help: str, place: int = 0) -> Command:
    return Command(id=id, scope=scope, keys=tuple(keys.split()), action=action, label=label, help=help, place=place)


COMMANDS: tuple[Command, ...] = (
    _command("quit", "console", "q ctrl+c", "app.leave", "quit", "Leave the console.", 1),
    _command("help", "console", "question_mark f1", "app.help", "help", "Show the keys and the signs.", 2),
    _command("back", "console", "escape", "app.go_back", "back", "Go back one level.", 5),
    _command("refresh", "console", "ctrl+r", "app.refresh_now", "refresh", "Ask every source again now.", 6),
    _command("theme", "console", "t", "app.next_theme", "theme", "Next theme: dark, light, colour-blind safe.", 8),
    _command("suspend", "console", "ctrl+z", "app.suspend_process", "suspend", "Stop the console; fg brings it back."),
    _command("up", "table", "up k", "cursor_up", "up", "One line up; from the first line to the table above."),
    _command("down", "table", "down j", "cursor_down", "down", "One line down; from the last line to the table below."),
    _command("page-up", "table", "pageup", "page_up", "page up", "One page up."),
    _command("page-down", "table", "pagedown", "page_down", "page down", "One page down."),
    _command("first", "table", "home g", "scroll_top", "first", "First line."),
    _command("last", "table", "end G", "scroll_bottom", "last", "Last line."),
    # An action of the screen, not DataTable's message: a key typed right after it would overtake the message.
    _command(
        "open", "table", "enter", "screen.open", "open", "On a finding: its evidence. On a role: its findings.", 3
    ),
    _command("other", "fleet", "tab", "screen.other_table", "roles/findings", "Roles or findings.", 4),
    _command(
        "describe", "fleet", "d", "screen.describe", "evidence", "Evidence of the finding, or of the role's worst.", 7
    ),
    _command("text-up", "pager", "up k", "scroll_up", "up", "One line up."),
    _command("text-down", "pager", "down j", "scroll_down", "down", "One line down.", 4),
    _command("text-page-up", "pager", "pageup b", "page_up", "page up", "One page up."),
    _command("text-page-down", "pager", "pagedown space", "page_down", "page down", "One page down."),
    _command("text-first", "pager", "home g", "scroll_home", "first", "First line."),
    _command("text-last", "pager", "end G", "scroll_end", "last", "Last line."),
    _command("next-finding", "evidence", "right n", "screen.step(1)", "next", "Evidence of the next finding.", 3),
    _command("previous-finding", "evidence", "left p", "screen.step(-1)", "previous", "Evidence of the one before.", 6),
)


def of(*scopes: Scope) -> list[Command]:
    """The commands of these scopes, in the table's order."""
    return [command for command in COMMANDS if command.scope in scopes]


def bindings(*scopes: Scope) -> list[Binding]:
    """The bindings of these scopes."""
    return [command.binding() for command in of(*scopes)]


def footer_keys(scopes: tuple[Scope, ...], unicode: bool) -> list[tuple[str, str]]:
    """(key, label) of what the footer shows, most needed first; only the first key of each."""
    chosen = sorted((c for c in of(*scopes) if c.place), key=lambda c: c.place)
    return [(c.shown_keys(unicode).split(" ")[0], c.label) for c in chosen]
