"""What the agent looks at for a diagnosis, and the verdict on it: real faults of real units."""

from __future__ import annotations

import asyncio
import re
import time

import msgspec
import pytest

from console.errors import HostError
from console.fleet.assemble import assemble
from console.fleet.diagnosis.diagnose import diagnose
from console.fleet.diagnosis.model import Diagnosis, Looked
from console.fleet.model import Ident, Limits, Unit
from console.host.client import HostClient
from tests.conftest import DemoHost
from tests.host.conftest import Template
from tests.host.live import NO_GROUPS, agent, inside, role, until

pytestmark = pytest.mark.host

UNIT = "StartLimitIntervalSec=60\nStartLimitBurst=4"
SERVICE = "ExecStart=/bin/sh /run/probediag/%i.sh\nRestart=on-failure\nRestartSec=100ms\nTimeoutStopSec=5"
SCRIPTS = {
    "ok": "exec sleep 4801",
    "stop": "exec sleep 4801",
    "kill": "exec sleep 4801",
    "mask": "exec sleep 4801",
    "changed": "exec sleep 4801",
    "loop": 'echo "attempt $$"; echo "fatal: no table jobs (pid $$)" >&2; exit 1',
    "well": "echo done; exit 0",
    "left": "sleep 90 & exec sleep 4801",
    "late": "exec sleep 4801",
    "exec": "true",
    "user": "true",
}
DROP_INS = {
    "left": "[Service]\nKillMode=process",
    "late": "[Service]\nType=notify\nTimeoutStartSec=1\nRestart=no",
    "exec": "[Service]\nExecStart=\nExecStart=/nonexistent/program",
    "user": "[Service]\nUser=nosuchaccount",
}


async def diagnosed(client: HostClient, wanted: str, instance: str) -> tuple[Diagnosis, Looked]:
    roles = (role(wanted, tuple(SCRIPTS), name="probe"),)
    name = wanted.replace("@", f"@{instance}")
    looked = await client.examine(roles[0], name)
    fleet = assemble(client.facts, None, roles, Limits(), time.time())
    worker = next(each for each in fleet.roles[0].workers if each.key == name)
    return diagnose(fleet, fleet.roles[0], worker, looked), looked


async def test_each_fault_has_its_verdict(demo_host: DemoHost, template: Template) -> None:
    files = "".join(f"cat > /run/probediag/{name}.sh <<'END'\n{text}\nEND\n" for name, text in SCRIPTS.items())
    drops = "".join(
        f"mkdir -p $D/probediag@{name}.service.d; cat > $D/probediag@{name}.service.d/10.conf <<'END'\n{text}\nEND\n"
        for name, text in DROP_INS.items()
    )
    await inside(demo_host, f"D=/run/systemd/system; mkdir -p /run/probediag\n{files}{drops}")
    await inside(
        demo_host,
        "printf '[Timer]\\nOnCalendar=2099-01-01\\nUnit=probediag@ok.service\\n' > /run/systemd/system/pdiag.timer",
    )
    name = template("probediag", SERVICE, UNIT)
    try:
        async with agent(demo_host, [role(name, tuple(SCRIPTS), name="probe")]) as client:
            await inside(demo_host, "systemctl start --no-block " + " ".join(f"probediag@{each}" for each in SCRIPTS))

            def known(instance: str) -> Unit:
                units = client.facts.units.value or ()
                return next((u for u in units if u.name == f"probediag@{instance}.service"), Unit(name=""))

            running = ("ok", "stop", "kill", "mask", "changed", "left")
            await until(lambda: all(known(each).main_pid for each in running), 30.0)
            await until(lambda: all(known(each).active == "failed" for each in ("loop", "exec", "user", "late")), 30.0)
            await inside(
                demo_host,
                "systemctl stop probediag@stop probediag@left; systemctl kill -s KILL probediag@kill;"
                "systemctl mask --runtime probediag@mask; mkdir -p /run/systemd/system/probediag@changed.service.d;"
                "printf '[Service]\\nNice=5\\n' > /run/systemd/system/probediag@changed.service.d/10.conf",
            )
            await until(lambda: known("kill").restarts == 1 and known("kill").active == "active")
            await until(lambda: known("stop").active == "inactive" and known("left").active == "inactive")
            found = {}
            for each in SCRIPTS:
                found[each], looked = await diagnosed(client, name, each)
                assert not looked.problems and looked.detail is not None and looked.at
            verdicts = {each: diagnosis.verdict for each, diagnosis in found.items()}
            assert verdicts == {
                "ok": "healthy",
                "stop": "stopped on purpose",
                "kill": "healthy",
                "mask": "misconfigured",
                "changed": "misconfigured",
                "loop": "crash loop",
                "well": "misconfigured",
                "left": "stopped on purpose",
                "late": "killed by limit",
                "exec": "misconfigured",
                "user": "misconfigured",
            }, {each: diagnosis.sentence for each, diagnosis in found.items()}
            sentences = {each: diagnosis.sentence for each, diagnosis in found.items()}
            assert "fatal: no table jobs" in sentences["loop"] and "start limit" in sentences["loop"]
            assert "203 (EXEC)" in sentences["exec"] and "217 (USER)" in sentences["user"]
            assert "an operator or another unit" in sentences["stop"]
            assert "daemon-reload" in found["changed"].next and "masked" in sentences["mask"]
            assert "Restart=on-failure" in sentences["well"]
            steps = {step.name: step for step in found["left"].steps}
            assert steps["children"].state == "fault" and "sleep" in " ".join(steps["children"].evidence)
            steps = {step.name: step for step in found["loop"].steps}
            assert re.search(r"([4-6]) of the last \1 runs said", steps["restarts"].answer), steps["restarts"]
            steps = {step.name: step for step in found["ok"].steps}
            assert steps["process"].state == "ok" and "open files" in " ".join(steps["near"].evidence)
            assert steps["owner"].state == "warning" and "pdiag.timer" in steps["owner"].answer
    finally:
        await inside(
            demo_host,
            "systemctl kill -s KILL 'probediag@*'; systemctl unmask --runtime probediag@mask;"
            "rm -rf /run/probediag /run/systemd/system/probediag@*.service.d /run/systemd/system/pdiag.timer; true",
        )


async def test_health_checks_and_who_runs_them(demo_host: DemoHost, template: Template) -> None:
    name = template("probehealth", "ExecStart=/bin/sleep 4803\nUser=deploy")
    await inside(demo_host, "systemctl start probehealth@1")
    wanted = role(name, "1")
    says = msgspec.structs.replace(wanted, health=("/bin/sh", "-c", "id -un; echo instance %i; exit 3"))
    none = msgspec.structs.replace(wanted, health=("/bin/sleep", "60"))
    web = msgspec.structs.replace(wanted, health=("http://127.0.0.1:9/health",))
    async with agent(demo_host, [wanted], user="deploy") as client:

        async def ask(which: object, read: bool = True) -> Looked:
            return await client.examine(which, "probehealth@1.service", health=read, starters=False)  # type: ignore[arg-type]

        first, slow, web_said, not_asked = await asyncio.gather(ask(says), ask(none), ask(web), ask(says, False))
        assert first.health is not None and (first.health.ok, first.health.text) == (False, "exit status 3: instance 1")
        assert slow.health is not None and "did not end within 5 s" in slow.health.text
        assert web_said.health is not None and web_said.health.ok is False and "refused" in web_said.health.text
        assert not_asked.health is None
        assert "sleep 60" not in await inside(demo_host, "ps -eo args"), "what does not end is killed"
        with pytest.raises(HostError, match="neither a unit nor a process"):
            await client.examine(wanted)
        gone = await client.examine(wanted, ident=Ident(client.facts.hello.boot_id if client.facts.hello else "", 1, 1))
        assert gone.gone
    async with agent(demo_host, [wanted], options=["--read-only"], through=NO_GROUPS) as client:
        refused = await client.examine(says, "probehealth@1.service", health=True, starters=False)
        assert refused.health is not None and refused.health.ok is None and "--read-only" in refused.health.text
        assert refused.runs_problem == "not permitted" and refused.main is not None
    async with agent(demo_host, [wanted]) as client:
        as_root = await client.examine(says, "probehealth@1.service", health=True, starters=False)
        assert as_root.health is not None and as_root.health.ok is None and "/etc/worktop" in as_root.health.text
