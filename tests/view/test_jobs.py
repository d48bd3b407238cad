"""Pages of jobs as a table."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.fleet.model import Claim, Count, Fleet, Holder, Job, JobQuery
from console.view.cells import Grid, columns, part_columns, plain
from console.view.glyphs import ASCII, UNICODE
from console.view.jobs import (
    COLUMNS,
    SORTS,
    STATES,
    JobRow,
    ListedState,
    asked_of,
    empty_text,
    holder_text,
    job_grid,
    lasted,
    next_sort,
    sorted_column,
    status_parts,
    summed,
    tab_at,
    tab_parts,
    total_text,
    unlisted,
)
from console.view.listing import Look
from tests.examples import NOW, claims, example_fleet
from tests.tui.hostile import HOSTILE, harmless
from tests.tui.queue_feeds import made_job
from tests.view import anything

_NARROWEST = 14  # columns that never leave are left in any terminal
LOOK = Look(glyphs=UNICODE, now=NOW)


def rows(state: ListedState, number: int = 5, claim: Claim | None = None) -> list[JobRow]:
    made = (made_job(n, JobQuery(state=state)) for n in range(1, number + 1))
    return [JobRow(job=job, role=job.queue, now=NOW, claim=claim) for job in made]


def fits(grid: Grid, width: int) -> None:
    """The table is not wider, every cell is as wide as its column, and nothing in it is obeyed by a terminal."""
    assert grid.width <= max(_NARROWEST, width)
    for row in grid.rows:
        for column, cell in zip(grid.columns, row.cells, strict=True):
            assert part_columns(cell.parts) == column.width
            assert harmless(cell.plain)


def keys(grid: Grid) -> list[str]:
    return [column.key for column in grid.columns if column.key != "mark"]


def test_stuck_jobs_say_why() -> None:
    known = claims()[0]
    row = JobRow(job=known.job, role="thumbnails", now=NOW, claim=known)
    query = JobQuery(state="stuck", sort="overdue", descending=True)
    text = job_grid([row, *rows("stuck", 1)], query, 120, LOOK).text()
    assert text == (
        "JOB    ROLE       TYPE    OVERDUE↓ HOLDER                VERDICT RECLAIMS WHY\n"
        "918233 thumbnails resize     31:02 nobody                DEAD           – unit killed by its memory limit "
        "31 min ago; p…\n"
        "1      reports    monthly     1:00 mail-worker@1 pid 812 ?              – not judged yet: Enter asks"
    )


@pytest.mark.parametrize(
    ("state", "at_80", "at_40"),
    [
        ("waiting", "id role type waits attempts priority error", "id role type waits"),
        ("running", "id role type runs lease attempts verdict holder", "id type runs verdict"),
        ("stuck", "id role overdue holder verdict why", "id role overdue verdict"),
        ("failed", "id role type finished attempts error", "id type finished error"),
        ("done", "id role type finished took attempts", "id role type finished took"),
    ],
)
def test_columns_leave_by_priority(state: ListedState, at_80: str, at_40: str) -> None:
    assert keys(job_grid(rows(state), JobQuery(state=state), 80, LOOK)) == at_80.split()
    assert keys(job_grid(rows(state), JobQuery(state=state), 40, LOOK)) == at_40.split()


def test_every_state_at_every_width() -> None:
    for state in STATES:
        widest = job_grid(rows(state), JobQuery(state=state), 300, LOOK)
        for width in range(1, 220):
            grid = job_grid(rows(state), JobQuery(state=state), width, LOOK, marked=frozenset())
            fits(grid, width)
            if width >= 40:
                for key in ("id", "waits", "runs", "overdue", "finished", "attempts"):
                    if key in keys(grid):
                        assert values(grid, key) == values(widest, key)


def values(grid: Grid, key: str) -> list[str]:
    place = [column.key for column in grid.columns].index(key)
    return [row.cells[place].plain.strip() for row in grid.rows]


def test_stale_rows_look_stale() -> None:
    grid = job_grid(rows("running"), JobQuery(state="running"), 120, Look(glyphs=UNICODE, now=NOW, queue_stale=True))
    assert {tone for row in grid.rows for cell in row.cells for text, tone in cell.parts if text.strip()} == {"stale"}


def test_the_last_line_of_a_traceback_is_shown() -> None:
    assert values(job_grid(rows("failed", 1), JobQuery(state="failed"), 100, LOOK), "error") == ["KeyError: 'BUCKET'"]


def test_hostile_texts() -> None:
    for text in HOSTILE:
        job = Job(id=text, queue=text, type=text, error=text, holder=Holder(host=text, unit=text, pid=1))
        for state in STATES:
            row = JobRow(job=job, role=text, now=NOW, claim=Claim(job=job, role=text, verdict="DEAD", evidence=(text,)))
            for width in (1, 13, 40, 80, 200):
                fits(job_grid([row], JobQuery(state=state), width, LOOK), width)


@given(
    anything.jobs, st.one_of(st.none(), anything.claims), anything.texts, st.integers(1, 200), st.sampled_from(STATES)
)
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_anything_in_any_field(job: Job, claim: Claim | None, role: str, width: int, state: ListedState) -> None:
    row = JobRow(job=job, role=role, now=NOW, claim=claim)
    fits(job_grid([row], JobQuery(state=state), width, LOOK, marked=frozenset({job.id})), width)


@given(anything.texts, anything.texts, anything.counts, st.integers(1, 200), st.sampled_from(STATES))
def test_lines_fit(role: str, kind: str, total: Count, width: int, state: ListedState) -> None:
    query = JobQuery(state=state, contains=kind, descending=True)
    for parts in (
        status_parts(query, role, kind, total_text(total, 7, True), 12, width, UNICODE),
        tab_parts(example_fleet(), None, state, width),
    ):
        assert part_columns(parts) == width
        assert harmless(plain(parts))


def test_tabs() -> None:
    fleet = example_fleet()
    assert (
        plain(tab_parts(fleet, None, "stuck", 80)).rstrip() == "waiting 2 044  running 13  [STUCK 8]  failed 19  done"
    )
    assert (
        plain(tab_parts(fleet, "mail", "waiting", 80)).rstrip() == "[WAITING 415]  running 3  stuck 0  failed 2  done"
    )
    assert plain(tab_parts(fleet, None, "stuck", 45)).rstrip() == "waiting  running  [STUCK 8]  failed  done"
    assert plain(tab_parts(fleet, None, "stuck", 12)).rstrip() == "[STUCK 8]"
    assert plain(tab_parts(None, None, "done", 80)).rstrip() == "waiting  running  stuck  failed  [DONE]"


def test_a_tab_is_found_by_its_column() -> None:
    parts = tab_parts(example_fleet(), None, "stuck", 80)
    text = plain(parts)
    for state in STATES:
        word = state.upper() if state == "stuck" else state
        assert tab_at(parts, text.index(word)) == state
    assert tab_at(parts, 80) is None


@pytest.mark.parametrize(
    ("total", "text"),
    [
        (Count(412), "412"),
        (Count(10_000, "at-least"), "> 10 000"),
        (Count(4_600_000, "estimate"), "~ 4.6 M"),
        (None, "100+"),
    ],
)
def test_totals_say_how_well_they_are_known(total: Count | None, text: str) -> None:
    assert total_text(total, 100, True) == text
    assert total_text(None, 100, False) == "100"
    assert total_text(Count(3), 3, False, extra=2) == "5"


def test_a_sum_is_as_well_known_as_its_least_known_part() -> None:
    assert summed([Count(1), Count(2)]) == Count(3)
    assert summed([Count(1), Count(10_000, "at-least")]) == Count(10_001, "at-least")
    assert summed([Count(5, "estimate"), Count(10_000, "at-least")]) == Count(10_005, "estimate")


def test_every_sort_of_a_state_has_its_column() -> None:
    for state in STATES:
        assert {column.key for column in COLUMNS[state] if column.fill}
        for sort, _ in SORTS[state]:
            assert sorted_column(JobQuery(state=state, sort=sort)), (state, sort)
        seen = [SORTS[state][0]]
        while (following := next_sort(state, seen[-1][0])) != seen[0]:
            seen.append(following)
        assert tuple(seen) == SORTS[state]


def test_what_is_asked_for_a_role() -> None:
    fleet = example_fleet()
    assert asked_of(fleet, None) == ((), ())
    assert asked_of(fleet, "mail") == (("mail",), ())
    assert asked_of(fleet, "nobody") is None
    assert asked_of(None, "mail") is None


def dead_within_its_lease() -> Fleet:
    job = Job(id="77", queue="mail", type="welcome", state="running", overdue=-30.0)
    dead = Claim(job=job, role="mail", verdict="DEAD", evidence=("pid 812 no longer exists",), stuck=True)
    return msgspec.structs.replace(example_fleet(), claims=(*claims(), dead))


def test_a_dead_holder_within_its_lease_is_stuck_too() -> None:
    fleet = dead_within_its_lease()
    stuck = JobQuery(state="stuck")
    assert [row.job.id for row in unlisted(fleet, stuck, None, [], NOW)] == ["77"]
    assert unlisted(fleet, stuck, "reports", [], NOW) == []
    assert unlisted(fleet, JobQuery(state="running"), None, [], NOW) == []
    assert unlisted(fleet, msgspec.structs.replace(stuck, contains="resize"), None, [], NOW) == []
    assert len(unlisted(fleet, msgspec.structs.replace(stuck, contains="WELC"), None, [], NOW)) == 1
    listed = unlisted(fleet, stuck, None, [], NOW)
    assert unlisted(fleet, stuck, None, listed, NOW) == []
    assert values(job_grid(listed, stuck, 100, LOOK), "overdue") == ["in 0:30"]


def test_holders() -> None:
    assert holder_text(None) == "nobody"
    assert holder_text(Holder(host="wrk02", pid=2211)) == "wrk02 pid 2211"
    assert holder_text(Holder(host="wrk01", unit="mail-worker@3.service", pid=812)) == "mail-worker@3 pid 812"
    assert holder_text(Holder(text="worker-7")) == "worker-7"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "?"),
        (float("nan"), "?"),
        (float("inf"), "ever"),
        (41.0, "0:41"),
        (-41.0, "0:41"),
        (1e300, "11574074d 1h"),
    ],
)
def test_durations_of_a_database(seconds: float | None, text: str) -> None:
    assert lasted(seconds) == text


def test_an_empty_list_says_why_and_the_next_key() -> None:
    for state in get_args(ListedState):
        assert "Tab shows the next state" in empty_text(state, "", None, "", False)
        assert "Esc" in empty_text(state, "x", None, "", False)
        assert "Esc shows all types" in empty_text(state, "", "mail", "welcome", False)
    assert empty_text("stuck", "", "mail", "", False) == (
        "no job of mail is stuck: every lease is valid; Tab shows the next state, Esc all roles"
    )
    assert "] shows the next role" in empty_text("waiting", "", "mail", "", True)


def test_ascii() -> None:
    grid = job_grid(rows("done"), JobQuery(state="done", sort="finished", descending=True), 80, Look(glyphs=ASCII))
    assert grid.text().isascii()
    assert columns(grid.columns[0].label) == grid.columns[0].width
