"""The programs worktop is measured beside, each in a virtual environment of its own below the user's cache folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.conftest import DemoHost

ISD = "isd-tui==0.6.1"
PG_ACTIVITY = "pg_activity==3.6.2"


class Rival(NamedTuple):
    name: str
    folder: str
    packages: tuple[str, ...]
    program: str


RIVALS = (
    Rival("isd", "isd", (ISD,), "isd"),
    Rival("pg_activity", "pg_activity", (PG_ACTIVITY, "psycopg[binary]"), "pg_activity"),
)


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "worktop-bench"


def install(rival: Rival) -> str:
    """Make the rival's virtual environment unless it is there; "" or why it could not be done."""
    where = cache() / rival.folder
    stamp = where / "installed"
    wanted = " ".join(rival.packages)
    if stamp.is_file() and stamp.read_text() == wanted and (where / "bin" / rival.program).exists():
        return ""
    where.parent.mkdir(parents=True, exist_ok=True)
    for argv in (
        [sys.executable, "-m", "venv", "--clear", str(where)],
        [str(where / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", *rival.packages],
    ):
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode:
            words = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
            return words[-1]
    stamp.write_text(wanted)
    return ""


def put_inside(host: DemoHost, rival: Rival) -> str:
    """Copy the environment into the demo host, to the same path; the program's path inside.

    The demo host hides homes, so the cache folder is not seen in it.
    """
    where = cache() / rival.folder
    host.run(
        [
            "sh",
            "-c",
            f'mkdir -p \'{where}\'; d=\'{where}\'; while [ "$d" != / ]; do chmod a+x "$d"; d=$(dirname "$d"); done',
        ]
    )
    packed = subprocess.Popen(["tar", "--create", "--directory", str(where), "."], stdout=subprocess.PIPE)
    assert packed.stdout is not None
    subprocess.run(host.exec_argv(["tar", "--extract", "--directory", str(where)]), stdin=packed.stdout, check=True)
    packed.stdout.close()
    packed.wait()
    return str(where / "bin" / rival.program)
