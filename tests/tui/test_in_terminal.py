"""The console in a real terminal: what it draws, and that however it ends the terminal is whole and the status true."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import signal
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.terminal import Terminal

ROOT = Path(__file__).parents[2]


class Launched(Terminal):
    """The launcher in a terminal; its process writes its pid to a file."""

    def __init__(
        self,
        folder: Path,
        what: str = "still",
        columns: int = 80,
        lines: int = 24,
        env: dict[str, str] | None = None,
        term: str = "",
        redirect: str = "",
    ) -> None:
        self._pid_file = folder / "pid"
        self.state = folder / "state"
        settings = {"XDG_STATE_HOME": str(self.state), "PYTHONPATH": str(ROOT)} | (env or {})
        if term:
            settings["TERM"] = term
        assigned = " ".join(f"{name}={shlex.quote(value)}" for name, value in settings.items())
        script = (
            f"cd {shlex.quote(str(ROOT))}; echo $$ > {self._pid_file}; "
            f"exec env {assigned} {sys.executable} -m tests.tui.launch {what} {redirect}"
        )
        super().__init__(["sh", "-c", script], columns, lines)

    @property
    def pid(self) -> int:
        return int(self._pid_file.read_text())

    def kill(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def assert_whole(self) -> None:
        """No alternate screen, a visible cursor, and a terminal that echoes and takes signals again."""
        self.wait(lambda _: not self.on_alternate_screen() and self.cursor_visible(), 5, "the terminal to be whole")
        self.wait(lambda _: not Path(f"/proc/{self.pid}").exists(), 5, "the process to end")
        self.line("clear; stty -a; echo 'settings-''shown'")
        settings = self.wait_for("settings-shown").split()
        for flag in ("icanon", "echo", "isig", "iexten", "ixon", "icrnl"):
            assert any(word.strip(";") == flag for word in settings), f"{flag} is off: {settings}"


def test_what_it_draws_and_how_it_follows_the_size(tmp_path: Path) -> None:
    with Launched(tmp_path) as terminal:
        screen = terminal.wait_for("FINDINGS  3 errors  3 warnings  1 note")
        assert "thumbnails  1/4 ≤6 ●↻××" in screen
        assert "⏎ retire the launcher" in screen
        assert "9Audit  q quit  ? help" in screen.splitlines()[-1]
        terminal.resize(120, 40)
        terminal.wait_for("1 start-limit 1 oom")
        terminal.resize(40, 15)
        terminal.wait(lambda text: "MEMORY" not in text and "1● 6◇" in text)
        terminal.resize(1, 1)
        terminal.resize(200, 50)
        terminal.wait_for("LAST END")
        terminal.resize(80, 24)
        terminal.wait(lambda text: "LAST END" not in text and "9Audit" in text)
        terminal.keys("Tab", "Enter")
        terminal.wait_for("finding 1 of 7")
        terminal.keys("Escape")
        terminal.wait_for("FINDINGS")
        terminal.keys("q")
        assert terminal.exit_status() == 0
        terminal.assert_whole()


@pytest.mark.parametrize("term", ["xterm-256color", "xterm-16color"])
def test_a_walk_over_the_screens_by_keyboard(tmp_path: Path, term: str) -> None:
    with Launched(tmp_path, "live", term=term) as terminal:
        terminal.wait_for("FINDINGS")
        terminal.keys("2")
        terminal.wait_for("× start-limit")
        terminal.keys("/", *"cron")  # in one go: what is typed belongs to the filter
        terminal.wait_for("24 of 64")
        terminal.keys("Enter", "Space", "Space", "s")
        terminal.wait(lambda text: "2 marked" in text and "STATE↑" in text)
        terminal.keys("p")
        terminal.wait_for("PAUSED since")
        terminal.keys("p", "Enter")
        terminal.wait_for("crontab of deploy, line 4")
        terminal.keys("Escape")
        terminal.wait_for("2 marked")
        terminal.keys(":", *"log")
        terminal.wait_for("the journal of a role")
        terminal.keys("Enter")
        terminal.wait_for("job 918251 failed")
        terminal.keys("k")
        terminal.keys("?")
        terminal.wait_for("following ends")
        terminal.keys("Escape")
        terminal.wait(lambda text: "following ends" not in text)
        terminal.keys("2")
        terminal.wait(lambda text: "2 marked" in text and "/cron" in text)
        terminal.resize(40, 15)
        terminal.keys("x")
        terminal.wait_for("ACTIONS  2 marked")
        terminal.keys("Escape")
        terminal.wait(lambda text: "ACTIONS" not in text)
        terminal.resize(80, 24)
        terminal.keys("1")
        terminal.wait_for("FINDINGS")
        terminal.keys("q")
        assert terminal.exit_status() == 0
        terminal.assert_whole()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT])
def test_a_signal_ends_it_and_the_status_says_which(tmp_path: Path, number: signal.Signals) -> None:
    with Launched(tmp_path) as terminal:
        terminal.wait_for("FINDINGS")
        terminal.kill(number)
        assert terminal.exit_status(5) == 128 + number
        assert "Traceback" not in terminal.screen()
        terminal.assert_whole()


def test_a_crash_is_one_line_and_a_log(tmp_path: Path) -> None:
    with Launched(tmp_path, "crash") as terminal:
        terminal.wait_for("FINDINGS")
        terminal.keys("C-r")
        assert terminal.exit_status(5) == 1
        screen = terminal.screen().replace("\n", "")
        assert "worktop: the console failed: KeyError: 'no such thing in postgresql://app:••••@db1/app'" in screen
        (log,) = (terminal.state / "worktop").iterdir()
        assert str(log) in screen
        for text in (screen, log.read_text()):
            assert "hunter2" not in text
        assert "locals" not in screen and "Traceback" not in screen
        assert 'await work\n  File "' in log.read_text()
        assert stat.S_IMODE(log.stat().st_mode) == 0o600
        terminal.assert_whole()


def ended_within(terminal: Launched, seconds: float, end: Callable[[], None]) -> int:
    pid = terminal.pid
    began = time.monotonic()
    end()
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() - began < seconds, "the process lingers"
        time.sleep(0.02)
    return terminal.exit_status()


def test_a_feed_that_does_not_stop_is_left_behind(tmp_path: Path) -> None:
    with Launched(tmp_path, "hang") as terminal:
        terminal.wait_for("FINDINGS")
        assert ended_within(terminal, 2, lambda: terminal.keys("q")) == 0
        terminal.assert_whole()


def test_threads_do_not_hold_the_process(tmp_path: Path) -> None:
    with Launched(tmp_path, "thread") as terminal:
        terminal.wait_for("FINDINGS")
        terminal.keys("C-r")
        terminal.wait(lambda _: len(list(Path(f"/proc/{terminal.pid}/task").iterdir())) >= 5, what="the threads")
        assert ended_within(terminal, 2, lambda: terminal.keys("q")) == 0
        terminal.assert_whole()


def test_a_blocked_loop_obeys_a_signal(tmp_path: Path) -> None:
    with Launched(tmp_path, "block") as terminal:
        terminal.wait_for("FINDINGS")
        terminal.keys("C-r")
        clock = re.compile(r"\d\d:\d\d:\d\d UTC")
        seen = ""
        while (now := "".join(clock.findall(terminal.screen()))) != seen:  # the clock stands still: it is blocked
            seen = now
            time.sleep(1.5)
        assert ended_within(terminal, 2.5, lambda: terminal.kill(signal.SIGTERM)) == 143
        terminal.assert_whole()


def test_a_terminal_that_goes_away_ends_it(tmp_path: Path) -> None:
    terminal = Launched(tmp_path, "live")
    with terminal:
        terminal.wait_for("FINDINGS")
        pid = terminal.pid
    deadline = time.monotonic() + 4
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, "the process lingers without a terminal"
        time.sleep(0.05)


def test_it_can_be_suspended_and_brought_back(tmp_path: Path) -> None:
    with Launched(tmp_path) as terminal:
        terminal.wait_for("FINDINGS")
        terminal.keys("C-z")
        terminal.wait(lambda _: not terminal.on_alternate_screen() and terminal.cursor_visible())
        terminal.line("fg")
        terminal.wait(lambda text: terminal.on_alternate_screen() and "FINDINGS" in text and "9Audit" in text)
        terminal.keys("q")
        terminal.wait(lambda _: not terminal.on_alternate_screen())
        terminal.assert_whole()


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0"},
        {"LC_ALL": "", "LANG": "C"},  # which Python turns into C.UTF-8 when it starts
        {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii:strict"},
    ],
)
def test_without_utf8_all_is_ascii(tmp_path: Path, env: dict[str, str]) -> None:
    with Launched(tmp_path, "hostile", 120, 40, env) as terminal:
        screen = terminal.wait_for("FINDINGS")
        assert screen.isascii()
        assert "*~xx" in screen
        terminal.keys("Tab", "Enter", "?")  # in one go: none may overtake another
        assert terminal.wait_for("EVERYWHERE").isascii()
        terminal.keys("Escape")
        assert terminal.wait_for("finding 1 of 7").isascii()
        terminal.keys("q")
        assert terminal.exit_status() == 0
        assert terminal.screen().isascii()


def test_no_color(tmp_path: Path) -> None:
    with Launched(tmp_path, env={"NO_COLOR": "1", "COLORTERM": "truecolor"}) as terminal:
        terminal.wait_for("FINDINGS")
        codes = re.findall(r"\x1b\[([\d;:]*)m", terminal.tmux("capture-pane", "-p", "-e"))
        numbers = {number for code in codes for number in code.split(";")}
        assert numbers <= {"", "0", "1", "3", "4", "7", "22", "24", "27", "39", "49"}, numbers
        assert "7" in numbers and "1" in numbers


@pytest.mark.parametrize(
    ("term", "redirect", "says"),
    [
        ("dumb", "", "TERM is dumb"),
        ("no-such-terminal", "", "TERM is 'no-such-terminal', which is not known here"),
        ("", "</dev/null", "its input is none"),
        ("", "| cat", "its output is none"),
        ("", "2>/dev/null", ""),
    ],
)
def test_where_it_cannot_draw_it_says_so(tmp_path: Path, term: str, redirect: str, says: str) -> None:
    with Launched(tmp_path, term=term, redirect=redirect) as terminal:
        status = terminal.exit_status()
        assert status == (0 if "|" in redirect else 2)
        screen = terminal.screen().replace("\n", "")
        assert says in screen
        if says:
            assert "worktop status prints the same as text" in screen
        assert not terminal.on_alternate_screen()


def test_nothing_hostile_reaches_the_terminal() -> None:
    """The bytes themselves: only what Textual sends, whatever stands in the data."""
    pid, descriptor = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execvpe(
            sys.executable,
            [sys.executable, "-m", "tests.tui.launch", "hostile"],
            {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "COLORTERM": "truecolor"}
            | {"COLUMNS": "200", "LINES": "50", "HOME": os.environ.get("HOME", "/")},
        )
    received = b""
    keys = [b"\t", b"\r", b"n", b"n", b"?", b"\x1b", b"2", b"s", b"\r", b"n", b"5", b":", b"\x1b", b"q"]
    deadline = time.monotonic() + 30
    quiet = 0
    while time.monotonic() < deadline:
        ready, _, _ = select.select([descriptor], [], [], 0.25)
        if ready:
            try:
                received += os.read(descriptor, 65536)
            except OSError:
                break
            quiet = 0
            continue
        quiet += 1
        if b"FINDINGS" in received and quiet and keys:
            os.write(descriptor, keys.pop(0))
    os.close(descriptor)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    text = received.decode()
    assert "␛[31mred␛[0m" in text  # visible as text
    own = text.replace("\x1b]22;default\x07", "")  # Textual's shape of the mouse pointer
    own = re.sub(r"\x1b\[[<>?=]?[\d;:]*\$?[a-zA-Z]", "", own)
    left = {char for char in own if ord(char) < 32 or 0x7F <= ord(char) < 0xA0} - {"\r", "\n"}
    assert left == set(), f"control characters reached the terminal: {left}"
    assert not any(char in own for char in "\u202e\u2066\u2069\u200b\u2028\ufeff\u200d")
    assert "\x1b[31m" not in text and "\x1b[2J" not in text
