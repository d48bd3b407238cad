"""worktop queue install: idempotent, in one transaction, in the schema that is configured."""

from __future__ import annotations

import concurrent.futures
import json
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from console.cli.main import run
from console.config import Config, Database
from console.errors import QueueError
from console.fleet.model import Count, JobQuery
from console.queue.client import QueueClient
from console.queue.install import VERSION, install, script
from tests.postgres import Server


def test_installing_twice_changes_nothing(empty_database: str) -> None:
    database = Database(dsn=empty_database)
    assert install(database).before is None
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("SELECT worktop_enqueue('q', 't')")
    assert install(database).before == VERSION
    with psycopg.connect(empty_database) as connection:
        assert connection.execute("SELECT count(*) FROM worktop_jobs").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM worktop_schema").fetchone() == (1,)


async def test_version_1_is_upgraded_with_its_rows(empty_database: str) -> None:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(Path(__file__).with_name("version1.sql").read_bytes())
        connection.execute("SELECT worktop_enqueue('q', 't', idempotency_key => 'once')")
        connection.execute("SELECT worktop_claim('{q}', 'web1', 'boot', 'q@1.service', 4711, 99)")
    database = Database(dsn=empty_database)
    assert (install(database).before, install(database).before) == (1, VERSION)
    with psycopg.connect(empty_database, autocommit=True) as connection:
        assert connection.execute("SELECT worktop_enqueue('q', 't', idempotency_key => 'once')").fetchone() == (1,)
        assert connection.execute("SELECT status FROM worktop_jobs").fetchall() == [("running",)]
        old = connection.execute("SELECT to_regclass('worktop_jobs_done'), to_regclass('worktop_jobs_failed')")
        assert old.fetchone() == (None, None)
    client = QueueClient(Config(database=database))
    try:
        assert [check.text for check in await client.checks() if check.state != "ok"] == []
    finally:
        await client.close()


async def test_what_version_1_lacks_is_told_and_lists_work_all_the_same(empty_database: str) -> None:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(Path(__file__).with_name("version1.sql").read_bytes())
        connection.execute("SELECT worktop_enqueue('q', 't')")
    client = QueueClient(Config(database=Database(dsn=empty_database)))
    try:
        told = {check.name: check for check in await client.checks() if check.state != "ok"}
        assert told["schema version"].remedy == "run `worktop queue install`"
        assert "worktop_jobs_done_at" in told["indexes"].text
        assert (await client.poll()).problem is None
        assert (await client.page(JobQuery())).total == Count(1)
    finally:
        await client.close()


def test_installing_at_the_same_time_from_everywhere(empty_database: str) -> None:
    database = Database(dsn=empty_database, schema="jobs")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: install(database), range(8)))
    assert sorted(str(result.before) for result in results) == [str(VERSION)] * 7 + ["None"]


def test_a_schema_of_its_own_and_a_name_that_needs_quotes(empty_database: str) -> None:
    install(Database(dsn=empty_database, schema='My "Jobs"'))
    with psycopg.connect(empty_database) as connection:
        assert connection.execute('SELECT "My ""Jobs""".worktop_enqueue(\'q\', \'t\')').fetchone() == (1,)
        assert connection.execute("SELECT to_regclass('public.worktop_jobs')").fetchone() == (None,)


def test_a_failure_leaves_nothing_behind(empty_database: str) -> None:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("CREATE VIEW worktop_jobs AS SELECT 1")
    with pytest.raises(QueueError, match="install the job table"):
        install(Database(dsn=empty_database))
    with psycopg.connect(empty_database) as connection:
        assert connection.execute("SELECT to_regclass('worktop_schema')").fetchone() == (None,)


def test_a_newer_version_is_left_alone(empty_database: str) -> None:
    install(Database(dsn=empty_database))
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("INSERT INTO worktop_schema (version) VALUES (99)")
    with pytest.raises(QueueError, match="version 99 is there, this worktop knows 2; use a newer worktop"):
        install(Database(dsn=empty_database))


def test_the_dry_run_is_what_psql_would_take(postgres: Server, empty_database: str) -> None:
    text = script(Database(dsn=empty_database, schema="jobs"))
    psql = [str(postgres.program("psql")), "-qX", "-v", "ON_ERROR_STOP=1", empty_database]
    subprocess.run(psql, input=text, text=True, check=True, capture_output=True)
    assert install(Database(dsn=empty_database, schema="jobs")).before == VERSION


def test_the_command_says_what_it_did(
    empty_database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = dict(part.split("=", 1) for part in empty_database.split())
    for name, key in (("PGHOST", "host"), ("PGDATABASE", "dbname"), ("PGUSER", "user")):
        monkeypatch.setenv(name, settings[key])
    assert run(["queue", "install", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "database": settings["dbname"],
        "schema": "public",
        "before": None,
        "version": VERSION,
    }
    assert run(["queue", "install"]) == 0
    assert "was there already" in capsys.readouterr().out
    monkeypatch.setenv("PGHOST", "/nowhere")
    assert run(["queue", "install", "--dry-run"]) == 0
    assert "CREATE TABLE IF NOT EXISTS worktop_jobs" in capsys.readouterr().out
    assert run(["queue", "install"]) == 1
    assert "no server on that socket; is PostgreSQL running there?" in capsys.readouterr().err


def test_help_and_configuration_do_not_import_psycopg() -> None:
    modules = "console.cli.main, console.config, console.cli.queue, console.cli.worker"
    probe = f"import sys, {modules}; print('psycopg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
