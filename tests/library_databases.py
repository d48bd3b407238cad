"""Databases with the tables of real queue libraries, to copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.postgres import Server
from tests.queue import libraries
from tests.queue.libraries import Worker


@pytest.fixture(scope="session")
def procrastinate_template(postgres: Server) -> str:
    name = postgres.new_database()
    libraries.install_procrastinate(postgres.dsn(name))
    return name


@pytest.fixture
def procrastinate_database(postgres: Server, procrastinate_template: str) -> Iterator[str]:
    """The DSN of a fresh database with the tables of procrastinate."""
    name = postgres.new_database(procrastinate_template)
    yield postgres.dsn(name)
    postgres.drop_database(name)


@pytest.fixture(scope="session")
def pgboss_template(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> str:
    libraries.need_pgboss()
    name = postgres.new_database()
    queues = [
        {"name": "q"},
        {"name": "other"},
        {"name": "keyed", "policy": "stately"},
        {"name": "own", "partition": True},
    ]
    log = tmp_path_factory.mktemp("pgboss") / "install"
    libraries.pgboss_worker(postgres.dsn(name), log, queues=queues).process.wait()
    return name


@pytest.fixture
def pgboss_database(postgres: Server, pgboss_template: str) -> Iterator[str]:
    """The DSN of a fresh database with pg-boss and its queues q, other, keyed (stately) and own (partitioned)."""
    name = postgres.new_database(pgboss_template)
    yield postgres.dsn(name)
    postgres.drop_database(name)


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Callable[[Callable[..., Worker]], Callable[..., Worker]]]:
    """workers(procrastinate_worker)(dsn, ...): started, and killed when the test ends."""
    started: list[Worker] = []

    def of(start: Callable[..., Worker]) -> Callable[..., Worker]:
        def begin(dsn: str, **options: object) -> Worker:
            started.append(start(dsn, tmp_path / f"worker{len(started)}.log", **options))
            return started[-1]

        return begin

    yield of
    for worker in started:
        worker.kill()


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Jobs that wait for it end when it is touched."""
    return tmp_path / "gate"
