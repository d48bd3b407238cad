"""The connection that changes rows: short transactions, every setting for the transaction alone (a pool may stand
between), and the fate of a transaction whose answer was lost.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from console.config import Database
from console.queue.connection import PLANNING, Connection, answered, connect, fetched, passes
from console.queue.times import quoted

T = TypeVar("T")

# psycopg warns of a pipeline that its connection was closed under; it must not write into the screen
logging.getLogger("psycopg").addHandler(logging.NullHandler())

LOCK_TIMEOUT = 2.0  # seconds, the server's own
STATEMENT_TIMEOUT = 30.0
IDLE_TIMEOUT = 60.0  # seconds a transaction may stand still, should this process hang in it
ANSWER_TIMEOUT = 45.0  # seconds for all statements of a transaction, after which the server is taken for gone
AWAY = 60.0  # seconds that a server may be away before an action ends
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)  # seconds between two tries to connect
_SETTINGS = {
    **PLANNING,
    "lock_timeout": f"{LOCK_TIMEOUT * 1000:.0f}",
    "idle_in_transaction_session_timeout": f"{IDLE_TIMEOUT * 1000:.0f}",
    # values are kept as text in the journal and compared as text: they must read the same in every session
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
}
# what is told as done must be on the disk; triggers of the queue may name its tables without their schema
_OF_THE_SERVER = {
    "synchronous_commit": "replace(current_setting('synchronous_commit'), 'off', 'on')",
    "search_path": "concat_ws(', ', quote_ident({schema}), nullif(current_setting('search_path'), ''))",
}


@functools.cache
def _beginning(schema: str, statement_timeout: float, identified: bool) -> bytes:
    """The first statement of a transaction, without parameters: it is sent with every batch."""
    settings = _SETTINGS | {"statement_timeout": f"{statement_timeout * 1000:.0f}"}
    values = {name: quoted(value) for name, value in settings.items()}
    values |= {name: text.format(schema=quoted(schema)) for name, text in _OF_THE_SERVER.items()}
    calls = ", ".join(f"set_config('{name}', {value}, true)" for name, value in values.items())
    return f"SELECT {'pg_current_xact_id()' if identified else 'NULL'}::text, {calls}".encode()


class Session:
    """One connection, opened when it is needed and again when it broke. Calls may overlap; one runs at a time."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._connection: Connection | None = None
        self._one_at_a_time = asyncio.Lock()

    async def run(self, call: Callable[[Connection], Awaitable[T]], timeout: float = ANSWER_TIMEOUT) -> T:
        """The result of the call on the connection; psycopg.Error. Nothing is tried twice here."""
        async with self._one_at_a_time:
            connection = self._connection
            if connection is None or connection.closed:
                connection = self._connection = (await connect(self.database, read_only=False, application=_NAME))[0]

            async def called() -> T:
                return await call(connection)

            try:
                return await answered(connection, called(), timeout)
            finally:
                if connection.closed:
                    self._connection = None

    async def ask(self, call: Callable[[Connection], Awaitable[T]], statement_timeout: float = STATEMENT_TIMEOUT) -> T:
        """The result of a call that only reads, in a transaction of its own; tried again when the server had gone."""

        async def asked(connection: Connection) -> T:
            async with self.transaction(connection, statement_timeout):
                return await call(connection)

        idle = self._connection is not None
        try:
            return await self.run(asked)
        except psycopg.OperationalError as error:
            # the connection had stood idle: a restart of the server since is no news
            if not idle or self._connection is not None or not passes(error):
                raise
        return await self.run(asked)

    @asynccontextmanager
    async def transaction(
        self, connection: Connection, statement_timeout: float = STATEMENT_TIMEOUT, *, identified: bool = False
    ) -> AsyncIterator[psycopg.AsyncCursor[TupleRow]]:
        """A transaction with the settings of this module; of the cursor, the first column of the row is its id.

        What was sent and not yet fetched may fail at the end.
        """
        # in a pipeline BEGIN, the settings and the first statement are one round trip, and so are NOTIFY and COMMIT
        async with connection.pipeline(), connection.transaction():
            yield await connection.execute(_beginning(self.database.schema, statement_timeout, identified))

    async def back(self) -> bool:
        """Wait until the server answers again; False: not within AWAY seconds."""
        deadline = time.monotonic() + AWAY
        for tries in range(10_000):
            try:
                await self.run(lambda connection: fetched(connection, b"SELECT 1"), 5.0)
                return True
            except psycopg.Error as error:
                if not passes(error) or time.monotonic() > deadline:
                    return False
            await asyncio.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
        return False

    async def committed(self, transaction: str) -> bool | None:
        """What became of a transaction whose COMMIT was sent and not answered; None: it cannot be known."""
        for _ in range(50):
            try:
                rows = await self.run(
                    lambda connection: fetched(
                        connection, b"SELECT pg_xact_status(%(id)s::text::xid8)", {"id": transaction}
                    )
                )
            except psycopg.DataError:  # in the future: this is another server, which never saw it
                return None
            except psycopg.OperationalError:
                if not await self.back():
                    return None
                continue
            match rows[0][0]:
                case "committed":
                    return True
                case "aborted":
                    return False
                case None:
                    return None
            await asyncio.sleep(0.1)  # the server process has not noticed yet that nobody listens
        return None

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


_NAME = "worktop actions"


async def savepoint(connection: Connection, query: sql.Composed, values: dict[str, Any]) -> list[Any]:
    """The rows of a statement in a savepoint: an error undoes this statement only."""
    async with connection.transaction():
        return await fetched(connection, query, values)
