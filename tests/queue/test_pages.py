"""Pages of jobs on a real server: every row exactly once and in order, against a model; filters take any text."""

from __future__ import annotations

import asyncio
import random
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, get_args

import msgspec
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.config import Config, Database
from console.errors import QueueError
from console.fleet.model import Count, JobPage, JobQuery, JobSort, Role
from console.queue import paging
from console.queue.client import QueueClient
from console.queue.preset import ListedState
from tests.postgres import Server

Db = psycopg.Connection[Any]
STATES: tuple[ListedState, ...] = get_args(ListedState)
SORTS: tuple[JobSort, ...] = get_args(JobSort)
QUEUES = ("a", "b", "c")
START = datetime(2026, 1, 1, tzinfo=UTC)


@asynccontextmanager
async def client_of(dsn: str, *roles: Role) -> AsyncIterator[QueueClient]:
    client = QueueClient(Config(database=Database(dsn=dsn, configured=True), roles=roles))
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture(scope="module")
def shared(postgres: Server, installed_template: str) -> Iterator[tuple[str, Db]]:
    """A database for all examples of a property: its DSN, and a connection to fill it."""
    name = postgres.new_database(installed_template)
    with psycopg.connect(postgres.dsn(name), autocommit=True) as connection:
        yield postgres.dsn(name), connection
    postgres.drop_database(name)


@pytest.fixture
def db(database: str) -> Iterator[Db]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


async def every_page(client: QueueClient, query: JobQuery, between: Any = None) -> list[JobPage]:
    pages = [await client.page(query)]
    while (after := pages[-1].next) is not None:
        assert len(pages) < 500, "the pages come to an end"
        if between:
            between()
        pages.append(await client.page(msgspec.structs.replace(query, after=after)))
    return pages


def ids(pages: list[JobPage]) -> list[int]:
    return [int(job.id) for page in pages for job in page.jobs]


# --- against a model ------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    queue: str
    type: str
    status: str  # as listed: stuck is running with a lease that has expired
    due: int  # seconds and microseconds after START, few different ones
    priority: int
    attempts: int
    lease: int
    finished: int
    error: str | None


def made(chance: random.Random) -> tuple[JobQuery, list[Row]]:
    """A query and rows, most of them of its state: only then there are more than a page looks at."""
    query = JobQuery(
        state=chance.choice(STATES),
        queues=chance.choice([(), (), ("b",), ("a", "c"), ("c", "absent")]),
        types=chance.choice([(), (), ("send",), ("Send%", "digest_1")]),
        contains=chance.choice(["", "", "", "SEND", "%", "_", "\\", "timeout", "12", "7", "nothing"]),
        sort=chance.choice(SORTS),
        descending=chance.choice([False, True]),
        limit=chance.randint(1, 5),
    )
    rows = [
        Row(
            queue=chance.choice(QUEUES),
            type=chance.choice(["send", "Send%", "digest_1"]),
            status=chance.choice([query.state, query.state, query.state, *STATES]),
            due=chance.randint(0, 3),
            priority=chance.randint(-1, 1),
            attempts=chance.randint(0, 2),
            lease=chance.randint(0, 3),
            finished=chance.randint(0, 3),
            error=chance.choice([None, "Timeout 12", "100% \\_ off"]),
        )
        for _ in range(chance.choice([0, 5, 40, 60]))
    ]
    return query, rows


def moment(number: int) -> datetime:
    return START + timedelta(seconds=number, microseconds=number * 3 + 1)


def fill(db: Db, rows: list[Row]) -> None:
    db.execute("TRUNCATE worktop_jobs RESTART IDENTITY")
    with db.cursor() as cursor:
        cursor.executemany(
            """INSERT INTO worktop_jobs (queue, type, status, run_after, priority, attempts, lease_token, lease_expires,
                                         started_at, finished_at, last_error)
               VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)""",
            [
                (
                    row.queue,
                    row.type,
                    "running" if row.status == "stuck" else row.status,
                    moment(row.due),
                    row.priority,
                    row.attempts,
                    1,
                    {
                        "running": moment(row.lease) + timedelta(days=36_500),
                        "stuck": moment(row.lease),
                    }.get(row.status),
                    moment(row.due),
                    moment(row.finished) if row.status in ("done", "failed") else None,
                    row.error,
                )
                for row in rows
            ],
        )


def folded(text: str) -> str:
    """As lower() does in the tests' database: ASCII alone."""
    return "".join(char.lower() if char.isascii() else char for char in text)


def expected(rows: list[Row], query: JobQuery, looked_at: int) -> tuple[list[int], list[int], bool]:
    """(ids that come first because they are what was searched for, the other ids in order, whether rows are left out);
    an order without an index is one of the newest `looked_at` rows of each queue."""
    state, sort = query.state, query.sort
    of_state = [
        (number, row)
        for number, row in enumerate(rows, 1)
        if (row.status == state or (state == "running" and row.status == "stuck"))
        and row.queue in (query.queues or QUEUES)
    ]
    ended = state in ("done", "failed")
    if (sort == "overdue" and state not in ("running", "stuck")) or (sort == "finished" and not ended):
        sort = "id"
    indexed = {"waiting": ("age", "priority"), "running": ("overdue",), "stuck": ("overdue",)}
    windowed = sort != "id" and sort not in indexed.get(state, ("age", "finished"))
    if windowed:
        scanned = [
            (number, row)
            for number, row in enumerate(rows, 1)
            if row.queue in (query.queues or QUEUES)
            and (row.status == state or (state in ("running", "stuck") and row.status in ("running", "stuck")))
        ]
        kept = {
            number
            for queue in QUEUES
            for number, _ in [one for one in reversed(scanned) if one[1].queue == queue][:looked_at]
        }
    else:
        kept = {number for number, _ in of_state}
    text, pinned = folded(query.contains), []
    if text.isdigit():
        pinned = [
            number for number, row in of_state if number == int(text) and (not query.types or row.type in query.types)
        ]
    matching = [
        (number, row)
        for number, row in of_state
        if (not query.types or row.type in query.types)
        and (not text or text in folded(row.type) or text in folded(row.error or ""))
        and not (text.isdigit() and number == int(text))
    ]

    def key(one: tuple[int, Row]) -> tuple[int, ...]:
        number, row = one
        match sort:
            case "id":
                return (number,)
            case "age":
                return (-(row.finished if ended else row.due), -number)
            case "priority":
                return (row.priority, -row.due, -number)
            case "attempts":
                return (row.attempts, number)
            case "overdue":
                far = 0 if row.status == "stuck" else 1
                return (-far, -row.lease, -number)
            case _:
                return (row.finished, number)

    found = [number for number, _ in sorted(matching, key=key, reverse=query.descending) if number in kept]
    return pinned, found, len(found) < len(matching)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), scan=st.integers(1, 20))
def test_every_row_is_on_one_page_and_in_order(shared: tuple[str, Db], seed: int, scan: int) -> None:
    # made from a seed: hypothesis' own rows resemble each other too much to meet the places where pages end
    (dsn, db), (query, rows) = shared, made(random.Random(seed))
    fill(db, rows)

    async def read() -> list[JobPage]:
        async with client_of(dsn, *(Role(name=queue, queues=(queue,)) for queue in QUEUES)) as client:
            return await every_page(client, query)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paging, "SCAN", scan)
        patch.setattr(paging, "SCAN_TIME", 0.0)  # one step for each page: as many bounds as there can be
        pages = asyncio.run(read())
    looked_at = max(query.limit + 1, scan // len(query.queues or QUEUES))
    first, others, _ = expected(rows, query, looked_at)
    assert ids(pages) == first + others
    assert all(len(page.jobs) <= query.limit for page in pages)
    assert all(page.total is None for page in pages[1:])
    total = pages[0].total
    assert total is not None
    if total.kind == "exact":
        assert total.n == len(first) + len(others)
    else:
        assert total.kind == "at-least"
        assert total.n <= len(first) + len(others)
    if pages[0].next is None and not pages[0].note:
        assert total == Count(len(pages[0].jobs))


def test_rows_that_change_between_pages_disturb_no_other(database: str, db: Db) -> None:
    chance = random.Random(20260801)
    calm = [Row("a", "t", state, n % 3, n % 2, n % 3, n % 3, n % 3, None) for n in range(20) for state in STATES]
    wild = [Row("b", "t", state, n % 3, n % 2, n % 3, n % 3, n % 3, None) for n in range(20) for state in STATES]
    rows = calm + wild
    chance.shuffle(rows)
    fill(db, rows)
    still = {number for number, row in enumerate(rows, 1) if row.queue == "a"}

    def change() -> None:
        for statement in (
            "SELECT id FROM worktop_claim('{b}', 'web1', 'boot', 'b@1.service', 4711, 99, jobs => 2)",
            """UPDATE worktop_jobs SET status = 'done', finished_at = now(), lease_expires = NULL
               WHERE id IN (SELECT id FROM worktop_jobs WHERE queue = 'b' AND status = 'running' LIMIT 2)""",
            "DELETE FROM worktop_jobs WHERE id IN (SELECT id FROM worktop_jobs WHERE queue = 'b' ORDER BY id LIMIT 1)",
            "UPDATE worktop_jobs SET attempts = attempts + 1, priority = 1 - priority WHERE queue = 'b' AND id % 3 = 1",
            "INSERT INTO worktop_jobs (queue, type) VALUES ('b', 't')",
        ):
            db.execute(statement.encode())

    async def read() -> None:
        async with client_of(database) as client:
            for state in STATES:
                for sort in SORTS:
                    query = JobQuery(state=state, sort=sort, descending=chance.random() < 0.5, limit=12)
                    seen = ids(await every_page(client, query, change))
                    undisturbed, (_, others, _) = (
                        [i for i in seen if i in still],
                        expected(rows, msgspec.structs.replace(query, queues=("a",)), 10_000),
                    )
                    assert undisturbed == others, query

    asyncio.run(read())


# --- filters --------------------------------------------------------------------------------------------------------

HOSTILE = [
    "%", "_", "\\", "\\%", "'", "' OR true --", '"', "$1", "$$", "%s", "%(queues)s", "{schema}", "a%b_c", "(.*",
    "\t", "\n", "é", "日本", "\U0001f600", "\u202e", "\x1b[31m", "NULL", "1e9", "-1", "#", "x" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("where", ["type", "error"])
async def test_a_text_is_found_as_it_is(database: str, db: Db, where: str) -> None:
    for text in HOSTILE:
        kept = {"type": f"<{text}>", "error": "none"} if where == "type" else {"type": "t", "error": f"<{text[:3990]}>"}
        db.execute(
            """INSERT INTO worktop_jobs (queue, type, status, finished_at, last_error)
               VALUES ('q', %(type)s, 'failed', now(), %(error)s)""",
            kept,
        )
    async with client_of(database) as client:
        for text in HOSTILE:
            searched = text if where == "type" else text[:3990]
            page = await client.page(JobQuery(state="failed", contains=f"<{searched}>"))
            assert [job.type if where == "type" else job.error for job in page.jobs] == [f"<{searched}>"], text
            assert page.total == Count(1)


@pytest.mark.parametrize("text", ["\x00", "a\x00b", "\ud800"])
async def test_what_no_text_can_hold_is_refused(database: str, db: Db, text: str) -> None:
    db.execute("SELECT worktop_enqueue('q', 't')")
    async with client_of(database) as client:
        for query in (JobQuery(contains=text), JobQuery(types=(text,)), JobQuery(queues=(text,))):
            with pytest.raises(QueueError, match="list waiting jobs"):
                await client.page(query)
        assert len((await client.page(JobQuery())).jobs) == 1


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(after=st.one_of(st.text(max_size=80), st.binary(max_size=60).map(lambda b: urlsafe_b64encode(b).decode())))
def test_a_place_that_is_none_is_refused(shared: tuple[str, Db], after: str) -> None:
    async def read() -> None:
        async with client_of(shared[0], Role(name="a", queues=("a",))) as client:
            with pytest.raises(QueueError):
                await client.page(JobQuery(after=after))

    asyncio.run(read())


async def test_a_place_of_another_query_or_of_other_types_is_refused(database: str, db: Db) -> None:
    db.execute("SELECT worktop_enqueue('q', 't') FROM generate_series(1, 5)")
    async with client_of(database) as client:
        query = JobQuery(sort="age", limit=2)
        page = await client.page(query)
        assert page.next is not None
        for other in ({"sort": "id"}, {"state": "done"}, {"descending": True}, {"queues": ("q",)}, {"contains": "t"}):
            with pytest.raises(QueueError, match="not of this list"):
                await client.page(msgspec.structs.replace(query, after=page.next, **other))
        forged = paging._read(msgspec.structs.replace(query, after=page.next))
        for place in (["x", 1, "q"], ["2026-01-01", "x", "q"], ["2026-01-01", 10**30, "q"], [None, None, None]):
            made = msgspec.structs.replace(forged, at=place)
            after = urlsafe_b64encode(msgspec.json.encode(made)).decode()
            with pytest.raises(QueueError):
                await client.page(msgspec.structs.replace(query, after=after))
        assert (await client.page(msgspec.structs.replace(query, after=page.next))).jobs


async def test_the_job_of_the_id_comes_first_wherever_it_is(database: str, db: Db) -> None:
    db.execute("INSERT INTO worktop_jobs (queue, type) SELECT 'q', 't' || i FROM generate_series(1, 30000) AS i")
    async with client_of(database) as client:
        page = await client.page(JobQuery(contains="29999", limit=3))
        assert page.jobs[0].id == "29999"
        hashed = await client.page(JobQuery(contains="#123", limit=3))
        assert [job.id for job in hashed.jobs] == ["123"]
        texts = await every_page(client, JobQuery(contains="t123", limit=500))
        assert len(ids(texts)) == 1 + 10 + 100


# --- what it costs --------------------------------------------------------------------------------------------------


async def test_pages_of_large_rows_stay_small(database: str, db: Db) -> None:
    db.execute(
        """INSERT INTO worktop_jobs (queue, type, payload, status, finished_at, last_error)
           SELECT 'q', 't', jsonb_build_object('text', repeat(md5(i::text), 32768)), 'failed', now(),
                  repeat('error ' || i || ' ', 100000)
           FROM generate_series(1, 60) AS i"""
    )
    async with client_of(database) as client:
        page = await client.page(JobQuery(state="failed"))
        assert len(page.jobs) == 60
        assert all(job.payload == "" and len(job.error) == 4000 for job in page.jobs)
        assert len(msgspec.json.encode(page)) < 60 * 5000
        searched = await client.page(JobQuery(state="failed", contains="absent"))
        assert (searched.jobs, searched.total) == ((), Count(0))


async def test_a_filter_goes_through_a_large_table_in_bounded_steps(
    database: str, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute(
        """INSERT INTO worktop_jobs (queue, type, status, finished_at)
           SELECT 'q' || i % 2, CASE i WHEN 34000 THEN 'rare' ELSE 't' END, 'done', now()
           FROM generate_series(1, 40000) AS i"""
    )
    monkeypatch.setattr(paging, "SCAN_TIME", 0.0)
    async with client_of(database) as client:
        pages = await every_page(client, JobQuery(state="done", contains="RARE"))
        assert [len(page.jobs) for page in pages] == [0, 0, 0, 1, 0]
        assert pages[0].total == Count(0, "at-least")
        assert pages[0].note == "searched a part of the jobs; the next page goes on"
        monkeypatch.setattr(paging, "SCAN_TIME", 5.0)
        (page,) = await every_page(client, JobQuery(state="done", contains="RARE"))
        assert (len(page.jobs), page.total) == (1, Count(1))
        sorted_ = await client.page(JobQuery(state="done", sort="attempts", limit=5))
        assert sorted_.note == "sorted among the newest 5000 jobs of each queue only"
        assert sorted_.total == Count(10_000, "at-least")


async def test_a_page_is_given_up_after_a_second(database: str, db: Db) -> None:
    db.execute("SELECT worktop_enqueue('q', 't')")
    async with client_of(database, Role(name="q", queues=("q",))) as client:
        await client.page(JobQuery())
        with psycopg.connect(database) as other:
            other.execute("LOCK TABLE worktop_jobs")
            start = time.monotonic()
            with pytest.raises(QueueError, match="took too long; name a queue, drop the filter or sort by id"):
                await client.page(JobQuery())
            assert time.monotonic() - start < 4
        assert len((await client.page(JobQuery())).jobs) == 1


@pytest.mark.parametrize("pooled", [False, True])
async def test_timeouts_of_a_page_do_not_stay(database: str, db: Db, pooled: bool) -> None:
    db.execute("SELECT worktop_enqueue('q', 't')")
    async with client_of(database) as client:
        await client.page(JobQuery())
        client._pooled = pooled
        await client.page(JobQuery())
        assert client._connection is not None
        row = await (await client._connection.execute("SHOW statement_timeout")).fetchone()
        assert row == ("5s",)
