"""Builders of facts: a host that answered, units, processes and rows, with only what a test is about spelt out."""

from __future__ import annotations

from typing import Any

from console.errors import Problem
from console.fleet.assemble import assemble
from console.fleet.model import (
    Count,
    Finding,
    Fleet,
    Hello,
    Holder,
    Host,
    HostFacts,
    Ident,
    Job,
    Limits,
    Owner,
    Process,
    QueueCounts,
    QueueFacts,
    Reading,
    Role,
    Unit,
)

NOW = 1_800_000_000.0
BOOT = "5a1d4c1e-0000-4000-8000-000000000001"
HELLO = Hello(
    protocol=1, version="0.1.0", host="wrk01", boot_id=BOOT, user="deploy", uid=1500, manager="system", systemd="252"
)
GIB = 1024**3
MIB = 1024**2

MAIL = Role(
    name="mail",
    template="mail-worker@.service",
    instances=("1", "2", "3"),
    budget=8,
    queues=("mail",),
    match=("--role mail",),
)


def unit(name: str = "mail-worker@1.service", **given: Any) -> Unit:
    usual: dict[str, Any] = {
        "active": "active",
        "sub": "running",
        "main_pid": 100 + (int(name.split("@")[1].split(".")[0]) if name.split("@")[1][0].isdigit() else 0),
        "since": NOW - 3600,
        "started": NOW - 3600,
        "restart": "on-failure",
        "restart_sec": 1.0,
        "start_limit_interval": 60.0,
        "start_limit_burst": 5,
        "memory_now": 32 * MIB,
        "memory_max": 256 * MIB,
        "enabled": "enabled",
    }
    return Unit(name=name, **(usual | given))


def failed_unit(name: str, **given: Any) -> Unit:
    ended: dict[str, Any] = {
        "active": "failed",
        "sub": "failed",
        "result": "exit-code",
        "exit_code": "exited",
        "exit_status": 1,
        "main_pid": 0,
        "started": NOW - 720.3,
        "exited": NOW - 720,
        "since": NOW - 720,
    }
    return unit(name, **(ended | given))


def process(pid: int, role: str = "mail", **given: Any) -> Process:
    usual: dict[str, Any] = {"started": NOW - 3600, "rss": 20 * MIB, "cpu": 0.1, "uid": 1500, "user": "deploy"}
    return Process(ident=Ident(BOOT, pid, given.pop("start", pid * 10)), role=role, **(usual | given))


def by_cron(line: int = 4) -> Owner:
    return Owner(
        kind="cron",
        name="deploy",
        detail=f"crontab of deploy, line {line}",
        evidence=("its cgroup is cron.service", "login uid is deploy"),
    )


def job(job_id: str = "1", **given: Any) -> Job:
    usual: dict[str, Any] = {
        "queue": "mail",
        "type": "send",
        "state": "running",
        "attempts": 1,
        "started": NOW - 1900,
        "overdue": 1800.0,
        "heartbeat_age": 1860.0,
        "holder": Holder(
            host="wrk01", unit="mail-worker@1.service", pid=812, start=8120, boot_id=BOOT, text="wrk01:812"
        ),
    }
    return Job(id=job_id, **(usual | given))


def counts(queue: str = "mail", **given: Any) -> QueueCounts:
    usual: dict[str, Any] = {"done_per_minute": 60.0, "failed_per_minute": 0.0, "last_finished": 1.0}
    return QueueCounts(queue=queue, **(usual | given))


def good(value: Any) -> Reading[Any]:
    return Reading(value=value, taken=NOW - 1)


def facts(units: Any = (), processes: Any = (), holders: Any = (), **given: Any) -> HostFacts:
    usual: dict[str, Any] = {
        "hello": HELLO,
        "agent": good(HELLO),
        "units": good(units) if isinstance(units, tuple) else units,
        "processes": good(processes) if isinstance(processes, tuple) else processes,
        "host": good(Host(name="wrk01", boot_id=BOOT, memory_total=8 * GIB)),
        "schedules": good(()),
        "holders": good(holders),
    }
    return HostFacts(**(usual | given))


def rows(*queue_counts: QueueCounts, running: tuple[Job, ...] = ()) -> Reading[QueueFacts]:
    return good(QueueFacts(counts=queue_counts, running=running))


def fleet(
    host: HostFacts,
    queue: Reading[QueueFacts] | None = None,
    roles: tuple[Role, ...] = (MAIL,),
    limits: Limits | None = None,
) -> Fleet:
    return assemble(host, queue, roles, limits or Limits(), NOW)


def codes(found: Fleet) -> list[str]:
    return [finding.code for finding in found.findings]


def finding(found: Fleet, code: str) -> Finding:
    matching = [item for item in found.findings if item.code == code]
    assert matching, f"no finding {code} among {codes(found)}"
    return matching[0]


def failing_reading(why: str, value: Any = None) -> Reading[Any]:
    return Reading(
        value=value,
        taken=NOW - 42 if value is not None else None,
        problem=Problem("ask", why, "mend it"),
        failing_since=NOW - 40,
    )


def healthy() -> tuple[Unit, ...]:
    return tuple(unit(f"mail-worker@{n}.service") for n in (1, 2, 3))


def due(n: int, oldest: float, **given: Any) -> QueueCounts:
    return counts(waiting=Count(n), oldest_waiting=oldest, **given)
