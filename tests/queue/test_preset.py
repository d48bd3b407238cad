"""The form of a preset: five ways of claiming and four ways of time, rendered to SQL that PostgreSQL takes."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.config import Config, Database
from console.errors import ConfigError
from console.fleet.model import Count, JobQuery, JobSort
from console.queue import preset as presets
from console.queue.client import QueueClient
from console.queue.preset import ListedState
from console.queue.reads import Reads
from console.queue.rows import holder_of
from tests.queue.sketches import SKETCHES

STATES: tuple[ListedState, ...] = ("waiting", "running", "stuck", "failed", "done")


def test_the_sketches_cover_every_way_of_claiming_and_of_time() -> None:
    sketched = [presets.parse(sketch.preset) for sketch in SKETCHES.values()]
    assert {preset.claim for preset in sketched} == {
        "status",
        "lock-columns",
        "visibility",
        "claim-table",
        "advisory-lock",
    }
    assert {preset.time for preset in sketched} == {"timestamptz", "naive-utc", "naive-zone", "epoch-s", "epoch-ms"}
    assert {preset.holder.kind for preset in sketched} == {"columns", "text", "worker-table", "none"}


@contextlib.contextmanager
def _locked(dsn: str, key: int | None) -> Iterator[None]:
    if key is None:
        yield
        return
    with psycopg.connect(dsn, autocommit=True, application_name="que worker") as session:
        session.execute("SELECT pg_advisory_lock(%s)", (key,))
        yield


@pytest.mark.parametrize("name", SKETCHES)
async def test_every_statement_of_a_sketch_works_in_a_session_of_another_zone(
    name: str, empty_database: str, tmp_path: Path
) -> None:
    sketch = SKETCHES[name]
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        connection.execute(sketch.tables.encode())
    file = tmp_path / "sketch.toml"
    file.write_text(sketch.preset)
    # naive columns must not be shifted by the zone of the console's own session
    database = Database(dsn=f"{empty_database} options='-c timezone=Asia/Tokyo'", preset=str(file))
    client = QueueClient(Config(database=database))
    try:
        with _locked(empty_database, sketch.lock):
            reading = await client.poll()
            assert reading.problem is None, reading.problem.line()
            facts = reading.value
            assert facts is not None
            (counts,) = [counts for counts in facts.counts if counts.queue == "q"]
            assert (counts.waiting.n, counts.running.n) == (1, 1)
            assert counts.stuck.n == sketch.stuck
            assert counts.failed.n == sketch.failed
            assert counts.oldest_waiting == pytest.approx(60, abs=5)
            (running,) = facts.running
            if sketch.stuck:
                assert running.overdue == pytest.approx(30, abs=5)
            if sketch.holder:
                assert running.holder is not None
                assert f"{running.holder.host} {running.holder.pid}" == sketch.holder
            (trend,) = [trend for trend in facts.trends if trend.queue == "q"]
            assert len(trend.points) >= 16
            if sketch.done:
                assert counts.last_finished == pytest.approx(10, abs=5)
                assert counts.done_per_minute == pytest.approx(0.2)
            for state in STATES:
                page = await client.page(JobQuery(state=state, limit=10))
                expected = {
                    "waiting": 1,
                    "running": 1,
                    "stuck": sketch.stuck,
                    "failed": sketch.failed,
                    "done": sketch.done,
                }
                assert (len(page.jobs), page.next, page.total) == (expected[state], None, Count(expected[state])), state
                for sort, descending in itertools.product(get_args(JobSort), (False, True)):
                    query = JobQuery(state=state, sort=sort, descending=descending, limit=1)
                    sorted_ = await client.page(query)
                    assert [job.id for job in sorted_.jobs] == [job.id for job in page.jobs], (state, sort)
                    assert (sorted_.next, sorted_.note) == (None, ""), (state, sort)
                    filtered = await client.page(msgspec.structs.replace(query, contains="absent", types=("absent",)))
                    assert (filtered.jobs, filtered.total) == ((), Count(0))
                for job in page.jobs:
                    searched = await client.page(JobQuery(state=state, contains=job.id))
                    assert job.id in [found.id for found in searched.jobs]
                    found = await client.job(job.id)
                    assert found is not None
    finally:
        await client.close()


async def test_equal_ids_in_tables_of_two_queues_are_two_jobs(empty_database: str, tmp_path: Path) -> None:
    sketch = SKETCHES["pgmq"]
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(sketch.tables.encode())
        connection.execute("TRUNCATE q_q RESTART IDENTITY")
        for table in ("q_q", "q_other"):
            connection.execute(
                f"INSERT INTO {table} (msg_id, vt) SELECT i, now() - interval '1 h' FROM generate_series(1, 5) AS i"
            )
    file = tmp_path / "sketch.toml"
    file.write_text(sketch.preset)
    client = QueueClient(Config(database=Database(dsn=empty_database, preset=str(file))))
    try:
        for sort, descending in itertools.product(("id", "age", "attempts"), (False, True)):
            seen, after = [], None
            while True:
                query = JobQuery(sort=sort, descending=descending, limit=3, after=after)
                page = await client.page(query)
                seen += [(job.id, job.queue) for job in page.jobs]
                if (after := page.next) is None:
                    break
            assert len(seen) == len(set(seen)) == 10, (sort, descending)
    finally:
        await client.close()


def test_the_own_preset_is_there_and_its_indexes_are_those_of_the_schema() -> None:
    preset = presets.load("worktop")
    schema = Path(presets.__file__).with_name("schema.sql").read_text()
    for index in preset.indexes:
        definition = index.create.removeprefix("CREATE INDEX CONCURRENTLY ").replace("{schema}.", "")
        assert f"CREATE INDEX IF NOT EXISTS {definition};" in schema, index.name


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("claim = ", "claim = 'guess' # "), "claim: Invalid enum value 'guess'"),
        (('time = "naive-zone"', 'time = "naive"'), "time: Invalid enum value 'naive'"),
        (('zone = "America/New_York"', ""), 'zone: nothing; expected a zone such as "Europe/Berlin"'),
        (('at = "m.delivered_at"', ""), "lease.at: nothing; expected an expression, for the kind claimed"),
        (("timeout = 3600", ""), "lease.timeout: nothing; expected seconds"),
        (("{now}", "{today}"), "states.waiting.due: {today}; expected one of {schema}, {schema_name}, {now}"),
        (('id = "m.id"', 'identity = "m.id"'), "fields: Object contains unknown field `identity`"),
        (('id = "m.id"', ""), "fields.id: nothing; expected an expression"),
        (("[fields]", "[fields"), "not TOML"),
    ],
)
def test_a_faulty_preset_is_refused_with_key_and_expectation(change: tuple[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        presets.parse(SKETCHES["symfony"].preset.replace(*change), "mine.toml")
    assert str(caught.value).startswith("preset mine.toml")
    assert said in str(caught.value)


def test_an_unknown_preset_names_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"found 'oracle'; expected one of: .*worktop"):
        presets.load("oracle")


def test_a_name_of_a_schema_and_a_queue_cannot_break_out() -> None:
    preset = presets.parse(SKETCHES["pgmq"].preset)
    text = Reads(preset, 'jobs"; DROP TABLE x; --', queues=["a'; DROP TABLE y; --"]).running(["q"])[0].as_string(None)
    assert '"jobs""; DROP TABLE x; --"."q_a\'; DROP TABLE y; --"' in text
    assert "SELECT 'a''; DROP TABLE y; --'::text AS queue" in text


@given(st.text(max_size=60))
def test_a_holder_text_never_raises(text: str) -> None:
    holder = holder_of((None, None, None, None, None, text, None, None), presets.parse(SKETCHES["delayed-job"].preset))
    assert holder is None or holder.text == text
