"""The client with real agents as children, on whatever this machine is: no systemd is needed here."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.fleet.model import Role
from console.host import spawn
from console.host.client import HostClient
from tests.host.live import until

NOWHERE = "unix:path=/nonexistent"


@pytest.fixture(autouse=True)
def without_a_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", NOWHERE)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", NOWHERE)


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process to be found: its command line is unlike any other."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", f"victim-{os.getpid()}"])
    yield child
    child.kill()
    child.wait()


def _gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


async def test_everything_but_systemd_is_told_within_a_moment(victim: subprocess.Popen[bytes]) -> None:
    role = Role(name="victim", match=(f"victim-{os.getpid()}",))
    async with HostClient([role]) as client:
        facts = await client.ready(10)
        assert facts.hello and facts.hello.manager == "none" and facts.hello.uid == os.geteuid()
        assert facts.units.value is None and facts.units.problem
        assert [each.ident.pid for each in facts.processes.value or ()] == [victim.pid]
        assert facts.host.value and facts.host.value.memory_total
        assert facts.schedules.taken
        assert 0 < await client.ping() < 2
        process = client.process
    assert process and process.returncode == 0, "it ended by itself when its stdin closed"


async def test_roles_can_be_changed_and_pids_looked_up(victim: subprocess.Popen[bytes]) -> None:
    async with HostClient([], interval=0.2) as client:
        assert (await client.ready(10)).processes.value is not None
        client.watch([Role(name="victim", match=(f"victim-{os.getpid()}",))])
        await until(lambda: [each.role for each in client.facts.processes.value or ()] == ["victim"])
        await client.look_up([victim.pid, 4_000_000])
        held, free = client.facts.holders.value or ()
        assert (held.pid, free.start) == (victim.pid, None)
        assert held.start == (client.facts.processes.value or ())[0].ident.start
        victim.kill()
        victim.wait()
        await until(lambda: client.facts.processes.value == ())
        await client.look_up([victim.pid])
        assert (client.facts.holders.value or ())[0].start is None


async def test_a_killed_agent_is_said_started_again_and_never_left_behind() -> None:
    client = HostClient([], interval=0.2)
    run = asyncio.create_task(client.run())
    await until(lambda: client.facts.host.value)
    first = client.process
    assert first
    os.kill(first.pid, signal.SIGKILL)
    await until(lambda: client.facts.agent.problem)
    facts = client.facts
    assert facts.agent.problem and facts.agent.problem.why == "was killed by SIGKILL"
    assert facts.host.value and facts.host.problem and facts.host.failing_since
    await client.look_up([1])
    assert client.facts.holders.problem
    await until(lambda: client.facts.agent.problem is None and client.facts.host.problem is None)
    second = client.process
    assert second and second.pid != first.pid
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert _gone(first.pid) and _gone(second.pid)


async def test_an_agent_started_before_is_used() -> None:
    child = spawn.spawn()
    async with HostClient([], process=child) as client:
        assert (await client.ready(10)).hello
        assert client.process is child
    assert _gone(child.pid)


async def test_a_console_that_is_killed_leaves_no_agent() -> None:
    child = spawn.spawn()
    assert child.stdin and child.stdout
    assert child.stdout.readline().startswith(b'{"type":"hello"')
    child.stdin.write(b'{"id":1,"method":"watch","params":{"interval":0.2}}\n')
    child.stdin.flush()
    child.stdin.close()
    assert await asyncio.to_thread(child.wait, 5) == 0
    child.stdout.close()
    if child.stderr:
        child.stderr.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_the_agent(number: signal.Signals) -> None:
    child = spawn.spawn()
    assert child.stdin and child.stdout and child.stderr
    child.stdout.readline()
    child.send_signal(number)
    assert await asyncio.to_thread(child.wait, 5) == 0
    for stream in (child.stdin, child.stdout, child.stderr):
        stream.close()


async def test_the_agent_does_not_get_the_terminals_ctrl_c() -> None:
    child = spawn.spawn()
    assert child.stdin and child.stdout and child.stderr
    child.stdout.readline()
    assert os.getsid(child.pid) == child.pid != os.getsid(0)
    child.stdin.close()
    await asyncio.to_thread(child.wait, 5)
    child.stdout.close()
    child.stderr.close()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("/nonexistent/worktop", "agent"), "No such file"),
        (("sh", "-c", "echo sudo: a password is required >&2; exit 1"), "status 1: sudo: a password is required"),
        (("sh", "-c", "kill -SEGV $$"), "SIGSEGV"),
        (("echo", '{"type":"hello","hello":{"protocol":99,"version":"9","host":"x"}}'), "speaks protocol 99"),
        (("echo", "Welcome to host db1!"), "a line that is no message"),
        (("sh", "-c", "head -c 20000000 /dev/zero; sleep 60"), "longer than"),
    ],
)
async def test_an_agent_that_cannot_be_is_a_clear_problem(command: tuple[str, ...], why: str) -> None:
    async with HostClient([], command=command) as client:
        facts = await client.ready(10)
        assert facts.agent.problem and why in facts.agent.problem.why
        for reading in (facts.units, facts.processes, facts.host, facts.schedules):
            assert reading.value is None and reading.problem


async def test_ready_gives_up_in_time() -> None:
    started = time.monotonic()
    async with HostClient([], command=("sleep", "60")) as client:
        facts = await client.ready(0.5)
        child = client.process
        assert time.monotonic() - started < 2 and facts.hello is None
    assert child and _gone(child.pid)


async def test_a_failing_callback_is_not_lost() -> None:
    def fails(at_once: bool) -> None:
        raise RuntimeError("the callback failed")

    client = HostClient([], on_change=fails)
    with pytest.raises(RuntimeError, match="the callback failed"):
        await client.ready(10)
    with pytest.raises(RuntimeError):
        await client.close()


def test_the_agent_loads_neither_the_console_nor_the_queue() -> None:
    script = "import sys, console.host.agent, console.cli.agent; print(*sorted({n.split('.')[0] for n in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"textual", "rich", "psycopg"} & set(loaded)


def test_starting_it_loads_the_standard_library_only() -> None:
    script = "import sys; before = set(sys.modules); import console.host.spawn; print(*(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    foreign = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    assert foreign <= {"console"}, foreign


async def test_requests_that_are_not_understood_are_answered() -> None:
    child = spawn.spawn()
    assert child.stdin and child.stdout and child.stderr
    child.stdout.readline()
    for line in (
        b'{"id":7,"method":"dance"}',
        b"not json",
        b'{"id":8,"method":"watch","params":{"roles":[{"name":1}]}}',
        b'{"id":9,"method":"watch","params":{"roles":[{"name":"x","match":["("]}]}}',
    ):
        child.stdin.write(line + b"\n")
    child.stdin.write(b'{"id":10,"method":"ping"}\n')
    child.stdin.flush()
    answers = [await asyncio.to_thread(child.stdout.readline) for _ in range(5)]
    assert b'"id":7' in answers[0] and b"no such method" in answers[0]
    assert b'"id":0' in answers[1] and b"not understood" in answers[1]
    assert b'"id":8' in answers[2] and b"parameters not understood" in answers[2]
    assert b'"id":9' in answers[3] and b"parameters not understood" in answers[3]
    assert answers[4] == b'{"type":"response","id":10,"result":"ok"}\n'
    child.stdin.close()
    await asyncio.to_thread(child.wait, 5)
    child.stdout.close()
    child.stderr.close()
