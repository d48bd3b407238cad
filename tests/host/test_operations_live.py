"""The agent acts on a real host: jobs of systemd, signals to one process, who is connected, what is permitted."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from console.demo import fleet
from console.errors import HostError
from console.fleet.model import Backend, Ident
from console.fleet.operations import UnitProgress
from console.host import polkit
from console.host.client import HostClient
from tests.conftest import DemoHost
from tests.host.conftest import Template
from tests.host.live import agent, agent_pid, inside, processes, role, unit, until

pytestmark = pytest.mark.host

SLEEP = "ExecStart=/bin/sleep 100000\nRestartSec=100ms"
NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
DEPLOYS = f"User=deploy\n{SLEEP}"


def ident(client: HostClient, pid: int, start: int | None = None) -> Ident:
    """Who has this pid inside now."""
    found = next((each for each in client.facts.holders.value or () if each.pid == pid), None)
    assert client.facts.hello is not None
    assert start is not None or (found is not None and found.start is not None)
    return Ident(client.facts.hello.boot_id, pid, start if start is not None else (found.start if found else 0) or 0)


# --- jobs of systemd ---------------------------------------------------------------------------------------------


async def test_start_stop_restart(demo_host: DemoHost, template: Template) -> None:
    name = template("op", SLEEP)
    async with agent(demo_host, [role(name, "1")]) as client:
        started = await client.unit_job("op@1.service", "start")
        assert (started.result, started.ok, started.active, started.sub) == ("done", True, "active", "running")
        assert started.main_pid > 1 and started.text == f"op@1.service runs as pid {started.main_pid}"
        again = await client.unit_job("op@1.service", "start")
        assert again.ok and again.invocation == started.invocation, "it ran already"
        restarted = await client.unit_job("op@1.service", "restart")
        assert restarted.ok and restarted.main_pid != started.main_pid
        stopped = await client.unit_job("op@1.service", "stop")
        assert (stopped.result, stopped.ok, stopped.active, stopped.main_pid) == ("done", True, "inactive", 0)
        assert stopped.took < 1.0 and stopped.text == "op@1.service is stopped"
        await until(lambda: unit(client.facts, "op@1.service").active == "inactive")
        assert (await client.unit_job("op@1.service", "stop")).ok, "it is stopped already"


async def test_a_start_that_fails_says_why(demo_host: DemoHost, template: Template) -> None:
    template("opfail", "Type=notify\nExecStart=/bin/sh -c 'exit 3'")
    template("opearly", "ExecStart=/bin/sh -c 'sleep 0.1; exit 4'")
    template("oplimit", "Type=notify\nExecStart=/bin/false", "StartLimitIntervalSec=60\nStartLimitBurst=1")
    async with agent(demo_host, []) as client:
        failed = await client.unit_job("opfail@1.service", "start")
        assert (failed.result, failed.ok, failed.active) == ("failed", False, "failed")
        assert re.fullmatch(r"opfail@1.service did not start: exit status 3 after \S+ ?m?s", failed.text), failed.text
        early = await client.unit_job("opearly@1.service", "start")
        assert (early.result, early.ok, early.active) == ("done", False, "failed"), "systemd says done: it was started"
        assert "was started, but ended again: exit status 4" in early.text
        for _ in range(2):
            limited = await client.unit_job("oplimit@1.service", "start")
        assert not limited.ok and "start limit" in limited.text and "reset-failed" in limited.text
        assert (
            await client.unit_job("oplimit@1.service", "reset-failed")
        ).text == "oplimit@1.service is inactive (dead)"
        with pytest.raises(HostError, match=r"start opnone@1.service: .*opnone@1.service not found"):
            await client.unit_job("opnone@1.service", "start")
        with pytest.raises(HostError, match=r"stop opnone@1.service: .*opnone@1.service not found"):
            await client.unit_job("opnone@1.service", "stop")
        with pytest.raises(HostError, match="that is no name of a service"):
            await client.unit_job("op@1.service --force", "stop")


async def test_a_stop_that_takes_its_time_holds_nothing_up(demo_host: DemoHost, template: Template) -> None:
    """SIGTERM is ignored: systemd kills after TimeoutStopSec."""
    stubborn = "ExecStart=/bin/sh -c 'trap \"\" TERM; while :; do sleep 0.1; done'\nTimeoutStopSec=3"
    name = template("opslow", stubborn)
    async with agent(demo_host, [role(name, "12")]) as client:
        for number in "12":
            assert (await client.unit_job(f"opslow@{number}.service", "start")).ok
        told: list[UnitProgress] = []
        stopping = asyncio.create_task(client.unit_job("opslow@1.service", "stop", on_progress=told.append))
        hasty = asyncio.create_task(client.unit_job("opslow@2.service", "stop", timeout=0.5))
        slowest = 0.0
        while not stopping.done():
            slowest = max(slowest, await client.ping())
            await asyncio.sleep(0.05)
        assert slowest < 2.0, "the stop takes three seconds"
        stopped = await stopping
        assert stopped.ok and stopped.took > 2.5
        assert stopped.text == "opslow@1.service is stopped; it did not end in time and was killed"
        assert told and told[0].active == "deactivating" and told[0].sub == "stop-sigterm"
        assert told[0].remaining is not None and 0 <= told[0].remaining <= 3
        with pytest.raises(HostError, match=r"stop opslow@2.service: not over after 0 s; .*; systemd goes on with it"):
            await hasty


async def test_many_jobs_at_once(demo_host: DemoHost, template: Template) -> None:
    name = template("opmany", SLEEP)
    units = [f"opmany@{number}.service" for number in range(10)]
    async with agent(demo_host, [role(name, "0123456789")]) as client:
        assert all(job.ok for job in await asyncio.gather(*(client.unit_job(each, "start") for each in units)))
        assert all(job.ok for job in await asyncio.gather(*(client.unit_job(each, "stop") for each in units)))
        cancelled = asyncio.gather(*(client.unit_job(units[0], "start"), client.unit_job(units[0], "stop")))
        assert {job.result for job in await cancelled} <= {"done", "canceled"}


async def test_kill_enable_disable(demo_host: DemoHost, template: Template) -> None:
    name = template("opkill", f"{SLEEP}\nRestart=no\n[Install]\nWantedBy=multi-user.target")
    async with agent(demo_host, [role(name, "1")]) as client:
        await client.unit_job("opkill@1.service", "start")
        killed = await client.unit_job("opkill@1.service", "kill", signal="INT")
        assert killed.ok and killed.text.startswith("SIGINT was sent to every process of opkill@1.service")
        await until(lambda: unit(client.facts, "opkill@1.service").active != "active")
        with pytest.raises(HostError, match=r"signal NOPE: there is no such signal"):
            await client.unit_job("opkill@1.service", "kill", signal="NOPE")
        assert (await client.unit_job("opkill@1.service", "enable")).ok
        assert (await inside(demo_host, "systemctl is-enabled opkill@1 || true")).startswith("enabled")
        assert (await client.unit_job("opkill@1.service", "disable")).ok
        assert (await inside(demo_host, "systemctl is-enabled opkill@1 || true")).startswith("disabled")


async def test_a_job_survives_a_reload_and_the_end_of_the_bus_is_told(demo_host: DemoHost, template: Template) -> None:
    stubborn = "ExecStart=/bin/sh -c 'trap \"\" TERM; while :; do sleep 0.1; done'\nTimeoutStopSec=2"
    name = template("opload", stubborn)
    async with agent(demo_host, [role(name, "1")]) as client:
        await client.unit_job("opload@1.service", "start")
        stopping = asyncio.create_task(client.unit_job("opload@1.service", "stop"))
        await until(lambda: unit(client.facts, "opload@1.service").active == "deactivating")
        await inside(demo_host, "systemctl daemon-reload")
        stopped = await stopping
        assert (stopped.result, stopped.ok) == ("done", True)


# --- rights ------------------------------------------------------------------------------------------------------


def need_polkit() -> None:
    """Without polkitd systemd allows nobody but root: the tests of the rule are skipped, or fail where all must run."""
    if Path("/usr/share/dbus-1/system-services/org.freedesktop.PolicyKit1.service").is_file():
        return
    reason = "polkitd is not installed"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


async def test_an_operator_may_and_nobody_may_not(demo_host: DemoHost, template: Template) -> None:
    """deploy is in the group of the demo host's polkit rule; the rule is for the roles' units alone."""
    need_polkit()
    template("opforeign", SLEEP)
    mail = role("mail-worker@.service", "123", name="mail")
    async with agent(demo_host, [mail], user="deploy") as client:
        rights = await client.rights()
        assert rights.uid == 1500 and rights.processes == "own" and not rights.rule
        assert rights.units[0].allowed == polkit.VERBS and rights.units[0].refused == ("enable", "disable")
        assert rights.allows("stop", "mail") and not rights.allows("enable", "mail")
        assert unit(client.facts, "mail-worker@1.service").active == "active", "asking has stopped nothing"
        restarted = await client.unit_job("mail-worker@3.service", "restart")
        assert restarted.ok, restarted
        with pytest.raises(HostError) as refused:
            await client.unit_job("opforeign@1.service", "start")
        assert refused.value.problem.line() == (
            "start opforeign@1.service: not permitted: interactive authentication required; "
            "worktop doctor --grants prints the polkit rule that allows it"
        )
        with pytest.raises(HostError, match=r"enable mail-worker@1.service: .*uthentication required; .*sudo"):
            await client.unit_job("mail-worker@1.service", "enable")
    async with agent(demo_host, [mail], through=NOBODY) as client:
        rights = await client.rights("ops")
        assert rights.units[0].allowed == () and rights.rule == polkit.rule([mail], "ops")
        for verb in ("start", "stop", "restart", "reset-failed", "kill"):
            with pytest.raises(HostError, match=f"{verb} mail-worker@1.service: not permitted"):
                await client.unit_job("mail-worker@1.service", verb)
        assert unit(client.facts, "mail-worker@1.service").active == "active"


async def test_doctor_prints_the_rule_that_is_installed(demo_host: DemoHost) -> None:
    need_polkit()
    printed = await inside(demo_host, f"{demo_host.worktop} doctor --grants", "deploy")
    installed = await inside(demo_host, f"cat {polkit.RULE_PATH}")
    assert installed.startswith(f"// {polkit.RULE_PATH}\n") and installed.partition("\n")[2] in printed
    assert "-- app lacks nothing to act on the job table." in printed
    checks = await inside(demo_host, f"{demo_host.worktop} doctor", "deploy")
    assert "rights on units: start, stop, restart, reset-failed, kill of mail, thumbnails" in checks


async def test_a_read_only_agent_changes_nothing(demo_host: DemoHost) -> None:
    mail = role("mail-worker@.service", "123", name="mail")
    async with agent(demo_host, [mail], options=["--read-only"]) as client:
        assert client.facts.hello and client.facts.hello.read_only
        rights = await client.rights()
        assert rights.read_only and not rights.allows("stop", "mail")
        with pytest.raises(HostError, match=r"stop mail-worker@1.service: the agent was started with --read-only"):
            await client.unit_job("mail-worker@1.service", "stop")
        pid = unit(client.facts, "mail-worker@1.service").main_pid
        await client.look_up([pid])
        with pytest.raises(HostError, match=f"signal TERM to pid {pid}: the agent was started with --read-only"):
            await client.signal(ident(client, pid), "TERM")
        assert not await client.wait_gone(ident(client, pid), 0.0)
        drop_in = "/etc/systemd/system/mail-worker@.service.d/50-worktop.conf"
        assert (await client.read_file(drop_in)).content is None
        with pytest.raises(HostError, match="the agent was started with --read-only"):
            await client.replace_file(drop_in, expected="", content=b"[Service]\nMemoryMax=1G\n")
        with pytest.raises(HostError, match="reload systemd: the agent was started with --read-only"):
            await client.daemon_reload()


# --- files -------------------------------------------------------------------------------------------------------


async def test_a_drop_in_is_verified_installed_and_taken_away(demo_host: DemoHost, template: Template) -> None:
    name = template("probelimit", "ExecStart=/bin/sleep 600\nMemoryMax=64M")
    await inside(demo_host, "systemctl start probelimit@1")
    path = f"/run/systemd/system/{name}.d/50-worktop.conf"
    try:
        async with agent(demo_host, [role(name, "1")]) as client:
            with pytest.raises(HostError, match="Invalid memory limit"):
                await client.replace_file(path, expected="", content=b"[Service]\nMemoryMax=lots\n", check="unit")
            assert (await client.read_file(path)).content is None, "what is not valid is not installed"
            written = await client.replace_file(path, expected="", content=b"[Service]\nMemoryMax=96M\n", check="unit")
            await client.daemon_reload()
            await until(lambda: unit(client.facts, "probelimit@1.service").memory_max == 96 * 2**20)
            await inside(demo_host, f"echo '# mine' >> {path}")
            with pytest.raises(HostError, match="changed: by somebody else"):
                await client.replace_file(path, expected=written.sha256, content=None)
            now = await client.read_file(path)
            removed = await client.replace_file(path, expected=now.sha256, content=None)
            assert "# mine" in await inside(demo_host, f"cat {removed.backup}")
            assert await inside(demo_host, f"stat -c %a {removed.backup}; rm {removed.backup}") == "600\n"
        async with agent(demo_host, [role(name, "1")], user="deploy") as client:
            with pytest.raises(HostError, match="not permitted"):
                await client.replace_file(path, expected="", content=b"[Service]\nMemoryMax=96M\n")
    finally:
        await inside(demo_host, f"rm -rf /run/systemd/system/{name}.d; systemctl stop probelimit@1")


# --- signals -----------------------------------------------------------------------------------------------------


async def test_a_signal_reaches_exactly_the_process_it_names(demo_host: DemoHost, template: Template) -> None:
    name = template("opsig", f"{DEPLOYS}\nRestart=no")
    async with agent(demo_host, [role(name, "12", "^/bin/sleep 100000$")], user="deploy") as client:
        await inside(demo_host, "systemctl start opsig@1 opsig@2")
        await until(lambda: len(processes(client.facts, role="probe")) == 2)
        one, two = (
            next(each.ident for each in processes(client.facts, unit=f"opsig@{number}.service")) for number in "12"
        )
        stale = msgspec.structs.replace(one, start=one.start - 1)
        with pytest.raises(HostError, match=rf"pid {one.pid} is another process now \(sleep\)"):
            await client.signal(stale, "KILL")
        assert await client.wait_gone(stale, 0.0), "whoever had the pid before is gone"
        with pytest.raises(HostError, match="the host has booted again since it was seen"):
            await client.signal(msgspec.structs.replace(one, boot_id="another"), "KILL")
        with pytest.raises(HostError, match="there is no such signal"):
            await client.signal(one, "NOPE")
        assert not await client.wait_gone(one, 0.1)
        gone = asyncio.create_task(client.wait_gone(one, 10))
        began = time.monotonic()
        await client.signal(one, "SIGTERM")
        assert await gone and time.monotonic() - began < 2
        with pytest.raises(HostError, match=f"signal TERM to pid {one.pid}: pid {one.pid} has ended; look at it again"):
            await client.signal(one, "TERM")
        await client.look_up([two.pid])
        assert ident(client, two.pid) == two, "the other one lives"
        postgres = int(await inside(demo_host, "systemctl show -P MainPID postgresql"))
        await client.look_up([postgres])
        with pytest.raises(HostError, match=r"not permitted: it belongs to another account; run the agent with more"):
            await client.signal(ident(client, postgres), "TERM")


async def test_the_manager_the_agent_and_what_it_runs_below_are_never_signalled(demo_host: DemoHost) -> None:
    async with agent(demo_host, [], through=["sh", "-c", '"$@"; exit $?', "-"]) as client:
        status = Path(f"/proc/{agent_pid(client)}/status").read_text()
        numbers = re.search(r"NSpid:\s+(?:\d+\s+)*(\d+)$", status, re.MULTILINE)
        assert numbers
        own = int(numbers[1])
        stat = await inside(demo_host, f"cut -d' ' -f4 /proc/{own}/stat")
        parent = int(stat)
        await client.look_up([1, own, parent])
        for pid, why in ((1, "the system's manager"), (own, "worktop's own agent"), (parent, "runs below it")):
            if pid > 0:
                with pytest.raises(HostError, match=why):
                    await client.signal(ident(client, pid), "KILL")
        assert await client.ping() < 5


async def test_a_reused_pid_is_not_the_process_that_had_it(demo_host: DemoHost) -> None:
    """The same pid is given away again (ns_last_pid): a signal to the one before must not reach it."""
    async with agent(demo_host, []) as client:
        script = (
            "sleep 300 >/dev/null 2>&1 & first=$!; kill -9 $first; wait $first; sleep 0.03; "
            "for try in $(seq 50); do echo $((first - 1)) > /proc/sys/kernel/ns_last_pid || exit; "
            "sleep 301 >/dev/null 2>&1 & [ $! = $first ] && { echo $first; exit; }; kill -9 $!; wait $!; done"
        )
        # in the PID namespace of the host, but with /proc/sys of the outside, which may be written
        only_pids = ["nsenter", f"--target={demo_host.leader_pid}", "--pid", "--", "sh", "-c", script]
        made = await asyncio.to_thread(subprocess.run, only_pids, capture_output=True, text=True, timeout=20)
        if not made.stdout.strip():
            pytest.skip("this kernel does not let a pid be chosen")
        pid = int(made.stdout)
        await client.look_up([pid])
        now = ident(client, pid)
        earlier = msgspec.structs.replace(now, start=now.start - 2)
        with pytest.raises(HostError, match=rf"pid {pid} is another process now"):
            await client.signal(earlier, "KILL")
        assert await client.wait_gone(earlier, 0.0) and not await client.wait_gone(now, 0.0)
        await client.signal(now, "KILL")
        assert await client.wait_gone(now, 5.0)


# --- connections of the database -----------------------------------------------------------------------------------

ADMIN = "host=/run/postgresql user=postgres dbname=app"
_BACKENDS = (
    "SELECT pid, coalesce(host(client_addr), ''), coalesce(nullif(client_port, -1), 0), application_name "
    "FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()"
)


async def _backends(host: DemoHost) -> list[Backend]:
    said = await inside(host, f'psql --no-psqlrc -At -c "{_BACKENDS}" "{ADMIN}"')
    rows = [line.split("|") for line in said.splitlines()]
    return [
        Backend(pid=int(pid), address=address, port=int(port) or None, application=application)
        for pid, address, port, application in rows
    ]


async def test_the_clients_of_the_database(demo_host: DemoHost) -> None:
    """psql over TCP and over the unix socket, as root and as an account that sees its own processes only."""
    wait = ["psql", "--no-psqlrc", "-c", "SELECT pg_sleep(60)"]
    children: list[subprocess.Popen[bytes]] = []
    for user, where, application in (("deploy", fleet.DSN, "by-tcp"), ("root", ADMIN, "by-unix")):
        command = ["env", f"PGAPPNAME={application}", *wait, where]
        children.append(demo_host.popen(command, user=user, stdin=-3, stdout=-3, stderr=-3))
    wanted = {"by-tcp", "by-unix"}
    try:
        backends: list[Backend] = []
        deadline = time.monotonic() + 10
        while not wanted <= {each.application for each in backends}:
            assert time.monotonic() < deadline, backends
            backends = await _backends(demo_host)
        chosen = [each for each in backends if each.application in wanted]
        elsewhere = Backend(pid=999999, address="192.0.2.7", port=41234)
        absent = Backend(pid=999998, address="127.0.0.1", port=1)
        async with agent(demo_host, [], user="root") as client:
            found = await client.clients([*chosen, elsewhere, absent], 5432)
            assert client.facts.clients.value == found
            assert {each.backend for each in found if not each.here} == {999999, 999998}
            for backend in chosen:
                own = [each for each in found if each.backend == backend.pid]
                assert [each.name for each in own] == ["psql"] and own[0].ident is not None, (backend, found)
                assert own[0].user == ("deploy" if backend.port else "root")
                command = await inside(demo_host, f"tr '\\0' ' ' < /proc/{own[0].ident.pid}/environ")
                assert f"PGAPPNAME={backend.application}" in command
        async with agent(demo_host, [], user="deploy") as client:
            found = await client.clients(chosen, 5432)
            tcp = next(each.pid for each in chosen if each.port)
            assert [each.name for each in found if each.backend == tcp] == ["psql"], (chosen, found)
            # the server's descriptors are hidden: the peers of its socket are told without a backend
            unsure = [each for each in found if each.backend == 0]
            assert unsure and all(each.here and each.ident is None for each in unsure), "root's psql is not seen"
        async with agent(demo_host, [], through=NOBODY) as client:
            found = await client.clients([each for each in chosen if each.port], 5432)
            assert [(each.here, each.ident, each.user) for each in found] == [(True, None, "deploy")]
    finally:
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name IN ('by-tcp', 'by-unix')"
        await inside(demo_host, f'psql --no-psqlrc -At -c "{ended}" "{ADMIN}"')
        for child in children:
            child.wait(10)


async def test_the_worker_behind_a_connection(demo_host: DemoHost) -> None:
    """The connections of the fleet's workers lead to the main processes of their units."""
    mail = role("mail-worker@.service", "123", "worker --role mail", name="mail")
    async with agent(demo_host, [mail], user="deploy") as client:
        backends = await _backends(demo_host)
        found = await client.clients(backends, 5432)
        pids = {each.ident.pid for each in found if each.ident is not None}
        assert {unit(client.facts, f"mail-worker@{number}.service").main_pid for number in "123"} <= pids
        units = {each.unit for each in found}
        assert {f"mail-worker@{number}.service" for number in "123"} <= units


def test_the_agent_of_this_process_is_an_ancestor_of_nobody() -> None:
    from console.host import signals

    me = Ident((Path("/proc/sys/kernel/random/boot_id").read_text()).strip(), os.getpid(), 0)
    with pytest.raises(HostError, match="own agent"):
        signals.send(me, "CONT")
