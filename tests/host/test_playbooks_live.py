"""Every shipped playbook followed to its end on a demo host of its own, and taken back: each step by itself, to be done
again, and all of them from the end. `python -m tests.bench.playbooks` does more, and the faults of a migration."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from console.playbook.library import Library, shipped
from console.playbook.registry import REGISTRY
from tests.bench.ledger import CRONTAB
from tests.bench.playbooks import CASES, Case, Walk, name_the_unit, walk_twice
from tests.conftest import DemoHost, fresh_host, need_root

# reports has jobs of half a minute; a fixed port waits for cron; mail has limits, which what is measured agrees with;
# scale-up-safely is followed and taken back by keyboard, in tests/e2e/test_playbooks_console.py
NOT_HERE = ("cron-launcher-to-systemd", "cron-launcher-to-systemd, a fixed port", "memory-budget", "scale-up-safely")
HERE = [case for case in CASES if case.told not in NOT_HERE]
SHORT_JOBS = next(case for case in HERE if case.told == "cron-launcher-to-systemd, short jobs")
CHANGES: dict[str, set[int]] = {  # steps that change something whatever is found
    "stuck-jobs-after-a-crash": {2},
    "hung-worker": {2},
    "crash-loop": {3},
    "memory-budget, no limit before": {3},
    "frequent-cron-to-worker-or-timer": {1, 2, 3},
    "cron-launcher-to-systemd, short jobs": {3, 4, 6, 10, 11},
    "two-owners-of-one-role": {3, 5},
    "watchdog-line-to-systemd": {2, 4, 6, 9, 10},
    "supervisord-program-to-systemd": {2, 4, 8},
}


@pytest.fixture(scope="module")
def own_host() -> Iterator[DemoHost]:
    """Playbooks change what the tests of the shared host look at."""
    need_root()
    with fresh_host("playbooks") as booted:
        yield booted


@pytest.fixture
def old_worker(own_host: DemoHost) -> Iterator[subprocess.Popen[bytes]]:
    """One that no unit runs, as a launcher would have left it behind."""
    argv = [own_host.worktop, "worker", "--role", "digests", "--handlers", "console.demo.handlers:HANDLERS"]
    started = own_host.popen(argv, user="deploy", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield started
    started.kill()
    started.wait()


def test_every_shipped_playbook_is_without_a_flaw_and_is_followed() -> None:
    shelf = Library(REGISTRY, [shipped()]).shelf()
    assert [str(flaw) for each in shelf for flaw in each.flaws] == []
    assert sorted(each.name for each in shelf) == [
        "crash-loop", "cron-launcher-to-systemd", "frequent-cron-to-worker-or-timer", "hung-worker", "memory-budget",
        "scale-up-safely", "stuck-jobs-after-a-crash", "supervisord-program-to-systemd", "two-owners-of-one-role",
        "watchdog-line-to-systemd",
    ]  # fmt: skip
    assert {case.name for case in HERE} | {"scale-up-safely"} == {each.name for each in shelf}


def walked(host: DemoHost, case: Case) -> Walk:
    walk = walk_twice(host, case)
    steps = len(Library(REGISTRY, [shipped()]).book(case.name).steps)
    told = [line.rpartition(",")[0] for line in walk.told]
    changed = {number for number in range(1, steps) if f"twice {number} of {steps}: back undone, again 0" in told}
    assert told == [
        *(f"twice {n} of {steps}: back {'undone' if n in changed else 'nothing'}, again 0" for n in range(1, steps)),
        f"twice {steps} of {steps}: back -, again 0",
        "twice: back from the end 0, rolled-back",
    ], walk.text
    assert changed >= CHANGES[case.told], walk.text
    assert walk.told[-1].endswith("files the same") and walk.code == 0, walk.text
    assert walk.same, host.run(["cat", CRONTAB]).stdout
    assert walk.counted.there == walk.counted.before and walk.counted.twice == 0, walk.counted
    return walk


@pytest.mark.xdist_group("playbooks")
def test_a_line_becomes_units_and_a_line_again(own_host: DemoHost, old_worker: subprocess.Popen[bytes]) -> None:
    walk = walked(own_host, SHORT_JOBS._replace(prepare=name_the_unit("digests", "digests-worker@.service")))
    assert len(re.findall(r"^ *digests-worker@.* running ", walk.text, re.MULTILINE)) == 2, walk.text
    assert "disabled by worktop" in walk.text
    assert "digests has one owner: digests-worker@.service" in walk.text
    assert old_worker.wait(10) == 0  # drained: it has finished what it held
    assert own_host.run(["systemctl", "cat", "digests-worker@1"], check=False).returncode != 0
    assert walk.counted.stuck == 0, walk.counted


@pytest.mark.xdist_group("playbooks")
@pytest.mark.parametrize("case", [case for case in HERE if case is not SHORT_JOBS], ids=lambda case: case.told)
def test_every_step_is_taken_back_by_itself_and_all_of_them_from_the_end(own_host: DemoHost, case: Case) -> None:
    walked(own_host, case)
