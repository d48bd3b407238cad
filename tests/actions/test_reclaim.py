"""Taking jobs from dead, slow and unknown holders: real processes, a real host agent, a real database."""

from __future__ import annotations

import os
import signal
import subprocess

import psycopg
import pytest

from console.actions import reclaim, verify
from console.errors import RefusedError
from console.fleet.plan import RowRef
from console.view.plan import plan_text
from tests.actions.conftest import World, seen, until

Process = subprocess.Popen[bytes]
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_jobs_of_a_killed_holder_wait_again_and_its_late_finish_is_rejected(world: World) -> None:
    world.add(2)
    job = world.killed()
    token = world.value("SELECT lease_token FROM worktop_jobs WHERE id = %s", job)
    before = world.images()
    plan = await world.actions().plan_jobs("reclaim", role="letters", why="the host ran out of memory")
    assert plan.rows is not None and plan.rows.n == 1, plan_text(plan)
    assert (plan.consent.kind, plan.risk, plan.late_finish) == ("confirm", "low", "rejected")
    assert [claim.verdict for claim in plan.claims] == ["DEAD"]
    assert plan.command == "worktop reclaim --role letters" and "UPDATE" in plan.psql
    assert "no longer exists" in plan_text(plan)
    assert world.images() == before, "a plan changes nothing"

    outcome = await world.actions().apply(plan)
    assert (outcome.state, outcome.rows, outcome.blocked) == ("done", 1, ())
    assert world.rows("SELECT status, reclaims, last_error FROM worktop_jobs WHERE id = %s", job) == [
        ("waiting", 1, "the host ran out of memory")
    ]
    assert any("late finish" in sentence for sentence in outcome.verified)
    with pytest.raises(psycopg.Error, match=job):
        world.rows("SELECT worktop_finish(%s, %s)", int(job), token)

    again = await world.actions().apply(await world.actions().plan_undo(plan.id))
    assert (again.state, again.rows) == ("done", 1)
    assert world.images() == before
    entries = world.actions().audit()
    assert [(entry.verb, entry.state, entry.rows) for entry in entries] == [("undo", "done", 1), ("reclaim", "done", 1)]
    assert entries[1].why == "the host ran out of memory" and entries[1].undo == f"worktop undo {plan.id}"
    assert (await world.actions().plan_undo(plan.id)).consent.empty, "once is enough"


async def test_a_real_worker_that_was_killed_and_the_one_that_picks_its_job_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "WATCH", 30.0)
    world.add(1, payload='{"seconds": 60}')
    first = world.worker()
    job = world.holding(first)
    first.kill()
    first.wait()
    second = world.worker()
    world.rows("UPDATE worktop_jobs SET payload = '{\"seconds\": 0.01}'")
    await seen(lambda: any(one.ident.pid == second.pid for one in world.host.facts.processes.value or ()), "it is seen")
    outcome = await world.actions().apply(await world.actions().plan_jobs("reclaim", role="letters"))
    assert outcome.rows == 1
    assert any(f"a worker has claimed job {job}" in text or "has ended job" in text for text in outcome.verified), (
        outcome
    )
    until(lambda: world.value("SELECT status FROM worktop_jobs") == "done", "it is done")
    assert world.value("SELECT attempts FROM worktop_jobs") == 2


async def test_a_live_holder_keeps_its_job_within_the_lease_and_is_ended_first_past_it(
    world: World, sleepers: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reclaim, "TERM_TIMEOUT", 0.2)
    world.add(1)
    process = sleepers[1]
    job = world.claimed_by(process)
    actions = world.actions()
    plan = await actions.plan_jobs("reclaim", rows=(RowRef(job),))
    assert plan.consent.kind == "refused" and plan.consent.empty and not plan.steps
    assert "lease is valid" in plan_text(plan)

    process.send_signal(signal.SIGSTOP)
    world.expire(job)
    assert (await actions.plan_jobs("reclaim", role="letters")).consent.empty, "by default only of dead holders"
    plan = await actions.plan_jobs("reclaim", rows=(RowRef(job),))
    assert (plan.consent.kind, plan.risk, plan.role, plan.reversible) == ("confirm", "medium", "letters", "partly")
    outcome = await actions.apply(plan)
    assert process.poll() == -signal.SIGKILL
    assert (outcome.state, outcome.rows) == ("done", 1)
    assert world.value("SELECT status FROM worktop_jobs") == "waiting"
    kinds = [(step.kind, done.state) for step, done in zip(plan.steps, outcome.steps, strict=True)]
    assert kinds[-3:] == [("signal", "done"), ("wait", "done"), ("sql", "done")], kinds


async def test_of_several_holders_it_is_said_how_many_are_proved_dead(
    world: World, sleepers: tuple[Process, Process]
) -> None:
    world.add(2)
    dead, alive = world.killed(), world.claimed_by(sleepers[0])
    world.expire(alive)
    both = await world.actions().plan_jobs("reclaim", rows=(RowRef(dead), RowRef(alive)))
    assert "1 of 2 holders is proved dead" in both.reasons, both.reasons
    one = await world.actions().plan_jobs("reclaim", rows=(RowRef(dead),))
    assert "the holder is proved dead" in one.reasons


async def test_beneath_a_live_holder_only_with_the_typed_name(world: World, sleepers: tuple[Process, Process]) -> None:
    world.add(1)
    job = world.claimed_by(sleepers[0])
    world.expire(job)
    plan = await world.actions().plan_jobs("reclaim", rows=(RowRef(job),), leave_running=True)
    assert (plan.consent.kind, plan.consent.word, plan.risk) == ("typed", "letters", "high")
    with pytest.raises(RefusedError):
        await world.actions().apply(plan, typed="latters")
    assert world.value("SELECT status FROM worktop_jobs") == "running"
    assert (await world.actions().apply(plan, typed="letters")).rows == 1


async def test_a_job_that_was_claimed_anew_since_the_plan_is_left_alone(world: World) -> None:
    world.add(1)
    world.killed()
    plan = await world.actions().plan_jobs("reclaim", role="letters")
    world.rows(
        "UPDATE worktop_jobs SET lease_pid = %s, lease_start = NULL, lease_token = nextval('worktop_lease_tokens')",
        os.getpid(),
    )
    outcome = await world.actions().apply(plan)
    assert (outcome.state, outcome.rows) == ("cancelled", 0)
    assert world.value("SELECT status FROM worktop_jobs") == "running"


async def test_what_is_not_known_is_typed_and_said(world: World) -> None:
    world.add(1)
    job = world.killed()
    world.rows("UPDATE worktop_jobs SET lease_host = 'wrk99'")
    actions = world.actions()
    assert (await actions.plan_jobs("reclaim", role="letters")).consent.empty
    assert (await actions.plan_jobs("reclaim", rows=(RowRef(job),))).consent.empty, "its lease is still valid"
    world.expire(job)
    plan = await actions.plan_jobs("reclaim", role="letters", verdicts=("UNKNOWN",))
    assert (plan.consent.kind, plan.consent.word) == ("typed", "letters")
    assert any("wrk99" in reason for reason in plan.consent.why)
    assert (await actions.apply(plan, typed="letters")).rows == 1


async def test_a_poisoned_job_goes_to_the_failed_ones(world: World) -> None:
    world.add(1)
    world.killed()
    world.rows("UPDATE worktop_jobs SET reclaims = 3")
    plan = await world.actions().plan_jobs("reclaim", role="letters", quarantine_after=3)
    assert any("failed" in warning for warning in plan.warnings)
    await world.actions().apply(plan)
    assert world.value("SELECT status FROM worktop_jobs") == "failed"
