"""The crontabs of tests/cases/crontabs.json and their right answers."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from console.schedules.model import Explained, Source
from tests.schedules.case import explained

CASES: list[dict[str, Any]] = msgspec.json.decode((Path(__file__).parents[1] / "cases" / "crontabs.json").read_bytes())[
    "cases"
]
_KINDS = {"anacrontab": "anacron"}


def answers(case: dict[str, Any]) -> tuple[Explained, ...]:
    source = case["source"]
    kind = _KINDS.get(source["kind"], source["kind"])
    place = msgspec.convert({"kind": kind, "path": source["path"], "user": source.get("user", "")}, Source)
    return explained(case["crontab"], place, case["scripts"])


def differences(case: dict[str, Any]) -> list[str]:
    """What is not as expected, each as a line."""
    expected = case["expected"]
    found = answers(case)
    first = found[0]
    role = first.roles[0] if first.roles else None
    argv = " ".join(map(shlex.quote, role.argv)) if role else None
    wanted = expected["worker_command"]
    if wanted is not None:
        words = tuple(shlex.split(wanted.replace("<", "'<").replace(">", ">'")))
        if words[-1] == "...":  # the words before it are the right ones
            same = role is not None and role.argv[: len(words) - 1] == words[:-1]
        else:
            same = role is not None and role.argv == words
    else:
        same = role is None
    wrong = [] if same else [f"argv {argv!r} instead of {wanted!r}"]
    checks = {
        "class": (first.kind, expected["class"]),
        "pattern": (first.pattern, expected["pattern"]),
        "confidence": (first.confidence, expected["confidence"]),
        "role": (role.name if role else None, expected["role_guess"]),
        "instances": (role.instances if role else 0, expected["instances"]),
        "user": (role.user if role else first.entry.user, expected["user"]),
        "workdir": (role.workdir if role else None, expected["workdir"]),
        "env": (dict(role.environment) if role else {}, expected["env"]),
        "units": (units(found), wanted_units(expected)),
    }
    wrong += [f"{name} {is_!r}\n      instead of {should!r}" for name, (is_, should) in checks.items() if is_ != should]
    missing = set(expected["hazards"]) - {hazard for each in found for hazard in each.hazards}
    return wrong + ([f"hazards without {sorted(missing)}"] if missing else [])


def units(found: tuple[Explained, ...]) -> dict[str, str]:
    return {name: text for each in found for name, text in each.units}


def wanted_units(expected: dict[str, Any]) -> dict[str, str]:
    """By file name: a lone service and timer are called like the role."""
    wanted: dict[str, str] = {}
    for name, text in expected["units"].items():
        if isinstance(text, dict):
            wanted |= {f"{name}.{kind}": inner for kind, inner in text.items()}
        else:
            wanted[name if "." in name else f"{expected['role_guess']}.{name}"] = text
    return wanted


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_crontab_is_what_it_is(case: dict[str, Any]) -> None:
    assert differences(case) == []


def test_how_many_are_right(figure: Callable[[str], None]) -> None:
    right = sum(not differences(case) for case in CASES)
    figure(f"cases: class, user, workdir, instances, argv and units exactly right in {right} of {len(CASES)}")
    assert right == len(CASES)
