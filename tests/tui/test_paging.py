"""Pages side by side: only what is asked for is read, and only so much is kept."""

from __future__ import annotations

import random

from console.fleet.model import Job, JobQuery
from console.tui.paging import KEPT_AT_MOST, PAGE, Page, Window
from tests.tui.queue_feeds import TableFeed


def read(feed: TableFeed, window: Window, low: int, high: int) -> None:
    """As the loader reads."""
    pages: list[Page] = []
    start = window.starts[low]
    for _ in range(low, high + 1):
        answer = feed.page(JobQuery(limit=PAGE, after=start))
        pages.append(Page(answer.jobs, answer.next, 0.0))
        start = answer.next
        if start is None:
            break
    window.put(low, pages)


def ids(window: Window) -> list[int]:
    return [int(job.id) for job, _ in window.rows()]


def test_down_and_up_again() -> None:
    feed, window = TableFeed(None, 100_000), Window(JobQuery())
    for number in range(30):
        read(feed, window, number, number)
        assert sum(len(page.jobs) for page in window.pages) <= KEPT_AT_MOST
    assert ids(window) == list(range(2001, 3001))
    assert window.before == 2000
    assert window.wanted(0, 20) == 19
    assert window.wanted(500, 520) is None
    assert window.wanted(970, 990) == 30
    for number in range(19, -1, -1):
        read(feed, window, number, number)
        assert sum(len(page.jobs) for page in window.pages) <= KEPT_AT_MOST
    assert ids(window) == list(range(1, 1001))
    assert window.wanted(0, 20) is None


def test_the_end() -> None:
    feed, window = TableFeed(None, 150), Window(JobQuery())
    assert window.wanted(0, 20) == 0
    read(feed, window, 0, 0)
    read(feed, window, 1, 1)
    assert not window.more
    assert window.wanted(130, 149) is None
    assert window.numbers(90, 120) == (0, 1)
    assert window.numbers(0, 5000) == (0, 1)


def test_rows_that_vanish_while_a_page_is_read_again() -> None:
    gone: set[int] = set()

    def change(job: Job) -> Job | None:
        return None if int(job.id) in gone else job

    feed, window = TableFeed(None, 1000, change), Window(JobQuery())
    for number in range(5):
        read(feed, window, number, number)
    gone |= set(range(120, 140))
    read(feed, window, 1, 1)
    assert ids(window) == [n for n in range(1, 221) if n not in gone]  # what followed started elsewhere: dropped
    read(feed, window, 2, 2)
    assert ids(window) == [n for n in range(1, 321) if n not in gone]


def test_a_page_that_still_ends_where_the_next_begins_keeps_what_follows() -> None:
    feed, window = TableFeed(None, 1000), Window(JobQuery())
    for number in range(5):
        read(feed, window, number, number)
    read(feed, window, 1, 2)
    assert ids(window) == list(range(1, 501))


def test_any_walk_through_a_changing_table_shows_rows_once_and_in_order() -> None:
    chance = random.Random(7)
    gone: set[int] = set()

    def change(job: Job) -> Job | None:
        return None if int(job.id) in gone else job

    feed, window = TableFeed(None, 4000, change), Window(JobQuery())
    read(feed, window, 0, 0)
    for _ in range(120):
        rows = len(ids(window))
        first = chance.randrange(0, max(1, rows))
        wanted = window.wanted(first, first + 20)
        if wanted is not None and chance.random() < 0.7:
            read(feed, window, wanted, wanted)
        else:
            low, high = window.numbers(first, first + 20)
            read(feed, window, low, high)
        gone |= {chance.randrange(1, 4000) for _ in range(3)}
        seen = ids(window)
        assert seen == sorted(set(seen))
        assert rows <= KEPT_AT_MOST + PAGE
    read(feed, window, window.first, window.first + len(window.pages) - 1)
    seen = ids(window)
    assert seen == [n for n in range(seen[0], seen[-1] + 1) if n not in gone]  # nothing between them is left out


def test_a_job_in_two_pages_is_shown_once_as_it_was_read_last() -> None:
    window = Window(JobQuery())
    old = Page((Job(id="1"), Job(id="2", attempts=1)), "2", 1.0)
    new = Page((Job(id="2", attempts=2), Job(id="3")), None, 2.0)
    window.put(0, [old])
    window.put(1, [new])
    assert [(job.id, job.attempts) for job, _ in window.rows()] == [("1", 0), ("2", 2), ("3", 0)]
