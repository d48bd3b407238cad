"""How tones look: three palettes, and none at all when NO_COLOR asks for that.

Without colour a tone is bold, underlined or reversed: grey on grey cannot be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import get_args

from rich.style import Style
from rich.text import Text
from textual.theme import Theme

from console.view.cells import Part, Tone

TONES: tuple[Tone, ...] = get_args(Tone)


@dataclass(frozen=True, kw_only=True)
class Palette:
    """The colours of one theme. `cursor` is a background on which every tone can still be read."""

    name: str
    title: str
    dark: bool
    background: str
    surface: str
    foreground: str
    cursor: str
    blurred: str
    ok: str
    bad: str
    warn: str
    note: str
    dim: str
    key: str

    def theme(self) -> Theme:
        """The Textual theme of this palette."""
        return Theme(
            name=self.name,
            primary=self.key,
            secondary=self.note,
            warning=self.warn,
            error=self.bad,
            success=self.ok,
            accent=self.key,
            foreground=self.foreground,
            background=self.background,
            surface=self.background,
            panel=self.surface,
            dark=self.dark,
            variables={
                "block-cursor-background": self.cursor,
                "block-cursor-foreground": self.foreground,
                "block-cursor-text-style": "none",
                "block-cursor-blurred-background": self.blurred,
                "block-cursor-blurred-foreground": self.foreground,
                "block-cursor-blurred-text-style": "none",
                "scrollbar": self.dim,
                "scrollbar-background": self.surface,
                "scrollbar-hover": self.key,
                "scrollbar-active": self.key,
            },
        )

    def styles(self) -> dict[Tone, Style]:
        """What each tone looks like."""
        return {
            "": Style(),
            "ok": Style(color=self.ok),
            "bad": Style(color=self.bad, bold=True),
            "warn": Style(color=self.warn),
            "note": Style(color=self.note),
            "dim": Style(color=self.dim),
            "stale": Style(color=self.dim, italic=True),
            "strong": Style(bold=True),
            "head": Style(bold=True),
            "key": Style(color=self.key),
            "sorted": Style(bold=True, reverse=True),
        }


DARK = Palette(
    name="worktop-dark",
    title="dark",
    dark=True,
    background="#14171c",
    surface="#20252d",
    foreground="#d8dee6",
    cursor="#26384f",
    blurred="#242b36",
    ok="#7fc98a",
    bad="#ff8a82",
    warn="#e8b449",
    note="#79b8ff",
    dim="#a3acb9",
    key="#79b8ff",
)
LIGHT = Palette(
    name="worktop-light",
    title="light",
    dark=False,
    background="#fbfbfa",
    surface="#e9ebee",
    foreground="#1f2329",
    cursor="#d3e3f6",
    blurred="#e6ebf2",
    ok="#1a6b32",
    bad="#b3161b",
    warn="#7a4d00",
    note="#0b57a8",
    dim="#545d69",
    key="#0b57a8",
)
# Okabe and Ito's colours, lightened for a dark ground: blue, vermilion and yellow stay apart in every common
# kind of colour blindness.
SAFE = Palette(
    name="worktop-safe",
    title="colour-blind safe",
    dark=True,
    background="#101318",
    surface="#1d2229",
    foreground="#e6e6e6",
    cursor="#2b3846",
    blurred="#252c35",
    ok="#56b4e9",
    bad="#ff8a3d",
    warn="#f0e442",
    note="#cc99bb",
    dim="#a9b1bc",
    key="#56b4e9",
)
PALETTES = (DARK, LIGHT, SAFE)

# For terminals of 16 colours, of which the nearest to a palette's may be the ground itself. These are given as what
# the downgrade makes the named colours of: bright green, bright red, bright yellow, bright cyan, and on light ground
# green, red, magenta, blue.
_ON_DARK = {"ok": "#55ff55", "bad": "#ff5555", "warn": "#ffff55", "note": "#55ffff", "dim": "#aaaaaa"}
_ON_LIGHT = {"ok": "#00aa00", "bad": "#aa0000", "warn": "#aa00aa", "note": "#0000aa", "dim": "#000000"}


def sixteen(dark: bool) -> dict[Tone, Style]:
    """What each tone looks like where there are 16 colours; the cursor is reversed there."""
    colours = _ON_DARK if dark else _ON_LIGHT
    return {
        "": Style(),
        "ok": Style(color=colours["ok"]),
        "bad": Style(color=colours["bad"], bold=True),
        "warn": Style(color=colours["warn"], bold=True),
        "note": Style(color=colours["note"]),
        "dim": Style(color=colours["dim"]),
        "stale": Style(color=colours["dim"], italic=True),
        "strong": Style(bold=True),
        "head": Style(bold=True),
        "key": Style(color=colours["note"], underline=True),
        "sorted": Style(bold=True, reverse=True),
    }


MONO: dict[Tone, Style] = {
    "": Style(),
    "ok": Style(),
    "bad": Style(bold=True),
    "warn": Style(bold=True),
    "note": Style(),
    "dim": Style(),
    "stale": Style(italic=True),
    "strong": Style(bold=True),
    "head": Style(bold=True),
    "key": Style(underline=True),
    "sorted": Style(bold=True, reverse=True),
}


def palette(name: str) -> Palette:
    """The palette of that theme name; the dark one for any other name."""
    return next((known for known in PALETTES if known.name == name), DARK)


def paint(parts: tuple[Part, ...], styles: dict[Tone, Style]) -> Text:
    """Safe parts as a text that is never read as markup."""
    text = Text(no_wrap=True, end="")
    for tone, run in groupby(parts, key=lambda part: part[1]):
        text.append("".join(piece for piece, _ in run), styles[tone])
    return text
