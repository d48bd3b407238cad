"""By which plans the server answers: every statement by an index, a handful of entries each, whatever became of the
table: analysed, churned since, or never analysed."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, get_args

import psycopg
import pytest
from psycopg import sql

from console.config import Database
from console.fleet.model import JobSort
from console.queue import preset as presets
from console.queue.connection import PLANNING, connect
from console.queue.pages import Filters, Pages
from console.queue.preset import ListedState
from console.queue.reads import Reads
from tests.postgres import Server

Statement = tuple[sql.Composed, dict[str, object]]
STATES: tuple[ListedState, ...] = get_args(ListedState)
SORTS: tuple[JobSort, ...] = get_args(JobSort)
QUEUES = [f"q{number}" for number in range(8)]


def fill(connection: psycopg.Connection[Any]) -> None:
    """40 000 done, 5 000 waiting, 500 running and 300 failed jobs in eight queues."""
    connection.execute("ALTER TABLE worktop_jobs SET (autovacuum_enabled = off)")
    for status, number in (("done", 40_000), ("waiting", 5_000), ("running", 500), ("failed", 300)):
        connection.execute(
            """INSERT INTO worktop_jobs (queue, type, status, priority, started_at, finished_at, lease_token,
                                         lease_expires)
               SELECT 'q' || i %% 8, 't' || i %% 3, %(status)s, i %% 4, now(),
                      CASE WHEN %(status)s IN ('done', 'failed') THEN now() - i * interval '1 s' END,
                      CASE WHEN %(status)s = 'running' THEN i END,
                      CASE WHEN %(status)s = 'running' THEN now() + (i - 250) * interval '1 s' END
               FROM generate_series(1, %(number)s) AS i""",
            {"status": status, "number": number},
        )


@pytest.fixture(scope="module", params=["analysed", "churned", "never analysed"])
def table(
    request: pytest.FixtureRequest, postgres: Server, installed_template: str
) -> Iterator[psycopg.Connection[Any]]:
    name = postgres.new_database(installed_template)
    with psycopg.connect(postgres.dsn(name), autocommit=True) as connection:
        fill(connection)
        if request.param != "never analysed":
            connection.execute("VACUUM ANALYZE worktop_jobs")
        if request.param == "churned":
            connection.execute("UPDATE worktop_jobs SET priority = priority + 1 WHERE id % 10 = 3")
        for setting, value in PLANNING.items():
            connection.execute("SELECT set_config(%s, %s, false)", (setting, value))
        yield connection
    postgres.drop_database(name)


def reads_of(by_type: bool) -> dict[str, Statement]:
    reads = Reads(presets.load("worktop"), "public", by_type=by_type)
    asked = json.dumps(
        [
            {"place": place, "queue": queue, "types": ["t1"] if by_type else None, "wanted": ["waiting", "done"]}
            for place, queue in enumerate(QUEUES)
        ]
    )
    found: dict[str, Statement] = {
        "queues": (reads.queues(), {}),
        "counts": (reads.counts(), {"asked": asked}),
        "running": reads.running(QUEUES),
        "running of many queues": reads.running([*QUEUES, *(f"other{number}" for number in range(30))]),
        "job": (reads.job(), {"id": "77"}),
    }
    ended = reads.ended()
    assert ended is not None
    for minutes in (2, 60):
        found[f"ended {minutes}"] = (ended, {"asked": asked, "minutes": minutes, "cap": 60_000})
    for state in STATES:
        total = reads.total(state)
        assert total is not None
        found[f"total {state}"] = (total, {"queues": QUEUES})
    return found


def scans_of(node: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each scan of the job table: its kind, and the kinds of the nodes up to the next limit."""
    kind = node["Node Type"]
    if node.get("Relation Name") == "worktop_jobs":
        yield kind, above
    for child in node.get("Plans", ()):
        yield from scans_of(child, ("Limit",) if kind == "Limit" else (*above, kind))


def kept_plan(connection: psycopg.Connection[Any], statement: Statement) -> sql.Composed:
    """Prepare the statement; what runs it by the plan that is kept."""
    text = statement[0].as_string(None)
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
    for place, name in enumerate(names, 1):
        text = text.replace(f"%({name})s", f"${place}")
    connection.execute(f"PREPARE kept AS {text.replace('%%', '%')}".encode())
    return sql.SQL("EXECUTE kept ({})").format(sql.SQL(", ").join(sql.Literal(statement[1][name]) for name in names))


def by_index_and_bounded(connection: psycopg.Connection[Any], statement: Statement) -> None:
    row = connection.execute(sql.SQL("EXPLAIN (FORMAT JSON) {}").format(statement[0]), statement[1]).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    scans = list(scans_of(plan))
    assert scans
    for kind, above in scans:
        assert kind in ("Index Scan", "Index Only Scan"), json.dumps(plan, indent=1)
        assert above[:1] == ("Limit",), json.dumps(plan, indent=1)
        assert "Sort" not in above, json.dumps(plan, indent=1)


@pytest.mark.parametrize("by_type", [False, True])
def test_every_read_goes_by_an_index(table: psycopg.Connection[Any], by_type: bool) -> None:
    for statement in reads_of(by_type).values():
        by_index_and_bounded(table, statement)


@pytest.mark.parametrize("by_type", [False, True])
def test_the_plans_that_polls_keep_go_by_an_index(table: psycopg.Connection[Any], by_type: bool) -> None:
    polled = {name: statement for name, statement in reads_of(by_type).items() if name in ("counts", "running")}
    assert len(polled) == 2
    table.execute("SET plan_cache_mode = force_generic_plan")
    try:
        for statement in polled.values():
            by_index_and_bounded(table, (kept_plan(table, statement), {}))
            table.execute("DEALLOCATE kept")
    finally:
        table.execute("RESET plan_cache_mode")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("sort", SORTS)
def test_every_page_goes_by_an_index(table: psycopg.Connection[Any], state: ListedState, sort: JobSort) -> None:
    pages = Pages(presets.load("worktop"), "public")
    every = [Filters(), Filters(types=True, contains=True, pinned=True)]
    for descending, filters in itertools.product((False, True), every):
        values: dict[str, object] = {
            "queues": QUEUES, "limit": 11, "window": 11, "types": ["t1"], "contains": "x", "pinned": "7",
        }  # fmt: skip
        first = pages.page(state, sort, descending, filters, after=False)
        assert first is not None
        by_index_and_bounded(table, (first.statement, values))
        keys = [key.type for key in pages._keys(pages.rows_of(state)[0], sort, descending, first.windowed)[:-1]]
        assert first.windowed or first.keys in (0, len(keys))
        somewhere = {"timestamptz": "2026-01-02 03:04:05+00", "bigint": "1", "float8": "1"}
        place = {f"key{number}": somewhere[type] for number, type in enumerate(keys)}
        following = pages.page(state, sort, descending, filters, after=True)
        assert following is not None
        by_index_and_bounded(
            table, (following.statement, values | place | {"id": "1000", "queue": "q3", "top": "9000"})
        )


def test_the_pinned_job_is_found_by_its_id(table: psycopg.Connection[Any]) -> None:
    pages = Pages(presets.load("worktop"), "public")
    for state in STATES:
        statement = pages.pinned(state, Filters(types=True))
        assert statement is not None
        values = {"queues": QUEUES, "types": ["t1"], "pinned": "7"}
        row = table.execute(sql.SQL("EXPLAIN (FORMAT JSON) {}").format(statement), values).fetchone()
        assert row is not None
        assert {kind for kind, _ in scans_of(row[0][0]["Plan"])} <= {"Index Scan", "Index Only Scan"}


async def test_a_connection_plans_for_short_statements(database: str) -> None:
    connection, _ = await connect(Database(dsn=database), read_only=True)
    try:
        for name, value in {**PLANNING, "statement_timeout": "5s"}.items():
            row = await (await connection.execute(f"SHOW {name}".encode())).fetchone()
            assert row == (value,)
    finally:
        await connection.close()
