"""What a plan for units is made from: the fleet as it is now, and what could not be looked at."""

from __future__ import annotations

import asyncio
import contextlib
import time

from console.config import Config
from console.errors import ConfigError, HostError
from console.fleet.assemble import assemble
from console.fleet.diagnosis.model import QueueRoom
from console.fleet.model import Claim, Fleet, Holder, HostFacts, QueueFacts, Reading, Role, RoleStatus, Value, Worker
from console.host.client import HostClient
from console.queue.client import QueueClient

HOST_ANSWERS = 20.0  # seconds an agent may take to say its first word
_AGAIN = 3.0  # seconds until another agent has told what the lost one had


class Scene(Value, frozen=True, kw_only=True):
    """The fleet at one moment."""

    fleet: Fleet
    facts: HostFacts
    unseen: str = ""  # why nothing is known of the jobs, a clause; "": they are known

    def status(self, role: str) -> RoleStatus:
        """ConfigError names the roles there are."""
        found = next((status for status in self.fleet.roles if status.role.name == role), None)
        if found is None:
            known = ", ".join(status.role.name for status in self.fleet.roles) or "none"
            raise ConfigError(f"role {role}", f"there is no such role; known roles: {known}")
        return found

    def worker(self, unit: str) -> tuple[Role, Worker] | None:
        """The worker in this unit, and its role."""
        for status in self.fleet.roles:
            for worker in status.workers:
                if worker.key == unit:
                    return status.role, worker
        return None

    def claims(self, worker: Worker) -> tuple[Claim, ...]:
        """Of the jobs it holds, the longest first."""
        own = [claim for claim in self.fleet.claims if claim.job.id in worker.jobs and claim.role == worker.role]
        return tuple(sorted(own, key=lambda claim: -(claim.job.running_for or 0.0)))


async def look(config: Config, host: HostClient, reader: QueueClient | None) -> Scene:
    """Ask the host and the queue. HostError: how the units are is not known, so that nothing can be planned."""
    asked = asyncio.ensure_future(reader.poll()) if reader is not None else None
    await host_answers(host)
    rows: Reading[QueueFacts] | None = await asked if asked is not None else None
    unseen = "no database is configured" if rows is None else rows.problem.line() if rows.problem is not None else ""
    if rows is not None and not unseen and rows.value is not None:
        await _look_up(host, rows.value)
    facts = host.facts
    if facts.units.value is None or facts.agent.problem is not None:
        problem = facts.agent.problem or facts.units.problem
        if problem is not None:
            raise HostError(problem.what, problem.why, problem.do)
        raise HostError("units", "the host agent has not told of them yet")
    if facts.units_partial:
        raise HostError("units", "only their states are known yet, not their limits", "try again in a moment")
    fleet = assemble(facts, rows if not unseen else None, config.roles, config.limits, time.time())
    return Scene(fleet=fleet, facts=facts, unseen=unseen)


async def room(reader: QueueClient | None, role: Role) -> QueueRoom | None:
    """What a diagnosis asks of the queue; None without one."""
    return await reader.room(role) if reader is not None else None


async def host_answers(host: HostClient) -> None:
    """Wait until units and processes are told, or the agent has failed; twenty seconds at most. One that was lost is
    started again by itself: it has three."""
    began = time.monotonic()
    while (waited := time.monotonic() - began) < HOST_ANSWERS:
        facts = host.facts
        readings = (facts.units, facts.processes)
        told = all(reading.taken is not None or reading.problem for reading in readings)
        known, gone = facts.hello is not None, facts.agent.problem is not None
        lost = gone or any(reading.problem is not None and reading.problem.what == "host agent" for reading in readings)
        answered = gone or (known and told and not facts.units_partial)
        if answered and (waited > _AGAIN or not (known and lost)):
            return
        await asyncio.sleep(0.05)


async def _look_up(host: HostClient, rows: QueueFacts) -> None:
    """Who has the pids that hold jobs; those that are watched already stay watched."""
    hello = host.facts.hello
    holders: list[Holder] = [job.holder for job in rows.running if job.holder is not None]
    here = hello.host if hello is not None else ""
    pids = {one.pid for one in holders if one.pid is not None and one.host in ("", here)}
    pids |= {state.pid for state in host.facts.holders.value or ()}
    if rows.backends is not None:
        with contextlib.suppress(HostError):
            clients = await host.clients(rows.backends, rows.server_port)
            pids |= {client.ident.pid for client in clients if client.ident is not None}
    if pids:
        await host.look_up(tuple(sorted(pids)))
