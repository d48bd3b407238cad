"""Follows of the journal of a real systemd, over everything that goes away and comes back."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from console.errors import HostError
from console.fleet.model import LogLine
from console.host.client import HostClient
from tests.conftest import DemoHost
from tests.host.conftest import Template
from tests.host.live import NO_GROUPS, agent, agent_pid, inside, role, until

pytestmark = pytest.mark.host

RUN = os.getpid()  # a name of its own for each run: the journal keeps what earlier runs wrote

TALKS = "ExecStart=/bin/sh -c 'echo one %i; echo two %i; while read line; do echo said $line; done </run/probe-%i'"


class Heard:
    """Collects what a follow tells."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.batches: list[int] = []

    def __call__(self, lines: tuple[LogLine, ...]) -> None:
        self.lines += lines
        self.batches.append(len(lines))

    def own(self) -> list[str]:
        return [line.text for line in self.lines if not line.by_manager]


async def _say(host: DemoHost, text: str, number: int = 1) -> None:
    await inside(host, f"echo {text} > /run/probe-{number}")


async def _start(host: DemoHost, name: str, *numbers: int) -> None:
    """Instances that repeat what is written to their fifo, which is held open for writing."""
    for number in numbers:
        fifo = f"/run/probe-{number}"
        await inside(host, f"rm -f {fifo}; mkfifo {fifo}; systemctl start {name}@{number}")
        await inside(host, f"systemd-run -q --unit=probe-holds-{number} sh -c 'exec 3>{fifo}; sleep 600'")


async def _end(host: DemoHost, *numbers: int) -> None:
    await inside(
        host, " ".join(f"systemctl stop probe-holds-{number}; rm -f /run/probe-{number};" for number in numbers)
    )


async def _children(host: DemoHost, client: HostClient) -> list[str]:
    """The journalctl children inside that follow."""
    found = await inside(host, "ps -eo args | grep '[j]ournalctl.*--follow.*probe' || true")
    return found.splitlines()


async def test_history_comes_first_and_then_what_is_written(demo_host: DemoHost, template: Template) -> None:
    name = template(f"probelog{RUN}", TALKS)
    await _start(demo_host, f"probelog{RUN}", 1, 2)
    heard = Heard()
    try:
        async with agent(demo_host, [role(name, "12")]) as client:
            follow = await client.follow_log((f"probelog{RUN}@*.service",), heard)
            await until(lambda: {"one 1", "two 1", "one 2", "two 2"} <= set(heard.own()), what=str(heard.lines))
            for number in range(20):
                await _say(demo_host, f"word {number}", number % 2 + 1)
            await until(lambda: len(heard.own()) >= 24)
            own = heard.own()
            for instance in (0, 1):
                said = [line.text for line in heard.lines if line.unit == f"probelog{RUN}@{instance + 1}.service"]
                assert said[-10:] == [f"said word {number}" for number in range(instance, 20, 2)]
            assert len(own) == len(set(own)), "nothing is doubled"
            assert follow.problem is None
            assert {line.unit for line in heard.lines} == {f"probelog{RUN}@1.service", f"probelog{RUN}@2.service"}
            assert any(line.by_manager and line.text.startswith("Started") for line in heard.lines)
            assert heard.lines == sorted(heard.lines, key=lambda line: line.at)
            assert len(await _children(demo_host, client)) == 1, "one child for all instances"
            # an instance nobody knew of
            await _start(demo_host, f"probelog{RUN}", 9)
            await until(lambda: "two 9" in heard.own(), what="an instance that appeared is followed too")
            await follow.stop()
            assert await _children(demo_host, client) == []
            units = (f"probelog{RUN}@*.service",)
            found, problem = await client.read_log(units, mentions="1")
            assert [line.text for line in found if not line.by_manager] == ["one 1", "two 1", "said word 1"]
            assert problem is None
            middle = next(line.at for line in heard.lines if line.text == "said word 5")
            found, _ = await client.read_log(units, since=middle - 1e-5, until=middle + 1e-5)
            assert "said word 5" in [line.text for line in found]
            assert "said word 19" not in [line.text for line in found]
            assert len((await client.read_log(units, lines=3))[0]) == 3
            before = len(heard.lines)
            await _say(demo_host, "unheard")
            await client.ping()
            assert len(heard.lines) == before
            own = heard.own()
            assert len(own) == len(set(own)), "nothing was doubled by looking anew"
    finally:
        await _end(demo_host, 1, 2, 9)


async def test_a_follow_goes_on_when_the_agent_was_killed(demo_host: DemoHost, template: Template) -> None:
    name = template(f"probekill{RUN}", TALKS)
    await _start(demo_host, f"probekill{RUN}", 1)
    heard = Heard()
    try:
        async with agent(demo_host, [role(name, "1")]) as client:
            follow = await client.follow_log((f"probekill{RUN}@1.service",), heard, lines=50)
            await _say(demo_host, "before")
            await until(lambda: "said before" in heard.own())
            os.kill(agent_pid(client), signal.SIGKILL)
            await until(lambda: follow.problem is not None)
            assert follow.problem and "SIGKILL" in follow.problem.why
            await until(
                lambda: demo_host.run(["pgrep", "-f", f"[j]ournalctl.*follow.*probekill{RUN}"], check=False).returncode
            )
            await _say(demo_host, "meanwhile")
            await until(lambda: "said meanwhile" in heard.own())
            await _say(demo_host, "after")
            await until(lambda: "said after" in heard.own())
            assert follow.problem is None
            assert [text for text in heard.own() if text.startswith("said")] == [
                "said before",
                "said meanwhile",
                "said after",
            ]
            await follow.stop()
            await follow.stop()
        assert await _children(demo_host, client) == []
    finally:
        await _end(demo_host, 1)


async def test_a_follow_goes_on_over_a_rotation(demo_host: DemoHost, template: Template) -> None:
    name = template(f"proberot{RUN}", TALKS)
    await _start(demo_host, f"proberot{RUN}", 1)
    heard = Heard()
    try:
        async with agent(demo_host, [role(name, "1")]) as client:
            await client.follow_log((name.replace("@.", "@1."),), heard)
            await _say(demo_host, "before")
            await until(lambda: "said before" in heard.own())
            await inside(demo_host, "journalctl --rotate")
            await _say(demo_host, "after")
            await until(lambda: "said after" in heard.own())
            own = heard.own()
            assert len(own) == len(set(own))
        assert await _children(demo_host, client) == [], "the console's end is the end of its follows"
    finally:
        await _end(demo_host, 1)


async def test_hostile_entries_come_as_they_are(demo_host: DemoHost, template: Template) -> None:
    """Escapes, bytes that are no UTF-8, more than 4 KB, more than 2 MB, and a UNIT= that anybody can write."""
    script = (
        r"printf 'esc \033[31m\033]52;c;eHg=\007 end\n'; printf 'bad \377\376 end\n';"
        '/usr/bin/python3 -c \'print("long", "x" * 6000)\'; echo fin; exec sleep 4731'
    )
    await inside(demo_host, "cat > /run/probe.sh <<'END'\n" + script + "\nEND\n")
    template(f"probehost{RUN}", "ExecStart=/bin/sh /run/probe.sh")
    heard = Heard()
    try:
        async with agent(demo_host, []) as client:
            await client.follow_log((f"probehost{RUN}@1.service",), heard)
            await inside(demo_host, f"systemctl start probehost{RUN}@1")
            await until(lambda: "fin" in heard.own())
            own = {text.split(" ")[0]: text for text in heard.own()}
            assert own["esc"] == "esc \x1b[31m\x1b]52;c;eHg=\x07 end", "raw between the layers"
            assert own["bad"] == "bad \ufffd\ufffd end"
            assert own["long"].startswith("long xxx") and len(own["long"]) == 4001 and own["long"].endswith("…")
            forged = f"printf 'MESSAGE=forged\\nUNIT=probehost{RUN}@1.service\\nPRIORITY=0\\n' | logger --journald"
            await inside(demo_host, forged)
            huge = (
                "import socket, os; f = os.memfd_create('x', os.MFD_ALLOW_SEALING); m = b'y' * 5000000;"
                "os.write(f, b'MESSAGE=huge ' + m + b'\\nOBJECT_PID=' + open('/run/p','rb').read());"
                "import fcntl; fcntl.fcntl(f, 1033, 15); s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM);"
                "s.connect('/run/systemd/journal/socket'); socket.send_fds(s, [b''], [f])"
            )
            await inside(demo_host, f'systemctl show -P MainPID probehost@1 > /run/p; python3 -c "{huge}"')
            await inside(demo_host, f"systemctl stop probehost{RUN}@1")
            await until(lambda: any(line.text.startswith("Stopped") for line in heard.lines))
            assert "forged" not in [line.text for line in heard.lines]
            assert client.facts.agent.problem is None
    finally:
        await inside(demo_host, "rm -f /run/probe.sh /run/p")


async def test_a_flood_is_told_in_batches_and_holds_nothing_up(demo_host: DemoHost, template: Template) -> None:
    name = template(f"probeflood{RUN}", "LogRateLimitIntervalSec=0\nExecStart=/usr/bin/seq 20000")
    heard = Heard()
    async with agent(demo_host, [role(name, "1")]) as client:
        await client.follow_log((f"probeflood{RUN}@1.service",), heard, lines=10)
        waits: list[float] = []
        await inside(demo_host, f"systemctl start probeflood{RUN}@1")

        def ended() -> bool:
            return "20000" in heard.own()

        while not ended():
            waits.append(await client.ping())
            await asyncio.sleep(0.02)
            assert len(waits) < 2000
        assert max(heard.batches) <= 500
        numbers = [int(text) for text in heard.own() if text.isdigit()]
        assert numbers == sorted(numbers)
        gaps = [line.text for line in heard.lines if "left out" in line.text]
        left = sum(int(text.split()[1]) for text in gaps)
        assert left + len(numbers) >= 20000, "what was left out is counted"
        assert max(waits) < 1.0


async def test_several_follows_and_their_limit(demo_host: DemoHost, template: Template) -> None:
    name = template(f"probemany{RUN}", "ExecStart=/bin/echo hello")
    await inside(demo_host, f"systemctl start probemany{RUN}@1")
    async with agent(demo_host, [role(name, "1")]) as client:
        heard = [Heard() for _ in range(16)]
        follows = [await client.follow_log((f"probemany{RUN}@1.service",), each, lines=5) for each in heard]
        with pytest.raises(HostError, match="16 follows run already"):
            await client.follow_log((f"probemany{RUN}@1.service",), Heard())
        await until(lambda: all("hello" in each.own() for each in heard), 30)
        for follow in follows[1:]:
            await follow.stop()
        assert len(await _children(demo_host, client)) == 1
        for units in ((), ("",), ("a/b.service",)):
            with pytest.raises(HostError):
                await client.follow_log(units, Heard())
        assert client.facts.agent.problem is None


async def test_what_an_account_may_not_read_is_said(demo_host: DemoHost, template: Template) -> None:
    template(f"probedeny{RUN}", "ExecStart=/bin/echo hello")
    await inside(demo_host, f"systemctl start probedeny{RUN}@1")
    async with agent(demo_host, [], through=NO_GROUPS) as client:
        heard = Heard()
        follow = await client.follow_log((f"probedeny{RUN}@1.service",), heard)
        await until(lambda: follow.problem)
        assert follow.problem and follow.problem.why == "not permitted" and "systemd-journal" in follow.problem.do
        assert heard.lines == []


async def test_units_that_have_logged_nothing_yet(demo_host: DemoHost, template: Template) -> None:
    name = template(f"probenew{RUN}", "ExecStart=/bin/sh -c 'echo first words; exec sleep 4732'")
    async with agent(demo_host, [role(name, "34")]) as client:
        heard = Heard()
        await client.follow_log((f"probenew{RUN}@*.service",), heard)
        await inside(demo_host, f"systemctl start probenew{RUN}@4")
        await until(lambda: "first words" in heard.own())
        nobody = await client.follow_log(("nosuch@*.service",), heard)
        await until(lambda: nobody.problem)
        assert nobody.problem and nobody.problem.why == "nothing logged"
