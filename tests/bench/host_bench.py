"""What the host agent costs beside 200 units and their processes, on a real systemd. Not a test: nothing is asserted.

    python -m tests.bench.host_bench [--units 200] [--seconds 20] [--host NAME]

boots a demo host of its own (or uses NAME, one that `worktop demo --keep --name NAME` left running), and prints a
Markdown table. CPU is the share of one core, from /proc/PID/stat of the agent, of pid 1 and of the bus; a change is
timed from systemd's own StateChangeTimestamp to the moment the console has it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

from console.demo import host as demo
from console.demo import state
from console.errors import HostError
from console.fleet.model import HostFacts, Role
from console.host.client import HostClient
from tests.conftest import DemoHost
from tests.host.live import agent_pid, inside, unit, until

TEMPLATE = "[Service]\nExecStart=/bin/sleep 100000\nMemoryMax=32M\nRestart=always\n[Unit]\nStartLimitIntervalSec=0\n"
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--units", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long the idle agent is watched")
    parser.add_argument("--changes", type=int, default=30, help="how many changes of one unit are timed")
    parser.add_argument("--host", default=os.environ.get("WORKTOP_TEST_HOST", ""), help="a demo host that runs")
    chosen = parser.parse_args()
    booted = None
    if chosen.host:
        running = state.running(chosen.host)
        if running is None:
            parser.error(f"no demo host {chosen.host} is running")
        host = DemoHost(running)
    else:
        booted = demo.boot(f"bench-{os.getpid()}")
        host = DemoHost(booted.host)
    try:
        rows = asyncio.run(_measure(host, chosen.units, chosen.seconds, chosen.changes))
    finally:
        if booted:
            booted.close()
    print("| what | measured |\n|---|---|")
    for what, measured in rows:
        print(f"| {what} | {measured} |")


async def _measure(host: DemoHost, units: int, seconds: float, changes: int) -> list[tuple[str, str]]:
    file = "/run/systemd/system/bench@.service"
    await inside(host, f"printf '{TEMPLATE}' > {file}; systemctl daemon-reload")
    await inside(host, f"systemctl start $(seq -f 'bench@%g' 1 {units})")
    role = Role(
        name="bench",
        template="bench@.service",
        instances=tuple(str(n) for n in range(1, units + 1)),
        match=("^/bin/sleep 100000$",),
    )
    rows: list[tuple[str, str]] = [(f"units, and processes of the role `{role.name}`", str(units))]
    try:
        rows += await _first_facts(host, role)
        async with _client(host, role) as client:
            await client.ready(30)
            await asyncio.sleep(15)  # the units are no longer young
            for work in (_idle, _pushed, _storm):
                rows += await _of(work, client, host, seconds, changes)
    finally:
        await inside(host, f"systemctl stop 'bench@*'; rm {file}; systemctl daemon-reload")
    return rows


Measurement = Callable[[HostClient, DemoHost, float, int], Awaitable[list[tuple[str, str]]]]


async def _of(
    work: Measurement, client: HostClient, host: DemoHost, seconds: float, changes: int
) -> list[tuple[str, str]]:
    try:
        return await work(client, host, seconds, changes)
    except (HostError, AssertionError) as error:
        return [(work.__name__.strip("_"), f"failed: {error}")]


def _client(host: DemoHost, role: Role) -> HostClient:
    return HostClient([role], command=tuple(host.exec_argv([host.worktop, "agent"])))


async def _first_facts(host: DemoHost, role: Role) -> list[tuple[str, str]]:
    greeted, drawn, complete, pid_1 = [], [], [], []
    for _ in range(5):
        before = _cpu(host.leader_pid)
        started = time.monotonic()
        async with _client(host, role) as client:
            ready = asyncio.create_task(client.ready(60))
            await until(partial(_said, client), 60)
            greeted.append(time.monotonic() - started)
            await until(partial(_drawn, client, ready), 60)
            drawn.append(time.monotonic() - started)
            await ready
            complete.append(time.monotonic() - started)
            pid_1.append(_cpu(host.leader_pid) - before)
    return [
        ("start to the agent's hello", _spread(greeted)),
        ("start to the first states of the units", _spread(drawn)),
        ("start to complete facts", _spread(complete)),
        ("hello to complete facts", _spread([end - begin for begin, end in zip(greeted, complete, strict=True)])),
        ("CPU of pid 1 for that", _spread(pid_1)),
    ]


def _said(client: HostClient) -> bool:
    return client.facts.hello is not None


def _drawn(client: HostClient, ready: asyncio.Task[HostFacts]) -> bool:
    return bool(client.facts.units.value) or ready.done()


def _is(client: HostClient, name: str, state: str) -> bool:
    return unit(client.facts, name).active == state


async def _idle(client: HostClient, host: DemoHost, seconds: float, _: int) -> list[tuple[str, str]]:
    agent = agent_pid(client)
    parts = {"agent": agent, "pid 1": host.leader_pid, "bus": _bus(host)}
    before = {name: _cpu(pid) for name, pid in parts.items()}
    written, started = _written(agent), time.monotonic()
    await asyncio.sleep(seconds)
    took = time.monotonic() - started
    rows = [(f"idle: CPU of the {name}", f"{(_cpu(pid) - before[name]) / took:.2%}") for name, pid in parts.items()]
    rows.append(("idle: to the console", f"{(_written(agent) - written) / took:.0f} B/s"))
    rows.append(("memory of the agent (RSS)", f"{_resident(agent) / 2**20:.0f} MB"))
    return rows


async def _pushed(client: HostClient, host: DemoHost, _: float, changes: int) -> list[tuple[str, str]]:
    name = "bench@7.service"
    took: list[float] = []
    for number in range(changes):
        verb, wanted = ("start", "active") if number % 2 else ("stop", "inactive")
        command = asyncio.create_task(inside(host, f"systemctl {verb} {name}"))
        await until(partial(_is, client, name, wanted))
        took.append(time.time() - (unit(client.facts, name).since or 0))
        await command
        await asyncio.sleep(0.1 + 0.037 * (number % 7))  # anywhere between two readings
    return [("a change of state to the console", _spread(took))]


async def _storm(client: HostClient, host: DemoHost, _: float, __: int) -> list[tuple[str, str]]:
    agent = agent_pid(client)
    before = {each.name: each.invocation for each in client.facts.units.value or ()}
    waits: list[float] = []
    cpu, pid_1, started = _cpu(agent), _cpu(host.leader_pid), time.monotonic()
    storm = asyncio.create_task(inside(host, "systemctl restart 'bench@*'"))
    ended = settled = 0.0
    while not settled:
        waits.append(await client.ping(30))
        await asyncio.sleep(0.005)
        if storm.done() and not ended:
            ended = time.monotonic()
        units = client.facts.units.value or ()
        now = time.monotonic()
        if ended and (
            now - ended > 20
            or all(
                each.active == "active" and each.invocation != before[each.name]
                for each in units
                if each.name in before and each.name.startswith("bench@")
            )
        ):
            settled = now
    await storm
    waits.sort()
    return [
        ("storm: all restarted after", f"{ended - started:.2f} s"),
        ("storm: all told to the console after that", f"{settled - ended:.2f} s"),
        ("storm: a request waits, median", f"{statistics.median(waits) * 1e3:.0f} ms"),
        ("storm: a request waits, 99th percentile", f"{waits[int(len(waits) * 0.99)] * 1e3:.0f} ms"),
        ("storm: a request waits at most", f"{waits[-1] * 1e3:.0f} ms"),
        ("storm: CPU of the agent", f"{_cpu(agent) - cpu:.2f} s"),
        ("storm: CPU of pid 1", f"{_cpu(host.leader_pid) - pid_1:.2f} s"),
    ]


# --- numbers ------------------------------------------------------------------------------------------------------


def _bus(host: DemoHost) -> int:
    """The bus daemon of the demo host: the child of its pid 1 with that name."""
    pid = host.leader_pid
    return next(child for child in _children(pid) if Path(f"/proc/{child}/comm").read_text().startswith("dbus-"))


def _children(pid: int) -> Iterator[int]:
    yield from map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split())


def _cpu(pid: int) -> float:
    """Seconds of CPU of all threads, in nanosecond steps: clock ticks are too coarse for an idle process."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def _written(pid: int) -> int:
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar:"))


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _spread(values: list[float]) -> str:
    """Milliseconds: median [least .. most]."""
    low, middle, high = (value * 1e3 for value in (min(values), statistics.median(values), max(values)))
    return f"{middle:.0f} ms [{low:.0f} .. {high:.0f}]"


if __name__ == "__main__":
    main()
