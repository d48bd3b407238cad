"""A terminal that keeps time: a program on a pty of its own, what it writes stamped, its screen rebuilt by pyte."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import queue
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

import pyte

COLUMNS, LINES = 120, 40

# What programs ask a terminal, and what a plain one answers. One that answers nothing makes some wait for seconds.
_ANSWERS: tuple[tuple[re.Pattern[bytes], bytes], ...] = (
    (re.compile(rb"\x1b\[6n"), b"\x1b[1;1R"),
    (re.compile(rb"\x1b\[0?c"), b"\x1b[?62;22c"),
    (re.compile(rb"\x1b\[>0?c"), b"\x1b[>0;276;0c"),
    (re.compile(rb"\x1b\[>0?q"), b"\x1bP>|bench\x1b\\"),
    (re.compile(rb"\x1bP\+q[0-9A-Fa-f;]*\x1b\\"), b"\x1bP0+r\x1b\\"),
    (re.compile(rb"\x1b\[\?2026\$p"), b"\x1b[?2026;0$y"),
    (re.compile(rb"\x1b\]1([01]);\?(?:\x07|\x1b\\)"), b"\x1b]10;rgb:c0c0/c0c0/c0c0\x1b\\"),
)
# What pyte prints as text instead of leaving it out.
_UNKNOWN_TO_PYTE = re.compile(
    rb"\x1b[P_^X][^\x1b]*\x1b\\|\x1b\[[<>=][0-9;:]*[A-Za-z]|\x1b\[[?>]?[0-9;]*\$[a-z]|\x1b\[[0-9;]*:[0-9;:]*m"
)


class Ended(AssertionError):
    """The program ended, or the time ran out, before the screen was as wanted."""


class Pty:
    """A program on a terminal of `columns` x `lines`; `with Pty(argv) as terminal: ...` ends it.

    A thread reads, stamps and answers; the screen is rebuilt only when it is asked for, so that the emulator's own
    time is no part of a measurement.
    """

    def __init__(self, argv: Sequence[str], columns: int = COLUMNS, lines: int = LINES) -> None:
        self.argv = list(argv)
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self._size = (lines, columns)
        self._chunks: queue.SimpleQueue[tuple[float, bytes] | None] = queue.SimpleQueue()
        self.written = 0  # bytes the program has written
        self.started = 0.0  # time.monotonic() when it was started
        self._carry = b""

    def __enter__(self) -> Pty:
        self._fd, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", *self._size, 0, 0))
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            self.argv,
            stdin=child,
            stdout=child,
            stderr=child,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env=os.environ
            | {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"},
        )
        os.close(child)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            # nsenter only waits for what it started: the signal goes to the terminal's foreground group
            for number, patience in ((signal.SIGHUP, 3.0), (signal.SIGKILL, 3.0)):
                for pid in reversed(self.tree()):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
                try:
                    self.process.wait(patience)
                    break
                except subprocess.TimeoutExpired:
                    continue
        os.close(self._fd)
        self._thread.join(2.0)

    def _read(self) -> None:
        while True:
            try:
                if not select.select([self._fd], [], [], 1.0)[0]:
                    continue
                chunk = os.read(self._fd, 65536)
            except (OSError, ValueError):
                break
            if not chunk:
                break
            self._chunks.put((time.monotonic(), chunk))
            self.written += len(chunk)
            if b"\x1b" in chunk:
                for question, answer in _ANSWERS:
                    for _ in question.finditer(chunk):
                        try:
                            os.write(self._fd, answer)
                        except OSError:
                            return
        self._chunks.put(None)

    def send(self, keys: str) -> float:
        """Type; the time at which it was typed."""
        at = time.monotonic()
        os.write(self._fd, keys.encode())
        return at

    def text(self) -> str:
        """The screen as it was last seen."""
        return "\n".join(self.screen.display)

    def catch_up(self) -> None:
        """Take in what has been written until now."""
        while True:
            try:
                self._feed(self._chunks.get_nowait())
            except queue.Empty:
                return

    def wait(self, condition: Callable[[Pty], bool], timeout: float, what: str) -> float:
        """Until the condition holds of the screen; time.monotonic() of the bytes that made it so. Ended."""
        deadline = time.monotonic() + timeout
        at = time.monotonic()
        while not condition(self):
            try:
                got = self._chunks.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise Ended(f"no {what} within {timeout:g} s; the screen is\n{self.text()}") from None
            if got is None:
                self._chunks.put(None)
                raise Ended(f"ended without {what}; the screen is\n{self.text()}")
            at = got[0]
            self._feed(got)
        return at

    def wait_for(self, pattern: str, timeout: float = 30.0) -> float:
        compiled = re.compile(pattern)
        return self.wait(lambda seen: compiled.search(seen.text()) is not None, timeout, repr(pattern))

    def _feed(self, got: tuple[float, bytes] | None) -> None:
        if got is not None:
            data = self._carry + got[1]
            cut = data.rfind(b"\x1b", max(0, len(data) - 64))  # a sequence may go on in the next chunk
            self._carry = b""
            if cut >= 0 and not re.search(rb"[A-Za-z~\\\x07]", data[cut + 1 :].lstrip(b"[]P(")):
                data, self._carry = data[:cut], data[cut:]
            self._stream.feed(_UNKNOWN_TO_PYTE.sub(b"", data))

    def tree(self) -> list[int]:
        """The program and everything below it that lives, parents first."""
        return descendants(self.process.pid)


# --- processes, from /proc -------------------------------------------------------------------------------------------

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def descendants(pid: int) -> list[int]:
    """The process and all below it, parents first."""
    found = [pid]
    for known in found:  # grows while it is walked
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{known}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def cpu(pid: int, children: bool = False) -> float:
    """Seconds of CPU of a process with all its threads; with `children` only those of children it has reaped."""
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return sum(map(int, fields[13:15] if children else fields[11:13])) / TICKS


def rss(pid: int) -> int:
    """Bytes of resident memory; 0 when it has ended."""
    return int((_read(pid, "statm").split() or ["0", "0"])[1]) * PAGE


def command(pid: int) -> str:
    """Its command line; "" when it has ended."""
    return _read(pid, "cmdline").replace("\0", " ").strip()


def numbers_inside(leader: int, pids: Sequence[int]) -> dict[int, int]:
    """pid inside the demo host -> pid outside, for descendants of its pid 1."""
    found = {}
    for outer in descendants(leader):
        match = re.search(r"^NSpid:.*?(\d+)$", _read(outer, "status"), re.MULTILINE)
        if match and int(match[1]) in pids:
            found[int(match[1])] = outer
    return found


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
