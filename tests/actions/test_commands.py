"""The commands: what they print, what they ask, and with what they exit."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import psycopg
import pytest

from console.cli.main import run

Worktop = Callable[..., tuple[int, str, str]]


@pytest.fixture
def settings(database: str, tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "worktop.toml"
    file.write_text(f'[database]\ndsn = "{database}"\npreset = "worktop"\n[roles.letters]\n[roles.films]\n')
    return {"WORKTOP_CONFIG": str(file), "WORKTOP_STATE": str(tmp_path / "state"), "COLUMNS": "120"}


@pytest.fixture
def worktop(settings: dict[str, str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Worktop:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)

    def command(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = run(list(arguments))
        said = capfd.readouterr()
        return code, said.out, said.err

    return command


def rows(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(query)
        return cursor.fetchall() if cursor.description else []


FAILED = """INSERT INTO worktop_jobs (queue, type, status, attempts, finished_at, last_error)
            SELECT 'letters', 'send', 'failed', 4, now(), 'token=hunter2' FROM generate_series(1, 3)"""
STATES = "SELECT status, count(*) FROM worktop_jobs GROUP BY 1 ORDER BY 1"


def test_retry_undo_and_audit(worktop: Worktop, database: str) -> None:
    rows(database, FAILED)
    assert worktop("retry", "letters", "--dry-run")[0] == 0
    code, out, err = worktop("retry", "letters")
    assert code == 2 and out.startswith("Retry 3 failed jobs of letters") and "--yes" in err
    assert "worktop retry --role letters" in out and "UPDATE" in out and "hunter2" not in out
    assert worktop("--read-only", "retry", "letters", "--yes")[0] == 2
    assert rows(database, STATES) == [("failed", 3)]

    code, out, _ = worktop("retry", "--role", "letters", "--yes", "--json", "--why", "the provider is back")
    told = json.loads(out)
    assert code == 0 and told["outcome"]["rows"] == 3 and told["plan"]["consent"]["kind"] == "confirm"
    assert rows(database, STATES) == [("waiting", 3)]
    code, out, _ = worktop("retry", "letters", "--yes")
    assert code == 4 and "nothing to retry of letters" in out

    assert told["plan"]["id"] in worktop("undo", "--list")[1]
    assert worktop("undo", "--yes")[0] == 0
    assert rows(database, STATES) == [("failed", 3)]
    assert worktop("undo", "--yes")[0] == 4
    code, out, _ = worktop("audit", "--json")
    entries = json.loads(out)
    assert [(entry["verb"], entry["state"], entry["rows"]) for entry in entries] == [
        ("undo", "done", 3),
        ("retry", "done", 3),
    ]
    assert entries[1]["why"] == "the provider is back" and "hunter2" not in out
    assert "Retry 3 failed jobs of letters" in worktop("audit", "-n", "5")[1]


def test_wrong_usage_does_nothing(worktop: Worktop) -> None:
    for arguments, said in (
        (("retry",), "neither a role nor jobs"),
        (("retry", "nobody"), "known roles"),
        (("retry", "letters", "--role", "films"), "expected one role"),
        (("retry", "letters", "--id", "1"), "both a role and --id"),
        (("retry", "--id", "1", "--older-than", "1h"), "--older-than"),
        (("retry", "letters", "--older-than", "soon"), "time span"),
        (("reclaim", "letters", "--verdict", "alive"), "--verdict"),
        (("priority", "letters"), "--to"),
        (("undo", "20260101T000000Z-000000"), "no journal"),
        (("undo", "../../etc/passwd"), "no journal"),
    ):
        code, _, err = worktop(*arguments)
        assert code == 2 and said in err, (arguments, err)
        assert len(err.strip().splitlines()) <= 5, err


def test_on_a_terminal_it_asks(settings: dict[str, str], database: str) -> None:
    rows(database, FAILED)
    for answer, code, states in (("n", 2, [("failed", 3)]), ("y", 0, [("waiting", 3)])):
        console = pexpect.spawn(
            sys.executable,
            ["-m", "console", "retry", "letters"],
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "xterm", **settings},
            encoding="utf-8",
            timeout=60,
        )
        console.expect_exact("Apply this? [y/N]")
        console.sendline(answer)
        console.expect(pexpect.EOF)
        console.close()
        assert console.exitstatus == code
        assert rows(database, STATES) == states
