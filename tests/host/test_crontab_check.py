"""What crontab(1) says of a file, and that the reading here agrees with it."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from console.errors import HostError
from console.host.crontab_check import check_crontab
from console.schedules.crontab import WHOLE_FILE, entries
from console.schedules.model import Source
from tests.host.test_calendar import random_expression

GOOD, BAD, UNENDED = b"* * * * * true\n", b"61 * * * * true\n", b"* * * * * true"
MINE = Source(kind="user", path="/var/spool/cron/crontabs/me", user="me")


@pytest.mark.parametrize(("content", "why"), [(BAD, "bad minute"), (UNENDED, "missing newline before EOF")])
async def test_what_cron_would_refuse_is_not_installed(content: bytes, why: str) -> None:
    with pytest.raises(HostError, match=why):
        await check_crontab("/etc/crontab", content, GOOD)
    with pytest.raises(HostError, match=why):
        await check_crontab("/etc/crontab", content, None)
    await check_crontab("/etc/crontab", content, BAD)


async def test_what_cron_takes_is_installed() -> None:
    await check_crontab("/etc/crontab", GOOD, None)
    await check_crontab("/etc/crontab", b"", None)


def refused(tmp_path: Path, content: bytes) -> bool:
    file = tmp_path / "crontab"
    file.write_bytes(content)
    return subprocess.run(["crontab", "-n", file], capture_output=True, check=False).returncode != 0


def test_the_expressions_that_are_tried_are_valid(tmp_path: Path) -> None:
    chance = random.Random(20261129)
    lines = [f"{random_expression(chance).text} true\n" for _ in range(1000)]
    assert not refused(tmp_path, "".join(lines).encode())


PIECES = (
    "* * * * * true",
    "@daily",
    "@REBOOT x",
    "5/15 * * * * x",
    "* * * * mon#1 x",
    "50-10 * * * * x",
    "\r",
    "\x0c",
    "=",
)
PIECES += (
    "A=b",
    "MAILTO=",
    'X="a"b',
    "X = 'a'  ",
    "# \0",
    "\0",
    "\t# c",
    " * * * * *\tx",
    "* * * * * *",
    "*5 * * * * x",
    "-",
)
PIECES += (
    "* * 31 2 * x",
    "'A B' = c",
    "A B = c",
    "A\x0b=c",
    "A='",
    "x" * 998,
    "x" * 999,
    "* * * * * " + "x" * 998,
    "\\",
)


def test_files_are_refused_here_where_crontab_refuses_them(tmp_path: Path) -> None:
    chance = random.Random(7)
    for _ in range(150):
        lines = [chance.choice(PIECES) for _ in range(chance.randint(1, 2))]
        content = ("\n".join(lines) + chance.choice(("\n", "\n", "\n", ""))).encode()
        found = [entry.problems[-1] for entry in entries(content, MINE) if entry.active and entry.problems]
        here = any(each.endswith(WHOLE_FILE) for each in found)
        if any(entry.active for entry in entries(content, MINE)):
            assert here == refused(tmp_path, content), content
