"""Jobs: one long list by state, role and type."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from textual import events

from console.fleet.model import Claim, Fleet, Job
from console.tui import paging
from console.tui.screens.job import JobScreen
from console.tui.screens.jobs import JobsScreen
from tests.examples import example_fleet
from tests.tui.hostile import HOSTILE, harmless, hostile_fleet
from tests.tui.pilots import Driven
from tests.tui.queue_feeds import REFUSED, TableFeed, console_on


def jobs_of(driven: Driven) -> JobsScreen:
    screen = next(screen for screen in driven.app.screen_stack if isinstance(screen, JobsScreen))
    assert screen.loader is not None
    return screen


async def settled(driven: Driven) -> None:
    """Nothing is asked any more, and all is shown."""
    loader = jobs_of(driven).loader
    assert loader is not None
    for _ in range(500):
        await driven.pilot.pause(0.01)
        if not loader.busy and not loader.waiting:
            break
    await driven.pilot.pause()


def cursor(driven: Driven) -> str | None:
    return jobs_of(driven).table.cursor_key


def claimed(fleet: Fleet, *claims: Claim) -> Fleet:
    return msgspec.structs.replace(fleet, claims=claims)


async def test_40_by_15() -> None:
    async with console_on(TableFeed(example_fleet(), 412), (40, 15), "3") as driven:
        await settled(driven)
        lines = driven.lines()
        assert lines[2] == "[WAITING 2 044]"
        assert lines[3] == "1 of 412  role all  by id ↑"
        assert lines[4].split() == ["JOB↑", "ROLE", "TYPE", "WAITS"]
        assert lines[5].split()[:4] == ["1", "reports", "monthly", "1:00:01"]


async def test_loading() -> None:
    held = TableFeed(example_fleet(), 5)
    held.hold = asyncio.Event()
    async with console_on(held, (80, 24), "3") as driven:
        assert "asking…" in driven.text()
        held.hold.set()
        await settled(driven)
        assert "1 of 5" in driven.text()


async def test_an_error_says_how_old_the_rows_are() -> None:
    feed = TableFeed(example_fleet(), 5)
    async with console_on(feed, (80, 24), "3") as driven:
        await settled(driven)
        feed.error = REFUSED
        await driven.press("ctrl+r")
        await settled(driven)
        assert "[WAITING 2 044]  × queue 0." in driven.text()
        assert "s old: connection refused" in driven.text()
        assert "1 of 5" in driven.text()
        feed.error = None
        await driven.press("ctrl+r")
        await settled(driven)
        assert "connection refused" not in driven.text()


async def test_a_hundred_thousand_rows_are_one_long_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "KEPT_AT_MOST", 300)
    feed = TableFeed(example_fleet(), 100_000)
    async with console_on(feed, (80, 24), "3") as driven:
        await settled(driven)
        assert [query.after for query in feed.queries] == [None]
        screen = jobs_of(driven)
        for _ in range(5):
            await driven.press("G")
            await settled(driven)
            assert screen.table.row_count <= 300
        asked = [int(query.after or 0) for query in feed.queries]
        assert asked == [0, 100, 200, 300, 400, 500]  # each page once, and none beyond what was looked at
        assert screen.loader is not None and screen.loader.window.before == 300
        assert cursor(driven) == "500"
        assert "500 of 100 000" in driven.text()
        for _ in range(5):
            await driven.press("g")
            await settled(driven)
            assert screen.table.row_count <= 300
        assert cursor(driven) == "1"
        assert "1 of 100 000" in driven.text()


async def test_the_wheel_reads_on_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "KEPT_AT_MOST", 300)
    feed = TableFeed(example_fleet(), 1000)
    async with console_on(feed, (80, 24), "3") as driven:
        await settled(driven)
        table = jobs_of(driven).table

        async def turn(kind: type[events.MouseScrollDown] | type[events.MouseScrollUp], until: str) -> None:
            for _ in range(60):
                if any(line.split()[:1] == [until] for line in driven.lines()):
                    return
                for _ in range(5):  # fifteen rows, fewer than can be seen
                    driven.app.screen._forward_event(kind(table, 5, 5, 0, 0, 0, False, False, False, 5, 5))
                await settled(driven)
            raise AssertionError(f"job {until} never came in sight")

        await turn(events.MouseScrollDown, "320")
        asked = [int(query.after or 0) for query in feed.queries]
        assert asked == sorted(asked) and asked[-1] >= 300
        assert table.row_count <= 300
        await turn(events.MouseScrollUp, "1")
        assert table.row_count <= 300
        assert cursor(driven) is not None


async def test_the_selection_follows_its_job_while_rows_come_and_go() -> None:
    gone: set[str] = set()

    def change(job: Job) -> Job | None:
        return None if job.id in gone else job

    feed = TableFeed(example_fleet(), 50, change)
    async with console_on(feed, (80, 24), "3") as driven:
        await settled(driven)
        await driven.press(*["down"] * 9, "space")
        assert cursor(driven) == "11"
        gone.update(("2", "5", "7"))
        await driven.press("ctrl+r")
        await settled(driven)
        assert cursor(driven) == "11"
        assert jobs_of(driven).marked == {"10"}
        gone.update(("10", "11"))
        await driven.press("ctrl+r")
        await settled(driven)
        assert cursor(driven) == "12"
        assert jobs_of(driven).marked == set()
        assert "1 gone" in driven.text()


async def test_a_mark_outlives_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "KEPT_AT_MOST", 300)
    feed = TableFeed(example_fleet(), 5000)
    async with console_on(feed, (80, 24), "3") as driven:
        await settled(driven)
        await driven.press("space")
        for _ in range(4):
            await driven.press("G")
            await settled(driven)
        assert jobs_of(driven).marked == {"1"}
        assert "1 marked (1 not shown)" in driven.text()


async def test_the_filter_is_the_queues_and_waits_for_the_fingers() -> None:
    feed = TableFeed(example_fleet(), 300)
    async with console_on(feed, (80, 24), "3") as driven:
        await settled(driven)
        await driven.press("slash", "r", "e", "s")
        await settled(driven)
        assert [query.contains for query in feed.queries] == ["", "res"]
        assert {row.split()[1] for row in driven.lines()[7:12]} == {"thumbnails"}
        await driven.press("enter", "escape")
        await settled(driven)
        assert feed.queries[-1].contains == ""
        await driven.press("slash", "q", "q")
        await settled(driven)
        assert "no waiting job has “qq” in its id, type or error; Esc ends the filter" in driven.text()


async def test_a_question_that_is_superseded_is_cancelled() -> None:
    feed = TableFeed(example_fleet(), 30)
    async with console_on(feed, (80, 24), "3") as driven:
        await settled(driven)
        feed.hold = asyncio.Event()
        await driven.press("tab")
        await driven.pilot.pause(0.02)
        await driven.press("tab")
        await driven.pilot.pause(0.02)
        assert feed.cancelled == 1
        feed.hold.set()
        feed.hold = None
        await settled(driven)
        assert feed.queries[-1].state == "stuck"
        assert "[STUCK 8]" in driven.text()


async def test_roles_types_and_sorting_are_asked_of_the_queue() -> None:
    feed = TableFeed(example_fleet(), 30)
    async with console_on(feed, (80, 24), "3") as driven:
        await settled(driven)
        await driven.press("right_square_bracket")
        await settled(driven)
        assert feed.queries[-1].queues == ("mail",)
        assert "role mail" in driven.text()
        await driven.press("equals_sign")
        await settled(driven)
        assert feed.queries[-1].types == ("monthly",)
        await driven.press("s")
        await settled(driven)
        assert (feed.queries[-1].sort, feed.queries[-1].descending) == ("age", False)
        await driven.press("i")
        await settled(driven)
        assert feed.queries[-1].descending
        assert "type monthly" in driven.text() and "by age ↓" in driven.text()
        await driven.press("escape")
        await settled(driven)
        assert feed.queries[-1].types == ()
        await driven.press("escape")
        await settled(driven)
        assert feed.queries[-1].queues == ()
        await driven.press("left_square_bracket")
        await settled(driven)
        assert feed.queries[-1].queues == ("digest",)


async def test_a_paused_list_does_not_ask() -> None:
    feed = TableFeed(example_fleet(), 30)
    async with console_on(feed, (80, 24), "3") as driven:
        await settled(driven)
        await driven.press("p")
        asked = len(feed.queries)
        await driven.say(example_fleet())
        assert "PAUSED" in driven.text()
        assert len(feed.queries) == asked


async def test_one_job_and_the_ones_beside_it() -> None:
    feed = TableFeed(example_fleet(), 30)
    async with console_on(feed, (80, 24), "3") as driven:
        await settled(driven)
        await driven.press("down", "enter")
        await driven.pilot.pause(0.05)
        assert isinstance(driven.app.screen, JobScreen)
        assert "job 2  waiting  resize  2 of 30" in driven.text()
        assert "created    2025-11-29 14:42:07 UTC, 2:00:00 ago" in driven.text()
        await driven.press("right", "n")
        await driven.pilot.pause(0.05)
        assert "job 4  waiting  monthly  4 of 30" in driven.text()
        await driven.press("left")
        await driven.pilot.pause(0.05)
        assert "job 3  waiting" in driven.text()
        await driven.press("escape")
        assert cursor(driven) == "3"


async def test_a_payload_unfolds() -> None:
    feed = TableFeed(example_fleet(), 3)
    payload = "[" + ",".join(f'"line {n}"' for n in range(200)) + "]"
    feed.job_answer = (Job(id="1", queue="mail", payload=payload, payload_size=len(payload)), None)
    async with console_on(feed, (80, 40), "3") as driven:
        await settled(driven)
        await driven.press("enter")
        await driven.pilot.pause(0.05)
        assert "e shows more" in driven.text()
        assert "190 more lines" in driven.text()
        await driven.press("e")
        assert "e shows less" in driven.text()


async def test_a_job_that_cannot_be_read_and_one_that_is_gone() -> None:
    feed = TableFeed(example_fleet(), 3)
    async with console_on(feed, (80, 24), "3") as driven:
        await settled(driven)
        feed.error = REFUSED
        await driven.press("enter")
        await driven.pilot.pause(0.05)
        assert "× could not be read" in driven.text()
        assert "read the queue: connection refused; is PostgreSQL running?" in driven.text()
        assert "role       reports" in driven.text()  # what the list knew
        feed.error = None
        feed.change = lambda job: None
        await driven.press("ctrl+r")
        await driven.pilot.pause(0.05)
        assert "no longer in the table" in driven.text()


async def test_hostile_rows() -> None:
    text = "".join(HOSTILE)

    def spoil(job: Job) -> Job:
        return msgspec.structs.replace(job, id=job.id, queue=text, type=text, error=text, payload=text)

    async with console_on(TableFeed(hostile_fleet(), 5, spoil), (80, 24), "3") as driven:
        await settled(driven)
        assert harmless(driven.text().replace("\n", ""))
        await driven.press("enter")
        await driven.pilot.pause(0.05)
        assert harmless(driven.text().replace("\n", ""))


async def test_any_size() -> None:
    async with console_on(TableFeed(example_fleet(), 30), (80, 24), "3") as driven:
        await settled(driven)
        for size in ((1, 1), (5, 3), (20, 6), (200, 60), (80, 24)):
            await driven.pilot.resize_terminal(*size)
            await driven.pilot.pause()
        await driven.shown()
        assert "1 of 30" in driven.text()
