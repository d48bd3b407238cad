"""The crontabs of tests/cases through the command, each laid out below a root of its own as it lay on its host."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console.cli.main import run
from console.errors import EXIT_OK
from tests.host.test_inventory import build
from tests.schedules.test_cases import CASES, wanted_units


def answer(case: dict[str, Any], root: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The entries of the case's own crontab, as JSON."""
    build(root, {case["source"]["path"]: case["crontab"], **case["scripts"]})
    assert run(["schedules", "explain", "--root", str(root), "--json"]) == EXIT_OK
    told: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return [each for each in told if each["source"] == case["source"]["path"]]


def differences(case: dict[str, Any], entries: list[dict[str, Any]]) -> list[str]:
    expected = case["expected"]
    first = entries[0]
    role = first["roles"][0] if first["roles"] else {"instances": 0, "user": first["user"], "workdir": None, "env": {}}
    units = {name: text for each in entries for name, text in each["units"].items()}
    wanted = expected["worker_command"]
    argv = shlex.split(wanted.replace("<", "'<").replace(">", ">'")) if wanted is not None else []
    if argv[-1:] == ["..."]:  # the words before it are the right ones
        argv = [*argv[:-1], *role["argv"][len(argv) - 1 :]]
    checks = {
        "class": (first["class"], expected["class"]),
        "instances": (role["instances"], expected["instances"]),
        "user": (role["user"], expected["user"]),
        "workdir": (role["workdir"], expected["workdir"]),
        "env": (role["env"], expected["env"]),
        "argv": (role.get("argv", []), argv),
        "units": (units, wanted_units(expected)),
    }
    return [f"{name} {is_!r}\n      instead of {should!r}" for name, (is_, should) in checks.items() if is_ != should]


def test_every_case_below_a_root(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], figure: Callable[[str], None]
) -> None:
    wrong: dict[str, list[str]] = {}
    for case in CASES:
        root = tmp_path / case["id"]
        root.mkdir()
        found = differences(case, answer(case, root, capsys))
        if found:
            wrong[case["id"]] = found
    figure(f"cases below a root: exactly right in {len(CASES) - len(wrong)} of {len(CASES)}")
    assert wrong == {}
