"""Actions on a real database, with a real host agent and real worker processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from psycopg.conninfo import conninfo_to_dict

from console.actions import verify
from console.actions.desk import Actions
from console.config import Config, Database
from console.fleet.model import Role
from console.host.client import HostClient
from console.queue.client import QueueClient
from console.queue.writer import QueueWriter
from console.state import StateDirectory
from console.worker.holder import start_ticks

ROOT = Path(__file__).parents[2]
ROLES = (
    Role(name="letters", queues=("letters",), match=("worker --role letters",)),
    Role(name="films", queues=("films",), match=("worker --role films",)),
)


class World:
    """A job table, the host it runs on, and what acts on them."""

    def __init__(self, dsn: str, folder: Path, host: HostClient) -> None:
        self.dsn = dsn
        self.config = Config(database=Database(dsn=dsn, preset="worktop", configured=True), roles=ROLES)
        self.host = host
        self.state = StateDirectory(folder / "state")
        self.writer = QueueWriter(self.config)
        self.reader = QueueClient(self.config, self.config.roles)
        self._started: list[subprocess.Popen[bytes]] = []

    def actions(self, read_only: str = "") -> Actions:
        return Actions(self.config, self.host, self.writer, self.reader, self.state, read_only)

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(query, values)
            return cursor.fetchall() if cursor.description else []

    def value(self, query: str, *values: Any) -> Any:
        return self.rows(query, *values)[0][0]

    def add(self, number: int = 1, queue: str = "letters", payload: str = '{"seconds": 0}') -> list[str]:
        added = "SELECT worktop_enqueue(%s, 'sleep', %s::jsonb)::text FROM generate_series(1, %s)"
        return [row[0] for row in self.rows(added, queue, payload, number)]

    def fail_all(self) -> None:
        """Every waiting job has failed for good."""
        self.rows("UPDATE worktop_jobs SET status = 'failed', attempts = 4, finished_at = now()")

    def images(self) -> list[tuple[Any, ...]]:
        """All rows as they are."""
        return self.rows("SELECT id, j::text FROM worktop_jobs j ORDER BY id")

    def worker(self, role: str = "letters", *, lease: float = 60) -> subprocess.Popen[bytes]:
        settings = conninfo_to_dict(self.dsn)
        names = {"host": "PGHOST", "dbname": "PGDATABASE", "user": "PGUSER"}
        env = os.environ | {name: str(settings[key]) for key, name in names.items()}
        command = [sys.executable, "-m", "console", "worker", "--role", role, "--lease", f"{lease:g}"]
        command += ["--handlers", "tests.worker.sample_handlers:HANDLERS"]
        process = subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._started.append(process)
        return process

    def holding(self, process: subprocess.Popen[bytes]) -> str:
        """The id of the job that the worker has claimed."""
        query = "SELECT id::text FROM worktop_jobs WHERE status = 'running' AND lease_pid = %s"
        return str(until(lambda: self.rows(query, process.pid), "the worker claims a job")[0][0])

    def claimed_by(self, process: subprocess.Popen[bytes], role: str = "letters", older: float = 0) -> str:
        """The id of a job that is claimed in the name of a process; `older`: as if it had started so much earlier."""
        start = start_ticks(Path(f"/proc/{process.pid}/stat").read_text()) or 0
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        claim = "SELECT id::text FROM worktop_claim(%s::text[], %s, %s, NULL, %s, %s)"
        ticks = start - round(older * os.sysconf("SC_CLK_TCK"))
        return str(self.value(claim, [role], socket.gethostname(), boot, process.pid, ticks))

    def killed(self, role: str = "letters") -> str:
        """The id of a job whose holder was killed with SIGKILL."""
        process = sleeper(role)
        # the pid of a process that started seconds ago may still be another's by the last reading: it would be waited
        job = self.claimed_by(process, role, older=60)
        process.kill()
        process.wait()
        return job

    def expire(self, job: str) -> None:
        """Its lease has run out a minute ago."""
        self.rows(
            "UPDATE worktop_jobs SET lease_expires = now() - interval '1 min', heartbeat_at = now() - interval '2 min' "
            "WHERE id = %s",
            job,
        )

    def end(self) -> None:
        for process in self._started:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGKILL)
            process.wait()


def sleeper(role: str = "letters", deaf: bool = False) -> subprocess.Popen[bytes]:
    """A process that looks like a worker and does nothing; `deaf` to SIGTERM."""
    script = f"exec -a 'worker --role {role}' sleep 600"
    process = subprocess.Popen(["bash", "-c", f"trap '' TERM; {script}" if deaf else script], start_new_session=True)
    until(lambda: "sleep" in Path(f"/proc/{process.pid}/comm").read_text(), "it is the sleeper")
    return process


def until(condition: Callable[[], Any], what: str, seconds: float = 20) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.02)
    return found


async def seen(condition: Callable[[], Any], what: str, seconds: float = 20) -> None:
    """As `until`, while the event loop goes on."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        await asyncio.sleep(0.02)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def agent() -> AsyncIterator[HostClient]:
    """One host agent for all tests of this folder; they run on its loop."""
    async with HostClient(ROLES, interval=0.3) as host:
        await host.ready(15)
        yield host


@pytest.fixture(scope="session")
def sleepers(agent: HostClient) -> Iterator[tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]]:
    """Two live holders, the second one deaf to SIGTERM. Of the session, so that they are some seconds old when they are
    judged: of a younger one it is not said that it is the process that claimed."""
    both = sleeper(), sleeper(deaf=True)
    yield both
    for process in both:
        process.kill()
        process.wait()


@pytest_asyncio.fixture(loop_scope="session")
async def world(
    database: str, tmp_path: Path, agent: HostClient, sleepers: object, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    monkeypatch.setattr(verify, "WATCH", 0.5)  # those who look like workers here claim nothing, however long one waits
    made = World(database, tmp_path, agent)
    try:
        yield made
    finally:
        made.end()
        await made.writer.close()
        await made.reader.close()


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "state")
