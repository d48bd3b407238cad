"""What a diagnosis asks of the queue, on a real server."""

from __future__ import annotations

import psycopg

from console.config import Config, Database
from console.fleet.model import Role
from console.queue.client import QueueClient
from tests.postgres import Server

MAIL = Role(name="mail", queues=("mail",))


def client(dsn: str) -> QueueClient:
    return QueueClient(Config(database=Database(dsn=dsn, configured=True), roles=(MAIL,)))


async def test_connections_paused_queues_and_who_finished_what(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as db:
        db.execute("INSERT INTO worktop_queues (queue, paused) VALUES ('mail', true), ('other', false)")
        db.execute(
            """INSERT INTO worktop_jobs (queue, type, status, attempts, finished_at, lease_host, lease_unit, lease_pid)
               SELECT 'mail', 'x', 'done', 1, now() - i * interval '1 min', 'web1', 'mail@' || i || '.service', 100 + i
               FROM generate_series(1, 3) AS i"""
        )
        own = client(database)
        try:
            found = await own.room(MAIL)
        finally:
            await own.close()
        usable = db.execute(
            "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
        ).fetchone()
    assert found.paused == ("mail",) and found.problem == ""
    assert found.connections is not None and found.connections >= 2
    assert usable is not None and found.connections_max == usable[0]
    assert [(job.holder.unit, job.holder.pid) for job in found.finished if job.holder] == [
        ("mail@1.service", 101),
        ("mail@2.service", 102),
        ("mail@3.service", 103),
    ]


async def test_a_database_that_is_not_there_is_a_problem_and_no_error(postgres: Server) -> None:
    own = client(postgres.dsn("no_such_database"))
    try:
        found = await own.room(MAIL)
    finally:
        await own.close()
    assert found.connections is None and "no_such_database" in found.problem
