"""Every shipped playbook followed to its end on a demo host of its own, and taken back: each step by itself, to be done
again, and all of them from the end. `python -m tests.bench.playbooks` does more, and the faults of a migration."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from console.demo import fleet, host
from console.playbook.library import Library, shipped
from console.playbook.registry import REGISTRY
from tests.bench.ledger import CRONTAB
from tests.bench.playbooks import CASES, Case, walk_twice
from tests.conftest import DemoHost, need_root

# reports has jobs of half a minute; a fixed port waits for cron; mail has limits, which what is measured agrees with;
# scale-up-safely is followed and taken back by keyboard, in tests/e2e/test_playbooks_console.py
NOT_HERE = ("cron-launcher-to-systemd", "cron-launcher-to-systemd, a fixed port", "memory-budget", "scale-up-safely")
HERE = [case for case in CASES if case.told not in NOT_HERE]


@pytest.fixture(scope="module")
def own_host() -> Iterator[DemoHost]:
    """Playbooks change what the tests of the shared host look at."""
    need_root()
    booted = host.boot(f"playbooks-{os.getpid()}")
    try:
        fleet.wait_for_stuck_jobs(booted.host.leader_pid)
        yield DemoHost(booted.host)
    finally:
        booted.close()


def test_every_shipped_playbook_is_without_a_flaw_and_is_followed() -> None:
    shelf = Library(REGISTRY, [shipped()]).shelf()
    assert [str(flaw) for each in shelf for flaw in each.flaws] == []
    assert sorted(each.name for each in shelf) == [
        "crash-loop", "cron-launcher-to-systemd", "frequent-cron-to-worker-or-timer", "hung-worker", "memory-budget",
        "scale-up-safely", "stuck-jobs-after-a-crash", "supervisord-program-to-systemd", "two-owners-of-one-role",
        "watchdog-line-to-systemd",
    ]  # fmt: skip
    assert {case.name for case in HERE} | {"scale-up-safely"} == {each.name for each in shelf}


@pytest.mark.xdist_group("playbooks")
@pytest.mark.parametrize("case", HERE, ids=lambda case: case.told)
def test_every_step_is_taken_back_by_itself_and_all_of_them_from_the_end(own_host: DemoHost, case: Case) -> None:
    walk = walk_twice(own_host, case)
    steps = len(Library(REGISTRY, [shipped()]).book(case.name).steps)
    told = [line.rpartition(",")[0].replace("back nothing", "back undone") for line in walk.told]
    assert told == [
        *(f"twice {number} of {steps}: back undone, again 0" for number in range(1, steps)),
        f"twice {steps} of {steps}: back -, again 0",
        "twice: back from the end 0, rolled-back",
    ], walk.text
    assert "back undone, again 0" in walk.text
    assert walk.told[-1].endswith("files the same") and walk.code == 0, walk.text
    assert walk.same, own_host.run(["cat", CRONTAB]).stdout
    assert walk.counted.there == walk.counted.before and walk.counted.twice == 0, walk.counted
