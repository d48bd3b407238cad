"""The table of roles as plain values: golden text, and what holds at every width and for every text."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.fleet.model import Count, Fleet
from console.text import columns
from console.view.cells import Grid
from console.view.glyphs import ASCII, UNICODE
from console.view.rows import count_text, rate_text, role_grid
from tests.examples import example_fleet, role, with_paused, with_role, worker
from tests.tui.hostile import HOSTILE, harmless, hostile_fleet

NUMERIC = {"workers", "waiting", "later", "oldest", "run", "stuck", "failed", "done", "failing", "last", "memory"}


def whole(grid: Grid, width: int) -> None:
    """Every line of the grid has the same width, at most the one asked for, and nothing a terminal would obey."""
    assert grid.width <= width
    for row in grid.rows:
        assert len(row.cells) == len(grid.columns)
        for cell, column in zip(row.cells, grid.columns, strict=True):
            assert columns(cell.plain) == column.width
            assert harmless(cell.plain)


def values(grid: Grid, key: str) -> list[str]:
    number = [column.key for column in grid.columns].index(key)
    return [row.cells[number].plain.strip() for row in grid.rows]


def test_80_columns() -> None:
    assert role_grid(example_fleet(), 80, UNICODE).text() == (
        "ROLE       WORKERS STATES     OWNER   WAITING OLDEST RUN STUCK DONE/MIN   MEMORY\n"
        "mail        3/3 ≤8 ●●● ok     systemd     412   0:41   3     0      118 96M/768M\n"
        "reports     7/3 ≤4 ●◇◇◇◇◇◇    cron +1   1 204  18:22   7     2        9   610M/?\n"
        "thumbnails  1/4 ≤6 ●↻××       systemd     310   6:10   1     4        3  201M/1G\n"
        "webhooks    0/1 ≤2 ○ missing  nobody       88  41:07   0     1        0        –\n"
        "exports     1/1 ≤1 ◐ hung     systemd      12   9:55   1     1        0 44M/256M\n"
        "digest      1/2 ≤2 ●↻         systemd       0      -   1     0      2.5 32M/512M"
    )


def test_40_columns() -> None:
    assert role_grid(example_fleet(), 40, UNICODE).text() == (
        "ROLE       WORKERS STATES  WAITING STUCK\n"
        "mail           3/3 ●●● ok      412     0\n"
        "reports        7/3 ●◇◇◇◇◇◇   1 204     2\n"
        "thumbnails     1/4 ●↻××        310     4\n"
        "webhooks       0/1 ○            88     1\n"
        "exports        1/1 ◐ hung       12     1\n"
        "digest         1/2 ●↻            0     0"
    )


def test_a_paused_role_has_a_sign_before_what_waits() -> None:
    held = with_paused(example_fleet(), "mail")
    assert values(role_grid(held, 80, UNICODE), "waiting")[0] == "‖ 412"
    assert values(role_grid(held, 40, ASCII), "waiting")[0] == "= 412"
    whole(role_grid(held, 80, UNICODE), 80)


def test_words_come_with_the_room() -> None:
    states = values(role_grid(example_fleet(), 160, UNICODE), "states")
    assert states[2] == "●↻×× 1 start-limit 1 oom 1 looping"
    assert values(role_grid(example_fleet(), 160, ASCII), "states")[2] == "*~xx 1 start-limit 1 oom 1 looping"


def test_many_workers_are_counted() -> None:
    big = role("big", 40)
    workers = tuple(worker(big, number, "failed" if int(number) > 37 else "running") for number in big.instances)
    fleet = with_role(example_fleet(), "mail", role=big, workers=workers, running=37, desired=40)
    assert values(role_grid(fleet, 60, UNICODE), "states")[0] == "37● 3×"
    assert values(role_grid(fleet, 200, UNICODE), "states")[0] == "● 37 ok  × 3 failed"


def test_every_width_is_kept_and_no_number_is_cut() -> None:
    widest = role_grid(example_fleet(), 400, UNICODE)
    for width in range(1, 221):
        grid = role_grid(example_fleet(), width, UNICODE)
        whole(grid, width)
        for column in grid.columns:
            shown, full = values(grid, column.key), values(widest, column.key)
            if column.key in NUMERIC - {"workers", "memory"}:
                assert shown == full
            if column.key in ("workers", "memory"):
                assert all(a == b or b.startswith((f"{a} ", f"{a}/")) for a, b in zip(shown, full, strict=True))
            if column.key != "role":
                assert "…" not in "".join(shown)


def test_a_wider_screen_shows_no_less() -> None:
    shown = [len(role_grid(example_fleet(), width, UNICODE).columns) for width in range(20, 221)]
    assert all(narrow <= wide for narrow, wide in pairwise(shown))


def test_hostile_texts_at_every_width() -> None:
    for text in HOSTILE:
        fleet = hostile_fleet((text,))
        for width in (1, 2, 7, 20, 40, 80, 120, 200):
            whole(role_grid(fleet, width, UNICODE), width)


@given(st.text(max_size=60), st.text(max_size=60), st.integers(1, 200), st.integers(0, 10**15))
def test_any_text_and_number(name: str, owner: str, width: int, number: int) -> None:
    fleet = example_fleet()
    queue = msgspec.structs.replace(fleet.roles[0].queue, waiting=Count(number, "at-least"), oldest_waiting=number / 7)
    fleet = with_role(fleet, "mail", role=role(name, 3), owners=(owner, owner[::-1]), queue=queue, memory=number)
    grid = role_grid(fleet, width, UNICODE)
    whole(grid, width)
    if "waiting" in {column.key for column in grid.columns}:
        assert values(grid, "waiting")[0] == f"> {number:,}".replace(",", " ")


def test_no_database_leaves_out_its_columns() -> None:
    fleet = example_fleet()
    absent = msgspec.structs.replace(fleet.sources[2], state="absent", age=None)
    fleet = msgspec.structs.replace(fleet, sources=(*fleet.sources[:2], absent), queue=None)
    assert [column.key for column in role_grid(fleet, 120, UNICODE).columns] == [
        *("role", "workers", "states", "owner", "memory")
    ]


def test_values_of_a_failing_source_are_stale() -> None:
    fleet = example_fleet()
    down = msgspec.structs.replace(fleet.sources[2], state="down", age=42.0)
    fleet = msgspec.structs.replace(fleet, sources=(*fleet.sources[:2], down))
    tones = {
        column.key: {tone for text, tone in cell.parts if text.strip()}
        for column, cell in zip(
            role_grid(fleet, 80, UNICODE).columns, role_grid(fleet, 80, UNICODE).rows[0].cells, strict=True
        )
    }
    assert tones["waiting"] == tones["stuck"] == {"stale"}
    assert tones["states"] == {"ok"}


def test_roles_of_one_name_have_two_keys() -> None:
    fleet: Fleet = msgspec.structs.replace(example_fleet(), roles=example_fleet().roles[:1] * 2)
    assert len({row.key for row in role_grid(fleet, 80, UNICODE).rows}) == 2


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (Count(412), "412"),
        (Count(1204), "1 204"),
        (Count(10_000, "at-least"), "> 10 000"),
        (Count(4_600_000, "estimate"), "~ 4.6 M"),
        (Count(999, "estimate"), "~ 999"),
        (Count(2_000_000_000, "estimate"), "~ 2.0 G"),
    ],
)
def test_counts_say_how_well_they_are_known(count: Count, text: str) -> None:
    assert count_text(count) == text


@pytest.mark.parametrize(("rate", "text"), [(None, "?"), (0.0, "0"), (2.5, "2.5"), (9.0, "9"), (118.4, "118")])
def test_rates(rate: float | None, text: str) -> None:
    assert rate_text(rate) == text
