"""A killed worker of a real queue library: proved dead, its job reclaimed through the actions, finished once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from console.actions.desk import Actions
from console.config import Config, Database
from console.fleet.model import Role
from console.host.client import HostClient
from console.queue.client import QueueClient
from console.queue.writer import QueueWriter
from console.state import StateDirectory
from console.view.plan import plan_text
from tests.actions.conftest import until
from tests.queue.libraries import (
    FOLDER,
    Worker,
    asked,
    deferred,
    pgboss_leases_run_out,
    pgboss_worker,
    procrastinate_heartbeats_stop,
    procrastinate_worker,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

Start = Callable[..., Worker]


def role(queue: str) -> Role:
    return Role(name="library", queues=(queue,), match=(str(FOLDER),))


@asynccontextmanager
async def actions_on(dsn: str, queue: str, host: HostClient, state: StateDirectory) -> AsyncIterator[Actions]:
    """The actions of a console that was told nothing but where the database is and which queue is a role's."""
    config = Config(database=Database(dsn=dsn, preset="auto", configured=True), roles=(role(queue),))
    writer, reader = QueueWriter(config), QueueClient(config, config.roles)
    try:
        yield Actions(config, host, writer, reader, state)
    finally:
        await writer.close()
        await reader.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def agent() -> AsyncIterator[HostClient]:
    async with HostClient((role("default"),), interval=0.3) as host:
        await host.ready(15)
        yield host


async def test_procrastinate(
    procrastinate_database: str,
    workers: Callable[[Start], Start],
    agent: HostClient,
    state: StateDirectory,
    gate: Path,
) -> None:
    dsn = procrastinate_database
    rows = "SELECT id::text, j::text FROM procrastinate_jobs j ORDER BY id"
    id = deferred(dsn, args={"until": str(gate)})
    start = workers(procrastinate_worker)
    first = start(dsn)
    first.said(f"begin {id}")
    async with actions_on(dsn, "default", agent, state) as actions:
        alive = await actions.plan_jobs("reclaim", role="library")
        assert alive.consent.empty, plan_text(alive)
        first.kill()
        procrastinate_heartbeats_stop(dsn)
        asked(dsn, "UPDATE procrastinate_events SET at = at - interval '90 s'")
        before = asked(dsn, rows)
        plan = await actions.plan_jobs("reclaim", role="library")
        assert [claim.verdict for claim in plan.claims] == ["DEAD"], plan_text(plan)
        assert asked(dsn, rows) == before
        outcome = await actions.apply(plan)
        assert (outcome.state, outcome.rows) == ("done", 1), outcome
        undone = await actions.apply(await actions.plan_undo(plan.id))
        assert (undone.rows, asked(dsn, rows)) == (1, before)
        asked(dsn, "UPDATE procrastinate_events SET at = at - interval '90 s'")
        outcome = await actions.apply(await actions.plan_jobs("reclaim", role="library"))
        assert outcome.rows == 1
        second = start(dsn)
        second.said(f"begin {id}")
        gate.touch()
        second.said(f"end {id}")
    until(lambda: asked(dsn, "SELECT status::text FROM procrastinate_jobs") == [("succeeded",)], "it has succeeded")
    ends = asked(dsn, "SELECT count(*) FROM procrastinate_events WHERE type = 'succeeded'")
    assert ends == [(1,)], "once"


async def test_pgboss(
    pgboss_database: str, workers: Callable[[Start], Start], agent: HostClient, state: StateDirectory, gate: Path
) -> None:
    dsn = pgboss_database
    rows = "SELECT id::text, j::text FROM pgboss.job j WHERE name = 'q' ORDER BY id"
    start = workers(pgboss_worker)
    first = start(dsn, queue="q", send=[{"name": "q", "data": {"until": str(gate)}}], boss={"supervise": False})
    ((id,),) = asked(dsn, "SELECT id::text FROM pgboss.job WHERE name = 'q'")
    first.said(f"begin {id} 0")
    async with actions_on(dsn, "q", agent, state) as actions:
        alive = await actions.plan_jobs("reclaim", role="library")
        assert alive.consent.empty, plan_text(alive)
        first.kill()
        pgboss_leases_run_out(dsn)
        before = asked(dsn, rows)
        plan = await actions.plan_jobs("reclaim", role="library")
        assert [claim.verdict for claim in plan.claims] == ["DEAD"], plan_text(plan)
        assert asked(dsn, rows) == before
        outcome = await actions.apply(plan)
        assert (outcome.state, outcome.rows) == ("done", 1), outcome
        undone = await actions.apply(await actions.plan_undo(plan.id))
        assert (undone.rows, asked(dsn, rows)) == (1, before)
        outcome = await actions.apply(await actions.plan_jobs("reclaim", role="library"))
        assert outcome.rows == 1
        second = start(dsn, queue="q", boss={"supervise": False})
        second.said(f"begin {id} 1")
        gate.touch()
        second.said(f"end {id} 1")
    ended = f"SELECT state::text, (output ->> 'by')::integer FROM pgboss.job WHERE id = '{id}'"
    until(lambda: asked(dsn, ended) == [("completed", second.pid)], "it has been completed by the second")
