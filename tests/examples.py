"""An example fleet, rich in faults: six roles on one host, with the findings a person would see for them."""

from __future__ import annotations

from typing import Any

import msgspec

from console.errors import Problem
from console.fleet.diagnosis.diagnose import diagnose_role
from console.fleet.diagnosis.model import Diagnosis
from console.fleet.model import (
    Claim,
    Count,
    Finding,
    Fleet,
    Hello,
    Host,
    HostDetail,
    Ident,
    Job,
    LogLine,
    Owner,
    Process,
    QueueCounts,
    QueueFacts,
    Role,
    RoleStatus,
    SourceStatus,
    TreeProcess,
    Trend,
    TrendPoint,
    Unit,
    UnitDetail,
    UnitFile,
    Worker,
    WorkerState,
)

BOOT = "6f1c2a1e-0d7d-4f0e-9a51-2f6f3f1f8c11"
NOW = 1_764_434_527.0  # 2025-11-29 16:42:07 UTC
M = 1024 * 1024

_UNIT_OF_STATE: dict[WorkerState, tuple[str, str, str]] = {
    "running": ("active", "running", "success"),
    "starting": ("activating", "start", "success"),
    "stopping": ("deactivating", "stop-sigterm", "success"),
    "restarting": ("activating", "auto-restart", "exit-code"),
    "looping": ("activating", "auto-restart", "exit-code"),
    "start-limit": ("failed", "failed", "start-limit-hit"),
    "memory-killed": ("failed", "failed", "oom-kill"),
    "failed": ("failed", "failed", "exit-code"),
    "stopped": ("inactive", "dead", "success"),
    "missing": ("inactive", "dead", "success"),
    "hung": ("active", "running", "success"),
    "unknown": ("inactive", "dead", "success"),
}


def role(name: str, instances: int = 1, budget: int | None = None) -> Role:
    """A configured role with the template NAME-worker@.service."""
    return Role(
        name=name,
        template=f"{name}-worker@.service",
        instances=tuple(str(number) for number in range(1, instances + 1)),
        budget=budget,
        queues=(name,),
    )


def worker(
    of: Role, instance: str, state: WorkerState = "running", why: str = "", memory: int | None = 32 * M
) -> Worker:
    """One instance of a role in a state, with its unit and, where it is alive, its process."""
    name = of.unit_name(instance)
    active, sub, result = _UNIT_OF_STATE[state]
    alive = active == "active"
    pid = 400 + sum(name.encode()) % 500
    owner = Owner(kind="systemd", name=name, detail=name, evidence=(f"its cgroup is that of {name}",))
    process = Process(
        ident=Ident(BOOT, pid, 4711 + pid),
        role=of.name,
        ppid=1,
        name="python3",
        command=("/usr/bin/python3", "-m", "console", "worker", "--role", of.name),
        user="deploy",
        uid=1000,
        state="S",
        started=NOW - 7200,
        cgroup=f"/system.slice/{name}",
        unit=name,
        rss=memory,
        cpu=0.02,
        owner=owner,
    )
    unit = Unit(
        name=name,
        load="not-found" if state == "missing" else "loaded",
        active=active,
        sub=sub,
        result=result,
        main_pid=pid if alive else 0,
        since=NOW - 7200,
        restarts=12 if state == "looping" else 0,
        restarts_per_minute=4.0 if state == "looping" else 0.0,
        memory_now=memory if alive else None,
        memory_max=256 * M,
        memory_enforced=True,
        restart="on-failure",
        restart_sec=5.0,
        start_limit_hit=state == "start-limit",
    )
    return Worker(
        key=name,
        role=of.name,
        name=f"@{instance}",
        state=state,
        why=why,
        unit=unit,
        processes=(process,) if alive else (),
        owner=owner if alive else Owner(kind="unknown"),
        since=NOW - 7200,
        memory=memory if alive else None,
        memory_max=256 * M,
    )


def stray(of: Role, pid: int) -> Worker:
    """A worker of a role that a crontab started."""
    owner = Owner(
        kind="cron",
        name="deploy",
        detail="crontab of deploy, line 4",
        evidence=("cgroup /system.slice/cron.service", "an ancestor is cron (pid 301)"),
    )
    process = Process(
        ident=Ident(BOOT, pid, 90_000 + pid),
        role=of.name,
        ppid=301,
        name="python3",
        command=("/usr/bin/python3", "-m", "console", "worker", "--role", of.name),
        user="deploy",
        uid=1000,
        rss=87 * M,
        owner=owner,
    )
    return Worker(
        key=f"{pid}:{90_000 + pid}",
        role=of.name,
        name=f"pid {pid}",
        state="stray",
        desired=False,
        why="started by the crontab of deploy, line 4",
        processes=(process,),
        owner=owner,
        memory=87 * M,
    )


def counts(queue: str, waiting: int, oldest: float | None, running: int, failed: int, done: float) -> QueueCounts:
    """The counts of one queue."""
    return QueueCounts(
        queue=queue,
        waiting=Count(waiting),
        scheduled=Count(3),
        oldest_waiting=oldest,
        running=Count(running),
        failed=Count(failed),
        done_per_minute=done,
        failed_per_minute=0.4 if failed else 0.0,
        last_finished=None if done == 0 else 1.5,
    )


def roles() -> tuple[RoleStatus, ...]:
    """Six roles: healthy, two owners, broken in three ways, nobody's, hung, and one that is only slow to start."""
    mail = role("mail", 3, 8)
    reports = role("reports", 3, 4)
    thumbnails = role("thumbnails", 4, 6)
    webhooks = role("webhooks", 1, 2)
    exports = role("exports", 1, 1)
    digest = role("digest", 2, 2)
    return (
        RoleStatus(
            role=mail,
            workers=tuple(worker(mail, number) for number in mail.instances),
            running=3,
            desired=3,
            owners=("systemd",),
            queue=counts("mail", 412, 41.0, 3, 2, 118.0),
            trend=trend("mail", (180, 260, 330, 390, 430, 470, 500, 460, 430, 420, 440, 415, 405, 410, 412)),
            stuck=0,
            memory=96 * M,
            memory_allowed=768 * M,
        ),
        RoleStatus(
            role=reports,
            workers=(worker(reports, "1"), *(stray(reports, 4400 + number) for number in range(6))),
            running=7,
            desired=3,
            owners=("cron (deploy)", "systemd"),
            queue=counts("reports", 1204, 1102.0, 7, 0, 9.0),
            trend=trend("reports", (700, 720, 790, 800, 860, 900, 930, 980, 1010, 1060, 1100, 1130, 1160, 1190, 1204)),
            stuck=2,
            memory=610 * M,
        ),
        RoleStatus(
            role=thumbnails,
            workers=(
                worker(thumbnails, "1", memory=201 * M),
                worker(thumbnails, "2", "looping", "exit status 1 after 0.3 s, 12 restarts"),
                worker(thumbnails, "3", "start-limit", "start limit hit 12 min ago"),
                worker(thumbnails, "4", "memory-killed", "killed by its memory limit of 256M"),
            ),
            running=1,
            desired=4,
            owners=("systemd",),
            queue=counts("thumbnails", 310, 370.0, 1, 17, 3.0),
            trend=trend("thumbnails", (120, 120, 130, 150, 160, 180, 190, 210, 230, 250, 260, 280, 290, 300, 310)),
            stuck=4,
            memory=201 * M,
            memory_allowed=1024 * M,
        ),
        RoleStatus(
            role=webhooks,
            workers=(worker(webhooks, "1", "missing", "there is no such unit"),),
            running=0,
            desired=1,
            queue=counts("webhooks", 88, 2467.0, 0, 0, 0.0),
            trend=trend("webhooks", (12, 17, 22, 28, 33, 39, 44, 50, 55, 61, 66, 72, 77, 83, 88)),
            stuck=1,
        ),
        RoleStatus(
            role=exports,
            workers=(worker(exports, "1", "hung", "no job finished for 9:55 while 12 wait", 44 * M),),
            running=1,
            desired=1,
            owners=("systemd",),
            queue=counts("exports", 12, 595.0, 1, 0, 0.0),
            trend=trend("exports", (*(None,) * 6, 1, 2, 4, 5, 7, 8, 10, 11, 12)),
            stuck=1,
            memory=44 * M,
            memory_allowed=256 * M,
        ),
        RoleStatus(
            role=digest,
            workers=(worker(digest, "1"), worker(digest, "2", "starting")),
            running=1,
            desired=2,
            owners=("systemd",),
            queue=counts("digest", 0, None, 1, 0, 2.5),
            trend=trend("digest", (0,) * 15),
            stuck=0,
            memory=32 * M,
            memory_allowed=512 * M,
        ),
    )


def findings() -> tuple[Finding, ...]:
    """The findings of those roles, in no particular order."""
    return (
        Finding(
            code="start-limit-hit",
            severity="warning",
            role="thumbnails",
            what="@3 start limit hit 12 min ago, exit status 1 after 0.3 s each time: \"KeyError: 'BUCKET'\"",
            evidence=(
                "thumbnails-worker@3.service: Result=start-limit-hit since 16:30:02 UTC",
                "journal: Start request repeated too quickly.",
                "last lines: KeyError: 'BUCKET'",
            ),
            remedy="Give the unit the missing setting, then reset-failed and start thumbnails-worker@3.service.",
            next="diagnose",
        ),
        Finding(
            code="two-owners",
            severity="error",
            role="reports",
            what="two owners: crontab of deploy, line 4 (6 processes, 3 more each minute) and reports-worker@1",
            evidence=(
                "6 processes have cron (pid 301) among their ancestors; crontab of deploy, line 4: "
                "* * * * * /srv/reports/start.sh",
                "reports-worker@1.service runs pid 431",
            ),
            remedy="Decide for the unit and retire the launcher, so that one mechanism starts the workers.",
            next="retire the launcher",
        ),
        Finding(
            code="nothing-runs",
            severity="error",
            role="webhooks",
            what="nothing runs; its watchdog line can never start it: pgrep finds its own shell",
            evidence=(
                "crontab of deploy, line 7: pgrep -f webhooks-worker || nohup webhooks-worker &",
                "pgrep -f matches the shell that cron starts for this very line",
                "88 jobs wait, the oldest for 41:07",
            ),
            remedy="Move the role to systemd, where a missing worker is restarted.",
            next="move to systemd",
        ),
        Finding(
            code="no-progress",
            severity="error",
            role="exports",
            what="alive but no job finished for 9:55 while 12 wait",
            evidence=("exports-worker@1.service is active (running), pid 377", "pid 377 used no CPU for 9 min"),
            remedy="Look at what it waits for; restart it when that is nothing.",
            next="diagnose",
        ),
        Finding(
            code="stuck-jobs",
            severity="warning",
            role="thumbnails",
            what="4 jobs held by dead workers (oldest 31 min)",
            evidence=("jobs 918233, 918240, 918251, 918260: pid 812 is another process now",),
            remedy="Return them to waiting; a late finish of the old holder is rejected by the lease token.",
            next="reclaim",
        ),
        Finding(
            code="start-limit-never",
            severity="warning",
            role="mail",
            what="start limit can never be reached: 5 × (30 s + 45 s) > 5 min",
            evidence=("StartLimitBurst=5, RestartSec=30, StartLimitIntervalSec=300, each run lasts about 45 s",),
            remedy="Raise StartLimitIntervalSec above 375 s or lower RestartSec.",
            next="limits",
        ),
        Finding(
            code="source-down",
            severity="note",
            what="crontabs cannot be read: permission denied for /var/spool/cron/crontabs",
            evidence=("the agent runs as deploy",),
            remedy='Run the agent with more rights: [host] agent = ["sudo", "-n", "worktop", "agent"].',
            next="doctor",
        ),
    )


def claims() -> tuple[Claim, ...]:
    """Two running jobs: one held by a dead worker, one by a slow one."""
    return (
        Claim(
            job=Job(id="918233", queue="thumbnails", type="resize", state="running", overdue=1862.0),
            role="thumbnails",
            verdict="DEAD",
            evidence=("unit killed by its memory limit 31 min ago; pid 812 is another process now",),
            stuck=True,
        ),
        Claim(
            job=Job(id="918377", queue="reports", type="monthly", state="running", overdue=160.0),
            role="reports",
            verdict="ALIVE_SLOW",
            evidence=("alive, 96 % CPU, heartbeat 4 s ago",),
            stuck=True,
            worker="4400:94400",
        ),
    )


def sources() -> tuple[SourceStatus, ...]:
    """Every source well but the crontabs, which are not permitted."""
    return (
        SourceStatus(name="units", state="live", age=0.2, text="units now"),
        SourceStatus(name="processes", state="live", age=0.9, text="processes now"),
        SourceStatus(name="queue", state="live", age=1.6, text="queue 2 s"),
        SourceStatus(
            name="schedules",
            state="denied",
            age=42.0,
            text="crontabs 42 s old: not permitted",
            problem=Problem("read /var/spool/cron/crontabs", "not permitted", "run the agent as root"),
        ),
    )


def example_fleet() -> Fleet:
    """The whole of it."""
    return Fleet(
        now=NOW,
        hello=Hello(
            protocol=1,
            version="0.1.0",
            host="wrk01",
            boot_id=BOOT,
            user="deploy",
            uid=1000,
            manager="system",
            systemd="252 (252.39-1~deb12u1)",
        ),
        host=Host(
            name="wrk01",
            boot_id=BOOT,
            memory_total=8192 * M,
            memory_available=5120 * M,
            load=(0.4, 0.5, 0.6),
            cpus=4,
            processes=181,
            now=NOW,
        ),
        queue=QueueFacts(
            server="PostgreSQL 17.2",
            user="app",
            database="app",
            address="127.0.0.1:5432",
            now=NOW,
            skew=0.002,
            preset="worktop",
            counts=tuple(status.queue for status in roles() if status.queue is not None),
        ),
        roles=roles(),
        claims=claims(),
        findings=findings(),
        sources=sources(),
    )


def with_role(fleet: Fleet, name: str, **changes: object) -> Fleet:
    """The fleet with some fields of one role's status replaced."""
    changed = tuple(
        msgspec.structs.replace(status, **changes) if status.role.name == name else status for status in fleet.roles
    )
    return msgspec.structs.replace(fleet, roles=changed)


def with_paused(fleet: Fleet, name: str) -> Fleet:
    """The fleet with the queues of one role paused."""
    (status,) = (status for status in fleet.roles if status.role.name == name)
    assert status.queue is not None
    return with_role(fleet, name, queue=msgspec.structs.replace(status.queue, paused=status.role.queues))


def tree_process(pid: int, command: str, depth: int = 0, **more: Any) -> TreeProcess:
    """A process of a tree."""
    words = tuple(command.split())
    return TreeProcess(
        ident=Ident(BOOT, pid, 4711 + pid),
        depth=depth,
        user="deploy",
        name=words[0].rpartition("/")[2][:15],
        command=words,
        state="S",
        rss=32 * M,
        cpu_seconds=12.5,
        started=NOW - 7200,
        **more,
    )


def log_lines(number: int = 6) -> tuple[LogLine, ...]:
    """The last lines of three workers of a role, the last ones in trouble."""
    texts = ("job 918233 done in 0.4 s", "job 918240 done in 1.2 s", "waiting for work")
    lines = [
        LogLine(
            at=NOW - 60 + index,
            unit=f"mail-worker@{index % 3 + 1}.service",
            priority=6,
            text=texts[index % 3],
            pid=431 + index % 3,
            cursor=f"s=1;i={index}",
        )
        for index in range(max(0, number - 3))
    ]
    trouble = (
        (4, "heartbeat took 4.2 s: the database is slow", False),
        (3, "job 918251 failed: KeyError: 'BUCKET'", False),
        (5, "mail-worker@2.service: Scheduled restart job, restart counter is at 3.", True),
    )
    for index, (priority, text, by_manager) in enumerate(trouble):
        lines.append(
            LogLine(
                at=NOW - 10 + index,
                unit=f"mail-worker@{index % 2 + 1}.service",
                priority=priority,
                text=text,
                pid=1 if by_manager else 431,
                by_manager=by_manager,
                cursor=f"s=2;i={index}",
            )
        )
    return tuple(lines)


def unit_detail() -> UnitDetail:
    """What is told of thumbnails-worker@1.service: a fragment with a drop-in, two processes, a few lines."""
    return UnitDetail(
        name="thumbnails-worker@1.service",
        properties=(
            ("LoadState", "loaded"),
            ("ActiveState", "active"),
            ("SubState", "running"),
            ("Result", "success"),
            ("MainPID", "431"),
            ("NRestarts", "0"),
            ("ExecStart", "/usr/bin/python3 -m console worker --role thumbnails --token ••••"),
            ("MemoryMax", "268435456"),
            ("Restart", "on-failure"),
            ("RestartUSec", "5s"),
        ),
        files=(
            UnitFile(
                path="/etc/systemd/system/thumbnails-worker@.service",
                text="[Unit]\nDescription=Thumbnails %i\n\n[Service]\nExecStart=/srv/thumbnails/run.py\n"
                "# once it was 128M\nMemoryMax=256M\nRestart=on-failure\n",
            ),
            UnitFile(path="/etc/systemd/system/thumbnails-worker@1.service.d/limit.conf", problem="permission denied"),
        ),
        tree=(
            tree_process(431, "/usr/bin/python3 -m console worker --role thumbnails"),
            tree_process(440, "/usr/bin/convert in.png -resize 200x out.png", 1),
        ),
        log=log_lines(),
    )


def diagnoses(role: str = "thumbnails") -> tuple[Diagnosis, ...]:
    """The role as a whole and each of its workers, from what the fleet alone tells."""
    fleet = example_fleet()
    return diagnose_role(fleet, next(status for status in fleet.roles if status.role.name == role))


def host_detail() -> HostDetail:
    """Two trees: a worker with a child under its unit, and a launcher's under cron."""
    unit = Owner(kind="systemd", name="mail-worker@1.service")
    cron = Owner(kind="cron", name="deploy", detail="crontab of deploy, line 4")
    return HostDetail(
        trees=(
            tree_process(431, "/usr/bin/python3 -m console worker --role mail", owner=unit, role="mail"),
            tree_process(440, "/usr/bin/convert in.png out.png", 1, owner=unit),
            tree_process(4400, "/usr/bin/python3 -m console worker --role reports", owner=cron, role="reports"),
        ),
        cut=3,
    )


def trend(queue: str, waiting: tuple[int | None, ...], done: tuple[int | None, ...] = ()) -> Trend:
    """The last minutes of a queue, one number a minute."""
    first = NOW // 60 * 60 - 60 * (len(waiting) - 1)
    return Trend(
        queue=queue,
        points=tuple(
            TrendPoint(
                at=first + 60 * index,
                waiting=number,
                oldest=None if number is None else number * 1.5,
                done=done[index] if index < len(done) else None,
                failed=0,
            )
            for index, number in enumerate(waiting)
        ),
    )
