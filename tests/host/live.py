"""What the tests against a running systemd share: an agent inside the demo host, and waiting for a condition."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from console.fleet.model import HostFacts, Process, Role, Unit
from console.host.client import HostClient
from tests.conftest import DemoHost

SECONDS = 15.0
NO_GROUPS = ("setpriv", "--reuid=deploy", "--regid=deploy", "--clear-groups")  # deploy without systemd-journal


def role(template: str = "", instances: Sequence[str] = (), match: str = "", name: str = "probe") -> Role:
    return Role(name=name, template=template, instances=tuple(instances), match=(match,) if match else ())


@contextlib.asynccontextmanager
async def agent(
    host: DemoHost,
    roles: Sequence[Role],
    *,
    user: str = "root",
    options: Sequence[str] = (),
    environment: Sequence[str] = (),
    through: Sequence[str] = (),
    interval: float = 0.5,
) -> AsyncIterator[HostClient]:
    """A client whose agent runs inside as `user`, started by the command `through`; it has said everything once."""
    command = host.exec_argv(["env", *environment, *through, host.worktop, "agent", *options], user)
    async with HostClient(roles, command=tuple(command), interval=interval) as client:
        facts = await client.ready(SECONDS)
        assert facts.agent.problem is None, facts.agent.problem
        yield client


async def until(condition: Callable[[], object], timeout: float = SECONDS, what: str = "") -> float:
    """Wait until the condition holds; seconds it took."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < timeout, f"not within {timeout} s: {what or condition}"
        await asyncio.sleep(0.01)
    return time.monotonic() - started


async def inside(host: DemoHost, script: str, user: str = "root") -> str:
    """Run a shell script inside without holding up the event loop; what it printed."""
    done = await asyncio.to_thread(host.run, ["sh", "-c", script], user)
    return done.stdout


def unit(facts: HostFacts, name: str) -> Unit:
    return next(each for each in facts.units.value or () if each.name == name)


def names(facts: HostFacts) -> list[str]:
    return [each.name for each in facts.units.value or ()]


def processes(facts: HostFacts, **wanted: object) -> list[Process]:
    return [
        each
        for each in facts.processes.value or ()
        if all(getattr(each, key) == value for key, value in wanted.items())
    ]


def agent_pid(client: HostClient) -> int:
    """The agent's process, seen from outside: what nsenter has forked."""
    assert client.process is not None
    pid = client.process.pid
    while True:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        agents = [int(child) for child in children if b"agent" in Path(f"/proc/{child}/cmdline").read_bytes()]
        if not agents:
            return pid
        pid = agents[0]
