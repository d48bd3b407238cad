from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.fleet.model import Role
from console.schedules.commands import Matcher, carries_only, is_script_shell, is_shell_text

MATCHER = Matcher(
    [Role(name="mail", match=("worker --role mail",)), Role(name="any", match=("worker", "^php artisan"))]
)


@pytest.mark.parametrize(
    ("command", "role"),
    [
        (["/usr/bin/python3", "/usr/bin/worktop", "worker", "--role", "mail"], "mail"),
        (["worker", "--role", "mailing"], "mail"),
        (["worker", "--role", "web"], "any"),
        (["php", "artisan", "queue:work"], "any"),
        (["bash", "/opt/worker.sh"], "any"),
        (["sh", "-c", "worker --role mail"], ""),
        (["/bin/bash", "-lc", "worker --role mail"], ""),
        (["busybox", "sh", "-c", "worker --role mail"], ""),
        (["pgrep", "-f", "worker --role mail"], ""),
        (["grep", "worker --role mail"], ""),
        (["vim", "worker.py"], ""),
        (["flock", "-n", "/l", "worker", "--role", "mail"], ""),
        (["su", "-", "app", "-c", "worker --role mail"], ""),
        (["/usr/sbin/CRON", "-f", "worker"], ""),
        (["tmux", "new", "-d", "worker --role mail"], ""),
        ([], ""),
        ([""], ""),
    ],
)
def test_which_command_line_is_a_worker(command: list[str], role: str) -> None:
    assert MATCHER.role_of(command) == role


def test_shells() -> None:
    assert is_shell_text(["bash", "-e", "-o", "pipefail", "-c", "x"]) or not is_shell_text(["bash", "-e", "x.sh", "-c"])
    assert is_script_shell(["/bin/sh", "/srv/run.sh"]) and is_script_shell(["-bash"])
    assert not is_script_shell(["python3", "run.py"])


@given(st.lists(st.text()))
def test_no_command_line_breaks_it(command: list[str]) -> None:
    MATCHER.role_of(command)
    carries_only(command)
