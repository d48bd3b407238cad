"""Screens as snapshots: what stands in each cell, and below it how each cell looks.

Made for syrupy, on which pytest-textual-snapshot is built. That one works with this Textual too, but its snapshots are
SVG of 25 to 90 KB a screen, in which the change of a word is hard to see, and it starts a console for each. These have
a tenth of the size and can be read in a diff. They are written anew, and those that no test asks for removed, by

    pytest tests/tui/test_snapshots.py --snapshot-update

The looks are a letter a cell, after a bar the grounds other than the screen's, with their columns:

    o ok   x bad   w warn   k key, note   d dim   s stale   b strong, head   S sorted   r reversed
    ? any other, as what lies dimmed behind a window
"""

from __future__ import annotations

from itertools import groupby

from rich.cells import cell_len
from rich.style import Style
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from console.tui.app import ConsoleApp
from console.tui.theme import Palette, palette

Look = tuple[str, bool, bool, bool, bool]  # foreground, bold, italic, underlined, reversed


class ScreenExtension(SingleFileSnapshotExtension):
    """A text file a screen."""

    _write_mode = WriteMode.TEXT
    _file_extension = "txt"


def snapshot_of(app: ConsoleApp) -> str:
    """The screen in front, as it is painted: windows over other screens with what is seen of those."""
    known = palette(app.theme)
    letters, grounds = _letters(known), _grounds(known)
    texts: list[str] = []
    looks: list[str] = []
    for strip in app.screen._compositor.render_strips():
        letter_line, ground_line = "", []
        for text, style, _ in strip:
            style = style or Style()
            width = cell_len(text)
            letter = letters.get(_look(style), "?")
            # What a blank is coloured cannot be seen.
            seen = style.reverse or style.underline
            letter_line += "".join((" " if char == " " and not seen else letter) * cell_len(char) for char in text)
            ground = style.bgcolor.name if style.bgcolor is not None else known.background
            ground_line += [grounds.get(ground, ground)] * width
        texts.append(strip.text.rstrip())
        looks.append(f"{letter_line.rstrip()}{_ranges(ground_line)}")
    return "\n".join((*texts, "─" * app.size.width, *looks, ""))


def _look(style: Style) -> Look:
    colour = style.color.name if style.color is not None else ""
    return colour, bool(style.bold), bool(style.italic), bool(style.underline), bool(style.reverse)


def _letters(known: Palette) -> dict[Look, str]:
    colours = {
        known.foreground: " ",
        known.ok: "o",
        known.bad: "x",
        known.warn: "w",
        known.note: "k",
        known.key: "k",
        known.dim: "d",
    }
    letters: dict[Look, str] = {(colour, False, False, False, False): letter for colour, letter in colours.items()}
    letters[known.bad, True, False, False, False] = "x"
    letters[known.dim, False, True, False, False] = "s"
    letters[known.foreground, True, False, False, False] = "b"
    letters[known.foreground, True, False, False, True] = "S"
    letters[known.foreground, False, False, False, True] = "r"
    return letters


def _grounds(known: Palette) -> dict[str, str]:
    return {
        known.background: "",
        known.surface: "surface",
        known.cursor: "cursor",
        known.blurred: "blurred",
        known.dim: "bar",
    }


def _ranges(grounds: list[str]) -> str:
    told: list[str] = []
    column = 0
    for ground, run in groupby(grounds):
        width = len(list(run))
        if ground:
            told.append(f"{ground} {column}-{column + width - 1}")
        column += width
    return f" │ {', '.join(told)}" if told else ""
