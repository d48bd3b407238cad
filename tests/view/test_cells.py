"""Cells that are remembered from one table to the next."""

from __future__ import annotations

from console.view.cells import Cells, cell, wrap


def test_only_the_cells_of_the_last_table_are_kept() -> None:
    cells = Cells()
    first = cells((("mail", "strong"),), 8)
    for minute in range(1000):
        cells.begin()
        assert cells((("mail", "strong"),), 8) is first
        assert cells(((f"{minute} min", ""),), 8, right=True, gap=1) == cell(((f"{minute} min", ""),), 8, True, 1)
    assert len(cells._now) == len(cells._last) == 2


def test_a_character_that_is_wider_than_a_line_is_told_by_an_ellipsis() -> None:
    assert wrap((("漢b", ""),), 1) == [(("…", ""),), (("b", ""),)]
    assert wrap((("漢b", ""),), 2) == [(("漢", ""),), (("b", ""),)]
