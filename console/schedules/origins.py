"""Other places that start the same thing: one role must have one owner. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from console.schedules.commands import words
from console.schedules.model import Entry, ScriptText

Read = Callable[[str], ScriptText | None]
_STOP = re.compile(r"^(?:\d*[<>].*|&&?|\|\|?|;.*|&>.*|\)|\})$")
_TOOLS = words("/bin /sbin /usr/bin /usr/sbin")
_WHOLE = frozenset({"rc.local", "hourly", "daily", "weekly", "monthly"})


class Origins:
    """Every entry, found by the path of a program it names. Built once for a host."""

    def __init__(self, entries: tuple[Entry, ...], read: Read) -> None:
        self._by_path: dict[str, list[tuple[Entry, tuple[str, ...]]]] = {}
        for entry in entries:
            if not entry.active:
                continue
            text = entry.command
            if entry.source.kind in _WHOLE:
                found = read(entry.source.path)
                text = "" if found is None else found.text
            self._add(entry, text)

    def _add(self, entry: Entry, text: str) -> None:
        folder = ""
        for line in text.splitlines():
            tokens = re.sub(r"[\"'()]", " ", line).split()
            for place, token in enumerate(tokens):
                if token == "cd" and place + 1 < len(tokens):
                    folder = tokens[place + 1].rstrip("/;")
                if token.startswith("./") and folder:
                    token = f"{folder}/{token[2:]}"
                token = token.rstrip(";")
                if token.startswith("/") and token.rpartition("/")[0] not in _TOOLS and not token.startswith("/dev/"):
                    if place and tokens[place - 1].endswith(">"):
                        continue
                    self._by_path.setdefault(token, []).append((entry, _until_operator(tokens[place + 1 :])))

    def of(self, path: str, arguments: tuple[str, ...], entry: Entry) -> list[Entry]:
        """The other entries that run this path with these arguments."""
        return [
            other for other, found in self._by_path.get(path, [])
            if found == arguments and (other.source, other.line) != (entry.source, entry.line)
        ]  # fmt: skip


def _until_operator(tokens: list[str]) -> tuple[str, ...]:
    found: list[str] = []
    for token in tokens:
        if _STOP.match(token):
            break
        found.append(token.rstrip(";"))
        if token.endswith(";"):
            break
    return tuple(found)


_LAST: list[tuple[tuple[Entry, ...], Origins]] = []  # of the entries that were asked for last


def origins_of(entries: tuple[Entry, ...], read: Read) -> Origins:
    """The index of these entries; the last one is kept, because a host's entries are asked for one by one."""
    if not _LAST or _LAST[0][0] is not entries:
        _LAST[:] = [(entries, Origins(entries, read))]
    return _LAST[0][1]
