"""The preset of procrastinate 3, with the library's own tables and real workers."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from console.errors import QueueError
from console.fleet.model import JobQuery, JobSort, QueueFacts
from console.fleet.plan import RowRef, Selection
from console.queue.reads import ListedState
from tests.queue.acting import Acting, acting
from tests.queue.libraries import Worker, asked, deferred, procrastinate_heartbeats_stop, procrastinate_worker, until

Start = Callable[..., Worker]


@pytest.fixture
def worker(workers: Callable[[Start], Start]) -> Start:
    return workers(procrastinate_worker)


def events(dsn: str, id: int) -> list[str]:
    rows = asked(dsn, "SELECT type::text FROM procrastinate_events WHERE job_id = %s ORDER BY id", id)
    return [row[0] for row in rows if row[0] != "scheduled"]


def status(dsn: str, id: int) -> str:
    return str(asked(dsn, "SELECT status::text FROM procrastinate_jobs WHERE id = %s", id)[0][0])


async def eventually(console: Acting, condition: Callable[[QueueFacts], bool]) -> QueueFacts:
    """The facts, once they are so."""
    deadline = time.monotonic() + 20
    while not condition(facts := await console.facts()):
        assert time.monotonic() < deadline, facts
        await asyncio.sleep(0.05)
    return facts


async def test_what_a_worker_leaves_is_read(procrastinate_database: str, worker: Start, gate: Path) -> None:
    dsn = procrastinate_database
    done, failed = deferred(dsn), deferred(dsn, args={"fail": "no"})
    running = worker(dsn)
    running.said(f"end {done}")
    until(lambda: status(dsn, failed) == "failed")
    held = deferred(dsn, args={"until": str(gate)})
    running.said(f"begin {held}")
    waiting = deferred(dsn, queue="mail", priority=3)
    later = deferred(dsn, queue="mail", schedule_in={"seconds": 100})
    overdue = deferred(dsn, queue="mail", schedule_in={"seconds": -100})
    async with acting(dsn) as console:
        facts = await console.facts()
        assert (facts.preset, facts.recognised) == ("procrastinate", "procrastinate 3.x, 18/18 columns matched")
        counts = {one.queue: one for one in facts.counts}
        mail, default = counts["mail"], counts["default"]
        assert (mail.waiting.n, mail.scheduled.n, mail.running.n) == (2, 1, 0)
        assert mail.oldest_waiting == pytest.approx(100, abs=20)
        assert (default.waiting.n, default.running.n, default.stuck.n, default.failed.n) == (0, 1, 0, 1)
        assert default.done is not None
        assert default.done.n == 1
        assert (default.done_per_minute, default.failed_per_minute) == (0.2, 0.2)
        assert default.last_finished == pytest.approx(10, abs=10)
        (job,) = facts.running
        assert job.id == str(held)
        assert job.holder is not None
        assert (job.holder.text, job.holder.worker, job.holder.pruned) == ("worker 1", "1", False)
        assert job.overdue == pytest.approx(-25, abs=8)
        assert job.running_for == pytest.approx(5, abs=10)
        assert (facts.backends, facts.workers, facts.heartbeat_limit) == (None, None, 30.0)
        expected: dict[ListedState, set[int]] = {
            "waiting": {waiting, later, overdue},
            "running": {held},
            "stuck": set(),
            "failed": {failed},
            "done": {done},
        }
        for state, ids in expected.items():
            for sort, descending in itertools.product(get_args(JobSort), (False, True)):
                page = await console.reader.page(JobQuery(state=state, sort=sort, descending=descending))
                assert {int(one.id) for one in page.jobs} == ids, (state, sort)
        oldest_first = await console.reader.page(JobQuery(state="waiting", sort="age", descending=True))
        assert [int(one.id) for one in oldest_first.jobs] == [overdue, waiting, later]
        ended = await console.job(done)
        assert (ended.type, ended.attempts, ended.payload) == ("hold", 1, "{}")
        assert ended.created is not None and ended.started is not None and ended.finished is not None
        assert ended.created <= ended.started <= ended.finished
        trend = next(trend for trend in facts.trends if trend.queue == "default")
        assert len(trend.points) >= 16


async def test_rates_are_those_of_the_events_wherever_their_ids_lie(procrastinate_database: str) -> None:
    dsn = procrastinate_database
    asked(dsn, "ALTER TABLE procrastinate_jobs DISABLE TRIGGER USER")
    asked(
        dsn,
        """INSERT INTO procrastinate_jobs (queue_name, task_name, status)
           SELECT 'q', 't', 'succeeded' FROM generate_series(1, 3000)""",
    )
    # one each second, the first 50 minutes ago; a gap in the ids; times of the future; one that is late by a minute
    asked(
        dsn,
        """INSERT INTO procrastinate_events (id, job_id, type, at)
           SELECT 3 * i + (i > 1500)::integer * 100000, i, 'succeeded'::procrastinate_job_event_type,
                  now() - interval '1 s' * (3000 - i + CASE WHEN i % 100 = 7 THEN 60 ELSE 0 END)
           FROM generate_series(1, 3000) AS i
           UNION ALL SELECT 3 * i + 1 + (i > 1500)::integer * 100000, i, 'scheduled', now() + interval '1 day'
           FROM generate_series(1, 3000) AS i""",
    )
    recent = "SELECT count(*) FROM procrastinate_events WHERE type = 'succeeded' AND at > now() - interval '5 min'"
    expected = asked(dsn, recent)
    async with acting(dsn) as console:
        facts = await console.facts()
        (counts,) = facts.counts
        assert counts.done_per_minute is not None
        assert counts.done_per_minute * 5 == pytest.approx(expected[0][0], abs=8)
        assert counts.last_finished == pytest.approx(2, abs=8)
        (trend,) = facts.trends
        assert sum(point.done or 0 for point in trend.points[-30:]) == pytest.approx(29 * 60, abs=120)


async def test_a_killed_workers_job_is_reclaimed_and_finished_once(
    procrastinate_database: str, worker: Start, gate: Path
) -> None:
    dsn = procrastinate_database
    id = deferred(dsn, args={"until": str(gate)})
    first = worker(dsn)
    first.said(f"begin {id}")
    first.kill()
    procrastinate_heartbeats_stop(dsn)
    async with acting(dsn) as console:
        facts = await console.facts()
        assert [job.id for job in facts.running if (job.overdue or 0) > 0] == [str(id)]
        assert facts.workers is not None and facts.backends is not None
        assert {one.id: (one.heartbeat_age or 0) > 30 for one in facts.workers} == {"1": True}
        second = worker(dsn, fetch_job_polling_interval=600.0)  # it is woken, or it sleeps
        until(lambda: asked(dsn, "SELECT FROM procrastinate_workers WHERE id = 1") == [])  # it deletes silent ones
        facts = await eventually(console, lambda facts: any(one.listens for one in facts.backends or ()))
        (job,) = facts.running
        assert job.holder is not None
        assert (job.holder.pruned, (job.overdue or 0) > 0) == (True, True)
        assert facts.workers is not None and facts.backends is not None
        assert [(one.id, (one.heartbeat_age or 0) < 30) for one in facts.workers] == [("2", True)]
        assert [one.listens for one in facts.backends if one.listens] == [True]
        chosen = Selection(verb="reclaim", queues=("default",), overdue_only=True)
        assert (await console.writer.survey(chosen)).rows.n == 1
        applied = await console.apply("reclaim", queues=("default",), overdue_only=True)
        assert (applied.rows, applied.blocked) == (1, ())
        second.said(f"begin {id} 1")
        gate.touch()
        second.said(f"end {id}")
        until(lambda: status(dsn, id) == "succeeded")
    assert events(dsn, id) == ["deferred", "started", "deferred_for_retry", "started", "succeeded"]


async def test_the_end_of_a_frozen_holder_lands_on_its_successor(
    procrastinate_database: str, worker: Start, gate: Path
) -> None:
    dsn = procrastinate_database
    id = deferred(dsn, args={"until": str(gate)})
    first = worker(dsn)
    first.said(f"begin {id}")
    first.freeze()
    procrastinate_heartbeats_stop(dsn)
    async with acting(dsn) as console:
        await console.writer.ready()
        assert console.writer.late_finish == "accepted"  # what follows is why a live holder is stopped first
        assert (await console.apply("reclaim", queues=("default",), overdue_only=True)).rows == 1
    second = worker(dsn)
    second.said(f"begin {id} 1")
    second.freeze()
    gate.touch()
    first.thaw()
    until(lambda: status(dsn, id) == "succeeded")  # by the first, while the second still works on it
    assert not any(line.startswith("end") for line in second.lines)
    second.thaw()
    second.said(f"end {id}")  # run twice


async def test_rows_that_cannot_go_back_are_told_with_what_is_in_their_way(
    procrastinate_database: str, worker: Start, gate: Path
) -> None:
    dsn, args = procrastinate_database, {"until": str(gate)}
    running = worker(dsn, concurrency=10)
    twins = []
    for _ in range(2):  # the second may be deferred once the first is no longer waiting
        twins.append(deferred(dsn, queueing_lock="report", args=args))
        running.said(f"begin {twins[-1]}")
    locked, aborted, alone = deferred(dsn, lock="one", args=args), deferred(dsn, args=args), deferred(dsn, args=args)
    for id in (locked, aborted, alone):
        running.said(f"begin {id}")
    deferred(dsn, lock="one")
    running.kill()
    asked(dsn, "SELECT procrastinate_cancel_job_v1(%s, true, false)", aborted)
    procrastinate_heartbeats_stop(dsn)
    async with acting(dsn) as console:
        survey = await console.writer.survey(Selection(verb="reclaim", queues=("default",), overdue_only=True))
        assert survey.rows.n == 5
        assert survey.behind == ("1 waiting for the lock one, which one of these rows holds",)
        applied = await console.apply("reclaim", queues=("default",), overdue_only=True)
        assert applied.rows == 4
        (blocked,) = applied.blocked
        assert {int(blocked.id), int(blocked.by)} == set(twins)
        assert blocked.why == f"job {blocked.by} with the same queueing_lock report is waiting already"
        assert blocked.choices == (f"worktop discard --id {blocked.by}",)
        assert (status(dsn, aborted), status(dsn, alone), status(dsn, int(blocked.id))) == ("failed", "todo", "doing")
        # one of the choices, and then the other can go
        assert (await console.apply("discard", rows=(RowRef(blocked.by),))).rows == 1
        assert (await console.apply("reclaim", queues=("default",), overdue_only=True)).rows == 1
        assert (await console.apply("retry", rows=(RowRef(str(aborted)),))).rows == 1
        assert status(dsn, aborted) == "todo"


async def test_waiting_and_failed_jobs_are_changed_and_changed_back(procrastinate_database: str) -> None:
    dsn = procrastinate_database
    now, later, failed = deferred(dsn), deferred(dsn, schedule_in={"seconds": 3600}), deferred(dsn)
    asked(dsn, "UPDATE procrastinate_jobs SET status = 'failed', attempts = 1 WHERE id = %s", failed)
    everything = "SELECT * FROM procrastinate_jobs ORDER BY id"
    before = asked(dsn, everything)
    async with acting(dsn) as console:
        for verb, ids, more in (
            ("retry", [failed], {}),
            ("discard", [now, later, failed], {}),
            ("run-now", [later], {}),
            ("priority", [now, later], {"priority": 9}),
        ):
            applied = await console.apply(verb, queues=("default",), **more)
            assert (applied.rows, applied.blocked) == (len(ids), ()), verb
            assert sorted(int(change.id) for change in console.changes) == ids
            assert asked(dsn, everything) != before
            assert await console.undo(verb) == len(ids)  # type: ignore[arg-type]
            assert asked(dsn, everything) == before, verb
        for verb in ("pause", "resume", "quarantine"):
            assert "procrastinate" in console.writer.refusal(verb)  # type: ignore[arg-type]
            if verb == "quarantine":
                with pytest.raises(QueueError, match="does not count how often"):
                    await console.apply(verb, queues=("default",))


async def test_a_reader_sees_everything_and_is_told_which_rights_it_lacks(
    procrastinate_database: str, worker: Start, gate: Path
) -> None:
    dsn = procrastinate_database
    id = deferred(dsn, args={"until": str(gate)})
    first = worker(dsn)
    first.said(f"begin {id}")
    first.kill()
    asked(dsn, "DELETE FROM procrastinate_workers")  # another worker has removed the silent one
    asked(dsn, "DROP ROLE IF EXISTS looker")
    asked(dsn, "CREATE ROLE looker LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO looker")
    try:
        async with acting(dsn.replace("user=postgres", "user=looker")) as console:
            (job,) = await console.jobs("stuck")
            assert job.holder is not None
            assert (job.id, job.holder.pruned, job.holder.worker) == (str(id), True, "")
            assert job.overdue is not None and job.overdue > 0
            missing = await console.writer.missing_rights("reclaim")
            assert len(missing) == 3, missing
            refused = await console.apply("reclaim", rows=(RowRef(str(id)),))
            assert (refused.rows, refused.problem is None) == (0, False)
            for grant in missing:
                asked(dsn, grant)
            assert await console.writer.missing_rights("reclaim") == ()
            assert (await console.apply("reclaim", rows=(RowRef(str(id), job.token),))).rows == 1
        assert status(dsn, id) == "todo"
    finally:
        asked(dsn, "DROP OWNED BY looker; DROP ROLE looker")
