"""The actions in the console on the demo host, as deploy, by keyboard alone: plan, apply, result, undo, audit."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import DemoHost
from tests.e2e.test_console import console, first_data
from tests.e2e.test_walk import Walk
from tests.terminal import Terminal

pytestmark = pytest.mark.host

COLUMNS, LINES = 120, 40
WORKER = "thumbnails-worker@1.service"


class Operator(Walk):
    """A person at the console."""

    def jobs(self, state: str) -> None:
        """The jobs of a state, from whichever screen."""
        self.press("3")
        for _ in range(5):
            seen = _state(self.until(lambda text: _state(text) != "", "Jobs"))
            if seen == state:
                return
            self.press("Tab")
            self.until(lambda text, seen=seen: _state(text) not in ("", seen), "the next state")  # type: ignore[misc]
        raise AssertionError(f"no jobs that are {state}\n{self.terminal.screen()}")

    def rows(self, wanted: Callable[[str], bool], what: str) -> list[int]:
        """The places of the rows that are wanted, counted from the first one."""
        screen = self.until(lambda text: any(wanted(line) for line in listed(text)), what, 60.0)
        return [number for number, line in enumerate(listed(screen)) if wanted(line)]

    def go_to(self, place: int) -> None:
        self.press("Home")
        for _ in range(place):
            self.press("Down")

    def plan(self, key: str) -> str:
        """Ask for a plan, and the screen when it is there."""
        self.press(key)
        return self.until(lambda text: "[ Apply ]" in text and "nothing is changed yet" in text, "the plan", 40.0)

    def apply(self) -> str:
        """Apply the plan, and the screen with what came of it."""
        self.press("A")
        return self.until(lambda text: "RESULT" in text and "AFTERWARDS" in text, "the result", 90.0)


def _state(screen: str) -> str:
    found = re.search(r"\[(WAITING|RUNNING|STUCK|FAILED|DONE)", screen)
    return found[1].lower() if found else ""


def listed(screen: str) -> list[str]:
    """The lines of the table."""
    lines = screen.splitlines()
    head = next((number for number, line in enumerate(lines) if re.search(r"\bJOB\b.*\bROLE\b", line)), len(lines))
    return [line for line in lines[head + 1 : -1] if line.strip()]


@pytest.fixture(scope="module")
def operator(demo_host: DemoHost) -> Iterator[Operator]:
    with console(demo_host, COLUMNS, LINES) as terminal:
        first_data(terminal)
        yield Operator(demo_host, terminal)


def job_ids(screen: str) -> list[str]:
    return re.findall(r"--id ([\d,]+)", screen)[0].split(",")


def main_pid(demo_host: DemoHost) -> str:
    return demo_host.run(["systemctl", "show", "-P", "MainPID", WORKER]).stdout.strip()


def held_by(demo_host: DemoHost, pid: str) -> list[str]:
    return demo_host.psql(
        f"SELECT id FROM worktop_jobs WHERE status = 'running' AND lease_pid = {pid} ORDER BY id"
    ).split()


def until(condition: Callable[[], bool], what: str, timeout: float = 60.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout:g} s for {what}"
        time.sleep(0.3)


def test_the_jobs_of_a_killed_worker_are_requeued(demo_host: DemoHost, operator: Operator) -> None:
    pid = "0"

    def at_work() -> bool:
        nonlocal pid
        pid = main_pid(demo_host)
        return pid != "0" and bool(held_by(demo_host, pid))

    until(at_work, f"{WORKER} to hold a job")
    demo_host.run(["kill", "-KILL", pid])
    ids = held_by(demo_host, pid)
    if not ids:
        pytest.skip("it had ended its job in that moment")
    operator.jobs("stuck")
    places = operator.rows(lambda line: f"pid {pid} " in line and "DEAD" in line, f"the jobs of pid {pid}")
    for place in places:
        operator.go_to(place)
        operator.press("Space")
    operator.until(lambda text: f"{len(places)} marked" in text, "the marks")
    plan = operator.plan("R")
    assert f"Reclaim {len(places)} job" in plan
    assert f"pid {pid} no longer exists" in plan
    assert "risk: low" in plan
    assert "late finish  rejected" in plan
    ids = job_ids(plan)
    result = operator.apply()
    assert re.search(r"done +returned to waiting: \d+ job", result), result
    assert re.search(r"a late finish of (its|their) former holder would be rejected", result), result
    assert not set(ids) & set(held_by(demo_host, pid)), "the dead worker holds none of them any more"
    operator.press("Escape")


def test_a_slow_but_living_worker_is_stopped_before_its_job_is_taken(demo_host: DemoHost, operator: Operator) -> None:
    operator.jobs("stuck")
    place = operator.rows(
        lambda line: re.search(r"reports .*@1 pid \d+ +(SLOW|HUNG)", line) is not None, "the slow job of reports@1"
    )[0]
    operator.go_to(place)
    plan = operator.plan("R")
    assert "lives: it is stopped first" in plan
    assert re.search(r"1 stop reports-worker@1\.service \(pid \d+\)", plan), plan
    pid = re.findall(r"1 stop reports-worker@1\.service \(pid (\d+)\)", plan)[0]
    assert "risk: medium" in plan
    (job,) = job_ids(plan)
    operator.press("Enter")  # Cancel is chosen
    operator.until(lambda text: "[STUCK" in text, "the list again")
    holder = f"SELECT lease_pid FROM worktop_jobs WHERE id = {job} AND status = 'running'"
    assert demo_host.psql(holder).strip() == pid, "nothing was changed"
    operator.go_to(operator.rows(lambda line: line.strip().startswith(job), f"job {job}")[0])
    operator.plan("R")
    operator.press("A")
    operator.until(
        lambda text: re.search(r"1 stop reports-worker@1|is deactivating|RESULT", text) is not None, "the progress"
    )
    result = operator.until(lambda text: "RESULT" in text and "AFTERWARDS" in text, "the result", 90.0)
    assert re.search(r"done +returned to waiting: 1 job", result), result
    assert re.search(rf"pid {pid} is gone", result), result
    assert demo_host.psql(holder).strip() != pid
    assert "still claimed" not in result and "worktop reclaim --id" not in result, "that was before it was returned"
    operator.press("Escape")


def test_a_retry_is_undone_and_all_of_it_is_in_the_audit(demo_host: DemoHost, operator: Operator) -> None:
    operator.jobs("failed")
    place = operator.rows(lambda line: "thumbnails" in line, "a failed job of thumbnails")[0]
    operator.go_to(place)
    plan = operator.plan("T")
    (job,) = job_ids(plan)
    state = f"SELECT status, attempts FROM worktop_jobs WHERE id = {job}"
    before = demo_host.psql(state)
    operator.press("w")
    operator.terminal.tmux("send-keys", "-l", "OPS-12, tried again")
    operator.press("Escape")
    result = operator.apply()
    assert "wait again: 1 job" in result or "waits again" in result, result
    assert demo_host.psql(state) != before
    undo = operator.plan("u")
    assert "Undo: Retry 1 failed job of thumbnails" in undo
    result = operator.apply()
    assert "restored: 1 job" in result, result
    assert demo_host.psql(state) == before
    operator.press("9")
    audit = operator.until(
        lambda text: "AUDIT" in text and "Undo: Retry" in text and "Retry 1 failed" in text, "the audit"
    )
    titles = [line.split(maxsplit=2)[2] for line in audit.splitlines() if re.match(r"\W*\d\d-\d\d \d\d:", line.strip())]
    assert any("Undo: Retry 1 failed job of thumbnails" in title for title in titles[:1]), audit
    assert any("Reclaim" in title for title in titles), audit
    operator.press("Down")
    operator.press("Enter")
    entry = operator.until(lambda text: "ACTION" in text and "why" in text, "the entry")
    assert "OPS-12, tried again" in entry
    assert "deploy" in entry
    operator.press("Escape")


def test_leaving_is_asked_about_only_while_something_runs(operator: Operator) -> None:
    operator.leave()


def test_with_read_only_nothing_can_be_done_and_the_menu_says_why(demo_host: DemoHost) -> None:
    argv = demo_host.exec_argv([demo_host.worktop, "--read-only"], "deploy")
    with Terminal(argv, COLUMNS, LINES) as terminal:
        first_data(terminal)
        walk = Operator(demo_host, terminal)
        walk.until(lambda text: "read-only" in text.splitlines()[0], "the mark")
        walk.press("x")
        walk.until(lambda text: "not allowed: read-only: --read-only was given" in text, "the reason")
        walk.press("Enter")
        walk.until(lambda text: "start worktop without it" in text, "what would allow it")
        walk.leave()
