"""The faults of the demo host, and how each reads as a finding."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    role: str
    code: str
    on_screen: str  # regular expression in the finding's line
    evidence: str  # regular expression in one of its sentences


FAULTS = (
    Fault(
        "reports", "two-owners", r"two owners: .*reports-worker@1.*crontab of deploy, line 4", r"login uid is deploy"
    ),
    Fault(
        "reports",
        "launcher-piles-up",
        r"cron is not a supervisor: .* starts 3 more each time",
        r"/srv/reports/start\.sh",
    ),
    Fault("reports", "outside-unit", r"processes outside reports-worker@\.service", r"cgroup belongs to cron\.service"),
    Fault("reports", "over-budget", r"\d+ workers run, the budget is 3", r"from crontab of deploy, line 4: pid \d+"),
    Fault("reports", "stuck-alive-slow", r"past the lease, but the holder lives", r"ALIVE_SLOW: pid \d+ is alive"),
    Fault("thumbnails", "crash-loop", r"@4 crash loop: .*KeyError: 'BUCKET'", r"start limit never stops it: 5 × "),
    Fault(
        "thumbnails",
        "start-limit-hit",
        r"@2 hit its start limit .*'high'",
        r"StartLimitBurst=3, StartLimitIntervalSec=60",
    ),
    Fault("thumbnails", "memory-killed", r"@3 was killed by its memory limit", r"MemoryMax=96M"),
    Fault("thumbnails", "stuck-dead", r"\d+ jobs held by dead workers", r"DEAD: pid \d+ no longer exists"),
    Fault("thumbnails", "start-limit-out-of-reach", r"start limit can never be reached: 5 × ", r"≥ 10 s interval"),
    Fault("webhooks", "watchdog-always-starts", r"never sees the running worker", r"pgrep -x webhooks-worker"),
    Fault("webhooks", "stuck-dead", r"1 job held by dead workers", r"DEAD: pid \d+ no longer exists"),
    Fault("digests", "watchdog-never-starts", r"can never start it: pgrep finds its own shell", r"cron's own shell"),
    Fault("digests", "nothing-runs", r"nothing runs while \d+ jobs wait", r"no process matches"),
    Fault("digests", "oldest-waiting", r"oldest job waits for \d+:\d+", r"jobs are due and wait"),
    Fault(
        "exports",
        "no-progress",
        r"hung: alive but no job finished for \d+:\d+ while 12 wait",
        r"HUNG: pid \d+ is alive",
    ),
    Fault("exports", "stuck-hung", r"1 job held by hung workers", r"used no CPU for"),
)
