"""Verdicts: only proof makes DEAD."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.fleet.model import Ancestor, Holder, PidState, QueueFacts
from console.fleet.verdicts import judge, pending, undecided
from tests.fleet.facts import BOOT, HELLO, NOW, facts, failed_unit, failing_reading, job, process, unit

GONE = (PidState(pid=812),)
SAME = (PidState(pid=812, start=8120, name="python3"),)
OTHER = (PidState(pid=812, start=9999, name="nginx"),)


def test_gone_pid_is_dead_with_the_units_reason() -> None:
    killed = failed_unit("mail-worker@1.service", result="oom-kill", exited=NOW - 1860)
    claim = judge(job(), "mail", facts((killed,), holders=GONE), now=NOW)
    assert claim.verdict == "DEAD"
    assert claim.stuck
    assert claim.evidence == (
        "pid 812 no longer exists",
        "mail-worker@1.service was killed by its memory limit 256M, 31 min ago",
        "its lease ran out 30 min ago by the database's clock",
    )


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        ({"result": "timeout"}, "did not start or stop in time and was killed, 12 min ago"),
        ({"result": "watchdog"}, "was killed because its watchdog had heard nothing, 12 min ago"),
        (
            {"result": "signal", "exit_code": "killed", "exit_status": 15},
            "was killed by SIGTERM after 0.3 s, 12 min ago",
        ),
        ({"result": "core-dump", "exit_code": "dumped", "exit_status": 11}, "has dumped core by SIGSEGV after 0.3 s"),
        ({}, "ended with exit status 1 after 0.3 s, 12 min ago"),
        (
            {"active": "activating", "sub": "auto-restart"},
            "exit status 1 after 0.3 s, 12 min ago; systemd starts it again",
        ),
        ({"active": "inactive", "sub": "dead", "result": "success"}, "mail-worker@1.service was stopped, 12 min ago"),
        (
            {"active": "active", "sub": "running", "main_pid": 900, "restarts": 2},
            "runs as pid 900 now, 2 restarts so far",
        ),
        (
            {"active": "active", "sub": "running", "main_pid": 900, "restarts": 1},
            "runs as pid 900 now, 1 restart so far",
        ),
    ],
)
def test_why_the_unit_ended_is_said_in_words(ended: dict[str, object], words: str) -> None:
    claim = judge(job(), "mail", facts((failed_unit("mail-worker@1.service", **ended),), holders=GONE), now=NOW)
    assert claim.verdict == "DEAD" and words in claim.evidence[1], claim.evidence


def test_reused_pid_is_dead() -> None:
    claim = judge(job(), "mail", facts(holders=OTHER))
    assert claim.verdict == "DEAD"
    assert "another process now (nginx)" in claim.evidence[0]


def test_process_younger_than_the_claim_is_dead_when_the_row_has_no_start_time() -> None:
    """Ages are compared, each by its own clock: the host's may be an hour wrong."""
    holder = Holder(host="wrk01", pid=812)
    for skew in (-3600.0, 0.0, 3600.0):
        there = facts(processes=(process(812, start=8120, started=NOW - 10 + skew),), holders=SAME, uptime=91.2)
        assert judge(job(holder=holder, running_for=1900.0), "mail", there).verdict == "DEAD", "it is 10 s old"
        assert judge(job(holder=holder, running_for=60.0), "mail", there).verdict != "DEAD", "too close to tell"
        assert judge(job(holder=holder), "mail", there).verdict != "DEAD", "the age of the claim is not known"
        older = msgspec.structs.replace(there, uptime=2000.0)
        assert judge(job(holder=holder, running_for=1900.0), "mail", older).verdict != "DEAD"


def test_a_row_without_a_host_proves_nothing() -> None:
    """Pid 812 of another host may be meant."""
    for states in (GONE, OTHER, SAME):
        assert judge(job(holder=Holder(pid=812)), "mail", facts(holders=states)).verdict == "UNKNOWN"
    assert judge(job(holder=Holder(pid=812, start=8120)), "mail", facts(holders=GONE)).verdict == "UNKNOWN"
    elsewhere = Holder(pid=812, start=8120, boot_id="another-boot")
    assert judge(job(holder=elsewhere), "mail", facts(holders=GONE)).verdict == "UNKNOWN"


def test_a_pid_that_was_looked_up_before_the_process_started_is_not_judged() -> None:
    """It was free then; the claim is of a process that got it since."""
    holder = Holder(host="wrk01", pid=812, start=9_990_000, boot_id=BOOT)  # 99 900 s after boot
    old = facts(holders=GONE, uptime=100_000.0)
    reading = msgspec.structs.replace(old.holders, taken=NOW - 110)
    claim = judge(job(holder=holder), "mail", msgspec.structs.replace(old, holders=reading), now=NOW)
    assert claim.verdict == "UNKNOWN" and pending(claim)
    assert judge(job(holder=holder), "mail", facts(holders=GONE, uptime=100_000.0), now=NOW).verdict == "DEAD"
    nameless = Holder(host="wrk01", pid=812)
    young = judge(job(holder=nameless, running_for=3.0), "mail", facts(holders=GONE, uptime=100_000.0), now=NOW)
    assert young.verdict == "UNKNOWN" and pending(young)


def test_a_process_that_waits_for_its_child_is_not_hung() -> None:
    holder = process(812, cpu=0.0, idle_for=540.0)
    child = process(900, role="", cpu=0.9, idle_for=0.0, name="ffmpeg", ancestors=(Ancestor(pid=812, name="python3"),))
    claim = judge(job(), "mail", facts(processes=(holder, child), holders=SAME))
    assert claim.verdict == "ALIVE_SLOW" and "its child pid 900 (ffmpeg)" in claim.evidence[2]
    resting = msgspec.structs.replace(child, cpu=0.0, idle_for=540.0)
    assert judge(job(), "mail", facts(processes=(holder, resting), holders=SAME)).verdict == "HUNG"


def test_a_heartbeat_that_is_overdue_within_a_long_lease() -> None:
    rows = QueueFacts(heartbeat_limit=30.0)
    hung = facts(processes=(process(812, cpu=0.0, idle_for=60.0),), holders=SAME)
    assert judge(job(overdue=-800.0, heartbeat_age=61.0), "mail", hung, rows).verdict == "HUNG"
    assert judge(job(overdue=-800.0, heartbeat_age=11.0), "mail", hung, rows).verdict == "ALIVE"


def test_an_end_on_record() -> None:
    claim = judge(job(ended="succeeded 12 min ago"), "mail", facts(holders=SAME))
    assert claim.verdict == "FINISHED_BUT_CLAIMED" and claim.stuck
    assert claim.evidence[0] == "its end is on record: succeeded 12 min ago"


def test_reboot_kills_every_holder_of_the_old_boot() -> None:
    holder = Holder(host="wrk01", pid=812, start=8120, boot_id="another-boot")
    assert judge(job(holder=holder), "mail", facts(holders=SAME)).verdict == "DEAD"


def test_another_boot_id_proves_nothing_when_the_claim_was_made_since_the_boot() -> None:
    """In a container a unit with a /proc/sys of its own sees the boot id of the machine."""
    holder = Holder(host="wrk01", pid=812, start=8120, boot_id="of-the-machine")
    young = job(holder=holder, running_for=20.0, overdue=-10.0)
    assert judge(young, "mail", facts(holders=SAME, uptime=9000.0)).verdict == "ALIVE"
    assert judge(young, "mail", facts(holders=GONE, uptime=9000.0)).evidence[0] == "pid 812 no longer exists"
    assert judge(young, "mail", facts(holders=SAME, uptime=70.0)).verdict == "DEAD"


def test_dead_holder_makes_a_job_stuck_before_its_lease_ends() -> None:
    claim = judge(job(overdue=-30.0), "mail", facts(holders=GONE))
    assert claim.verdict == "DEAD"
    assert claim.stuck


def test_alive_within_the_lease() -> None:
    claim = judge(job(overdue=-30.0, heartbeat_age=2.0), "mail", facts(processes=(process(812),), holders=SAME))
    assert claim.verdict == "ALIVE"
    assert not claim.stuck


def test_alive_and_working_past_the_lease_is_slow() -> None:
    claim = judge(job(), "mail", facts(processes=(process(812, cpu=0.96, idle_for=0.5),), holders=SAME))
    assert claim.verdict == "ALIVE_SLOW"
    assert claim.stuck
    assert any("96%" in sentence for sentence in claim.evidence)


def test_alive_without_cpu_and_heartbeat_is_hung() -> None:
    claim = judge(job(), "mail", facts(processes=(process(812, cpu=0.0, idle_for=540.0),), holders=SAME))
    assert claim.verdict == "HUNG"


def test_a_short_look_calls_nobody_hung() -> None:
    for short in (process(812, cpu=0.0, idle_for=1.0), process(812, cpu=None)):
        claim = judge(job(), "mail", facts(processes=(short,), holders=SAME))
        assert claim.verdict == "ALIVE_SLOW"
        assert undecided(claim)


def test_no_cpu_for_long_is_hung_whatever_the_share_was_rounded_to() -> None:
    idle = facts(processes=(process(812, cpu=0.01, idle_for=60.0),), holders=SAME)
    assert judge(job(), "mail", idle).verdict == "HUNG"


def test_stopped_process_is_hung_within_its_lease() -> None:
    stopped = facts(processes=(process(812, state="T"),), holders=SAME)
    assert judge(job(overdue=-5.0), "mail", stopped).verdict == "HUNG"


@pytest.mark.parametrize(
    "holder",
    [None, Holder(text="a1b2c3"), Holder(host="wrk02", pid=812, start=8120)],
    ids=["no holder", "nothing identifies it", "other host"],
)
def test_what_cannot_be_looked_up_is_unknown(holder: Holder | None) -> None:
    assert judge(job(holder=holder), "mail", facts(holders=GONE)).verdict == "UNKNOWN"


def test_agent_down_proves_nothing() -> None:
    claim = judge(job(), "mail", facts(holders=GONE, agent=failing_reading("killed", HELLO)))
    assert claim.verdict == "UNKNOWN"


def test_pid_not_asked_yet_proves_nothing() -> None:
    assert judge(job(), "mail", facts()).verdict == "UNKNOWN"


def test_holder_known_by_its_unit_only() -> None:
    holder = Holder(host="wrk01", unit="mail-worker@1.service", boot_id=BOOT)
    assert judge(job(holder=holder), "mail", facts((failed_unit("mail-worker@1.service"),))).verdict == "DEAD"
    assert judge(job(holder=holder), "mail", facts((unit(),))).verdict == "UNKNOWN"
    left = facts((failed_unit("mail-worker@1.service"),), (process(900, unit="mail-worker@1.service"),))
    assert judge(job(holder=holder), "mail", left).verdict == "UNKNOWN", "KillMode=process has left one"
    stale = facts(failing_reading("the bus is gone", (failed_unit("mail-worker@1.service"),)))
    assert judge(job(holder=holder), "mail", stale).verdict == "UNKNOWN", "it may have been started since"


@given(
    overdue=st.one_of(st.none(), st.floats(-1e6, 1e6)),
    pid=st.integers(1, 2**22),
    start=st.one_of(st.none(), st.integers(0, 2**40)),
    now_start=st.one_of(st.none(), st.integers(0, 2**40)),
    cpu=st.one_of(st.none(), st.floats(0, 8)),
)
def test_a_live_holder_is_never_called_dead(
    overdue: float | None, pid: int, start: int | None, now_start: int | None, cpu: float | None
) -> None:
    holder = Holder(host="wrk01", pid=pid, start=start, boot_id=BOOT)
    alive = now_start is not None and start in (None, now_start)
    processes = (process(pid, start=now_start, cpu=cpu, started=NOW - 5000),) if now_start is not None else ()
    claim = judge(
        msgspec.structs.replace(job(), holder=holder, overdue=overdue),
        "mail",
        facts(processes=processes, holders=(PidState(pid=pid, start=now_start),)),
    )
    assert claim.evidence
    assert (claim.verdict == "DEAD") == (not alive)
    assert claim.stuck == (claim.verdict == "DEAD" or (overdue is not None and overdue > 0))
