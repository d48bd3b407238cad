"""The smaller demo, for places where no host can be booted: run inside the demo host as a user without rights."""

from __future__ import annotations

import subprocess
import time

import pytest

from tests.conftest import DemoHost

pytestmark = pytest.mark.host


def left(host: DemoHost) -> list[str]:
    processes = host.run(["ps", "-e", "--no-headers", "-o", "pid,args"]).stdout.splitlines()
    files = host.run(["find", "/tmp", "-maxdepth", "1", "-name", "worktop-demo-small-*"]).stdout.splitlines()
    return [line for line in processes if "worktop-demo-small-" in line] + files


def started(host: DemoHost) -> subprocess.Popen[str]:
    demo = host.popen([host.worktop, "demo"], "deploy", stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert demo.stderr is not None
    for line in demo.stderr:
        if "waiting until" in line:
            return demo
    pytest.fail(f"it ended before it was up: {demo.wait()}")


def test_it_says_why_shows_the_fleet_and_leaves_nothing_even_after_kill_9(demo_host: DemoHost) -> None:
    killed = started(demo_host)
    demo_host.run(["pkill", "-KILL", "--full", "--exact", ".*worktop demo$"])
    killed.communicate(timeout=20)
    deadline = time.monotonic() + 20
    while any(not line.startswith("/tmp/") for line in left(demo_host)):  # its processes end with it
        assert time.monotonic() < deadline, left(demo_host)
        time.sleep(0.2)
    assert left(demo_host)  # its folder, which the next run removes

    done = demo_host.run([demo_host.worktop, "demo"], user="deploy", timeout=240)
    reasons = [line for line in done.stderr.splitlines() if "Running the smaller demo instead" in line]
    assert len(reasons) == 1
    assert "needs root" in reasons[0]
    for role in ("mail", "thumbnails", "reports", "webhooks", "digests", "exports"):
        assert role in done.stdout
    assert left(demo_host) == []
