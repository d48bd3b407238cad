"""Connections to the database of the job table, and its errors in words a person can act on.

The DSN comes from worktop.toml, from a service file or from the environment (libpq reads PG* by itself). It may hold a
password: neither it nor a part of it ever stands in an error.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import psycopg
from psycopg import conninfo as libpq
from psycopg import sql
from psycopg.rows import TupleRow

from console.config import Database
from console.errors import ConfigError, Problem, QueueError

T = TypeVar("T")
Connection = psycopg.AsyncConnection[TupleRow]

CONNECT_TIMEOUT = 5  # seconds
ANSWER_TIMEOUT = 10.0  # seconds until a server that says nothing is taken for gone


_ON_DEMAND = 1_000_000_000  # executions until a statement is prepared that `fetched` was not told to prepare


class NoAnswer(psycopg.OperationalError):
    """The server took the statement and said nothing in time: frozen, or the network is."""


def conninfo(database: Database, application: str = "worktop") -> str:
    """The connection string for libpq; ConfigError, without a word of the DSN, when it cannot be read."""
    try:
        given = libpq.conninfo_to_dict(database.dsn)
    except psycopg.Error:
        raise ConfigError(
            "database.dsn",
            "cannot be read as a connection string",
            'expected "postgresql://user@host/name" or "host=... dbname=... user=..."',
        ) from None
    settings: dict[str, Any] = {"connect_timeout": CONNECT_TIMEOUT, "application_name": application} | given
    if database.service:
        settings["service"] = database.service
    return libpq.make_conninfo("", **settings)


def target(database: Database) -> str:
    """Where the database is, for messages: "db1:5432/app", "service app", "the local socket"; never a secret."""
    try:
        given = libpq.conninfo_to_dict(database.dsn)
    except psycopg.Error:
        return "the database"
    if database.service:
        return f"service {database.service}"
    host = given.get("host") or given.get("hostaddr") or os.environ.get("PGHOST") or os.environ.get("PGHOSTADDR") or ""
    port = given.get("port") or os.environ.get("PGPORT") or ""
    name = given.get("dbname") or os.environ.get("PGDATABASE") or ""
    if not host and os.environ.get("PGSERVICE"):
        return f"service {os.environ['PGSERVICE']}"
    place = f"{host}:{port}" if host and port else str(host) or "the local socket"
    return f"{place}/{name}" if name and not place.startswith("/") else f"{place}, database {name}" if name else place


STATEMENT_TIMEOUT = 5.0  # seconds, the server's own
LOCK_TIMEOUT = 2.0
# Every statement of the console stops at a limit after some entries of an index that has their order, whatever the
# planner expects (where nothing was analysed, one row): it must not compile, start workers, or read all rows first.
# "off" is a preference: without such an index the table is read and sorted all the same.
PLANNING = {
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
}


async def connect(database: Database, *, read_only: bool, application: str = "worktop") -> tuple[Connection, bool]:
    """A connection in autocommit mode, and whether a pool stands between; psycopg.Error or ConfigError.

    Without a pool the timeouts, and read-only, are set for the session.
    """
    # prepared statements are off until it is known that no pool stands between: behind PgBouncer the next transaction
    # may be on another server connection
    connection: Connection = await psycopg.AsyncConnection.connect(
        conninfo(database, application), autocommit=True, prepare_threshold=None
    )
    try:
        await connection.set_read_only(read_only)
        pooled = not await answered(connection, _set(connection, local=False, read_only=read_only))
        connection.prepare_threshold = None if pooled else _ON_DEMAND
        return connection, pooled
    except BaseException:
        await connection.close()
        raise


async def in_transaction(
    connection: Connection, question: Callable[[], Awaitable[T]], statement_timeout: float = STATEMENT_TIMEOUT
) -> T:
    """The answer to a question that only reads, with the timeouts set for it alone: what a pool needs."""
    async with connection.transaction():  # BEGIN READ ONLY
        await _set(connection, local=True, read_only=True, statement_timeout=statement_timeout)
        return await question()


async def _set(
    connection: Connection, local: bool, read_only: bool, statement_timeout: float = STATEMENT_TIMEOUT
) -> bool:
    """Set timeouts and read-only for the transaction, or for the session; False when a pool stands between.

    Then nothing is set for the session: the pool gives the server's connection to others, with all that was set. A
    pool is known by the process id that it announces, which is made up (PgBouncer).
    """
    result = await connection.execute(
        """SELECT set_config('statement_timeout', %s, %s), set_config('lock_timeout', %s, %s),
                  set_config('default_transaction_read_only', %s, %s),
                  (SELECT count(set_config(name, value, %s)) FROM unnest(%s::text[], %s::text[]) AS one(name, value))
           WHERE %s OR pg_backend_pid() = %s""",
        (
            f"{statement_timeout * 1000:.0f}", local,
            f"{LOCK_TIMEOUT * 1000:.0f}", local,
            "on" if read_only else "off", local,
            local, list(PLANNING), list(PLANNING.values()),
            local, connection.info.backend_pid,
        ),
    )  # fmt: skip
    return await result.fetchone() is not None


async def answered(connection: Connection, call: Coroutine[Any, Any, T], timeout: float = ANSWER_TIMEOUT) -> T:
    """The call's result; NoAnswer after `timeout` seconds, the connection closed.

    statement_timeout is the server's promise and asyncio.timeout would wait for the server's word on the
    cancellation: neither helps against a server that is frozen, so the socket is closed under the call.
    """
    task = asyncio.ensure_future(call)
    try:
        done, _ = await asyncio.wait({task}, timeout=timeout)
        if not done:
            raise NoAnswer(f"no answer within {timeout:.0f} s")
        return task.result()
    except (asyncio.CancelledError, NoAnswer):
        if not task.done():
            connection.pgconn.finish()
            task.cancel()
            await asyncio.wait({task}, timeout=1)
        raise


async def fetched(
    connection: Connection, query: bytes | sql.Composed, values: dict[str, Any] | None = None, prepare: bool = False
) -> list[Any]:
    """The rows of a query with named parameters.

    `prepare`: the server shall keep its plan, where no pool stands between. What is asked at every poll takes as long
    to plan as to answer. The types of its columns must not depend on those of a table: they may change.
    """
    return await (await connection.execute(query, values or {}, prepare=prepare)).fetchall()


async def clock_skew(connection: Connection) -> float:
    """The database's clock minus this machine's, seconds: the best of three, each halfway through its round trip."""
    best = (float("inf"), 0.0)
    for _ in range(3):
        before = time.time()
        rows = await fetched(connection, b"SELECT extract(epoch FROM clock_timestamp())::float8")
        after = time.time()
        best = min(best, (after - before, rows[0][0] - (before + after) / 2))
    return best[1]


# --- errors ------------------------------------------------------------------------------------------------------

_INSTALL = "run `worktop queue install`, or name the right database, schema and preset in worktop.toml"
_GRANT = "grant this user USAGE on the schema and SELECT on the job table; workers also INSERT, UPDATE and its sequence"

# (SQLSTATE, what libpq says when it has none: connecting, it does not pass the server's on) -> why, what to do
_KNOWN: tuple[tuple[str, str, str, str], ...] = (
    ("28P01", r"password authentication failed", "wrong password", "set PGPASSWORD or ~/.pgpass"),
    ("", r"no password supplied", "the server asks for a password", "set PGPASSWORD or ~/.pgpass"),
    ("28000", r"no pg_hba.conf entry|authentication failed", "not admitted", "see pg_hba.conf of the server"),
    ("3D000", r'database "[^"]*" does not exist', "no such database", "name it in database.dsn or PGDATABASE"),
    ("", r'role "[^"]*" does not exist', "no such user", "name one in database.dsn or PGUSER"),
    ("", r"definition of service .* not found|service file", "no such service", "see ~/.pg_service.conf"),
    ("57P03", r"database system is (starting up|shutting down|in recovery)", "it is starting or stopping", "wait"),
    ("53300", r"too many clients|remaining connection slots", "too many connections", "use a pool"),
    ("", r"Connection refused", "connection refused", "is PostgreSQL running there?"),
    ("", r"No such file or directory", "no server on that socket", "is PostgreSQL running there? set PGHOST"),
    ("", r"could not translate host name|Name or service not known|failed to resolve", "unknown host", "see host"),
    ("", r"timeout expired|connection timeout", "no answer to the connection attempt", "is the way to it open?"),
    ("57P01",
     r"terminating connection|server closed the connection|consuming input failed|connection is (?:closed|lost)",
     "the server closed the connection", "it was restarted; reconnecting"),
    ("57P02", "", "the server crashed", "reconnecting"),
    ("57014", r"statement timeout", "the query took too long", "see `worktop doctor` for missing indexes"),
    ("55P03", "", "a lock was not to be had", "another session changes the table; try again"),
    ("25006", "", "the transaction is read-only", "connect to the primary server, not to a replica"),
    ("42P01", "", "the job table is missing", _INSTALL),
    ("3F000", "", "the schema is missing", _INSTALL),
    ("42883", "", "a function of the job table is missing", _INSTALL),
    ("42703", "", "the job table has other columns", _INSTALL),
    ("42501", "", "permission denied", _GRANT),
)  # fmt: skip

# a worker that starts ends at these; whatever else it meets passes by itself
_PERMANENT = frozenset({"28P01", "28000", "3D000", "42P01", "3F000", "42883", "42703", "42501", "25006"})


def _known(error: psycopg.Error) -> tuple[str, str, str] | None:
    text = str(error)
    for state, pattern, why, do in _KNOWN:
        if (state and error.sqlstate == state) or (error.sqlstate is None and pattern and re.search(pattern, text)):
            return state, why, do
    return None


def problem_of(error: BaseException, database: Database, what: str = "") -> Problem:
    """The error as what failed (default: the place of the database), why, and what to do."""
    what = what or f"job queue at {target(database)}"
    if isinstance(error, QueueError | ConfigError):
        return error.problem
    if isinstance(error, NoAnswer):
        return Problem(what, str(error), "the server hangs or the network is interrupted")
    if not isinstance(error, psycopg.Error):
        return Problem(what, f"{type(error).__name__}: {error}")
    known = _known(error)
    if known is None:
        said = (
            error.diag.message_primary or str(error).strip().splitlines()[0]
            if str(error).strip()
            else type(error).__name__
        )
        return Problem(what, _without_password(said, database))
    _, why, do = known
    # the object's name, as in: relation "jobs.worktop_jobs" does not exist
    named = error.diag.message_primary if error.sqlstate in {"42P01", "3F000", "42883", "42703", "42501"} else ""
    return Problem(what, f"{why} ({named})" if named else why, do)


def queue_error(error: BaseException, database: Database, what: str = "") -> QueueError:
    problem = problem_of(error, database, what)
    return QueueError(problem.what, problem.why, problem.do)


def passes(error: psycopg.Error) -> bool:
    """Whether trying again may help: a server that is away may come back, a wrong password stays wrong."""
    known = _known(error)
    if known is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return known[0] not in _PERMANENT and known[1] not in {
        "the server asks for a password",
        "no such user",
        "no such service",
    }


def _without_password(text: str, database: Database) -> str:
    secrets = [str(libpq.conninfo_to_dict(database.dsn).get("password") or ""), os.environ.get("PGPASSWORD", "")]
    for secret in filter(None, secrets):
        text = text.replace(secret, "••••")
    return text
