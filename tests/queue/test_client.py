"""QueueClient on a real server: what it reads, by which plans, and how it survives what goes wrong."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from psycopg import sql

from console.config import Config, Database
from console.fleet.model import Count, JobQuery, QueueFacts, Role
from console.queue.client import QueueClient
from console.queue.connection import Connection, connect
from console.queue.install import install
from console.queue.reads import ListedState
from tests.postgres import Server

STATES: tuple[ListedState, ...] = ("waiting", "running", "stuck", "failed", "done")


def config(dsn: str, *roles: Role, schema: str = "public") -> Config:
    return Config(database=Database(dsn=dsn, configured=True, schema=schema), roles=roles)


@asynccontextmanager
async def client_of(configuration: Config) -> AsyncIterator[QueueClient]:
    client = QueueClient(configuration)
    try:
        yield client
    finally:
        await client.close()


async def facts_of(client: QueueClient) -> QueueFacts:
    reading = await client.poll()
    assert reading.problem is None, reading.problem.line()
    assert reading.value is not None
    return reading.value


@pytest.fixture
def db(database: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


Db = psycopg.Connection[tuple[object, ...]]
CLAIM = "SELECT id FROM worktop_claim('{mail}', 'web1', 'boot', 'mail@1.service', 4711, 99, %s::interval)"


async def test_an_empty_table_is_no_problem(database: str) -> None:
    async with client_of(config(database)) as client:
        facts = await facts_of(client)
        assert (facts.counts, facts.running) == ((), ())
        assert facts.server.startswith("PostgreSQL ")
        assert facts.now == pytest.approx(time.time(), abs=5)
        assert facts.skew == pytest.approx(0, abs=0.5)
        assert await client.job("1") is None
        assert await client.job("x' OR true") is None


async def test_the_facts_of_a_queue(database: str, db: Db) -> None:
    for kind in ("send", "send", "digest"):
        db.execute("SELECT worktop_enqueue('mail', %s, run_after => now() - interval '100 s')", (kind,))
    db.execute("SELECT worktop_enqueue('mail', 'send', run_after => now() + interval '1 h')")
    db.execute(CLAIM, ("-30 s",))
    db.execute(
        """INSERT INTO worktop_jobs (queue, type, status, finished_at)
           SELECT 'mail', 'send', s, now() - interval '20 s' FROM unnest('{done,done,done,failed}'::text[]) AS s"""
    )
    roles = (
        Role(name="mail", queues=("mail",)),
        Role(name="digest", queues=("mail",), types=("digest",)),
        Role(name="none", queues=("none",)),
    )
    async with client_of(config(database, *roles)) as client:
        facts = await facts_of(client)
        every, digests, nothing = facts.counts
        assert (every.waiting, every.scheduled, every.running, every.stuck, every.failed) == tuple(
            map(Count, (2, 1, 1, 1, 1))
        )
        assert every.oldest_waiting == pytest.approx(100, abs=5)
        assert (every.done_per_minute, every.failed_per_minute) == (0.6, 0.2)
        assert every.last_finished == pytest.approx(20, abs=5)
        assert (digests.queue, digests.types, digests.waiting) == ("mail", ("digest",), Count(1))
        assert (nothing.waiting, nothing.oldest_waiting, nothing.last_finished) == (Count(0), None, None)
        (job,) = facts.running
        assert job.overdue == pytest.approx(30, abs=5)
        assert job.holder is not None
        assert (job.holder.host, job.holder.unit, job.holder.pid, job.holder.start, job.holder.boot_id) == (
            "web1",
            "mail@1.service",
            4711,
            99,
            "boot",
        )
        assert job.token
        assert [job.id for job in (await client.page(JobQuery(state="stuck"))).jobs] == [job.id]


@pytest.mark.parametrize("pooled", [False, True])
async def test_which_queues_are_paused(database: str, db: Db, pooled: bool) -> None:
    roles = (Role(name="letters", queues=("mail", "fax")), Role(name="reports", queues=("reports",)))
    async with client_of(config(database, *roles)) as client:
        await facts_of(client)
        client._pooled = pooled
        assert {counts.paused for counts in (await facts_of(client)).counts} == {()}
        db.execute("INSERT INTO worktop_queues (queue, paused) VALUES ('fax', true), ('mail', false)")
        facts = await facts_of(client)
        assert {counts.queue: counts.paused for counts in facts.counts} == {
            "fax": ("fax",), "mail": (), "reports": (),
        }  # fmt: skip


@pytest.mark.parametrize("pooled", [False, True])
async def test_who_may_not_read_the_switch_reads_the_rest(database: str, db: Db, pooled: bool) -> None:
    db.execute("SELECT worktop_enqueue('mail', 'send')")
    db.execute("INSERT INTO worktop_queues (queue, paused) VALUES ('mail', true)")
    db.execute("DROP ROLE IF EXISTS half; CREATE ROLE half LOGIN; GRANT SELECT ON worktop_jobs TO half")
    try:
        async with client_of(config(database.replace("user=postgres", "user=half"))) as client:
            client._pooled = pooled
            for _ in range(2):
                (counts,) = (await facts_of(client)).counts
                assert (counts.waiting, counts.paused) == (Count(1), ())
    finally:
        db.execute("DROP OWNED BY half; DROP ROLE half")


async def test_a_large_payload_is_cut_and_its_size_is_told(database: str, db: Db) -> None:
    payload = json.dumps({"text": "ü" * 600_000}, ensure_ascii=False)
    db.execute("SELECT worktop_enqueue('mail', 't', %s::jsonb)", (payload,))
    async with client_of(config(database)) as client:
        job = await client.job("1")
        assert job is not None
        assert (len(job.payload), job.payload_size) == (65_536, len(payload.encode()))
        (listed,) = (await client.page(JobQuery())).jobs
        assert listed.payload == ""


@pytest.fixture(scope="module")
def large(postgres: Server, installed_template: str) -> Iterator[str]:
    """The DSN of a database with 200 000 done, 5 000 waiting, 500 running and 300 failed jobs in eight queues."""
    name = postgres.new_database(installed_template)
    with psycopg.connect(postgres.dsn(name), autocommit=True) as connection:
        for status, number in (("done", 200_000), ("waiting", 5_000), ("running", 500), ("failed", 300)):
            connection.execute(
                """INSERT INTO worktop_jobs (queue, type, status, started_at, finished_at, lease_token, lease_expires)
                   SELECT 'q' || i %% 8, 't', %(status)s, now(),
                          CASE WHEN %(status)s IN ('done', 'failed') THEN now() - i * interval '1 s' END,
                          CASE WHEN %(status)s = 'running' THEN i END,
                          CASE WHEN %(status)s = 'running' THEN now() + (i - 250) * interval '1 s' END
                   FROM generate_series(1, %(number)s) AS i""",
                {"status": status, "number": number},
            )
        connection.execute("VACUUM ANALYZE worktop_jobs")
    yield postgres.dsn(name)
    postgres.drop_database(name)


async def test_a_poll_of_the_large_table_is_quick(large: str) -> None:
    async with client_of(config(large)) as client:
        facts = await facts_of(client)
        assert sum(counts.waiting.n for counts in facts.counts) == 5_000
        assert sum(counts.stuck.n for counts in facts.counts) == pytest.approx(250, abs=60)
        assert len(facts.running) == 500
        assert facts.running[0].overdue == max(job.overdue or 0 for job in facts.running)
        reading = await client.poll()
        assert reading.took < 1.0  # measured: 0.03 s; the limit allows for a busy machine


# --- what goes wrong -----------------------------------------------------------------------------------------------


async def problem_of(dsn: str, **options: str) -> str:
    async with client_of(config(dsn, **options)) as client:
        reading = await client.poll()
        assert reading.value is None
        assert reading.problem is not None
        assert reading.failing_since is not None
        (check, *_) = [check for check in await client.checks() if check.state == "failed"]
        assert reading.problem.why.split(" (")[0] in check.text or check.remedy
        return reading.problem.line()


async def test_each_failure_has_its_line(postgres: Server, database: str, empty_database: str) -> None:
    assert "connection refused; is PostgreSQL running there?" in await problem_of("host=127.0.0.1 port=1 dbname=x")
    assert "no server on that socket" in await problem_of("host=/nowhere dbname=x")
    assert "no such database" in await problem_of(postgres.dsn("absent"))
    assert "no such user" in await problem_of(f"host={postgres.folder} dbname=postgres user=absent")
    missing = await problem_of(empty_database)
    assert (
        'the job table is missing (relation "public.worktop_jobs" does not exist); run `worktop queue install`'
        in missing
    )
    assert "is missing" in await problem_of(database, schema="absent")


async def test_a_wrong_password_is_not_shown(postgres: Server) -> None:
    postgres.execute("DO $$ BEGIN CREATE USER guarded PASSWORD 'right'; EXCEPTION WHEN duplicate_object THEN END $$")
    for dsn in (
        f"host={postgres.folder} dbname=guarded user=guarded password=SECRET-word",
        f"postgresql://guarded:SECRET-word@/guarded?host={postgres.folder}",
    ):
        with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS guarded")
            connection.execute("CREATE DATABASE guarded")
        line = await problem_of(dsn)
        assert "wrong password; set PGPASSWORD or ~/.pgpass" in line
        assert "SECRET" not in line
        assert "SECRET" not in repr(config(dsn))
    assert "asks for a password" in await problem_of(f"host={postgres.folder} dbname=guarded user=guarded")
    postgres.drop_database("guarded")


async def test_a_dsn_that_cannot_be_read_is_not_repeated() -> None:
    async with client_of(config("postgresql://app:SECRET@h:port:7/x y=z SECRET")) as client:
        reading = await client.poll()
        assert reading.problem is not None
        assert "cannot be read as a connection string" in reading.problem.line()
        assert "SECRET" not in reading.problem.line()


async def test_without_rights_it_says_what_to_grant(postgres: Server, database: str) -> None:
    postgres.execute("DO $$ BEGIN CREATE USER visitor; EXCEPTION WHEN duplicate_object THEN END $$")
    dsn = database.replace("user=postgres", "user=visitor")
    assert "permission denied (permission denied for table worktop_jobs); grant" in await problem_of(dsn)
    async with client_of(config(dsn)) as client:
        failed = [check for check in await client.checks() if check.state == "failed"]
        assert failed[0].remedy == 'GRANT SELECT ON "public"."worktop_jobs" TO visitor'
        with psycopg.connect(database, autocommit=True) as connection:
            for table in ("worktop_jobs", "worktop_queues", "worktop_schema"):
                connection.execute(sql.SQL("GRANT SELECT ON {} TO visitor").format(sql.Identifier(table)))
        assert all(check.state == "ok" for check in await client.checks())
        await facts_of(client)
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("ALTER TABLE worktop_jobs ENABLE ROW LEVEL SECURITY")
        hidden = [check for check in await client.checks() if check.name == "row security"]
        assert hidden[0].state == "warning"
        assert "public.worktop_jobs" in hidden[0].text


async def test_a_missing_index_is_named_with_what_mends_it(database: str, db: Db) -> None:
    db.execute("DROP INDEX worktop_jobs_due")
    async with client_of(config(database)) as client:
        (check,) = [check for check in await client.checks() if check.state != "ok"]
        assert check.name == "indexes"
        assert "worktop_jobs_due (for waiting jobs and the oldest of them)" in check.text
        db.execute(check.remedy.encode())
        assert all(check.state == "ok" for check in await client.checks())


@pytest.mark.parametrize("behind_a_pool", [False, True])
async def test_it_cannot_write(database: str, monkeypatch: pytest.MonkeyPatch, behind_a_pool: bool) -> None:
    async def connected(database: Database, read_only: bool) -> tuple[Connection, bool]:
        connection, pooled = await connect(database, read_only=read_only and not behind_a_pool)
        assert not pooled
        await connection.set_read_only(True)
        return connection, behind_a_pool

    async def write(connection: Connection) -> None:
        timeout = await connection.execute("SHOW statement_timeout")
        assert await timeout.fetchone() == ("5s",)
        await connection.execute("SELECT worktop_enqueue('q', 't')")

    monkeypatch.setattr("console.queue.client.connect", connected)
    async with client_of(config(database)) as client:
        await facts_of(client)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await client._ask(write)
        await facts_of(client)


async def recovered(client: QueueClient, seconds: float = 30) -> QueueFacts:
    deadline = time.monotonic() + seconds
    while (reading := await client.poll()).problem is not None:
        assert time.monotonic() < deadline, reading.problem.line()
        await asyncio.sleep(0.1)
    assert reading.value is not None
    return reading.value


async def test_a_restarted_server_is_survived_with_the_last_good_facts(own_postgres: Server) -> None:
    dsn = own_postgres.dsn()
    install(Database(dsn=dsn))
    own_postgres.execute("SELECT worktop_enqueue('mail', 't')")
    async with client_of(config(dsn)) as client:
        good = await facts_of(client)
        own_postgres.stop()
        down = await client.poll()
        assert down.value == good
        assert down.problem is not None
        assert "the server closed the connection; it was restarted; reconnecting" in down.problem.line()
        still = await client.poll()
        assert still.problem is not None
        assert "no server on that socket" in still.problem.line()
        assert still.failing_since == down.failing_since
        own_postgres.start()
        assert (await recovered(client)).counts[0].waiting == Count(1)
        assert (await client.poll()).failing_since is None


async def test_a_frozen_server_is_given_up_and_found_again(
    own_postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(Database(dsn=own_postgres.dsn()))
    monkeypatch.setattr("console.queue.client.ANSWER_TIMEOUT", 1.0)
    async with client_of(config(own_postgres.dsn())) as client:
        await facts_of(client)
        assert client._connection is not None
        frozen = client._connection.info.backend_pid
        os.kill(frozen, signal.SIGSTOP)
        try:
            start = time.monotonic()
            reading = await client.poll()
            assert time.monotonic() - start < 5
            assert reading.problem is not None
            assert "no answer within 1 s" in reading.problem.line()
            await recovered(client)
        finally:
            os.kill(frozen, signal.SIGCONT)


async def test_calls_may_overlap(database: str, db: Db) -> None:
    db.execute("SELECT worktop_enqueue('mail', 't') FROM generate_series(1, 3)")
    async with client_of(config(database)) as client:
        reading, page, job = await asyncio.gather(client.poll(), client.page(JobQuery()), client.job("2"))
        assert reading.problem is None
        assert (len(page.jobs), job and job.id) == (3, "2")
