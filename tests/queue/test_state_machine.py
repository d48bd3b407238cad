"""Whatever is done in whatever order, the rows are what the life drawn in schema.sql allows."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from psycopg.rows import dict_row

MAX_ATTEMPTS = 2


class Model:
    """What a row should be."""

    def __init__(self, queue: str, priority: int) -> None:
        self.queue = queue
        self.priority = priority
        self.status = "waiting"
        self.due = True
        self.attempts = 0
        self.token: int | None = None


class JobTableMachine(RuleBasedStateMachine):
    connection: psycopg.Connection[dict[str, Any]]
    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.connection.execute("TRUNCATE worktop_jobs, worktop_queues")
        self.rows: dict[int, Model] = {}
        self.paused: set[str] = set()
        self.last_token = 0

    def _call(self, query: str, *values: Any) -> Any:
        """The single value, or "WT001"."""
        try:
            row = self.connection.execute(query.encode(), values).fetchone()
        except psycopg.Error as error:
            assert error.sqlstate == "WT001"
            return "WT001"
        assert row is not None
        return next(iter(row.values()))

    @rule(queue=st.sampled_from("ab"), priority=st.integers(0, 2))
    def enqueue(self, queue: str, priority: int) -> None:
        job = self._call(
            "SELECT worktop_enqueue(%s, 't', priority => %s, max_attempts => %s)", queue, priority, MAX_ATTEMPTS
        )
        self.rows[job] = Model(queue, priority)

    @rule(queue=st.sampled_from("ab"))
    def toggle_pause(self, queue: str) -> None:
        self.paused ^= {queue}
        self._call(
            """INSERT INTO worktop_queues (queue, paused) VALUES (%s, %s)
               ON CONFLICT (queue) DO UPDATE SET paused = excluded.paused RETURNING 1""",
            queue,
            queue in self.paused,
        )

    @rule(target=claims, queues=st.lists(st.sampled_from("ab"), unique=True), number=st.integers(1, 3))
    def claim(self, queues: list[str], number: int) -> Any:
        claimable = [
            (-row.priority, job)
            for job, row in self.rows.items()
            if row.status == "waiting" and row.due and row.queue in queues and row.queue not in self.paused
        ]
        found = self.connection.execute(
            "SELECT id, lease_token FROM worktop_claim(%s::text[], 'h', 'b', 'u', 1, 1, '60 s', %s)", (queues, number)
        ).fetchall()
        assert len(found) == min(number, len(claimable))
        worst_taken = max((-self.rows[row["id"]].priority for row in found), default=-9)
        best_left = min((rank for rank, job in claimable if job not in {row["id"] for row in found}), default=9)
        assert worst_taken <= best_left
        for row in found:
            model = self.rows[row["id"]]
            assert model.status == "waiting"
            assert row["lease_token"] > self.last_token or len(found) > 1
            model.status, model.token, model.attempts = "running", row["lease_token"], model.attempts + 1
        self.last_token = max([self.last_token, *(row["lease_token"] for row in found)])
        return multiple(*((row["id"], row["lease_token"]) for row in found))

    def _holds(self, held: tuple[int, int], *statuses: str) -> bool:
        row = self.rows[held[0]]
        return row.token == held[1] and row.status in statuses

    @rule(held=claims)
    def heartbeat(self, held: tuple[int, int]) -> None:
        answer = self._call("SELECT worktop_heartbeat(%s, %s)", *held)
        assert (answer != "WT001") == self._holds(held, "running")

    @rule(held=claims)
    def finish(self, held: tuple[int, int]) -> None:
        answer = self._call("SELECT worktop_finish(%s, %s)", *held)
        assert (answer != "WT001") == self._holds(held, "running", "done")
        if self._holds(held, "running"):
            self.rows[held[0]].status = "done"

    @rule(held=claims)
    def fail(self, held: tuple[int, int]) -> None:
        answer = self._call("SELECT worktop_fail(%s, %s, 'x')", *held)
        assert (answer != "WT001") == self._holds(held, "running", "waiting", "failed")
        row = self.rows[held[0]]
        if self._holds(held, "running"):
            row.status, row.due = ("waiting", False) if row.attempts < MAX_ATTEMPTS else ("failed", row.due)
            assert answer == row.status

    @rule(held=consumes(claims))
    def reclaim(self, held: tuple[int, int]) -> None:
        """A person puts a running job back: its token is gone."""
        self.connection.execute(
            """UPDATE worktop_jobs
               SET status = 'waiting', lease_token = NULL, lease_expires = NULL, reclaims = reclaims + 1
               WHERE id = %s AND lease_token = %s AND status = 'running'""",
            held,
        )
        if self._holds(held, "running"):
            self.rows[held[0]].status, self.rows[held[0]].token = "waiting", None

    @rule()
    def time_passes(self) -> None:
        self.connection.execute("UPDATE worktop_jobs SET run_after = now() WHERE status = 'waiting'")
        for row in self.rows.values():
            row.due = row.due or row.status == "waiting"

    @invariant()
    def rows_are_as_the_model_says(self) -> None:
        found = self.connection.execute("SELECT id, status, attempts, lease_token FROM worktop_jobs").fetchall()
        assert {row["id"]: (row["status"], row["attempts"], row["lease_token"]) for row in found} == {
            job: (row.status, row.attempts, row.token) for job, row in self.rows.items()
        }


def test_the_life_of_rows(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(database, autocommit=True, row_factory=dict_row) as connection:
        monkeypatch.setattr(JobTableMachine, "connection", connection, raising=False)
        run_state_machine_as_test(
            JobTableMachine, settings=settings(max_examples=40, stateful_step_count=30, deadline=None)
        )
