"""`worktop schedules` on files below another root: lists, explains, translates, and writes what it would install."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.cli.main import run
from console.errors import EXIT_FAILED, EXIT_NOTHING, EXIT_OK, EXIT_USAGE
from tests.host.test_inventory import EVERYTHING, build

LAUNCHER = "#!/bin/sh\ncd /srv/mail || exit 1\nfor n in 1 2; do nohup ./send --queue mail >>log 2>&1 & done\n"
FILES = {
    **EVERYTHING,
    "/var/spool/cron/crontabs/deploy": "PGPASSWORD=hunter2\n* * * * * /srv/mail/start.sh\n30 4 * * * /srv/backup.sh\n",
    "/srv/mail/start.sh": LAUNCHER,
    "/srv/backup.sh": "#!/bin/sh\npg_dump app > /backup/app\n",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("other"), FILES)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["schedules", *arguments, "--json"]) == EXIT_OK
    return json.loads(capsys.readouterr().out)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal in which no column is left out."""
    monkeypatch.setenv("COLUMNS", "160")


def test_the_list_of_another_host(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedules", "--root", str(root)]) == EXIT_OK
    lines = capsys.readouterr().out.splitlines()
    assert {"CLASS", "ENTRY", "ROLE", "WHEN", "NEXT", "ALIVE", "WHAT"} <= set(lines[0].split())
    mail = next(line for line in lines if "deploy:2" in line)
    assert "launcher" in mail and "every minute" in mail
    assert "every day 04:30" in next(line for line in lines if "deploy:3" in line)
    known = told(capsys, "--root", str(root))
    assert known["dialect"] == "debian" and known["zone"] == "Europe/Berlin" and known["unread"] == []
    assert len(known["entries"]) == len(lines) - 1


def test_one_object_per_entry(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (mail,) = told(capsys, "explain", "deploy:2", "--root", str(root))
    assert mail["source"] == "/var/spool/cron/crontabs/deploy" and mail["line"] == 2 and mail["user"] == "deploy"
    assert mail["text"] == "* * * * * /srv/mail/start.sh"
    assert (mail["class"], mail["confidence"]) == ("launcher", "high")
    (role,) = mail["roles"]
    assert (role["instances"], role["user"], role["workdir"]) == (2, "deploy", "/srv/mail")
    assert role["argv"] == ["./send", "--queue", "mail"]
    schedule = mail["schedule"]
    assert schedule["expression"] == "* * * * *" and len(schedule["next_runs"]) == 3
    assert schedule["next_runs"][0].endswith(("+01:00", "+02:00"))
    (name,) = mail["units"]
    assert "ExecStart=/srv/mail/send --queue mail" in mail["units"][name]
    assert mail["evidence"] and mail["alive"] is None
    everything = told(capsys, "explain", "--root", str(root))
    assert {"crontab:deploy:2", "/etc/cron.daily/rotate", "timer:sync.timer"} <= {each["name"] for each in everything}
    assert all(each["line"] >= 1 for each in everything)
    assert "hunter2" not in json.dumps(everything)


def test_explained_for_a_person(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedules", "--root", str(root), "explain", "deploy:2"]) == EXIT_OK
    text = capsys.readouterr().out
    for part in ("crontab:deploy:2  ▲ launcher", "EVIDENCE", "instances", "every minute", "ExecStart="):
        assert part in text
    assert "hunter2" not in text


def test_what_is_accepted_is_said(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedules", "explain", "nobody:3", "--root", str(root)]) == EXIT_USAGE
    said = capsys.readouterr().err
    assert "there is no such entry; there are deploy:2, deploy:3" in said
    assert run(["schedules", "--root", "/nowhere"]) == EXIT_USAGE


def test_units_are_written_with_a_way_back(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "units"
    arguments = ["schedules", "translate", "deploy:3", "--out", str(out), "--root", str(root)]
    assert run(arguments) == EXIT_OK, capsys.readouterr()
    assert "the timer fires when cron does" in capsys.readouterr().out
    names = {path.name for path in out.iterdir()}
    assert {"README.md"} < names and any(name.endswith(".timer") for name in names)
    readme = (out / "README.md").read_text()
    assert "systemctl disable --now" in readme and "worktop schedules restore deploy:3" in readme
    assert "hunter2" not in readme
    secret = next(path for path in out.iterdir() if "hunter2" in path.read_text())
    assert secret.suffix == ".env" and secret.stat().st_mode & 0o777 == 0o600
    assert run(arguments) == EXIT_USAGE
    assert "is there already" in capsys.readouterr().err
    assert run(["schedules", "translate", "/etc/cron.d/images.old:1", "--root", str(root)]) == EXIT_NOTHING


def test_a_source_that_cannot_be_read_is_told_and_the_others_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = build(tmp_path, {"/etc/cron.d/binary": b"\0", "/etc/cron.d/fine": "* * * * * root true\n"})
    assert run(["schedules", "--root", str(root)]) == EXIT_FAILED
    out = capsys.readouterr().out
    assert "unread" in out and "NUL byte" in out and "/etc/cron.d/fine:1" in out
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run(["schedules", "--root", str(empty)]) == EXIT_OK
    assert capsys.readouterr().out == "nothing is scheduled here\n"


def test_no_secret_of_a_line_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "* * * * * nohup /srv/run --loop --token hunter2 --api-key=hunter2 &\n"
    files = {**EVERYTHING, "/var/spool/cron/crontabs/deploy": f"DB_PASSWORD=hunter2\n{line}"}
    root = str(build(tmp_path, files))
    for arguments in ([], ["--json"], ["explain"], ["explain", "--json"], ["translate", "deploy:2"]):
        run(["schedules", *arguments, "--root", root])
        said = capsys.readouterr()
        assert "--token" in said.out or not arguments, said
        assert "hunter2" not in said.out + said.err, arguments
