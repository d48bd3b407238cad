"""Verdicts: only proof makes DEAD."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.fleet.model import Holder, PidState
from console.fleet.verdicts import judge, undecided
from tests.fleet.facts import BOOT, HELLO, NOW, facts, failed_unit, failing_reading, job, process, unit

GONE = (PidState(pid=812),)
SAME = (PidState(pid=812, start=8120, name="python3"),)
OTHER = (PidState(pid=812, start=9999, name="nginx"),)


def test_gone_pid_is_dead_with_the_units_reason() -> None:
    claim = judge(job(), "mail", facts((failed_unit("mail-worker@1.service", result="oom-kill"),), holders=GONE))
    assert claim.verdict == "DEAD"
    assert claim.stuck
    assert any("no longer exists" in sentence for sentence in claim.evidence)
    assert any("oom-kill" in sentence for sentence in claim.evidence)


def test_reused_pid_is_dead() -> None:
    claim = judge(job(), "mail", facts(holders=OTHER))
    assert claim.verdict == "DEAD"
    assert "another process now (nginx)" in claim.evidence[0]


def test_process_younger_than_the_claim_is_dead_when_the_row_has_no_start_time() -> None:
    holder = Holder(host="wrk01", pid=812)
    younger = facts(processes=(process(812, start=8120, started=NOW - 10),), holders=SAME)
    assert judge(job(holder=holder), "mail", younger).verdict == "DEAD"


def test_reboot_kills_every_holder_of_the_old_boot() -> None:
    holder = Holder(host="wrk01", pid=812, start=8120, boot_id="another-boot")
    assert judge(job(holder=holder), "mail", facts(holders=SAME)).verdict == "DEAD"


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
