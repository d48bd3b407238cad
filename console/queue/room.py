"""What is asked of the database beside the rows: queues that are paused, connections against their limit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import msgspec
import psycopg
from psycopg import sql

from console.fleet.diagnosis.model import QueueRoom
from console.fleet.model import Job
from console.queue.connection import Connection, fetched
from console.queue.preset import Preset
from console.queue.reads import Reads
from console.queue.render import trusted
from console.queue.rows import HOLDER_COLUMNS, holder_of

# connections that are kept for superusers, and for pg_use_reserved_connections (16 and newer), are no room for workers
_CONNECTIONS = b"""
SELECT (SELECT count(*) FROM pg_stat_activity a
        WHERE a.datid IS NOT NULL AND coalesce(a.backend_type, 'client backend') = 'client backend'),
       current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
       - coalesce(current_setting('reserved_connections', true), '0')::integer"""


async def room_of(connection: Connection, preset: Preset, reads: Reads) -> QueueRoom:
    """What the account may not read is left out."""
    used, most = (await fetched(connection, _CONNECTIONS))[0]
    paused = await paused_queues(connection, preset, reads)
    return QueueRoom(connections=used, connections_max=most, paused=paused or ())


async def paused_queues(connection: Connection, preset: Preset, reads: Reads) -> tuple[str, ...] | None:
    """The queues that give out no job; () where the queue has no switch, None where the account may not read it."""
    if preset.actions is None or preset.actions.pause is None:
        return ()
    query = reads.raw(preset.actions.pause.paused)
    within = connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    try:
        async with connection.transaction() if within else nullcontext():  # a refusal would spoil the whole of it
            rows = await fetched(connection, query)
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable):
        return None
    return tuple(sorted(str(row[0]) for row in rows))


async def with_holders(connection: Connection, preset: Preset, reads: Reads, jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Finished jobs with who held them last, where their rows keep that; they are found by their ids."""
    if preset.holder.kind not in ("columns", "text") or not jobs:
        return tuple(jobs)
    columns = [getattr(preset.holder, name) for name in HOLDER_COLUMNS]
    holder = [sql.SQL("({})::text").format(reads.raw(each)) if each else sql.SQL("NULL::text") for each in columns]
    parts = [
        sql.SQL("(SELECT ({id})::text, {holder} FROM {} WHERE ({}) AND {id} = ANY (%(ids)s::{}[]))").format(
            rows.from_,
            rows.where,
            trusted(preset.id_type),
            id=reads.field(rows.fields.id),
            holder=sql.SQL(", ").join(holder),
        )
        for rows in reads.rows_of("done")
    ]
    if not parts:
        return tuple(jobs)
    found = await fetched(connection, sql.SQL(" UNION ALL ").join(parts), {"ids": [job.id for job in jobs]})
    held = {id: holder_of(values, preset) for id, *values in found}
    return tuple(msgspec.structs.replace(job, holder=held.get(job.id)) for job in jobs)
