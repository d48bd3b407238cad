"""Whether a worker of procrastinate lives, though its rows name no process: with real workers on a real host."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from console.fleet.model import Claim, Process, Role
from console.fleet.verdicts import judge, pending
from console.host.client import HostClient
from tests.queue.acting import Acting, acting
from tests.queue.libraries import FOLDER, Worker, deferred

Start = Callable[..., Worker]


@pytest.fixture
def worker(workers: Callable[[Start], Start], tmp_path: Path) -> Start:
    """Workers whose command line is this test's own."""

    def start(dsn: str, log: Path) -> Worker:
        script = tmp_path / "own_worker.py"
        shutil.copy(FOLDER / "procrastinate_worker.py", script)
        started = Worker([sys.executable, str(script)], {"DSN": dsn, "OPTIONS": json.dumps({})}, log)
        started.said("ready")
        return started

    return workers(start)


def claimed_earlier(dsn: str) -> None:
    """The claims are a minute and a half old; whoever says nothing from now on has said nothing for a minute."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE procrastinate_events SET at = at - interval '40 s' WHERE type = 'started'")
        connection.execute("UPDATE procrastinate_workers SET last_heartbeat = last_heartbeat - interval '60 s'")


async def judged(console: Acting, host: HostClient, role: Role, id: int) -> Claim:
    """As the console does it: the rows, who is connected, who has these pids, the verdict."""
    deadline = time.monotonic() + 15
    while True:
        facts = await console.facts()
        if facts.backends is not None:
            clients = await host.clients(facts.backends, facts.server_port)
            await host.look_up(sorted({each.ident.pid for each in clients if each.ident is not None}))
        job = next(one for one in facts.running if one.id == str(id))
        claim = judge(job, role.name, host.facts, facts, (role,), time.time())
        if not pending(claim):
            return claim
        assert time.monotonic() < deadline, claim.evidence


def processes(host: HostClient) -> tuple[Process, ...]:
    return host.facts.processes.value or ()


async def watched(host: HostClient, condition: Callable[[], bool]) -> None:
    """Until the host's processes have been read in this state."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, host.facts.processes
        await asyncio.sleep(0.05)


async def test_the_death_of_a_worker_is_proved_by_exclusion(
    procrastinate_database: str, worker: Start, tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("whose a connection is only root may see")
    dsn, gate = procrastinate_database, tmp_path / "gate"
    role = Role(name="default", queues=("default",), match=(str(tmp_path / "own_worker.py"),))
    holder = worker(dsn)
    held = deferred(dsn, args={"until": str(gate)})
    holder.said(f"begin {held}")
    async with acting(dsn) as console, HostClient([role], interval=0.2) as host:
        await host.ready(20)
        holder.freeze()
        claimed_earlier(dsn)
        await watched(host, lambda: {one.ident.pid: one.state for one in processes(host)}.get(holder.pid) == "T")
        frozen = await judged(console, host, role, held)
        assert (frozen.verdict, frozen.stuck) == ("HUNG", True)
        who = f"pid {holder.pid} (python"
        assert frozen.evidence[1].startswith(who), frozen.evidence
        assert "is connected to the database and no fresh heartbeat accounts for it" in frozen.evidence[1]
        assert frozen.evidence[2] == "it is stopped (state T, by a signal or a debugger)"
        assert frozen.worker.startswith(f"{holder.pid}:")
        successor = worker(dsn)  # as its first act it strikes off whoever sends no heartbeats
        other = deferred(dsn, args={"until": str(gate)})
        successor.said(f"begin {other}")
        struck = await judged(console, host, role, held)
        assert struck.verdict != "DEAD", struck.evidence
        assert any(sentence.startswith(who) for sentence in struck.evidence)
        holder.kill()
        await watched(host, lambda: holder.pid not in {one.ident.pid for one in processes(host)})
        dead = await judged(console, host, role, held)
        assert (dead.verdict, dead.stuck) == ("DEAD", True), dead.evidence
        assert "1 fresh heartbeats account for the 1 that live" in dead.evidence[1]
        alive = await judged(console, host, role, other)
        assert alive.verdict == "ALIVE" and not alive.stuck
