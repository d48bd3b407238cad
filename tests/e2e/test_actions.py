"""The commands that change something, in the demo host, as the unprivileged account that runs the workers.

The fleet is left as it was found: what is reclaimed is undone while the queue is paused, so that no worker takes it.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.conftest import DemoHost

pytestmark = pytest.mark.host

STATE = "WORKTOP_STATE=/home/deploy/.local/state/test-actions"


def worktop(host: DemoHost, *arguments: str, code: int = 0) -> Any:
    """Run a command as deploy and decode what it prints."""
    done = host.run(["env", STATE, host.worktop, *arguments, "--json"], user="deploy", check=False)
    assert done.returncode == code, done.stdout[-3000:] + done.stderr
    return json.loads(done.stdout)


def stuck_rows(host: DemoHost, ids: list[str]) -> str:
    return host.psql(f"SELECT j::text FROM worktop_jobs j WHERE id = ANY ('{{{','.join(ids)}}}') ORDER BY id")


def test_jobs_of_killed_workers_are_reclaimed_and_brought_back(demo_host: DemoHost) -> None:
    held = "SELECT id, lease_token FROM worktop_jobs WHERE status = 'running' AND queue = 'thumbnails'"
    worktop(demo_host, "pause", "thumbnails", "--yes")
    try:
        said = worktop(demo_host, "status")
        assert [each["role"] for each in said["findings"] if each["code"] == "paused"] == ["thumbnails"]
        tokens = dict(line.split("|") for line in demo_host.psql(held).splitlines())
        before = stuck_rows(demo_host, list(tokens))
        planned = worktop(demo_host, "reclaim", "--role", "thumbnails", "--dry-run")
        assert planned["outcome"] is None and planned["plan"]["consent"]["kind"] == "confirm"
        assert {claim["verdict"] for claim in planned["plan"]["claims"]} == {"DEAD"}
        dead = [line for line in before.splitlines() if line in stuck_rows(demo_host, list(tokens))]
        assert len(dead) >= planned["plan"]["rows"]["n"] >= 1, "a plan changes nothing"

        done = worktop(demo_host, "reclaim", "--role", "thumbnails", "--yes", "--why", "killed by their limit")
        outcome = done["outcome"]
        assert (outcome["state"], outcome["blocked"]) == ("done", []) and outcome["rows"] >= 1
        assert any("late finish" in sentence for sentence in outcome["verified"]), outcome
        one = done["plan"]["samples"][0]
        assert one["token"] == tokens[one["id"]] and one["holder"]["pid"]
        late = f"SELECT worktop_finish({one['id']}, {one['token']})"
        with pytest.raises(AssertionError, match=f"job {one['id']}"):
            demo_host.psql(late)
        look = f"SELECT status, reclaims > 0, lease_token IS NULL FROM worktop_jobs WHERE id = {one['id']}"
        assert demo_host.psql(look).strip() == "waiting|t|t"

        undone = worktop(demo_host, "undo", "--yes")["outcome"]
        assert (undone["state"], undone["rows"]) == ("done", outcome["rows"])
        assert stuck_rows(demo_host, [one["id"]]) in before
    finally:
        worktop(demo_host, "resume", "thumbnails", "--yes")
    entries = worktop(demo_host, "audit", "-n", "4")
    assert [entry["verb"] for entry in entries] == ["resume", "undo", "reclaim", "pause"]
    assert {entry["who"]["user"] for entry in entries} == {"deploy"} and entries[2]["why"] == "killed by their limit"
    journal = ["journalctl", "-o", "cat", "--no-pager", f"WORKTOP_PLAN={entries[2]['plan']}"]
    assert "Reclaim" in demo_host.run(journal).stdout


def test_the_unit_of_a_live_holder_is_stopped_first_and_started_again(demo_host: DemoHost) -> None:
    unit = "mail-worker@2.service"
    payload = """'{"seconds": 2}'::jsonb"""
    demo_host.psql(f"SELECT worktop_enqueue('mail', 'newsletter', {payload}) FROM generate_series(1, 20)")
    job, pid = stopped_in_the_middle(demo_host, unit)
    expired = "lease_expires = now() - interval '1 minute', heartbeat_at = now() - interval '2 minutes'"
    demo_host.psql(f"UPDATE worktop_jobs SET {expired} WHERE id = {job}")
    assert worktop(demo_host, "--read-only", "reclaim", "--id", job, "--yes", code=2)["outcome"] is None
    # systemd continues what it stops: the worker may still end its job, or give it back
    done = demo_host.run(
        ["env", STATE, demo_host.worktop, "reclaim", "--id", job, "--yes", "--json"], user="deploy", check=False
    )
    told = json.loads(done.stdout)
    kinds = [(step["kind"], step["verb"]) for step in told["plan"]["steps"]]
    assert kinds == [("unit", "stop"), ("wait", ""), ("sql", ""), ("unit", "start")]
    assert [step["state"] for step in told["outcome"]["steps"]] in (
        ["done", "done", "done", "done"],
        ["done", "done", "skipped", "done"],
    ), told["outcome"]
    assert done.returncode in (0, 4)
    shown = demo_host.run(["systemctl", "show", unit, "--property=ActiveState", "--property=MainPID", "--value"]).stdout
    main, state = sorted(shown.split())
    assert state == "active" and main != pid


def stopped_in_the_middle(host: DemoHost, unit: str) -> tuple[str, str]:
    """The id of a job whose worker was stopped with SIGSTOP while it held it, and the pid."""
    held = f"SELECT id, lease_pid FROM worktop_jobs WHERE status = 'running' AND lease_unit = '{unit}'"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = host.psql(held).split("\n")[0]
        if not found:
            time.sleep(0.2)
            continue
        job, pid = found.split("|")
        host.run(["kill", "-STOP", pid])
        if f"{job}|{pid}" in host.psql(held).splitlines():
            return job, pid
        host.run(["kill", "-CONT", pid])
    raise AssertionError(f"{unit} never held a job long enough")
