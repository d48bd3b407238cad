"""The console on the demo host, in a real terminal, opened as deploy."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator

import pytest

from tests.conftest import DemoHost
from tests.e2e.faults import FAULTS, Fault
from tests.terminal import Terminal

pytestmark = pytest.mark.host


def console(demo_host: DemoHost, columns: int, lines: int, **env: str) -> Terminal:
    return Terminal(demo_host.exec_argv([demo_host.worktop], "deploy"), columns, lines, env)


def first_data(terminal: Terminal) -> str:
    """The screen once every source has answered."""
    return terminal.wait(
        lambda screen: re.search(r"mail +3/3", screen) is not None and "two owners" in screen, 30.0, "the first data"
    )


def flat(screen: str) -> str:
    """The screen as one line: what was wrapped reads on."""
    return re.sub(r"\s+", " ", screen)


@pytest.fixture(scope="module")
def wide(demo_host: DemoHost) -> Iterator[Terminal]:
    with console(demo_host, 200, 60) as terminal:
        first_data(terminal)
        yield terminal


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.role}-{fault.code}")
def test_each_fault_is_read_from_the_screen(wide: Terminal, fault: Fault) -> None:
    line = re.compile(rf"{fault.role}\s+.*{fault.on_screen}")
    wide.wait(lambda screen: any(line.search(text) for text in screen.splitlines()), 30.0, line.pattern)


def test_evidence_opens_and_closes_by_keyboard(demo_host: DemoHost) -> None:
    with console(demo_host, 80, 24) as terminal:
        assert re.search(r"FINDINGS.*\n× reports +two owners", first_data(terminal)), "the worst finding comes first"
        terminal.keys("Tab")
        terminal.keys("Enter")
        screen = flat(terminal.wait_for("EVIDENCE"))
        assert "two-owners" in screen
        assert "crontab of deploy, line 4" in screen
        terminal.keys("Escape")
        terminal.wait_for("FINDINGS")
        terminal.keys("?")
        terminal.wait_for("IN A TABLE")
        terminal.keys("Escape")
        terminal.wait_for("FINDINGS")
        terminal.keys("q")
        assert terminal.exit_status() == 0
        assert not terminal.on_alternate_screen()
        assert terminal.cursor_visible()


def test_neither_process_holds_what_it_does_not_use(demo_host: DemoHost, wide: Terminal) -> None:
    """Python's own OpenSSL and lxml: 12 MB of the two together (console/heap.py, console/host/bus.py)."""
    pids = demo_host.run(["pgrep", "-u", "deploy", "-f", r"bin/worktop$|console agent"]).stdout.split()
    assert len(pids) >= 2
    for pid in pids:
        maps = demo_host.run(["cat", f"/proc/{pid}/maps"]).stdout
        assert "python" in maps
        assert not re.search(r"/lxml/|/_ssl\.|/_hashlib\.", maps), pid


def test_resize_while_it_refreshes(demo_host: DemoHost) -> None:
    with console(demo_host, 80, 24) as terminal:
        first_data(terminal)
        for columns, lines in ((40, 15), (1, 1), (200, 60), (80, 24)):
            terminal.resize(columns, lines)
            time.sleep(0.5)
        terminal.wait(lambda text: "thumbnails" in text and "FINDINGS" in text, what="the screen after resizing")
        terminal.keys("q")
        assert terminal.exit_status() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_the_terminal_whole_and_no_agent_behind(demo_host: DemoHost, number: signal.Signals) -> None:
    others = set(_agents(demo_host))
    with console(demo_host, 80, 24) as terminal:
        first_data(terminal)
        assert set(_agents(demo_host)) - others
        pids = demo_host.run(["pgrep", "-u", "deploy", "-f", "bin/worktop$"]).stdout.split()
        demo_host.run(["kill", f"-{int(number)}", pids[-1]])
        assert terminal.exit_status() == 128 + number
        assert not terminal.on_alternate_screen()
        deadline = time.monotonic() + 5
        while set(_agents(demo_host)) - others and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not set(_agents(demo_host)) - others


def _agents(demo_host: DemoHost) -> list[str]:
    return demo_host.run(["pgrep", "-u", "deploy", "-f", "console agent"], check=False).stdout.split()


def test_killed_agent_is_shown_and_comes_back(demo_host: DemoHost) -> None:
    with console(demo_host, 160, 50) as terminal:
        first_data(terminal)
        for pid in _agents(demo_host):
            demo_host.run(["kill", "-9", pid], check=False)
        terminal.wait(lambda text: "× agent" in text, 10.0, "the agent to be reported as killed")
        assert re.search(r"mail +3/3", terminal.screen()), "what was known stays on the screen"
        terminal.wait(lambda text: "● agent now  ● units now" in text, 30.0, "the agent to come back")
        terminal.keys("q")
        assert terminal.exit_status() == 0


def test_bus_and_database_restarted_under_it(demo_host: DemoHost) -> None:
    with console(demo_host, 160, 50) as terminal:
        first_data(terminal)
        demo_host.run(["systemctl", "stop", "postgresql.service", "dbus.socket", "dbus.service"])
        try:
            terminal.wait(lambda text: "× units" in text, 15.0, "the units to be reported as down")
            terminal.wait(
                lambda text: re.search(r"queue.*refused", text) is not None, 20.0, "the queue to be reported as down"
            )
            assert re.search(r"mail +3/3", terminal.screen()), "what was known stays on the screen"
        finally:
            demo_host.run(["systemctl", "start", "dbus.socket", "dbus.service", "postgresql.service"])
        terminal.wait(
            lambda text: "● units now" in text and "refused" not in text, 40.0, "the units and the queue to come back"
        )
        terminal.keys("q")
        assert terminal.exit_status() == 0


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"TERM": "dumb"}, "worktop status"),
        ({"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "FINDINGS"),
    ],
    ids=["TERM=dumb", "no UTF-8"],
)
def test_poor_terminals(demo_host: DemoHost, env: dict[str, str], expected: str) -> None:
    assignments = [f"{name}={value}" for name, value in env.items()]
    argv = demo_host.exec_argv(["env", *assignments, demo_host.worktop], "deploy")
    with Terminal(argv, 80, 24) as terminal:
        screen = terminal.wait_for(expected, 30.0)
        if "LC_ALL" in env:
            assert screen.isascii()
            terminal.keys("q")
            assert terminal.exit_status() == 0
        else:
            assert terminal.exit_status() == 2


def test_wrong_password_and_missing_table_are_one_line_each(demo_host: DemoHost) -> None:
    config = "[database]\ndsn = 'postgresql://app:wrong@127.0.0.1:5432/app'\n"
    demo_host.run(["sh", "-c", "cat > /tmp/wrong.toml; chmod a+r /tmp/wrong.toml"], input=config)
    with Terminal(
        demo_host.exec_argv([demo_host.worktop, "--config", "/tmp/wrong.toml"], "deploy"), 120, 40
    ) as terminal:
        screen = terminal.wait(lambda text: "password" in text, 30.0, "the wrong password to be named")
        assert "wrong@" not in screen
        assert re.search(r"mail-worker +3/3", terminal.wait_for("mail-worker")), "the rest keeps working"
        terminal.keys("q")
        assert terminal.exit_status() == 0


@pytest.mark.parametrize(
    ("database", "said"),
    [
        ("dsn = 'postgresql://app@127.0.0.1:1/app'", r"refused"),
        ("dsn = 'postgresql://app@127.0.0.1:5432/nowhere'", r"nowhere"),
        ("dsn = 'postgresql://app@127.0.0.1:5432/app'\nschema = 'elsewhere'", r"worktop queue install"),
    ],
    ids=["nothing listens", "no such database", "no table"],
)
def test_a_database_that_cannot_be_used_is_a_finding_and_the_rest_is_shown(
    demo_host: DemoHost, database: str, said: str
) -> None:
    demo_host.run(["sh", "-c", "cat > /tmp/db.toml; chmod a+r /tmp/db.toml"], input=f"[database]\n{database}\n")
    done = demo_host.run(
        [demo_host.worktop, "--config", "/tmp/db.toml", "status", "--evidence"], user="deploy", check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(said, flat(done.stdout)), done.stdout
    assert re.search(r"mail-worker +3/3", done.stdout)
    assert "Traceback" not in done.stdout + done.stderr


def test_malformed_configuration_is_one_line_and_exit_2(demo_host: DemoHost) -> None:
    demo_host.run(["sh", "-c", "cat > /tmp/bad.toml; chmod a+r /tmp/bad.toml"], input="[roles.mail]\nbudget = 'many'\n")
    done = demo_host.run([demo_host.worktop, "--config", "/tmp/bad.toml"], user="deploy", check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "roles.mail.budget" in done.stderr


def test_role_whose_template_does_not_exist(demo_host: DemoHost) -> None:
    config = "[roles.ghost]\nunit = 'ghost-worker@.service'\ninstances = 2\n"
    demo_host.run(["sh", "-c", "cat > /tmp/ghost.toml; chmod a+r /tmp/ghost.toml"], input=config)
    done = demo_host.run(
        [demo_host.worktop, "--config", "/tmp/ghost.toml", "status", "--check"], user="deploy", check=False
    )
    assert done.returncode == 3
    assert "ghost-worker@.service is not installed" in done.stdout
