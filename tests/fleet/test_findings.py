"""Findings: each fault is named, with evidence; a healthy fleet has none; what is unknown is not called zero."""

from __future__ import annotations

import msgspec

from console.fleet.model import Account, Count, CronLine, Host, Limits, Owner, PidState, Role, Unit
from tests.fleet.facts import (
    BOOT,
    GIB,
    HELLO,
    MAIL,
    NOW,
    by_cron,
    codes,
    counts,
    due,
    facts,
    failed_unit,
    failing_reading,
    finding,
    fleet,
    good,
    healthy,
    job,
    process,
    rows,
    unit,
)

LAUNCHER = CronLine(
    owner="deploy",
    source="/var/spool/cron/crontabs/deploy",
    line=4,
    schedule="* * * * *",
    command="/srv/mail/start.sh",
    per_hour=60.0,
    roles=("mail",),
    kind="launcher",
    workers_per_tick=3,
    evidence=("its script starts 3 workers in the background",),
)
WEBHOOKS = Role(name="webhooks", instances=("1",), queues=("webhooks",), match=("--role webhooks",))


def test_a_healthy_fleet_has_no_findings() -> None:
    found = fleet(facts(healthy()), rows(counts(waiting=Count(3), oldest_waiting=2.0)))
    assert found.findings == ()
    assert (found.roles[0].running, found.roles[0].desired, found.roles[0].owners) == (3, 3, ("systemd",))


def test_two_owners_come_first() -> None:
    strays = tuple(process(pid, owner=by_cron(), session=7) for pid in (400, 401, 402))
    host = facts((unit("mail-worker@1.service"),), strays, schedules=good((LAUNCHER,)))
    found = fleet(host, roles=(msgspec.structs.replace(MAIL, instances=("1",)),))
    assert found.findings[0].code == "two-owners"
    assert found.findings[0].severity == "error"
    assert "crontab of deploy, line 4 (3 workers)" in found.findings[0].what
    assert "mail-worker@1" in found.findings[0].what
    assert any("cgroup is cron.service" in sentence for sentence in found.findings[0].evidence)
    assert {"launcher-piles-up", "outside-unit"} <= set(codes(found))
    assert found.roles[0].owners == ("cron", "systemd")


def test_a_worker_that_a_person_starts_is_a_second_owner_and_its_session_is_named() -> None:
    """After a migration: the line is gone, the units run, and somebody starts one by hand."""
    by_hand = Owner(kind="session", name="deploy", detail="session 3", evidence=("its cgroup is the login session 3",))
    found = fleet(facts(healthy(), (process(400, owner=by_hand),)))
    second = finding(found, "two-owners")
    assert second.what == "two owners: systemd (3 workers) and session 3 (1 worker)"
    assert any("its cgroup is the login session 3" in sentence for sentence in second.evidence)
    assert "session 3" in finding(found, "outside-unit").what


def test_a_worker_of_a_disabled_line_is_a_second_owner_and_the_account_is_named() -> None:
    found = fleet(facts(healthy(), (process(400, owner=by_cron(), session=7),)))
    assert "crontab of deploy" in finding(found, "two-owners").what


def test_two_owners_are_named_before_cron_has_started_anything() -> None:
    found = fleet(facts(healthy(), schedules=good((LAUNCHER,))))
    assert "two-owners" in codes(found)


def test_one_owner_is_no_finding() -> None:
    strays = tuple(process(pid, role="webhooks", owner=by_cron()) for pid in (400, 401))
    line = msgspec.structs.replace(LAUNCHER, roles=("webhooks",))
    found = fleet(facts(processes=strays, schedules=good((line,))), roles=(WEBHOOKS,))
    assert "two-owners" not in codes(found)
    assert "outside-unit" not in codes(found)


def test_watchdogs_that_cannot_work() -> None:
    never = msgspec.structs.replace(LAUNCHER, kind="watchdog", faults=("guard-matches-itself",), roles=("webhooks",))
    found = fleet(facts(schedules=good((never,))), rows(due(88, 2467.0, queue="webhooks")), roles=(WEBHOOKS,))
    assert "pgrep finds its own shell" in finding(found, "watchdog-never-starts").what
    assert "nothing runs while 88 jobs wait" in finding(found, "nothing-runs").what
    always = msgspec.structs.replace(never, faults=("guard-never-matches",))
    assert "watchdog-always-starts" in codes(fleet(facts(schedules=good((always,))), roles=(WEBHOOKS,)))


def test_crash_loop_with_reason_and_arithmetic() -> None:
    looping = unit(
        "mail-worker@2.service",
        active="activating",
        sub="auto-restart",
        restarts=12,
        exit_code="exited",
        exit_status=1,
        restart_sec=2.0,
        start_limit_interval=10.0,
        last_words="KeyError: 'BUCKET'",
    )
    found = fleet(facts((unit(), looping, unit("mail-worker@3.service"))))
    loop = finding(found, "crash-loop")
    assert loop.what.startswith("@2 crash loop")
    assert "KeyError: 'BUCKET'" in loop.what
    assert any("never stops it" in sentence for sentence in loop.evidence)
    assert "start-limit-out-of-reach" in codes(found)


def test_given_up_instances_by_reason() -> None:
    units = (
        failed_unit("mail-worker@1.service", start_limit_hit=True, last_words="boom"),
        failed_unit("mail-worker@2.service", result="oom-kill"),
        failed_unit("mail-worker@3.service"),
    )
    found = fleet(facts(units))
    assert "12 min ago" in finding(found, "start-limit-hit").what
    assert "exit status 1 after 0.3 s" in finding(found, "start-limit-hit").what
    assert '"boom"' in finding(found, "start-limit-hit").what
    assert "memory limit" in finding(found, "memory-killed").what
    assert finding(found, "failed").what.startswith("@3")
    assert "nothing-runs" in codes(found)


def test_missing_instances() -> None:
    found = fleet(
        facts((unit(), Unit(name="mail-worker@2.service", enabled="disabled"), unit("mail-worker@3.service")))
    )
    assert finding(found, "missing-instances").what == "1 of 3 instances missing: @2"


def test_template_that_does_not_exist() -> None:
    lost = tuple(Unit(name=name, load="not-found") for name in MAIL.desired_units())
    found = fleet(facts(lost))
    assert "not installed" in finding(found, "template-missing").what
    assert "missing-instances" not in codes(found)


def test_hung_role_and_worker() -> None:
    role = msgspec.structs.replace(MAIL, instances=("1",))
    claimed = job(overdue=535.0, heartbeat_age=590.0)
    host = facts(
        (unit("mail-worker@1.service", main_pid=812),),
        (process(812, unit="mail-worker@1.service", cpu=0.0, idle_for=540.0),),
        (PidState(pid=812, start=8120),),
    )
    found = fleet(
        host, rows(due(12, 595.0, last_finished=595.0, done_per_minute=0.0), running=(claimed,)), roles=(role,)
    )
    assert found.roles[0].workers[0].state == "hung"
    assert finding(found, "no-progress").severity == "error"
    assert "no job finished for 9:55 while 12 wait" in finding(found, "no-progress").what
    assert finding(found, "stuck-hung").severity == "error"


def test_nobody_hangs_and_nothing_is_late_where_the_queue_is_paused() -> None:
    waits = due(12, 5000.0, last_finished=5000.0, done_per_minute=0.0)
    assert {"no-progress", "oldest-waiting"} <= set(codes(fleet(facts(healthy()), rows(waits))))
    found = fleet(facts(healthy()), rows(msgspec.structs.replace(waits, paused=("mail",))))
    assert codes(found) == ["paused"]
    said = finding(found, "paused")
    assert (said.severity, said.next) == ("warning", "resume") and "12 wait" in said.what
    assert {worker.state for worker in found.roles[0].workers} == {"running"}


def test_a_role_of_which_one_queue_is_paused_is_looked_at_all_the_same() -> None:
    role = msgspec.structs.replace(MAIL, queues=("mail", "bulk"))
    waits = due(12, 5000.0, last_finished=5000.0, done_per_minute=0.0)
    found = fleet(facts(healthy()), rows(waits, counts("bulk", last_finished=None, paused=("bulk",))), roles=(role,))
    assert "paused in part: bulk" in finding(found, "paused").what
    assert "no-progress" in codes(found)


def test_a_long_job_that_renews_its_lease_is_slow_not_hung() -> None:
    role = msgspec.structs.replace(MAIL, instances=("1",))
    host = facts(
        (unit("mail-worker@1.service", main_pid=812),),
        (process(812, unit="mail-worker@1.service"),),
        (PidState(pid=812, start=8120),),
    )
    working = job(overdue=-50.0, heartbeat_age=4.0)
    found = fleet(host, rows(due(12, 1200.0, last_finished=1200.0), running=(working,)), roles=(role,))
    assert found.roles[0].workers[0].state == "running"
    assert finding(found, "no-progress").severity == "warning"


def test_stuck_jobs_of_dead_holders_are_counted_before_their_lease_ends() -> None:
    running = (job("1"), job("2", overdue=-20.0))
    found = fleet(facts(healthy(), holders=(PidState(pid=812),)), rows(counts(stuck=Count(1)), running=running))
    assert finding(found, "stuck-dead").what.startswith("2 jobs held by dead workers")
    assert finding(found, "stuck-dead").next == "reclaim"
    assert found.roles[0].stuck == 2


def test_a_job_whose_holder_was_not_looked_up_yet_is_no_finding() -> None:
    found = fleet(facts(healthy()), rows(counts(stuck=Count(1)), running=(job("1"),)))
    assert found.roles[0].stuck == 1
    assert codes(found) == []


def test_more_stuck_jobs_than_were_judged() -> None:
    found = fleet(facts(healthy(), holders=(PidState(pid=812),)), rows(counts(stuck=Count(900)), running=(job("1"),)))
    assert "899 more" in finding(found, "stuck-unjudged").what


def test_oldest_waiting_over_its_limit() -> None:
    found = fleet(facts(healthy()), rows(due(400, 1102.0)))
    assert "18:22" in finding(found, "oldest-waiting").what


def test_failing_more_than_succeeding() -> None:
    assert "failing" in codes(fleet(facts(healthy()), rows(counts(failed_per_minute=9.0, done_per_minute=1.0))))


def test_budgets() -> None:
    many = tuple(unit(f"mail-worker@{n}.service", memory_max=GIB) for n in range(1, 10))
    account = Account(user="deploy", uid=1500, processes=90, tasks=200, limit=220, limit_source="RLIMIT_NPROC")
    host = facts(
        many,
        (process(101, unit="mail-worker@1.service"),),
        host=good(Host(name="wrk01", boot_id=BOOT, memory_total=8 * GIB, accounts=(account,))),
    )
    found = fleet(host, limits=Limits(account_processes=80))
    assert "9 workers run, the budget is 8" in finding(found, "over-budget").what
    assert "9.5G" in finding(found, "over-memory").what
    assert "90 processes, the budget is 80" in finding(found, "over-processes").what
    assert "200 of 220" in finding(found, "near-process-limit").what


def test_limit_that_is_not_enforced() -> None:
    assert "memory-limit-not-enforced" in codes(fleet(facts((unit(memory_enforced=False), *healthy()[1:]))))


def test_sources_down_are_findings_and_not_zeros() -> None:
    down = fleet(
        facts(
            agent=failing_reading("killed", HELLO),
            units=failing_reading("killed", ()),
            processes=failing_reading("killed", ()),
        )
    )
    assert [f.what for f in down.findings if f.code == "source-down"] == ["agent: killed"]
    assert "nothing-runs" not in codes(down)
    queue = fleet(facts(healthy()), failing_reading("connection refused"))
    assert "connection refused" in finding(queue, "source-down").what
    denied = fleet(facts(healthy(), schedules=failing_reading("crontabs of other accounts: not permitted", ())))
    assert finding(denied, "source-denied").severity == "note"


def test_agent_that_has_not_answered_yet_is_no_fault() -> None:
    from console.fleet.model import HostFacts

    waiting = fleet(HostFacts(), None)
    assert codes(waiting) == []
    assert {source.state for source in waiting.sources} == {"waiting", "absent"}


def test_without_configuration_every_template_is_a_role() -> None:
    units = (unit("a@1.service"), unit("a@2.service"), unit("b@x.service", active="failed", sub="failed"))
    found = fleet(facts(units), roles=())
    assert [(s.role.name, s.desired, s.running) for s in found.roles] == [("a", 2, 2), ("b", 1, 0)]
    assert "missing-instances" not in codes(found)


def test_other_supervisor_is_named() -> None:
    pm2 = Owner(kind="pm2", name="mail", detail="pm2 mail", evidence=("its ancestor is PM2 v7: God Daemon",))
    found = fleet(facts(healthy(), (process(400, owner=pm2),)))
    assert "pm2 mail (1 worker)" in finding(found, "two-owners").what
    assert "supervisor" in finding(found, "outside-unit").remedy


def test_assembling_is_pure() -> None:
    host, queue = facts(healthy(), holders=(PidState(pid=812),)), rows(due(400, 1102.0), running=(job("1"),))
    assert fleet(host, queue) == fleet(host, queue)
    assert fleet(host, queue).now == NOW


def test_roles_that_share_a_queue_by_type_are_counted_apart() -> None:
    bulk = msgspec.structs.replace(WEBHOOKS, name="bulk", queues=("mail",), types=("bulk",))
    single = msgspec.structs.replace(WEBHOOKS, name="single", queues=("mail",), types=("single",))
    queue = rows(
        counts(types=("bulk",), waiting=Count(5)),
        counts(types=("single",), waiting=Count(7)),
        running=(job("1", type="single"),),
    )
    found = fleet(facts(), queue, roles=(bulk, single))
    assert [status.queue.waiting.n for status in found.roles if status.queue] == [5, 7]
    assert [claim.role for claim in found.claims] == ["single"]
