"""The preset of pg-boss 12, with the library's own tables and real workers on node."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from console.errors import QueueError
from console.fleet.model import JobQuery, JobSort
from console.fleet.plan import RowRef, Selection
from console.queue.reads import ListedState
from tests.queue.acting import acting
from tests.queue.libraries import Worker, asked, pgboss_leases_run_out, pgboss_worker, until

Start = Callable[..., Worker]


@pytest.fixture
def worker(workers: Callable[[Start], Start]) -> Start:
    return workers(pgboss_worker)


def sent(worker: Worker) -> list[str]:
    return [line.split()[1] for line in worker.lines if line.startswith("sent")]


def row(dsn: str, id: str) -> tuple[Any, ...]:
    """(state, retry_count, who ended it)"""
    query = "SELECT state::text, retry_count, (output ->> 'by')::integer FROM pgboss.job WHERE id = %s::uuid"
    return asked(dsn, query, id)[0]


async def test_what_a_worker_leaves_is_read(pgboss_database: str, worker: Start, gate: Path) -> None:
    dsn = pgboss_database
    running = worker(
        dsn,
        queue="q",
        work={"localConcurrency": 3},
        send=[
            {"name": "q"},
            {"name": "q", "data": {"fail": "no such file"}, "options": {"retryLimit": 0}},
            {"name": "q", "data": {"until": str(gate)}},
            {"name": "q", "data": {"fail": "once"}, "options": {"retryDelay": 500}},
            {"name": "own", "data": {"a": 1}},
            {"name": "own", "options": {"startAfter": 100}},
        ],
    )
    done, failed, held, again, waiting, later = sent(running)
    until(lambda: [row(dsn, id)[0] for id in (done, failed, held, again)] == ["completed", "failed", "active", "retry"])
    async with acting(dsn) as console:
        facts = await console.facts()
        assert facts.preset == "pg-boss"
        assert facts.recognised == "pg-boss 12.38+, 31/31 columns matched"
        counts = {one.queue: one for one in facts.counts}
        assert set(counts) == {"keyed", "other", "own", "q"}  # not those of the library itself
        q, own = counts["q"], counts["own"]
        assert (own.waiting.n, own.scheduled.n, own.running.n) == (1, 1, 0)
        assert (q.waiting.n, q.scheduled.n, q.running.n, q.stuck.n, q.failed.n) == (0, 1, 1, 0, 1)
        assert (q.done_per_minute, q.failed_per_minute) == (0.2, 0.2)
        assert q.last_finished == pytest.approx(5, abs=10)
        (job,) = facts.running
        assert (job.id, job.attempts, job.max_attempts, job.token) == (held, 1, 3, "0")
        assert job.holder is not None
        assert (job.holder.host, job.holder.pid) == (socket.gethostname(), running.pid)
        assert job.overdue == pytest.approx(-895, abs=10)
        expected: dict[ListedState, set[str]] = {
            "waiting": {waiting, later, again},
            "running": {held},
            "stuck": set(),
            "failed": {failed},
            "done": {done},
        }
        for state, ids in expected.items():
            for sort, descending in itertools.product(get_args(JobSort), (False, True)):
                page = await console.reader.page(JobQuery(state=state, sort=sort, descending=descending))
                assert {one.id for one in page.jobs} == ids, (state, sort)
        ended = await console.job(failed)
        assert ended.error.startswith("Error: no such file\n    at ")
        assert (await console.job(waiting)).payload == '{"a": 1}'
        checks = {check.name: check for check in await console.reader.checks()}
        assert checks["schema version"].state == checks["job queue"].state == "ok"
        assert checks["job queue"].text == "pg-boss 12.38+, 31/31 columns matched, in schema pgboss"


async def test_a_killed_workers_job_is_reclaimed_and_finished_once(
    pgboss_database: str, worker: Start, gate: Path
) -> None:
    dsn = pgboss_database
    job = {"name": "q", "data": {"until": str(gate)}, "options": {"retryLimit": 0}}
    first = worker(dsn, queue="q", send=[job], boss={"supervise": False})
    (id,) = sent(first)
    first.said(f"begin {id} 0")
    first.kill()
    async with acting(dsn) as console:
        (held,) = (await console.facts()).running
        assert held.holder is not None
        assert (held.holder.host, held.holder.pid, held.id) == (os.uname().nodename, first.pid, id)
        pgboss_leases_run_out(dsn)
        chosen = Selection(verb="reclaim", queues=("q",), overdue_only=True, holders=(held.holder,))
        assert (await console.writer.survey(chosen)).rows.n == 1
        (group,) = await console.writer.holders(chosen)
        assert group.holder == held.holder
        applied = await console.apply("reclaim", queues=("q",), overdue_only=True, holders=(held.holder,))
        assert (applied.rows, applied.blocked, applied.problem) == (1, (), None)
        assert row(dsn, id)[:2] == ("retry", 0)
        second = worker(dsn, queue="q", boss={"supervise": False})
        second.said(f"begin {id} 1")
        gate.touch()
        second.said(f"end {id} 1")
        until(lambda: row(dsn, id) == ("completed", 1, second.pid))


async def test_the_end_of_a_frozen_holder_is_rejected_after_a_reclaim(
    pgboss_database: str, worker: Start, gate: Path
) -> None:
    dsn = pgboss_database
    other = gate.with_name("other")
    first = worker(dsn, queue="q", send=[{"name": "q", "data": {"until": str(gate)}}], boss={"supervise": False})
    (id,) = sent(first)
    first.said(f"begin {id} 0")
    first.freeze()
    pgboss_leases_run_out(dsn)
    async with acting(dsn) as console:
        await console.writer.ready()
        assert console.writer.late_finish == "rejected"
        assert (await console.apply("reclaim", queues=("q",), overdue_only=True)).rows == 1
    asked(dsn, "UPDATE pgboss.job SET data = jsonb_build_object('until', %s::text) WHERE id = %s::uuid", str(other), id)
    second = worker(dsn, queue="q", boss={"supervise": False})
    second.said(f"begin {id} 1")
    gate.touch()
    first.thaw()
    first.said(f"end {id} 0")  # it says so to the database, which does not listen
    asked(dsn, "INSERT INTO pgboss.job (name, data) VALUES ('q', '{}')")
    first.said("begin", 20)
    until(lambda: sum(line.startswith("begin") for line in first.lines) == 2)  # so what it said before has arrived
    assert row(dsn, id) == ("active", 1, None)
    other.touch()
    second.said(f"end {id} 1")
    until(lambda: row(dsn, id) == ("completed", 1, second.pid))


async def test_who_holds_a_job_is_said_only_where_it_can_be_one_alone(pgboss_database: str) -> None:
    dsn = pgboss_database
    instance = """INSERT INTO pgboss.instance (id, host, pid, version, node_version, heartbeat_seconds, supervise,
           schedule, migrate, persist_queue_stats, persist_warnings, workers, started_on, heartbeat_on, stopped_on)
         SELECT gen_random_uuid(), host, pid, '12', '22', 30, true, true, true, true, true, workers::jsonb,
                now() - started * interval '1 s', now() - beat * interval '1 s',
                now() - stopped::integer * interval '1 s'
         FROM (VALUES {}) AS one(host, pid, workers, started, beat, stopped)"""
    on = """'[{"queue": "other"}, {"queue": "q"}]'"""
    asked(dsn, "INSERT INTO pgboss.job (name, state, started_on) VALUES ('q', 'active', now() - interval '100 s')")
    async with acting(dsn) as console:

        async def holder() -> tuple[str, int | None] | None:
            (job,) = (await console.facts()).running
            return job.holder and (job.holder.text, job.holder.pid)

        rows = [
            f"('a', 1, {on}, 500, 450, NULL)",  # silent before the claim
            f"('a', 2, {on}, 500, 120, 110)",  # stopped before
            f"('a', 3, {on}, 90, 10, NULL)",  # started after
            """('a', 4, '[{"queue": "other", "active": 1}]', 500, 10, NULL)""",  # works on another queue
            """('a', 7, '[{"queue": "q", "active": 0}]', 500, 10, NULL)""",  # has said since that it has no job in hand
        ]
        for one in rows:
            asked(dsn, instance.format(one))
        assert await holder() is None
        asked(dsn, instance.format(f"('b', 5, {on}, 500, 150, NULL)"))  # died after the claim
        assert await holder() == ("b 5", 5)
        asked(dsn, instance.format("('c', 6, '[]', 150, 150, NULL)"))  # its queues are not known yet
        assert await holder() == ("one of b:5, c:6", None)
        asked(dsn, instance.format("""('d', 8, '[{"queue": "q", "active": 2}]', 400, 10, NULL)"""))  # has two in hand
        assert await holder() == ("one of b:5, d:8, c:6", None)


async def test_rows_that_cannot_go_back_are_told_with_what_is_in_their_way(pgboss_database: str) -> None:
    dsn = pgboss_database
    job = """INSERT INTO pgboss.job (name, state, policy, singleton_key, started_on)
             VALUES ('keyed', %s::pgboss.job_state, 'stately', %s, now() - interval '1 h') RETURNING id::text"""
    ((stuck,),) = asked(dsn, job, "active", "k")
    ((blocking,),) = asked(dsn, job, "retry", "k")
    ((free,),) = asked(dsn, job, "active", "l")
    async with acting(dsn) as console:
        survey = await console.writer.survey(Selection(verb="reclaim", queues=("keyed",), overdue_only=True))
        assert (survey.rows.n, survey.behind) == (
            2,
            ("1 waiting behind one of these rows: keyed with the key k lets one run at a time",),
        )
        applied = await console.apply("reclaim", queues=("keyed",), overdue_only=True)
        assert applied.rows == 1
        (blocked,) = applied.blocked
        assert (blocked.id, blocked.by) == (stuck, blocking)
        assert blocked.why == (
            f"job {blocking} (retry) of the stately queue keyed stands where this one would go, with the key k"
        )
        assert [row(dsn, id)[0] for id in (stuck, blocking, free)] == ["active", "retry", "retry"]


async def test_waiting_and_failed_jobs_are_changed_and_changed_back(pgboss_database: str) -> None:
    dsn = pgboss_database
    job = """INSERT INTO pgboss.job (name, state, start_after, completed_on, retry_count, retry_limit, output)
             VALUES (%s, %s::pgboss.job_state, now() + %s * interval '1 s', %s::timestamptz, 2, 2, '{"message": "no"}')
             RETURNING id::text"""
    now, later = asked(dsn, job, "q", "created", 0, None)[0][0], asked(dsn, job, "own", "retry", 900, None)[0][0]
    failed = asked(dsn, job, "own", "failed", 0, "2026-01-01 00:00+00")[0][0]
    everything = "SELECT * FROM pgboss.job ORDER BY id"
    before = asked(dsn, everything)
    async with acting(dsn) as console:
        for verb, ids, more in (
            ("retry", {failed}, {}),
            ("discard", {now, later, failed}, {}),
            ("run-now", {later}, {}),
            ("priority", {now, later}, {"priority": 9}),
        ):
            applied = await console.apply(verb, queues=("q", "own"), **more)
            assert (applied.rows, applied.blocked) == (len(ids), ()), verb
            assert {change.id for change in console.changes} == ids
            assert await console.undo(verb) == len(ids)  # type: ignore[arg-type]
            assert asked(dsn, everything) == before, verb
        assert (await console.apply("retry", rows=(RowRef(failed),))).rows == 1
        assert row(dsn, failed)[:2] == ("retry", 2)
        assert asked(dsn, "SELECT retry_limit FROM pgboss.job WHERE id = %s::uuid", failed) == [(3,)]
        for verb in ("pause", "resume", "quarantine"):
            assert "pg-boss" in console.writer.refusal(verb)  # type: ignore[arg-type]
        with pytest.raises(QueueError, match="no such switch"):
            await console.writer.set_paused(["q"], True)
