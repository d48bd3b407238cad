"""Every playbook followed to its end and taken back, and the faults of a migration, on booted demo hosts.

    python -m tests.bench.playbooks [--faults] [--points every|spread] [--each-step | --twice] [--only NAME ...]

prints a Markdown table of what was measured. Rows are counted by a trigger of the database that notes each change of a
status, so that a job that is lost or ends twice shows. A full run takes about half an hour; nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from console.demo import fleet, state
from console.demo import host as demo_host
from console.playbook.library import shipped
from tests.bench import playbook_faults
from tests.bench.ledger import CRONTAB, Rows, begin_ledger, crontab, rows, worktop
from tests.bench.playbook_faults import every_minute, no_more_every_minute
from tests.conftest import DemoHost

CONFIG = "/etc/worktop/worktop.toml"
SUPERVISORD = """\
[unix_http_server]
file=/run/supervisor.sock
[supervisord]
logfile=/var/log/supervisord.log
pidfile=/run/supervisord.pid
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
[supervisorctl]
serverurl=unix:///run/supervisor.sock
[program:webhooks]
command=/usr/local/bin/worktop worker --role webhooks --handlers console.demo.handlers:HANDLERS --lease 30
user=deploy
environment=HOME="/home/deploy",USER="deploy"
stopwaitsecs=60
"""


class Case(NamedTuple):
    name: str
    values: tuple[str, ...]
    prepare: Callable[[DemoHost], None] = lambda host: None
    mend: Callable[[DemoHost], None] | None = None  # what a person does when a step waits for them; then it goes on
    clean: Callable[[DemoHost], None] = lambda host: None
    short: tuple[str, ...] = ("watch=1s",)  # where it is taken back at every step
    again: str = ""  # a command that makes again, before each of these passes, what the pass before has mended
    by_hand: tuple[str, ...] = ()  # STEP=COMMAND: what a person does while the step waits, where it is taken back
    at_end: str = ""  # a command whose output is told at its end, before it is taken back
    title: str = ""  # where its playbook has another case

    @property
    def told(self) -> str:
        return self.title or self.name

    @property
    def role(self) -> str:
        return self.values[1] if self.values[0] == "--role" else ""

    @property
    def quickly(self) -> list[str]:
        """Its values for the driver, with short waits."""
        pairs = zip(self.values[::2], self.values[1::2], strict=True)
        given = [value if name == "--set" else f"{name.removeprefix('--')}={value}" for name, value in pairs]
        return [*given, *self.short]


class StepsResult(NamedTuple):
    name: str
    came: str
    took: str
    same: str
    rows: str


class Walk(NamedTuple):
    """Each step of a playbook there, back and there again."""

    code: int
    text: str
    same: bool  # the crontab, before it was cleaned up
    counted: Rows

    @property
    def told(self) -> list[str]:
        return [line for line in self.text.splitlines() if line.startswith("twice")]


class Result(NamedTuple):
    name: str
    ahead: str
    back: str
    same: str
    rows: str


# --- the playbooks ---------------------------------------------------------------------------------------------------


def mend_thumbnails(host: DemoHost) -> None:
    """What ends @2 is a wrong number in its settings."""
    host.run(["sed", "-i", "s/^QUALITY=.*/QUALITY=80/", "/srv/thumbnails/env/2"])
    host.run(["sed", "-i", "/^CACHE_MB/d", "/srv/thumbnails/env/3"])
    host.run(["sh", "-c", "grep -q BUCKET /srv/thumbnails/env/4 || echo BUCKET=media >> /srv/thumbnails/env/4"])


CRASHES = """\
one=thumbnails-worker@2.service; folder=/run/systemd/system/$one.d
mkdir -p $folder; printf '[Service]\\nRestart=no\\n' > $folder/crashes.conf
systemctl daemon-reload; systemctl reset-failed; systemctl start $one
systemctl kill --signal=ABRT $one; until systemctl is-failed --quiet $one; do sleep 0.1; done
"""


def no_more_crashes(host: DemoHost) -> None:
    host.run(["rm", "-rf", "/run/systemd/system/thumbnails-worker@2.service.d"])
    host.run(["systemctl", "daemon-reload"])


def name_the_unit(role: str, unit: str) -> Callable[[DemoHost], None]:
    def mend(host: DemoHost) -> None:
        host.run(["sed", "-i", f'/^\\[roles.{role}\\]/a unit = "{unit}"', CONFIG])

    return mend


def forget_the_unit(unit: str) -> Callable[[DemoHost], None]:
    def clean(host: DemoHost) -> None:
        host.run(["sed", "-i", f'/^unit = "{unit}"/d', CONFIG])

    return clean


def supervise(host: DemoHost) -> None:
    """A real supervisord, as pip installs it, runs webhooks; the watchdog line of cron does not."""
    host.run(["sed", "-i", "/webhooks-worker/s/^/#/", CRONTAB])
    host.run(
        ["sh", "-c", f"mkdir -p /etc/supervisor/conf.d; cat > /etc/supervisor/supervisord.conf <<'E'\n{SUPERVISORD}E"]
    )
    for name in ("supervisord", "supervisorctl"):
        host.run(["ln", "-sf", str(Path(sys.executable).parent / name), f"/usr/local/bin/{name}"])
    host.run(["systemd-run", "--unit=supervisord", "/usr/local/bin/supervisord", "-n"])
    time.sleep(5)  # startsecs of its program


def retire_the_section(host: DemoHost) -> None:
    """What the playbook asks a person for: the unit in worktop.toml, and later no section that starts by itself."""
    name_the_unit("webhooks", "webhooks@.service")(host)
    host.run(["sed", "-i", "/^.program:webhooks/a autostart=false", "/etc/supervisor/supervisord.conf"])


SERVE = "/srv/digests/serve.py"
SERVES = """\
# A worker of digests that answers on a port: there may be one of it.
import socket, sys
at = sys.argv.index("--port")
try:
    taken = socket.create_server(("127.0.0.1", int(sys.argv[at + 1])))
except OSError as error:
    sys.exit(f"the port is taken: {error}")
del sys.argv[at : at + 2]
from console.__main__ import main
sys.exit(main())
"""


def one_port(host: DemoHost) -> None:
    """A line starts a worker on a fixed port each minute; one that runs already keeps the others from it."""
    worker = "worker --role digests --handlers console.demo.handlers:HANDLERS --port 9101"
    line = f"* * * * * nohup /usr/local/lib/worktop-demo/python {SERVE} {worker} >/dev/null 2>&1 &"
    host.run(["sh", "-c", f"mkdir -p {Path(SERVE).parent}; cat > {SERVE}"], input=SERVES)
    host.run(["sh", "-c", f"cp -p {CRONTAB} /root/crontab.before; sed -i '/role digests/d' {CRONTAB}"])
    host.run(["sh", "-c", f"cat >> {CRONTAB}; touch {Path(CRONTAB).parent}"], input=f"{line}\n")
    name_the_unit("digests", "digests-worker@.service")(host)
    deadline = time.monotonic() + 130
    while not host.run(["pgrep", "-u", "deploy", "-f", "port 9101"], check=False).stdout:
        assert time.monotonic() < deadline, "cron has not started it"
        time.sleep(1)


def no_more_one_port(host: DemoHost) -> None:
    host.run(["cp", "-p", "/root/crontab.before", CRONTAB])
    forget_the_unit("digests-worker@.service")(host)


def one_old_worker(host: DemoHost) -> None:
    """As a launcher would have left it behind. Jobs of digests take a second or two; those of reports half a minute."""
    name_the_unit("digests", "digests-worker@.service")(host)
    worker = "worktop worker --role digests --handlers console.demo.handlers:HANDLERS"
    host.run(["sh", "-c", f"setsid nohup {worker} >/dev/null 2>&1 </dev/null &"], user="deploy")


SHORT = ("watch=1s", "tick_at_most=2s")
CASES = (
    Case("stuck-jobs-after-a-crash", ("--role", "webhooks"), short=()),
    Case("hung-worker", ("--role", "exports")),
    Case(
        "crash-loop",
        ("--role", "thumbnails", "--set", "watch=10s"),
        prepare=mend_thumbnails,
        clean=no_more_crashes,
        again=CRASHES,
    ),
    Case("memory-budget", ("--role", "mail", "--set", "watch=10s")),
    Case("memory-budget", ("--role", "reports", "--set", "watch=10s"), title="memory-budget, no limit before"),
    Case("scale-up-safely", ("--role", "mail", "--set", "count=5", "--set", "watch=10s")),
    Case(
        "frequent-cron-to-worker-or-timer",
        ("--entry", "deploy:8"),
        prepare=every_minute,
        clean=no_more_every_minute,
        short=(),
    ),
    Case("cron-launcher-to-systemd", ("--role", "reports", "--entry", "deploy:4"), short=SHORT),
    Case(
        "cron-launcher-to-systemd",
        ("--role", "digests", "--entry", "deploy:7", "--set", "count=2"),
        prepare=one_old_worker,
        clean=forget_the_unit("digests-worker@.service"),
        short=SHORT,
        at_end=f"systemctl list-units --no-legend 'digests-worker@*'; cat {CRONTAB}",
        title="cron-launcher-to-systemd, short jobs",
    ),
    Case(
        "cron-launcher-to-systemd",
        ("--role", "digests", "--entry", "deploy:7"),
        prepare=one_port,
        clean=no_more_one_port,
        short=SHORT,
        title="cron-launcher-to-systemd, a fixed port",
    ),
    Case("two-owners-of-one-role", ("--role", "reports", "--entry", "deploy:4"), short=("tick_at_most=2s",)),
    Case(
        "watchdog-line-to-systemd",
        ("--role", "webhooks", "--entry", "deploy:6", "--set", "count=2"),
        mend=name_the_unit("webhooks", "webhooks@.service"),
        clean=forget_the_unit("webhooks@.service"),
        short=SHORT,
    ),
    Case(
        "supervisord-program-to-systemd",
        ("--role", "webhooks", "--entry", "supervisord:webhooks"),
        prepare=supervise,
        mend=retire_the_section,
        by_hand=("6=sed -i '/^.program:webhooks/a autostart=false' /etc/supervisor/supervisord.conf",),
        again="sed -i /^autostart=false/d /etc/supervisor/supervisord.conf; supervisorctl start webhooks || true",
    ),
)


def follow(host: DemoHost, case: Case, log: Path) -> Result:
    """To its end, and back."""
    case.prepare(host)
    begin_ledger(host)
    tab = crontab(host)
    began = time.monotonic()
    with log.open("w") as written:
        done = worktop(host, "run", case.name, *case.values, "--yes")
        written.write(done.stdout + done.stderr)
        if done.returncode and case.mend is not None:
            case.mend(host)
            done = worktop(host, "resume", case.name, "--yes")
            written.write(done.stdout + done.stderr)
        ahead = f"exit {done.returncode} after {time.monotonic() - began:.0f} s"
        between = rows(host, case.role)
        began = time.monotonic()
        undone = worktop(host, "rollback", case.name, "--yes")
        written.write(undone.stdout + undone.stderr)
        back = f"exit {undone.returncode} after {time.monotonic() - began:.0f} s"
        if undone.returncode:  # a worker did not end in time, and nobody had agreed to a kill
            undone = worktop(host, "rollback", case.name, "--yes", "--kill")
            written.write(undone.stdout + undone.stderr)
            back += f", with --kill exit {undone.returncode} after {time.monotonic() - began:.0f} s"
    same = "the same" if crontab(host) == tab else "DIFFERS"
    case.clean(host)
    after = rows(host, case.role)
    return Result(case.told, ahead, back, same, f"{after.told} ({between.stuck} at its end)")


def each_step(host: DemoHost, case: Case, log: Path) -> StepsResult:
    """To its first step and back, to its second and back, and so on; what does not end in time is killed."""
    case.prepare(host)
    if case.mend is not None:
        case.mend(host)
    begin_ledger(host)
    tab, began = crontab(host), time.monotonic()
    done = drive(host, "each", case, "--again", case.again, timeout=2400)
    log.write_text(done.stdout + done.stderr)
    told = [line for line in done.stdout.splitlines() if line.startswith("each ")]
    good = sum("ahead 0, back 0, rolled-back, files the same" in line for line in told)
    steps = told[-1].split()[3].rstrip(":") if told else "?"
    came = f"{good} of {steps}"
    if done.returncode:
        came += f"; then {' / '.join(done.stdout.splitlines()[-3:-1])}"
    same = "the same" if crontab(host) == tab else "DIFFERS"
    case.clean(host)
    return StepsResult(case.told, came, f"{time.monotonic() - began:.0f} s", same, rows(host, case.role).told)


def drive(
    host: DemoHost, what: str, case: Case, *options: str, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """The driver, inside the host."""
    by_hand = ("--by-hand", *case.by_hand) if case.by_hand else ()
    options = (*options, *(("--at-end", case.at_end) if case.at_end else ()))
    command = [f"/{fleet.TOOLS}/python", "-m", "tests.bench.playbook_driver", what, case.name]
    return host.run([*command, *case.quickly, *options, *by_hand], check=False, timeout=timeout)


def walk_twice(host: DemoHost, case: Case) -> Walk:
    """Each step done, taken back by itself and done again; all taken back from the end."""
    case.prepare(host)
    if case.mend is not None:
        case.mend(host)
    if case.again:
        host.run(["sh", "-c", case.again])
    begin_ledger(host)
    tab = crontab(host)
    try:
        done = drive(host, "twice", case, timeout=600)
        same = crontab(host) == tab
    finally:
        case.clean(host)
    return Walk(done.returncode, done.stdout + done.stderr, same, rows(host, case.role))


def twice(host: DemoHost, case: Case, log: Path) -> StepsResult:
    """The same as a line of the table."""
    began = time.monotonic()
    walk = walk_twice(host, case)
    log.write_text(walk.text)
    said = walk.told[-1] if walk.told else walk.text[-300:]
    came, took = f"exit {walk.code}: {said}", f"{time.monotonic() - began:.0f} s"
    return StepsResult(case.told, came, took, "the same" if walk.same else "DIFFERS", walk.counted.told)


def steps_table(results: list[StepsResult]) -> str:
    head = "| playbook | taken back from | time | crontab | rows |"
    return "\n".join([head, "|---|---|---|---|---|", *(f"| {' | '.join(result)} |" for result in results)])


def table(results: list[Result]) -> str:
    head = "| playbook | to its end | taken back | crontab | rows |"
    lines = [f"| {' | '.join(result)} |" for result in results]
    return "\n".join([head, "|---|---|---|---|---|", *lines])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--each-step", action="store_true", help="taken back from every step")
    parser.add_argument("--twice", action="store_true", help="each step taken back by itself and done again")
    parser.add_argument("--points", choices=playbook_faults.POINTS, default="every", help="where it is killed")
    parser.add_argument("--host", help="a kept demo host, instead of one of its own")
    parser.add_argument("--logs", type=Path, default=Path("playbook-logs"))
    asked = parser.parse_args()
    asked.logs.mkdir(parents=True, exist_ok=True)
    known = {path.stem for path in shipped().glob("*-*.md")}
    chosen = [case for case in CASES if not asked.only or case.told in asked.only]
    print(f"{len(known)} playbooks are shipped, {len(chosen)} are followed", file=sys.stderr)
    booted = None if asked.host else demo_host.boot(f"playbooks-{os.getpid()}")
    try:
        kept = state.running(asked.host) if asked.host else None
        running = booted.host if booted is not None else kept
        if running is None:
            print(f"no demo host {asked.host} is running", file=sys.stderr)
            return 2
        host = DemoHost(running)
        if asked.faults:
            print(playbook_faults.table(playbook_faults.run(host, asked.logs, asked.only, asked.points)))
        elif asked.each_step or asked.twice:
            every, follow_steps = [], each_step if asked.each_step else twice
            for case in chosen:
                every.append(follow_steps(host, case, asked.logs / f"{case.told}.steps.log"))
                print(steps_table(every[-1:]), file=sys.stderr)
            print(steps_table(every))
        else:
            results = []
            for case in chosen:
                results.append(follow(host, case, asked.logs / f"{case.told}.log"))
                print(table(results[-1:]), file=sys.stderr)
            print(table(results))
    finally:
        if booted is not None:
            booted.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
