"""The reference worker as real processes on a real server: nothing is done twice, nothing is lost in silence."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from console.config import Config, Database
from console.fleet.model import JobQuery
from console.queue.client import QueueClient
from console.queue.install import install
from console.worker.holder import start_ticks
from tests.postgres import Server

ROOT = Path(__file__).parents[2]
Db = psycopg.Connection[dict[str, Any]]


def until(condition: Callable[[], Any], what: str, seconds: float = 20) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.02)
    return found


class WorkerProcess:
    def __init__(self, dsn: str, log: Path, *arguments: str, **environment: str) -> None:
        settings = conninfo_to_dict(dsn)
        names = {"host": "PGHOST", "dbname": "PGDATABASE", "user": "PGUSER", "password": "PGPASSWORD"}
        env = os.environ | {names[key]: str(value) for key, value in settings.items()} | environment
        env.pop("JOURNAL_STREAM", None)
        self._log = log
        handlers = () if "--handlers" in arguments else ("--handlers", "tests.worker.sample_handlers:HANDLERS")
        command = [sys.executable, "-m", "console", "worker", "--role", "mail", *handlers, *arguments]
        with log.open("w") as file:
            self.process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=file, stdin=subprocess.DEVNULL)
        self.pid = self.process.pid

    @property
    def log(self) -> str:
        return self._log.read_text()

    def logged(self, text: str) -> None:
        until(lambda: text in self.log or self.process.poll() is not None, f"the log says {text!r}: {self.log}")
        assert text in self.log

    def exit_code(self, seconds: float = 20) -> int:
        return self.process.wait(timeout=seconds)


Start = Callable[..., WorkerProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[WorkerProcess] = []

    def start_one(dsn: str, *arguments: str, **environment: str) -> WorkerProcess:
        started.append(WorkerProcess(dsn, tmp_path / f"log-{len(started)}", *arguments, **environment))
        return started[-1]

    yield start_one
    for worker in started:
        if worker.process.poll() is None:
            worker.process.kill()
        worker.process.wait()


@pytest.fixture
def db(database: str) -> Iterator[Db]:
    with psycopg.connect(database, autocommit=True, row_factory=dict_row) as connection:
        yield connection


def enqueue(db: Db, kind: str, **payload: object) -> int:
    row = db.execute("SELECT worktop_enqueue('mail', %s, %s::jsonb) AS id", (kind, json.dumps(payload))).fetchone()
    assert row is not None
    job: int = row["id"]
    return job


def job_row(db: Db, job: int) -> dict[str, Any]:
    row = db.execute("SELECT * FROM worktop_jobs WHERE id = %s", (job,)).fetchone()
    assert row is not None
    return row


def becomes(db: Db, job: int, status: str) -> dict[str, Any]:
    until(lambda: job_row(db, job)["status"] == status, f"job {job} is {status}")
    return job_row(db, job)


def test_many_workers_do_each_job_exactly_once(database: str, db: Db, start: Start, tmp_path: Path) -> None:
    record = tmp_path / "record"
    for _ in range(400):
        enqueue(db, "record", file=str(record))
    workers = [start(database, "--concurrency", str(1 + number)) for number in range(4)]
    left = "SELECT count(*) AS n FROM worktop_jobs WHERE status <> 'done'"
    until(lambda: (db.execute(left).fetchone() or {})["n"] == 0, "all are done", 60)
    for worker in workers:
        worker.process.terminate()
    assert [worker.exit_code() for worker in workers] == [0] * 4
    done = [line.split() for line in record.read_text().splitlines()]
    assert sorted(int(job) for job, _ in done) == list(range(1, 401))
    assert {int(pid) for _, pid in done} <= {worker.pid for worker in workers}
    assert db.execute("SELECT DISTINCT attempts FROM worktop_jobs").fetchall() == [{"attempts": 1}]


def test_the_row_names_its_holder(database: str, db: Db, start: Start) -> None:
    job = enqueue(db, "sleep", seconds=60)
    worker = start(database)
    row = becomes(db, job, "running")
    stat = Path(f"/proc/{worker.pid}/stat").read_text()
    assert (row["lease_host"], row["lease_pid"]) == (socket.gethostname(), worker.pid)
    assert row["lease_start"] == start_ticks(stat)
    assert row["lease_boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.mark.parametrize("kind", ["sleep", "sleep-async"])
def test_sigterm_finishes_the_work_at_hand_and_takes_no_more(database: str, db: Db, start: Start, kind: str) -> None:
    at_hand, next_one = enqueue(db, kind, seconds=1), enqueue(db, kind, seconds=1)
    worker = start(database)
    becomes(db, at_hand, "running")
    worker.process.terminate()
    assert worker.exit_code() == 0
    assert job_row(db, at_hand)["status"] == "done"
    assert job_row(db, next_one)["status"] == "waiting"
    assert "stopping: got SIGTERM, 1 in work" in worker.log


def test_work_that_outlasts_the_drain_timeout_is_left_to_its_lease(database: str, db: Db, start: Start) -> None:
    job = enqueue(db, "sleep", seconds=60)
    worker = start(database, "--drain-timeout", "0.3")
    becomes(db, job, "running")
    worker.process.send_signal(signal.SIGINT)
    assert worker.exit_code() == 4
    assert "not finished in time, left to its lease" in worker.log
    assert job_row(db, job)["status"] == "running"


def test_a_second_signal_leaves_the_work_at_once(database: str, db: Db, start: Start) -> None:
    job = enqueue(db, "sleep-async", seconds=60)
    worker = start(database)
    becomes(db, job, "running")
    worker.process.terminate()
    worker.logged("stopping")
    worker.process.terminate()
    assert worker.exit_code(5) == 4
    assert job_row(db, job)["status"] == "running"


def test_a_signal_to_a_worker_whose_lifetime_is_over_is_no_second_one(database: str, db: Db, start: Start) -> None:
    job = enqueue(db, "sleep-async", seconds=2)
    worker = start(database, "--lifetime", "1")
    becomes(db, job, "running")
    worker.logged("stopping: lifetime")
    worker.process.terminate()
    assert worker.exit_code(10) == 0
    assert job_row(db, job)["status"] == "done"


async def test_a_killed_worker_leaves_a_row_that_gets_stuck_by_the_databases_clock(
    database: str, db: Db, start: Start
) -> None:
    job = enqueue(db, "sleep", seconds=60)
    worker = start(database, "--lease", "2")
    becomes(db, job, "running")
    worker.process.kill()
    worker.process.wait()
    client = QueueClient(Config(database=Database(dsn=database)))
    try:
        facts = (await client.poll()).value
        assert facts is not None
        assert [running.id for running in facts.running] == [str(job)]
        until(lambda: job_row(db, job)["lease_expires"].timestamp() < time.time(), "the lease has expired")
        facts = (await client.poll()).value
        assert facts is not None
        assert facts.counts[0].stuck.n == 1
        (stuck,) = (await client.page(JobQuery(state="stuck"))).jobs
        assert (stuck.overdue or 0) > 0
        assert stuck.holder is not None
        assert stuck.holder.pid == worker.pid
    finally:
        await client.close()


def test_a_lease_is_renewed_while_the_handler_works(database: str, db: Db, start: Start) -> None:
    job = enqueue(db, "sleep", seconds=2.5)
    worker = start(database, "--lease", "1")
    first = becomes(db, job, "running")["lease_expires"]
    until(lambda: (job_row(db, job)["lease_expires"] or first) > first, "the lease moves")
    becomes(db, job, "done")
    assert "LeaseLost" not in worker.log


def test_without_renewal_the_lease_stays(database: str, db: Db, start: Start) -> None:
    job = enqueue(db, "sleep", seconds=1.2)
    start(database, "--lease", "0.5", "--no-renew", "--max-jobs", "1").exit_code()
    row = job_row(db, job)
    assert row["status"] == "done"
    assert row["heartbeat_at"] == row["started_at"]


@pytest.mark.parametrize("kind", ["sleep", "sleep-async"])
def test_a_reclaimed_job_is_lost_to_its_zombie(database: str, db: Db, start: Start, kind: str) -> None:
    job = enqueue(db, kind, seconds=1.5)
    zombie = start(database, "--lease", "1.5", "--max-jobs", "1")
    becomes(db, job, "running")
    db.execute("UPDATE worktop_jobs SET status = 'waiting', lease_token = NULL, lease_expires = NULL")
    zombie.logged("LeaseLost")
    zombie.logged("result dropped")
    assert zombie.exit_code() == 0
    row = job_row(db, job)
    assert (row["status"], row["attempts"], row["finished_at"]) == ("waiting", 1, None)


def test_failures_are_written_with_the_end_of_their_traceback(database: str, db: Db, start: Start) -> None:
    jobs = [
        enqueue(db, "fail", text="x" * 5000 + " password=hunter2 [/red]"),
        enqueue(db, "leave"),
        enqueue(db, "unknown"),
        enqueue(db, "leave-async"),
    ]
    worker = start(database, "--max-jobs", "4")
    assert worker.exit_code() == 0
    first, second, third, fourth = (job_row(db, job) for job in jobs)
    assert {row["status"] for row in (first, second, third, fourth)} == {"waiting"}
    assert first["last_error"].endswith("xxx password=hunter2 [/red]\n")
    assert len(first["last_error"]) <= 4096
    assert second["last_error"].splitlines()[-1] == "SystemExit: a handler must not end the worker"
    assert fourth["last_error"].splitlines()[-1] == "SystemExit: nor an async one"
    for row in (first, second, fourth):
        assert "calls.py" not in row["last_error"]
    assert third["last_error"].startswith("no handler for type 'unknown'; this worker has fail, leave")
    assert "hunter2" not in worker.log
    assert "4 failed" in worker.log


def test_an_idle_worker_is_woken_by_notify(database: str, db: Db, start: Start) -> None:
    worker = start(database, "--poll", "60")
    worker.logged("ready")
    begun = time.monotonic()
    job = enqueue(db, "sleep", seconds=0)
    becomes(db, job, "done")
    assert time.monotonic() - begun < 5


def test_jobs_run_side_by_side_up_to_the_concurrency(database: str, db: Db, start: Start) -> None:
    for _ in range(3):
        enqueue(db, "sleep", seconds=30)
    start(database, "--concurrency", "2")
    running = "SELECT count(*) AS n FROM worktop_jobs WHERE status = 'running'"
    until(lambda: (db.execute(running).fetchone() or {})["n"] == 2, "two run")
    assert db.execute("SELECT id FROM worktop_jobs WHERE status = 'waiting'").fetchall() == [{"id": 3}]


def test_a_lifetime_ends_it(database: str, start: Start) -> None:
    worker = start(database, "--lifetime", "0.5")
    assert worker.exit_code() == 0
    assert "lifetime of 0.5 s is over" in worker.log


def test_a_database_that_restarts_under_it_is_survived(own_postgres: Server, start: Start) -> None:
    install(Database(dsn=own_postgres.dsn()))
    own_postgres.execute("SELECT worktop_enqueue('mail', 'sleep', '{\"seconds\": 1}')")
    worker = start(own_postgres.dsn(), "--lease", "0.9")
    worker.logged("started")
    own_postgres.stop()
    worker.logged("trying again")
    own_postgres.start()
    worker.logged("job 1 (sleep, attempt 1 of 4): done")
    own_postgres.execute("SELECT worktop_enqueue('mail', 'sleep', '{\"seconds\": 0}')")
    worker.logged("job 2 (sleep, attempt 1 of 4): done")
    worker.process.terminate()
    assert worker.exit_code() == 0
    assert "Traceback" not in worker.log


def test_it_waits_for_a_database_that_is_not_there_yet(own_postgres: Server, start: Start) -> None:
    install(Database(dsn=own_postgres.dsn()))
    own_postgres.stop()
    impatient = start(own_postgres.dsn(), "--no-wait")
    assert impatient.exit_code() == 1
    assert "no server on that socket; is PostgreSQL running there?" in impatient.log
    waiting = start(own_postgres.dsn())
    leaving = start(own_postgres.dsn())
    waiting.logged("trying again")
    leaving.logged("trying again")
    leaving.process.terminate()
    assert leaving.exit_code(5) == 0
    own_postgres.start()
    waiting.logged("ready")


def test_what_will_not_pass_ends_it_with_one_line(
    postgres: Server, database: str, empty_database: str, start: Start, tmp_path: Path
) -> None:
    for dsn, said in (
        (postgres.dsn("absent"), "no such database"),
        (empty_database, "run `worktop queue install`"),
    ):
        worker = start(dsn)
        assert worker.exit_code() == 1
        assert said in worker.log
        assert worker.log.count("\n") == 1
    worker = start(database, "--handlers", "tests.worker.absent:X")
    assert worker.exit_code() == 2
    assert "no module tests.worker.absent" in worker.log


def test_it_speaks_to_the_service_manager(database: str, db: Db, start: Start, tmp_path: Path) -> None:
    enqueue(db, "sleep", seconds=0)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(20)
        worker = start(database, NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="200000")
        heard: list[str] = []
        while not (
            any(line.startswith("STATUS=0 running, 1 done") for line in heard) and heard.count("WATCHDOG=1") > 3
        ):
            heard += manager.recv(4096).decode().splitlines()
        assert "READY=1" in heard
        assert "STATUS=1 running, 0 done, 0 failed" in heard
        worker.process.terminate()
        while "STOPPING=1" not in heard:
            heard += manager.recv(4096).decode().splitlines()
        assert worker.exit_code() == 0


def test_queues_and_types_come_from_the_role(database: str, db: Db, start: Start, tmp_path: Path) -> None:
    config = tmp_path / "worktop.toml"
    config.write_text('[roles.mail]\nqueue = ["post", "parcels"]\ntype = "sleep"\n')
    db.execute(
        """SELECT worktop_enqueue(queue, type, '{"seconds": 0}')
           FROM unnest('{post,parcels,mail}'::text[]) AS queue, unnest('{sleep,x}'::text[]) AS type"""
    )
    worker = start(database, "--max-jobs", "2", WORKTOP_CONFIG=str(config))
    assert worker.exit_code() == 0
    done = db.execute("SELECT queue, type FROM worktop_jobs WHERE status = 'done' ORDER BY 1").fetchall()
    assert [(row["queue"], row["type"]) for row in done] == [("parcels", "sleep"), ("post", "sleep")]


def test_it_needs_no_more_rights_than_these(postgres: Server, database: str, db: Db, start: Start) -> None:
    postgres.execute("DO $$ BEGIN CREATE USER laborer; EXCEPTION WHEN duplicate_object THEN END $$")
    db.execute(
        """GRANT SELECT, UPDATE ON worktop_jobs TO laborer; GRANT SELECT ON worktop_queues TO laborer;
           GRANT USAGE ON SEQUENCE worktop_lease_tokens TO laborer"""
    )
    done, failed = enqueue(db, "sleep", seconds=0), enqueue(db, "fail")
    worker = start(database.replace("user=postgres", "user=laborer"), "--max-jobs", "2")
    assert worker.exit_code() == 0
    assert job_row(db, done)["status"] == "done"
    assert job_row(db, failed)["last_error"]
