"""The agent against a real host: processes, whose they are, and what an unprivileged account may see."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess

import pytest

from console.host.client import HostClient
from tests.conftest import DemoHost
from tests.host.conftest import Template
from tests.host.live import agent, agent_pid, inside, processes, role, unit, until

pytestmark = pytest.mark.host


async def test_the_process_of_a_unit(demo_host: DemoHost, template: Template) -> None:
    name = template("probe", "User=deploy\nExecStart=/bin/sh -c 'sleep 4712 & exec sleep 4711'")
    await inside(demo_host, "systemctl start probe@1")
    async with agent(demo_host, [role(name, "1", "^sleep 4711$")]) as client:
        await until(lambda: len(processes(client.facts, unit="probe@1.service")) == 2)
        main = processes(client.facts, unit="probe@1.service", role="probe")[0]
        assert main.ident.pid == unit(client.facts, "probe@1.service").main_pid
        assert client.facts.hello and main.ident.boot_id == client.facts.hello.boot_id
        stat = await inside(demo_host, f"cat /proc/{main.ident.pid}/stat")
        assert main.ident.start == int(stat.rpartition(")")[2].split()[19])
        assert (main.user, main.uid, main.name) == ("deploy", 1500, "sleep")
        assert main.owner.kind == "systemd" and main.owner.name == "probe@1.service"
        assert main.rss and main.started and main.main
        assert (main.session, main.login_uid) == (None, None)
        assert "INVOCATION_ID" in main.marks and all("=" not in mark for mark in main.marks)
        helper = processes(client.facts, unit="probe@1.service", role="")[0]
        assert helper.ppid == main.ident.pid and not helper.main
        assert helper.ident.pid in main.children
        await client.look_up((main.ident.pid,))  # of holders of jobs it is known to the second
        await until(lambda: (processes(client.facts, role="probe")[0].idle_for or 0) > 1, what="idle time grows")
        assert processes(client.facts, role="probe")[0].cpu == 0


async def test_a_used_core_is_seen(demo_host: DemoHost, template: Template) -> None:
    name = template("probe", "ExecStart=/bin/sh -c 'while :; do :; done' busy-probe")
    await inside(demo_host, "systemctl start probe@1")
    async with agent(demo_host, [role(name, "1")]) as client:
        await until(lambda: (processes(client.facts, unit="probe@1.service")[0].cpu or 0) > 0.2)
        assert processes(client.facts, unit="probe@1.service")[0].idle_for == 0


async def test_the_orphans_of_a_crontab_name_its_line(demo_host: DemoHost) -> None:
    reports = role("reports-worker@.service", "1", "worker --role reports", name="reports")
    async with agent(demo_host, [reports]) as client:
        wanted = {"systemd", "cron"}
        await until(lambda: {each.owner.kind for each in processes(client.facts, role="reports")} == wanted, 75)
        by_cron = [each for each in processes(client.facts, role="reports") if each.owner.kind == "cron"]
        line = next(each for each in client.facts.schedules.value or () if "reports" in each.roles)
        assert (line.owner, line.kind, line.workers_per_tick, line.per_hour) == ("deploy", "launcher", 3, 60)
        for orphan in by_cron:
            assert orphan.ppid == 1 and orphan.unit == "cron.service" and orphan.main
            assert (orphan.owner.name, orphan.owner.detail) == ("deploy", f"crontab of deploy, line {line.line}")
            assert orphan.login_uid == 1500 and orphan.session
            assert any("cron.service" in sentence for sentence in orphan.owner.evidence)
            assert any(f"audit session is {orphan.session}" in sentence for sentence in orphan.owner.evidence)


async def test_a_crontab_has_the_same_line_numbers_for_everybody(demo_host: DemoHost) -> None:
    spool = "/var/spool/cron/crontabs/deploy"
    lines = "# one\\n# two\\n# three\\n# four\\n@yearly /bin/true\\n"
    await inside(demo_host, f"cp --preserve {spool} /run/kept-crontab")
    try:
        for install in (f"printf '{lines}' | crontab -u deploy -", f"printf '{lines}' > {spool}"):
            await inside(demo_host, install)
            edited = await inside(demo_host, "EDITOR='sed -n /yearly/=' crontab -e 2>&1 || true", "deploy")
            for user in ("root", "deploy"):
                async with agent(demo_host, [], user=user) as client:
                    found = [line for line in client.facts.schedules.value or () if line.owner == "deploy"]
                    assert [(line.source, line.line) for line in found] == [(spool, 5)], f"{user} after {install}"
            if "crontab -u" in install:
                assert "5" in edited.split(), "as an editor shows it"
    finally:
        await inside(demo_host, f"cp --preserve /run/kept-crontab {spool}; rm /run/kept-crontab")


async def test_a_shell_that_carries_the_text_is_no_worker(demo_host: DemoHost) -> None:
    shell = demo_host.popen(["sh", "-c", "sleep 4714; : probe --role carried"], user="deploy")
    try:
        async with agent(demo_host, [role(match="probe --role carried")]) as client:
            await until(lambda: client.facts.processes.taken)
            assert processes(client.facts, role="probe") == []
    finally:
        await inside(demo_host, "pkill -f '^sleep 4714' || true")
        shell.wait(10)


async def test_the_process_of_a_login_session(demo_host: DemoHost) -> None:
    await inside(demo_host, "runuser -l deploy -c 'nohup sleep 4716 >/dev/null 2>&1 &'")
    try:
        async with agent(demo_host, [role(match="^sleep 4716$")]) as client:
            process = processes(client.facts, role="probe")[0]
            assert process.owner.kind == "session" and process.owner.name == "deploy"
            assert process.unit.startswith("session-") and process.unit.endswith(".scope")
            assert any("nothing starts it again" in sentence for sentence in process.owner.evidence)
    finally:
        await inside(demo_host, "pkill -f '^sleep 4716' || true")


async def test_a_reused_pid_is_another_process(demo_host: DemoHost) -> None:
    async with agent(demo_host, [role(match="^sleep 4717$")]) as client:
        first = await inside(demo_host, "sleep 4717 >/dev/null 2>&1 & echo $!")
        await until(lambda: processes(client.facts, role="probe"))
        old = processes(client.facts, role="probe")[0].ident
        assert old.pid == int(first)
        await inside(demo_host, f"kill -9 {old.pid}; while test -d /proc/{old.pid}; do sleep 0.05; done")
        reuse = (
            "i=0; while [ $i -lt 50 ]; do echo $(($1 - 1)) > /proc/sys/kernel/ns_last_pid; sleep 4717 >/dev/null 2>&1 &"
            " p=$!; [ $p = $1 ] && break; kill -9 $p; i=$((i+1)); done; echo $p"
        )
        # the pid namespace alone: inside, /proc/sys is read-only
        outside = [
            "nsenter",
            f"--target={demo_host.leader_pid}",
            "--pid",
            "--",
            "sh",
            "-c",
            f"set -- {old.pid}; {reuse}",
        ]
        again = (await asyncio.to_thread(subprocess.run, outside, capture_output=True, text=True, check=True)).stdout
        try:
            assert int(again) == old.pid, "the kernel gave the same pid again"
            await until(
                lambda: processes(client.facts, role="probe") and processes(client.facts, role="probe")[0].ident != old
            )
            new = processes(client.facts, role="probe")[0].ident
            assert new.pid == old.pid and new.start > old.start
            await client.look_up([old.pid, 999_999])
            held, free = client.facts.holders.value or ()
            assert (held.pid, held.start, held.name) == (new.pid, new.start, "sleep")
            assert (free.pid, free.start) == (999_999, None)
        finally:
            await inside(demo_host, "pkill -9 -f '^sleep 4717' || true")


async def test_what_an_unprivileged_account_may_not_see_is_said(demo_host: DemoHost, template: Template) -> None:
    name = template("probe", "ExecStart=/bin/sleep 4718\nMemoryMax=32M")
    await inside(demo_host, "systemctl start probe@1")
    async with agent(demo_host, [role(name, "12", "sleep 4718")], user="deploy") as client:
        facts = client.facts
        assert facts.hello and (facts.hello.user, facts.hello.uid) == ("deploy", 1500)
        assert unit(facts, "probe@1.service").active == "active" and unit(facts, "probe@1.service").memory_now
        process = processes(facts, role="probe")[0]
        assert process.user == "root" and process.rss
        assert process.marks == () and process.denied == ("environment: not permitted",)
        assert process.owner.kind == "systemd"
        assert facts.schedules.problem and facts.schedules.problem.what == "crontabs of other accounts"
        assert facts.schedules.problem.why.startswith("not permitted")
        assert facts.schedules.value is not None, "what may be read is there all the same"
        await inside(demo_host, "systemctl stop probe@1")
        await until(lambda: unit(client.facts, "probe@1.service").active == "inactive", 1)


async def test_hidden_processes_are_not_permitted_and_never_zero(demo_host: DemoHost) -> None:
    hide = "mount -o remount,hidepid=2 /proc || mount -t proc -o hidepid=2 proc /proc"
    become = "exec setpriv --reuid=deploy --regid=deploy --init-groups"
    command = demo_host.exec_argv(["unshare", "-m", "sh", "-c", f"({hide}) 2>&-; {become} {demo_host.worktop} agent"])
    async with HostClient([role(match="worker --role mail")], command=tuple(command)) as client:
        facts = await client.ready(15)
        assert facts.agent.problem is None
        for reading in (facts.processes, facts.host):
            assert reading.problem and reading.problem.why == "not permitted" and reading.value
        await client.look_up([1])
        assert client.facts.holders.value is None
        assert client.facts.holders.problem and "hidden from this one" in client.facts.holders.problem.why


async def test_a_host_without_systemd_is_said(demo_host: DemoHost) -> None:
    no_systemd = "umount -l /run/dbus 2>&-; mount -t tmpfs none /run"
    command = demo_host.exec_argv(["unshare", "-m", "sh", "-c", f"{no_systemd}; exec {demo_host.worktop} agent"])
    async with HostClient([role(match="worker --role mail")], command=tuple(command)) as client:
        facts = await client.ready(15)
        assert facts.hello and facts.hello.manager == "none"
        assert facts.units.problem and facts.units.problem.why == "systemd is not running here"
        assert len(processes(facts, role="probe")) >= 3


async def test_accounts_are_counted_against_their_limit(demo_host: DemoHost) -> None:
    mail = role("mail-worker@.service", "123", "worker --role mail", name="mail")
    async with agent(demo_host, [mail]) as client:
        host = client.facts.host.value
        assert host and host.memory_total and host.memory_available and host.load and host.processes > 10
        deploy = next(account for account in host.accounts if account.user == "deploy")
        assert deploy.uid == 1500 and deploy.processes >= 3 and deploy.tasks >= deploy.processes
        assert deploy.limit and deploy.limit_source in ("RLIMIT_NPROC", "TasksMax of user-1500.slice")
        assert deploy.memory


async def test_a_killed_agent_is_said_and_comes_back(demo_host: DemoHost) -> None:
    mail = role("mail-worker@.service", "123", "worker --role mail", name="mail")
    async with agent(demo_host, [mail]) as client:
        units = client.facts.units.value
        os.kill(agent_pid(client), signal.SIGKILL)
        await until(lambda: client.facts.agent.problem)
        down = client.facts
        assert down.agent.problem and "SIGKILL" in down.agent.problem.why and down.agent.failing_since
        assert down.units.value == units and down.units.problem and down.units.failing_since
        await until(lambda: client.facts.agent.problem is None and client.facts.units.problem is None)
        assert client.facts.units.failing_since is None
