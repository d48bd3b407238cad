"""Questions to the journal that end: the last lines of units, those of a time, those that mention a word."""

from __future__ import annotations

import asyncio
import fnmatch
import re
from collections.abc import Callable, Iterable

from console.errors import HostError, Problem
from console.fleet.model import LogLine
from console.host import children, journal
from console.host.protocol import LOG_LINES, LOG_UNITS, ReadLog

_SECONDS = 9.0
_SLICE_LINES = 100  # entries that are read between two turns of the event loop
_GLOB = frozenset("*?[")
_LONGEST_WORD = 200  # characters


async def read_log(
    wanted: ReadLog, loaded: Callable[[], Iterable[str]], user_manager: bool
) -> tuple[tuple[LogLine, ...], Problem | None]:
    """The last of the lines that are wanted, oldest first, and why there are none, or not all. HostError: no such
    question."""
    check_units(wanted.units)
    most = max(1, min(wanted.lines, LOG_LINES))
    command = ["journalctl", *journal.FORMAT]
    mention = None
    if wanted.mentions:
        mention = mention_of(wanted.mentions)
        command += [f"--grep={_pattern(wanted.mentions)}", "--case-sensitive=true"]
    else:
        command.append(f"--lines={most}")  # with --grep it would mean the newest first
    times = (("since", wanted.since), ("until", wanted.until))
    command += [f"--{name}=@{at:.6f}" for name, at in times if at is not None]
    units = expanded(wanted.units, loaded())
    said = await children.output_of([*command, *(journal.which(name, user_manager) for name in units)], _SECONDS)
    lines: list[LogLine] = []
    for number, data in enumerate(said.out.split(b"\n"), start=1):
        line = journal.line_of(data)
        if line is not None and (mention is None or mention.search(line.text)):
            lines.append(line)
        if not number % _SLICE_LINES:
            await asyncio.sleep(0)
    problem = journal.problem_of(said.err.decode("utf-8", "replace"))
    if len(lines) > most:
        problem = problem or Problem("journal", f"only the last {most} of {len(lines)} lines")
    return tuple(lines[-most:]), problem


def check_units(units: tuple[str, ...]) -> None:
    """HostError when they cannot be asked about."""
    if not units or len(units) > LOG_UNITS:
        raise HostError("read the journal", f"between 1 and {LOG_UNITS} units can be named")
    for name in units:
        if not name or len(name) > 256 or "\0" in name or "/" in name:
            raise HostError("read the journal", f"{name[:60]!r} is no unit")


def expanded(units: Iterable[str], loaded: Iterable[str]) -> tuple[str, ...]:
    """The names a glob stands for now, as systemd knows them; a glob that stands for none is left to journalctl.

    journalctl's own globs take a second in a large journal and are not opened again for units that come later.
    """
    known = tuple(loaded)
    found: dict[str, None] = {}
    for name in units:
        matching = [name]
        if _GLOB & set(name):
            matching = sorted(each for each in known if fnmatch.fnmatchcase(each, name)) or matching
        found.update(dict.fromkeys(matching[:LOG_UNITS]))
    return tuple(found)


def mention_of(word: str) -> re.Pattern[str]:
    """Finds the word where it is no part of a longer one. HostError: it is too long."""
    if len(word) > _LONGEST_WORD or "\0" in word or "\n" in word:
        raise HostError("read the journal", "that is too long to look for")
    return re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")


def _pattern(word: str) -> str:
    """The same for journalctl (PCRE2), which takes every escaped sign that is no letter or digit for itself."""
    return "".join(char if char.isalnum() or char == "_" else f"\\{char}" for char in word)
