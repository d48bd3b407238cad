"""Small windows that ask for something before a plan is made: a number, a signal, settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from textual import on
from textual.widget import Widget
from textual.widgets import Input

from console.errors import ConfigError
from console.fleet.limits import SECTIONS, checked
from console.tui.screens.choice import ChoiceScreen, Entry
from console.view.cells import safe
from console.view.offers import Request

_SMALLEST, _LARGEST = -32768, 32767  # a priority that every queue can hold
_MOST_WORKERS = 9999
SIGNALS: tuple[tuple[str, str], ...] = (
    ("TERM", "asks it to end; what it does then is its own affair"),
    ("INT", "as ctrl+c"),
    ("HUP", "often: read the configuration again"),
    ("USR1", "whatever it means to the program"),
    ("USR2", "whatever it means to the program"),
    ("QUIT", "end, often with a dump"),
    ("STOP", "stand still; its leases go on running"),
    ("CONT", "go on after STOP"),
    ("KILL", "at once: it can clean up nothing, its jobs wait for their lease"),
)


class TypedScreen(ChoiceScreen):
    """Dismissed with what was typed, when that is valid."""

    def __init__(self, placeholder: str, most: int) -> None:
        super().__init__()
        self._input = Input(compact=True, max_length=most, placeholder=placeholder)
        self._input.cursor_blink = False

    def typing(self) -> Widget | None:
        return self._input

    def on_mount(self) -> None:
        self.set_focus(self._input)

    def action_take(self) -> None:
        if self.entries():
            super().action_take()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.look_again()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_take()


class NumberScreen(TypedScreen):
    """Dismissed with the number: a priority, or how many workers a role is to have."""

    def __init__(self, request: Request) -> None:
        scales = request.asks == "count"
        hint = "how many workers" if scales else "a whole number; higher comes first in most queues"
        super().__init__(hint, 6)
        self._request = request
        self._scales = scales

    def heading(self) -> str:
        if self._scales:
            return f"SCALE  {self._request.title}: {self._request.note}"
        return f"PRIORITY  {self._request.title}"

    def entries(self) -> tuple[Entry, ...]:
        number = whole_number(self._input.value)
        if number is None or (self._scales and not 0 <= number <= _MOST_WORKERS):
            return ()
        label = f"scale to {number}" if self._scales else f"priority {number}"
        return (Entry(label, "", "shows the plan", str(number)),)

    def nothing(self) -> str:
        if not self._input.value.strip("+-"):
            return "type a whole number"
        return "that is no number of workers" if self._scales else "that is no number a queue can hold"


class SignalScreen(ChoiceScreen):
    """Dismissed with the name of a signal."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request

    def heading(self) -> str:
        return f"SIGNAL  {self._request.title}"

    def entries(self) -> tuple[Entry, ...]:
        return tuple(Entry(name, "", help, name) for name, help in SIGNALS)

    def nothing(self) -> str:
        return ""


class SettingsScreen(TypedScreen):
    """Dismissed with the settings as they were typed: NAME=VALUE, separated by blanks."""

    def __init__(self, request: Request) -> None:
        super().__init__("MemoryMax=512M TimeoutStopSec=30s; NAME= takes one back", 400)
        self._request = request

    def heading(self) -> str:
        return f"LIMITS  {self._request.title}"

    def entries(self) -> tuple[Entry, ...]:
        text = self._input.value
        try:
            told = ", ".join(f"{name}={value}" for name, value in settings_in(text).items())
        except ConfigError:
            return ()
        return (Entry(safe(told, 60), "", "shows the plan", text),) if told else ()

    def nothing(self) -> str:
        text = self._input.value
        if not text.strip():
            return f"one or more of {', '.join(SECTIONS)}"
        try:
            settings_in(text)
        except ConfigError as error:
            return safe(error.problem.line(), 200)
        return ""


class FileScreen(TypedScreen):
    """Dismissed with the path of a file that is to be written; it is not there yet."""

    def __init__(self, title: str, path: str) -> None:
        super().__init__("the path of a new file", 400)
        self._title = title
        self._input.value = path

    def heading(self) -> str:
        return f"WRITE  {self._title}"

    def entries(self) -> tuple[Entry, ...]:
        path = self._input.value.strip()
        return (Entry("write it", "", safe(path, 200), path),) if path else ()

    def nothing(self) -> str:
        return "type the path of a file"


def settings_in(text: str) -> Mapping[str, str]:
    """The settings that were typed. ConfigError names the wrong one."""
    found: dict[str, str] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals:
            raise ConfigError(f"limits: {word[:40]}", "it has no =", "NAME=VALUE")
        found[name] = value
    return checked(found)


def whole_number(text: str) -> int | None:
    """The number, where it is one that every queue can hold."""
    text = text.strip()
    if not text.isascii() or not text.lstrip("+-").isdecimal() or len(text) - len(text.lstrip("+-")) > 1:
        return None
    number = int(text)
    return number if _SMALLEST <= number <= _LARGEST else None


def asks_for(request: Request) -> tuple[ChoiceScreen, Callable[[str], Mapping[str, object]]]:
    """The window a request asks with, and the fields of the request that its answer fills."""
    if request.asks == "signal":
        return SignalScreen(request), lambda text: {"signal": text}
    if request.asks == "settings":
        return SettingsScreen(request), lambda text: {"settings": tuple(settings_in(text).items())}
    name = "count" if request.asks == "count" else "priority"
    return NumberScreen(request), lambda text: {name: int(text)}
