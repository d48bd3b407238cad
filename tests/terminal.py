"""A real terminal for tests: tmux, driven by keys and read by its screen."""

from __future__ import annotations

import itertools
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from types import TracebackType

_NUMBERS = itertools.count()
_OF_ANOTHER = ("COLUMNS", "LINES")  # of the terminal the tests run in; a worker of pytest-xdist sets them itself


class Terminal:
    """One tmux session of its own server; `with Terminal(argv) as terminal: ...` ends it."""

    def __init__(
        self, argv: Sequence[str], columns: int = 80, lines: int = 24, env: dict[str, str] | None = None
    ) -> None:
        self._name = f"worktop-test-{os.getpid()}-{next(_NUMBERS)}"
        self._argv = list(argv)
        self._size = (columns, lines)
        self._env = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"} | (env or {})

    def tmux(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._name, "-f", "/dev/null", *arguments],
            capture_output=True,
            text=True,
            env={name: value for name, value in os.environ.items() if name not in _OF_ANOTHER} | self._env,
        )
        if check and done.returncode:
            raise AssertionError(f"tmux {arguments}: {done.stderr}")
        return done.stdout

    def __enter__(self) -> Terminal:
        columns, lines = self._size
        exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in self._env.items() if name != "TERM")
        shell = f"env {exports} sh"
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(lines), shell)
        self.tmux("set-option", "-g", "remain-on-exit", "on")
        self.line(f"PS1='ready> '; clear; {shlex.join(self._argv)}; echo exit-status=$?")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.tmux("kill-server", check=False)

    def line(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def keys(self, *names: str) -> None:
        """Keys by tmux's names: "q", "Enter", "Escape", "Down", "C-r"."""
        self.tmux("send-keys", *names)

    def resize(self, columns: int, lines: int) -> None:
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def on_alternate_screen(self) -> bool:
        return self.tmux("display-message", "-p", "#{alternate_on}").strip() == "1"

    def cursor_visible(self) -> bool:
        return self.tmux("display-message", "-p", "#{cursor_flag}").strip() == "1"

    def wait(self, condition: Callable[[str], bool], timeout: float = 20.0, what: str = "the screen") -> str:
        """The screen once the condition holds of it; AssertionError with the last screen after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            screen = self.screen()
            if condition(screen):
                return screen
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {timeout:g} s for {what}; the screen is\n{screen}")
            time.sleep(0.06)

    def wait_for(self, text: str, timeout: float = 20.0) -> str:
        return self.wait(lambda screen: text in screen, timeout, repr(text))

    def exit_status(self, timeout: float = 10.0) -> int:
        """The exit status of the command, once it has ended."""
        screen = self.wait(
            lambda text: "exit-status=" in text.replace("echo exit-status", ""), timeout, "the command to end"
        )
        return int(screen.rsplit("exit-status=", 1)[1].split()[0])
