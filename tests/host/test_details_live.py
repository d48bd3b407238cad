"""What is asked for when a person looks at a unit, or at the host; against a real systemd."""

from __future__ import annotations

import asyncio

import pytest

from console.errors import HostError
from console.fleet.model import TreeProcess, UnitDetail
from tests.conftest import DemoHost
from tests.host.conftest import Template
from tests.host.live import NO_GROUPS, agent, inside, role, unit, until

pytestmark = pytest.mark.host

SERVICE = (
    'Environment="PGPASSWORD=hunter2" MODE=fast URL=postgres://app:hunter2@db/app\n'
    "ExecStart=/bin/sh -c 'echo hello; sleep 4721 & exec sleep 4722' worker --token hunter2\n"
    "MemoryMax=32M\nTasksMax=17\nRestart=on-failure\nRestartSec=2min\nTimeoutStopSec=90\nUser=deploy"
)


def _of(detail: UnitDetail) -> dict[str, str]:
    return dict(detail.properties)


async def test_the_detail_of_a_running_unit(demo_host: DemoHost, template: Template) -> None:
    name = template("probedetail", SERVICE, "Description=Probe %i\nStartLimitIntervalSec=2min")
    folder = "/run/systemd/system/probedetail@1.service.d"
    await inside(
        demo_host,
        f"mkdir {folder}; printf '[Service]\\nEnvironmentFile=-/etc/probe.env\\nEnvironmentFile=-/etc/other.env\\n'"
        f" > {folder}/10-env.conf; printf '[Service]\\nSetCredential=key:hunter2\\n' > {folder}/20-key.conf;"
        " systemctl daemon-reload; systemctl start probedetail@1",
    )
    try:
        async with agent(demo_host, [role(name, "1")]) as client:
            await until(lambda: unit(client.facts, "probedetail@1.service").main_pid)
            detail = await client.unit_detail("probedetail@1.service")
            told = _of(detail)
            shown = await inside(demo_host, "TZ=UTC systemctl show probedetail@1.service")
            for key in ("RestartUSec", "TimeoutStopUSec", "ExecMainStartTimestamp", "MemoryMax", "InvocationID"):
                assert f"{key}={told[key]}\n" in shown, "as systemctl shows it"
            assert told["RestartUSec"] == "2min" and told["StartLimitIntervalUSec"] == "2min"
            assert (told["Description"], told["User"], told["KillMode"]) == ("Probe 1", "deploy", "control-group")
            assert int(told["MemoryCurrent"]) > 0 and int(told["TasksCurrent"]) == 2 and told["TasksMax"] == "17"
            assert told["ExecStart"] == ("/bin/sh -c echo hello; sleep 4721 & exec sleep 4722 worker --token ••••")
            assert told["EnvironmentFiles"] == "/etc/probe.env /etc/other.env"
            assert [file.path for file in detail.files] == [
                "/run/systemd/system/probedetail@.service",
                f"{folder}/10-env.conf",
                f"{folder}/20-key.conf",
            ]
            assert 'Environment="PGPASSWORD=••••" MODE=fast URL=postgres://app:••••@db/app' in detail.files[0].text
            assert "SetCredential=••••" in detail.files[2].text
            assert "hunter2" not in repr(detail)
            assert [(each.depth, each.name, each.user) for each in detail.tree] == [
                (0, "sleep", "deploy"),
                (1, "sleep", "deploy"),
            ]
            assert detail.tree[0].ident.pid == unit(client.facts, "probedetail@1.service").main_pid
            assert [line.text for line in detail.log if not line.by_manager] == ["hello"]
            started = next(line for line in detail.log if line.by_manager and line.text.startswith("Started"))
            assert (started.unit, started.priority, started.pid) == ("probedetail@1.service", 6, 1)
            assert detail.log_problem == ""
    finally:
        await inside(demo_host, f"rm -r {folder}")


async def test_units_that_are_not_there_or_never_ran(demo_host: DemoHost, template: Template) -> None:
    template("probe", "ExecStart=/bin/sleep 4723")
    async with agent(demo_host, []) as client:
        never = await client.unit_detail("probe@5.service")
        assert _of(never)["ActiveState"] == "inactive" and never.files and never.tree == ()
        assert (never.log, never.log_problem) == ((), "nothing logged")
        missing = await client.unit_detail("nosuch@1.service")
        assert _of(missing)["LoadState"] == "not-found" and missing.files == ()
        for name in ("--help", "a b.service", "probe@*.service", "../etc/passwd", "x" * 300 + ".service"):
            with pytest.raises(HostError, match="no name of a unit"):
                await client.unit_detail(name)
        assert client.facts.agent.problem is None, "a refusal is the asker's alone"


async def test_what_an_unprivileged_account_may_not_read_is_said(demo_host: DemoHost, template: Template) -> None:
    name = template("probe", "ExecStart=/bin/sh -c 'echo hello; exec sleep 4724'")
    await inside(demo_host, "systemctl start probe@1; chmod 600 /run/systemd/system/probe@.service")
    async with agent(demo_host, [role(name, "1")], through=NO_GROUPS) as client:
        detail = await client.unit_detail("probe@1.service")
        assert _of(detail)["ActiveState"] == "active"
        assert [(file.text, file.problem) for file in detail.files] == [("", "not permitted")]
        assert (detail.log, detail.log_problem) == ((), "not permitted")
        assert [each.command for each in detail.tree] == [("sleep", "4724")]
        host = await client.host_detail()
        assert any(each.command == ("sleep", "4724") for each in host.trees)


async def test_the_trees_of_the_host(demo_host: DemoHost, template: Template) -> None:
    name = template("probe", "ExecStart=/bin/sh -c 'sleep 4725 & exec sleep 4726' --password hunter2")
    await inside(demo_host, "systemctl start probe@1")
    await inside(demo_host, "tmux -L probe new-session -d 'sleep 4727'")
    try:
        async with agent(demo_host, [role(name, "1", "^sleep 4726$")]) as client:
            await until(lambda: unit(client.facts, "probe@1.service").active == "active")
            detail = await client.host_detail()
            rows = {" ".join(each.command): each for each in detail.trees}
            worker, helper = rows["sleep 4726"], rows["sleep 4725"]
            assert (worker.depth, worker.owner.kind, worker.owner.name) == (0, "systemd", "probe@1.service")
            assert worker.role == "probe" and worker.owner.evidence and worker.rss
            assert (helper.depth, helper.owner.name, helper.owner.evidence) == (1, "probe@1.service", ())
            assert rows["sleep 4727"].owner.kind == "screen"
            assert any(each.name == "cron" and each.owner.kind == "cron" for each in detail.trees)
            assert "hunter2" not in repr(detail) and detail.cut == 0
            assert not any(each.name == "kthreadd" for each in detail.trees)
            sizes = _sizes(detail.trees)
            assert sizes == sorted(sizes, reverse=True), "the owner of the most memory comes first"
    finally:
        await inside(demo_host, "tmux -L probe kill-server")


def _sizes(rows: tuple[TreeProcess, ...]) -> list[int]:
    sizes: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (row.owner.kind, row.owner.name)
        sizes[key] = sizes.get(key, 0) + (row.rss or 0)
    return list(sizes.values())


async def test_many_processes_are_cut(demo_host: DemoHost, template: Template) -> None:
    template("probe", "ExecStart=/bin/sh -c 'for i in $(seq 500); do sleep 4728 & done; wait'")
    await inside(demo_host, "systemctl start probe@1")
    await inside(demo_host, "until [ $(pgrep -cx sleep) -ge 500 ]; do sleep 0.1; done")
    async with agent(demo_host, []) as client:
        waits: list[float] = []
        asked = asyncio.create_task(client.host_detail())
        while not asked.done():
            waits.append(await client.ping())
        detail = await asked
        assert len(detail.trees) == 400 and detail.cut > 100
        assert max(waits) < 0.5, "others are answered meanwhile"


async def test_details_can_be_asked_for_all_at_once(demo_host: DemoHost) -> None:
    async with agent(demo_host, []) as client:
        wanted = [f"mail-worker@{number}.service" for number in (1, 2, 3)]
        found = await asyncio.gather(*(client.unit_detail(name, 15) for name in wanted), client.host_detail(15))
        assert [each.name for each in found if isinstance(each, UnitDetail)] == wanted
