"""What a reclaim costs, and what it costs others, on a large table of worktop's own.

    python -m tests.bench.reclaim_bench [--total 5000000] [--repeats 3]

2 % of the rows (100,000 of 5,000,000) run and their leases have expired. They are returned to waiting by the console's
writer, with its journal written and flushed for each batch, and by one bare UPDATE, each in a fresh copy of the table,
in turn. Meanwhile one process sends heartbeats for rows that are about to be taken, and one claims and finishes jobs of
another queue; both also without any reclaim. Then the list of the 50 that are stuck for longest, with the index and
without. Prints Markdown. "CPU" is what the server's process for the reclaim used of a core, and the console's own: on
a machine that does other things too, these are what can be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import psycopg

from console.config import Config, Database
from console.fleet.model import JobQuery
from console.fleet.plan import RowChange, Selection
from console.queue.client import QueueClient
from console.queue.install import install
from console.queue.writer import QueueWriter
from tests.bench.queue_bench import FILL, SETTINGS, heads, metered, row
from tests.postgres import Server, running_server

STUCK = Selection(verb="reclaim", overdue_only=True)
BARE = b"""UPDATE worktop_jobs SET status = 'waiting', run_after = now(), reclaims = reclaims + 1, lease_token = NULL,
                  lease_expires = NULL WHERE status = 'running' AND lease_expires < now()"""
DROP = """DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT indexname FROM pg_indexes WHERE tablename = 'worktop_jobs' AND indexname NOT LIKE '%pkey'
    LOOP EXECUTE format('DROP INDEX %I', name); END LOOP; END $$"""


def build(server: Server, total: int) -> str:
    """The name of a database whose running rows have all expired."""
    name = server.new_database()
    dsn = server.dsn(name)
    install(Database(dsn=dsn))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")
        connection.execute(DROP.encode())
        connection.execute(FILL.replace("- 100) * interval", "- 1100) * interval").encode(), {"rows": total})
    install(Database(dsn=dsn))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            """INSERT INTO worktop_jobs (queue, type, payload)
               SELECT 'live', 'send', '{}' FROM generate_series(1, 30000)"""
        )
        connection.execute("VACUUM ANALYZE worktop_jobs")
    return name


def heartbeats(dsn: str, stop: Event, took: Any) -> None:
    """Renews leases of rows that are about to be reclaimed, as a slow but living holder would."""
    with psycopg.connect(dsn, autocommit=True, application_name="heartbeats") as connection:
        every = connection.execute("SELECT id, lease_token FROM worktop_jobs WHERE status = 'running'").fetchall()
        chance = random.Random(7)
        while not stop.is_set():
            began = time.perf_counter()
            try:
                connection.execute("SELECT worktop_heartbeat(%s, %s, '-1 second')", chance.choice(every))
            except psycopg.errors.RaiseException:
                pass
            except psycopg.Error as error:
                if error.sqlstate != "WT001":
                    raise
            took.append(time.perf_counter() - began)
            time.sleep(0.004)


def claims(dsn: str, stop: Event, took: Any) -> None:
    """Claims and finishes jobs of a queue that nobody reclaims."""
    with psycopg.connect(dsn, autocommit=True, application_name="claims") as connection:
        while not stop.is_set():
            began = time.perf_counter()
            found = connection.execute(
                "SELECT id, lease_token FROM worktop_claim('{live}', 'web1', 'boot', 'u', 1, 1)"
            ).fetchone()
            took.append(time.perf_counter() - began)
            if found:
                connection.execute("SELECT worktop_finish(%s, %s)", found)
            time.sleep(0.004)


class Reclaimed(NamedTuple):
    rows: int
    seconds: float
    server: float  # CPU seconds
    console: float
    note: str


class Journal:
    """As the console keeps it: each batch on the disk before its COMMIT."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(dir=".")  # noqa: SIM115 - closed with the process
        self.seconds = 0.0
        self.longest = 0.0

    def __call__(self, columns: tuple[str, ...], changes: Sequence[RowChange]) -> None:
        began = time.perf_counter()
        self._file.write(msgspec.json.encode((columns, changes)) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.seconds += time.perf_counter() - began
        self.longest = max(self.longest, time.perf_counter() - began)


def cpu_of(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any] | None) -> float:
    """Seconds of CPU that the connection's server process has used."""
    assert connection is not None
    return int(Path(f"/proc/{connection.info.backend_pid}/schedstat").read_text().split()[0]) / 1e9


async def by_console(dsn: str, batch: int) -> Reclaimed:
    writer = QueueWriter(Config(database=Database(dsn=dsn, configured=True)))
    journal, took = Journal(), list[float]()
    try:
        await writer.survey(STUCK)
        server, own, began = cpu_of(writer._session._connection), time.process_time(), time.perf_counter()

        def on_batch(rows: int, seconds: float) -> bool:
            took.append(seconds)
            return True

        done = await writer.apply(STUCK, batch=batch, before_commit=journal, on_batch=on_batch)
        seconds = time.perf_counter() - began
        server, own = cpu_of(writer._session._connection) - server, time.process_time() - own
    finally:
        await writer.close()
    assert not done.stopped, done.problem
    said = f"{done.batches} batches, {statistics.median(took) * 1000:.0f} ms each, {max(took) * 1000:.0f} at worst"
    note = f"{said}; journal {journal.seconds:.2f} s, {journal.longest * 1000:.0f} ms at worst"
    return Reclaimed(done.rows, seconds, server, own, note)


def bare(dsn: str) -> Reclaimed:
    with psycopg.connect(dsn, autocommit=True, application_name="bare") as connection:
        server, own, began = cpu_of(connection), time.process_time(), time.perf_counter()
        rows = connection.execute(BARE).rowcount
        seconds = time.perf_counter() - began
        return Reclaimed(rows, seconds, cpu_of(connection) - server, time.process_time() - own, "one UPDATE")


def nothing(dsn: str) -> Reclaimed:
    time.sleep(6)
    return Reclaimed(0, 6.0, 0.0, 0.0, "nothing is reclaimed for 6 s")


def measured(dsn: str, call: Callable[[str], Reclaimed], others: bool) -> tuple[Reclaimed, list[float], list[float]]:
    """Run the call on its own, or beside heartbeats and claims; what these took, in seconds."""
    with multiprocessing.Manager() as manager:
        stop = multiprocessing.Event()
        beats, claimed = manager.list(), manager.list()
        helpers = [
            multiprocessing.Process(target=heartbeats, args=(dsn, stop, beats)),
            multiprocessing.Process(target=claims, args=(dsn, stop, claimed)),
        ]
        if others:
            for process in helpers:
                process.start()
            while len(beats) < 20 or len(claimed) < 20:
                time.sleep(0.02)
            first = len(beats), len(claimed)
        else:
            first = 0, 0
        found = call(dsn)
        stop.set()
        for process in helpers:
            if process.pid:
                process.join()
        return found, sorted(beats[first[0] :]), sorted(claimed[first[1] :])


def quantile(values: Sequence[float], part: float) -> float:
    """Milliseconds."""
    return values[min(len(values) - 1, int(len(values) * part))] * 1000 if values else float("nan")


def reclaims(server: Server, template: str, repeats: int, batch: int) -> None:
    heads(
        "what", "beside it", "rows", "seconds", "server CPU, s", "console CPU, s", "heartbeat p50, ms", "p99", "worst",
        "claim p50, ms", "p99", "worst", "load", "note",
    )  # fmt: skip
    ours = f"console, {batch}"
    calls: dict[str, Callable[[str], Reclaimed]] = {
        "nothing": nothing,
        "bare UPDATE": bare,
        ours: lambda dsn: asyncio.run(by_console(dsn, batch)),
    }
    done: dict[tuple[str, bool], list[Reclaimed]] = {}
    for others in (True, False):
        for _ in range(repeats):
            for name, call in calls.items():
                if name == "nothing" and not others:
                    continue
                database = server.new_database(template)
                dsn = server.dsn(database)
                server.execute("CHECKPOINT")
                with psycopg.connect(
                    dsn, autocommit=True
                ) as connection:  # so that neither reads the copy from the disk
                    connection.execute("SELECT sum(length(last_error)) FROM worktop_jobs")
                found, beats, claimed = measured(dsn, call, others)
                done.setdefault((name, others), []).append(found)
                row(
                    name, "heartbeats, claims" if others else "", found.rows, f"{found.seconds:.2f}",
                    f"{found.server:.2f}", f"{found.console:.2f}", quantile(beats, 0.5), quantile(beats, 0.99),
                    quantile(beats, 1.0), quantile(claimed, 0.5), quantile(claimed, 0.99), quantile(claimed, 1.0),
                    os.getloadavg()[0], found.note,
                )  # fmt: skip
                server.drop_database(database)
    for others in (True, False):
        pairs = list(zip(done["bare UPDATE", others], done[ours, others], strict=True))
        beside = "beside heartbeats and claims" if others else "alone"
        print(f"\nconsole / bare UPDATE, {beside}: {_ratios([b.seconds / a.seconds for a, b in pairs])}", flush=True)
        print(f"  CPU of the server: {_ratios([b.server / a.server for a, b in pairs])}", flush=True)
        print(
            f"  CPU of both: {_ratios([(b.server + b.console) / (a.server + a.console) for a, b in pairs])}", flush=True
        )


def _ratios(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} (median of {', '.join(f'{value:.2f}' for value in values)})"


async def stuck_list(server: Server, template: str) -> None:
    """The fifty that are stuck for longest, with the index, and what is said without it."""
    dsn = server.dsn(template)
    client = QueueClient(Config(database=Database(dsn=dsn, configured=True)))
    query = JobQuery(state="stuck", sort="overdue", descending=True, limit=50)
    heads("stuck list of 50", "jobs", "the list, ms, median", "best", "its count up to 10 000", "best", "CPU of both")
    try:
        await client.poll()
        with metered(dsn) as meter:
            lists, counts, cpu = [], [], []
            for _ in range(30):
                meter.reset()
                used = cpu_of(client._connection)
                page = await client.page(query)
                cpu.append((cpu_of(client._connection) - used) * 1000)
                counts.append(meter.total("AS counted"))
                lists.append(meter.total() - counts[-1])
            row(
                "with the index", len(page.jobs), f"{statistics.median(lists):.2f}", f"{min(lists):.2f}",
                f"{statistics.median(counts):.2f}", f"{min(counts):.2f}", f"{statistics.median(cpu):.2f}",
            )  # fmt: skip
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("DROP INDEX worktop_jobs_lease")
        (told,) = [check for check in await client.checks() if check.name == "indexes"]
        print(f"\nwithout it, `worktop doctor`: {told.text}\n{told.remedy}")
    finally:
        await client.close()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="What a reclaim costs.")
    parser.add_argument("--total", type=int, default=5_000_000, help="rows of the table; 2 %% of them are reclaimed")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--batch", type=int, default=1000)
    options = parser.parse_args(arguments)
    with running_server() as server:
        server.stop()
        with (server.data / "postgresql.conf").open("a") as settings:
            settings.write(SETTINGS + "fsync = on\nsynchronous_commit = on\nfull_page_writes = on\n")
        server.start()
        began = time.monotonic()
        template = build(server, options.total)
        print(f"{options.total:,} rows, built in {time.monotonic() - began:.0f} s, fsync on")
        reclaims(server, template, options.repeats, options.batch)
        asyncio.run(stuck_list(server, template))


if __name__ == "__main__":
    main()
