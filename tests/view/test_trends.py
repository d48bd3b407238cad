"""The last minutes of a queue as data to plot."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.errors import Problem
from console.fleet.model import Fleet, SourceStatus, Trend, TrendPoint
from console.view.cells import part_columns, plain
from console.view.glyphs import UNICODE
from console.view.listing import Look
from console.view.trends import MEASURES, Measure, plot_data, queue_grid, title_parts, why_nothing
from tests.examples import NOW, example_fleet, with_paused
from tests.tui.hostile import HOSTILE, harmless, hostile_fleet
from tests.tui.queue_feeds import made_trend
from tests.view import anything

LOOK = Look(glyphs=UNICODE, now=NOW)


def of(*values: int | None) -> Trend:
    return Trend(queue="mail", points=tuple(TrendPoint(at=NOW + 60 * n, done=v) for n, v in enumerate(values)))


def test_what_is_not_known_is_a_gap_and_never_a_zero() -> None:
    data = plot_data(of(5, 7, None, None, 0, 3), "done")
    assert [(run.x, run.y) for run in data.runs] == [((-5.0, -4.0), (5.0, 7.0)), ((-1.0, 0.0), (0.0, 3.0))]
    assert data.title == "done per minute  3"
    assert plot_data(of(5, None), "done").title == "done per minute  5"  # the present minute is not over
    assert plot_data(of(5, None, None), "done").title == "done per minute  ?"


def test_a_minute_that_is_missing_is_a_gap_too() -> None:
    points = tuple(TrendPoint(at=NOW + 60 * minute, done=1) for minute in (0, 1, 4, 5))
    assert [run.x for run in plot_data(Trend(queue="", points=points), "done").runs] == [(-5.0, -4.0), (-1.0, 0.0)]


def test_nothing_known() -> None:
    for trend in (None, Trend(queue="x"), of(None, None)):
        for measure in MEASURES:
            data = plot_data(trend, measure)
            assert data.runs == ()
            assert data.title.endswith("  ?")
            assert data.top > 0 and data.first < 0


def test_with_nothing_waiting_the_oldest_is_known_to_be_none() -> None:
    trend = Trend(queue="", points=(TrendPoint(at=NOW, waiting=0), TrendPoint(at=NOW + 60, waiting=3, oldest=75.0)))
    data = plot_data(trend, "oldest")
    assert data.runs[0].y == (0.0, 75.0)
    assert data.title == "oldest waiting  1:15"
    assert [label for _, label in data.y_ticks] == ["0:00", "0:30", "1:00", "1:30"]


def test_older_minutes_are_left_out() -> None:
    data = plot_data(made_trend("mail", 200, range(0)), "waiting", 60)
    assert data.first == -60
    assert sum(len(run.x) for run in data.runs) == 61
    assert [label for _, label in data.x_ticks] == ["-60 min", "now"]


@pytest.mark.parametrize(
    ("highest", "labels"),
    [
        (0, ["0", "1"]),
        (3, ["0", "1", "2", "3"]),
        (412, ["0", "200", "400", "600"]),
        (1204, ["0", "500", "1 000", "1 500"]),
        (4_600_000, ["0", "2M", "4M", "6M"]),
    ],
)
def test_axes_have_round_numbers(highest: int, labels: list[str]) -> None:
    assert [label for _, label in plot_data(of(highest), "done").y_ticks] == labels


_points = st.builds(
    TrendPoint,
    at=st.one_of(st.floats(0, 2e9), st.floats()),
    waiting=st.one_of(st.none(), st.integers(-5, 10**18)),
    oldest=anything.numbers,
    done=st.one_of(st.none(), st.integers(-5, 10**18)),
    failed=st.one_of(st.none(), st.integers(0, 10**6)),
)


@given(st.lists(_points, max_size=20), st.sampled_from(MEASURES))
def test_any_points_can_be_drawn(points: list[TrendPoint], measure: Measure) -> None:
    data = plot_data(Trend(queue="q", points=tuple(points)), measure)
    for run in data.runs:
        assert all(data.first <= x <= 0 for x in run.x)
        assert all(0 <= y <= data.top for y in run.y)
        assert list(run.x) == sorted(run.x)
    assert 2 <= len(data.y_ticks) <= 6
    assert math.isfinite(data.top)
    assert harmless(data.title)


def test_the_numbers_of_now() -> None:
    text = queue_grid(example_fleet(), 80, LOOK).text().splitlines()
    assert text[0] == "ROLE                     WAITING LATER OLDEST RUN STUCK FAILED DONE/MIN FAIL/MIN"
    assert text[2] == "reports                    1 204     3  18:22   7     2      0        9        0"
    assert [column.key for column in queue_grid(example_fleet(), 40, LOOK).columns] == [
        *("role", "waiting", "oldest", "stuck", "done")
    ]
    for width in range(20, 200):
        assert queue_grid(example_fleet(), width, LOOK).width <= width


def test_a_paused_role_says_so() -> None:
    held = with_paused(example_fleet(), "mail")
    for width in (40, 80):
        assert "‖ paused 412" in queue_grid(held, width, LOOK).text().splitlines()[1]


def test_a_role_that_was_not_counted_has_no_zeros() -> None:
    fleet = example_fleet()
    fleet = msgspec.structs.replace(fleet, roles=(msgspec.structs.replace(fleet.roles[0], queue=None),))
    assert queue_grid(fleet, 80, LOOK).text().splitlines()[1].split() == ["mail", *["?"] * 8]


def test_hostile_texts() -> None:
    for text in HOSTILE:
        fleet = hostile_fleet((text,))
        for width in (1, 20, 80):
            assert harmless(queue_grid(fleet, width, LOOK).text().replace("\n", ""))
            title = title_parts(fleet.roles[0], 4.0, None, width)
            assert harmless(plain(title)) and part_columns(title) == width


def with_queue(state: str, problem: Problem | None = None) -> Fleet:
    source = SourceStatus(name="queue", state=state, problem=problem)  # type: ignore[arg-type]
    return Fleet(now=NOW, sources=(source,))


def test_why_there_is_nothing() -> None:
    assert why_nothing(example_fleet()) == ""
    assert why_nothing(None).startswith("asking the queue")
    assert "no database" in why_nothing(with_queue("absent"))
    assert "connection refused; ctrl+r" in why_nothing(with_queue("down", Problem("read", "connection refused")))
    assert "asking the queue" in why_nothing(with_queue("waiting"))
    assert "no role names a queue" in why_nothing(with_queue("live"))
    assert "read 5 min ago" in plain(
        title_parts(msgspec.structs.replace(example_fleet().roles[0], trend=made_trend("mail")), 300.0, None, 80)
    )
