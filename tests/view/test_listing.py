"""Lists: layout, order, filter and marks, purely."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from console.view.cells import part_columns, safe
from console.view.glyphs import ASCII, UNICODE
from console.view.listing import (
    ListColumn,
    Look,
    Order,
    filtered,
    list_grid,
    matches,
    next_order,
    ordered,
    words_of,
)

LOOK = Look(glyphs=UNICODE, now=0.0)


class Thing(msgspec.Struct, frozen=True):
    name: str
    size: int | None = None
    why: str = ""


COLUMNS = (
    ListColumn[Thing](key="name", label="NAME", parts=lambda t, _: ((safe(t.name), ""),), sort=lambda t: t.name),
    ListColumn[Thing](
        key="size",
        label="SIZE",
        parts=lambda t, _: ((str(t.size), ""),),
        sort=lambda t: t.size,
        descends=True,
        right=True,
        leave=2,
    ),
    ListColumn[Thing](key="why", label="WHY", parts=lambda t, _: ((safe(t.why), ""),), leave=1, least=6, fill=True),
)
THINGS = (Thing("b", 2, "because"), Thing("a", None), Thing("c", 10, "Die ÄPFEL"))


def test_columns_leave_by_priority_and_the_rest_is_filled() -> None:
    keys = [thing.name for thing in THINGS]
    for width, shown in ((40, ["mark", "name", "size", "why"]), (14, ["mark", "name", "why"]), (8, ["mark", "name"])):
        grid = list_grid(THINGS, keys, COLUMNS, width, LOOK, marked=frozenset())
        assert [column.key for column in grid.columns] == shown
        assert grid.width <= width
    wide = list_grid(THINGS, keys, COLUMNS, 40, LOOK)
    assert wide.width == 40
    assert wide.text().splitlines()[0] == "NAME   SIZE WHY"


def test_the_order_is_shown_in_the_head() -> None:
    grid = list_grid(THINGS, ["b", "a", "c"], COLUMNS, 40, LOOK, Order("size", True))
    assert [column.sorted for column in grid.columns] == [False, True, False]
    assert "SIZE↓" in grid.text()
    plain = list_grid(THINGS, ["b", "a", "c"], COLUMNS, 40, Look(glyphs=ASCII), Order("name"))
    assert "NAME^" in plain.text()


def test_what_is_not_known_comes_last_in_both_directions() -> None:
    assert [t.name for t in ordered(THINGS, COLUMNS, Order("size"))] == ["b", "c", "a"]
    assert [t.name for t in ordered(THINGS, COLUMNS, Order("size", True))] == ["c", "b", "a"]
    assert ordered(THINGS, COLUMNS, Order()) == THINGS


def test_sorting_goes_round_the_columns_that_are_shown() -> None:
    order = next_order(COLUMNS, {"name", "size", "why"}, Order())
    assert order == Order("name")
    order = next_order(COLUMNS, {"name", "size", "why"}, order)
    assert order == Order("size", True)
    assert next_order(COLUMNS, {"name", "size", "why"}, order) == Order()
    assert next_order(COLUMNS, {"name"}, Order("name")) == Order()


def test_a_filter_is_words_that_all_match_literally_without_regard_to_case() -> None:
    assert matches(words_of("äpfel c"), "c 10 die Äpfel")
    assert not matches(words_of("c.*"), "c 10")
    assert matches(words_of("  "), "anything")
    kept, of = filtered(THINGS, words_of("äpfel"), COLUMNS, LOOK)
    assert ([thing.name for thing in kept], of) == (["c"], 3)


def test_columns_do_not_shrink_while_the_width_stays() -> None:
    widths: dict[str, int] = {}
    list_grid((Thing("long name"),), ["x"], COLUMNS, 60, LOOK, before=widths)
    grid = list_grid((Thing("s"),), ["x"], COLUMNS, 60, LOOK, before=widths)
    assert grid.columns[0].width == len("long name") + 1


def test_marks_stand_before_their_rows() -> None:
    grid = list_grid(THINGS, ["b", "a", "c"], COLUMNS, 40, LOOK, marked={"a"})
    assert [row.cells[0].plain for row in grid.rows] == ["  ", "▪ ", "  "]


@given(
    st.lists(st.tuples(st.text(max_size=30), st.none() | st.integers(), st.text(max_size=60)), max_size=8),
    st.integers(0, 80),
    st.sampled_from([Order(), Order("size", True), Order("name")]),
)
def test_any_text_keeps_its_columns(values: list[tuple[str, int | None, str]], width: int, order: Order) -> None:
    things = ordered([Thing(*value) for value in values], COLUMNS, order)
    keys = [str(number) for number in range(len(things))]
    grid = list_grid(things, keys, COLUMNS, width, LOOK, order, {"0"}, {})
    assert grid.width <= max(0, width)
    for row in grid.rows:
        assert [part_columns(cell.parts) for cell in row.cells] == [column.width for column in grid.columns]
