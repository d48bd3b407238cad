"""Who works on a queue whose rows name no process: its table of workers, and the connections to its database."""

from __future__ import annotations

from collections.abc import Iterable

from console.fleet.model import Backend, Job, QueueWorker
from console.queue.connection import Connection, fetched
from console.queue.preset import Preset
from console.queue.reads import Reads

CAP = 1_000  # workers, and connections

# without pg_read_all_stats the sessions of other roles tell their application only, not even that they are clients
_BACKENDS = b"""
SELECT a.pid, host(a.client_addr), a.client_port, a.application_name, a.usename::text,
       a.pid = pg_backend_pid() OR a.application_name = 'worktop'
       OR a.application_name LIKE 'worktop %%' AND a.application_name NOT LIKE 'worktop worker%%',
       a.backend_start IS NULL, CASE WHEN a.backend_start IS NOT NULL THEN a.query LIKE %(listens)s END,
       extract(epoch FROM clock_timestamp() - a.state_change)::float8
FROM pg_stat_activity a
WHERE a.datname = current_database() AND coalesce(a.backend_type, 'client backend') = 'client backend'
ORDER BY a.pid LIMIT %(cap)s"""


async def server_port(connection: Connection) -> int:
    """The port the server itself listens on, whatever leads to it."""
    return int((await fetched(connection, b"SELECT current_setting('port')"))[0][0])


def without_process(running: Iterable[Job]) -> bool:
    """Whether a job is past its lease whose row does not name the process that holds it."""
    return any(
        job.overdue is not None and job.overdue > 0 and (job.holder is None or job.holder.pid is None)
        for job in running
    )


async def backends(connection: Connection, preset: Preset) -> tuple[Backend, ...]:
    """Every client's connection to the database, the console's own marked."""
    listens = preset.workers.listens if preset.workers else ""
    rows = await fetched(connection, _BACKENDS, {"listens": listens or None, "cap": CAP})
    return tuple(
        Backend(
            pid=pid,
            address=address or "",
            port=port if port is not None and port >= 0 else None,
            application=application or "",
            user=user or "",
            own=own,
            hidden=hidden,
            listens=said,
            quiet=quiet,
        )
        for pid, address, port, application, user, own, hidden, said, quiet in rows
    )


async def workers(connection: Connection, reads: Reads) -> tuple[QueueWorker, ...] | None:
    """The rows of the queue's table of workers; None: it has none."""
    statement = reads.workers(CAP)
    if statement is None:
        return None
    return tuple(
        QueueWorker(id=id, heartbeat_age=age, host=host or "", pid=pid, queues=tuple(queues or ()))
        for id, age, host, pid, queues in await fetched(connection, statement)
    )
