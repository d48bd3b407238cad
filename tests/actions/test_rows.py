"""The other verbs, undo, and what a crash between any two writes leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from console.actions import audit, journal
from console.errors import ConfigError, RefusedError
from console.fleet.plan import Progress, RowRef
from console.view.plan import plan_text
from tests.actions.conftest import World

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_every_verb_does_what_it_says_and_can_be_undone(world: World) -> None:
    actions = world.actions()
    waiting = world.add(2)
    later = world.add(1)[0]
    world.rows("UPDATE worktop_jobs SET run_after = now() + interval '1 hour' WHERE id = %s", later)
    failed = world.add(1)[0]
    world.rows(
        "UPDATE worktop_jobs SET status = 'failed', attempts = 4, finished_at = now(), last_error = 'x' WHERE id = %s",
        failed,
    )
    look = "SELECT status, priority, run_after <= now() FROM worktop_jobs WHERE id = %s"
    for verb, job, options, expected in (
        ("retry", failed, {}, [("waiting", 0, True)]),
        ("run-now", later, {}, [("waiting", 0, True)]),
        ("priority", waiting[0], {"priority": 7}, [("waiting", 7, True)]),
        ("quarantine", waiting[1], {}, [("failed", 0, True)]),
        ("discard", failed, {}, []),
    ):
        before = world.images()
        plan = await actions.plan_jobs(verb, rows=(RowRef(job),), **options)  # type: ignore[arg-type]
        assert plan.consent.kind == "confirm", (verb, plan.consent)
        assert (plan.role, plan.reversible) == ("letters", "yes"), verb
        outcome = await actions.apply(plan)
        assert (outcome.state, outcome.rows) == ("done", 1), (verb, outcome)
        assert outcome.verified and world.rows(look, job) == expected, verb
        undone = await actions.apply(await actions.plan_undo(plan.id))
        assert (undone.state, undone.rows) == ("done", 1), (verb, undone)
        assert world.images() == before, verb


async def test_undo_leaves_alone_what_has_changed_since_and_names_it(world: World) -> None:
    jobs = world.add(3)
    world.fail_all()
    plan = await world.actions().plan_jobs("retry", role="letters")
    await world.actions().apply(plan)
    claimed = world.killed()
    outcome = await world.actions().apply(await world.actions().plan_undo(plan.id))
    assert (outcome.state, outcome.rows, [blocked.id for blocked in outcome.blocked]) == ("partly", 2, [claimed])
    states = dict(world.rows("SELECT id::text, status FROM worktop_jobs"))
    assert states == {job: "running" if job == claimed else "failed" for job in jobs}


async def test_a_role_is_paused_and_resumed(world: World) -> None:
    actions = world.actions()
    plan = await actions.plan_queue("pause", "letters")
    assert "INSERT INTO" in plan_text(plan) and "paused = true" in plan_text(plan), "the exact SQL"
    assert (await actions.apply(plan)).state == "done"
    assert (await actions.plan_queue("pause", "letters")).consent.empty
    assert world.value("SELECT paused FROM worktop_queues WHERE queue = 'letters'")
    back = await actions.plan_undo(plan.id)
    assert "pg_notify" in back.psql, "idle workers are woken"
    outcome = await actions.apply(back)
    assert outcome.state == "done", outcome
    assert not world.value("SELECT paused FROM worktop_queues WHERE queue = 'letters'")
    by_hand = await actions.plan_queue("pause", "letters")
    world.rows(by_hand.psql)
    assert world.value("SELECT paused FROM worktop_queues WHERE queue = 'letters'"), "psql does the same"


async def test_it_is_stopped_between_two_batches_and_goes_on_from_there(world: World) -> None:
    world.add(30)
    world.fail_all()
    stop = asyncio.Event()
    told: list[Progress] = []

    def progress(now: Progress) -> None:
        told.append(now)
        if now.done >= 10:
            stop.set()

    plan = await world.actions().plan_jobs("retry", role="letters", batch=10)
    outcome = await world.actions().apply(plan, on_progress=progress, stop=stop)
    assert (outcome.state, outcome.rows) == ("stopped", 10)
    assert told[-1].total is not None and told[-1].total.n == 30 and told[-1].per_second
    rest = await world.actions().plan_jobs("retry", role="letters")
    assert rest.rows is not None and rest.rows.n == 20


async def test_nothing_is_done_that_was_not_agreed_to(world: World) -> None:
    world.add(1)
    world.fail_all()
    before = world.images()
    reading = world.actions("--read-only was given")
    plan = await reading.plan_jobs("retry", role="letters")
    assert plan.consent.kind == "refused" and plan.rows is not None and plan.rows.n == 1
    assert all(consent.kind == "refused" for verb, consent in (await reading.allowed()).items())
    with pytest.raises(RefusedError, match="read-only"):
        await reading.apply(plan)
    fine = await world.actions().plan_jobs("retry", role="letters")
    with pytest.raises(RefusedError, match="read-only"):
        await reading.apply(fine)
    for wrong in ("nobody", "letters "):
        with pytest.raises(ConfigError):
            await world.actions().plan_jobs("retry", role=wrong)
    assert world.images() == before and world.actions().audit() == ()


class _Crash(BaseException):
    """The process ended here: nothing of it runs any more."""


async def test_a_crash_between_any_two_writes_leaves_what_undo_can_handle(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = journal.write_all
    jobs = 2
    world.add(jobs)
    world.fail_all()
    whole = 1 + 2 * jobs  # the plan; a batch and its commit for each; what follows is the end
    for crash_at in range(whole + 1):
        for torn in (False, True):
            before, writes = world.images(), 0

            def crashing(descriptor: int, data: bytes, at: int = crash_at, torn: bool = torn) -> None:
                nonlocal writes
                if writes > at:
                    raise _Crash
                writes += 1
                if writes > at:
                    write(descriptor, data[: len(data) // 2] if torn else data)
                    raise _Crash
                write(descriptor, data)

            plan = await world.actions().plan_jobs("retry", role="letters", batch=1)
            with monkeypatch.context() as patch:
                patch.setattr(journal, "write_all", crashing)
                patch.setattr(audit, "append", _once(audit.append))
                with pytest.raises(_Crash):
                    await world.actions().apply(plan)
            actions = world.actions()
            started = [entry.state for entry in actions.audit() if entry.plan == plan.id]
            assert started == ([audit.STARTED] if crash_at else []), "an apply that was cut off is in the audit"
            changed = world.value("SELECT count(*) FROM worktop_jobs WHERE status = 'waiting'")
            assert changed == crash_at // 2, "every second write is the one before a COMMIT"
            if changed:
                ended = crash_at == whole and not torn
                state = "whole" if ended else "unsure"
                assert [one.state for one in actions.undoable() if one.plan == plan.id] == [state]
                outcome = await actions.apply(await actions.plan_undo(plan.id))
                assert outcome.rows == changed, (crash_at, torn)
            assert world.images() == before, (crash_at, torn)


def _once(append: Callable[..., None]) -> Callable[..., None]:
    """Only the line that it has begun is written."""
    calls = 0

    def appended(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise _Crash
        append(*arguments)

    return appended
