"""What the console's reads of worktop's own job table cost the database, on a large table.

    python -m tests.bench.queue_bench --rows 1000000 --rows 10000000

Builds the table in a PostgreSQL of its own, reads it with the console's client, and prints Markdown. Times are the
server's own, in milliseconds: "CPU" is what the console's backend used of a core, which a busy machine does not change;
the others are planning and execution by pg_stat_statements. 92 % of the rows are done, 4 % wait, 2 %
run, 2 % have failed, in eight queues. "churned": after a tenth of the rows was updated and nothing was vacuumed.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psycopg

from console.config import Config, Database
from console.errors import QueueError
from console.fleet.model import JobQuery, JobSort, Role
from console.queue.client import QueueClient
from console.queue.install import install
from console.queue.preset import ListedState
from tests.postgres import Server, running_server

QUEUES = 8
BYTES_PER_ROW = 620  # of the heap and all indexes, and what building them takes besides
POLLS = 20
SETTINGS = """
shared_preload_libraries = 'pg_stat_statements'
pg_stat_statements.track_planning = on
shared_buffers = 1GB
maintenance_work_mem = 512MB
max_wal_size = 2GB
wal_level = minimal
max_wal_senders = 0
autovacuum = off
"""

FILL = """
INSERT INTO worktop_jobs (queue, type, payload, status, priority, attempts, run_after, created_at, started_at,
                          finished_at, lease_host, lease_pid, lease_token, lease_expires, last_error)
SELECT 'q' || i % 8, 'type' || i % 5, jsonb_build_object('n', i), status, i % 7 % 3, i % 5,
       CASE WHEN status = 'waiting' AND i % 10 = 0 THEN now() + at ELSE now() - at END, now() - at,
       CASE WHEN status <> 'waiting' THEN now() - at END,
       CASE WHEN status IN ('done', 'failed') THEN now() - at + interval '1 s' END,
       CASE WHEN status <> 'waiting' THEN 'web1' END, CASE WHEN status <> 'waiting' THEN 4711 END,
       CASE WHEN status <> 'waiting' THEN i END,
       CASE WHEN status = 'running' THEN now() + ((i % 1000) - 100) * interval '1 s' END,
       CASE WHEN status = 'failed'
            THEN repeat('  File "handlers.py", line 12, in send' || chr(10), 20) || 'Timeout ' || i END
FROM (SELECT i, (%(rows)s - i)::float8 / %(rows)s * interval '7 days' AS at,
             (array['waiting', 'waiting', 'running', 'failed'])[1 + (i / 8 %% 50)] AS live
      FROM generate_series(1, %(rows)s) AS i) AS made
CROSS JOIN LATERAL (SELECT coalesce(live, 'done') AS status) AS named
""".replace("i % ", "i %% ").replace("7 % 3", "7 %% 3")


def build(server: Server, rows: int) -> tuple[str, float]:
    """The DSN of a database with a table of so many rows, and the seconds that took."""
    began = time.monotonic()
    name = server.new_database()
    dsn = server.dsn(name)
    install(Database(dsn=dsn))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")
        indexes = connection.execute(
            "SELECT indexname FROM pg_indexes WHERE tablename = 'worktop_jobs' AND indexname NOT LIKE '%pkey'"
        ).fetchall()
        for (index,) in indexes:
            connection.execute(f'DROP INDEX "{index}"')
        connection.execute(FILL, {"rows": rows})
    install(Database(dsn=dsn))  # makes the indexes again
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE worktop_jobs")
    return dsn, time.monotonic() - began


class Meter:
    """The server's time in one database, by pg_stat_statements."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True, application_name="meter")

    def close(self) -> None:
        self._connection.close()

    def reset(self) -> None:
        self._connection.execute("SELECT pg_stat_statements_reset()")

    def total(self, *parts: str) -> float:
        """Milliseconds since the reset, of the statements that hold one of the parts."""
        row = self._connection.execute(
            """SELECT coalesce(sum(total_exec_time + total_plan_time), 0) FROM pg_stat_statements
               WHERE query NOT LIKE '%%pg_stat_statements%%'
                     AND (%(parts)s::text[] = '{}' OR query LIKE ANY (%(parts)s::text[]))""",
            {"parts": [f"%{part}%" for part in parts]},
        ).fetchone()
        assert row is not None
        return float(row[0])


@contextmanager
def metered(dsn: str) -> Iterator[Meter]:
    meter = Meter(dsn)
    try:
        yield meter
    finally:
        meter.close()


def cpu_of(client: QueueClient) -> float:
    """Milliseconds of CPU that the client's backend has used."""
    assert client._connection is not None
    pid = client._connection.info.backend_pid
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


def row(*cells: object) -> None:
    print(
        "| " + " | ".join(f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in cells) + " |", flush=True
    )


async def refreshes(dsn: str, label: str, by_type: bool = False) -> None:
    """The first poll of a console, the others, and what is read only every so many seconds."""
    types = ("type1", "type2") if by_type else ()
    roles = tuple(Role(name=f"r{number}", queues=(f"q{number}",), types=types) for number in range(QUEUES))
    client = QueueClient(Config(database=Database(dsn=dsn, configured=True), roles=roles))
    try:
        with metered(dsn) as meter:
            meter.reset()
            reading = await client.poll()
            assert reading.problem is None, reading.problem.line()
            first, first_cpu = meter.total(), cpu_of(client)
            trends, done = meter.total("AS ended"), meter.total("EXPLAIN", "pg_stat_all_tables")
            times, cpu, walls = [], [], []
            for _ in range(POLLS):
                meter.reset()
                began, used = time.monotonic(), cpu_of(client)
                await client.poll()
                walls.append((time.monotonic() - began) * 1000)
                cpu.append(cpu_of(client) - used)
                times.append(meter.total())
            client._trends_due = client._done_due = 0.0
            meter.reset()
            used = cpu_of(client)
            await client.poll()
            row(
                label, first_cpu, first, statistics.median(cpu), max(cpu), statistics.median(times), max(times),
                statistics.median(walls), trends, done, meter.total("AS ended"), cpu_of(client) - used,
            )  # fmt: skip
    finally:
        await client.close()


async def pages(dsn: str, label: str) -> None:
    """First and tenth page of every state and order, and filters."""
    client = QueueClient(Config(database=Database(dsn=dsn, configured=True)))
    every: list[tuple[ListedState, JobSort]] = [
        ("waiting", "id"), ("waiting", "age"), ("waiting", "priority"), ("waiting", "attempts"), ("running", "id"),
        ("running", "age"), ("running", "overdue"), ("stuck", "id"), ("stuck", "overdue"), ("failed", "id"),
        ("failed", "finished"), ("failed", "attempts"), ("done", "id"), ("done", "finished"), ("done", "attempts"),
    ]  # fmt: skip
    filters = [
        ("no text", JobQuery()),
        ("rare text", JobQuery(state="failed", contains="timeout 1003")),
        ("absent text", JobQuery(state="done", contains="absent")),
        ("type", JobQuery(state="waiting", types=("type3",))),
    ]
    queries = [
        (f"{state} by {sort}{' desc' if down else ''}", JobQuery(state=state, sort=sort, descending=down))
        for state, sort in every
        for down in (False, True)
    ]
    try:
        await client.poll()
        with metered(dsn) as meter:
            for name, query in [*queries, *filters]:
                times: list[float | str] = []
                after, found, walls = None, 0, []
                try:
                    for number in range(10):
                        meter.reset()
                        began, used = time.monotonic(), cpu_of(client)
                        page = await client.page(msgspec.structs.replace(query, after=after))
                        walls.append((time.monotonic() - began) * 1000)
                        if number in (0, 9):
                            times += [cpu_of(client) - used, meter.total()]
                        if number == 0:
                            found, total = len(page.jobs), page.total
                        after = page.next
                        if after is None:
                            break
                    shown = "none" if total is None else f"{total.n} {total.kind}"
                    row(label, name, found, shown, *times[:4], *[""] * (4 - len(times)), max(walls))
                except QueueError as error:
                    row(label, name, "", str(error), "", "", "", "", "")
    finally:
        await client.close()


def heads(*names: str) -> None:
    print()
    row(*names)
    row(*["---"] * len(names))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="What the reads of the job table cost the database.")
    parser.add_argument("--rows", type=int, action="append", help="rows of the table; may be repeated")
    parser.add_argument("--no-churn", action="store_true", help="leave the churned table out")
    options = parser.parse_args(arguments)
    for rows in options.rows or [1_000_000]:
        with running_server() as server:
            free = shutil.disk_usage(server.folder).free
            if rows * BYTES_PER_ROW > free * 0.8:
                need = rows * BYTES_PER_ROW >> 30
                print(f"\n{rows:,} rows: left out, they need about {need} GB and {free >> 30} GB are free")
                continue
            server.stop()
            with (server.data / "postgresql.conf").open("a") as settings:
                settings.write(SETTINGS)
            server.start()
            dsn, seconds = build(server, rows)
            with psycopg.connect(dsn) as connection:
                size = connection.execute("SELECT pg_total_relation_size('worktop_jobs')").fetchone()
                assert size is not None
                version = connection.info.parameter_status("server_version")
            print(f"\n## {rows:,} rows: {int(size[0]) / 2**30:.2f} GB, built in {seconds:.0f} s, PostgreSQL {version}")
            measure(dsn, "clean")
            if not options.no_churn:
                with psycopg.connect(dsn, autocommit=True) as connection:
                    connection.execute("UPDATE worktop_jobs SET priority = priority WHERE id % 10 = 3")
                print("\nAfter an update of every tenth row, not vacuumed:")
                measure(dsn, "churned")


def measure(dsn: str, label: str) -> None:
    heads(
        "table", "first poll, CPU", "time", "poll, CPU, median", "worst", "time, median", "worst",
        "seen by the console, median", "first trends", "first done", "trends", "poll with both, CPU",
    )  # fmt: skip
    asyncio.run(refreshes(dsn, label))
    asyncio.run(refreshes(dsn, f"{label}, roles by type", by_type=True))
    heads(
        "table",
        "page",
        "jobs",
        "total",
        "first page, CPU",
        "time",
        "tenth page, CPU",
        "time",
        "slowest, seen by the console",
    )
    asyncio.run(pages(dsn, label))


if __name__ == "__main__":
    main()
