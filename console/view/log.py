"""Pure: journal lines as lines of the screen: time, instance, priority by sign, word and colour, text."""

from __future__ import annotations

from datetime import UTC, datetime

from console.fleet.model import LogLine
from console.text import pad
from console.view.cells import Part, Tone, columns, fit_from, safe
from console.view.glyphs import Glyphs
from console.view.headline import clock_text

Parts = tuple[Part, ...]
_WORDS = ("emerg", "alert", "crit", "error", "warn", "notice", "info", "debug")
_TONES: tuple[Tone, ...] = ("bad", "bad", "bad", "bad", "warn", "note", "", "dim")
_WORD_WIDTH = 6
_NAME_AT_MOST = 12
_WITHOUT_WORD = 60  # columns; narrower than this the sign stands alone


def instance_name(unit: str) -> str:
    """ "mail-worker@1.service" -> "@1"; the whole name of a unit that is no instance."""
    stem = unit.rpartition(".")[0] or unit
    return f"@{stem.partition('@')[2]}" if "@" in stem else stem


def priority_parts(priority: int, glyphs: Glyphs, with_word: bool = True) -> Parts:
    """ "× error "."""
    level = min(7, max(0, priority))
    sign = glyphs.bad if level <= 3 else glyphs.warning if level == 4 else glyphs.note if level == 5 else " "
    text = f"{sign} {pad(_WORDS[level], _WORD_WIDTH)}" if with_word else sign
    return ((text, _TONES[level]),)


def record_text(line: LogLine) -> str:
    """A line of a file or a pipe, as journalctl's short-iso: safe."""
    at = f"{datetime.fromtimestamp(line.at, UTC):%Y-%m-%dT%H:%M:%S}.{int(line.at % 1 * 1000):03}Z"
    pid = f"[{line.pid}]" if line.pid is not None else ""
    return f"{at} {safe(line.unit, 120)}{pid} {_word(line)}: {safe(line.text)}"


def line_text(line: LogLine) -> str:
    """What a filter searches and `y` copies: safe."""
    return f"{clock_text(line.at)[:8]} {safe(instance_name(line.unit), 40)} {_word(line)} {safe(line.text)}"


def _word(line: LogLine) -> str:
    return _WORDS[min(7, max(0, line.priority))]


def name_width(units: tuple[str, ...]) -> int:
    """Columns of the instance column for these units."""
    return min(_NAME_AT_MOST, max((columns(safe(instance_name(unit), _NAME_AT_MOST)) for unit in units), default=2))


def log_parts(line: LogLine, width: int, glyphs: Glyphs, names: int, aside: int = 0) -> Parts:
    """One line of the journal in at most `width` columns; `aside` columns of its text are left out."""
    level = min(7, max(0, line.priority))
    tone: Tone = _TONES[level] if level <= 4 else "dim" if line.by_manager or level == 7 else ""
    head: list[Part] = [(f"{clock_text(line.at)[:8]} ", "dim")]
    if names:
        head.append((pad(safe(instance_name(line.unit), names), names) + " ", "key"))
    head += priority_parts(line.priority, glyphs, width >= _WITHOUT_WORD)
    head.append((" ", ""))
    room = width - sum(columns(text) for text, _ in head)
    if room < 1:
        return tuple(head)
    return (*head, (fit_from(safe(line.text), aside, room), tone))


class LogStore:
    """The last lines of a log, at most `most`, and those of them that are shown: of one unit, with all the words.

    While it is paused new lines wait, as many as it may hold; `lost` says how many of those were let go.
    """

    def __init__(self, most: int = 3_000) -> None:
        self._most = most
        self._lines: list[LogLine] = []
        self._waiting: list[LogLine] = []
        self._seen: frozenset[str] = frozenset()
        self._words: tuple[str, ...] = ()
        self._unit = ""
        self.shown: list[LogLine] = []
        self.paused = False
        self.lost = 0
        self.version = 0  # of what is shown

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def total(self) -> int:
        """How many lines there are without the words."""
        if not self._unit:
            return len(self._lines)
        return sum(1 for line in self._lines if line.unit == self._unit)

    @property
    def waiting(self) -> int:
        """How many lines wait for the end of the pause."""
        return len(self._waiting)

    def add(self, lines: tuple[LogLine, ...]) -> int:
        """Take new lines; how many shown ones had to go for them at the beginning."""
        lines = tuple(line for line in lines if not line.cursor or line.cursor not in self._seen)
        if self.paused:
            self._waiting += lines
            over = max(0, len(self._waiting) - self._most)
            del self._waiting[:over]
            self.lost += over
            return 0
        added = lines[-self._most :]
        over = max(0, len(self._lines) + len(added) - self._most)
        gone = sum(1 for line in self._lines[:over] if self._wanted(line))
        del self._lines[:over]
        del self.shown[:gone]
        self._lines += added
        self.version += 1
        self.shown += [line for line in added if self._wanted(line)]
        return gone

    def go_on(self) -> int:
        """End the pause; as `add`."""
        self.paused, self.lost = False, 0
        waiting, self._waiting = tuple(self._waiting), []
        return self.add(waiting)

    def narrow(self, words: tuple[str, ...], unit: str) -> None:
        """Show only lines of this unit ("": of all) in which all the words stand."""
        if (words, unit) == (self._words, self._unit):
            return
        self._words, self._unit = words, unit
        self.version += 1
        self.shown = [line for line in self._lines if self._wanted(line)]

    def begin_again(self) -> None:
        """The journal will be read again from an earlier place: what is here already will not be taken twice."""
        self._seen = frozenset(line.cursor for line in self._lines) | {line.cursor for line in self._waiting}

    def clear(self) -> None:
        """Forget everything."""
        self.version += 1
        self._lines.clear()
        self._waiting.clear()
        self.shown.clear()
        self._seen, self.lost = frozenset(), 0

    def _wanted(self, line: LogLine) -> bool:
        if self._unit and line.unit != self._unit:
            return False
        if not self._words:
            return True
        text = _searched(line)
        return all(word in text for word in self._words)


_SEARCHED_AT_MOST = 2000  # characters of a line


def _searched(line: LogLine) -> str:
    return f"{instance_name(line.unit)} {_word(line)} {line.text[:_SEARCHED_AT_MOST]}".casefold()
