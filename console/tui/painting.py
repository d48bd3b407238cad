"""What is written to the terminal: of an update only the cells that are not shown already.

Textual writes every line it has painted from the left edge of its widget, each piece with its whole style before and
a reset behind it. Over SSH that is most of what an idle console sends. Here the cells that were written last are
remembered, and only runs of others are written, with only what is different in their style.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from rich.cells import get_character_cell_size
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

_BRIDGED = 4  # cells that are shown already are written again rather than jumped over: a jump takes some 7 bytes


class Codes(NamedTuple):
    """SGR parameters: attributes, foreground, background."""

    attributes: str
    foreground: str
    background: str


Painted = tuple[str, Codes]  # one cell

_PLAIN = Codes("", "", "")


class Shown:
    """The cells the terminal shows, as far as they are known."""

    def __init__(self) -> None:
        self._lines: dict[int, list[Painted | None]] = {}
        self._size = (0, 0)

    def forget(self) -> None:
        """Nothing is known any more: somebody else has written to the terminal, or it was cleared."""
        self._lines.clear()

    def sparing(self, update: object, size: tuple[int, int]) -> object:
        """The same update, written sparingly; what is no update of the screen is passed on as it is."""
        if size != self._size:
            self.forget()
            self._size = size
        if isinstance(update, ChopsUpdate | LayoutUpdate):
            return SparingUpdate(update, self)
        if update is not None:
            self.forget()
        return update

    def line(self, y: int) -> list[Painted | None]:
        line = self._lines.get(y)
        if line is None:
            line = self._lines[y] = [None] * self._size[0]
        return line


class SparingUpdate(CompositorUpdate):
    """Writes of an update what is not shown already."""

    def __init__(self, update: ChopsUpdate | LayoutUpdate, shown: Shown) -> None:
        self._update = update
        self._shown = shown

    def render_segments(self, console: Console) -> str:
        system = console._color_system or ColorSystem.TRUECOLOR
        out: list[str] = []
        style = _PLAIN
        for x, y, strip in _pieces(self._update):
            cells = _cells(strip, system)
            if cells is None:  # wide characters, links: written whole, and nothing is known of them afterwards
                line = self._shown.line(y)
                line[x : x + strip.cell_length] = [None] * len(line[x : x + strip.cell_length])
                out.append(_reset(style) + f"\x1b[{y + 1};{x + 1}H" + strip.render(console))
                style = _PLAIN
                continue
            for start, run in self._others(x, y, cells):
                out.append(f"\x1b[{y + 1};{start + 1}H")
                for text, codes in run:
                    if codes != style:
                        out.append(_change(style, codes))
                        style = codes
                    out.append(text)
        out.append(_reset(style))
        return "".join(out)

    def _others(self, x: int, y: int, cells: list[Painted]) -> Iterator[tuple[int, list[Painted]]]:
        """The runs of cells that are not shown already, with the column each starts at; they count as shown."""
        line = self._shown.line(y)
        before = line[x : x + len(cells)]
        if before == cells:
            return
        line[x : x + len(before)] = cells[: len(before)]
        start = end = -1
        for number, (was, now) in enumerate(zip(before, cells, strict=False)):
            if was == now:
                continue
            if start >= 0 and number - end > _BRIDGED:
                yield x + start, cells[start : end + 1]
                start = -1
            if start < 0:
                start = number
            end = number
        if start >= 0:
            yield x + start, cells[start : end + 1]


def _pieces(update: ChopsUpdate | LayoutUpdate) -> Iterator[tuple[int, int, Strip]]:
    """x, y and content of what is to be painted."""
    if isinstance(update, LayoutUpdate):
        for y, strips in enumerate(update.strips, update.region.y):
            x = update.region.x
            for strip in strips:
                yield x, y, strip
                x += strip.cell_length
        return
    for y, first, last in update.spans:
        pieces: Iterable[tuple[int, tuple[int, Strip | None]]] = zip(
            update.chop_ends[y], update.chops[y].items(), strict=False
        )
        for end, (x, piece) in pieces:
            if piece is not None and x < last and end > first:
                yield x, y, piece if end <= last else piece.crop(0, last - x)


def _cells(strip: Strip, system: ColorSystem) -> list[Painted] | None:
    """One pair a column; None where characters and columns are not the same thing."""
    cells: list[Painted] = []
    for text, style, control in strip:
        if control or (style is not None and style.link) or not _one_column_each(text):
            return None
        codes = _PLAIN if style is None else _codes(style, system)
        cells += [(character, codes) for character in text]
    return cells


@lru_cache(maxsize=1024)
def _one_column_each(text: str) -> bool:
    if text.isascii():
        return text.isprintable()
    return all(get_character_cell_size(character) == 1 for character in text)


@lru_cache(maxsize=1024)
def _codes(style: Style, system: ColorSystem) -> Codes:
    foreground = Strip.render_ansi(Style.from_color(style.color), system) if style.color else ""
    background = Strip.render_ansi(Style.from_color(None, style.bgcolor), system) if style.bgcolor else ""
    return Codes(Strip.render_ansi(style.without_color, system), foreground, background)


@lru_cache(maxsize=1024)
def _change(before: Codes, now: Codes) -> str:
    """From one style to another, in the fewest parameters."""
    codes = []
    lost = (before.foreground and not now.foreground) or (before.background and not now.background)
    if before.attributes != now.attributes or lost:
        if before != _PLAIN:
            codes.append("0")
        before = _PLAIN
        codes.append(now.attributes)
    codes += [
        new for old, new in ((before.foreground, now.foreground), (before.background, now.background)) if old != new
    ]
    codes = [code for code in codes if code]
    return f"\x1b[{';'.join(codes)}m" if codes else ""


def _reset(style: Codes) -> str:
    return "" if style == _PLAIN else "\x1b[0m"
