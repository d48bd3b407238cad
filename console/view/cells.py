"""What a table shows, as plain values: cells made of toned parts, columns with exact widths, rows with a key."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec

from console.text import clean, clean_block, fit, visible
from console.text import columns as columns_of

# What a piece of text means; theme.py says how it looks.
Tone = Literal["", "ok", "bad", "warn", "note", "dim", "stale", "strong", "head", "key", "sorted"]

Part = tuple[str, Tone]


class Cell(msgspec.Struct, frozen=True):
    """One cell: its parts fill exactly the width of its column; the text is safe to display."""

    parts: tuple[Part, ...]

    @property
    def plain(self) -> str:
        return plain(self.parts)


class Column(msgspec.Struct, frozen=True):
    key: str
    label: str  # padded to the width
    width: int  # terminal columns, with the gap to the next one
    sorted: bool = False  # the rows are ordered by it


class Row(msgspec.Struct, frozen=True):
    key: str
    cells: tuple[Cell, ...]


class Grid(msgspec.Struct, frozen=True):
    """A table ready to be shown; `width` is the sum of its columns."""

    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()

    @property
    def width(self) -> int:
        return sum(column.width for column in self.columns)

    def text(self) -> str:
        """The table as lines of plain text, header first."""
        head = "".join(column.label for column in self.columns)
        return "\n".join(line.rstrip() for line in (head, *("".join(c.plain for c in row.cells) for row in self.rows)))


@lru_cache(maxsize=2048)
def columns(text: str) -> int:
    """How many terminal columns the safe text takes."""
    return columns_of(text)


def part_columns(parts: tuple[Part, ...]) -> int:
    return sum(columns(text) for text, _ in parts)


def plain(parts: tuple[Part, ...]) -> str:
    """The text of the parts."""
    return "".join(text for text, _ in parts)


def cell(parts: tuple[Part, ...], width: int, right: bool = False, gap: int = 0) -> Cell:
    """The parts cut (with an ellipsis) or filled to `width` columns, then `gap` blanks."""
    out: list[Part] = []
    room = max(0, width)
    for index, (text, tone) in enumerate(parts):
        more = any(rest for rest, _ in parts[index + 1 :])
        taken = columns(text)
        if taken < room or (taken == room and not more):
            out.append((text, tone))
            room -= taken
            continue
        if taken == room and room > 0:  # something follows, and there is no room to say so but here
            text += " "
        cut = fit(text, room)
        out.append((cut, tone))
        room -= columns(cut)
        break
    # Blanks take the tone of their neighbour: every change of tone costs some 40 bytes on the way to the terminal.
    out = [part for part in out if part[0]] or [("", "")]
    blanks = " " * room
    if right:
        out[0] = (blanks + out[0][0], out[0][1])
        blanks = ""
    out[-1] = (out[-1][0] + blanks + " " * gap, out[-1][1])
    return Cell(tuple((text, tone) for text, tone in out if text))


class Cells:
    """`cell`, remembered from one table to the next: most of its cells are the same then.

    Only those of the last table are kept: ages and counts make new ones all the time.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[object, ...], Cell] = {}
        self._now: dict[tuple[object, ...], Cell] = {}

    def begin(self) -> None:
        """A new table."""
        self._last, self._now = self._now, {}

    def __call__(self, parts: tuple[Part, ...], width: int, right: bool = False, gap: int = 0) -> Cell:
        key = (parts, width, right, gap)
        found = self._now.get(key)
        if found is None:
            found = self._now[key] = self._last.get(key) or cell(parts, width, right, gap)
        return found


_LONGEST_LINE = 600


_CACHED_UP_TO = 1000  # characters; the same names and sentences come with every fleet


def safe(text: object, width: int = _LONGEST_LINE) -> str:
    """Anything from outside as one line that keeps its columns, at most `width` of them; see console.text.clean."""
    raw = str(text)
    return _safe(raw, width) if len(raw) <= _CACHED_UP_TO else _made_safe(raw, width)


def _made_safe(text: str, width: int) -> str:
    return fit(clean(text, _LONGEST_LINE), min(width, _LONGEST_LINE))


_safe = lru_cache(maxsize=4096)(_made_safe)


def safe_block(text: object) -> str:
    """Anything from outside as lines that keep their columns; see console.text.clean_block."""
    return clean_block(text)


def verbatim_block(text: str) -> str:
    """Lines that worktop wrote itself: nothing is masked, control characters are shown all the same."""
    return "\n".join(visible(line.expandtabs(4)) for line in text.split("\n"))


def fit_parts(parts: tuple[Part, ...], width: int) -> tuple[Part, ...]:
    """The parts cut to at most `width` columns; no blanks are added."""
    return parts if part_columns(parts) <= width else cell(parts, width).parts


def fit_from(text: str, start: int, width: int) -> str:
    """The safe text from column `start` on, cut to `width` columns."""
    if start > 0:
        skipped = 0
        for index, char in enumerate(text):
            if skipped >= start:
                text = text[index:]
                break
            skipped += columns(char)
        else:
            text = ""
        while text and columns(text[0]) == 0:  # a mark whose base was left out
            text = text[1:]
    return fit(text, width)


def wrap(parts: tuple[Part, ...], width: int, indent: int = 0) -> list[tuple[Part, ...]]:
    """The parts as lines of at most `width` columns, broken at blanks; lines after the first are indented."""
    if width < 1:
        return []
    indent = indent if indent < width // 2 else 0
    lines: list[list[Part]] = [[]]
    room = width

    def new_line() -> None:
        nonlocal room
        lines.append([(" " * indent, "")] if indent else [])
        room = width - indent

    for text, tone in parts:
        for number, source_line in enumerate(text.split("\n")):
            if number:
                new_line()
            for piece in re.findall(r" +|[^ ]+", source_line):
                taken = columns(piece)
                if taken > room and room < width - indent:
                    if piece.isspace():
                        continue
                    new_line()
                while taken > room and room > 0:  # a word longer than a line
                    head = _head(piece, room)
                    lines[-1].append((fit(head, room), tone))  # a character may be wider than any line
                    piece = piece[len(head) :]
                    taken = columns(piece)
                    new_line()
                if piece:
                    lines[-1].append((piece, tone))
                    room -= taken
    return [tuple(line) for line in lines]


def _head(text: str, width: int) -> str:
    """As many characters as fit into `width` columns, at least one."""
    taken = 0
    for index, char in enumerate(text):
        taken += columns(char)
        if taken > width:
            return text[: max(1, index)]
    return text
