"""The minutes of a queue and the ladder of its counts: against brute force on a real server, and purely."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from console.fleet.model import Count, QueueCounts, Role, TrendPoint
from console.queue.ladder import SHARE, Asked, Ladder, best, estimated
from console.queue.rows import AGES, COUNT_COLUMNS, COUNTED, count_of
from console.queue.trends import AT_LEAST, LONGEST, ROW_CAP, SHORTEST, Trends
from tests.queue.test_client import client_of, config, facts_of

Db = psycopg.Connection[Any]
ROLES = (
    Role(name="a", queues=("a",)),
    Role(name="b", queues=("b",), types=("t1",)),
    Role(name="c", queues=("c",)),
)
ONE: Asked = ("q", ())


@pytest.fixture
def db(database: str) -> Iterator[Db]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


def finish(db: Db, number: int, seconds: int, chance: random.Random) -> None:
    """Ends jobs at any time of the last so many seconds."""
    with db.cursor() as cursor:
        cursor.executemany(
            """INSERT INTO worktop_jobs (queue, type, status, finished_at)
               VALUES (%s, %s, %s, now() - %s * interval '1 s')""",
            [
                (chance.choice("ab"), chance.choice(["t1", "t2"]), chance.choice(["done", "done", "failed"]),
                 chance.random() * seconds)
                for _ in range(number)
            ],
        )  # fmt: skip


def counted(db: Db, queue: str, types: tuple[str, ...], status: str) -> dict[float, int]:
    """By every row: how many ended in each minute."""
    rows = db.execute(
        """SELECT floor(extract(epoch FROM finished_at) / 60)::float8 * 60, count(*) FROM worktop_jobs
           WHERE queue = %s AND status = %s AND (%s::text[] = '{}' OR type = ANY (%s::text[])) GROUP BY 1""",
        (queue, status, list(types), list(types)),
    ).fetchall()
    return {float(minute): number for minute, number in rows}


async def test_every_minute_is_what_brute_force_finds(database: str, db: Db) -> None:
    chance = random.Random(7)
    finish(db, 3_000, 80 * 60, chance)
    db.execute("SELECT worktop_enqueue('a', 't', run_after => now() - interval '90 s') FROM generate_series(1, 3)")
    async with client_of(config(database, *ROLES)) as client:
        for _ in range(2):
            client._trends_due = 0.0
            facts = await facts_of(client)
            assert facts.trends_taken == facts.now
            assert [(trend.queue, trend.types) for trend in facts.trends] == [("a", ()), ("b", ("t1",)), ("c", ())]
            for trend in facts.trends:
                *whole, running = trend.points
                assert running.at == facts.now // 60 * 60
                assert (running.done, running.failed) == (None, None)
                assert [point.at for point in whole] == [running.at - 60 * back for back in range(LONGEST, 0, -1)]
                for status in ("done", "failed"):
                    truth = counted(db, trend.queue, trend.types, status)
                    assert [getattr(point, status) for point in whole] == [truth.get(point.at, 0) for point in whole]
                assert all(point.waiting is None and point.oldest is None for point in whole[:-1])
            waits = facts.trends[0].points[-1]
            assert waits.waiting == 3
            assert waits.oldest == pytest.approx(90, abs=10)
            assert facts.trends[2].points[-1].waiting == 0
            finish(db, 500, 100, chance)  # also in minutes that were read before


async def test_trends_outlive_the_connection_and_are_not_read_at_every_poll(database: str, db: Db) -> None:
    db.execute("SELECT worktop_enqueue('a', 't')")
    finish(db, 100, 600, random.Random(1))
    async with client_of(config(database, *ROLES)) as client:
        before = await facts_of(client)
        db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'worktop'")
        db.execute("UPDATE worktop_jobs SET finished_at = finished_at - interval '3 h' WHERE status <> 'waiting'")
        while (await client.poll()).problem is not None:
            pass
        after = await facts_of(client)
        assert after.trends_taken == before.trends_taken
        kept = {point.at: point.done for point in before.trends[0].points if point.done}
        assert kept
        assert kept == {point.at: point.done for point in after.trends[0].points if point.done}


def points(trends: Trends, now: float) -> dict[int, TrendPoint]:
    (trend,) = trends.trends([ONE], now, True, True)
    return {int(point.at // 60 - now // 60): point for point in trend.points}


def test_the_running_minute_is_not_known_though_a_later_reading_was_of_the_next_one() -> None:
    trends, now = Trends(), 600_059.9
    trends.ended([ONE], 5, now + 0.2, [(0, "done", 10_000 * 60, 107, 107, now + 0.2)])
    assert points(trends, now)[0].done is None and points(trends, now + 0.2)[-1].done == 107


def test_a_minute_that_was_cut_off_is_not_known() -> None:
    trends, now = Trends(), 600_030.0
    running = 10_000
    rows = [(0, "done", (running - back) * 60, 30_000, ROW_CAP, now) for back in (0, 1)]
    trends.ended([ONE], 5, now, rows)
    found = points(trends, now)
    assert len(found) == SHORTEST + 1
    assert {point.done for point in found.values()} == {None}
    trends.ended([ONE], 2, now, [(0, "done", (running - 1) * 60, 7, 7, now)])
    assert (points(trends, now)[-1].done, points(trends, now)[-1].failed, points(trends, now)[-2].done) == (7, 0, 0)
    assert points(trends, now)[-3].done is None


def test_a_busy_queue_is_read_a_few_minutes_at_a_time() -> None:
    trends, now = Trends(), 600_000.0
    assert trends.minutes([ONE]) == [AT_LEAST, LONGEST]
    trends.ended([ONE], AT_LEAST, now, [(0, "done", 9_999 * 60, 10_000, 20_000, now)])
    assert AT_LEAST < trends.longest(LONGEST) < 25
    assert trends.minutes([ONE]) == [AT_LEAST]
    trends.ended([ONE], AT_LEAST, now, [(0, "done", 9_999 * 60, 5, 10, now)])
    assert trends.minutes([ONE]) == [LONGEST]


def test_what_waited_is_kept_for_an_hour_and_only_when_exact() -> None:
    trends = Trends()
    for minute in range(100):
        kind = "at-least" if minute == 90 else "exact"
        trends.polled([QueueCounts(queue="q", waiting=Count(minute, kind), oldest_waiting=1.0)], minute * 60.0 + 5)
    found = points(trends, 99 * 60.0 + 30)
    assert [found[back].waiting for back in (-60, -10, -9, 0)] == [39, 89, None, 99]
    assert found[-9].oldest == 1.0
    assert len(trends._waited) == LONGEST + 1


# --- the ladder -----------------------------------------------------------------------------------------------------


def test_large_counts_take_turns() -> None:
    ladder, asked = Ladder(), [(f"q{number}", ()) for number in range(8)]
    assert ladder.wanted(asked) == [list(COUNT_COLUMNS)] * 8
    for one in asked:
        sizes = {"waiting": 10_001, "failed": 10_001}
        ladder.read(one, [*([sizes.get(name, 5)] * 2 for name in COUNTED), [1.0, 0], [1.0, 0]], 0.0)
    seen: dict[tuple[Asked, str], int] = {}
    for _ in range(10):
        wanted = ladder.wanted(asked)
        large = [
            (one, name)
            for one, names in zip(asked, wanted, strict=True)
            for name in names
            if name in ("waiting", "failed")
        ]
        assert 1 <= len(large) <= SHARE // 7_000
        assert all({"scheduled", "running", "stuck", "done_recently"} <= set(names) for names in wanted)
        for one, names in zip(asked, wanted, strict=True):
            sizes = {name: 7_000 if name in ("waiting", "failed") else 5 for name in names}
            row = [[sizes[name], sizes[name]] if name in sizes else None for name in COUNTED]
            assert ladder.read(one, [*row, [1.0, 0], [1.0, 0]], 0.0)["waiting"] is not None
        for key in large:
            seen[key] = seen.get(key, 0) + 1
    assert len(seen) == 16


def test_the_share_follows_what_counting_takes() -> None:
    ladder, asked = Ladder(), [(f"q{number}", ()) for number in range(8)]

    def poll(seconds: float) -> int:
        wanted = ladder.wanted(asked)
        for one, names in zip(asked, wanted, strict=True):
            row = [[900, 900] if name in names else None for name in COUNTED]
            ladder.read(one, [*row, [1.0, 0], [1.0, 0]], 0.0)
        ladder.took(seconds)
        return sum(len(set(names) & set(COUNTED)) for names in wanted)

    assert (poll(3.0), poll(0.3)) == (64, 64)
    for _ in range(5):
        few = poll(0.1)
    assert 1 <= few <= 2
    for _ in range(12):
        many = poll(0.001)
    assert many == 64


def test_what_took_too_long_is_asked_for_less() -> None:
    ladder = Ladder()
    assert (ladder.wanted([ONE]), ladder.cap) == ([list(COUNT_COLUMNS)], 1_000)
    ladder.gave_up()
    assert (ladder.wanted([ONE]), ladder.cap) == ([list(COUNT_COLUMNS)], 100)
    found = ladder.read(ONE, [[9, 101], *[[3, 3]] * (len(COUNTED) - 1), [1.0, 0], [1.0, 0]], 0.0)
    assert (count_of(found["waiting"]), count_of(found["running"])) == (Count(9, "at-least"), Count(3))
    assert ladder.rest([ONE], 1.0) == []
    assert (ladder.wanted([ONE]), ladder.cap) == ([list(COUNT_COLUMNS)], 10_000)


def test_the_first_counts_go_on_at_once_when_they_were_quick() -> None:
    ladder = Ladder()
    ladder.wanted([ONE])
    ladder.read(ONE, [[1_001, 1_001], *[[3, 3]] * (len(COUNTED) - 1), [1.0, 0], [1.0, 0]], 0.0)
    assert (ladder.rest([ONE], 0.01), ladder.cap) == ([["waiting"]], 10_000)
    found = ladder.read(ONE, [[4_000, 4_000], *[None] * (len(COUNT_COLUMNS) - 1)], 1.0)
    assert (count_of(found["waiting"]), count_of(found["running"])) == (Count(4_000), Count(3))
    assert ladder.rest([ONE], 0.01) == []


def test_a_type_that_is_rare_is_looked_for_in_turn_and_its_age_grows_meanwhile() -> None:
    ladder, asked = Ladder(), [(f"q{number}", ("t",)) for number in range(8)]
    ladder.wanted(asked)
    for one in asked:
        ladder.read(one, [*[[3, 3]] * len(COUNTED), [None, 1_000], [70.0, 1_000]], 100.0)
    looked: list[int] = []
    for second in range(1, 9):
        wanted = ladder.wanted(asked)
        looked.append(sum(name in AGES for names in wanted for name in names))
        for one, names in zip(asked, wanted, strict=True):
            ages = [[None, 1_000] if name in names else None for name in AGES]
            found = ladder.read(one, [*[[3, 3]] * len(COUNTED), *ages], 100.0 + second)
            assert found["oldest_waiting"] is None
            assert found["last_finished"] in (None if "last_finished" in names else 70.0 + second, None)
        ladder.took(0.1)
    assert looked[0] == 15
    assert looked[-1] == 1


def test_what_is_estimated_is_not_counted() -> None:
    ladder = Ladder()
    assert "done" not in ladder.wanted([ONE], {ONE})[0]
    assert "done" in ladder.wanted([ONE])[0]


def test_the_best_that_is_known() -> None:
    assert best((3, 3), 50_000) == Count(3)
    assert best((10_001, 10_001), None) == Count(10_000, "at-least")
    assert best((10_001, 10_001), 50_000) == Count(50_000, "estimate")
    assert best((12, 10_001), 300) == Count(12, "at-least")
    assert best(None, 50_000) == Count(50_000, "estimate")
    assert best(None, None) is None
    assert estimated({"Node Type": "Result"}, [ONE]) == ({}, set())


async def test_done_is_exact_then_at_least_then_an_estimate(database: str, db: Db) -> None:
    db.execute("ALTER TABLE worktop_jobs SET (autovacuum_enabled = off)")
    add = """INSERT INTO worktop_jobs (queue, type, status, finished_at)
             SELECT %s, CASE WHEN i %% 10 = 0 THEN 't1' ELSE 't2' END, 'done', now() FROM generate_series(1, %s) AS i"""
    db.execute(add, ("a", 50))
    db.execute(add, ("b", 3_000))
    db.execute("SELECT worktop_enqueue('c', 't')")
    async with client_of(config(database, *ROLES)) as client:

        async def done() -> list[Count | None]:
            client._done_due = 0.0
            return [one.done for one in (await facts_of(client)).counts]

        assert await done() == [Count(50), Count(300), Count(0)]
        db.execute(add, ("a", 60_000))
        assert await done() == [Count(10_000, "at-least"), Count(300), Count(0)]
        db.execute("ANALYZE worktop_jobs")
        first, second, third = await done()
        assert first is not None
        assert first.kind == "estimate"
        assert first.n == pytest.approx(60_050, rel=0.2)
        assert (second, third) == (Count(300), Count(0))
        age = (await facts_of(client)).statistics_age
        assert age is not None
        assert 0 <= age < 60


async def test_a_rare_type_is_counted_among_so_many_rows_only(database: str, db: Db) -> None:
    db.execute(
        """INSERT INTO worktop_jobs (queue, type) SELECT 'b', CASE WHEN i % 1000 = 0 THEN 't1' ELSE 't2' END
           FROM generate_series(1, 30000) AS i"""
    )
    async with client_of(config(database, *ROLES)) as client:
        client._ladder.rest = lambda asked, seconds: []  # type: ignore[method-assign]  # as when that took long
        (_, rare, _) = (await facts_of(client)).counts
        assert rare.waiting == Count(1, "at-least")
        (_, rare, _) = (await facts_of(client)).counts
        assert rare.waiting == Count(10, "at-least")
