"""A walk through the whole console on the demo host by keyboard: every screen there is, in sizes that are common."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pyte
import pytest

from console.tui.commands import COMMANDS, SCREENS, ScreenName
from tests.conftest import DemoHost
from tests.e2e.test_console import console, first_data
from tests.terminal import Terminal

pytestmark = pytest.mark.host

# Its own faults; jobs have tracebacks of theirs.
FAULTS_OF_THE_CONSOLE = re.compile(r"something in the background failed|crash-\d|File \".*(console|textual|asyncio)/")


class Walk:
    """The console in a terminal, and what must be true of it all the time."""

    def __init__(self, demo_host: DemoHost, terminal: Terminal) -> None:
        self.host = demo_host
        self.terminal = terminal
        self.crashes = crash_logs(demo_host)

    def until(self, condition: Callable[[str], bool], what: str, timeout: float = 20.0) -> str:
        def holds(screen: str) -> bool:
            self.check(screen)
            return condition(screen)

        return self.terminal.wait(holds, timeout, what)

    def check(self, screen: str) -> None:
        assert not FAULTS_OF_THE_CONSOLE.search(screen), screen
        assert "exit-status=" not in screen, f"the console has ended\n{screen}"

    def press(self, key: str) -> None:
        self.terminal.keys(key)
        if key == "Escape":
            time.sleep(0.3)  # a key that follows at once makes it Alt with that key, on every terminal

    def show(self, screen: ScreenName) -> None:
        """By its digit."""
        self.press(screen.key)
        self.until(lambda _: shown(self.terminal) == screen.name, f"the screen {screen.title}")

    def show_by_name(self, screen: ScreenName) -> None:
        """By the palette."""
        self.press(":")
        self.until(lambda text: "COMMAND" in text, "the palette")
        self.terminal.tmux("send-keys", "-l", screen.title)
        self.until(lambda text: screen.title.lower() in text.lower(), "what was typed")
        self.press("Enter")
        self.until(
            lambda text: "COMMAND" not in text and shown(self.terminal) == screen.name, f"the screen {screen.title}"
        )

    def help(self) -> None:
        self.press("?")
        self.until(is_help, "the help")
        self.press("Escape")
        self.until(lambda text: not is_help(text), "the help to close")

    def leave(self) -> None:
        self.press("q")
        assert self.terminal.exit_status() == 0
        screen = self.terminal.screen()
        assert "Traceback" not in screen, screen
        assert not FAULTS_OF_THE_CONSOLE.search(screen), screen
        assert not self.terminal.on_alternate_screen()
        assert self.terminal.cursor_visible()
        assert crash_logs(self.host) == self.crashes


def is_help(text: str) -> bool:
    return sum(command.help[:25] in text for command in COMMANDS) > 3


def crash_logs(demo_host: DemoHost) -> str:
    listed = "cat ~/.local/state/worktop/crash-*.log 2>/dev/null || true"
    return demo_host.run(["sh", "-c", listed], user="deploy").stdout


def shown(terminal: Terminal) -> str | None:
    """The name of the screen that the footer shows as the present one; None where it cannot be told."""
    lines = terminal.tmux("capture-pane", "-e", "-p").rstrip("\n").split("\n")
    emulator = pyte.Screen(250, 1)
    looks: dict[tuple[bool, bool], list[str]] = {}
    for line in reversed(lines):
        emulator.reset()
        pyte.Stream(emulator).feed(line)
        text = emulator.display[0]
        titles = {screen: f"{screen.title}|{screen.label(narrow=True)}" for screen in SCREENS}
        found = [(screen, re.search(rf"\b{screen.key} ?({title})\b", text)) for screen, title in titles.items()]
        if not all(match for _, match in found):
            continue
        for screen, match in found:
            assert match is not None
            cell = emulator.buffer[0][match.end() - 1]
            looks.setdefault((cell.bold, cell.reverse), []).append(screen.name)
        alone = [names[0] for names in looks.values() if len(names) == 1]
        return alone[0] if len(looks) == 2 and len(alone) == 1 else None
    return None


def test_every_screen_by_keyboard(demo_host: DemoHost) -> None:
    with console(demo_host, 80, 24) as terminal:
        first_data(terminal)
        walk = Walk(demo_host, terminal)
        for screen in SCREENS:
            walk.show(screen)
            walk.press("Enter")  # in, where there is something to open
            walk.until(lambda text: "worktop" in text, "the screen after Enter")
            walk.help()
            walk.press("Escape")  # and back
            walk.show(screen)
        for screen in reversed(SCREENS):
            walk.show_by_name(screen)
        walk.leave()


def test_every_screen_follows_the_size_of_the_terminal(demo_host: DemoHost) -> None:
    with console(demo_host, 80, 24) as terminal:
        first_data(terminal)
        walk = Walk(demo_host, terminal)
        for screen in SCREENS:
            walk.show(screen)
            for size in ((40, 15), (200, 60), (80, 24)):
                terminal.resize(*size)
                wide = size[0]
                walk.until(lambda text, wide=wide: _fills(text, wide), f"the screen at {size}")  # type: ignore[misc]
            walk.until(lambda _, screen=screen: shown(terminal) == screen.name, "the footer at the first size")  # type: ignore[misc]
        walk.leave()


def _fills(screen: str, columns: int) -> bool:
    """The head is there and nothing is wider than the terminal."""
    rows = screen.splitlines()
    return rows[0].startswith("worktop") and max(map(len, rows)) <= columns


def test_sources_die_under_one_screen_and_come_back_under_another(demo_host: DemoHost) -> None:
    """They die under two screens, are seen to be down by the next one too, and come back under it."""
    with console(demo_host, 120, 40) as terminal:
        first_data(terminal)
        walk = Walk(demo_host, terminal)
        for dying, returning in zip(SCREENS[:4:2], SCREENS[1:4:2], strict=True):
            walk.show(dying)
            demo_host.run(["pkill", "-KILL", "-u", "deploy", "-f", "console agent"], check=False)
            demo_host.run(["systemctl", "stop", "postgresql.service"])
            try:
                walk.until(lambda text: re.search(r"× agent|× queue|refused", head(text)) is not None, "a source down")
                assert shown(terminal) == dying.name, "it is the same screen still"
                if dying.name == "fleet":
                    assert re.search(r"mail +3/3", terminal.screen()), "what was known stays on the screen"
                walk.show(returning)
            finally:
                demo_host.run(["systemctl", "start", "postgresql.service"])
            walk.until(
                lambda text: re.search(r"● agent\b.*\bqueue", head(text)) is not None and "×" not in head(text),
                "every source to be back",
                60.0,
            )
            assert shown(terminal) == returning.name, "it is the same screen still"
        walk.show(SCREENS[0])
        walk.until(lambda text: re.search(r"mail +3/3", text) is not None, "the roles", 40.0)
        walk.leave()


def head(screen: str) -> str:
    """The first lines: who and where, and the sources."""
    return "\n".join(screen.splitlines()[:2])


HOSTILE = ("␛[31mOSError", "[/red] [bold red]KeyError[/]", "‹U+202E›", "MemoryError", "␇")


def test_hostile_errors_of_jobs_are_text(demo_host: DemoHost) -> None:
    with console(demo_host, 200, 60) as terminal:
        terminal.tmux("set-option", "-g", "set-clipboard", "on")
        first_data(terminal)
        walk = Walk(demo_host, terminal)
        title = terminal.tmux("display-message", "-p", "#{pane_title}")
        walk.show(next(screen for screen in SCREENS if screen.name == "jobs"))
        for state in ("RUNNING", "STUCK", "FAILED"):
            walk.press("Tab")
            walk.until(lambda text, state=state: f"[{state}" in text, f"the jobs that are {state.lower()}")  # type: ignore[misc]
        seen = walk.until(lambda text: "OSError" in text or "FileNotFoundError" in text, "the failed jobs")
        walk.press("g")
        walk.press("Enter")
        for number in range(1, 18):  # those that the demo starts with come first
            seen += walk.until(
                lambda text, number=number: (  # type: ignore[misc]
                    re.search(rf"failed .*\b{number} of \d", text) is not None and "asking…" not in text
                ),
                f"job {number}",
            )
            walk.press("n")
        for text in HOSTILE:
            assert text in seen, f"{text} is not to be read"
        assert "demo-not-a-real" not in seen
        assert terminal.tmux("display-message", "-p", "#{pane_title}") == title, "no text has set the title"
        assert terminal.tmux("list-buffers") == "", "no text has reached the clipboard"
        walk.leave()
