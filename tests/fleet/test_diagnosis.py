"""Each verdict of a diagnosis from made-up facts, and what holds of every diagnosis."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.errors import ConfigError, Problem
from console.fleet.diagnosis import targets, words
from console.fleet.diagnosis.diagnose import about_job, diagnose, diagnose_role
from console.fleet.diagnosis.model import (
    Diagnosis,
    DiagnosisVerdict,
    Health,
    Looked,
    MainProcess,
    QueueRoom,
    Run,
    Starter,
    StepName,
    StepState,
)
from console.fleet.diagnosis.reasons import common_reason
from console.fleet.model import (
    Account,
    Claim,
    CronLine,
    Fleet,
    Holder,
    Host,
    HostFacts,
    Ident,
    Owner,
    QueueCounts,
    Reading,
    Role,
    Unit,
    UnitDetail,
    UnitFile,
    Worker,
)
from tests.fleet.facts import (
    BOOT,
    MAIL,
    MIB,
    NOW,
    by_cron,
    counts,
    due,
    facts,
    failed_unit,
    failing_reading,
    fleet,
    good,
    job,
    process,
    rows,
    unit,
)

NAME = "mail-worker@1.service"
ONE = msgspec.structs.replace(MAIL, instances=("1",))
BY_UNIT = Owner(kind="systemd", name=NAME, evidence=(f"its cgroup belongs to {NAME}",))
TRACE = ("Traceback (most recent call last):", '  File "/srv/run.py", line 8, in settings', "KeyError: 'BUCKET'")


def in_unit(pid: int = 101, **given: Any) -> Any:
    return process(pid, **({"unit": NAME, "owner": BY_UNIT, "start": pid * 10} | given))


def properties(**given: str) -> UnitDetail:
    usual = {"NeedDaemonReload": "no", "KillMode": "control-group", "Type": "notify", "TimeoutStopUSec": "10s"}
    return UnitDetail(name=NAME, properties=tuple((usual | given).items()))


def main(**given: Any) -> MainProcess:
    usual: dict[str, Any] = {"ident": Ident(BOOT, 101, 1010), "state": "S", "program": "/usr/bin/python3"}
    return MainProcess(**(usual | {"started": NOW - 3600, "open_files": 12, "open_files_limit": 1024} | given))


def looked(**given: Any) -> Looked:
    return Looked(**({"at": NOW, "detail": properties()} | given))


def ended(number: int = 1, lived: float = 0.3, lines: tuple[str, ...] = TRACE, asked: bool = False) -> Run:
    began = NOW - 600 + number * 10
    stop = ("Stopping mail…",) if asked else ()
    return Run(
        invocation=f"{number:032x}",
        began=began,
        ended=began + lived,
        lines=lines,
        manager=("Started mail.", *stop, f"{NAME}: Main process exited, code=exited, status=1/FAILURE"),
    )


def one(
    known: Unit,
    *processes: Any,
    seen: Looked | None = None,
    room: QueueRoom | None = None,
    queue: QueueCounts | None = None,
    running: Any = (),
    role: Role = ONE,
    **given: Any,
) -> Diagnosis:
    """The diagnosis of mail@1, of these facts."""
    holders = given.pop("holders", ())
    found = fleet(facts((known,), processes, holders, **given), rows(queue or counts(), running=running), (role,))
    status = found.roles[0]
    return diagnose(found, status, status.workers[0], seen, room)


def state(diagnosis: Diagnosis, name: StepName) -> StepState:
    return next(step.state for step in diagnosis.steps if step.name == name)


def answer(diagnosis: Diagnosis, name: StepName) -> str:
    return next(step.answer for step in diagnosis.steps if step.name == name)


def held(**given: Any) -> Any:
    holder = Holder(host="wrk01", unit=NAME, pid=101, start=1010, boot_id=BOOT, text="wrk01:101")
    return job("7", **({"holder": holder, "overdue": -5.0, "heartbeat_age": 2.0, "running_for": 30.0} | given))


# --- each verdict ----------------------------------------------------------------------------------------------------


def test_healthy() -> None:
    found = one(unit(NAME), in_unit(), seen=looked(main=main()))
    assert found.verdict == "healthy" and found.do_not.startswith("do not restart: it works")
    assert found.next == "nothing needs to be done"
    assert {step.state for step in found.steps} == {"ok"}, found.steps
    assert [step.name for step in found.steps] == list(get_args(StepName))
    assert "the one that systemd started" in answer(found, "process")


def test_healthy_with_something_to_look_at() -> None:
    seen = looked(main=main(open_files=1000), detail=properties(KillMode="process"))
    found = one(unit(NAME, start_limit_interval=2.0), in_unit(), seen=seen)
    assert found.verdict == "healthy" and "2 things to look at" in found.sentence
    assert "open files 1 000 of 1 024" in answer(found, "near")
    assert "start limit can never be reached: 5 × " in answer(found, "limits") and "≥ 2 s" in answer(found, "limits")
    assert "KillMode=process" in answer(found, "limits")


def test_working_slowly() -> None:
    found = one(
        unit(NAME), in_unit(cpu=0.5, idle_for=0.0), running=(held(overdue=600.0),), seen=looked(main=main()), holders=()
    )
    assert found.verdict == "working slowly" and "job 7" in found.sentence
    assert "would be cut off and run a second time" in found.do_not and found.commands == ("worktop job 7",)
    assert state(found, "rows") == "warning"


def test_hung_with_its_job() -> None:
    seen = looked(main=main(waits_in="do_sys_pause"))
    found = one(unit(NAME), in_unit(cpu=0.0, idle_for=90.0), running=(held(overdue=600.0),), seen=seen)
    assert found.verdict == "hung" and "used no CPU for" in found.sentence and "do_sys_pause" in found.sentence
    assert found.do_not.startswith("do not restart yet: what it waits for is lost")
    assert found.commands[-1] == "worktop reclaim --id 7" and f"systemctl stop {NAME}" in found.commands


def test_hung_without_a_job_only_when_its_queue_gives_jobs_out() -> None:
    stuck = due(12, 4000.0, last_finished=3000.0)
    idle = in_unit(cpu=0.0, idle_for=90.0)
    found = one(unit(NAME), idle, queue=stuck, seen=looked(main=main()), room=QueueRoom())
    assert found.verdict == "hung" and "none was finished for 50:00" in found.sentence
    held_back = one(unit(NAME), idle, queue=stuck, seen=looked(main=main()), room=QueueRoom(paused=("mail",)))
    assert held_back.verdict == "stopped on purpose" and "is paused" in held_back.sentence
    assert held_back.commands == ("worktop resume mail",)
    busy = one(unit(NAME), in_unit(cpu=0.9, idle_for=0.0), queue=stuck, seen=looked(main=main()))
    assert busy.verdict == "working slowly"


def test_a_stopped_process_is_hung() -> None:
    found = one(unit(NAME), in_unit(state="T"), seen=looked(main=main(state="T")))
    assert found.verdict == "hung" and found.commands == ("kill -CONT 101",)


def test_a_start_that_does_not_end_is_hung() -> None:
    starting = unit(NAME, active="activating", sub="start", since=NOW - 70, started=NOW - 70)
    found = one(starting, in_unit(), seen=looked(main=main()))
    assert found.verdict == "hung" and "READY=1" in found.sentence
    young = one(msgspec.structs.replace(starting, since=NOW - 3), in_unit(), seen=looked(main=main()))
    assert young.verdict == "healthy" and "it is starting" in young.sentence


def test_a_crash_loop_names_the_common_reason() -> None:
    looping = unit(NAME, active="activating", sub="auto-restart", main_pid=0, restarts=9, restarts_per_minute=17.0,
                   result="exit-code", exit_code="exited", exit_status=1, started=NOW - 3.3, exited=NOW - 3,
                   since=NOW - 3, start_limit_interval=2.0)  # fmt: skip
    found = one(looping, seen=looked(runs=tuple(ended(number) for number in range(4))))
    assert found.verdict == "crash loop" and "KeyError: 'BUCKET'" in found.sentence
    assert "4 of the last 4 runs said: \"KeyError: 'BUCKET'\"" in answer(found, "restarts")
    assert "never stops it" in answer(found, "restarts") and f"systemctl stop {NAME}" in found.commands
    reload = one(looping, seen=looked(detail=properties(NeedDaemonReload="yes")))
    assert reload.verdict == "crash loop" and "daemon-reload first" in reload.next


def test_a_start_limit_is_a_crash_loop_that_ended() -> None:
    given_up = failed_unit(NAME, start_limit_hit=True, restarts=5, last_words="ValueError: 'high'")
    found = one(given_up, seen=looked(runs=tuple(ended(n, lines=("ValueError: 'high'",)) for n in range(5))))
    assert found.verdict == "crash loop" and "systemd gave up (start limit)" in found.sentence
    assert "ValueError: 'high'" in found.sentence and f"systemctl reset-failed {NAME}" in found.commands
    assert one(given_up).verdict == "crash loop", "without the agent's look the fleet's facts must do"


def test_killed_by_its_memory_limit() -> None:
    for how in ({"result": "oom-kill"}, {"result": "signal", "memory_peak": 255 * MIB}):
        dead = failed_unit(NAME, exit_code="killed", exit_status=9, **how)
        found = one(dead, seen=looked(runs=(ended(),)))
        assert found.verdict == "killed by limit" and "memory limit 256M" in found.sentence, found
        assert "MemoryMax=256M" in found.next and "same limit" in found.do_not


def test_killed_without_a_limit_of_its_own() -> None:
    found = one(failed_unit(NAME, result="oom-kill", exit_code="killed", exit_status=9, memory_max=None))
    assert found.verdict == "killed by limit" and "host's memory" in found.sentence


@pytest.mark.parametrize("result", ["watchdog", "timeout"])
def test_killed_by_a_time_limit(result: str) -> None:
    dead = failed_unit(NAME, result=result, exit_code="killed", exit_status=6, watchdog_sec=30.0)
    found = one(dead, seen=looked(detail=properties(TimeoutStartUSec="1min 30s", RuntimeMaxUSec="infinity")))
    assert found.verdict == "killed by limit"
    assert ("WatchdogSec=30" if result == "watchdog" else "TimeoutStartSec=1min 30s") in found.sentence


@pytest.mark.parametrize(("status", "word"), [(203, "EXEC"), (200, "CHDIR"), (217, "USER"), (226, "NAMESPACE")])
def test_what_systemd_cannot_set_up_is_misconfigured(status: int, word: str) -> None:
    found = one(failed_unit(NAME, exit_status=status, start_limit_hit=True), seen=looked())
    assert found.verdict == "misconfigured" and f"{status} ({word})" in found.sentence
    assert "its program was never run" in found.do_not
    assert word in answer(found, "ending")


def test_restart_that_does_not_match_how_it_ends() -> None:
    found = one(failed_unit(NAME, restart="no"), seen=looked(runs=(ended(),)))
    assert found.verdict == "misconfigured" and "Restart=no" in found.sentence and "KeyError" in found.sentence
    well = failed_unit(NAME, active="inactive", sub="dead", result="success", exit_status=0)
    found = one(well, seen=looked(runs=(ended(lines=("done",)),)))
    assert (
        found.verdict == "misconfigured" and "Restart=on-failure" in found.sentence and "Restart=always" in found.next
    )
    prevented = failed_unit(NAME, exit_status=78)
    found = one(prevented, seen=looked(detail=properties(RestartPreventExitStatus="77 78"), runs=(ended(),)))
    assert found.verdict == "misconfigured" and "RestartPreventExitStatus" in found.sentence


def test_a_missing_or_broken_unit() -> None:
    assert one(unit(NAME, load="not-found", active="inactive", main_pid=0)).verdict == "misconfigured"
    broken = one(
        unit(NAME, load="bad-setting", active="inactive", main_pid=0), seen=looked(detail=properties(LoadError="x"))
    )
    assert broken.verdict == "misconfigured" and "bad-setting" in broken.sentence
    never = one(unit(NAME, active="inactive", sub="dead", main_pid=0, started=None, since=None, enabled="disabled"))
    assert never.verdict == "misconfigured" and f"systemctl enable --now {NAME}" in never.commands


def test_a_unit_that_was_changed_on_disk() -> None:
    found = one(unit(NAME), in_unit(), seen=looked(main=main(), detail=properties(NeedDaemonReload="yes")))
    assert found.verdict == "misconfigured" and "daemon-reload" in found.next and state(found, "unit") == "fault"
    assert "by the old file" in found.do_not


def test_masked() -> None:
    down = one(unit(NAME, load="masked", active="inactive", sub="dead", main_pid=0, enabled="masked"))
    assert down.verdict == "stopped on purpose" and "masked" in down.sentence
    runs = one(unit(NAME, load="masked", enabled="masked"), in_unit(), seen=looked(main=main()))
    assert runs.verdict == "misconfigured" and "not come back" in runs.do_not


def test_stopped_by_an_operator() -> None:
    down = unit(
        NAME,
        active="inactive",
        sub="dead",
        main_pid=0,
        exit_code="exited",
        exit_status=0,
        exited=NOW - 60,
        since=NOW - 60,
    )
    found = one(down, seen=looked(runs=(ended(asked=True),)))
    assert found.verdict == "stopped on purpose" and "by an operator or another unit" in found.sentence
    assert found.do_not.startswith("do not start it before you know why")
    forgotten = unit(NAME, active="inactive", sub="dead", main_pid=0, started=None, since=None, enabled="disabled")
    found = one(forgotten, seen=looked(runs=(ended(asked=True),)))
    assert found.verdict == "stopped on purpose" and "10 min ago" in found.sentence
    assert "asked to stop" in answer(found, "ending")
    by_itself = one(forgotten, seen=looked(runs=(ended(),)))
    assert by_itself.verdict == "misconfigured" and "ends without a failure" in by_itself.sentence
    before_boot = one(forgotten, seen=looked(runs=(ended(asked=True),), booted=NOW - 5))
    assert before_boot.verdict == "misconfigured" and "has not run since" in before_boot.sentence
    badly = failed_unit(NAME, exit_status=143)
    found = one(badly, seen=looked(runs=(ended(asked=True),)))
    assert found.verdict == "stopped on purpose" and "SuccessExitStatus=143" in found.sentence


def test_what_kill_mode_leaves_behind() -> None:
    down = unit(NAME, active="inactive", sub="dead", main_pid=0, exit_code="exited", exited=NOW - 60, since=NOW - 60)
    found = one(
        down, in_unit(555, main=False), seen=looked(detail=properties(KillMode="process"), runs=(ended(asked=True),))
    )
    assert state(found, "children") == "fault" and "1 process" in answer(found, "children")
    assert "1 of its processes still run" in found.sentence


def test_a_second_owner() -> None:
    line = CronLine(owner="deploy", source="/var/spool/cron/crontabs/deploy", line=4, schedule="* * * * *",
                    command="/srv/start.sh", roles=("mail",), kind="launcher")  # fmt: skip
    found = one(unit(NAME), in_unit(), seen=looked(main=main()), schedules=good((line,)))
    assert found.verdict == "owned by somebody else" and "crontab of deploy, line 4" in found.sentence
    assert state(found, "owner") == "fault" and "go on starting workers" in found.do_not
    at_boot = msgspec.structs.replace(line, schedule="@reboot", kind="at-boot")
    later = one(unit(NAME), in_unit(), seen=looked(main=main()), schedules=good((at_boot,)))
    assert later.verdict == "healthy" and state(later, "owner") == "warning"


def test_what_a_retired_line_has_left_is_no_second_owner() -> None:
    by_cron = Owner(kind="cron", name="deploy", detail="crontab of deploy", evidence=("cron is its ancestor",))
    left = process(202, owner=by_cron, start=2020, role="mail")
    retired = one(unit(NAME), in_unit(), left, seen=looked(main=main()), schedules=good(()))
    assert retired.verdict == "healthy" and state(retired, "owner") == "warning"
    assert "the crontab of deploy starts none any more" in answer(retired, "owner")
    other = CronLine(owner="deploy", source="/var/spool/cron/crontabs/deploy", line=5, schedule="0 2 * * *",
                     command="/srv/backup.sh", kind="periodic")  # fmt: skip
    denied = Problem("crontabs of other accounts", "not permitted")
    of_others = msgspec.structs.replace(good((other,)), problem=denied)
    assert one(unit(NAME), in_unit(), left, seen=looked(main=main()), schedules=of_others).verdict == "healthy"
    not_read = msgspec.structs.replace(good(()), problem=denied)
    found = one(unit(NAME), in_unit(), left, seen=looked(main=main()), schedules=not_read)
    assert found.verdict == "owned by somebody else"


@pytest.mark.parametrize(
    "starter",
    [
        Starter(kind="unit", name="old-mail.service", active="active"),
        Starter(kind="timer", name="mail.timer", enabled="enabled"),
        Starter(kind="supervisord", name="program:mail"),
        Starter(kind="pm2", name="mail"),
    ],
)
def test_other_supervisors(starter: Starter) -> None:
    found = one(unit(NAME), in_unit(), seen=looked(main=main(), starters=(starter,)))
    assert found.verdict == "owned by somebody else" and starter.name in found.sentence


def test_a_unit_that_nobody_starts_is_no_second_owner() -> None:
    starter = Starter(kind="unit", name="old-mail.service", active="inactive", enabled="disabled")
    found = one(unit(NAME), in_unit(), seen=looked(main=main(), starters=(starter,)))
    assert found.verdict == "healthy" and state(found, "owner") == "warning"


def test_a_stray_is_owned_by_who_started_it() -> None:
    stray = process(900, owner=by_cron(), unit="cron.service")
    found = fleet(facts((), (stray,)), rows(counts()), (ONE,))
    worker = next(worker for worker in found.roles[0].workers if worker.state == "stray")
    diagnosis = diagnose(found, found.roles[0], worker)
    assert diagnosis.verdict == "owned by somebody else" and "crontab of deploy, line 4" in diagnosis.sentence
    assert diagnosis.do_not == "do not restart or kill it: the crontab of deploy, line 4 starts another"


def test_not_permitted_to_see() -> None:
    found = fleet(HostFacts(units=failing_reading("permission denied")), None, (ONE,))
    diagnosis = diagnose(found, found.roles[0], found.roles[0].workers[0])
    assert diagnosis.verdict == "not permitted to see" and "permission denied" in diagnosis.sentence
    assert {step.state for step in diagnosis.steps if step.name != "health"} == {"unknown"}, diagnosis.steps


def test_a_hidden_process_is_judged_by_its_work_only() -> None:
    hidden = failing_reading("not permitted", value=())
    given: dict[str, Any] = {"processes": hidden}
    known = facts((unit(NAME),), **given)
    found = fleet(known, rows(counts()), (ONE,))
    status = found.roles[0]
    unseen = diagnose(found, status, status.workers[0], looked(), QueueRoom())
    assert unseen.verdict == "not permitted to see" and state(unseen, "process") == "unknown"
    done = job("5", state="done", finished=NOW - 4, holder=Holder(host="wrk01", unit=NAME, pid=101))
    worked = diagnose(found, status, status.workers[0], looked(), QueueRoom(finished=(done,)))
    assert worked.verdict == "healthy"


def test_health_checks() -> None:
    role = msgspec.structs.replace(ONE, health=("/usr/bin/check", "%i"))
    bad = looked(main=main(), health=Health(check="/usr/bin/check 1", ok=False, text="exit status 1: no answer"))
    found = one(unit(NAME), in_unit(), seen=bad, role=role, room=QueueRoom())
    assert found.verdict == "hung" and "health check failed" in found.sentence
    done = job("5", state="done", finished=NOW - 4, holder=Holder(host="wrk01", unit=NAME, pid=101))
    queue = Reading(value=msgspec.structs.replace(rows(counts()).value, now=NOW), taken=NOW)
    known = fleet(facts((unit(NAME),), (in_unit(),)), queue, (role,))
    works = diagnose(known, known.roles[0], known.roles[0].workers[0], bad, QueueRoom(finished=(done,)))
    assert works.verdict == "working slowly" and "although" not in works.sentence and "health check" in works.sentence
    assert one(unit(NAME), in_unit(), seen=looked(main=main()), role=role).verdict == "healthy", "it was not asked"
    finishes = msgspec.structs.replace(ONE, health=("finishes jobs",))
    slow = one(unit(NAME), in_unit(), seen=looked(main=main()), role=finishes, queue=due(3, 10.0, last_finished=4000.0))
    assert state(slow, "health") == "fault"


# --- roles and jobs --------------------------------------------------------------------------------------------------


def test_a_role_has_the_worst_verdict_of_its_workers() -> None:
    units = (unit(NAME), failed_unit("mail-worker@2.service", start_limit_hit=True), unit("mail-worker@3.service"))
    found = fleet(facts(units, (in_unit(),)), rows(counts()), (MAIL,))
    whole, *each = diagnose_role(found, found.roles[0])
    assert whole.verdict == "crash loop" and "1 of 3 workers: @2: " in whole.sentence and whole.key == ""
    assert [diagnosis.name for diagnosis in each] == ["@1", "@2", "@3"]


def test_a_role_of_which_nothing_runs() -> None:
    role = Role(name="digests", queues=("digests",), match=("--role digests",))
    line = CronLine(owner="deploy", source="/var/spool/cron/crontabs/deploy", line=7, schedule="* * * * *",
                    command="pgrep -f x || x", roles=("digests",), kind="watchdog",
                    faults=("guard-matches-itself",))  # fmt: skip
    found = fleet(facts(schedules=good((line,))), rows(due(5, 4000.0, queue="digests")), (role,))
    (whole,) = diagnose_role(found, found.roles[0])
    assert whole.verdict == "misconfigured" and "can never start it" in whole.sentence


def test_a_job_of_a_dead_holder() -> None:
    claim = Claim(job=held(), role="mail", verdict="DEAD", evidence=("pid 9 no longer exists",))
    told = about_job(held(), claim, one(unit(NAME), in_unit()))
    assert told.next.startswith("reclaim job 7") and told.commands[0] == "worktop reclaim --id 7"


def test_what_a_person_names() -> None:
    found = fleet(facts((unit(NAME),), (in_unit(),)), rows(counts()), (ONE,))
    worker = targets.Target(role="mail", key=NAME)
    for text in (NAME, "mail-worker@1", "mail@1", "mail/@1", "101"):
        assert targets.find(found, text) == worker, text
    assert targets.find(found, "mail") == targets.Target(role="mail")
    assert targets.find(found, "4711") == targets.find(found, "4711", "job") == targets.Target(job="4711")
    for text, kind in (("nope", None), ("4711", "pid"), ("4711", "unit"), ("mail", "unit")):
        with pytest.raises(ConfigError):
            targets.find(found, text, kind)
    assert targets.of_job(found, held(), None) == targets.Target(role="mail", key=NAME, job="7")


# --- words and reasons -----------------------------------------------------------------------------------------------


def test_the_common_reason_is_the_error_not_the_frames_nor_the_numbers() -> None:
    runs = [
        ended(n, lines=("ready", f"job {n}: started", *TRACE[:2], f"OSError: [Errno 28] No space left ({n})"))
        for n in range(4)
    ]
    reason = common_reason(runs)
    assert reason is not None and reason.text == "OSError: [Errno 28] No space left (3)"
    assert (reason.runs, reason.of) == (4, 4)
    assert common_reason([ended(1, asked=True)]) is None, "what was asked to stop did not fail"
    mixed = [*runs[:3], ended(9, lines=("something else",))]
    reason = common_reason(mixed)
    assert reason is not None and (reason.runs, reason.of) == (3, 4)


def test_exit_statuses_and_signals() -> None:
    assert words.status_words(203).startswith("203 EXEC: its program could not be executed")
    assert words.status_words(143).startswith("143: 128 + SIGTERM") and words.status_words(3) == "3"
    assert words.signal_words(11).startswith("SIGSEGV: ") and words.signal_name(400) == "signal 400"
    assert set(words.BY_SYSTEMD) >= {200, 203, 217, 226, 233, 243}


def test_a_key_in_the_wrong_section_is_named() -> None:
    file = UnitFile(path="/etc/systemd/system/x.service", text="[Unit]\nA=1\n[Service]\nStartLimitIntervalSec=5min\n")
    detail = msgspec.structs.replace(properties(), files=(file,))
    found = one(unit(NAME), in_unit(), seen=looked(main=main(), detail=detail))
    assert "StartLimitIntervalSec= in [Service]" in answer(found, "limits")


# --- what holds of every diagnosis -----------------------------------------------------------------------------------

_TEXT = st.text(max_size=12)
_UNITS = st.builds(
    unit,
    st.just(NAME),
    load=st.sampled_from(["loaded", "masked", "not-found", "bad-setting", "error", "not-loaded"]),
    active=st.sampled_from(["active", "reloading", "inactive", "failed", "activating", "deactivating", "maintenance"]),
    sub=st.sampled_from(["running", "auto-restart", "start", "dead", "failed", "stop-sigterm"]),
    result=st.sampled_from([*words.RESULTS, "new-in-2030"]),
    enabled=st.sampled_from(["", "enabled", "disabled", "masked", "static"]),
    exit_code=st.sampled_from(["", "exited", "killed", "dumped"]),
    exit_status=st.integers(-5, 300),
    main_pid=st.sampled_from([0, 101]),
    restarts=st.integers(0, 9),
    restart=st.sampled_from(["no", "always", "on-failure", "on-success", "on-abnormal", ""]),
    since=st.none() | st.floats(NOW - 9e5, NOW + 9e5),
    started=st.none() | st.just(NOW - 10),
    exited=st.none() | st.just(NOW - 5),
    start_limit_hit=st.booleans(),
    start_limit_interval=st.sampled_from([0.0, 10.0, 300.0]),
    memory_max=st.none() | st.just(0) | st.just(256 * MIB),
    memory_peak=st.none() | st.just(256 * MIB),
    memory_enforced=st.none() | st.booleans(),
    tasks_now=st.none() | st.just(60),
    tasks_max=st.none() | st.just(64),
    watchdog_sec=st.none() | st.just(30.0),
    last_words=_TEXT,
)
_RUNS = st.lists(
    st.builds(
        Run,
        began=st.none() | st.floats(0, NOW),
        ended=st.none() | st.floats(0, NOW),
        lines=st.lists(_TEXT, max_size=3).map(tuple),
        manager=st.lists(
            st.sampled_from(["Stopping x", "Started x", "Start request repeated too quickly."]), max_size=2
        ).map(tuple),
    ),
    max_size=3,
).map(tuple)
_DETAILS = st.none() | st.builds(
    properties,
    NeedDaemonReload=st.sampled_from(["yes", "no", ""]),
    KillMode=st.sampled_from(["process", "none", "control-group"]),
    TimeoutStopUSec=st.sampled_from(["infinity", "10s", ""]),
    ConditionResult=st.sampled_from(["yes", "no"]),
    ConditionTimestamp=st.sampled_from(["n/a", "Sun 2026-11-29"]),
    TriggeredBy=st.sampled_from(["", "x.timer"]),
    MemoryHigh=st.sampled_from(["infinity", "0", "1000"]),
)
_LOOKED = st.none() | st.builds(
    Looked,
    detail=_DETAILS,
    main=st.none()
    | st.builds(main, state=st.sampled_from("RSDTZ"), program=st.none() | st.just("/x (deleted)"), waits_in=_TEXT),
    gone=st.booleans(),
    runs=_RUNS,
    health=st.none() | st.builds(Health, check=_TEXT, ok=st.none() | st.booleans(), text=_TEXT),
    starters=st.lists(
        st.builds(Starter, kind=st.sampled_from(["unit", "timer", "pm2", "init script"]), name=_TEXT), max_size=2
    ).map(tuple),
)
_PROCESSES = st.lists(
    st.builds(
        in_unit,
        st.sampled_from([101, 102]),
        state=st.sampled_from("RSDTZ"),
        cpu=st.none() | st.floats(0, 1),
        idle_for=st.none() | st.floats(0, 100),
        owner=st.sampled_from([BY_UNIT, by_cron(), Owner(kind="unknown"), Owner(kind="supervisord")]),
        unit=st.sampled_from([NAME, "", "cron.service"]),
    ),
    max_size=2,
    unique_by=lambda each: each.ident.pid,
).map(tuple)
_QUEUES = st.none() | st.builds(
    rows,
    st.builds(due, st.integers(0, 20), st.floats(0, 9e4), last_finished=st.none() | st.floats(0, 9e4)),
    running=st.lists(st.builds(held, overdue=st.none() | st.floats(-100, 9e3)), max_size=1).map(tuple),
)
_ROOMS = st.none() | st.builds(
    QueueRoom,
    connections=st.none() | st.just(95),
    connections_max=st.none() | st.just(97),
    paused=st.sampled_from([(), ("mail",)]),
)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    _UNITS,
    _PROCESSES,
    _LOOKED,
    _ROOMS,
    _QUEUES,
    st.booleans(),
    st.sampled_from([(), ("finishes jobs",), ("/bin/check",)]),
)
def test_every_diagnosis_has_a_verdict_and_a_next_step(
    known: Unit, processes: Any, seen: Looked | None, room: QueueRoom | None, queue: Any, denied: bool, health: Any
) -> None:
    role = msgspec.structs.replace(ONE, health=health)
    host = Host(
        name="wrk01", boot_id=BOOT, accounts=(Account(user="deploy", uid=1500, processes=5, tasks=9, limit=10),)
    )
    given: dict[str, Any] = {"host": good(host)}
    if denied:
        given["schedules"] = failing_reading("not permitted", value=())
    found = fleet(facts((known,), processes, **given), queue, (role,))
    status = found.roles[0]
    by_key = {worker.key: seen for worker in status.workers} if seen is not None else {}
    for diagnosis in diagnose_role(found, status, by_key, room):
        _sound(diagnosis)
    for worker in status.workers:
        _same_alone(found, worker, seen, room)


def _sound(diagnosis: Diagnosis) -> None:
    assert diagnosis.verdict in get_args(DiagnosisVerdict)
    assert diagnosis.sentence.strip() and diagnosis.next.strip()
    assert diagnosis.do_not.startswith("do not ")
    assert all(step.answer.strip() and step.asked.endswith("?") for step in diagnosis.steps)
    if diagnosis.key:
        assert [step.name for step in diagnosis.steps] == list(get_args(StepName))


def _same_alone(found: Fleet, worker: Worker, seen: Looked | None, room: QueueRoom | None) -> None:
    alone = diagnose(found, found.roles[0], worker, seen, room)
    again = diagnose(found, found.roles[0], worker, seen, room)
    assert alone == again
