"""An inventory that is made up: a launcher whose workers pile up, a dead watchdog, a nightly job, and what is off."""

from __future__ import annotations

import msgspec

from console.errors import Problem
from console.schedules.inventory import Alive, Inventory, Listed, Run, Translated, Unread, name_of
from console.schedules.model import Entry, Evidence, Explained, FoundRole, Scheduled, Source
from tests.examples import NOW

DEPLOY = Source(kind="user", path="/var/spool/cron/crontabs/deploy", user="deploy")
UNIT = """\
[Unit]
Description=reports worker %i

[Service]
Type=exec
User=deploy
ExecStart=/srv/reports/worker --queue reports
Restart=always

[Install]
WantedBy=multi-user.target
"""


def entry(line: int, text: str, source: Source = DEPLOY, **options: object) -> Entry:
    """A line of a crontab; its first five words are the schedule, unless there is another."""
    words = text.split(" ", 5)
    made = Entry(
        source=source,
        line=line,
        raw=text.encode(),
        expression=" ".join(words[:5]),
        user=source.user,
        command=words[5] if len(words) > 5 else "",
    )
    return msgspec.structs.replace(made, **options)


def scheduled(expression: str, words: str, *in_seconds: float, calendar: str = "") -> Scheduled:
    return Scheduled(
        expression=expression,
        words=words,
        next_runs=tuple(NOW + each for each in in_seconds),
        zone="UTC",
        on_calendar=(calendar,) if calendar else (),
    )


def launcher() -> Listed:
    line = entry(4, "* * * * * /srv/reports/start.sh")
    role = FoundRole(
        name="reports",
        argv=("/srv/reports/worker", "--queue", "reports"),
        instances=3,
        user="deploy",
        workdir="/srv/reports",
        environment=(("APP_ENV", "prod"), ("DB_PASSWORD", "hunter2")),
        output="/srv/reports/log",
    )
    explained = Explained(
        entry=line,
        kind="launcher",
        pattern="nohup_loop",
        confidence="high",
        roles=(role,),
        scheduled=scheduled("* * * * *", "every minute", 20.0, 80.0, 140.0, calendar="*-*-* *:*:00 UTC"),
        evidence=(
            Evidence(source="script", text="/srv/reports/start.sh starts the worker three times, with nohup and &"),
            Evidence(source="processes", text="9 of them live for longer than a minute"),
        ),
        warnings=("nothing keeps it from being started again: each run adds three workers",),
        hazards=("pile_up",),
    )
    runs = tuple(Run(started=NOW - 40.0 - 60 * age, pids=(4400 - age, 4410 - age, 4420 - age)) for age in (2, 1, 0))
    alive = Alive(runs=runs, evidence="cron started them for deploy", growing=True, per_run=3, before=(120.0, 3))
    return Listed(name=name_of(line), explained=explained, role="reports", alive=alive)


def dead_watchdog() -> Listed:
    line = entry(6, '* * * * * pgrep -f "worker --queue digests" || /srv/digests/worker --queue digests &')
    role = FoundRole(
        name="digests",
        argv=("/srv/digests/worker", "--queue", "digests"),
        user="deploy",
        guard='pgrep -f "worker --queue digests"',
        guard_works=False,
    )
    explained = Explained(
        entry=line,
        kind="launcher",
        pattern="pgrep_guard",
        confidence="high",
        roles=(role,),
        scheduled=scheduled("* * * * *", "every minute", 20.0, 80.0, 140.0),
        evidence=(Evidence(source="line", text="pgrep finds the shell that runs this very line"),),
        warnings=("its guard finds itself: it never starts anything",),
        hazards=("self_matching_guard",),
    )
    return Listed(name=name_of(line), explained=explained, role="digests", alive=Alive(growing=False))


def nightly() -> Listed:
    line = entry(5, "30 2 * * * /srv/backup/nightly.sh")
    explained = Explained(
        entry=line,
        kind="periodic",
        pattern="maintenance",
        confidence="high",
        roles=(FoundRole(name="nightly", argv=("/srv/backup/nightly.sh",), user="deploy"),),
        scheduled=scheduled("30 2 * * *", "every day 02:30", 35280.0, 121680.0, calendar="*-*-* 02:30:00"),
        evidence=(Evidence(source="script", text="its script ends by itself"),),
    )
    return Listed(name=name_of(line), explained=explained, alive=Alive(growing=False))


def off() -> Listed:
    text = "* * * * * /srv/old/start.sh"
    line = entry(8, text, active=False, raw=b"# disabled by worktop 20261129T0900Z: " + text.encode())
    explained = Explained(entry=line, kind="none", pattern="comment_only", confidence="high")
    return Listed(name=name_of(line), explained=explained, alive=Alive(growing=False))


def refused() -> Listed:
    source = Source(kind="cron.d", path="/etc/cron.d/images.old")
    problem = "its name has other characters than A-Z a-z 0-9 _ -: cron passes it over"
    line = entry(2, "*/5 * * * * root /srv/images/run", source, user="root", problems=(problem,))
    explained = Explained(entry=line, kind="invalid", pattern="", confidence="high")
    return Listed(name=name_of(line), explained=explained, ignored=problem, alive=Alive(growing=False))


def timer() -> Listed:
    source = Source(kind="timer", path="/usr/lib/systemd/system/apt-daily.timer")
    line = Entry(
        source=source,
        line=6,
        expression="OnCalendar=*-*-* 6,18:00",
        user="root",
        command="/usr/lib/apt/apt.daily update",
    )
    explained = Explained(
        entry=line,
        kind="periodic",
        pattern="systemd_timer",
        confidence="high",
        scheduled=Scheduled(expression=line.expression, words="*-*-* 6,18:00", zone="UTC"),
        evidence=(Evidence(source="line", text="systemd starts apt-daily.service by apt-daily.timer"),),
    )
    return Listed(name=name_of(line), explained=explained, alive=Alive(growing=False))


def unread() -> Unread:
    source = Source(kind="user", path="/var/spool/cron/crontabs/backup", user="backup")
    what = "/var/spool/cron/crontabs/backup (crontab of backup)"
    problem = Problem(what, "not permitted", "run the agent with more rights: agent in [host]")
    return Unread(source=source, problem=problem)


def inventory() -> Inventory:
    return Inventory(
        entries=(launcher(), nightly(), dead_watchdog(), off(), refused(), timer()),
        unread=(unread(),),
        zone="UTC",
        host="wrk01",
    )


def translated(listed: Listed | None = None) -> tuple[Translated, ...]:
    """The units of the launcher."""
    listed = listed or launcher()
    explained = msgspec.structs.replace(listed.explained, units=(("reports@.service", UNIT),))
    held = ("systemd-analyze verify accepts reports@.service",)
    return (Translated(listed=msgspec.structs.replace(listed, explained=explained), held=held),)
