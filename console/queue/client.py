"""What the console knows of the job table: one read-only connection that mends itself, and bounded questions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import psycopg

from console.config import Config
from console.errors import QueueError, WorktopError
from console.fleet.diagnosis.model import QueueRoom
from console.fleet.model import Check, Count, Job, JobPage, JobQuery, QueueCounts, QueueFacts, Reading, Role
from console.queue.checks import check_all, failed_check, missing_indexes
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
from console.queue.detect import preset_of, resolve
from console.queue.ladder import ESTIMATE_FROM, Asked, Ladder, best, estimated
from console.queue.pages import Pages
from console.queue.paging import PAGE_TIMEOUT, read_page
from console.queue.reads import Reads
from console.queue.room import paused_queues, room_of, with_holders
from console.queue.rows import COUNT_CAP, counts_of, job_of, with_paused
from console.queue.sessions import backends, server_port, without_process, workers
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
_NOT_THERE = (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn, psycopg.errors.InvalidSchemaName)
_FINISHED = 200  # jobs a diagnosis looks at for the last one of a worker
_SKEW_EVERY = 60.0  # seconds; clocks drift slowly
_TRENDS_EVERY = 15.0
_DONE_EVERY = 20.0  # not the same, so that both are seldom read in one poll


class QueueClient:
    """Reads the job table of the configuration. Calls may overlap; they are answered one after the other.

    `poll` never raises; `page`, `job` raise QueueError. ConfigError at once when the preset or the DSN is wrong.
    """

    def __init__(self, config: Config, roles: tuple[Role, ...] | None = None) -> None:
        self._given = self._database = config.database
        self._preset = preset_of(config.database)  # until the tables have been looked at
        self._roles = config.roles if roles is None else roles
        self._missing: frozenset[str] = frozenset()  # indexes that a large table has not
        self._reads = self._reads_for(())
        self._connection: Connection | None = None
        self._one_at_a_time = asyncio.Lock()
        self._reading: Reading[QueueFacts] = Reading()
        self._session = QueueFacts(preset=self._preset.name)  # what holds as long as the connection does
        self._recognised: tuple[Check, ...] = ()
        self._skew_taken = 0.0
        self._ladder = Ladder()
        self._trends = Trends()
        self._trends_due = 0.0
        self._trends_taken: float | None = None
        self._estimates: dict[Asked, int | None] = {}  # of done jobs
        self._done_due = 0.0
        self._statistics_age: float | None = None
        self._pooled = False
        self._switch_hidden = False  # the account may not read which queues are paused
        self._unprepared = False
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
            if isinstance(error, _NOT_THERE):
                await self.close()  # look again which queue there is
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

    async def room(self, role: Role) -> QueueRoom:
        """What a diagnosis wants to know beside the facts: connections, paused queues, and which jobs of the role were
        finished last. Never raises for what the database does: the problem says it."""
        try:
            found = await self._ask(lambda connection: room_of(connection, self._preset, self._reads))
        except (psycopg.Error, WorktopError) as error:
            return QueueRoom(problem=problem_of(error, self._database).line())
        if not role.queues:
            return found
        query = JobQuery(
            state="done", queues=role.queues, types=role.types, sort="finished", descending=True, limit=_FINISHED
        )
        try:
            jobs = (await self.page(query)).jobs
            jobs = await self._ask(lambda connection: with_holders(connection, self._preset, self._reads, jobs))
        except (psycopg.Error, WorktopError):
            return found  # an account may see the counts only
        return msgspec.structs.replace(found, finished=jobs)

    async def checks(self) -> tuple[Check, ...]:
        """What `worktop doctor` says of the database; never raises for what the database does."""
        try:
            checks = await self._ask(
                lambda connection: check_all(connection, self._database, self._preset, self._pooled)
            )
            return (checks[0], *self._recognised, *checks[1:])
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
            except (psycopg.errors.InvalidSqlStatementName, psycopg.errors.DuplicatePreparedStatement):
                self._unprepared = True  # a pool after all, which does not show
                await connection.close()
                raise
            finally:
                if connection.closed:
                    self._connection = None

    async def _connected(self) -> Connection:
        try:
            connection, self._pooled = await connect(self._database, read_only=True)
            try:
                resolved = await answered(connection, resolve(connection, self._given))
            except BaseException:
                await connection.close()
                raise
        except (psycopg.Error, WorktopError):
            self._tries = min(self._tries + 1, len(_BACK_OFF) - 1)
            self._not_before = time.monotonic() + _BACK_OFF[self._tries]
            raise
        if self._unprepared:
            connection.prepare_threshold = None
        self._tries = 0
        self._switch_hidden = False
        self._connection = connection
        missing = await answered(connection, missing_indexes(connection, resolved.preset, resolved.database.schema))
        if (resolved.preset, resolved.database, missing) != (self._preset, self._database, self._missing):
            self._preset, self._database, self._missing = resolved.preset, resolved.database, missing
            self._reads = self._reads_for(())
        info = connection.info
        rows = await answered(connection, fetched(connection, _WHO))
        self._session = QueueFacts(
            server=f"PostgreSQL {info.parameter_status('server_version') or ''}".strip(),
            user=rows[0][0],
            database=rows[0][1],
            address=info.host if info.host.startswith("/") else f"{info.host}:{info.port}",
            preset=self._preset.name,
            recognised=resolved.text,
        )
        self._recognised = resolved.checks()
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
        await self._estimate_done(connection, asked)
        counts, now = await self._counts(connection, asked)
        paused = await self._paused(connection)
        counts = [with_paused(one, paused) for one in counts] if paused else counts
        found = await fetched(connection, *self._reads.running(queues), prepare=True)
        running = tuple(job_of(row, self._preset) for row in found)
        unnamed = without_process(running)
        await self._read_trends(connection, asked, counts, now)
        return msgspec.structs.replace(
            self._session,
            now=now,
            counts=tuple(counts),
            running=running,
            backends=await backends(connection, self._preset) if unnamed else None,
            server_port=await server_port(connection) if unnamed else 0,
            workers=await workers(connection, self._reads) if unnamed else None,
            heartbeat_limit=self._preset.workers.limit if self._preset.workers else None,
            trends=self._trends.trends(asked, now, *self._reads.ends),
            trends_taken=self._trends_taken,
            statistics_age=self._statistics_age,
        )

    async def _counts(self, connection: Connection, asked: list[Asked]) -> tuple[list[QueueCounts], float]:
        """The numbers, and the database's clock."""
        estimates = {one: number for one, number in self._estimates.items() if (number or 0) >= ESTIMATE_FROM}
        wanted = self._ladder.wanted(asked, estimates)
        found: list[Mapping[str, Any]] = []
        now = 0.0
        while wanted:
            question = self._reads.counts(self._ladder.cap)
            values = {"asked": _asked_json(asked, wanted)}
            try:
                rows = await fetched(connection, question, values, prepare=self._ladder.cap == COUNT_CAP)
            except psycopg.errors.QueryCanceled:
                self._ladder.gave_up()
                raise
            rows.sort(key=lambda row: int(row[0]))
            now, seconds = rows[0][1], max(row[-1] for row in rows)
            found = [self._ladder.read(asked[place], values, now) for place, _, *values, _ in rows]
            self._ladder.took(seconds)
            wanted = self._ladder.rest(asked, seconds)
        return [
            counts_of(numbers, *one, best(None if one in estimates else numbers["done"], self._estimates.get(one)))
            for one, numbers in zip(asked, found, strict=True)
        ], now

    async def _paused(self, connection: Connection) -> tuple[str, ...]:
        """The queues that are paused; none where that may not be read, which is not tried again on this connection."""
        if self._switch_hidden:
            return ()
        found = await paused_queues(connection, self._preset, self._reads)
        self._switch_hidden = found is None
        return found or ()

    async def _estimate_done(self, connection: Connection, asked: list[Asked]) -> None:
        """What is done is the bulk of a table: it is counted only where the server believes there is little of it."""
        if time.monotonic() < self._done_due and set(asked) <= set(self._estimates):
            return
        self._done_due = time.monotonic() + _DONE_EVERY
        estimates, tables = dict[Asked, int](), set[str]()
        if statement := self._reads.estimates(asked):
            plan = (await fetched(connection, *statement))[0][0][0]["Plan"]
            estimates, tables = estimated(plan, asked)
        (known, age), *_ = await fetched(
            connection, _STATISTICS, {"schema": self._database.schema, "tables": sorted(tables)}
        )
        self._estimates = {one: estimates.get(one) if known else None for one in asked}
        self._statistics_age = age

    async def _read_trends(
        self, connection: Connection, asked: list[Asked], counts: list[QueueCounts], now: float
    ) -> None:
        self._trends.polled(counts, now)
        question = self._reads.ended()
        if time.monotonic() >= self._trends_due and question is not None:
            for minutes in self._trends.minutes(asked):
                back, start = self._trends.longest(minutes), time.monotonic()
                rows = await fetched(
                    connection, question, {"asked": _asked_json(asked), "minutes": back, "cap": ROW_CAP}
                )
                self._trends.ended(asked, back, rows[0][5] if rows else now, rows, time.monotonic() - start)
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
        return Reads(self._preset, self._database.schema, by_type=by_type, queues=queues, missing=self._missing)


def _asked_json(asked: Sequence[Asked], wanted: Sequence[Sequence[str]] = ()) -> str:
    """The parameter `asked` of the statements in reads.py."""
    every = [
        {"place": place, "queue": queue, "types": list(types) or None, "wanted": list(wanted[place]) if wanted else []}
        for place, (queue, types) in enumerate(asked)
    ]
    return msgspec.json.encode(every).decode()
