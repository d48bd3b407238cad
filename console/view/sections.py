"""Pure: a text in sections that can be jumped to."""

from __future__ import annotations

from itertools import accumulate

import msgspec

from console.view.cells import Part, cell, part_columns
from console.view.glyphs import Glyphs

Parts = tuple[Part, ...]


class Section(msgspec.Struct, frozen=True):
    """A name and safe lines that fit the width."""

    name: str  # one or two words: "PROPERTIES"
    lines: tuple[Parts, ...]


def section_lines(sections: tuple[Section, ...]) -> tuple[Parts, ...]:
    """All lines: each section under its name, an empty line after it."""
    out: list[Parts] = []
    for section in sections:
        out.append(((section.name, "head"),))
        out += section.lines
        out.append(())
    return tuple(out[:-1])


def section_starts(sections: tuple[Section, ...]) -> list[int]:
    """On which line each section begins."""
    return list(accumulate((len(section.lines) + 2 for section in sections[:-1]), initial=0)) if sections else []


def place_of(sections: tuple[Section, ...], line: int) -> int:
    """The number of the section in which the line stands."""
    return max((number for number, start in enumerate(section_starts(sections)) if start <= line), default=0)


def section_names(sections: tuple[Section, ...], here: int, width: int, glyphs: Glyphs) -> Parts:
    """The names in one line, the present one reversed; where they do not fit, the present one and its number."""
    parts: list[Part] = []
    for number, section in enumerate(sections):
        if number:
            parts.append((f" {glyphs.dot} ", "dim"))
        parts.append((section.name, "sorted" if number == here else "dim"))
    if part_columns(tuple(parts)) > width and sections:
        parts = [(sections[here].name, "sorted"), (f"  {here + 1} of {len(sections)}", "dim")]
    return cell(tuple(parts), width).parts
