"""Actions on units of a real systemd, whose workers really work: nothing is lost and nothing is done twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from console.errors import ConfigError, RefusedError
from console.fleet.model import Ident, Role
from console.fleet.plan import Progress, Question
from tests.actions.hall import Hall, hall
from tests.conftest import DemoHost
from tests.host.conftest import Template, template
from tests.host.live import agent, agent_pid, inside, processes, unit, until

pytestmark = pytest.mark.host
__all__ = ["template"]


async def test_a_rolling_restart_under_load(demo_host: DemoHost, template: Template, tmp_path: Path) -> None:
    async with hall(demo_host, template, tmp_path, "rolls") as own:
        await own.start(1, 3)
        await own.add(40, 0.3)
        await own.holding(1)
        plan = await own.actions.plan_units("restart", role="rolls")
        assert plan.title == "Restart 3 workers of rolls, one after another" and plan.consent.kind == "confirm"
        assert [step.title.split(" (")[0] for step in plan.steps] == [f"restart rolls@{n}.service" for n in (1, 2, 3)]
        assert any("rolls@1.service holds job" in warning for warning in plan.warnings)
        assert "worktop drain rolls@1.service" in "".join(plan.warnings)
        before = {unit.name: unit.main_pid for unit in own.client.facts.units.value or ()}
        several = 0

        def look(progress: Progress) -> None:
            nonlocal several
            units = own.client.facts.units.value or ()
            several = max(several, sum(unit.active == "deactivating" for unit in units))

        outcome = await own.apply(plan, on_progress=look)
        assert outcome.state == "done" and several <= 1, outcome
        assert all("healthy after" in step.text for step in outcome.steps)
        assert {unit.name for unit in own.client.facts.units.value or () if unit.main_pid not in before.values()} == {
            own.unit(number) for number in (1, 2, 3)
        }, "the stopped one was started"
        await own.each_once(40)


async def test_scale_up_and_down_under_load_and_undo(demo_host: DemoHost, template: Template, tmp_path: Path) -> None:
    async with hall(demo_host, template, tmp_path, "scales", ("1", "2"), budget=8) as own:
        await own.start(1)
        await own.add(80, 0.4)
        await own.holding(1)
        over = await own.actions.plan_scale("scales", 9)
        assert over.consent.kind == "typed" and "the budget of scales is 8" in over.consent.why[0]
        with pytest.raises(RefusedError, match="typing scales"):
            await own.actions.apply(over)
        up = await own.actions.plan_scale("scales", 4, watch=0.8)
        assert up.consent.kind == "confirm" and [step.unit for step in up.steps][:2] == [own.unit(2), own.unit(3)]
        outcome = await own.apply(up)
        if outcome.state == "done":
            await own.come_to(4)
        running = len(own.up())
        assert outcome.state in ("done", "partly") and running >= 3, outcome
        assert running == 4 or "it ended there" in outcome.text, outcome
        enabled = await inside(demo_host, "systemctl is-enabled scales@2 scales@3 || true")
        assert enabled.split() == ["enabled", "enabled"]
        down = await own.actions.plan_scale("scales", 2)
        assert len([step for step in down.steps if step.drains]) == running - 2
        outcome = await own.apply(down)
        assert outcome.state == "done" and await own.come_to(2), outcome
        await own.each_once(80)
        undone = await own.apply(await own.actions.plan_undo(down.id))
        assert undone.state == "done" and await own.come_to(running), undone
        assert (await own.actions.plan_undo(down.id)).consent.empty, "once is enough"
        few = await own.actions.plan_scale("scales", running + 2, watch=0.3)
        outcome = await own.apply(few)
        assert "no job waits any more" in outcome.text and await own.come_to(running + 1), outcome
        at_boot = f"systemctl is-enabled {own.unit(running + 1)} || true"
        assert (await inside(demo_host, at_boot)).strip() == "enabled"
        undone = await own.apply(await own.actions.plan_undo(few.id))
        assert undone.state == "done" and await own.come_to(running), undone
        assert await own.actions.not_as_before(few.id) == ()
        assert (await inside(demo_host, at_boot)).strip() == "disabled", "nor does it start at the next boot"


async def test_a_drain_asks_before_it_kills(demo_host: DemoHost, template: Template, tmp_path: Path) -> None:
    async with hall(demo_host, template, tmp_path, "drains", ("1", "2"), deaf=True) as own:
        await own.start(1)
        await own.add(1, 600)
        job = await own.holding(1)
        asked: list[Question] = []

        async def no(question: Question) -> bool:
            asked.append(question)
            return False

        async def yes(question: Question) -> bool:
            return True

        plan = await own.actions.plan_drain(units=(own.unit(1),), timeout=1)
        assert f"holds job {job}" in "".join(plan.warnings)
        outcome = await own.apply(plan, on_question=no)
        assert outcome.state == "failed" and "it was not killed, and goes on" in outcome.text
        assert asked[0].unit == own.unit(1) and asked[0].jobs == (job,) and own.up() == [own.unit(1)]
        assert outcome.next[0].command == f"worktop reclaim --id {job}"
        outcome = await own.apply(await own.actions.plan_drain(role="drains", timeout=0.5))
        assert outcome.state == "failed", "nobody is asked: nobody is killed"
        outcome = await own.apply(await own.actions.plan_drain(role="drains", timeout=0.5), on_question=yes)
        assert outcome.state == "done" and "it was killed after" in outcome.text and not own.up(), outcome
        rows = outcome.next[0].rows
        assert [row.id for row in rows] == [job] and rows[0].token
        await own.client.look_up([1])
        reclaimed = await own.apply(await own.actions.plan_jobs("reclaim", rows=rows))
        assert reclaimed.rows == 1 and (await own.tally()).startswith("waiting|1|1"), reclaimed


async def test_systemd_kills_whoever_has_told_it_that_it_stops(
    demo_host: DemoHost, template: Template, tmp_path: Path
) -> None:
    async with hall(demo_host, template, tmp_path, "tells", ("1",), drain=500, patience=3) as own:
        await own.start(1)
        await own.add(1, 600)
        job = await own.holding(1)
        before = unit(own.client.facts, own.unit(1)).main_pid
        plan = await own.actions.plan_drain(role="tells", timeout=60)
        assert any("systemd kills it after its TimeoutStopSec, 0:03" in warning for warning in plan.warnings)
        outcome = await own.apply(plan)
        assert outcome.state == "failed" and "which kills it in 0:0" in outcome.text and outcome.took < 20, outcome
        await until(lambda: unit(own.client.facts, own.unit(1)).main_pid != before)
        assert [row.id for row in outcome.next[0].rows] == [job]


async def test_the_agent_and_the_console_are_lost_on_the_way(
    demo_host: DemoHost, template: Template, tmp_path: Path
) -> None:
    async with hall(demo_host, template, tmp_path, "losses", ("1", "2")) as own:
        await own.start(1, 2)
        plan = await own.actions.plan_units("restart", role="losses")
        at = asyncio.Event()

        def second(progress: Progress) -> None:
            if progress.step == 1:
                at.set()

        running = asyncio.create_task(own.apply(plan, on_progress=second))
        await at.wait()
        os.kill(agent_pid(own.client), signal.SIGKILL)
        outcome = await running
        assert outcome.state == "done" and [step.state for step in outcome.steps] == ["done"] * 2, outcome

        plan = await own.actions.plan_units("restart", role="losses")
        at.clear()
        running = asyncio.create_task(own.apply(plan, on_progress=second))
        await at.wait()
        with pytest.raises(RefusedError, match="is applying it now"):
            await own.actions.plan_continue(plan.id)
        assert [one.running for one in own.actions.unfinished()] == [True]
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        (left,) = own.actions.unfinished()
        assert (left.plan, left.done, left.steps, left.running) == (plan.id, 1, 2, False)
        rest = await own.actions.plan_continue(plan.id)
        assert rest.title == f"Continue: {plan.title}" and rest.steps[-1].unit == own.unit(2)
        outcome = await own.apply(rest)
        assert outcome.state == "done" and own.actions.unfinished() == ()
        with pytest.raises(RefusedError, match="went on with it"):
            await own.actions.plan_continue(plan.id)
        with pytest.raises(RefusedError, match="went on with it"):
            own.actions.abandon(plan.id)

        plan = await own.actions.plan_units("restart", role="losses")
        running = asyncio.create_task(own.apply(plan))
        await until(lambda: bool(own.actions.unfinished()))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        entry = own.actions.abandon(plan.id, "it is late")
        assert entry.text.startswith("abandoned: 0 of 2 steps were done") and entry.why == "it is late"
        assert own.actions.unfinished() == () and own.actions.audit(1)[0].text == entry.text


async def test_a_second_console_is_told_who_acts(demo_host: DemoHost, template: Template, tmp_path: Path) -> None:
    made = hall(demo_host, template, tmp_path, "seconds", ("1",), lives=1.0)
    async with made as own, agent(demo_host, [own.role]) as client:
        other = Hall(demo_host, client, own.role, tmp_path / "other", database=False)
        await own.start(1)
        await until(lambda: own.unit(1) in other.up())
        plan = await other.actions.plan_units("stop", role="seconds")
        assert any("no database is configured" in warning for warning in plan.warnings)
        applied = asyncio.Event()
        mine = asyncio.create_task(
            own.apply(await own.actions.plan_units("restart", role="seconds"), on_progress=lambda _: applied.set())
        )
        await applied.wait()
        with pytest.raises(RefusedError, match=r"role seconds: the worktop of \S+ .*plan .* is acting on it now"):
            await other.apply(plan)
        await inside(demo_host, "systemctl daemon-reload")
        outcome = await mine
        told = any("somebody made systemd" in text for text in outcome.not_verified)
        assert outcome.state == "done" and told, outcome
        outcome = await other.apply(plan)
        assert outcome.state == "done" and outcome.units == 1 and other.up() == []
        undone = await other.apply(await other.actions.plan_undo(plan.id))
        assert undone.state == "done" and other.up() == [own.unit(1)], undone


async def test_the_other_verbs(demo_host: DemoHost, template: Template, tmp_path: Path) -> None:
    async with hall(demo_host, template, tmp_path, "verbs", ("1", "2"), database=False) as own:
        started = await own.actions.plan_units("start", units=(own.unit(1), own.unit(2)))
        assert (await own.apply(started)).state == "done" and await own.come_to(2)
        assert (await own.actions.plan_units("start", role="verbs")).consent.empty
        await inside(demo_host, "systemctl stop verbs@1 verbs@2")
        assert await own.come_to(0)
        by_others = await own.actions.plan_undo(started.id)
        assert by_others.consent.empty and by_others.consent.why == ("what it changed is as it was before it",)
        await inside(demo_host, "systemctl start verbs@1 verbs@2")
        assert await own.come_to(2)
        enabled = await own.actions.plan_units("enable", role="verbs")
        assert [step.units for step in enabled.steps] == [(own.unit(1), own.unit(2))]
        assert (await own.apply(enabled)).state == "done"
        undone = await own.apply(await own.actions.plan_undo(enabled.id))
        assert undone.state == "done" and "disabled" in await inside(demo_host, "systemctl is-enabled verbs@1 || true")
        await own.actions.plan_units("kill", units=(own.unit(1),), signal="SIGKILL")
        killed = await own.apply(await own.actions.plan_units("kill", units=(own.unit(1),), signal="stop"))
        assert killed.state == "done" and "SIGSTOP was sent" in killed.text and not killed.undo
        with pytest.raises(ConfigError, match="signal: found 'NOPE'"):
            await own.actions.plan_units("kill", role="verbs", signal="NOPE")
        for wrong in ("dbus.service", "verbs@.service", "verbs@1.timer"):
            with pytest.raises(ConfigError, match="no worker of a role"):
                await own.actions.plan_units("stop", units=(wrong,))
        assert (await own.actions.plan_units("reset-failed", role="verbs")).consent.empty


async def test_who_may_not_is_told_what_would_allow_it(demo_host: DemoHost, template: Template, tmp_path: Path) -> None:
    async with hall(demo_host, template, tmp_path, "rights", ("1",), user="deploy") as own:
        plan = await own.actions.plan_units("start", role="rights")
        assert plan.consent.kind == "refused" and "deploy may not start units of rights" in plan.consent.why
        assert "polkit.addRule" in plan.consent.allow[0] and "rights@" in plan.consent.allow[0]
        plan = await own.actions.plan_units("enable", role="rights")
        assert plan.consent.kind == "refused" and any("sudo" in line for line in plan.consent.allow)
        consents = await own.actions.allowed()
        assert {consents[verb].kind for verb in ("drain", "scale", "restart")} == {"refused"}


async def test_an_operator_by_the_commands(demo_host: DemoHost) -> None:
    """deploy is in the group of the demo host's rule: no root, no sudo."""
    said = await inside(demo_host, f"{demo_host.worktop} drain mail@3 --yes --json", "deploy")
    told = json.loads(said)
    assert told["outcome"]["state"] == "done" and told["plan"]["steps"][0]["unit"] == "mail-worker@3.service"
    undo = await inside(demo_host, f"{demo_host.worktop} undo --yes", "deploy")
    assert "start mail-worker@3.service" in undo and "mail-worker@3.service runs as pid" in undo
    assert (await inside(demo_host, "systemctl is-active mail-worker@3")).strip() == "active"


LOOP = "while :; do bash -c 'exec -a \"worker --role loops \" sleep 600'; sleep 0.2; done"


async def test_a_loop_outside_of_units_is_ended_before_its_worker(demo_host: DemoHost, tmp_path: Path) -> None:
    role = Role(name="loops", queues=("loops",), match=("^worker --role loops ",))
    loop = demo_host.popen(["sh", "-c", LOOP])
    try:
        async with agent(demo_host, [role]) as client:
            own = Hall(demo_host, client, role, tmp_path, database=False)
            await until(lambda: bool(processes(client.facts, role="loops")))
            (process,) = processes(client.facts, role="loops")
            plan = await own.actions.plan_drain(processes=(process.ident,))
            titles = [step.title for step in plan.steps]
            assert titles[-1] == f"drain pid {process.ident.pid} (sleep)" and titles[0].endswith("(sh)"), titles
            stale = Ident(process.ident.boot_id, process.ident.pid, process.ident.start - 1)
            with pytest.raises(ConfigError, match="no worker of a role, or has ended"):
                await own.actions.plan_drain(processes=(stale,))
            outcome = await own.apply(plan)
            assert outcome.state == "done" and await client.wait_gone(process.ident, 5), outcome
            await until(lambda: not processes(client.facts, role="loops"))
    finally:
        loop.kill()
        loop.wait()
