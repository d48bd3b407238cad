"""Whatever workers and consoles do in whatever order: no job is lost, none ends twice, none is taken twice.

Workers claim, renew, end, vanish (kill -9) and go on late (SIGSTOP, SIGCONT: their end comes after somebody else has
the job). Their clocks are wrong by an hour, which only shows in the times they pass: the database's clock decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from console.config import Config, Database
from console.fleet.plan import Applied, RowChange, Selection
from console.queue.writer import QueueWriter

EXPIRED = Selection(verb="reclaim", overdue_only=True)
Journal = list[tuple[tuple[str, ...], tuple[RowChange, ...]]]


class ConsolesAndWorkers(RuleBasedStateMachine):
    connection: psycopg.Connection[Any]
    runner: asyncio.Runner
    consoles: tuple[QueueWriter, QueueWriter]
    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.connection.execute("TRUNCATE worktop_jobs, worktop_queues")
        self.jobs = set[int]()
        self.ended = list[int]()  # jobs whose end was accepted, in order
        self.undoable: list[tuple[str, Journal]] = []

    def _accepted(self, query: str, *values: Any) -> bool:
        try:
            self.connection.execute(query.encode(), values)
        except psycopg.Error as error:
            assert error.sqlstate == "WT001"
            return False
        return True

    # --- workers -----------------------------------------------------------------------------------------------------

    @rule(number=st.integers(1, 4), skew=st.sampled_from((-1, 0, 1)), attempts=st.integers(1, 2))
    def enqueue(self, number: int, skew: int, attempts: int) -> None:
        due = datetime.now(UTC) + timedelta(hours=skew)
        for _ in range(number):
            query = "SELECT worktop_enqueue('q', 't', run_after => %s, max_attempts => %s)"
            ((job,),) = self.connection.execute(query, (due, attempts)).fetchall()
            self.jobs.add(job)

    @rule(target=claims, worker=st.integers(1, 3), number=st.integers(1, 3), lease=st.sampled_from((-1, 3600)))
    def claim(self, worker: int, number: int, lease: int) -> Any:
        query = (
            """SELECT id, lease_token FROM worktop_claim('{q}', 'h', 'b', 'u', %s, 1, make_interval(secs => %s), %s)"""
        )
        return multiple(*self.connection.execute(query, (worker, lease, number)).fetchall())

    @rule(held=claims)
    def heartbeat(self, held: tuple[int, int]) -> None:
        self._accepted("SELECT worktop_heartbeat(%s, %s)", *held)

    @rule(held=consumes(claims))
    def vanish(self, held: tuple[int, int]) -> None:
        """kill -9: nothing is ever heard of this claim again."""

    @rule(held=claims)
    def finish(self, held: tuple[int, int]) -> None:
        """In time, or late: the claim stays in the bundle, so an end is repeated too."""
        before = self._status(held[0])
        if self._accepted("SELECT worktop_finish(%s, %s)", *held) and before == "running":
            self.ended.append(held[0])

    @rule(held=claims)
    def fail(self, held: tuple[int, int]) -> None:
        self._accepted("SELECT worktop_fail(%s, %s, 'x', '0 s')", *held)

    def _status(self, job: int) -> str:
        row = self.connection.execute("SELECT status FROM worktop_jobs WHERE id = %s", (job,)).fetchone()
        return str(row[0]) if row else ""

    @rule()
    def an_hour_passes(self) -> None:
        self.connection.execute("UPDATE worktop_jobs SET run_after = least(run_after, now()) WHERE status = 'waiting'")
        self.connection.execute("UPDATE worktop_jobs SET lease_expires = now() WHERE status = 'running'")

    # --- consoles ----------------------------------------------------------------------------------------------------

    @rule(batch=st.integers(1, 5), limit=st.sampled_from((None, 1, 2)))
    def two_consoles_reclaim(self, batch: int, limit: int | None) -> None:
        overdue = "SELECT count(*) FROM worktop_jobs WHERE status = 'running' AND lease_expires < now()"
        expected = self._number(overdue)
        selection = Selection(verb="reclaim", overdue_only=True, quarantine_after=limit)
        done, journals = self._both(selection, batch)
        taken = [change.id for journal in journals for _, changes in journal for change in changes]
        assert len(taken) == len(set(taken)) == sum(one.rows for one in done) == expected
        assert not any(one.stopped or one.blocked for one in done)
        assert self._number(overdue) == 0

    @rule(verb=st.sampled_from(("retry", "run-now")), batch=st.integers(1, 5))
    def two_consoles_act_otherwise(self, verb: Any, batch: int) -> None:
        done, journals = self._both(Selection(verb=verb), batch)
        taken = [change.id for journal in journals for _, changes in journal for change in changes]
        assert len(taken) == len(set(taken)) == sum(one.rows for one in done)

    @rule(place=st.integers(0, 5))
    def undo(self, place: int) -> None:
        if not self.undoable:
            return
        verb, journal = self.undoable.pop(place % len(self.undoable))
        for columns, changes in reversed(journal):
            restored = self.runner.run(self.consoles[0].restore(verb, columns, changes))  # type: ignore[arg-type]
            assert restored.rows + len(restored.refused) == len(changes)

    def _both(self, selection: Selection, batch: int) -> tuple[list[Applied], list[Journal]]:
        journals: list[Journal] = [[], []]

        async def act() -> list[Applied]:
            def keeper(journal: Journal) -> Any:
                def keep(columns: tuple[str, ...], changes: Sequence[RowChange]) -> None:
                    journal.append((columns, tuple(changes)))

                return keep

            return await asyncio.gather(
                *(
                    console.apply(
                        selection, batch=batch, before_commit=keeper(journal), on_batch=lambda rows, seconds: True
                    )
                    for console, journal in zip(self.consoles, journals, strict=True)
                )
            )

        done = self.runner.run(act())
        self.undoable += [(selection.verb, journal) for journal in journals if journal]
        return done, journals

    def _number(self, query: str) -> int:
        row = self.connection.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])

    # --- what always holds -------------------------------------------------------------------------------------------

    @invariant()
    def no_job_is_lost_and_none_ends_twice(self) -> None:
        rows = self.connection.execute(
            "SELECT id, status, attempts, max_attempts, reclaims FROM worktop_jobs"
        ).fetchall()
        assert {row[0] for row in rows} == self.jobs
        assert len(self.ended) == len(set(self.ended))
        assert {row[0] for row in rows if row[1] == "done"} == set(self.ended)
        assert all(attempts <= most + reclaims for _, _, attempts, most, reclaims in rows)


def test_consoles_and_workers(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(database=Database(dsn=database, configured=True))
    with psycopg.connect(database, autocommit=True) as connection, asyncio.Runner() as runner:
        consoles = (QueueWriter(config), QueueWriter(config))
        for name, value in (("connection", connection), ("runner", runner), ("consoles", consoles)):
            monkeypatch.setattr(ConsolesAndWorkers, name, value, raising=False)
        try:
            run_machine(ConsolesAndWorkers, settings=settings(max_examples=20, stateful_step_count=25, deadline=None))
        finally:
            for console in consoles:
                runner.run(console.close())
