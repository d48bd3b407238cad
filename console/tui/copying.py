"""Copying out of the console: by the terminal itself (OSC 52), or into a file where that is too much for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from console.state import write_new
from console.tui.crash import state_folder

TERMINAL_TAKES = 100 * 1024  # bytes; many terminals drop more without a word


def write_copy(text: str, environment: Mapping[str, str], now: datetime | None = None) -> Path:
    """Write the text to a new file of mode 0600 below $XDG_STATE_HOME/worktop; its path. Raises OSError."""
    moment = now or datetime.now(UTC)
    folder = state_folder(environment) / "copies"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"copy-{moment:%Y%m%dT%H%M%S.%fZ}-{os.getpid()}.txt"
    write_new(path, text)
    return path
