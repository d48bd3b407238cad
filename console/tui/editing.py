"""A text in the person's own editor, while the console is suspended."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from console.errors import ConfigError

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

_KNOWN = ("sensible-editor", "editor", "nano", "vi")


def editor(environment: Mapping[str, str]) -> list[str]:
    """$VISUAL, $EDITOR, or one that is there. ConfigError: there is none."""
    for name in ("VISUAL", "EDITOR"):
        if words := shlex.split(environment.get(name, "")):
            return words
    found = next((path for each in _KNOWN if (path := shutil.which(each, path=environment.get("PATH")))), None)
    if found is None:
        raise ConfigError("edit", "no editor was found", "set EDITOR")
    return [found]


def edited_in(app: ConsoleApp, text: str, name: str) -> str:
    """`edited` with the terminal given to the editor meanwhile. ConfigError."""
    try:
        with app.suspend():
            return edited(text, name, os.environ)
    except SuspendNotSupported:
        raise ConfigError("edit", "this terminal cannot be given to an editor") from None


def edited(text: str, name: str, environment: Mapping[str, str]) -> str:
    """What the editor leaves of a text; `name` is that of the file as it is edited. ConfigError: the editor failed,
    and nothing is to be taken over."""
    command = editor(environment)
    with tempfile.TemporaryDirectory(prefix="worktop-edit-") as folder:
        path = Path(folder) / (Path(name).name or "draft")
        path.write_text(text, encoding="utf-8")
        # ctrl+c is meant for the editor. A handler, since one that is ignored would be ignored by the editor, too.
        before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGQUIT)}
        try:
            status = subprocess.run([*command, str(path)], env=dict(environment)).returncode
            changed = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"edit with {command[0]}", str(error)) from None
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    if status:
        raise ConfigError(f"edit with {command[0]}", f"it ended with status {status}", "nothing is taken over")
    return changed
