"""What `worktop doctor` says of the database of the job table."""

from __future__ import annotations

from typing import Any

from psycopg import sql

from console.config import Database
from console.errors import Problem
from console.fleet.model import Check
from console.queue.connection import Connection, clock_skew
from console.queue.preset import Preset
from console.queue.reads import Reads
from console.text import ago

OLDEST_SERVER = 13
LARGE = 200_000  # rows of a table, from which on a question without an index takes too long
SKEW_LIMIT = 2.0  # seconds; leases are a minute, and times of host and database are shown side by side


def failed_check(name: str, problem: Problem) -> Check:
    return Check(name=name, state="failed", text=f"{problem.what}: {problem.why}", remedy=problem.do)


async def check_all(connection: Connection, database: Database, preset: Preset, pooled: bool) -> tuple[Check, ...]:
    """Every check, in the order a person would ask; psycopg.Error when the connection breaks."""
    checks = [await _server(connection), *await _surroundings(connection, pooled)]
    tables = await _tables(connection, database, preset)
    checks += tables
    if any(check.state == "failed" for check in tables):
        return tuple(checks)
    if preset.version:
        checks.append(await _version(connection, database, preset))
    checks += [await _row_security(connection, database, preset), await _indexes(connection, database, preset)]
    return tuple(checks)


async def _server(connection: Connection) -> Check:
    user, name, superuser = await _row(
        connection, b"SELECT current_user::text, current_database()::text, current_setting('is_superuser') = 'on'"
    )
    info = connection.info
    place = info.host if info.host.startswith("/") else f"{info.host}:{info.port}"
    said = f"PostgreSQL {info.parameter_status('server_version')} at {place}, database {name}, as {user}"
    if info.server_version < OLDEST_SERVER * 10000:
        return Check(name="database", state="failed", text=said, remedy=f"use PostgreSQL {OLDEST_SERVER} or newer")
    return Check(name="database", state="ok", text=said + (" (a superuser)" if superuser else ""))


async def _surroundings(connection: Connection, pooled: bool) -> list[Check]:
    skew = await clock_skew(connection)
    zone, replica = await _row(connection, b"SELECT current_setting('TimeZone'), pg_is_in_recovery()")
    direction = "ahead of" if skew > 0 else "behind"
    checks = [
        Check(
            name="clock",
            state="ok" if abs(skew) <= SKEW_LIMIT else "warning",
            text=f"the database's clock is {abs(skew) * 1000:.0f} ms {direction} this host's"
            if abs(skew) < 1
            else f"the database's clock is {ago(abs(skew))} {direction} this host's",
            remedy="" if abs(skew) <= SKEW_LIMIT else "synchronise both clocks (timedatectl, chronyc)",
        ),
        Check(name="time zone", state="ok", text=f"the session's TimeZone is {zone}; nothing here depends on it"),
    ]
    if replica:
        checks.append(
            Check(
                name="replica",
                state="warning",
                text="this server is a read replica: what it shows may be late, and actions are not possible",
                remedy="connect to the primary server",
            )
        )
    if pooled:
        checks.append(
            Check(
                name="pool",
                state="warning",
                text="a connection pool (PgBouncer) stands between: the server process is not the one announced",
                remedy="let workers connect directly or by pool_mode = session; LISTEN needs it",
            )
        )
    return checks


async def _tables(connection: Connection, database: Database, preset: Preset) -> list[Check]:
    checks = []
    for table in preset.tables:
        name = sql.Identifier(database.schema, table).as_string(None)
        shown = f"{database.schema}.{table}"
        there, readable, writable = await _row(
            connection,
            b"""SELECT to_regclass(%(name)s) IS NOT NULL,
                       coalesce(has_table_privilege(to_regclass(%(name)s), 'SELECT'), false),
                       coalesce(has_table_privilege(to_regclass(%(name)s), 'UPDATE'), false)""",
            {"name": name},
        )
        if not there:
            remedy = f"run `{preset.install}`" if preset.install else "name the right database, schema and preset"
            check = Check(name=table, state="failed", text=f"there is no table {shown}", remedy=remedy)
        elif not readable:
            grant = f"GRANT SELECT ON {name} TO {connection.info.user}"
            check = Check(name=table, state="failed", text=f"{shown} may not be read", remedy=grant)
        elif not writable:
            text = f"{shown} may be read, not changed: to look is possible, to reclaim or retry is not"
            check = Check(name=table, state="ok", text=text)
        else:
            check = Check(name=table, state="ok", text=f"{shown} may be read and changed")
        checks.append(check)
    return checks


async def _version(connection: Connection, database: Database, preset: Preset) -> Check:
    assert preset.version is not None
    (found,) = await _row(connection, Reads(preset, database.schema).text(preset.version.query))
    expected = preset.version.expected
    if found == expected:
        return Check(name="schema version", state="ok", text=f"version {found}")
    newer = isinstance(found, int) and found > expected
    return Check(
        name="schema version",
        state="warning",
        text=f"version {found}, this worktop knows {expected}",
        remedy="use a newer worktop" if newer else f"run `{preset.install}`" if preset.install else "",
    )


async def _row_security(connection: Connection, database: Database, preset: Preset) -> Check:
    hidden = []
    for table in preset.tables:
        name = sql.Identifier(database.schema, table).as_string(None)
        (active,) = await _row(connection, b"SELECT row_security_active(to_regclass(%(name)s))", {"name": name})
        if active:
            hidden.append(f"{database.schema}.{table}")
    if not hidden:
        return Check(name="row security", state="ok", text="no row is hidden from this user")
    return Check(
        name="row security",
        state="warning",
        text=f"row level security hides rows of {', '.join(hidden)} from this user: counts may be too low",
        remedy=f"ALTER ROLE {connection.info.user} BYPASSRLS, or a policy that lets it read",
    )


async def _indexes(connection: Connection, database: Database, preset: Preset) -> Check:
    result = await connection.execute(
        b"""SELECT i.relname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
            JOIN pg_class t ON t.oid = x.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
            WHERE n.nspname = %(schema)s AND t.relname = ANY (%(tables)s::text[]) AND x.indisvalid""",
        {"schema": database.schema, "tables": list(preset.tables)},
    )
    there = {row[0] for row in await result.fetchall()}
    missing = [index for index in preset.indexes if index.name not in there]
    if not missing:
        return Check(name="indexes", state="ok", text=f"all {len(preset.indexes)} that the console needs are there")
    reads = Reads(preset, database.schema)
    return Check(
        name="indexes",
        state="warning",
        text="missing or invalid: " + ", ".join(f"{index.name} (for {index.serves})" for index in missing),
        remedy=";\n".join(reads.text(index.create).as_string(None).replace("%%", "%") for index in missing) + ";",
    )


async def missing_indexes(connection: Connection, preset: Preset, schema: str) -> frozenset[str]:
    """The indexes of the preset that are missing from tables which the server believes to be large."""
    if not preset.indexes:
        return frozenset()
    result = await connection.execute(
        b"""SELECT wanted.name FROM unnest(%(names)s::text[], %(tables)s::text[]) AS wanted(name, owner)
            JOIN pg_class t ON t.relname = wanted.owner JOIN pg_namespace n ON n.oid = t.relnamespace
            WHERE n.nspname = %(schema)s AND t.reltuples >= %(large)s AND NOT EXISTS (
                SELECT FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
                WHERE x.indrelid = t.oid AND x.indisvalid AND i.relname = wanted.name)""",
        {
            "names": [index.name for index in preset.indexes],
            "tables": [index.table for index in preset.indexes],
            "schema": schema,
            "large": LARGE,
        },
    )
    return frozenset(str(row[0]) for row in await result.fetchall())


async def _row(connection: Connection, query: Any, values: dict[str, Any] | None = None) -> tuple[Any, ...]:
    row = await (await connection.execute(query, values or {})).fetchone()
    assert row is not None, "these queries give one row"
    return tuple(row)
