"""What is written into a unit is what the process receives: arguments and environment through a real systemd."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable

import pytest

from console.schedules.unittext import environment_assignment, environment_file_line, exec_argument
from tests.conftest import DemoHost
from tests.host.unpack import unpack

pytestmark = pytest.mark.host

VALUES = 1000
AT_ONCE = 200  # arguments of one ExecStart
FOLDER = "/run/quoting"
RECORD = f"""#!/bin/sh
cat /proc/$$/cmdline >> {FOLDER}/argv
cat /proc/$$/environ > {FOLDER}/environ
"""
PIECES = [
    *"abcXYZ019_@%+=:,./~-",
    *" \t\n\r'\"\\$`;&|<>(){}[]*?!#^",
    "%%", "%h", "%i", "%H", "$HOME", "${HOME}", "$$", "\\n", "\\x41", "\\", "${", "é", "\u2028", "日本", "\x01",
    "\x1b[31m", "\x7f", "\x08", "\x0b", "\x0c", "-", "--", "@", "+", "!", ":", "'a'", '"b"', " \\ ", "\\\n", "#", ";",
    "~/x", "$(id)", "`id`", "\U0001f600",
]  # fmt: skip


def hostile(seed: int) -> list[str]:
    chance = random.Random(seed)
    alone = ["", " ", *PIECES]
    return alone + ["".join(chance.choices(PIECES, k=chance.randint(1, 12))) for _ in range(VALUES - len(alone))]


def content(host: DemoHost, script: str) -> str:
    """What a script prints, byte for byte: text mode would turn a carriage return into a line end."""
    return subprocess.run(host.exec_argv(["sh", "-c", script]), capture_output=True, check=True).stdout.decode()


def test_arguments_and_environment_arrive_as_they_were(demo_host: DemoHost, figure: Callable[[str], None]) -> None:
    arguments, inline, filed = hostile(1), hostile(2), hostile(3)
    runs = [arguments[place : place + AT_ONCE] for place in range(0, VALUES, AT_ONCE)]
    unit = ["[Service]", "Type=oneshot", f"EnvironmentFile={FOLDER}/values.env"]
    unit += [f"Environment={environment_assignment(f'INLINE{place}', value)}" for place, value in enumerate(inline)]
    unit += [f"ExecStart={FOLDER}/record " + " ".join(map(exec_argument, run)) for run in runs]
    files = {
        "record": RECORD,
        "values.env": "".join(environment_file_line(f"FILED{place}", value) for place, value in enumerate(filed)),
        "quoting.service": "\n".join([*unit, ""]),
    }
    unpack(demo_host, FOLDER, files)
    try:
        start = f"systemctl link --runtime {FOLDER}/quoting.service && systemctl start quoting.service"
        said = content(
            demo_host, f"{{ {start}; }} >&2 && cat {FOLDER}/argv && printf '\\0\\0\\0' && cat {FOLDER}/environ"
        )
    finally:
        demo_host.run(["sh", "-c", f"systemctl disable --runtime quoting.service; rm -r {FOLDER}"], check=False)
    written, _, surroundings = said.rpartition("\0\0\0\0")
    words = written.split("\0")  # before each run: the shell and the script
    received = [word for place, word in enumerate(words) if place % (AT_ONCE + 2) >= 2]
    pairs = surroundings.split("\0")
    environment = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    differ = {
        "arguments": sum(one != other for one, other in zip(received, arguments, strict=True)),
        "Environment=": sum(environment.get(f"INLINE{place}") != value for place, value in enumerate(inline)),
        "EnvironmentFile=": sum(environment.get(f"FILED{place}") != value for place, value in enumerate(filed)),
    }
    figure(f"quoting: {VALUES} values each through systemd, differences: {differ}")
    assert not any(differ.values())
