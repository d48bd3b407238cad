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
        }


DARK = Palette(
    name="worktop-dark",
    title="dark",
    dark=True,
    background="#14171c",
    surface="#20252d",
    foreground="#d8dee6",
    cursor="#2f4058",
    blurred="#242b36",
    ok="#7fc98a",
    bad="#ff7b72",
    warn="#e8b449",
    note="#79b8ff",
    dim="#8b95a3",
    key="#79b8ff",
)
LIGHT = Palette(
    name="worktop-light",
    title="light",
    dark=False,
    background="#fbfbfa",
    surface="#e9ebee",
    foreground="#1f2329",
    cursor="#cfe0f5",
    blurred="#e6ebf2",
    ok="#1a6b32",
    bad="#b3161b",
    warn="#7a4d00",
    note="#0b57a8",
    dim="#5b6470",
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
    cursor="#33404f",
    blurred="#252c35",
    ok="#56b4e9",
    bad="#ff8a3d",
    warn="#f0e442",
    note="#cc99bb",
    dim="#98a1ac",
    key="#56b4e9",
)
PALETTES = (DARK, LIGHT, SAFE)

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
    "key": Style(),
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
