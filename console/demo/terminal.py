"""Running a command on this terminal, so that the terminal is given back whole."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import termios
from collections.abc import Iterator

import psutil


def foreground(argv: list[str], env: dict[str, str] | None = None) -> int:
    """Run a command on this terminal and give the terminal back as it was, however it ends."""
    with _terminal_kept():
        child = subprocess.Popen(argv, env=env)
        asked: list[int] = []

        def pass_on(number: int, frame: object) -> None:
            asked.append(number)
            for pid in _descendants(child.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

        previous = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGHUP)}
        previous[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to both
        try:
            while True:
                try:
                    code = child.wait(5.0 if asked else None)
                    break
                except subprocess.TimeoutExpired:
                    child.kill()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
    return 128 + asked[0] if asked else 128 - code if code < 0 else code


def _descendants(top: int) -> list[int]:
    """The processes below `top`, without itself: nsenter would end without waiting for what it entered."""
    with contextlib.suppress(psutil.Error):
        return [process.pid for process in psutil.Process(top).children(recursive=True)]
    return []


@contextlib.contextmanager
def _terminal_kept() -> Iterator[None]:
    try:
        before = termios.tcgetattr(0)
    except termios.error:
        before = None
    try:
        yield
    finally:
        if before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(0, termios.TCSADRAIN, before)
