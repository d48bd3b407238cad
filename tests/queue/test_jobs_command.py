"""`worktop jobs`: the options, the text, the JSON and the exit codes, on a real server."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from console.cli.main import run

Db = psycopg.Connection[Any]


@pytest.fixture
def db(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Db]:
    """The job table that the command finds by PG*, away from any configuration."""
    settings = dict(part.split("=", 1) for part in database.split())
    for name, key in (("PGHOST", "host"), ("PGDATABASE", "dbname"), ("PGUSER", "user")):
        monkeypatch.setenv(name, settings[key])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            """INSERT INTO worktop_jobs (queue, type, status, attempts, finished_at, last_error)
               SELECT 'mail', 'type' || i % 2, 'failed', i % 3, now() - i * interval '1 min', 'Timeout ' || i
               FROM generate_series(1, 25) AS i"""
        )
        yield connection


def listed(out: str) -> list[int]:
    return [int(line.split()[0]) for line in out.splitlines()[1:]]


def test_pages_follow_the_command_that_is_printed(db: Db, capsys: pytest.CaptureFixture[str]) -> None:
    words, seen = ["jobs", "--state", "failed", "--limit", "10", "--sort", "finished", "--desc"], []
    for _ in range(3):
        assert run(words) == 0
        captured = capsys.readouterr()
        seen += listed(captured.out)
        *_, more = captured.err.partition("more: ")
        words = shlex.split(more)[1:]
    assert (seen, words) == (list(range(1, 26)), [])


def test_who_holds_a_job_is_named(db: Db, capsys: pytest.CaptureFixture[str]) -> None:
    db.execute(
        """INSERT INTO worktop_jobs (queue, type, status, lease_token, lease_expires, started_at, lease_host,
                                     lease_unit, lease_pid)
           VALUES ('mail', 'newsletter', 'running', 7, now() - interval '1 min', now() - interval '2 min', 'wrk01',
                   'mail-worker@2.service', 812)"""
    )
    for words in (["jobs", "--state", "stuck"], ["jobs", "--state", "running"], ["job", "26"]):
        assert run(words) == 0
        assert "mail-worker@2 pid 812" in capsys.readouterr().out, words


def test_it_filters_sorts_and_says_how_many(db: Db, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", "--state", "failed", "--type", "type1", "--limit", "2"]) == 0
    captured = capsys.readouterr()
    assert listed(captured.out) == [25, 23]  # ended jobs: the newest first
    assert "2 of 13; more: worktop jobs --state failed --limit 2 --type type1 --after " in captured.err
    assert run(["jobs", "--state", "failed", "--contains", "TIMEOUT 2", "--asc"]) == 0
    assert listed(capsys.readouterr().out) == [2, 20, 21, 22, 23, 24, 25]
    assert run(["jobs", "--state", "failed", "--sort", "attempts", "--desc", "--limit", "3"]) == 0
    assert listed(capsys.readouterr().out) == [23, 20, 17]
    assert run(["jobs", "--state", "failed", "--contains", "%"]) == 0
    assert capsys.readouterr().out == "no failed jobs like that\n"
    assert run(["jobs"]) == 0
    assert capsys.readouterr().out == "no waiting jobs\n"


def test_json_is_the_page_with_its_next(db: Db, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", "--state", "failed", "--limit", "20", "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert (len(page["jobs"]), page["total"]) == (20, {"n": 25, "kind": "exact"})
    assert run(["jobs", "--state", "failed", "--limit", "20", "--json", "--after", page["next"]]) == 0
    last = json.loads(capsys.readouterr().out)
    assert [job["id"] for job in last["jobs"]] == ["5", "4", "3", "2", "1"]
    assert last.get("next") is None


def test_a_place_that_is_none_fails_with_a_line(db: Db, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", "--after", "17"]) == 1
    said = capsys.readouterr().err
    assert "list waiting jobs: the place to go on after is not of this list; give the `next` of a page" in said
    assert run(["jobs", "--sort", "size"]) == 2
    assert "'size' is not one of" in capsys.readouterr().err
