"""The files that lines of crontabs run or read, each looked at once."""

from __future__ import annotations

from console.host.rooted import Root
from console.schedules.model import ScriptText

_LONGEST = 256 * 1024  # bytes; what is longer is taken for a program
_NOT_READ = ("/dev/", "/proc/", "/sys/")


class Scripts:
    def __init__(self, root: Root) -> None:
        self._root = root
        self._known: dict[str, ScriptText | None] = {}

    def forget(self) -> None:
        self._known.clear()

    def read(self, path: str) -> ScriptText | None:
        """The file as text, or why its text is not known; None when it is absent."""
        if path not in self._known:
            self._known[path] = self._read(path)
        return self._known[path]

    def _read(self, path: str) -> ScriptText | None:
        if not path.startswith("/") or path.startswith(_NOT_READ) or "\0" in path:
            return None
        content = self._root.read(path, _LONGEST)
        if content.absent:
            return None
        if content.problem:
            return ScriptText(path=path, problem=content.problem)
        if b"\0" in content.data[:4096]:
            return ScriptText(path=path, problem="it is no text")
        return ScriptText(path=path, text=content.data.decode("utf-8", "replace"))
