"""The functions of schema.sql: what claim, heartbeat, finish and fail do, and what they reject."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

Database = psycopg.Connection[dict[str, Any]]


@pytest.fixture
def db(database: str) -> Iterator[Database]:
    with psycopg.connect(database, autocommit=True, row_factory=dict_row) as connection:
        yield connection


def one(db: Database, query: str, *values: Any) -> dict[str, Any]:
    row = db.execute(query.encode(), values).fetchone()
    assert row is not None
    return row


def enqueue(db: Database, queue: str = "mail", **options: Any) -> int:
    named = "".join(f", {name} => %s" for name in options)
    job: int = one(db, f"SELECT worktop_enqueue(%s, 'send'{named}) AS id", queue, *options.values())["id"]
    return job


def claim(db: Database, *queues: str, lease: float = 60, jobs: int = 1) -> list[dict[str, Any]]:
    return db.execute(
        """SELECT * FROM worktop_claim(%s::text[], 'web1', 'boot', 'mail@1.service', 4711, 99,
                                       make_interval(secs => %s), %s)""",
        (list(queues) or ["mail"], lease, jobs),
    ).fetchall()


def row(db: Database, job: int) -> dict[str, Any]:
    return one(db, "SELECT *, now() AS now FROM worktop_jobs WHERE id = %s", job)


def lost(db: Database, query: str, *values: Any) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as caught:
        db.execute(query.encode(), values)
    assert caught.value.sqlstate == "WT001"
    return caught.value


def test_a_claim_gives_the_row_a_holder_a_token_and_a_lease(db: Database) -> None:
    job = enqueue(db)
    (claimed,) = claim(db)
    assert (claimed["id"], claimed["status"], claimed["attempts"]) == (job, "running", 1)
    holder = [claimed[f"lease_{part}"] for part in ("host", "boot_id", "unit", "pid", "start")]
    assert holder == ["web1", "boot", "mail@1.service", 4711, 99]
    assert claimed["lease_expires"] - claimed["started_at"] == timedelta(seconds=60)
    assert claimed["lease_token"] > 0
    assert claim(db) == []  # a running row is never taken


def test_an_expired_lease_is_not_taken_either(db: Database) -> None:
    enqueue(db)
    claim(db, lease=-10)
    assert claim(db) == []


def test_claims_take_the_highest_priority_then_the_longest_due(db: Database) -> None:
    late = enqueue(db)
    old = enqueue(db, run_after="2020-01-01")
    urgent = enqueue(db, "other", priority=5)
    future = enqueue(db, priority=9, run_after="2999-01-01")
    assert [job["id"] for job in sorted(claim(db, "mail", "other", jobs=9), key=lambda job: job["lease_token"])] == [
        urgent,
        old,
        late,
    ]
    assert row(db, future)["status"] == "waiting"


def test_claims_keep_to_their_queues_types_and_number(db: Database) -> None:
    for _ in range(3):
        enqueue(db)
    enqueue(db, "reports")
    assert len(claim(db, "mail", jobs=2)) == 2
    assert db.execute("SELECT * FROM worktop_claim('{mail}', '', '', '', 1, 1, types => '{other}')").fetchall() == []
    assert len(claim(db, "mail", "nothing", jobs=9)) == 1


def test_a_paused_queue_gives_out_nothing(db: Database) -> None:
    enqueue(db)
    db.execute("INSERT INTO worktop_queues (queue, paused) VALUES ('mail', true)")
    assert claim(db) == []
    db.execute("UPDATE worktop_queues SET paused = false")
    assert len(claim(db)) == 1


def test_two_claims_at_once_take_different_rows(db: Database, database: str) -> None:
    first, second = enqueue(db), enqueue(db)
    with psycopg.connect(database, row_factory=dict_row) as other:
        assert [job["id"] for job in claim(other)] == [first]  # not yet committed
        assert [job["id"] for job in claim(db)] == [second]


def test_a_heartbeat_moves_the_lease(db: Database) -> None:
    job = enqueue(db)
    (claimed,) = claim(db, lease=5)
    expires = one(db, "SELECT worktop_heartbeat(%s, %s, '90 s') AS at", job, claimed["lease_token"])["at"]
    found = row(db, job)
    assert found["lease_expires"] == expires
    assert found["lease_expires"] - found["heartbeat_at"] == timedelta(seconds=90)


def test_finish_ends_the_job_and_keeps_who_did_it(db: Database) -> None:
    job = enqueue(db)
    (claimed,) = claim(db)
    db.execute("SELECT worktop_finish(%s, %s)", (job, claimed["lease_token"]))
    found = row(db, job)
    assert (found["status"], found["lease_expires"], found["lease_pid"]) == ("done", None, 4711)
    assert found["finished_at"] is not None
    # the answer may have been lost: the same end again is no error
    db.execute("SELECT worktop_finish(%s, %s)", (job, claimed["lease_token"]))
    assert row(db, job)["finished_at"] == found["finished_at"]


def test_failures_wait_1_5_and_30_minutes_and_then_have_failed(db: Database) -> None:
    job = enqueue(db)
    for minutes in (1, 5, 30):
        (claimed,) = claim(db)
        assert one(db, "SELECT worktop_fail(%s, %s, 'boom') AS s", job, claimed["lease_token"])["s"] == "waiting"
        found = row(db, job)
        waits = (found["run_after"] - found["now"]).total_seconds()
        assert waits == pytest.approx(minutes * 60, abs=5)
        assert (found["last_error"], found["finished_at"]) == ("boom", None)
        assert claim(db) == []
        db.execute("UPDATE worktop_jobs SET run_after = now()")
    (claimed,) = claim(db)
    assert one(db, "SELECT worktop_fail(%s, %s, 'last') AS s", job, claimed["lease_token"])["s"] == "failed"
    found = row(db, job)
    assert (found["status"], found["attempts"], found["last_error"]) == ("failed", 4, "last")
    assert found["finished_at"] is not None
    assert one(db, "SELECT worktop_fail(%s, %s, 'again') AS s", job, claimed["lease_token"])["s"] == "failed"
    assert row(db, job)["last_error"] == "last"


def test_a_failure_may_name_its_own_time_and_its_error_is_cut(db: Database) -> None:
    job = enqueue(db)
    (claimed,) = claim(db)
    db.execute("SELECT worktop_fail(%s, %s, %s, '10 s')", (job, claimed["lease_token"], "x" * 70_000 + "end"))
    found = row(db, job)
    assert found["run_after"] - found["now"] < timedelta(seconds=11)
    assert len(found["last_error"]) == 65_536
    assert found["last_error"].endswith("xend")


def test_a_zombie_is_rejected_after_somebody_else_claimed(db: Database) -> None:
    job = enqueue(db)
    (zombie,) = claim(db)
    db.execute("UPDATE worktop_jobs SET status = 'waiting', lease_token = NULL, lease_expires = NULL")  # reclaimed
    for query in (
        "SELECT worktop_heartbeat(%s, %s)",
        "SELECT worktop_finish(%s, %s)",
        "SELECT worktop_fail(%s, %s, '')",
    ):
        assert "it is waiting" in str(lost(db, query, job, zombie["lease_token"]).diag.message_detail)
    (second,) = claim(db)
    assert second["lease_token"] > zombie["lease_token"]
    for query in (
        "SELECT worktop_heartbeat(%s, %s)",
        "SELECT worktop_finish(%s, %s)",
        "SELECT worktop_fail(%s, %s, '')",
    ):
        error = lost(db, query, job, zombie["lease_token"])
        assert error.diag.message_primary == f"job {job}: lease token {zombie['lease_token']} is no longer the row's"
        assert f"token {second['lease_token']} of pid 4711 on web1 holds it" in str(error.diag.message_detail)
    assert row(db, job)["status"] == "running"
    db.execute("SELECT worktop_finish(%s, %s)", (job, second["lease_token"]))
    assert row(db, job)["status"] == "done"


def test_an_ended_job_has_no_lease_to_renew_and_no_other_end(db: Database) -> None:
    job = enqueue(db)
    (claimed,) = claim(db)
    token = claimed["lease_token"]
    db.execute("SELECT worktop_finish(%s, %s)", (job, token))
    lost(db, "SELECT worktop_heartbeat(%s, %s)", job, token)
    lost(db, "SELECT worktop_fail(%s, %s, '')", job, token)
    assert "no such job" in str(lost(db, "SELECT worktop_finish(%s, %s)", 999, token).diag.message_detail)


def test_an_idempotency_key_adds_a_job_once_also_at_the_same_moment(db: Database, database: str) -> None:
    first = enqueue(db, idempotency_key="k")
    assert enqueue(db, idempotency_key="k") == first
    assert enqueue(db, "other", idempotency_key="k") != first
    ids: list[int] = []

    def add() -> None:
        with psycopg.connect(database, autocommit=True, row_factory=dict_row) as connection:
            for number in range(20):
                ids.append(enqueue(connection, idempotency_key=f"race {number}"))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 80
    assert len(set(ids)) == 20


def test_enqueue_wakes_listeners_with_the_queue_but_not_for_later(db: Database) -> None:
    db.execute("LISTEN worktop_jobs")
    enqueue(db, "reports")
    enqueue(db, "later", run_after="2999-01-01")
    heard = [notify.payload for notify in db.notifies(timeout=5, stop_after=1)]
    heard += [notify.payload for notify in db.notifies(timeout=0.2)]
    assert heard == ["reports"]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO worktop_jobs (queue, type) VALUES ('', 't')",
        "INSERT INTO worktop_jobs (queue, type, status) VALUES ('q', 't', 'odd')",
        "INSERT INTO worktop_jobs (queue, type, status) VALUES ('q', 't', 'running')",
        "INSERT INTO worktop_jobs (queue, type, status) VALUES ('q', 't', 'done')",
        "INSERT INTO worktop_jobs (queue, type, finished_at) VALUES ('q', 't', now())",
        "INSERT INTO worktop_jobs (queue, type, max_attempts) VALUES ('q', 't', 0)",
    ],
)
def test_a_row_that_cannot_be_is_refused(db: Database, statement: str) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        db.execute(statement.encode())


def test_the_functions_do_not_follow_the_callers_search_path(db: Database) -> None:
    db.execute("CREATE SCHEMA evil")
    db.execute("CREATE TABLE evil.worktop_jobs (LIKE public.worktop_jobs INCLUDING ALL)")
    db.execute("CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT timestamptz ''2000-01-01'''")
    db.execute("SET search_path = evil, pg_catalog")
    job = one(db, "SELECT public.worktop_enqueue('mail', 'send') AS id")["id"]
    db.execute("SET search_path = public")
    assert row(db, job)["queue"] == "mail"
    assert db.execute("SELECT FROM evil.worktop_jobs").fetchall() == []
