"""What is told of a role after it was scaled."""

from __future__ import annotations

from typing import Any

import pytest

from console.actions.scale import told_of
from tests.fleet.facts import NOW, unit

ONE, TWO, THREE = (f"mail-worker@{number}.service" for number in (1, 2, 3))


@pytest.mark.parametrize(
    ("other", "told", "right"),
    [
        ({}, "2 of mail run now", True),
        ({"restarts": 1, "started": NOW - 3}, "2 of mail run now", True),
        (
            {"active": "activating", "sub": "auto-restart", "restarts": 1},
            f"1 of mail runs now; {TWO} fails and is started again and again",
            False,
        ),
        (
            {"restarts": 9, "restarts_per_minute": 17.0, "started": NOW - 1},
            f"1 of mail runs now; {TWO} fails and is started again and again",
            False,
        ),
    ],
)
def test_what_fails_again_and_again_does_not_count_as_running(other: dict[str, Any], told: str, right: bool) -> None:
    assert told_of("mail", [unit(ONE), unit(TWO, **other)], [], NOW) == (told, right)


def test_what_others_have_started_or_stopped_meanwhile_is_named() -> None:
    assert told_of("mail", [unit(ONE)], [TWO, THREE], NOW) == (
        f"1 of mail runs now; not as this has left them: {TWO}, {THREE}",
        False,
    )
