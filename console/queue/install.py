"""Installs and upgrades worktop's own job table: schema.sql in one transaction, under an advisory lock."""

from __future__ import annotations

from importlib.resources import files

import psycopg
from psycopg import sql

from console.config import Database
from console.errors import QueueError
from console.fleet.model import Value
from console.queue.connection import conninfo, queue_error, target

VERSION = 2  # what schema.sql records
_LOCK = 0x776F726B746F7001  # "worktop" and a number; the same for everybody who installs


class Installed(Value, frozen=True, kw_only=True):
    """What an installation found and left."""

    database: str  # the database's name
    db_schema: str
    before: int | None = None  # version found; None: there was no job table
    version: int = VERSION


def script(database: Database) -> str:
    """Everything `install` executes, as text that psql would take."""
    schema = sql.Identifier(database.schema).as_string(None)
    body = files("console.queue").joinpath("schema.sql").read_text(encoding="utf-8")
    create = "" if database.schema == "public" else f"CREATE SCHEMA IF NOT EXISTS {schema};\n"
    return (
        "BEGIN;\n"
        "SET LOCAL lock_timeout = '10s';\n"
        f"SELECT pg_advisory_xact_lock({_LOCK});\n"
        f"{create}SET LOCAL search_path = {schema}, pg_temp;\n\n{body}\nCOMMIT;\n"
    )


def install(database: Database) -> Installed:
    """Create or upgrade the job table; safe to repeat and to run twice at once. QueueError, nothing changed."""
    schema = sql.Identifier(database.schema)
    body = files("console.queue").joinpath("schema.sql").read_bytes()
    what = f"install the job table at {target(database)}"
    try:
        with psycopg.connect(conninfo(database)) as connection:
            connection.execute("SET LOCAL lock_timeout = '10s'")
            connection.execute("SET LOCAL client_min_messages = warning")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            before = _version(connection, database.schema)
            if before is not None and before > VERSION:
                raise QueueError(
                    what, f"version {before} is there, this worktop knows {VERSION}", "use a newer worktop"
                )
            if not _one(connection, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %s)", database.schema):
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
            connection.execute(sql.SQL("SET LOCAL search_path = {}, pg_temp").format(schema))
            connection.execute(body)
            return Installed(
                database=str(_one(connection, "SELECT current_database()")), db_schema=database.schema, before=before
            )
    except psycopg.Error as error:
        raise queue_error(error, database, what) from None


def _version(connection: psycopg.Connection[tuple[object, ...]], schema: str) -> int | None:
    table = sql.Identifier(schema, "worktop_schema")
    if _one(connection, "SELECT to_regclass(%s)", table.as_string(None)) is None:
        return None
    row = connection.execute(sql.SQL("SELECT max(version) FROM {}").format(table)).fetchone()
    return row[0] if row and isinstance(row[0], int) else None


def _one(connection: psycopg.Connection[tuple[object, ...]], query: str, *values: str) -> object:
    row = connection.execute(query.encode(), values).fetchone()
    return row[0] if row else None
