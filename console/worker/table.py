"""The worker's side of the job table: worktop's SQL functions over one connection that mends itself.

One connection serves everything: the calls, and LISTEN while idle. A NOTIFY of one of its queues sets `woken`, and
so does a server that goes away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from console.config import Database
from console.errors import LeaseLost
from console.fleet.model import Holder
from console.queue.connection import Connection, answered, connect
from console.worker.handlers import ClaimedJob

LEASE_LOST = "WT001"  # the SQLSTATE of schema.sql


class JobTable:
    """Calls raise psycopg.Error (the next call connects anew), ConfigError, or LeaseLost."""

    def __init__(self, database: Database, queues: Sequence[str], application: str) -> None:
        self._database = database
        self._queues = tuple(queues)
        self._application = application
        self._connection: Connection | None = None
        self._one_at_a_time = asyncio.Lock()
        self.woken = asyncio.Event()

    async def open(self) -> None:
        """Connect, and find the job table there."""
        await self._call("SELECT FROM {} LIMIT 0", "worktop_jobs", ())

    async def claim(self, holder: Holder, lease: float, count: int, types: Sequence[str] = ()) -> list[ClaimedJob]:
        """Up to `count` due jobs, claimed for `lease` seconds."""
        rows = await self._call(
            "SELECT id, queue, type, payload::text, attempts, max_attempts, lease_token FROM {}"
            "(%s::text[], %s, %s, %s, %s, %s, make_interval(secs => %s), %s, %s::text[])",
            "worktop_claim",
            (
                list(self._queues),
                holder.host or None,
                holder.boot_id or None,
                holder.unit or None,
                holder.pid,
                holder.start,
                lease,
                count,
                list(types) or None,
            ),
        )
        return [
            ClaimedJob(
                id=row[0],
                queue=row[1],
                type=row[2],
                payload_text=row[3],
                attempt=row[4],
                max_attempts=row[5],
                token=row[6],
            )
            for row in rows
        ]

    async def heartbeat(self, job: ClaimedJob, lease: float) -> None:
        await self._call(
            "SELECT {}(%s, %s, make_interval(secs => %s))", "worktop_heartbeat", (job.id, job.token, lease)
        )

    async def finish(self, job: ClaimedJob) -> None:
        await self._call("SELECT {}(%s, %s)", "worktop_finish", (job.id, job.token))

    async def fail(self, job: ClaimedJob, error: str) -> str:
        """The new status: "waiting" or "failed"."""
        # PostgreSQL's text holds every character but NUL, and no lone surrogates
        text = error.replace("\0", "\N{SYMBOL FOR NULL}").encode(errors="replace").decode()
        rows = await self._call("SELECT {}(%s, %s, %s)", "worktop_fail", (job.id, job.token, text))
        return str(rows[0][0])

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._unwatch(connection)
            await connection.close()

    async def _call(self, query: LiteralString, function: str, values: tuple[Any, ...]) -> list[Any]:
        async with self._one_at_a_time:
            connection = self._connection
            if connection is None:
                connection = self._connection = await self._connected()
            self._unwatch(connection)
            try:
                statement = sql.SQL(query).format(sql.Identifier(self._database.schema, function))
                return await answered(connection, _fetched(connection.execute(statement, values)))
            except psycopg.Error as error:
                if error.sqlstate == LEASE_LOST:
                    what, _, why = (error.diag.message_primary or "").partition(": ")
                    held = f" ({error.diag.message_detail})" if error.diag.message_detail else ""
                    raise LeaseLost(what, why + held, error.diag.message_hint or "") from None
                raise
            finally:
                if connection.closed:
                    self._connection = None
                else:
                    self._watch(connection)

    async def _connected(self) -> Connection:
        connection, pooled = await connect(self._database, read_only=False, application=self._application)
        connection.add_notify_handler(lambda notify: self._notified(notify.payload))
        # through a pool LISTEN would stay with a connection that is given to others: then polling must do
        if not pooled:
            await answered(connection, connection.execute("LISTEN worktop_jobs"))
        return connection

    def _notified(self, queue: str) -> None:
        if queue in self._queues:
            self.woken.set()

    # between two calls the event loop watches the socket; during a call psycopg does, and it allows one watcher only

    def _watch(self, connection: Connection) -> None:
        asyncio.get_running_loop().add_reader(connection.fileno(), self._readable, connection, connection.fileno())

    def _unwatch(self, connection: Connection) -> None:
        if not connection.closed:
            asyncio.get_running_loop().remove_reader(connection.fileno())

    def _readable(self, connection: Connection, fileno: int) -> None:
        try:
            connection.pgconn.consume_input()
            while notify := connection.pgconn.notifies():
                self._notified(notify.extra.decode(errors="replace"))
        except psycopg.Error:  # the server went away; the next call says so
            asyncio.get_running_loop().remove_reader(fileno)
            self.woken.set()


async def _fetched(call: Awaitable[psycopg.AsyncCursor[Any]]) -> list[Any]:
    return await (await call).fetchall()
