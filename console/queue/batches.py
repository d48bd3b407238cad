"""Acting on a selection batch by batch, each in a transaction of its own.

A batch that is slow makes the next ones smaller. A row that a constraint forbids to change is told and left out; the
others of its batch are changed one by one, each in a savepoint. When the connection is lost the server is waited for,
and whether the batch was committed is asked of it: the rest goes on, or the end says how far it came.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from console.errors import Problem
from console.fleet.plan import Applied, Blocked, RowChange, RowRef
from console.queue.connection import Connection, fetched, passes, problem_of
from console.queue.selecting import Change
from console.queue.session import Session, savepoint
from console.queue.survey import filled, moment_of
from console.queue.writes import Writes, notifications

BeforeCommit = Callable[[tuple[str, ...], Sequence[RowChange]], None]
OnBatch = Callable[[int, float], bool]

LEAST = 400  # rows of a batch
ONE_BY_ONE = 200
SLOW = 0.04  # seconds; a batch holds its rows' locks for so long, and a heartbeat of one of them waits
QUICK = 0.025
MOST_BLOCKED = 1_000
_TRIES = 3  # of a batch that met a deadlock or a lock on the table
_PASSING = (
    psycopg.errors.LockNotAvailable,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)
NOTIFY = sql.SQL("""SELECT pg_notify(channel, payload)
FROM unnest(%(channels)s::text[], %(payloads)s::text[]) AS one(channel, payload)""")


class _ComesBack(Exception):
    """A row that was changed a moment ago matches again."""


class _Stop(Exception):
    def __init__(self, problem: Problem) -> None:
        self.problem = problem


class Batches:
    """One apply. `run` for each change in turn, then `result`."""

    def __init__(
        self, session: Session, writes: Writes, size: int, before_commit: BeforeCommit, on_batch: OnBatch
    ) -> None:
        self._session = session
        self._writes = writes
        self._most = self._size = max(1, size)
        self._before_commit = before_commit
        self._on_batch = on_batch
        self._result = Applied()
        self._blocked: list[Blocked] = []
        self._began = time.monotonic()
        self._moment: Any = None
        self._statement: tuple[Change | None, bool, bytes] = (None, False, b"")
        self._transaction = ""
        self._in_doubt = list[str]()  # ids of the transaction whose COMMIT is on its way

    def result(self) -> Applied:
        return msgspec.structs.replace(self._result, blocked=tuple(self._blocked), took=time.monotonic() - self._began)

    def stop(self, problem: Problem) -> None:
        self._add(stopped=True, problem=problem)

    def _add(self, **changed: Any) -> None:
        self._result = msgspec.structs.replace(self._result, **changed)

    async def run(self, change: Change, rows: Sequence[RowRef] = ()) -> None:
        """Act on every row of the change; with `rows`, on those. Never raises for what the database does."""
        if self._result.stopped:
            return
        try:
            if self._moment is None:
                self._moment = await self._session.ask(moment_of)
            if rows:
                await self._named(change, rows)
            else:
                await self._all(change)
        except _Stop as stop:
            self.stop(stop.problem)
        except psycopg.Error as error:
            self.stop(problem_of(error, self._session.database))

    async def _all(self, change: Change) -> None:
        seen = set[str]()
        while not self._result.stopped:
            try:
                done = await self._batch(change, {"batch": self._size}, seen)
            except _ComesBack:
                return
            if done is not None and not done:
                return

    async def _named(self, change: Change, rows: Sequence[RowRef]) -> None:
        left = list(rows)
        for _ in range(2):  # a row that somebody held for a moment is asked for once more
            waiting, left = left, []
            while waiting and not self._result.stopped:
                part, waiting = waiting[: self._size], waiting[self._size :]
                values = {
                    "batch": len(part),
                    "ids": [row.id for row in part],
                    "tokens": [row.token for row in part],
                }
                blocked = len(self._blocked)
                done = await self._batch(change, values, set())
                settled = {*(done or ()), *(row.id for row in self._blocked[blocked:])}
                left += [row for row in part if row.id not in settled]
            if not left or self._result.stopped:
                break

    async def _batch(self, change: Change, more: dict[str, Any], seen: set[str]) -> list[str] | None:
        """Act on one batch; the ids that were changed. None: none of it could be, go on with others."""
        values = dict(change.values) | more | {"moment": self._moment, "without": [row.id for row in self._blocked]}
        together, tries, blocked = True, 0, len(self._blocked)
        while True:
            act = self._together if together else self._one_by_one
            began = time.monotonic()
            try:
                done = await self._session.run(lambda connection: act(connection, change, values, seen))  # noqa: B023  awaited here
            except (psycopg.IntegrityError, psycopg.errors.RaiseException) as error:
                if not together:  # a constraint that is checked at the COMMIT in spite of all
                    raise _Stop(problem_of(error, self._session.database)) from None
                together, values["batch"] = False, min(values["batch"], ONE_BY_ONE)
                continue
            except psycopg.errors.QueryCanceled as error:
                if values["batch"] <= LEAST:
                    raise _Stop(problem_of(error, self._session.database)) from None
                self._size = values["batch"] = max(LEAST, values["batch"] // 2)
                continue
            except _PASSING as error:
                tries += 1
                if tries >= _TRIES:
                    raise _Stop(problem_of(error, self._session.database)) from None
                continue
            except OSError as error:  # the journal could not be written: nothing was committed
                raise _Stop(Problem("journal of the rows as they were", error.strerror or str(error))) from None
            except psycopg.Error as error:
                committed = await self._after(error)
                if committed is None:
                    continue
                done = committed
            self._done(change, done, time.monotonic() - began, seen)
            return done if done or len(self._blocked) == blocked else None

    def _done(self, change: Change, done: list[str], took: float, seen: set[str]) -> None:
        if not change.timed:
            seen.update(done)
        if not done:
            return
        result = self._result
        self._add(
            rows=result.rows + len(done),
            batches=result.batches + 1,
            reclaimed=result.reclaimed + len(done) * (change.verb == "reclaim"),
            quarantined=result.quarantined + len(done) * (change.verb == "quarantine"),
        )
        if took > SLOW:
            self._size = max(min(LEAST, self._most), int(self._size * max(0.5, SLOW / took)))
        elif took < QUICK:
            self._size = min(self._most, self._size * 3 // 2 + 1)
        if not self._on_batch(len(done), took):
            self._add(stopped=True)

    async def _after(self, error: psycopg.Error) -> list[str] | None:
        """After the connection broke: the rows of the batch when it was committed; None: it was not. Else _Stop."""
        problem = problem_of(error, self._session.database)
        if not passes(error) or (error.sqlstate and not error.sqlstate.startswith(("57", "08", "25P"))):
            raise _Stop(problem)
        waited = self._in_doubt
        if not await self._session.back():
            self._add(unsure=len(waited))
            raise _Stop(problem)
        if not waited:
            return None
        committed = await self._session.committed(self._transaction)
        if committed is None:
            self._add(unsure=len(waited))
            raise _Stop(problem)
        return waited if committed else None

    # --- one transaction -------------------------------------------------------------------------------------------

    async def _together(
        self, connection: Connection, change: Change, values: dict[str, Any], seen: set[str]
    ) -> list[str]:
        self._in_doubt = []
        async with self._session.transaction(connection, identified=True) as transaction:
            rows = await fetched(connection, self._act(change, bool(values["without"])), values)
            self._transaction = await one_text(transaction)
            done = await self._kept(connection, change, rows, seen)
        return done

    def _act(self, change: Change, without: bool) -> bytes:
        """The statement, made once for many batches."""
        if self._statement[0] is not change or self._statement[1] != without:
            self._statement = (change, without, self._writes.act(change, without=without).as_bytes(None))
        return self._statement[2]

    async def _one_by_one(
        self, connection: Connection, change: Change, values: dict[str, Any], seen: set[str]
    ) -> list[str]:
        self._in_doubt = []
        rows, blocked = list[Any](), list[Blocked]()
        async with self._session.transaction(connection, identified=True) as transaction:
            await connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
            self._transaction = await one_text(transaction)
            query = self._writes.one(change)
            for (id,) in await fetched(connection, self._writes.locked(change), values):
                try:
                    rows += await savepoint(connection, query, values | {"only": id, "batch": 1})
                except (psycopg.IntegrityError, psycopg.errors.RaiseException) as error:
                    blocked.append(await explained(connection, self._writes, id, error))
            done = await self._kept(connection, change, rows, seen)
        self._blocked += blocked
        if len(self._blocked) >= MOST_BLOCKED:
            why = f"more than {MOST_BLOCKED} rows cannot be changed: {self._blocked[0].why}"
            raise _Stop(Problem(change.verb, why, "clear what is in their way first"))
        return done

    async def _kept(self, connection: Connection, change: Change, rows: list[Any], seen: set[str]) -> list[str]:
        """Journal the rows, wake workers: what comes between the change and its COMMIT."""
        if not rows:
            return []
        ids = [row[0] for row in rows]
        if not seen.isdisjoint(ids):
            raise _ComesBack
        self._before_commit(("row",) if change.action.delete else change.columns, self._images(change, rows))
        notices = {row[1] for row in rows}
        if pairs := notifications(notices - {None}):
            values = {"channels": [channel for channel, _ in pairs], "payloads": [payload for _, payload in pairs]}
            await connection.execute(NOTIFY, values)
        self._in_doubt = ids
        return ids

    def _images(self, change: Change, rows: Sequence[Any]) -> list[RowChange]:
        if change.action.delete:
            return [RowChange(id=row[0], before=row[2:]) for row in rows]
        half, key = 2 + len(change.columns), 2 + len(self._writes.actions.key)
        return [RowChange(id=row[0], before=row[2:half], after=row[2:key] + row[half:]) for row in rows]


async def one_text(cursor: psycopg.AsyncCursor[TupleRow]) -> str:
    row = await cursor.fetchone()
    return str(row[0]) if row else ""


async def explained(connection: Connection, writes: Writes, id: str, error: psycopg.Error) -> Blocked:
    """Why the row could not be changed, and by which row."""
    name = error.diag.constraint_name or ""
    for trap in writes.actions.traps:
        if not name or not re.fullmatch(trap.constraint, name):
            continue
        found: dict[str, Any] = {"id": id}
        if trap.query:
            async with connection.transaction():
                result = await connection.execute(writes.verb_text(trap.query), {"id": id})
                row = await result.fetchone()
            if row is None:
                break
            found |= dict(zip([column.name for column in result.description or ()], row, strict=True))
        return Blocked(
            id=id,
            why=filled(trap.why, found),
            by=str(found.get("by") or ""),
            choices=tuple(filled(choice, found) for choice in trap.choices),
        )
    said = (error.diag.message_primary or type(error).__name__).strip()
    # the detail of a check is the whole row, payload and all
    told = isinstance(error, psycopg.errors.UniqueViolation | psycopg.errors.ExclusionViolation)
    detail = f" ({error.diag.message_detail.strip()})" if told and error.diag.message_detail else ""
    return Blocked(id=id, why=f"{said}{detail}")
