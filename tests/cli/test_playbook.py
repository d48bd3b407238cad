"""`worktop playbook`, as far as it needs neither host nor queue."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.cli.main import run

GOOD = """\
+++
name = "read-this"
title = "Read this"
+++
## 1. Read {role}
Read it.

```toml
action = "note"
```
"""


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("WORKTOP_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def test_a_playbook_of_ones_own_is_listed_shown_and_looked_for_faults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "worktop" / "playbooks"
    folder.mkdir(parents=True)
    (folder / "read.md").write_text(GOOD)
    assert run(["playbook", "list"]) == 0
    assert any(line.split() == ["read-this", "Read", "this"] for line in capsys.readouterr().out.split("\n"))
    assert run(["playbook", "list", "--json"]) == 0
    listed = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert listed["read-this"]["playbook"]["steps"][0]["action"] == "note"
    assert run(["playbook", "show", "read-this"]) == 0
    assert "1. Read {role}" in capsys.readouterr().out
    bad = folder / "bad.md"
    bad.write_text(GOOD.replace('"note"', '"\x1b[31mnotes"'))
    assert run(["playbook", "check", str(folder / "read.md"), str(bad)]) == 1
    told = capsys.readouterr().out
    assert "read.md: without fault" in told and "bad.md:9: no TOML" in told and "\x1b" not in told
    assert run(["playbook", "check", str(folder / "read.md")]) == 0
    assert run(["playbook", "check", str(folder / "none.md")]) == 2
    assert run(["playbook", "run", "bad"]) == 2
    assert "worktop playbook check" in capsys.readouterr().err


def test_no_run_is_nothing_and_one_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["playbook", "status"]) == 4
    assert run(["playbook", "status", "reports"]) == 2
    assert "run reports: there is no journal of it here" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["list", "show", "check", "run", "resume", "rollback", "abandon", "status"])
def test_every_part_has_help_with_an_example_and_its_exit_codes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["playbook", name, "--help"]) == 0
    text = capsys.readouterr().out
    assert "Example" in text and "Exit codes" in text
