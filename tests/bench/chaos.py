"""Workers are killed, stopped and cut off while two consoles reclaim: is every job done once, to the row?

    python -m tests.bench.chaos [--jobs 100000] [--workers 20] [--seed 1]

Real worker processes (console.worker) work through the jobs in a PostgreSQL of its own. Every second one of them is
killed (SIGKILL) and replaced; every third second one is stopped (SIGSTOP) until its leases have long run out, and goes
on then (SIGCONT); every fifth second connections are terminated, the consoles' too; the server crashes once and comes
back. Two consoles reclaim what has expired, both at once, all the time. A trigger writes down each change of a row's
status. When nothing is left the counts are printed, and must agree; the exit code is 1 when they do not.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from console.config import Config, Database
from console.errors import QueueError
from console.fleet.plan import RowChange, Selection
from console.queue.install import install
from console.queue.writer import QueueWriter
from tests.bench.chaos_worker import LEASE, worker
from tests.postgres import Server, running_server

STOPPED = 7.0
EXPIRED = Selection(verb="reclaim", overdue_only=True)
LOG = """
CREATE TABLE changes (job bigint, before text, after text, token bigint, reclaims integer);
CREATE FUNCTION log_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO changes VALUES (new.id, old.status, new.status, coalesce(old.lease_token, new.lease_token),
                                new.reclaims - old.reclaims);
    RETURN NULL;
END $$;
CREATE TRIGGER log_change AFTER UPDATE ON worktop_jobs FOR EACH ROW WHEN (old.status <> new.status)
    EXECUTE FUNCTION log_change();
"""
COUNTS = """SELECT (SELECT count(*) FROM worktop_jobs), (SELECT count(*) FROM worktop_jobs WHERE status = 'done'),
    (SELECT count(*) FROM worktop_jobs WHERE status = 'failed'),
    (SELECT coalesce(sum(attempts), 0) FROM worktop_jobs), (SELECT coalesce(sum(reclaims), 0) FROM worktop_jobs),
    (SELECT count(*) FROM worktop_jobs WHERE attempts > max_attempts + reclaims),
    (SELECT count(*) FROM changes WHERE before = 'waiting' AND after = 'running'),
    (SELECT count(*) FROM changes WHERE after = 'done'), (SELECT count(DISTINCT job) FROM changes WHERE after = 'done'),
    (SELECT count(*) FROM changes WHERE after = 'failed'),
    (SELECT count(*) FROM changes WHERE reclaims = 1),
    (SELECT count(*) FROM (SELECT FROM changes WHERE reclaims = 1 GROUP BY job, token HAVING count(*) > 1) AS twice),
    (SELECT max(reclaims) FROM worktop_jobs)"""


# --- what happens to them -------------------------------------------------------------------------------------------


class Chaos:
    def __init__(self, server: Server, dsn: str, chosen: argparse.Namespace) -> None:
        self.server = server
        self.dsn = dsn
        self.chosen = chosen
        self.chance = random.Random(chosen.seed)
        self.log, self.effects = str(server.folder / "workers.log"), str(server.folder / "effects")
        self.context = multiprocessing.get_context("forkserver")
        self.workers: list[Any] = []
        self.stopped: dict[int, float] = {}  # pid -> until when
        self.happened = Counter[str]()
        self.taken = Counter[tuple[str, str | None]]()  # (id, token) that a console wrote into its journal
        self.reclaimed = [0, 0]
        self.ended = False

    def start_worker(self) -> Any:
        process = self.context.Process(target=worker, args=(self.dsn, self.log, self.effects))
        process.start()
        return process

    def kill_one(self) -> None:
        place = self.chance.randrange(len(self.workers))
        process = self.workers[place]
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.join()
        self.stopped.pop(process.pid, None)
        self.workers[place] = self.start_worker()
        self.happened["killed"] += 1

    def stop_one(self) -> None:
        process = self.chance.choice(self.workers)
        if process.pid not in self.stopped:
            os.kill(process.pid, signal.SIGSTOP)
            self.stopped[process.pid] = time.monotonic() + STOPPED
            self.happened["stopped and continued"] += 1

    def go_on(self, all_of_them: bool = False) -> None:
        for pid, until in list(self.stopped.items()):
            if all_of_them or time.monotonic() > until:
                del self.stopped[pid]
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def cut_connections(self, number: int = 4) -> None:
        with (
            suppress(psycopg.Error),
            psycopg.connect(self.dsn, autocommit=True, application_name="chaos") as connection,
        ):
            rows = connection.execute(
                """SELECT pid, application_name FROM pg_stat_activity
                   WHERE datname = current_database() AND application_name LIKE 'worktop%'"""
            ).fetchall()
            consoles = [pid for pid, name in rows if name == "worktop actions"]
            for pid in self.chance.sample([pid for pid, _ in rows], min(number, len(rows))) + consoles[:1]:
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
                self.happened["connections terminated"] += 1

    async def restart_server(self) -> None:
        await asyncio.to_thread(self.server.stop, "immediate")
        await asyncio.sleep(1.0)
        await asyncio.to_thread(self.server.start)
        self.happened["server crashes"] += 1

    # --- the consoles ------------------------------------------------------------------------------------------------

    async def console(self, number: int) -> None:
        writer = QueueWriter(Config(database=Database(dsn=self.dsn, configured=True)))

        def keep(columns: tuple[str, ...], changes: Sequence[RowChange]) -> None:
            token = columns.index("lease_token")
            journal[:] = [(change.id, change.before[token]) for change in changes]

        def count(rows: int, seconds: float) -> bool:
            assert rows == len(journal)
            self.taken.update(journal)
            return True

        journal: list[tuple[str, str | None]] = []
        try:
            while not self.ended:
                with suppress(QueueError):  # the server is away and nothing could begin
                    done = await writer.apply(EXPIRED, batch=500, before_commit=keep, on_batch=count)
                    self.reclaimed[number] += done.rows
                    self.happened["reclaims that ended early: the database was away"] += bool(done.problem)
                    self.happened["rows of batches nobody knows of"] += done.unsure
                await asyncio.sleep(0.3)
        finally:
            await writer.close()

    # --- the whole ---------------------------------------------------------------------------------------------------

    def left(self) -> int | None:
        with suppress(psycopg.Error), psycopg.connect(self.dsn, application_name="chaos") as connection:
            row = connection.execute(
                """SELECT count(*) FROM worktop_jobs WHERE status IN ('waiting', 'running')"""
            ).fetchone()
            return int(row[0]) if row else None
        return None

    async def run(self) -> None:
        jobs = self.chosen.jobs
        self.workers = [self.start_worker() for _ in range(self.chosen.workers)]
        consoles = [asyncio.create_task(self.console(number)) for number in range(2)]
        crashed, second, began = False, 0, time.monotonic()
        left: int | None = jobs
        while left != 0:
            second += 1
            await asyncio.sleep(max(0.0, began + second - time.monotonic()))
            while self.happened["killed"] < time.monotonic() - began:  # each second, also when a turn took longer
                self.kill_one()
            if second % 3 == 0:
                self.stop_one()
            self.go_on()
            if second % 5 == 0:
                self.cut_connections()
            if not crashed and left is not None and left < jobs * 0.6:
                crashed = True
                await self.restart_server()
            now = await asyncio.to_thread(self.left)
            left = left if now is None else now
            if second % 30 == 0:
                print(
                    f"  {time.monotonic() - began:.0f} s, {left:,} jobs left, load {os.getloadavg()[0]:.0f}", flush=True
                )
            if time.monotonic() - began > self.chosen.timeout:
                print(f"gave up after {self.chosen.timeout} s")
                break
        self.ended = True
        await asyncio.gather(*consoles)
        self.go_on(all_of_them=True)
        # those that were stopped still have something to say
        await asyncio.sleep(2 * LEASE)
        for process in self.workers:
            process.terminate()
        for process in self.workers:
            process.join(20)
            if process.is_alive():
                process.kill()
        self.seconds = time.monotonic() - began

    def told(self) -> bool:
        with psycopg.connect(self.dsn) as connection:
            row = connection.execute(COUNTS.encode()).fetchone()
        assert row is not None
        rows, done, failed, attempts, reclaims, above, claimed, *changed, twice, most = row
        done_changes, done_jobs, failed_changes, reclaim_changes = changed
        lost = Path(self.log).read_text(errors="replace").count("LeaseLost")
        effects = len(Path(self.effects).read_text().split())
        taken = sum(self.taken.values())
        print(f"\n{self.seconds:.0f} s, {self.chosen.workers} workers, load at the end {os.getloadavg()[0]:.0f}")
        for what, number in sorted(self.happened.items()):
            print(f"  {number:>9,}  {what}")
        print(f"  {lost:>9,}  ends and renewals of former holders that were rejected")
        print(f"  {effects:>9,}  times a handler ran to its end\n")
        checks = [
            ("jobs in the table", rows, "jobs that were enqueued", self.chosen.jobs),
            ("jobs done or failed", done + failed, "jobs that were enqueued", self.chosen.jobs),
            ("jobs done", done, "changes to done", done_changes),
            ("jobs done", done, "different jobs that changed to done", done_jobs),
            ("jobs failed", failed, "changes to failed", failed_changes),
            ("jobs failed", failed, "jobs that always fail", self.chosen.jobs // 1000),
            ("claims, by the log", claimed, "attempts, by the rows", attempts),
            ("claims", claimed, "done, failed and reclaimed", done_changes + failed_changes + reclaim_changes),
            ("reclaims, by the rows", reclaims, "reclaims, by the log", reclaim_changes),
            ("reclaims, by the rows", reclaims, "reclaimed, as the two consoles told", sum(self.reclaimed)),
            ("reclaims, by the rows", reclaims, "rows in the journals of their batches", taken),
            ("claims that were reclaimed twice", twice, "none", 0),
            ("claims in both journals", sum(number > 1 for number in self.taken.values()), "none", 0),
            ("attempts that reclaims do not explain", above, "none", 0),
        ]
        for what, number, other, expected in checks:
            sign = "=" if number == expected else "≠ WRONG"
            print(f"  {number:>9,}  {what} {sign} {expected:,} {other}")
        print(f"  most reclaims of one job: {most}; by console: {self.reclaimed[0]:,} and {self.reclaimed[1]:,}")
        return all(number == expected for _, number, _, expected in checks)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Kill workers while two consoles reclaim, and count.")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=3600, help="seconds")
    chosen = parser.parse_args(arguments)
    multiprocessing.get_context("forkserver").set_forkserver_preload(["tests.bench.chaos_worker"])
    with running_server() as server:
        server.stop()
        with (server.data / "postgresql.conf").open("a") as settings:
            settings.write(
                "synchronous_commit = on\nmax_connections = 150\nmax_wal_size = 1GB\nfull_page_writes = on\n"
            )
        server.start()
        dsn = server.dsn(server.new_database())
        install(Database(dsn=dsn))
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(LOG.encode())
            connection.execute(
                """INSERT INTO worktop_jobs (queue, type, payload, max_attempts)
                   SELECT 'chaos', CASE WHEN i %% 1000 = 0 THEN 'fail' ELSE 'work' END, '{}',
                          CASE WHEN i %% 1000 = 0 THEN 1 ELSE 4 END
                   FROM generate_series(1, %(jobs)s) AS i""",
                {"jobs": chosen.jobs},
            )
            connection.execute("VACUUM ANALYZE worktop_jobs")
        Path(server.folder / "effects").touch()
        chaos = Chaos(server, dsn, chosen)
        print(f"{chosen.jobs:,} jobs, {chosen.workers} workers, lease {LEASE:g} s, seed {chosen.seed}", flush=True)
        try:
            asyncio.run(chaos.run())
        finally:
            for process in chaos.workers:
                if process.is_alive():
                    process.kill()
        return 0 if chaos.told() else 1


if __name__ == "__main__":
    sys.exit(main())
