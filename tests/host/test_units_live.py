"""The agent against a real systemd: units, their states, and everything that goes away and comes back."""

from __future__ import annotations

import asyncio
import time

import pytest

from console.fleet.model import HostFacts, Unit
from tests.conftest import DemoHost
from tests.host.conftest import Template
from tests.host.live import SECONDS, agent, inside, names, role, unit, until

pytestmark = pytest.mark.host

SLEEP = "ExecStart=/bin/sleep 100000\nMemoryMax=32M\nTasksMax=17\nRestart=always\nRestartSec=200ms"


async def test_every_desired_instance_is_a_row_also_the_missing_ones(demo_host: DemoHost, template: Template) -> None:
    name = template("probe", SLEEP)
    await inside(demo_host, "systemctl start probe@1 probe@7")
    wanted = [role(name, "123"), role("nosuch@.service", "1", name="nosuch")]
    async with agent(demo_host, wanted) as client:
        facts = client.facts
        assert names(facts) == [*(f"probe@{n}.service" for n in (1, 2, 3, 7)), "nosuch@1.service"] or names(facts) == [
            "nosuch@1.service",
            *(f"probe@{n}.service" for n in (1, 2, 3, 7)),
        ]
        running = unit(facts, "probe@1.service")
        assert (running.load, running.active, running.sub) == ("loaded", "active", "running")
        assert running.main_pid > 1 and running.started and running.since and len(running.invocation) == 32
        assert (running.memory_max, running.tasks_max, running.restart) == (32 * 1024**2, 17, "always")
        assert running.restart_sec == pytest.approx(0.2)
        assert running.fragment == "/run/systemd/system/probe@.service"
        assert running.tasks_now == 1 and running.memory_now and running.memory_peak
        assert running.memory_enforced is True
        missing = unit(facts, "probe@2.service")
        assert (missing.load, missing.active, missing.main_pid, missing.invocation) == ("loaded", "inactive", 0, "")
        assert missing.memory_now is None and missing.tasks_now is None
        assert unit(facts, "nosuch@1.service").load == "not-found"


async def test_without_roles_every_instance_of_every_template_is_listed(
    demo_host: DemoHost, template: Template
) -> None:
    template("probe", SLEEP)
    await inside(demo_host, "systemctl start probe@1")
    async with agent(demo_host, []) as client:
        assert {"probe@1.service", "mail-worker@1.service"} <= set(names(client.facts))
        assert all(each.instance for each in client.facts.units.value or ())


async def test_a_change_of_state_is_pushed_within_a_second(demo_host: DemoHost, template: Template) -> None:
    name = template("probe", SLEEP)
    await inside(demo_host, "systemctl start probe@1")
    async with agent(demo_host, [role(name, "12")], interval=30) as client:
        for verb, state in (("stop", "inactive"), ("start", "active"), ("restart", "active")):
            before = unit(client.facts, "probe@1.service").invocation
            await inside(demo_host, f"systemctl {verb} probe@1")
            took = await until(lambda state=state: unit(client.facts, "probe@1.service").active == state)
            assert took < 1, f"{verb} was seen after {took:.2f} s"
            if verb == "restart":
                await until(lambda before=before: unit(client.facts, "probe@1.service").invocation != before, 1)
        await until(lambda: unit(client.facts, "probe@1.service").memory_now, 1, "memory of a new run")
        await inside(demo_host, "systemctl start probe@9")
        assert await until(lambda: "probe@9.service" in names(client.facts)) < 1, "an instance nobody asked for"
        await inside(demo_host, "systemctl stop probe@9")
        await until(lambda: "probe@9.service" not in names(client.facts), what="the stray goes when it is unloaded")


async def test_restarts_are_counted_also_over_a_reset(demo_host: DemoHost, template: Template) -> None:
    name = template("probe", SLEEP, "StartLimitIntervalSec=0")
    await inside(demo_host, "systemctl start probe@1")
    async with agent(demo_host, [role(name, "1")]) as client:
        for count in (1, 2, 3):
            await inside(demo_host, "systemctl kill -s KILL probe@1")
            await until(lambda count=count: unit(client.facts, "probe@1.service").restarts == count)
            await until(lambda: unit(client.facts, "probe@1.service").active == "active")
        await until(lambda: (unit(client.facts, "probe@1.service").restarts_per_minute or 0) >= 3)
        await inside(demo_host, "systemctl restart probe@1")
        await until(lambda: unit(client.facts, "probe@1.service").restarts == 0, what="NRestarts falls back to 0")
        await until(lambda: (unit(client.facts, "probe@1.service").restarts_per_minute or 0) >= 4)


async def test_the_start_limit_is_seen_with_the_last_lines(demo_host: DemoHost, template: Template) -> None:
    text = "ExecStart=/bin/sh -c 'echo no such tile; exit 3'\nRestart=always\nRestartSec=50ms"
    name = template("probe", text, "StartLimitIntervalSec=30\nStartLimitBurst=3")
    async with agent(demo_host, [role(name, "1")]) as client:
        await inside(demo_host, "systemctl start probe@1")
        await until(lambda: unit(client.facts, "probe@1.service").active == "failed")
        await until(lambda: unit(client.facts, "probe@1.service").last_log, what="lines of the journal")
        failed = unit(client.facts, "probe@1.service")
        assert failed.start_limit_hit and failed.result in ("exit-code", "start-limit-hit")
        assert (failed.exit_code, failed.exit_status) == ("exited", 3)
        assert "no such tile" in failed.last_log
        repeated = "Start request repeated too quickly"
        await until(lambda: any(repeated in line for line in unit(client.facts, "probe@1.service").last_log))
        assert unit(client.facts, "probe@1.service").start_limit_hit


async def test_a_loop_met_while_its_process_runs_has_its_lines_at_once(demo_host: DemoHost, template: Template) -> None:
    text = "ExecStart=/bin/sh -c 'test -e /run/probe-runs && exec sleep 100000; echo no such tile; exit 3'"
    name = template("probe", f"{text}\nRestart=always\nRestartSec=50ms", "StartLimitIntervalSec=0")
    state = "systemctl show probe@1 -P NRestarts -P SubState"
    await inside(demo_host, "rm -f /run/probe-runs; systemctl start probe@1; sleep 2; touch /run/probe-runs; sleep 1")
    try:
        restarts, sub = (await inside(demo_host, state)).split()
        assert sub == "running" and int(restarts) > 3
        async with agent(demo_host, [role(name, "1")]) as client:
            found = unit(client.facts, "probe@1.service")
            assert (found.sub, found.last_words) == ("running", "no such tile")
    finally:
        await inside(demo_host, "rm -f /run/probe-runs")


async def test_a_failure_without_restart_is_no_start_limit(demo_host: DemoHost, template: Template) -> None:
    plain = template("probe", "ExecStart=/bin/false")
    stops = template("probestop", "ExecStart=/bin/sh -c 'exit 78'\nRestart=always\nRestartPreventExitStatus=78")
    async with agent(demo_host, [role(plain, "1"), role(stops, "1", name="stops")]) as client:
        await inside(demo_host, "systemctl start probe@1 probestop@1")
        for name in ("probe@1.service", "probestop@1.service"):
            await until(lambda name=name: unit(client.facts, name).active == "failed")
            await until(lambda name=name: unit(client.facts, name).last_log)
            await until(lambda name=name: not unit(client.facts, name).start_limit_hit)


async def test_a_kill_at_the_memory_limit_leaves_its_proof(demo_host: DemoHost, template: Template) -> None:
    eats = "/usr/bin/python3 -c 'import time; time.sleep(0.3); b = bytearray(200 << 20); time.sleep(60)'"
    name = template("probe", f"ExecStart={eats}\nMemoryMax=40M\nMemorySwapMax=0")
    async with agent(demo_host, [role(name, "1")]) as client:
        await inside(demo_host, "systemctl start probe@1")
        await until(lambda: unit(client.facts, "probe@1.service").active == "failed")
        killed = unit(client.facts, "probe@1.service")
        assert killed.result == "oom-kill" or (killed.exit_code, killed.exit_status) == ("killed", 9)
        await until(lambda: (unit(client.facts, "probe@1.service").memory_peak or 0) > 0.9 * 40 * 1024**2)
        assert unit(client.facts, "probe@1.service").memory_now is None


async def test_an_end_is_never_told_without_its_reason(demo_host: DemoHost, template: Template) -> None:
    """A listing of systemd may overtake the signals of what it lists, above all while many units come and go."""
    name = template("probe", "ExecStart=/bin/sh -c 'sleep 0.%i; exit 3'")
    instances = [str(number) for number in range(10, 50)]
    seen: list[HostFacts] = []

    def ended(facts: HostFacts) -> list[Unit]:
        return [each for each in facts.units.value or () if each.active == "failed"]

    async with agent(demo_host, [role(name, instances)], interval=30) as client:
        client.on_change = lambda _: seen.append(client.facts)
        before: set[str] = set()
        for _ in range(3):
            await inside(demo_host, "systemctl start " + " ".join(f"probe@{n}" for n in instances))
            await until(lambda: len({each.invocation for each in ended(client.facts)} - before) == len(instances))
            before.update(each.invocation for each in ended(client.facts))
    told = [each for facts in seen for each in ended(facts)]
    assert len({each.name for each in told}) == len(instances)
    halves = [each for each in told if (each.result, each.exit_code, each.exit_status) != ("exit-code", "exited", 3)]
    assert not halves, f"{len(halves)} of {len(told)}: {halves[0]}"
    runs = [each for facts in seen for each in facts.units.value or () if each.active == "active"]
    halves = [each for each in runs if not each.main_pid or each.result != "success"]
    assert runs and not halves, f"{len(halves)} of {len(runs)}: {halves[0]}"


async def test_a_reload_of_many_units_does_not_flap(demo_host: DemoHost, template: Template) -> None:
    name = template("probe", SLEEP)
    instances = [str(number) for number in range(1, 61)]
    await inside(demo_host, "systemctl start " + " ".join(f"probe@{number}" for number in instances))
    seen: list[HostFacts] = []
    async with agent(demo_host, [role(name, instances)]) as client:
        client.on_change = lambda _: seen.append(client.facts)
        await until(lambda: sum(each.active == "active" for each in client.facts.units.value or ()) == 60)
        before = client.facts.units.taken
        seen.clear()
        for _ in range(3):
            await inside(demo_host, "systemctl daemon-reload")
        await until(lambda: (client.facts.units.taken or 0) > (before or 0) + 2, what="the units are told again")
        assert seen
        for facts in seen:
            assert facts.units.problem is None
            assert sum(each.active == "active" for each in facts.units.value or ()) == 60


async def test_a_changed_limit_is_seen_after_a_reload(demo_host: DemoHost, template: Template) -> None:
    name = template("probe", SLEEP)
    await inside(demo_host, "systemctl start probe@1")
    async with agent(demo_host, [role(name, "1")]) as client:
        await inside(
            demo_host,
            "mkdir /run/systemd/system/probe@.service.d; printf '[Service]\\nMemoryMax=48M\\n'"
            " > /run/systemd/system/probe@.service.d/limit.conf; systemctl daemon-reload",
        )
        await until(lambda: unit(client.facts, "probe@1.service").memory_max == 48 * 1024**2)
        assert unit(client.facts, "probe@1.service").drop_ins == ("/run/systemd/system/probe@.service.d/limit.conf",)


async def test_a_reexecuted_manager_is_followed_on(demo_host: DemoHost, template: Template) -> None:
    name = template("probe", SLEEP)
    await inside(demo_host, "systemctl start probe@1")
    async with agent(demo_host, [role(name, "12")]) as client:
        await inside(demo_host, "systemctl daemon-reexec")
        await inside(demo_host, "systemctl start probe@2")
        await until(lambda: unit(client.facts, "probe@2.service").active == "active")
        await inside(demo_host, "systemctl stop probe@1")
        await until(lambda: unit(client.facts, "probe@1.service").active == "inactive")


async def test_the_bus_may_die_and_come_back(demo_host: DemoHost, template: Template) -> None:
    name = template("probe", SLEEP)
    await inside(demo_host, "systemctl start probe@1")
    async with agent(demo_host, [role(name, "12")]) as client:
        old = client.facts.units.value
        await inside(demo_host, "systemctl kill -s KILL dbus.service")
        await until(lambda: client.facts.units.problem, what="the units say that they cannot be read")
        reading = client.facts.units
        assert reading.value == old and reading.failing_since
        assert client.facts.agent.problem is None, "the agent itself goes on"
        await until(lambda: client.facts.units.problem is None, 30)
        await inside(demo_host, "systemctl start probe@2")
        await until(lambda: unit(client.facts, "probe@2.service").active == "active")


async def test_the_other_sources_go_on_without_a_bus(demo_host: DemoHost) -> None:
    mail = role("mail-worker@.service", "123", "worker --role mail", name="mail")
    nowhere = "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nonexistent"
    async with agent(demo_host, [mail], environment=[nowhere]) as client:
        facts = client.facts
        assert facts.hello and (facts.hello.manager, facts.hello.systemd) == ("none", "")
        assert facts.units.value is None and facts.units.problem
        assert "no such file" in facts.units.problem.why
        assert len(facts.processes.value or ()) >= 3
        assert facts.host.value and facts.host.value.memory_total
        assert facts.processes.problem is None


async def test_the_user_manager(demo_host: DemoHost) -> None:
    await inside(demo_host, "loginctl enable-linger deploy")
    runtime = "XDG_RUNTIME_DIR=/run/user/1500"
    try:
        await until(lambda: demo_host.run(["test", "-S", "/run/user/1500/bus"], check=False).returncode == 0, 30)
        await inside(
            demo_host,
            "mkdir -p ~/.config/systemd/user; printf '[Service]\\nExecStart=/bin/sleep 4711\\n'"
            f" > ~/.config/systemd/user/own@.service; {runtime} systemctl --user daemon-reload;"
            f" {runtime} systemctl --user start own@1",
            "deploy",
        )
        wanted = [role("own@.service", "12", "sleep 4711", name="own")]
        async with agent(demo_host, wanted, user="deploy", options=["--user"]) as client:
            assert client.facts.hello and client.facts.hello.manager == "user"
            assert unit(client.facts, "own@1.service").active == "active"
            assert unit(client.facts, "own@2.service").active == "inactive"
            process = next(each for each in client.facts.processes.value or () if each.role == "own")
            assert (process.owner.kind, process.owner.name) == ("systemd-user", "own@1.service")
            assert process.owner.detail == "user manager of deploy"
            await inside(demo_host, f"{runtime} systemctl --user stop own@1", "deploy")
            await until(lambda: unit(client.facts, "own@1.service").active == "inactive", 1)
    finally:
        await inside(demo_host, "loginctl disable-linger deploy; rm -rf /home/deploy/.config/systemd")


async def test_units_at_rest_are_not_told_again(demo_host: DemoHost, template: Template) -> None:
    name = template("probe", SLEEP)
    instances = [str(number) for number in range(1, 61)]
    await inside(demo_host, "systemctl start " + " ".join(f"probe@{number}" for number in instances))
    async with agent(demo_host, [role(name, instances)], interval=0.5) as client:
        await asyncio.sleep(2)
        before, taken = client.facts.units.value, client.facts.units.taken
        started = time.monotonic()
        await until(lambda: (client.facts.units.taken or 0) > (taken or 0) + 3, SECONDS)
        assert time.monotonic() - started < 6, "a heartbeat every interval"
        assert client.facts.units.value is before, "nothing was told again"
