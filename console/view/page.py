"""Lines that fit a width, in the making: headings, sentences, labelled fields, blocks of text."""

from __future__ import annotations

import re

from console.view.cells import Part, Tone, safe, safe_block, verbatim_block, wrap
from console.view.glyphs import Glyphs

Lines = tuple[tuple[Part, ...], ...]

_DIFF = re.compile(r"--- [^\n]*\n\+\+\+ ")  # its two lines of names; what follows is told by its first character
_DIFF_TONES: dict[str, Tone] = {"+": "ok", "-": "bad"}


class Page:
    """Lines that fit the width, in the making."""

    def __init__(self, width: int, glyphs: Glyphs) -> None:
        self._width = width
        self._glyphs = glyphs
        self.lines: list[tuple[Part, ...]] = []

    def add(self, *parts: Part, indent: int = 0) -> None:
        self.lines += wrap(tuple(part for part in parts if part[0]), self._width, indent)

    def text(self, sentence: str, indent: int = 0) -> None:
        self.add((" " * indent, ""), (safe(sentence), ""), indent=indent)

    def break_(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append(())

    def head(self, name: str) -> None:
        self.break_()
        self.add((name, "head"))

    def field(self, label: str, text: str, tone: Tone = "") -> None:
        self.add((f"{label:<12} ", "dim"), (safe(text), tone), indent=13)

    def block(self, text: str, indent: int, tone: Tone = "dim", own: bool = False) -> None:
        """Text of several lines, each wrapped under its own beginning.

        `own`: statements that worktop wrote itself, of which nothing is masked: they are run as they are shown, and
        `lease_token = NULL` is no secret.
        """
        made = verbatim_block(text) if own else safe_block(text)
        diff = _DIFF.match(made)
        for number, line in enumerate(made.rstrip("\n").split("\n")):
            bare = line.lstrip(" ")
            left = indent + min(len(line) - len(bare), 20)
            toned = _DIFF_TONES.get(line[:1], tone) if diff and number > 1 else tone
            self.lines += wrap(((" " * left, ""), (bare, toned)), self._width, left + 2)
