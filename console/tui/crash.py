"""A crash of the console: the traceback goes to a file that only its owner can read, one line goes to the screen."""

from __future__ import annotations

import os
import platform
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from console import __version__
from console.text import clean, clean_block

_LONGEST = 160  # columns of the reason on the screen


def state_folder(environment: Mapping[str, str]) -> Path:
    """Where worktop keeps what it may lose: $XDG_STATE_HOME/worktop, by default ~/.local/state/worktop."""
    base = environment.get("XDG_STATE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "worktop"


def write_crash_log(error: BaseException, environment: Mapping[str, str], now: datetime | None = None) -> Path:
    """Write the traceback, without locals and with secrets masked, to a new file of mode 0600; its path.

    Raises OSError where that cannot be written, RuntimeError where there is no home directory.
    """
    moment = now or datetime.now(UTC)
    folder = state_folder(environment)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"crash-{moment:%Y%m%dT%H%M%S.%fZ}-{os.getpid()}.log"
    head = [
        f"worktop {__version__}, {moment:%Y-%m-%d %H:%M:%S} UTC",
        f"Python {platform.python_version()}, Textual {_version('textual')}, {platform.platform()}",
        f"TERM={environment.get('TERM', '')}",
        "",
    ]
    body = "\n".join(head) + "\n" + "".join(traceback.format_exception(error))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(clean_block(body) + "\n")
    return path


def crash_line(error: BaseException, environment: Mapping[str, str], what: str = "the console failed") -> str:
    """Write the crash log; the one line that tells of it."""
    why = clean(f"{type(error).__name__}: {error}", _LONGEST)
    try:
        where = f"details in {clean(write_crash_log(error, environment))}"
    except (OSError, RuntimeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        where = f"no crash log could be written ({clean(reason)})"
    return f"worktop: {what}: {why}; {where}"


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "?"
