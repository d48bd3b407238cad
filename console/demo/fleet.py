"""The fleet of the demo host: its files, put into the overlay, and its start, watched from outside.

The folder fleet/ is laid out as the root filesystem it becomes a part of: unit files, scripts, a crontab,
worktop.toml, SQL. What is wrong with each part is in the files themselves.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import console
from console.config import parse
from console.demo.enter import DEPLOY_UID, OPERATORS, exec_argv
from console.demo.overlay import link, write
from console.demo.postgres import postgres_programs
from console.errors import DemoError
from console.host import polkit

TREE = Path(__file__).resolve().parent / "fleet"
TOOLS = "usr/local/lib/worktop-demo"
DSN = "postgresql://app@127.0.0.1:5432/app"  # inside; the password is in ~/.pgpass of root and deploy
STUCK_ROLES = ("exports", "reports", "thumbnails", "webhooks")
_STUCK_QUERY = "SELECT DISTINCT queue FROM worktop_jobs WHERE status = 'running' AND lease_expires < now()"
FAULTS_TIMEOUT = 15.0  # a host without memory limits has one fault less
TIMEOUT = 120.0  # seconds for everything, on a machine that is busy with something else

ENABLED = (
    "postgresql.service", "demo-seed.service", "demo-traffic.service", "demo-incidents.service",
    *(f"mail-worker@{number}.service" for number in (1, 2, 3)),
    *(f"thumbnails-worker@{number}.service" for number in (1, 2, 3, 4)),
    "reports-worker@1.service", "exports-worker@1.service",
)  # fmt: skip

# What is watched while the fleet starts: unit -> what a person reads.
_STEPS = {
    "postgresql.service": "starting PostgreSQL",
    "demo-seed.service": "filling the job table: 200 000 jobs",
    "demo-incidents.service": "starting the fleet and killing some of its workers",
}
# Units whose end is part of the demo: they must have got there before it is shown.
_FAULTS = {"thumbnails-worker@2.service": "failed", "thumbnails-worker@3.service": "failed"}


def stage(root: Path) -> None:
    """Put the fleet's files into the overlay, owned as on a real host."""
    for source in sorted(TREE.rglob("*")):
        target = root / source.relative_to(TREE)
        if "__pycache__" in source.parts:
            continue
        if source.is_dir():
            target.mkdir(exist_ok=True)
            continue
        target.unlink(missing_ok=True)
        target.write_bytes(source.read_bytes())
        target.chmod(0o755 if source.suffix in (".sh", ".py") else 0o644)
    _crontab(root)
    _operators(root)
    _password(root)
    _tools(root)
    wants = root / "etc/systemd/system/multi-user.target.wants"
    for unit in ENABLED:
        prefix, at, rest = unit.partition("@")
        file = f"{prefix}@.{rest.rpartition('.')[2]}" if at else unit
        link(wants / unit, f"/etc/systemd/system/{file}")


def _crontab(root: Path) -> None:
    tab = root / "var/spool/cron/crontabs/deploy"
    tab.chmod(0o600)
    os.chown(tab, DEPLOY_UID, (root / "var/spool/cron/crontabs").stat().st_gid)
    os.utime(tab)


def _operators(root: Path) -> None:
    """The rule that `worktop doctor --grants` prints there."""
    config = parse((root / "etc/worktop/worktop.toml").read_text())
    write(root / polkit.RULE_PATH.lstrip("/"), polkit.rule(config.roles, OPERATORS))


def _password(root: Path) -> None:
    """A fresh password for the database role, known to the accounts that use it."""
    line = f"127.0.0.1:5432:app:app:{os.urandom(12).hex()}\n"
    for home, uid in (("home/deploy", DEPLOY_UID), ("root", 0)):
        file = root / home / ".pgpass"
        file.touch(mode=0o600)
        file.write_text(line)
        os.chown(file, uid, uid)


def _tools(root: Path) -> None:
    """This interpreter and the wheel's PostgreSQL under names that do not depend on where they lie."""
    source = Path(console.__file__).resolve().parent.parent
    python = root / TOOLS / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(source))} exec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    programs = postgres_programs()
    link(root / TOOLS / "pgsql", str(programs))
    link(root / "usr/local/bin/psql", str(programs / "psql"))


def start(leader: int) -> Iterator[str]:
    """Wait until the fleet runs and shows its faults; yields what is being waited for, "" while it is the same.

    systemd has been told to start it; DemoError names a unit of the demo itself that failed, and its last words.
    """
    deadline = time.monotonic() + TIMEOUT
    said = ""
    shown = 0.0
    while True:
        states = _states(leader)
        for unit in _STEPS:
            if states.get(unit) == "failed":
                raise DemoError(f"{unit} of the demo host failed", _last_words(leader, unit))
        left = [unit for unit in _STEPS if states.get(unit) != "active"]
        waiting = [unit for unit, wanted in _FAULTS.items() if states.get(unit) != wanted]
        if not left:
            shown = shown or time.monotonic()
            if not waiting or time.monotonic() - shown > FAULTS_TIMEOUT:
                return
        step = _STEPS[left[0]] if left else "waiting for its faults"
        yield step if step != said else ""
        said = step
        if time.monotonic() > deadline:
            raise DemoError("the demo host's fleet is not up", f"still {step} after {TIMEOUT:.0f} s", "try again")
        time.sleep(0.2)


def wait_for_stuck_jobs(leader: int, timeout: float = 60.0) -> bool:
    """Wait until every role that has a stuck job shows it (leases are 10 seconds); False when that takes too long."""
    command = exec_argv(leader, ["psql", "--no-psqlrc", "-At", "-c", _STUCK_QUERY, DSN])
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        asked = subprocess.run(command, capture_output=True, text=True)
        if set(STUCK_ROLES) <= set(asked.stdout.split()):
            return True
        time.sleep(0.5)
    return False


def _states(leader: int) -> dict[str, str]:
    """ActiveState of the watched units."""
    units = [*_STEPS, *_FAULTS]
    asked = subprocess.run(
        exec_argv(leader, ["systemctl", "show", "--property=ActiveState", "--value", *units]),
        capture_output=True,
        text=True,
    )
    return dict(zip(units, asked.stdout.split(), strict=False))


def _last_words(leader: int, unit: str) -> str:
    asked = subprocess.run(
        exec_argv(leader, ["journalctl", f"_SYSTEMD_UNIT={unit}", "--lines=3", "--output=cat", "--quiet"]),
        capture_output=True,
        text=True,
    )
    return " / ".join(asked.stdout.split("\n")).strip(" /") or "it said nothing"
