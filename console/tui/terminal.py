"""The terminal around the console: may it start, does it speak UTF-8, and how it is put back whatever happens."""

from __future__ import annotations

import contextlib
import locale
import os
import sys
import termios
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Names of terminals that understand what Textual sends, also where the host has no terminfo entry for them.
_KNOWN = (
    *("xterm", "screen", "tmux", "rxvt", "linux", "alacritty", "kitty", "foot", "wezterm", "ghostty", "konsole"),
    *(
        "contour",
        "vt100",
        "vt220",
        "vt320",
        "vt420",
        "st",
        "gnome",
        "vte",
        "eterm",
        "mlterm",
        "putty",
        "cygwin",
        "iterm",
    ),
)
# What Textual undoes when it ends: paste, mouse, focus reports, keyboard protocol, cursor, line wrap, alternate screen.
_RESTORE = (
    "\x1b[?2004l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l\x1b[?2048l\x1b[?1004l\x1b[<u\x1b[?7h"
    "\x1b[?1049l\x1b[?25h\x1b[0m"
)


def refusal(environment: Mapping[str, str]) -> str | None:
    """Why the console cannot run in this terminal, as one line that says what to do; None when it can."""
    instead = "; worktop status prints the same as text"
    for name, number in (("input", 0), ("output", 1), ("error output", 2)):
        if not os.isatty(number):
            return f"the console needs a terminal, and its {name} is none{instead}"
    term = environment.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        return f"the console cannot draw on this terminal (TERM is {term or 'not set'}){instead}"
    if not term.startswith(_KNOWN) and not _moves_the_cursor(term):
        return f"the console cannot draw on this terminal (TERM is {term!r}, which is not known here){instead}"
    return None


def _moves_the_cursor(term: str) -> bool:
    """Terminfo says that the terminal moves its cursor the way ANSI terminals do."""
    try:
        import curses

        curses.setupterm(term, 1)
        return bool((curses.tigetstr("cup") or b"").startswith(b"\x1b["))
    except Exception:  # noqa: BLE001  curses.error, or a Python without curses
        return False


def speaks_utf8(environment: Mapping[str, str]) -> bool:
    """The locale is UTF-8, as the person set it: Python itself changes C to C.UTF-8 when it starts.

    WORKTOP_GLYPHS=ascii or unicode overrides.
    """
    wish = environment.get("WORKTOP_GLYPHS", "").lower()
    if wish in ("ascii", "unicode"):
        return wish == "unicode"
    if _coerced(environment):
        return False
    return locale.getencoding().lower().replace("-", "") in ("utf8", "cp65001")


def _coerced(environment: Mapping[str, str]) -> bool:
    """LC_CTYPE is there now and was not when the process began (PEP 538)."""
    if not environment.get("LC_CTYPE") or environment.get("LC_ALL"):
        return False
    try:
        began = Path("/proc/self/environ").read_bytes()
    except OSError:
        return False
    return not any(entry.startswith(b"LC_CTYPE=") and len(entry) > 9 for entry in began.split(b"\0"))


def theme_for(environment: Mapping[str, str]) -> str:
    """WORKTOP_THEME (dark, light, safe); without it light where the terminal says that its ground is (COLORFGBG)."""
    wish = environment.get("WORKTOP_THEME", "").lower()
    if wish in ("dark", "light", "safe"):
        return f"worktop-{wish}"
    ground = environment.get("COLORFGBG", "").rpartition(";")[2]
    return "worktop-light" if ground in ("7", "15") else "worktop-dark"


class Guard:
    """Remembers how the terminal was, and ends a process that does not end by itself."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None
        self._ended = threading.Event()
        self._watching = False
        self._deadline_status = 1
        with contextlib.suppress(termios.error, OSError):
            self._before = termios.tcgetattr(0)

    def restore(self) -> None:
        """Put the terminal back by hand: for an end that Textual did not see."""
        with contextlib.suppress(OSError):
            os.write(2, _RESTORE.encode())
        if self._before is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(0, termios.TCSANOW, self._before)

    def end_within(self, seconds: float, status: int) -> None:
        """Unless `ended` is called within `seconds`, restore the terminal and end the process with `status`.

        For an end that hangs: a loop blocked by a call, a terminal that takes no more output.
        """
        self._deadline_status = status
        if self._watching:
            return
        self._watching = True

        def watch() -> None:
            if not self._ended.wait(seconds):
                # In a thread of its own, as the terminal may not take another byte.
                writer = threading.Thread(target=self.restore, daemon=True)
                writer.start()
                writer.join(0.2)
                os._exit(self._deadline_status)

        threading.Thread(target=watch, name="worktop-end", daemon=True).start()

    def ended(self) -> None:
        """The end came by itself."""
        self._ended.set()


def lingering_threads() -> list[str]:
    """Names of threads that would keep the interpreter from ending."""
    return [t.name for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon and t.is_alive()]


def flush() -> None:
    """Write out what is buffered; a terminal that is gone is no error here."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
