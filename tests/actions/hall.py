"""Worker units of a test's own inside the demo host, with real workers on its job table."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from console.actions import scale, units
from console.actions.desk import Actions
from console.config import Config, Database
from console.fleet.model import Limits, Role
from console.fleet.plan import Outcome, Plan
from console.host.client import HostClient
from console.queue.client import QueueClient
from console.queue.writer import QueueWriter
from console.state import StateDirectory
from tests.conftest import DemoHost
from tests.host.live import agent, until

WORKER = """\
Type={kind}
User=deploy
ExecStart={before}/usr/local/bin/worktop worker --role {name} --handlers console.demo.handlers:HANDLERS --lease 30 \
--drain-timeout {drain} --poll 1{after}
Restart=on-failure
RestartSec=100ms
TimeoutStopSec={patience}
MemoryMax=256M
[Install]
WantedBy=multi-user.target"""


_HEARS = {"kind": "notify", "before": "", "after": ""}
# systemd asks the shell alone to end, which does not hear it
_DEAF = {"kind": "exec", "before": '/bin/sh -c \'trap "" TERM; ', "after": "; exit 0'\nKillMode=mixed"}


class Hall:
    """One role whose workers are units of the demo host, and what acts on them."""

    def __init__(self, host: DemoHost, client: HostClient, role: Role, folder: Path, database: bool = True) -> None:
        self.host = host
        self.client = client
        self.role = role
        dsn = f"host=/proc/{host.leader_pid}/root/run/postgresql user=postgres dbname=app"
        self.config = Config(
            database=Database(dsn=dsn, preset="worktop", configured=database),
            roles=(role,),
            limits=Limits(memory_reserve=0),
        )
        self.state = StateDirectory(folder / "state")
        self.reader = QueueClient(self.config, self.config.roles) if database else None
        writer = QueueWriter(self.config) if database else None
        self.actions = Actions(self.config, client, writer, self.reader, self.state)

    def unit(self, number: int) -> str:
        return self.role.unit_name(str(number))

    def up(self) -> list[str]:
        units = self.client.facts.units.value or ()
        return [unit.name for unit in units if unit.template == self.role.template and unit.active == "active"]

    async def come_to(self, number: int) -> bool:
        """Whether so many are up; systemd has said so before the agent has told it."""
        await until(lambda: len(self.up()) == number, 10)
        return True

    async def start(self, *numbers: int) -> None:
        for job in await asyncio.gather(*(self.client.unit_job(self.unit(number), "start") for number in numbers)):
            assert job.ok, job
        await until(lambda: set(self.up()) >= {self.unit(number) for number in numbers}, 60)

    async def add(self, number: int, seconds: float) -> None:
        query = f"SELECT count(worktop_enqueue('{self.role.name}', 'newsletter', '{{\"seconds\": {seconds}}}')) "
        await self.psql(query + f"FROM generate_series(1, {number})")

    async def psql(self, query: str) -> str:
        return (await asyncio.to_thread(self.host.psql, query)).strip()

    async def tally(self) -> str:
        """State, tries, number of the role's jobs: "done|1|40"."""
        own = f"FROM worktop_jobs WHERE queue = '{self.role.name}'"
        return await self.psql(f"SELECT status, attempts, count(*) {own} GROUP BY 1, 2 ORDER BY 1")

    async def each_once(self, number: int, timeout: float = 30.0) -> None:
        """Every job has been done, and nobody has claimed one twice."""
        for _ in range(round(timeout / 0.25)):
            if await self.tally() == f"done|1|{number}":
                return
            await asyncio.sleep(0.25)
        raise AssertionError(await self.tally())

    async def holding(self, number: int) -> str:
        """The id of the job that the worker holds."""
        query = f"SELECT id FROM worktop_jobs WHERE status = 'running' AND lease_unit = '{self.unit(number)}'"
        for _ in range(60):
            if found := await self.psql(query):
                return found
            await asyncio.sleep(0.1)
        raise AssertionError(f"{self.unit(number)} has claimed no job")

    async def apply(self, plan: Plan, **options: Any) -> Outcome:
        typed = plan.consent.word if plan.consent.kind == "typed" else ""
        return await self.actions.apply(plan, typed=typed, **options)

    async def close(self) -> None:
        await self.actions.close()
        if self.reader is not None:
            await self.reader.close()


@contextlib.asynccontextmanager
async def hall(
    host: DemoHost,
    template: Callable[..., str],
    folder: Path,
    name: str,
    instances: Sequence[str] = ("1", "2", "3"),
    *,
    drain: float = 18,
    patience: int = 20,
    deaf: bool = False,
    user: str = "root",
    database: bool = True,
    budget: int | None = None,
    lives: float = 0.3,
) -> AsyncIterator[Hall]:
    """A role of this name with its template; its jobs are gone at the end. `lives`: seconds beyond RestartSec= until
    a worker that was started is believed to live."""
    unit = template(name, WORKER.format(name=name, drain=drain, patience=patience, **(_DEAF if deaf else _HEARS)))
    role = Role(
        name=name, template=unit, instances=tuple(instances), queues=(name,), match=(f"worker --role {name} ",),
        watch=1.0, budget=budget,
    )  # fmt: skip
    async with agent(host, [role], user=user, interval=0.5) as client:
        made = Hall(host, client, role, folder, database)
        patch = pytest.MonkeyPatch()
        for module in (units, scale):
            patch.setattr(module, "PAST_RESTART", lives)
        try:
            yield made
        finally:
            patch.undo()
            await made.close()
            await asyncio.to_thread(
                host.run, ["sh", "-c", f"systemctl stop '{name}@*'; systemctl disable '{name}@*'"], check=False
            )
            await made.psql(f"DELETE FROM worktop_jobs WHERE queue = '{name}'")
