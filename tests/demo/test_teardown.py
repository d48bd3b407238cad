"""Nothing is left of a demo host: no mounts, processes, cgroups or files, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.demo import state
from tests.conftest import need_root

pytestmark = pytest.mark.host
COMMAND = [sys.executable, "-m", "console", "demo"]


@pytest.fixture
def name() -> Iterator[str]:
    need_root()
    chosen = f"left-{os.getpid()}"
    yield chosen
    subprocess.run([*COMMAND, "--name", chosen, "stop"], capture_output=True)


def left(name: str) -> list[str]:
    """Every trace of the demo host on the machine."""
    found = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if name in line]
    for path in Path("/proc").glob("[0-9]*"):
        try:
            text = (path / "cgroup").read_text() + (path / "cmdline").read_text(errors="replace")
            zombie = (path / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if name in text and not zombie:  # ended; somebody else's parent has yet to notice
            found.append(f"process {path.name}: {text[-100:]!r}")
    for top in ("/run", "/tmp", "/var/tmp", "/var/lib/machines", "/etc/systemd"):
        found += [str(path) for path in Path(top).glob(f"**/*{name}*")]
    found += [directory for directory, _, _ in os.walk("/sys/fs/cgroup") if name in directory]
    return found


def started(name: str, until: str, *options: str) -> subprocess.Popen[str]:
    """`worktop demo` without a terminal, read up to a line of its progress."""
    demo = subprocess.Popen(
        [*COMMAND, "--name", name, *options], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert demo.stderr is not None
    for line in demo.stderr:
        if until in line:
            return demo
    pytest.fail(f"no line with {until!r}; it exited {demo.wait()}")


def gone(name: str, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while left(name):
        assert time.monotonic() < deadline, "\n".join(left(name))
        time.sleep(0.5)  # to look takes a third of a second


def ended(demo: subprocess.Popen[str]) -> int:
    demo.communicate(timeout=60)
    return demo.returncode


def test_a_normal_exit_leaves_nothing_and_prints_the_status(name: str) -> None:
    done = subprocess.run(
        [*COMMAND, "--name", name], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    for role in ("mail", "thumbnails", "reports", "webhooks", "digests", "exports"):
        assert role in done.stdout
    assert left(name) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_the_foreground_leaves_nothing(name: str, number: signal.Signals) -> None:
    demo = started(name, "filling the job table")
    assert left(name)
    demo.send_signal(number)
    ended(demo)
    gone(name)


def test_the_next_run_cleans_up_after_kill_9_of_everything(name: str) -> None:
    demo = started(name, "filling the job table")
    found = state.read(name)
    assert found and found.leader and found.nspawn
    for process in (found.nspawn, found.supervisor):
        process.kill()
    demo.kill()
    ended(demo)
    assert left(name)
    assert found.leader.alive()  # its systemd has survived: the worst case
    done = subprocess.run([*COMMAND, "--name", f"{name}-next", "stop"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert left(name) == []


def test_killing_foreground_and_supervisor_powers_the_host_off(name: str) -> None:
    demo = started(name, "filling the job table")
    found = state.read(name)
    assert found and found.leader
    found.supervisor.kill()
    demo.kill()
    ended(demo)
    deadline = time.monotonic() + 30
    while found.leader.alive():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    subprocess.run([*COMMAND, "--name", name, "stop"], check=True, capture_output=True, timeout=60)
    assert left(name) == []


def test_a_second_demo_says_that_one_is_running(name: str) -> None:
    first = started(name, "filling the job table")
    second = subprocess.run(
        [*COMMAND, "--name", name], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert second.returncode == 1
    assert "another worktop demo" in second.stderr
    first.send_signal(signal.SIGINT)
    assert ended(first) == 130
    gone(name)
