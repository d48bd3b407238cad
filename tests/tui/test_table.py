"""The table changes by difference, and the cursor stays on its row."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from rich.style import Style
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.pilot import Pilot

from console.tui.theme import DARK, LIGHT
from console.tui.widgets.table import Table
from console.view.cells import Cell, Column, Grid, Row, Tone

STYLES = DARK.styles()


def grid(names: str, values: dict[str, int] | None = None) -> Grid:
    """A row per letter, with a number beside it."""
    numbers = values or {}
    return Grid(
        (Column("name", "NAME ", 5), Column("value", "VAL", 3)),
        tuple(Row(n, (Cell(((n.ljust(5), ""),)), Cell(((f"{numbers.get(n, 0):>3}", ""),)))) for n in names),
    )


class TableApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Table(id="t")


@asynccontextmanager
async def table(height: int = 10) -> AsyncIterator[tuple[Table, Pilot[None]]]:
    async with TableApp().run_test(size=(40, height), notifications=True) as pilot:
        made = pilot.app.query_one(Table)
        made.focus()
        yield made, pilot


async def show(made: Table, pilot: Pilot[None], new: Grid, styles: dict[Tone, Style] = STYLES) -> bool:
    changed = made.show(new, styles)
    await pilot.pause()
    await pilot.pause()
    return changed


def lines(made: Table) -> list[str]:
    return ["".join(s.text for s in made.render_line(y)).split()[0] for y in range(1, made.row_count + 1)]


async def test_nothing_changed_paints_nothing() -> None:
    async with table() as (made, pilot):
        assert await show(made, pilot, grid("abc"))
        assert not await show(made, pilot, grid("abc"))
        assert made.repainted == []


async def test_only_changed_rows_are_repainted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with table() as (made, pilot):
        await show(made, pilot, grid("abcdef"))
        painted: list[object] = []
        whole: list[object] = []
        original = Table.refresh

        def refresh(self: Table, *regions: object, **options: bool) -> Table:
            if not self._applying:
                (painted if regions else whole).append(regions)
            return original(self, *regions, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(Table, "refresh", refresh)
        await show(made, pilot, grid("abcdef", {"b": 7, "e": 8}))
        assert made.repainted == ["b", "e"]
        assert painted == [(Region(5, 2, 3, 1), Region(5, 5, 3, 1))]
        assert whole == []
        assert "".join(s.text for s in made.render_line(5)).split() == ["e", "8"]


async def test_rows_out_of_sight_are_changed_but_not_painted() -> None:
    async with table(5) as (made, pilot):
        await show(made, pilot, grid("abcdefghij"))
        await show(made, pilot, grid("abcdefghij", {"a": 1, "j": 2}))
        assert made.repainted == ["a"]
        await pilot.press("end")
        assert "".join(s.text for s in made.render_line(4)).split() == ["j", "2"]


@pytest.mark.parametrize(
    ("names", "cursor"),
    [
        ("xyzabcdef", "d"),  # rows came before it
        ("bcdef", "d"),  # rows went before it
        ("fedcba", "d"),  # order changed
        ("zd", "d"),
        ("abcef", "e"),  # it went: the next one
        ("abc", "c"),  # it and all after it went: the one before
        ("xyz", "x"),  # all went
    ],
)
async def test_the_cursor_follows_its_row(names: str, cursor: str) -> None:
    async with table() as (made, pilot):
        await show(made, pilot, grid("abcdef"))
        await pilot.press("down", "down", "down")
        assert made.cursor_key == "d"
        await show(made, pilot, grid(names))
        assert made.cursor_key == cursor
        assert lines(made) == list(names)


async def test_the_cursor_survives_other_columns_and_styles() -> None:
    async with table() as (made, pilot):
        await show(made, pilot, grid("abcdef"))
        await pilot.press("j", "j")
        wider = Grid((Column("name", "NAME  ", 6),), tuple(Row(n, (Cell(((n.ljust(6), ""),)),)) for n in "fcba"))
        await show(made, pilot, wider)
        assert made.cursor_key == "c"
        await show(made, pilot, wider, LIGHT.styles())
        assert made.cursor_key == "c"


async def test_the_cursor_keeps_its_line_on_the_screen() -> None:
    async with table(6) as (made, pilot):
        await show(made, pilot, grid("abcdefghijklmnop"))
        await pilot.press(*["down"] * 9)
        assert made.cursor_key == "j"
        line = made.cursor_row - int(made.scroll_y)
        await show(made, pilot, grid("xyzabcdefghijklmnop"))
        assert (made.cursor_key, made.cursor_row - int(made.scroll_y)) == ("j", line)


async def test_empty_and_full_again() -> None:
    async with table() as (made, pilot):
        await show(made, pilot, grid("abc"))
        await show(made, pilot, Grid())
        assert made.cursor_key is None
        await pilot.press("up", "down", "enter")
        await show(made, pilot, grid("ab"))
        assert made.cursor_key == "a"
