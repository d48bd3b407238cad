"""Crontabs of the same kinds as those of tests/cases/crontabs.json, with answers that were worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from console.schedules.model import Source
from tests.schedules.case import explained
from tests.schedules.test_cases import units

SIBLINGS: list[dict[str, Any]] = msgspec.json.decode(
    (Path(__file__).parents[1] / "cases" / "siblings.json").read_bytes()
)["cases"]


def differences(case: dict[str, Any]) -> list[str]:
    """What is not as expected: the class and roles of the first entry, the units of all."""
    found = explained(case["crontab"], msgspec.convert(case["source"], Source), case["scripts"])
    is_ = {
        "class": found[0].kind,
        "roles": [
            {
                "name": role.name,
                "argv": list(role.argv),
                "instances": role.instances,
                "user": role.user,
                "workdir": role.workdir,
                "env": dict(role.environment),
            }
            for role in found[0].roles
        ],
        "units": units(found),
    }
    return [
        f"{key} {value!r}\n  instead of {case['expected'][key]!r}"
        for key, value in is_.items()
        if value != case["expected"][key]
    ]


@pytest.mark.parametrize("case", SIBLINGS, ids=[case["id"] for case in SIBLINGS])
def test_a_sibling_is_what_it_is(case: dict[str, Any]) -> None:
    assert differences(case) == []


def test_how_many_are_right(figure: Callable[[str], None]) -> None:
    right = sum(not differences(case) for case in SIBLINGS)
    figure(f"siblings: class, roles and units exactly right in {right} of {len(SIBLINGS)}")
    assert right == len(SIBLINGS)
