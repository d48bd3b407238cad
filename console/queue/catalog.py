"""What the server's catalog says of the table that a preset's actions change: its columns, and what the user may do."""

from __future__ import annotations

import re

import msgspec
from psycopg import sql

from console.queue.connection import Connection, fetched
from console.queue.preset_actions import VERBS
from console.queue.selecting import TOKEN
from console.queue.writes import Writes

_COLUMNS = b"""SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attgenerated = ''
               FROM pg_attribute a WHERE a.attrelid = to_regclass(%(table)s) AND a.attnum > 0 AND NOT a.attisdropped
               ORDER BY a.attnum"""
_CHECKS = {
    "TABLE": b"SELECT coalesce(has_table_privilege(to_regclass(%(name)s), %(right)s), false)",
    "SEQUENCE": b"SELECT coalesce(has_sequence_privilege(to_regclass(%(name)s), %(right)s), false)",
    "FUNCTION": b"SELECT coalesce(has_function_privilege(to_regprocedure(%(name)s), %(right)s), false)",
    "SCHEMA": b"SELECT has_schema_privilege(%(name)s, %(right)s)",
}


class Column(msgspec.Struct, frozen=True):
    name: str
    type: str
    stored: bool  # it may be written: it is not generated


def table_of(writes: Writes) -> str:
    """The changed table's name, quoted where it must be."""
    return writes.raw(writes.actions.table).as_string(None).replace("%%", "%")


async def columns_of(connection: Connection, writes: Writes) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in await fetched(connection, _COLUMNS, {"table": table_of(writes)}))


async def missing_rights(connection: Connection, writes: Writes, verb: str) -> tuple[str, ...]:
    """The GRANTs that the user lacks for a verb ("undo": for undoing every verb), and nothing more than it needs."""
    ((user, replica),) = await fetched(connection, b"SELECT quote_ident(current_user), pg_is_in_recovery()")
    if replica:
        return ("connect to the primary server: this one is a replica that can only be read",)
    schema = sql.Identifier(writes.schema).as_string(None)
    if not (await fetched(connection, _CHECKS["SCHEMA"], {"name": writes.schema, "right": "USAGE"}))[0][0]:
        return (f"GRANT USAGE ON SCHEMA {schema} TO {user};",)
    missing = []
    for table in writes.preset.tables:
        name = sql.Identifier(writes.schema, table).as_string(None)
        if not await _allowed(connection, "TABLE", name, "SELECT"):
            missing.append(f"GRANT SELECT ON {name} TO {user};")
    missing += [f"GRANT {right} TO {user};" for right in await _of_verb(connection, writes, verb)]
    return tuple(dict.fromkeys(missing))


async def _of_verb(connection: Connection, writes: Writes, verb: str) -> list[str]:
    """The missing rights as in GRANT, without the user."""
    actions, table = writes.actions, table_of(writes)
    if verb in ("pause", "resume"):
        return await _needed(connection, writes, actions.pause.needs if actions.pause else ())
    undo = verb == "undo"
    chosen = [action for name in (VERBS if undo else (verb,)) if (action := actions.verb(name))]
    columns = dict.fromkeys(name for action in chosen for name in writes.journalled(action))
    written = [name for name in columns if name != TOKEN and any(name in action.set for action in chosen)]
    missing = []
    if any(action.delete for action in chosen):
        right = "INSERT" if undo else "DELETE"
        if not await _allowed(connection, "TABLE", table, right):
            missing.append(f"{right} ON {table}")
        if not undo and not written:
            written = list(actions.key[-1:])  # to lock a row takes the right to update one of its columns
    refused = [
        name
        for name in written
        if not (
            await fetched(
                connection,
                b"SELECT coalesce(has_column_privilege(to_regclass(%(table)s), %(column)s::text, 'UPDATE'), false)",
                {"table": table, "column": name},
            )
        )[0][0]
    ]
    if refused:
        names = ", ".join(sql.Identifier(name).as_string(None).strip('"') for name in written)
        missing.append(f"UPDATE ({names}) ON {table}")
    return missing + await _needed(connection, writes, tuple(need for action in chosen for need in action.needs))


async def _needed(connection: Connection, writes: Writes, needs: tuple[str, ...]) -> list[str]:
    """Those that are missing of rights written as in GRANT."""
    missing = []
    for need in needs:
        rights, _, target = writes.raw(need).as_string(None).replace("%%", "%").partition(" ON ")
        kind, name = "TABLE", target
        if found := re.match(r"(SEQUENCE|FUNCTION|SCHEMA) (.*)", target):
            kind, name = found[1], found[2]
        refused = [right for right in rights.split(", ") if not await _allowed(connection, kind, name, right)]
        if refused:
            missing.append(f"{', '.join(refused)} ON {target}")
    return missing


async def _allowed(connection: Connection, kind: str, name: str, right: str) -> bool:
    return bool((await fetched(connection, _CHECKS[kind], {"name": name, "right": right}))[0][0])
