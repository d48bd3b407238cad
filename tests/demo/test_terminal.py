"""`worktop demo` on a real terminal: the console opens inside, and the terminal is given back whole."""

from __future__ import annotations

import os
import signal
import subprocess
import termios
from collections.abc import Iterator

import pexpect
import pytest

from console.demo import state
from tests.conftest import need_root
from tests.demo.test_teardown import COMMAND, ended, gone, left, started

pytestmark = pytest.mark.host
LEAVES_ALTERNATE_SCREEN = "\x1b[?1049l"


@pytest.fixture(scope="module")
def kept() -> Iterator[str]:
    """A demo host that was told to stay, and does even though the one that started it was killed."""
    need_root()
    name = f"terminal-{os.getpid()}"
    first = started(name, "the demo host is up", "--keep")
    first.kill()
    ended(first)
    running = state.running(name)
    assert running and running.kept and running.ready
    yield name
    subprocess.run([*COMMAND, "--name", name, "stop"], check=True, capture_output=True, timeout=60)
    assert left(name) == []


def opened(name: str, *more: str) -> pexpect.spawn:
    environment = os.environ | {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
    demo = pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], "--name", name, *more],
        env=environment,
        encoding="utf-8",
        dimensions=(30, 120),
        timeout=30,
    )
    return demo


def test_the_console_opens_inside_and_leaves_the_terminal_whole(kept: str) -> None:
    demo = opened(kept)
    before = termios.tcgetattr(demo.child_fd)
    demo.expect("FINDINGS")
    demo.setwinsize(24, 80)
    demo.send("q")
    demo.expect(pexpect.EOF)
    assert LEAVES_ALTERNATE_SCREEN in demo.before
    assert "goes on" not in demo.before  # joined, not started with --keep
    after = termios.tcgetattr(demo.child_fd)
    demo.close()
    assert (demo.exitstatus, demo.signalstatus) == (0, None)
    assert after[:4] == before[:4]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_console_inside(kept: str, number: signal.Signals) -> None:
    demo = opened(kept)
    demo.expect("FINDINGS")
    os.kill(demo.pid, number)
    demo.expect(pexpect.EOF)
    demo.close()
    assert LEAVES_ALTERNATE_SCREEN in demo.before
    assert (demo.exitstatus, demo.signalstatus) == (128 + number, None)


def test_the_shell_is_a_login_of_deploy(kept: str) -> None:
    demo = opened(kept, "shell")
    demo.expect(r"\$ ")
    demo.sendline("stty size; whoami; cat /proc/self/cgroup | grep -o 'session-.*scope' | head -n1; exit 7")
    demo.expect("30 120\r\n")
    demo.expect("deploy\r\n")
    demo.expect(r"session-c?\d+\.scope\r\n")
    demo.expect(pexpect.EOF)
    demo.close()
    assert demo.exitstatus == 7


def test_interrupting_the_boot_ends_it(kept: str) -> None:
    demo = opened(f"{kept}-interrupted")
    demo.expect("booting systemd")
    demo.sendintr()
    demo.expect(pexpect.EOF)
    demo.close()
    assert demo.exitstatus == 130
    gone(f"{kept}-interrupted")
