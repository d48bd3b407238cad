"""Schedules in the demo host: its launcher, its dead watchdog, its nightly job; and a unit that starts and runs."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from typing import Any

import pytest

from console.errors import EXIT_FAILED, EXIT_OK
from tests.conftest import DemoHost

pytestmark = pytest.mark.host

OUT = "/run/worktop-test-units"


def explained(host: DemoHost, user: str) -> dict[str, dict[str, Any]]:
    done = host.run([host.worktop, "schedules", "explain", "--json"], user=user, check=False)
    assert done.returncode in (EXIT_OK, EXIT_FAILED), done.stderr
    return {each["name"]: each for each in json.loads(done.stdout)}


def role_of(entry: dict[str, Any]) -> str:
    return f"{entry['class']} of {entry['role']}"


@pytest.fixture(scope="module")
def found(demo_host: DemoHost) -> dict[str, dict[str, Any]]:
    """When more than one run of the launcher has left its workers: it runs every minute."""
    deadline = time.monotonic() + 80.0
    while True:
        entries = explained(demo_host, "root")
        if len(entries["crontab:deploy:4"]["alive"]["runs"]) > 1 or time.monotonic() > deadline:
            return entries
        time.sleep(1.0)


def test_the_launcher_and_its_pile(found: dict[str, dict[str, Any]]) -> None:
    reports = found["crontab:deploy:4"]
    assert role_of(reports) == "launcher of reports"
    (role,) = reports["roles"]
    assert role["instances"] == 3 and "--role reports" in " ".join(role["argv"])
    assert role["workdir"] == "/srv/reports" and role["user"] == "deploy"
    alive = reports["alive"]
    assert alive["growing"] is True and alive["per_run"] == 3
    assert alive["count"] >= 6 and alive["count"] == sum(len(run["pids"]) for run in alive["runs"])
    assert "pile_up" in reports["hazards"]
    assert {each["source"] for each in reports["evidence"]} >= {"script", "processes"}


def test_watchdogs_that_do_not_work_and_the_nightly_job(found: dict[str, dict[str, Any]]) -> None:
    for line, role in ((6, "webhooks"), (7, "digests")):
        entry = found[f"crontab:deploy:{line}"]
        assert role_of(entry) == f"launcher of {role}"
        assert entry["roles"][0]["guard_works"] is False
    assert found["crontab:deploy:7"]["alive"]["count"] == 0
    nightly = found["crontab:deploy:5"]
    assert nightly["class"] == "periodic" and nightly["schedule"]["on_calendar"] == ["*-*-* 02:30:00"]
    assert nightly["alive"]["count"] == 0


def test_without_rights_the_own_crontab_and_what_is_missing(demo_host: DemoHost) -> None:
    done = demo_host.run(["env", "COLUMNS=250", demo_host.worktop, "schedules"], user="deploy", check=False)
    assert done.returncode == EXIT_FAILED
    assert "deploy:4" in done.stdout
    unread = [line for line in done.stdout.splitlines() if "unread" in line]
    assert unread and "not permitted; run the agent" in " ".join(unread)


@pytest.fixture
def installed(demo_host: DemoHost) -> Iterator[str]:
    """The units of the launcher, as `translate` wrote them, in systemd's folder of this boot."""
    done = demo_host.run([demo_host.worktop, "schedules", "translate", "deploy:4", "--out", OUT], timeout=90.0)
    assert "systemd-analyze verify accepts" in done.stdout
    assert demo_host.run(["test", "-f", f"{OUT}/README.md"]).returncode == 0
    names = demo_host.run(["sh", "-c", f"ls {OUT} | grep service$"]).stdout.split()
    (template,) = [name for name in names if name.endswith("@.service")]
    demo_host.run(["sh", "-c", f"cp -r {OUT}/{shlex.quote(template)}* /run/systemd/system/ && systemctl daemon-reload"])
    unit = template.replace("@.", "@1.")
    yield unit
    demo_host.run(["systemctl", "stop", unit], check=False)
    demo_host.run(["sh", "-c", f"rm -rf {OUT} /run/systemd/system/{shlex.quote(template)}*; systemctl daemon-reload"])


def test_a_translated_unit_starts_and_runs(demo_host: DemoHost, installed: str) -> None:
    demo_host.run(["systemctl", "start", installed])
    shown = demo_host.run(["systemctl", "show", "-p", "ActiveState,MainPID,User,WorkingDirectory", installed]).stdout
    told = dict(line.split("=", 1) for line in shown.split())
    assert told["ActiveState"] == "active" and told["User"] == "deploy" and told["WorkingDirectory"] == "/srv/reports"
    line = demo_host.run(["cat", f"/proc/{told['MainPID']}/cmdline"]).stdout.split("\0")
    assert line[-1] == "" and "--role" in line and line[line.index("--role") + 1] == "reports"
    assert demo_host.run(["systemctl", "is-active", installed]).stdout.strip() == "active"
