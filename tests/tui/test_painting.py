"""What is written sparingly leaves the same screen as what Textual would have written."""

from __future__ import annotations

import pyte
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from console.tui.painting import Shown, SparingUpdate

WIDTH, HEIGHT = 12, 3
CONSOLE = Console(color_system="truecolor", force_terminal=True, width=WIDTH)
STYLES = (
    Style(),
    Style(color="#d8dee6", bgcolor="#14171c"),
    Style(color="#ff8a82", bgcolor="#14171c"),
    Style(color="#ff8a82", bgcolor="#14171c", bold=True),
    Style(color="#ff8a82"),
    Style(bgcolor="#26384f", reverse=True),
)
texts = st.text(st.sampled_from("ab 12●─漢"), max_size=WIDTH)
lines = st.lists(st.tuples(texts, st.sampled_from(STYLES)), max_size=4)


def strip(parts: list[tuple[str, Style]], width: int = WIDTH) -> Strip:
    return Strip([Segment(text, style) for text, style in parts]).adjust_cell_length(width, STYLES[1])


def whole(content: list[list[tuple[str, Style]]]) -> LayoutUpdate:
    return LayoutUpdate([[strip(parts)] for parts in content], Region(0, 0, WIDTH, HEIGHT))


def part(y: int, parts: list[tuple[str, Style]], cut: int, first: int, last: int) -> ChopsUpdate:
    """Line `y` in two pieces that meet at `cut`, of which columns `first` to `last` are to be painted."""
    left, right = strip(parts).divide([cut, WIDTH])
    chops: list[dict[int, Strip | None]] = [{0: None, cut: None} for _ in range(HEIGHT)]
    chops[y] = {0: left, cut: right}
    return ChopsUpdate(chops, [(y, first, last)], [[cut, WIDTH] for _ in range(HEIGHT)])


partial = st.tuples(
    st.integers(0, HEIGHT - 1), lines, st.integers(1, WIDTH - 1), st.integers(0, WIDTH - 1), st.integers(1, WIDTH)
).map(lambda given: part(given[0], given[1], given[2], min(given[3:]), max(given[3] + 1, given[4])))
updates = st.lists(st.one_of(partial, st.lists(lines, min_size=HEIGHT, max_size=HEIGHT).map(whole)), max_size=8)


def seen(screen: pyte.Screen) -> list[list[object]]:
    return [[screen.buffer[y][x] for x in range(WIDTH)] for y in range(HEIGHT)]


def feed(screen: pyte.Screen, text: str) -> None:
    pyte.Stream(screen).feed(text)


@settings(max_examples=150, deadline=None)
@given(updates)
def test_the_screen_is_the_same(sequence: list[ChopsUpdate | LayoutUpdate]) -> None:
    shown = Shown()
    usual, sparing = pyte.Screen(WIDTH, HEIGHT), pyte.Screen(WIDTH, HEIGHT)
    for update in sequence:
        feed(usual, update.render_segments(CONSOLE))
        made = shown.sparing(update, (WIDTH, HEIGHT))
        assert isinstance(made, SparingUpdate)
        feed(sparing, made.render_segments(CONSOLE))
        assert seen(usual) == seen(sparing)


def written(shown: Shown, update: ChopsUpdate | LayoutUpdate) -> str:
    made = shown.sparing(update, (WIDTH, HEIGHT))
    assert isinstance(made, SparingUpdate)
    return made.render_segments(CONSOLE)


def test_only_what_is_different_is_written() -> None:
    shown = Shown()
    text, later = [("at 12:00:01", STYLES[1])], [("at 12:00:02", STYLES[1])]
    assert "at 12:00:01" in written(shown, whole([text, text, text]))
    assert written(shown, whole([text, text, text])) == ""
    assert written(shown, whole([later, text, text])) == "\x1b[1;11H\x1b[38;2;216;222;230;48;2;20;23;28m2\x1b[0m"
    shown.forget()
    assert "at 12:00:02" in written(shown, whole([later, text, text]))
    assert shown.sparing(None, (WIDTH, HEIGHT)) is None
