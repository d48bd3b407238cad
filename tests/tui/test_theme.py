"""Themes: what is written can be read."""

from __future__ import annotations

import pytest
from rich.color import Color, ColorSystem

from console.tui.theme import MONO, PALETTES, TONES, Palette, sixteen


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.1 defines it."""

    def linear(part: int) -> float:
        share = part / 255
        return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)

    red, green, blue = Color.parse(colour).get_truecolor()
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: palette.title)
def test_every_tone_can_be_read_on_every_ground(palette: Palette) -> None:
    inks = {style.color.name for style in palette.styles().values() if style.color is not None}
    for ink in sorted({palette.foreground, *inks}):
        for ground in ("background", "surface", "cursor", "blurred"):
            ratio = contrast(ink, getattr(palette, ground))
            assert ratio >= 4.5, f"{palette.name}: {ink} on {ground} is {ratio:.2f}"


def test_there_are_a_dark_a_light_and_a_safe_one() -> None:
    assert [(palette.title, palette.dark) for palette in PALETTES] == [
        ("dark", True),
        ("light", False),
        ("colour-blind safe", True),
    ]


def test_every_palette_knows_every_tone() -> None:
    for styles in (MONO, sixteen(True), sixteen(False), *(palette.styles() for palette in PALETTES)):
        assert set(styles) == set(TONES)


def test_without_colour_what_matters_stands_out() -> None:
    for tone in ("bad", "warn", "head", "sorted", "key"):
        style = MONO[tone]
        assert style.bold or style.reverse or style.underline
    assert all(style.color is None and style.bgcolor is None for style in MONO.values())


def test_with_sixteen_colours_tones_stay_apart() -> None:
    for dark in (True, False):
        styles = sixteen(dark)
        codes = {}
        for tone in ("ok", "bad", "warn", "note"):
            colour = styles[tone].color
            assert colour is not None
            codes[tone] = colour.downgrade(ColorSystem.STANDARD).number
        assert len(set(codes.values())) == 4
        assert codes == (
            {"ok": 10, "bad": 9, "warn": 11, "note": 14} if dark else {"ok": 2, "bad": 1, "warn": 5, "note": 4}
        )
