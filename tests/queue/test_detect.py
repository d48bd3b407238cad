"""Which queue a database holds: recognised by its tables and columns, asked for where that cannot be told."""

from __future__ import annotations

import asyncio

import psycopg

from console.config import Config, Database
from console.errors import QueueError
from console.fleet.model import JobQuery
from console.queue import preset as presets
from console.queue.client import QueueClient
from console.queue.detect import choose, matches
from console.queue.install import install
from tests.queue import libraries
from tests.queue.acting import acting

AUTO = Database(preset="auto")


def run(dsn: str, statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statements.encode())


async def said(dsn: str, **options: str) -> str:
    """What the reader's problem is, or how it recognised the queue; the writer must say the same."""
    async with acting(dsn, **options) as console:
        reading = await console.reader.poll()
        try:
            await console.writer.ready()
        except QueueError as error:
            assert reading.problem is not None
            assert error.problem.line() == reading.problem.line()
            assert [check.text for check in await console.reader.checks()] == [
                f"{error.problem.what}: {error.problem.why}"
            ]
        if reading.problem is not None:
            return f"{reading.problem.line()}"
        assert reading.value is not None
        return f"{reading.value.recognised} {(await console.writer.identity()).split('/', 2)[2]}"


async def test_the_queue_of_a_database_is_found(database: str, procrastinate_database: str) -> None:
    assert await said(database) == "worktop's own job table, 25/25 columns matched public/worktop"
    assert await said(database, preset="worktop") == await said(database)
    assert await said(procrastinate_database) == "procrastinate 3.x, 18/18 columns matched public/procrastinate"


async def test_its_schema_is_found_too(empty_database: str, pgboss_database: str) -> None:
    assert await said(pgboss_database) == "pg-boss 12.38+, 31/31 columns matched pgboss/pg-boss"
    assert await said(pgboss_database, preset="pg-boss") == await said(pgboss_database)
    install(Database(dsn=empty_database, schema="jobs"))
    assert await said(empty_database) == "worktop's own job table, 25/25 columns matched jobs/worktop"


async def test_of_two_a_person_must_choose_one(database: str) -> None:
    libraries.install_procrastinate(database)
    text = await said(database)
    assert "there are 2: procrastinate 3.x in schema public, worktop's own job table in schema public" in text
    assert 'choose one in [database]: preset = "procrastinate", schema = "public"' in text
    assert (await said(database, preset="procrastinate")).startswith("procrastinate 3.x")
    install(Database(dsn=database, schema="jobs"))
    assert (await said(database, schema="jobs")).endswith("jobs/worktop")
    assert (await said(database, preset="worktop")).endswith("public/worktop")  # as without a schema it always was


async def test_another_version_is_not_taken_for_a_known_one(procrastinate_database: str) -> None:
    run(
        procrastinate_database, "ALTER TABLE procrastinate_jobs DROP COLUMN worker_id; DROP TABLE procrastinate_workers"
    )
    text = await said(procrastinate_database)
    assert "schema public resembles procrastinate 3.x, 15/18 columns matched" in text
    assert "procrastinate_jobs.worker_id, procrastinate_workers.id, procrastinate_workers.last_heartbeat" in text
    # a person who names it is warned, and sees what can be read
    async with acting(procrastinate_database, preset="procrastinate") as console:
        (check,) = [check for check in await console.reader.checks() if check.name == "job queue"]
        assert (check.state, "15/18 columns matched" in check.text) == ("warning", True)
        assert (await console.reader.page(JobQuery(state="failed"))).jobs == ()
        await console.writer.ready()
        assert console.writer.refusal("retry") == (
            "this is another version of procrastinate 3.x: it has no procrastinate_jobs.worker_id, "
            "procrastinate_workers.id, procrastinate_workers.last_heartbeat"
        )


async def test_without_any_it_is_worktops_own_that_is_missing_until_it_is_there(empty_database: str) -> None:
    client = QueueClient(Config(database=Database(dsn=empty_database, preset="auto", configured=True)))
    try:
        reading = await client.poll()
        assert reading.problem is not None
        assert "the job table is missing" in reading.problem.why
        assert "worktop queue install" in reading.problem.do
        libraries.install_procrastinate(empty_database)
        await asyncio.sleep(0)
        reading = await client.poll()
        assert reading.problem is None
        assert reading.value is not None
        assert reading.value.recognised.startswith("procrastinate 3.x")
    finally:
        await client.close()


def test_the_fingerprint_of_each_preset_is_its_own() -> None:
    every = [presets.load(name) for name in presets.names()]
    assert {preset.name for preset in every} >= {"worktop", "procrastinate", "pg-boss"}
    for preset in every:
        assert preset.fingerprint, preset.name
        columns = {("jobs", table): frozenset(names) for table, names in preset.fingerprint.items()}
        found = matches(every, columns)
        chosen = choose(found, AUTO)
        assert chosen is not None
        assert (chosen.preset, chosen.schema, chosen.missing) == (preset, "jobs", ())
    assert matches(every, {("public", "job"): frozenset({"id", "name"})}) == []
    assert choose([], AUTO) is None
