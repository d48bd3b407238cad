"""The console over SSH, and the host agent over SSH, with a real sshd in the demo host."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.conftest import DemoHost
from tests.e2e.ssh import Ssh, need_sshd
from tests.e2e.test_console import first_data, flat
from tests.terminal import Terminal

pytestmark = pytest.mark.host


@pytest.fixture(scope="module")
def ssh(demo_host: DemoHost, tmp_path_factory: pytest.TempPathFactory) -> Ssh:
    need_sshd()
    return Ssh(demo_host, tmp_path_factory.mktemp("ssh"))


def running(demo_host: DemoHost) -> set[str]:
    """Consoles and agents of deploy."""
    pattern = r"bin/worktop$|console agent"
    return set(demo_host.run(["pgrep", "-u", "deploy", "-f", pattern], check=False).stdout.split())


def wait_until_gone(demo_host: DemoHost, others: set[str], seconds: float) -> set[str]:
    """What is left after at most `seconds` beside `others`."""
    deadline = time.monotonic() + seconds
    while (left := running(demo_host) - others) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def test_the_console_over_ssh(demo_host: DemoHost, ssh: Ssh) -> None:
    others = running(demo_host)
    with Terminal(ssh.argv("worktop", terminal=True), 80, 24) as terminal:
        screen = first_data(terminal)
        assert re.search(r"FINDINGS.*\n× reports +two owners", screen)
        assert all(len(line) <= 80 for line in screen.splitlines())
        terminal.keys("Tab", "g")
        terminal.keys("Enter")
        assert "two-owners" in flat(terminal.wait_for("EVIDENCE"))
        terminal.keys("Escape")
        terminal.wait_for("FINDINGS")

        terminal.resize(120, 40)
        wide = terminal.wait(
            lambda text: any(len(line) > 100 for line in text.splitlines()), what="the screen at 120 columns"
        )
        assert re.search(r"mail +3/3", wide)
        terminal.resize(80, 24)
        terminal.wait(
            lambda text: all(len(line) <= 80 for line in text.splitlines()) and "FINDINGS" in text,
            what="the screen at 80 columns",
        )
        terminal.keys("q")
        assert terminal.exit_status() == 0
        assert not terminal.on_alternate_screen()
        assert terminal.cursor_visible()
    assert not wait_until_gone(demo_host, others, 5)


def test_a_lost_connection_leaves_neither_console_nor_agent_behind(demo_host: DemoHost, ssh: Ssh) -> None:
    others = running(demo_host)
    with Terminal(ssh.argv("worktop", terminal=True), 80, 24) as terminal:
        first_data(terminal)
        assert len(running(demo_host) - others) >= 2
        pane = int(terminal.tmux("display-message", "-p", "#{pane_pid}"))
        clients = [child for child in psutil.Process(pane).children(recursive=True) if child.name() == "ssh"]
        assert clients
        for client in clients:
            os.kill(client.pid, signal.SIGKILL)
        assert not wait_until_gone(demo_host, others, 5)


def test_the_agent_over_ssh(demo_host: DemoHost, ssh: Ssh, tmp_path: Path) -> None:
    others = running(demo_host)
    config = tmp_path / "worktop.toml"
    config.write_text(f"""\
[host]
agent = {json.dumps(ssh.argv("worktop", "agent"))}
[roles.mail]
unit = "mail-worker@.service"
instances = 3
match = "worker --role mail"
""")
    asked = [sys.executable, "-m", "console", "--config", str(config), "status", "--json"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "WORKTOP_"))}
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    fleet = json.loads(done.stdout)
    assert fleet["hello"]["host"] == "wrk01"
    mail = next(role for role in fleet["roles"] if role["role"]["name"] == "mail")
    assert (mail["running"], mail["desired"], mail["owners"]) == (3, 3, ["systemd"])
    assert not wait_until_gone(demo_host, others, 5)
