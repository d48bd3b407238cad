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
from console.fleet.model import Check, Job, QueueFacts, Reading, Role
from console.queue import preset as presets
from console.queue.checks import check_all, failed_check
from console.queue.connection import (
    ANSWER_TIMEOUT,
    Connection,
    answered,
    clock_skew,
    connect,
    fetched,
    in_transaction,
    problem_of,
    queue_error,
)
from console.queue.reads import ListedState, Reads
from console.queue.rows import counts_of, job_of

T = TypeVar("T")
_BACK_OFF = (0.0, 1.0, 2.0, 4.0, 8.0, 15.0)  # seconds between two tries to connect
_WHO = b"SELECT current_user::text, current_database()::text"
_SKEW_EVERY = 60.0  # seconds; clocks drift slowly


class QueueClient:
    """Reads the job table of the configuration. Calls may overlap; they are answered one after the other.

    `poll` never raises; `jobs`, `job` raise QueueError. ConfigError at once when the preset or the DSN is wrong.
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
        self._pooled = False
        self._tries = 0
        self._not_before = 0.0

    async def poll(self) -> Reading[QueueFacts]:
        """The facts of now; when that fails, the last good ones with the problem. Within about 15 s, always."""
        start = time.monotonic()
        if self._connection is None and start < self._not_before:
            return self._reading
        try:
            facts = await self._ask(self._facts)
        except Exception as error:  # noqa: BLE001 - a source that fails is shown, it never ends the console
            self._reading = msgspec.structs.replace(
                self._reading,
                problem=problem_of(error, self._database),
                failing_since=self._reading.failing_since or time.time(),
            )
        else:
            self._reading = Reading(value=facts, taken=time.time(), took=time.monotonic() - start)
        return self._reading

    async def jobs(
        self, state: ListedState, queues: Sequence[str] = (), limit: int = 100, after: str | None = None
    ) -> tuple[Job, ...]:
        """A page of jobs by id (done and failed: newest first); `after` is the last id of the page before.

        Without queues, those of the roles. Payloads are left out, errors cut; `job` has them.
        """

        async def read(connection: Connection) -> tuple[Job, ...]:
            there = await self._queues(connection) if self._preset.per_queue or not queues else []
            wanted = list(queues) or there
            values = {"queues": wanted, "limit": limit, "after": after}
            page = self._reads.page(state, after is not None)
            return await self._jobs(connection, page, values) if page else ()

        try:
            return await self._ask(read)
        except psycopg.DataError:
            raise QueueError(f"list {state} jobs", f"{after!r} is no id of a job") from None
        except psycopg.Error as error:
            raise queue_error(error, self._database, f"list {state} jobs") from None

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

    async def _ask(self, question: Callable[[Connection], Coroutine[Any, Any, T]]) -> T:
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
                call = in_transaction(connection, asked) if self._pooled else asked()
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

    async def _facts(self, connection: Connection) -> QueueFacts:
        if time.monotonic() - self._skew_taken > _SKEW_EVERY or not self._skew_taken:
            self._session = msgspec.structs.replace(self._session, skew=await clock_skew(connection))
            self._skew_taken = time.monotonic()
        queues = await self._queues(connection)
        if not queues:
            return msgspec.structs.replace(self._session, now=time.time() + (self._session.skew or 0.0))
        asked = sorted({(queue, role.types) for role in self._roles for queue in role.queues})
        asked = asked or [(queue, ()) for queue in queues]
        wanted = [
            {"place": place, "queue": queue, "types": list(types) or None} for place, (queue, types) in enumerate(asked)
        ]
        values = {"asked": msgspec.json.encode(wanted).decode()}
        counted = await fetched(connection, self._reads.counts(), values)
        running = await self._jobs(connection, self._reads.running(), {"queues": queues})
        return msgspec.structs.replace(
            self._session,
            now=counted[0][1],
            counts=tuple(counts_of(row[2:], *asked[row[0]]) for row in sorted(counted)),
            running=running,
        )

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
