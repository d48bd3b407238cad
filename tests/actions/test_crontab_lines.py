"""Lines of real crontabs disabled and restored on a host with a running cron, without any database."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from console.actions.desk import Actions
from console.config import Config
from console.errors import HostError, RefusedError
from console.fleet.plan import Plan
from console.schedules.crontab import mark, without_header
from console.state import StateDirectory
from tests.conftest import DemoHost
from tests.host.live import agent, inside

pytestmark = pytest.mark.host

DEPLOYS = "/var/spool/cron/crontabs/deploy"
LAUNCHER = b"* * * * * /srv/reports/start.sh"
OURS = "/etc/cron.d/worktop-test"
NASTY = (
    b"# Ansible managed\r\nA=caf\xe9\n\t*/5 *\t* * *  root  echo 'a   b' \\\n\n# 0 0 * * * root no\x0c\n"
    b"@daily root true %x\r\n30 4 1,15 * 5 root last"
)


@contextlib.asynccontextmanager
async def acting(host: DemoHost, folder: Path, user: str = "root") -> AsyncIterator[Actions]:
    async with agent(host, [], user=user) as client:
        yield Actions(Config(), client, None, None, StateDirectory(folder / "state"))


def content(host: DemoHost, path: str) -> bytes:
    return bytes.fromhex(host.run(["od", "-An", "-v", "-tx1", path]).stdout)


def write(host: DemoHost, path: str, data: bytes) -> None:
    octal = "".join(f"\\{byte:03o}" for byte in data)
    host.run(["sh", "-c", f"printf '{octal}' > {path}"])


def status(host: DemoHost, path: str) -> str:
    return host.run(["stat", "-c", "%a %u:%g %h", path]).stdout


def line_of(data: bytes, text: bytes) -> int:
    return data.split(b"\n").index(text) + 1


@pytest.fixture
def ours(demo_host: DemoHost) -> Iterator[str]:
    write(demo_host, OURS, NASTY)
    yield OURS
    demo_host.run(["rm", "-f", OURS])


async def test_a_launcher_is_switched_off_and_on_and_no_other_byte_changes(demo_host: DemoHost, tmp_path: Path) -> None:
    before, owner = content(demo_host, DEPLOYS), status(demo_host, DEPLOYS)
    line = line_of(before, LAUNCHER)
    async with acting(demo_host, tmp_path) as actions:
        plan = await actions.plan_crontab("disable-line", path=DEPLOYS, line=line, raw=LAUNCHER, why="units do it now")
        assert (plan.title, plan.consent.kind) == (f"Disable line {line} of the crontab of deploy", "confirm")
        assert any("stops nothing that runs" in each for each in plan.warnings), plan.warnings
        (step,) = plan.steps
        edits = [each for each in step.text.split("\n") if each[:1] in "-+" and each[:3] not in ("---", "+++")]
        text = LAUNCHER.decode()
        assert edits == [f"-{text}", f"+# disabled by worktop {plan.id}: {text}"]
        assert content(demo_host, DEPLOYS) == before, "a plan changes nothing"

        outcome = await actions.apply(plan)
        assert outcome.state == "done" and len(outcome.verified) == 1 and not outcome.not_verified, outcome
        assert content(demo_host, DEPLOYS) == before.replace(LAUNCHER, mark(plan.id) + LAUNCHER)
        assert status(demo_host, DEPLOYS) == owner
        assert f": {text}\n" in await inside(demo_host, "crontab -l -u deploy"), "crontab(1) still reads it"
        kept = await inside(demo_host, "ls -l /var/lib/worktop/backups")
        assert "-deploy-var-spool-cron-crontabs-deploy-" in kept and "wrk01" in kept

        again = await actions.plan_crontab("disable-line", path=DEPLOYS, line=line)
        assert again.consent.why == (f"line {line} is disabled already",)
        back = await actions.plan_crontab("restore-line", path=DEPLOYS, line=line)
        assert (await actions.apply(back)).state == "done"
        assert (content(demo_host, DEPLOYS), status(demo_host, DEPLOYS)) == (before, owner)

        plan = await actions.plan_crontab("disable-line", path=DEPLOYS, line=line)
        await actions.apply(plan)
        undo = await actions.plan_undo(plan.id)
        assert (await actions.apply(undo)).state == "done"
        assert (content(demo_host, DEPLOYS), status(demo_host, DEPLOYS)) == (before, owner)
        told = [(entry.verb, entry.state) for entry in actions.audit()]
        assert told == [("undo", "done"), ("disable-line", "done"), ("restore-line", "done"), ("disable-line", "done")]
        assert actions.audit()[-1].why == "units do it now"


async def test_who_edits_in_the_meantime_is_not_overwritten(demo_host: DemoHost, ours: str, tmp_path: Path) -> None:
    async with acting(demo_host, tmp_path) as actions:
        plan = await planned(actions, 3)
        write(demo_host, ours, NASTY + b"\n# mine\n")
        outcome = await actions.apply(plan, typed=plan.consent.word)
        assert outcome.state == "failed" and outcome.steps[0].problem is not None
        assert "changed since the plan was made" in outcome.steps[0].problem.why
        assert content(demo_host, ours) == NASTY + b"\n# mine\n"
        moved = await actions.plan_crontab("disable-line", path=ours, line=3, raw=b"0 0 * * * root another")
        assert moved.consent.kind == "refused" and "the file was edited since" in moved.consent.why[0]


async def planned(actions: Actions, line: int) -> Plan:
    return await actions.plan_crontab("disable-line", path=OURS, line=line)


async def test_a_hostile_file_keeps_its_bytes_and_its_owner_is_told(
    demo_host: DemoHost, ours: str, tmp_path: Path
) -> None:
    async with acting(demo_host, tmp_path) as actions:
        plan = await planned(actions, 3)
        assert any(each.startswith("Ansible wrote this (line 1") for each in plan.warnings), plan.warnings
        assert any("ignores the whole file, then as now" in each for each in plan.warnings), plan.warnings
        await actions.apply(plan)
        assert content(demo_host, ours) == NASTY.replace(b"\t*/5", mark(plan.id) + b"\t*/5")
        back = await actions.plan_crontab("restore-line", path=ours, line=3)
        assert (await actions.apply(back, typed=back.consent.word)).state == "done"
        assert content(demo_host, ours) == NASTY


async def test_what_is_no_line_to_switch_is_refused(demo_host: DemoHost, ours: str, tmp_path: Path) -> None:
    async with acting(demo_host, tmp_path) as actions:
        for line, why in ((1, "is a comment"), (2, "is a setting"), (4, "is empty"), (99, "there is no line 99")):
            plan = await planned(actions, line)
            assert plan.consent.kind == "refused" and why in plan.consent.why[0] and not plan.steps
            with pytest.raises(RefusedError):
                await actions.apply(plan)
        with pytest.raises(HostError, match="it is no crontab"):
            await actions.plan_crontab("disable-line", path="/etc/passwd", line=1)
        write(demo_host, ours, b"* * * * * root true\n61 * * * * root wrong\n")
        waking = await planned(actions, 2)
        assert (waking.consent.kind, waking.consent.word) == ("typed", "worktop-test")
        assert "after this it runs its 1 other line" in waking.consent.why[0]


async def test_the_own_crontab_is_edited_without_more_rights(demo_host: DemoHost, tmp_path: Path) -> None:
    before = content(demo_host, DEPLOYS)
    data = b"# \xe9\r\n* * * * * true\r\n\t@reboot  false \\\n"
    write(demo_host, "/home/deploy/tab", data)
    demo_host.run(["sh", "-c", f"cp -p {DEPLOYS} /root/deploys.tab; crontab -u deploy /home/deploy/tab"])
    try:
        async with acting(demo_host, tmp_path, user="deploy") as actions:
            plan = await actions.plan_crontab("disable-line", path=DEPLOYS, line=2)
            assert plan.consent.kind == "confirm", plan.consent
            assert (await actions.apply(plan)).state == "done"
            off = without_header(content(demo_host, DEPLOYS))
            assert off == data.replace(b"* * * * * true", mark(plan.id) + b"* * * * * true")
            late = await actions.plan_crontab("restore-line", path=DEPLOYS, line=2)
            undo = await actions.plan_undo(plan.id)
            assert (await actions.apply(undo)).state == "done"
            assert without_header(content(demo_host, DEPLOYS)) == data
            assert (await actions.apply(late)).state == "failed", "it was changed in the meantime"
            system = await actions.plan_crontab("disable-line", path="/etc/crontab", line=1)
            assert system.consent.kind == "refused" and "may not write /etc/crontab" in system.consent.why[0]
            assert system.consent.allow
    finally:
        demo_host.run(["mv", "/root/deploys.tab", DEPLOYS])
    assert content(demo_host, DEPLOYS) == before
