"""The worker's log: one line per event on stderr, secrets masked, control characters visible."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import Literal, TextIO

from console.text import clean

_PRIORITY = {"error": 3, "warning": 4, "info": 6}  # sd-daemon(3)


class Log:
    """Under systemd each line starts with its priority and the journal adds the time; elsewhere with the time."""

    def __init__(self, name: str, stream: TextIO | None = None) -> None:
        self._name = name
        self._stream = sys.stderr if stream is None else stream
        self._journal = "JOURNAL_STREAM" in os.environ and not self._stream.isatty()

    def __call__(self, message: str, level: Literal["error", "warning", "info"] = "info") -> None:
        start = f"<{_PRIORITY[level]}>" if self._journal else time.strftime("%Y-%m-%dT%H:%M:%S%z ")
        word = "" if level == "info" else f"{level}: "
        with contextlib.suppress(OSError):  # a log nobody reads must not stop the work
            print(f"{start}{self._name}: {word}{clean(message)}", file=self._stream, flush=True)
