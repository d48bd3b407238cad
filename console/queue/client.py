"""What the console knows of the job table: one read-only connection that mends itself, and bounded questions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg import sql

from console.config import Config
from console.errors import QueueError, WorktopError
from console.fleet.model import Check, Count, Job, JobPage, JobQuery, QueueCounts, QueueFacts, Reading, Role
from console.queue import preset as presets
from console.queue.checks import check_all, failed_check
from console.queue.connection import (
    ANSWER_TIMEOUT,
    STATEMENT_TIMEOUT,
    Connection,
    answered,
    clock_skew,
    connect,
    fetched,
    in_transaction,
    problem_of,
    queue_error,
)
from console.queue.ladder import ESTIMATE_FROM, Asked, Ladder, best, estimated
from console.queue.pages import Pages
from console.queue.paging import PAGE_TIMEOUT, read_page
from console.queue.reads import Reads
from console.queue.rows import counts_of, job_of
from console.queue.trends import ROW_CAP, Trends

T = TypeVar("T")
_BACK_OFF = (0.0, 1.0, 2.0, 4.0, 8.0, 15.0)  # seconds between two tries to connect
_WHO = b"SELECT current_user::text, current_database()::text"
# whether the tables have been analysed, and when the one that was analysed last
_STATISTICS = b"""SELECT coalesce(bool_and(c.reltuples > 0), false),
                         extract(epoch FROM now() - min(greatest(s.last_analyze, s.last_autoanalyze)))::float8
                  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                  LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
                  WHERE n.nspname = %(schema)s AND c.relname = ANY (%(tables)s::text[])"""
_SKEW_EVERY = 60.0  # seconds; clocks drift slowly
_TRENDS_EVERY = 15.0
_DONE_EVERY = 20.0  # not the same, so that both are seldom read in one poll


class QueueClient:
    """Reads the job table of the configuration. Calls may overlap; they are answered one after the other.

    `poll` never raises; `page`, `job` raise QueueError. ConfigError at once when the preset or the DSN is wrong.
    """

    def __init__(self, config: Config, roles: tuple[Role, ...] | None = None) -> None:
        self._database = config.database
        self._preset = presets.load(config.database.preset)
        self._roles = config.roles if roles is None else roles
        self._reads = self._reads_for(())
        self._connection: Connection | None = None
        self._one_at_a_time = asyncio.Lock()
        self._reading: Reading[QueueFacts] = Reading()
        self._session = QueueFacts(preset=self._preset.name)  # what holds as long as the connection does
        self._skew_taken = 0.0
        self._ladder = Ladder(slow=any(role.types for role in self._roles))
        self._trends = Trends()
        self._trends_due = 0.0
        self._trends_taken: float | None = None
        self._done: dict[Asked, Count | None] = {}
        self._done_due = 0.0
        self._statistics_age: float | None = None
        self._pooled = False
        self._tries = 0
        self._not_before = 0.0

    async def poll(self) -> Reading[QueueFacts]:
        """The facts of now; when that fails, the last good ones with the problem. Within about 15 s, always."""
        start = time.monotonic()
        if self._connection is None and start < self._not_before:
            return self._reading
        try:
            facts, took = await self._ask(self._timed_facts)
        except Exception as error:  # noqa: BLE001 - a source that fails is shown, it never ends the console
            self._reading = msgspec.structs.replace(
                self._reading,
                problem=problem_of(error, self._database),
                failing_since=self._reading.failing_since or time.time(),
            )
        else:
            self._reading = Reading(value=facts, taken=time.time(), took=took)
        return self._reading

    async def page(self, query: JobQuery) -> JobPage:
        """A page of jobs, within a second for each statement, whatever the size of the table; QueueError.

        Without queues, those of the roles. A job whose id is `contains` comes first; types and the first 4000
        characters of errors are searched as they are, without regard to case. A page that is filtered may have fewer
        jobs than `limit`, even none, and a `next`: the search goes on there. `total` comes with the first page only.
        Payloads are left out, errors cut; `job` has them. What is sorted by is described in pages.py.
        """
        what = f"list {query.state} jobs"

        async def read(connection: Connection) -> JobPage:
            there = await self._queues(connection) if self._preset.per_queue or not query.queues else []
            wanted = list(dict.fromkeys(query.queues)) or there
            if not wanted:
                return JobPage(total=Count(0))
            pages = Pages(self._preset, self._database.schema, there)
            return await read_page(connection, self._reads, pages, query, wanted)

        try:
            return await self._ask(read, statement_timeout=PAGE_TIMEOUT)
        except psycopg.errors.QueryCanceled:
            raise QueueError(what, "the query took too long", "name a queue, drop the filter or sort by id") from None
        except (psycopg.DataError, UnicodeError):
            said = (
                "the place to go on after is not of this list" if query.after else "the filter holds what no text has"
            )
            raise QueueError(what, said, "use the `next` of a page, and text of the database's encoding") from None
        except psycopg.Error as error:
            raise queue_error(error, self._database, what) from None

    async def job(self, id: str) -> Job | None:
        """The job with its payload (the first 64 K characters; payload_size is the whole in bytes), or None."""

        async def read(connection: Connection) -> Job | None:
            if self._preset.per_queue:
                await self._queues(connection)
            rows = await fetched(connection, self._reads.job(), {"id": id})
            if not rows:
                return None
            *columns, payload, size = rows[0]
            found = job_of(columns, self._preset)
            return msgspec.structs.replace(found, payload=payload or "", payload_size=size or 0)

        try:
            return await self._ask(read)
        except psycopg.DataError:  # "abc" where ids are numbers
            return None
        except psycopg.Error as error:
            raise queue_error(error, self._database, f"read job {id}") from None

    async def checks(self) -> tuple[Check, ...]:
        """What `worktop doctor` says of the database; never raises for what the database does."""
        try:
            return await self._ask(lambda connection: check_all(connection, self._database, self._preset, self._pooled))
        except (psycopg.Error, WorktopError) as error:
            return (failed_check("database", problem_of(error, self._database)),)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    # --- the connection --------------------------------------------------------------------------------------------

    async def _ask(
        self, question: Callable[[Connection], Coroutine[Any, Any, T]], statement_timeout: float | None = None
    ) -> T:
        """The answer, on the connection there is or a new one; a broken one is dropped."""
        async with self._one_at_a_time:
            connection = self._connection
            if connection is not None and connection.closed:
                connection = self._connection = None
            if connection is None:
                connection = await self._connected()

            def asked() -> Coroutine[Any, Any, T]:
                return question(connection)

            try:
                timeout = statement_timeout or STATEMENT_TIMEOUT
                own = self._pooled or statement_timeout is not None
                call = in_transaction(connection, asked, timeout) if own else asked()
                return await answered(connection, call, ANSWER_TIMEOUT)
            finally:
                if connection.closed:
                    self._connection = None

    async def _connected(self) -> Connection:
        try:
            connection, self._pooled = await connect(self._database, read_only=True)
        except psycopg.Error:
            self._tries = min(self._tries + 1, len(_BACK_OFF) - 1)
            self._not_before = time.monotonic() + _BACK_OFF[self._tries]
            raise
        self._tries = 0
        self._connection = connection
        info = connection.info
        rows = await answered(connection, fetched(connection, _WHO))
        self._session = QueueFacts(
            server=f"PostgreSQL {info.parameter_status('server_version') or ''}".strip(),
            user=rows[0][0],
            database=rows[0][1],
            address=info.host if info.host.startswith("/") else f"{info.host}:{info.port}",
            preset=self._preset.name,
        )
        self._skew_taken = 0.0
        return connection

    # --- the questions ---------------------------------------------------------------------------------------------

    async def _timed_facts(self, connection: Connection) -> tuple[QueueFacts, float]:
        """The facts and how long they took: without the wait for another call, and without connecting."""
        start = time.monotonic()
        return await self._facts(connection), time.monotonic() - start

    async def _facts(self, connection: Connection) -> QueueFacts:
        if time.monotonic() - self._skew_taken > _SKEW_EVERY or not self._skew_taken:
            self._session = msgspec.structs.replace(self._session, skew=await clock_skew(connection))
            self._skew_taken = time.monotonic()
        queues = await self._queues(connection)
        if not queues:
            return msgspec.structs.replace(self._session, now=time.time() + (self._session.skew or 0.0))
        asked: list[Asked] = sorted({(queue, role.types) for role in self._roles for queue in role.queues})
        asked = asked or [(queue, ()) for queue in queues]
        wanted = self._ladder.wanted(asked)
        try:
            question = self._reads.counts(self._ladder.cap)
            counted = await fetched(connection, question, {"asked": _asked_json(asked, wanted)})
        except psycopg.errors.QueryCanceled:
            self._ladder.gave_up()
            raise
        await self._estimate_done(connection, asked)
        now = counted[0][1]
        counts = []
        self._ladder.took(max(row[-1] for row in counted))
        for place, _, *values, _ in sorted(counted, key=lambda row: int(row[0])):
            queue, types = one = asked[place]
            counts.append(counts_of(self._ladder.read(one, values), queue, types, self._done.get(one)))
        running = await self._jobs(connection, self._reads.running(), {"queues": queues})
        await self._read_trends(connection, asked, counts, now)
        return msgspec.structs.replace(
            self._session,
            now=now,
            counts=tuple(counts),
            running=running,
            trends=self._trends.trends(asked, now, *self._reads.ends),
            trends_taken=self._trends_taken,
            statistics_age=self._statistics_age,
        )

    async def _estimate_done(self, connection: Connection, asked: list[Asked]) -> None:
        """What is done is the bulk of a table: it is counted only where the server believes there is little of it."""
        if time.monotonic() < self._done_due and set(asked) <= set(self._done):
            return
        self._done_due = time.monotonic() + _DONE_EVERY
        estimates, tables = dict[Asked, int](), set[str]()
        if statement := self._reads.estimates(asked):
            plan = (await fetched(connection, *statement))[0][0][0]["Plan"]
            estimates, tables = estimated(plan, asked)
        (known, age), *_ = await fetched(
            connection, _STATISTICS, {"schema": self._database.schema, "tables": sorted(tables)}
        )
        few = [one for one in asked if not known or estimates.get(one, 0) < ESTIMATE_FROM]
        counted: dict[Asked, list[int]] = {}
        if few and (question := self._reads.done()):
            rows = await fetched(connection, question, {"asked": _asked_json(few)})
            counted = {few[place]: number for place, number in rows}
        self._done = {one: best(counted.get(one), estimates.get(one) if known else None) for one in asked}
        self._statistics_age = age

    async def _read_trends(
        self, connection: Connection, asked: list[Asked], counts: list[QueueCounts], now: float
    ) -> None:
        self._trends.polled(counts, now)
        question = self._reads.ended()
        if time.monotonic() >= self._trends_due and question is not None:
            for minutes in self._trends.minutes(asked):
                back = self._trends.longest(minutes)
                rows = await fetched(
                    connection, question, {"asked": _asked_json(asked), "minutes": back, "cap": ROW_CAP}
                )
                self._trends.ended(asked, back, rows[0][5] if rows else now, rows)
            self._trends_due = time.monotonic() + _TRENDS_EVERY
            self._trends_taken = now

    async def _queues(self, connection: Connection) -> list[str]:
        """The queues of the roles; without any, all there are."""
        configured = sorted({queue for role in self._roles for queue in role.queues})
        if configured and not self._preset.per_queue:
            return configured
        there = [row[0] for row in await fetched(connection, self._reads.queues(), {})]
        if self._preset.per_queue:
            self._reads = self._reads_for(there)
        return [queue for queue in configured if queue in there] if configured else there

    def _reads_for(self, queues: Sequence[str]) -> Reads:
        by_type = any(role.types for role in self._roles)
        return Reads(self._preset, self._database.schema, by_type=by_type, queues=queues)

    async def _jobs(self, connection: Connection, query: sql.Composed, values: dict[str, Any]) -> tuple[Job, ...]:
        return tuple(job_of(row, self._preset) for row in await fetched(connection, query, values))


def _asked_json(asked: Sequence[Asked], wanted: Sequence[Sequence[str]] = ()) -> str:
    """The parameter `asked` of the statements in reads.py."""
    every = [
        {"place": place, "queue": queue, "types": list(types) or None, "wanted": list(wanted[place]) if wanted else []}
        for place, (queue, types) in enumerate(asked)
    ]
    return msgspec.json.encode(every).decode()
