"""Workers: desired, missing, looping, killed, strays."""

from __future__ import annotations

import pytest

from console.fleet.model import Ancestor, Unit, WorkerState
from console.fleet.workers import ending, memory_killed, seen_of, stray_workers, unit_state, unit_workers
from tests.fleet.facts import MAIL, MIB, NOW, by_cron, failed_unit, process, unit

LOOP = {"active": "activating", "sub": "auto-restart", "restarts": 12, "exit_code": "exited", "exit_status": 1}


@pytest.mark.parametrize(
    ("given", "state"),
    [
        (unit(), "running"),
        (unit(**LOOP), "looping"),
        (unit(active="activating", sub="auto-restart", restarts=1), "restarting"),
        (unit(restarts=40, started=NOW - 3 * 86400), "running"),
        (unit(restarts=4, started=NOW - 2), "looping"),
        (unit(restarts=1, restarts_per_minute=20.0), "looping"),
        (unit(restarts=0, restarts_per_minute=20.0), "running"),  # restarted by hand
        (unit(active="activating", sub="start"), "starting"),
        (unit(active="deactivating", sub="stop-sigterm"), "stopping"),
        (failed_unit("mail-worker@1.service"), "failed"),
        (failed_unit("mail-worker@1.service", start_limit_hit=True), "start-limit"),
        (failed_unit("mail-worker@1.service", result="oom-kill"), "memory-killed"),
        (Unit(name="mail-worker@1.service", load="not-found"), "missing"),
        (Unit(name="mail-worker@1.service"), "missing"),
        (Unit(name="mail-worker@1.service", started=NOW - 50, since=NOW - 10), "stopped"),
        (Unit(name="mail-worker@1.service", load="masked"), "stopped"),
        (Unit(name="mail-worker@1.service", load="bad-setting"), "failed"),
    ],
)
def test_state_of_an_instance(given: Unit, state: WorkerState) -> None:
    assert unit_state(given, NOW)[0] == state


def test_missing_instance_is_a_row_that_says_missing() -> None:
    workers = unit_workers(MAIL, seen_of((unit("mail-worker@1.service"), unit("mail-worker@3.service")), ()), NOW)
    assert [(w.name, w.state) for w in workers] == [("@1", "running"), ("@2", "missing"), ("@3", "running")]


def test_instances_beyond_the_desired_set_are_shown_in_numeric_order() -> None:
    units = tuple(unit(f"mail-worker@{n}.service") for n in (1, 2, 3, 10, 7))
    workers = unit_workers(MAIL, seen_of(units, ()), NOW)
    assert [w.name for w in workers] == ["@1", "@2", "@3", "@7", "@10"]
    assert [w.desired for w in workers] == [True, True, True, False, False]


def test_sigkill_at_the_limit_is_a_memory_kill_on_cgroup_v1() -> None:
    killed = {"result": "signal", "exit_code": "killed", "exit_status": 9, "memory_max": 60 * MIB}
    assert memory_killed(failed_unit("mail-worker@1.service", **killed, memory_peak=60 * MIB))
    assert not memory_killed(failed_unit("mail-worker@1.service", **killed, memory_peak=20 * MIB))
    unseen = failed_unit("mail-worker@1.service", **killed, memory_peak=None)
    assert memory_killed(unseen)
    assert "most likely" in ending(unseen)
    assert not memory_killed(failed_unit("mail-worker@1.service", **(killed | {"memory_max": None})))


def test_ending_says_how_and_after_how_long() -> None:
    assert ending(failed_unit("mail-worker@1.service")) == "exit status 1 after 0.3 s"
    assert ending(failed_unit("mail-worker@1.service", result="signal", exit_code="killed", exit_status=15)).startswith(
        "killed by SIGTERM"
    )
    assert "signal 200" in ending(failed_unit("mail-worker@1.service", exit_code="killed", exit_status=200))


def test_strays_are_one_worker_per_main_process() -> None:
    main = process(400, owner=by_cron())
    helper = process(401, owner=by_cron(), main=False, ancestors=(Ancestor(pid=400, name="python3"),))
    inside = process(101, unit="mail-worker@1.service")
    workers = stray_workers(MAIL, (main, helper, inside), NOW)
    assert [(w.name, w.state, len(w.processes)) for w in workers] == [("pid 400", "stray", 2)]
    assert workers[0].memory == 40 * MIB
    assert workers[0].why == "crontab of deploy, line 4"
