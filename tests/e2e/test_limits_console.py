"""thumbnails on the demo host, from the keyboard of a console that root opened: diagnosed, mended by a limits drop-in,
scaled while jobs flow, held to its budget, and all of it in the audit and undone."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import DemoHost
from tests.e2e.test_actions_console import Operator
from tests.e2e.test_console import first_data, flat
from tests.terminal import Terminal

pytestmark = pytest.mark.host

CONFIG = "/run/worktop-limits.toml"
STATE = "/run/worktop-limits"
ENV = "/srv/thumbnails/env"
KILLED = "thumbnails-worker@3.service"
DROP_INS = (
    "/etc/systemd/system/thumbnails-worker@.service.d/50-worktop.conf",
    f"/etc/systemd/system/{KILLED}.d/zz-worktop.conf",
)
UNITS = [f"thumbnails-worker@{number}.service" for number in range(1, 7)]


def prop(demo_host: DemoHost, unit: str, name: str) -> str:
    return demo_host.run(["systemctl", "show", "-P", name, unit]).stdout.strip()


def active(demo_host: DemoHost) -> list[str]:
    return [unit for unit in UNITS if prop(demo_host, unit, "ActiveState") == "active"]


def wait(condition: Callable[[], bool], what: str, timeout: float = 40.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout:g} s for {what}"
        time.sleep(0.2)


@pytest.fixture
def console(demo_host: DemoHost) -> Iterator[Operator]:
    """As root, with workers whose throughput nobody waits for; afterwards the host has its faults again."""
    config = demo_host.run(["cat", "/etc/worktop/worktop.toml"]).stdout
    config = config.replace("[roles.thumbnails]\n", '[roles.thumbnails]\nwatch = "0s"\n')
    demo_host.run(["tee", CONFIG], input=config)
    kept = {number: demo_host.run(["cat", f"{ENV}/{number}"]).stdout for number in (2, 4)}
    try:
        argv = demo_host.exec_argv(["env", f"WORKTOP_STATE={STATE}", demo_host.worktop, "--config", CONFIG])
        with Terminal(argv, 120, 40) as terminal:
            first_data(terminal)
            yield Operator(demo_host, terminal)
    finally:
        for number, text in kept.items():
            demo_host.run(["tee", f"{ENV}/{number}"], input=text)
        for path in DROP_INS:
            demo_host.run(["rm", "-f", path])
        demo_host.run(["systemctl", "disable", "--now", *UNITS[4:]])
        demo_host.run(["systemctl", "enable", *UNITS[:4]])
        demo_host.run(["systemctl", "stop", *UNITS[1:4]])
        demo_host.run(["systemctl", "reset-failed", *UNITS[1:]], check=False)
        demo_host.run(["rm", "-rf", STATE, CONFIG])
        demo_host.run(["systemctl", "start", "--no-block", *UNITS[:4]])
        wait(lambda: [prop(demo_host, unit, "ActiveState") for unit in UNITS[1:3]] == ["failed"] * 2, "the faults")


def type_in(console: Operator, text: str) -> None:
    console.terminal.tmux("send-keys", "-l", text)


def result(console: Operator, timeout: float = 90.0) -> str:
    """Apply the plan, and the screen with what came of it; whoever does not end in time is killed."""
    console.press("A")
    while True:
        screen = console.until(
            lambda text: ("RESULT" in text and "AFTERWARDS" in text) or "  kill it " in text, "the result", timeout
        )
        if "  kill it " not in screen:
            return flat(screen)
        console.press("Down")
        console.press("Enter")
        console.until(lambda text: "  kill it " not in text, "the question to close")


def role_on_fleet(console: Operator, role: str) -> None:
    """The fleet with the cursor on the role."""
    console.press("1")
    console.press("1")
    console.until(lambda text: "FINDINGS" in text, "the fleet")
    console.press("Home")
    screen = console.terminal.screen().splitlines()
    head = next(number for number, line in enumerate(screen) if line.startswith("ROLE"))
    for _ in range(next(number for number, line in enumerate(screen[head + 1 :]) if line.startswith(role))):
        console.press("Down")


def scale(console: Operator, count: int) -> str:
    """Ask for a plan that scales thumbnails, and the screen when it is there."""
    role_on_fleet(console, "thumbnails")
    console.press("C")
    console.until(lambda text: "SCALE  scale thumbnails" in text, "the question")
    type_in(console, str(count))
    console.press("Enter")
    return flat(console.until(lambda text: "[ Apply ]" in text and "Scale thumbnails" in text, "the plan", 40.0))


def test_from_a_memory_kill_to_a_fleet_that_grows_and_shrinks(demo_host: DemoHost, console: Operator) -> None:
    # what is wrong with it
    console.press("2")
    console.press("/")
    type_in(console, "thumbnails @3")
    console.press("Enter")
    console.until(lambda text: re.search(r"@3 .*memory", text) is not None and "@1 " not in text, "the worker")
    console.press("d")
    diagnosis = flat(console.until(lambda text: "with  " in text and "limit" in text, "the diagnosis", 40.0))
    assert "killed by limit" in diagnosis and "96M" in diagnosis
    assert "worktop limits thumbnails" in diagnosis

    # its next step is a plan: the limit the others have, and a start limit that can be reached
    console.press("Enter")
    plan = console.until(lambda text: "[ Apply ]" in text and "Set limits of thumbnails" in text, "the plan", 40.0)
    assert "was killed by MemoryMax=96M" in flat(plan) and "the start limit is never reached" in flat(plan)
    done = result(console)
    assert "systemd has the new MemoryMax for 1 of 1" in done, done
    assert "has StartLimitIntervalSec=" in done, done
    assert f"Start {KILLED}" in done
    assert prop(demo_host, KILLED, "MemoryMax") == str(256 * 2**20)
    assert demo_host.run(["cat", DROP_INS[1]]).stdout.endswith("\n[Service]\nMemoryMax=256M\n")
    limits_plan = re.findall(r"worktop undo (\S+)", done)[0]

    # what is worth doing next is a key away
    console.press("Enter")
    console.until(lambda text: "[ Apply ]" in text and f"Start {KILLED}" in text, "the plan of the start", 40.0)
    done = result(console)
    assert prop(demo_host, KILLED, "ActiveState") == "active", done

    # what the journals of the other two name is mended by hand; then it grows while jobs flow
    for number in (2, 4):
        demo_host.run(["tee", f"{ENV}/{number}"], input="BUCKET=media\nQUALITY=80\n")
        demo_host.run(["systemctl", "reset-failed", UNITS[number - 1]], check=False)
        demo_host.run(["systemctl", "restart", UNITS[number - 1]], check=False)  # one start may have read the old file
    wait(lambda: active(demo_host) == UNITS[:4], "four workers")
    demo_host.psql("INSERT INTO worktop_jobs (queue, type) SELECT 'thumbnails', 'resize' FROM generate_series(1, 300)")
    finished = "SELECT count(*) FROM worktop_jobs WHERE queue = 'thumbnails' AND status = 'done'"
    before = int(demo_host.psql(finished))
    plan = scale(console, 6)
    assert "Scale thumbnails from 4 to 6" in plan and "6 × 256M" in plan, plan
    done = result(console, 120.0)
    assert active(demo_host) == UNITS, done
    assert int(demo_host.psql(finished)) > before

    # past its budget only by typing its name
    plan = scale(console, 7)
    assert "over the budget" in plan and "type thumbnails" in plan
    console.press("A")
    console.until(lambda text: "this has to be typed first" in text, "the refusal")
    console.press("Escape")
    console.press("Escape")
    assert active(demo_host) == UNITS

    # it shrinks: a row of a worker that was stopped is finished, or returning it is what is worth doing next
    plan = scale(console, 2)
    assert "Scale thumbnails from 6 to 2" in plan
    done = result(console, 120.0)
    left = active(demo_host)
    assert len(left) == 2, done
    pids = ",".join(prop(demo_host, unit, "MainPID") for unit in left)
    orphans = (
        "SELECT count(*) FROM worktop_jobs WHERE queue = 'thumbnails' AND status = 'running' "
        f"AND started_at > now() - interval '2 min' AND lease_pid NOT IN ({pids})"
    )
    if "worktop reclaim --id" not in done:  # of one that was killed
        wait(lambda: demo_host.psql(orphans).strip() == "0", "no row to be held by a worker that was stopped", 15.0)

    # all of it is in the audit, and the limits are taken back from there
    console.press("9")
    audit = console.until(lambda text: "AUDIT" in text and "from 6 to 2" in text, "the audit")
    for title in ("Set limits of thumbnails", f"Start {KILLED}", "Scale thumbnails from 4 to 6", "from 6 to 2"):
        assert title in audit, audit
    console.press("/")
    type_in(console, "limits")
    console.press("Enter")
    console.until(lambda text: "from 6 to 2" not in text and "Set limits of thumbnails" in text, "the entry")
    console.plan("u")
    done = result(console)
    assert f"worktop undo {limits_plan}" in done, "the plan that took them back is named by its command"
    assert prop(demo_host, KILLED, "MemoryMax") == str(96 * 2**20), done
    for path in DROP_INS:
        assert demo_host.run(["test", "-e", path], check=False).returncode == 1
    console.press("Escape")
    console.leave()
