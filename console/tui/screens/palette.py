"""The palette: every screen, and every command that can be given here, found by a few letters of its name."""

from __future__ import annotations

from textual import on
from textual.fuzzy import Matcher
from textual.widget import Widget
from textual.widgets import Input

from console.tui.commands import Command, Scope, of
from console.tui.screens.choice import ChoiceScreen, Entry

_NEVER: tuple[str, ...] = ("palette", "back")  # what makes no sense from here


def palette_entries(scopes: tuple[Scope, ...], typed: str, unicode: bool) -> tuple[Entry, ...]:
    """The commands of these scopes whose label, help or id fits what was typed, best first."""
    commands = [command for command in of(*scopes) if command.id not in _NEVER]
    if typed.strip():
        scored = [(fitness(command, typed), number, command) for number, command in enumerate(commands)]
        commands = [command for score, _, command in sorted(scored, key=lambda s: (-s[0], s[1])) if score > 0]
    return tuple(Entry(c.label, c.shown_keys(unicode), c.help, c.action) for c in commands)


def fitness(command: Command, typed: str) -> float:
    """How well a command fits: its name counts more than its sentence; 0 not at all."""
    matcher = Matcher(typed.strip())
    name = max(matcher.match(command.label), matcher.match(command.id))
    starts = command.label.casefold().startswith(typed.strip().casefold())
    sentence = 1.0 if typed.strip().casefold() in command.help.casefold() else 0.0
    return name * 10 + sentence + (1000 if starts else 0)


class PaletteScreen(ChoiceScreen):
    """Type, choose, Enter."""

    def __init__(self, scopes: tuple[Scope, ...]) -> None:
        super().__init__()
        self._scopes = scopes
        self._input = Input(compact=True, max_length=80, placeholder="letters of a screen or a command")
        self._input.cursor_blink = False

    def heading(self) -> str:
        return "COMMAND"

    def entries(self) -> tuple[Entry, ...]:
        return palette_entries(self._scopes, self._input.value, self.console_app.glyphs.unicode)

    def nothing(self) -> str:
        return "no command fits"

    def typing(self) -> Widget:
        return self._input

    def on_mount(self) -> None:
        self.set_focus(self._input)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.look_again()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_take()
