"""Undo: rows get the values back that they had, where nobody has changed them since."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import psycopg
from psycopg import sql

from console.fleet.model import Job
from console.fleet.plan import Restored, RowChange
from console.queue.batches import explained
from console.queue.catalog import Column, columns_of
from console.queue.connection import Connection, fetched
from console.queue.render import Part, trusted
from console.queue.session import Session, savepoint
from console.queue.times import quoted
from console.queue.writes import Writes, name_of

BATCH = 500
_ROW_FAULTS = (psycopg.IntegrityError, psycopg.errors.RaiseException, psycopg.errors.LockNotAvailable)

Look = Callable[[Connection, str], Awaitable[Job | None]]


async def restore(
    session: Session, writes: Writes, look: Look, columns: tuple[str, ...], changes: Sequence[RowChange]
) -> Restored:
    """Where the `after` columns are still so, `before` is put back; deleted rows (`after` empty) are inserted again.

    In batches, the last change first: a row may have been changed twice. psycopg.Error when the database fails: what
    was restored by then stays, and a second call refuses it.
    """
    done, refused = set[str](), dict[str, str]()
    for part in _parts(changes):

        async def restored(connection: Connection, part: Sequence[RowChange] = part) -> tuple[set[str], dict[str, str]]:
            async with session.transaction(connection):
                await connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
                return await _Batch(connection, writes, look, columns).restore(part)

        there, why = await session.run(restored)
        done |= there
        refused |= why
    return Restored(rows=len(done), refused=tuple((id, why) for id, why in refused.items() if id not in done))


def _parts(changes: Sequence[RowChange]) -> list[list[RowChange]]:
    """In reverse order, no row twice in a part."""
    parts: list[list[RowChange]] = [[]]
    ids = set[str]()
    for change in reversed(changes):
        if change.id in ids or len(parts[-1]) >= BATCH:
            parts.append([])
            ids.clear()
        parts[-1].append(change)
        ids.add(change.id)
    return parts if parts[0] else []


class _Batch:
    def __init__(self, connection: Connection, writes: Writes, look: Look, columns: tuple[str, ...]) -> None:
        self._connection = connection
        self._writes = writes
        self._look = look
        self._columns = columns

    async def restore(self, changes: Sequence[RowChange]) -> tuple[set[str], dict[str, str]]:
        """The ids that were restored, and why others were not."""
        known = await columns_of(self._connection, self._writes)
        done, why = set[str](), dict[str, str]()
        for deleted in (False, True):
            every = [change for change in changes if bool(change.after) != deleted]
            if not every:
                continue
            if deleted:
                query, values = self._insert(known, every[0]), _documents
            else:
                query, values = self._update(known, every), _images
            try:
                done |= {row[0] for row in await savepoint(self._connection, query, values(every))}
            except _ROW_FAULTS:
                for change in every:
                    try:
                        done |= {row[0] for row in await savepoint(self._connection, query, values([change]))}
                    except _ROW_FAULTS as error:
                        why[change.id] = await self._fault(change, error)
        for change in changes:
            if change.id not in done and change.id not in why:
                why[change.id] = changed_since(await self._look(self._connection, change.id))
        return done, why

    async def _fault(self, change: RowChange, error: psycopg.Error) -> str:
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return "another session holds it; try again"
        if not change.after and await self._look(self._connection, change.id):
            return "there is such a job again"
        return (await explained(self._connection, self._writes, change.id, error)).why

    def _update(self, known: Sequence[Column], changes: Sequence[RowChange]) -> sql.Composed:
        """Parameters of `_images`. -> id"""
        types = {column.name: trusted(column.type) for column in known}
        key = self._writes.actions.key
        conditions: list[Part] = []
        values: list[Part] = []
        for place, column in enumerate(self._columns):
            before, after = (sql.SQL("asked.{}").format(sql.Identifier(f"{side}{place}")) for side in "ba")
            if column in key:
                conditions.append(
                    sql.SQL("{}.{} = {}::{}").format(
                        sql.Identifier(self._writes.actions.alias), name_of(column), before, types[column]
                    )
                )
                continue
            conditions.append(sql.SQL("{} IS NOT DISTINCT FROM {}").format(self._writes.value(column), after))
            if column in types and any(change.before[place] != change.after[place] for change in changes):
                values.append(sql.SQL("{} = {}::{}").format(name_of(column), before, types[column]))
        if not values:  # nothing differs: there is nothing to put back
            values = [
                sql.SQL("{} = {}.{}").format(
                    name_of(key[0]), sql.Identifier(self._writes.actions.alias), name_of(key[0])
                )
            ]
        names = ["id", *(f"{side}{place}" for side in "ba" for place in range(len(self._columns)))]
        return sql.SQL("UPDATE {} AS {} SET {} FROM unnest({}) AS asked({}) WHERE {} RETURNING asked.id").format(
            self._writes.raw(self._writes.actions.table),
            sql.Identifier(self._writes.actions.alias),
            sql.SQL(", ").join(values),
            sql.SQL(", ").join(sql.SQL("{}::text[]").format(sql.Placeholder(name)) for name in names),
            sql.SQL(", ").join(map(sql.Identifier, names)),
            sql.SQL(" AND ").join(conditions),
        )

    def _insert(self, known: Sequence[Column], change: RowChange) -> sql.Composed:
        """Parameters of `_documents`. -> id. Rows get their former ids, whatever the table gives out."""
        there = json.loads(change.before[0] or "{}")
        columns = [column for column in known if column.stored and column.name in there]
        return sql.SQL(
            """WITH asked AS (SELECT * FROM unnest(%(ids)s::text[], %(rows)s::json[]) AS asked(id, row)), kept AS (
                   INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM asked RETURNING 1
               ) SELECT asked.id FROM asked, (SELECT count(*) FROM kept) AS all_of_them"""
        ).format(
            self._writes.raw(self._writes.actions.table),
            sql.SQL(", ").join(name_of(column.name) for column in columns),
            sql.SQL(", ").join(
                sql.SQL("(asked.row ->> {})::{}").format(trusted(quoted(column.name)), trusted(column.type))
                for column in columns
            ),
        )


def _images(changes: Sequence[RowChange]) -> dict[str, Any]:
    values: dict[str, Any] = {"id": [change.id for change in changes]}
    for side, images in (("b", [change.before for change in changes]), ("a", [change.after for change in changes])):
        values |= {f"{side}{place}": list(column) for place, column in enumerate(zip(*images, strict=True))}
    return values


def _documents(changes: Sequence[RowChange]) -> dict[str, Any]:
    return {"ids": [change.id for change in changes], "rows": [change.before[0] for change in changes]}


def changed_since(job: Job | None) -> str:
    """Why a row is not as an action left it."""
    if job is None:
        return "no longer there"
    if job.state != "running":
        return f"{job.state} since" if job.state in ("done", "failed") else "changed since"
    holder = job.holder
    if holder is None:
        return "claimed again since"
    who = f"pid {holder.pid}" if holder.pid is not None else holder.text or holder.unit
    where = f" on {holder.host}" if holder.host else ""
    return f"claimed again since by {who}{where}" if who or where else "claimed again since"


async def look(connection: Connection, query: sql.Composed, id: str) -> Sequence[Any] | None:
    rows = await fetched(connection, query, {"id": id})
    return rows[0] if rows else None
