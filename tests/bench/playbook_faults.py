"""The faults a migration must survive, each on the reports of a demo host, and what came of it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from console.demo import enter, fleet, state
from tests.bench.ledger import CRONTAB, begin_ledger, crontab, rows, worktop
from tests.conftest import DemoHost

BOOK = "cron-launcher-to-systemd"
VALUES = ("role=reports", "entry=deploy:4", "watch=2s", "tick_at_most=3s", "timeout=60s")
ROLE = "reports"
TIMER_BOOK = "frequent-cron-to-worker-or-timer"
UNIT = "reports-worker@.service"
DROP_IN = f"/etc/systemd/system/{UNIT}.d/zz-fault.conf"
MOST = 400  # kills of one pass
MOST_FAILED = 20  # steps that may fail for want of an agent
AGENT_GAPS = (7, 4, 11, 3, 9, 5, 13, 17, 23, 0)  # how many points lie between two kills of the agent; by turns
SPREAD = (1, 2, 5, 3, 7, 4)  # how many points after the last kill the next one comes; by turns
POINTS = ("every", "spread")
QUIET_TICK, CANARY, SWAP, JOBS = 5, 6, 8, 9  # numbers of steps
REST = ("--set", "watch=2s", "--set", "tick_at_most=3s", "--set", "timeout=5s")


class Result(NamedTuple):
    fault: str
    came: str
    crontab: str
    rows: str


class Bench:
    def __init__(self, host: DemoHost, logs: Path, points: str) -> None:
        self.host = host
        self.points = points
        self.log = (logs / "faults.log").open("a")

    def drive(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        python = f"/{fleet.TOOLS}/python"
        done = self.host.run([python, "-m", "tests.bench.playbook_driver", *arguments], check=False, timeout=900.0)
        self.log.write(f"$ {' '.join(arguments)}\n{done.stdout}{done.stderr}\n")
        self.log.flush()
        return done

    def until(self, step: int) -> str:
        return self.said(self.drive("run", BOOK, *VALUES, "--until", str(step)))

    def resume(self) -> str:
        return self.said(self.drive("resume", ROLE))

    def back(self) -> str:
        return self.said(self.drive("rollback", ROLE))

    def said(self, done: subprocess.CompletedProcess[str]) -> str:
        lines = [line for line in done.stdout.splitlines() if line and not line.startswith(("points", "pid "))]
        return f"exit {done.returncode}: {lines[-1] if lines else done.stderr.strip()[-200:]}"

    def reload(self) -> None:
        self.host.run(["systemctl", "daemon-reload"])

    def drop_in(self, text: str) -> None:
        self.host.run(["sh", "-c", f"mkdir -p {Path(DROP_IN).parent}; cat > {DROP_IN}"], input=text)
        self.reload()

    def no_drop_in(self) -> None:
        self.host.run(["rm", "-f", DROP_IN])
        self.reload()

    def noted(self, text: str) -> bool:
        self.log.write(text)
        self.log.flush()
        return True

    def stands(self) -> str:
        """What `worktop playbook status` says of the run."""
        status = worktop(self.host, "status", ROLE)
        self.noted(f"$ status\n{status.stdout}{status.stderr}\n")
        lines = [line.strip() for line in status.stdout.splitlines()] or [status.stderr.strip()]
        return " / ".join([lines[0].rpartition("  ")[2], *(line for line in lines if line[:1] in tuple("↻×>"))])

    def reboot(self, *, hard: bool) -> None:
        """systemctl reboot, or all of it gone at once; until its database answers again."""
        before = self.host.leader_pid
        command = ["systemctl", "reboot", *(["--force", "--force"] if hard else [])]
        self.host.run(command, check=False)
        deadline = time.monotonic() + 120
        while True:
            now = state.running(self.host.state.name)
            if now is not None and now.leader_pid != before:
                self.host = DemoHost(now)
                if self.host.run(["systemctl", "is-active", "demo-seed.service"], check=False).returncode == 0:
                    return
            assert time.monotonic() < deadline, "the host did not come up again"
            time.sleep(0.2)

    def units_up(self) -> int:
        listed = self.host.run(["systemctl", "list-units", "--no-legend", "--state=active", "reports-worker@*"])
        return len(listed.stdout.splitlines())


# --- kill -9 ---------------------------------------------------------------------------------------------------------


def agent_killed(bench: Bench, start: tuple[str, ...] = (BOOK, *VALUES), name: str = ROLE) -> str:
    """Again and again while the console goes on: it starts another agent, and a step that lost one is taken up."""
    kills, failed, said = [0, 0], [0, 0], ""
    for place, command in enumerate((("run", *start), ("rollback", name))):
        for turn in range(MOST):
            gap = AGENT_GAPS[min(turn, len(AGENT_GAPS) - 1)]
            done = bench.drive(*command, "--die", str(gap), "--victim", "agent")
            kills[place] += done.stdout.count("killed ")
            if not done.returncode or (place and "it is over: rolled-back" in done.stdout):
                break
            failed[place] += 1
            said = bench.said(done)
            if turn >= MOST_FAILED:
                return f"{kills[0]} + {kills[1]} kills, then {said}"
    told = f"{kills[0]} kills on the way to the end, {kills[1]} on the way back; both ways went to their end"
    if any(failed):
        told += f", after {failed[0]} + {failed[1]} steps had failed and were taken up again (the last: {said})"
    return told


def killed(bench: Bench, victim: str, start: tuple[str, ...] = (BOOK, *VALUES), name: str = ROLE) -> str:
    """Before and after writes of the journal, on the way to the end and on the way back."""
    kills = [0, 0]
    for place, command in enumerate((("run", *start), ("rollback", name))):
        points = f"/root/points-{time.time_ns()}"  # in the host
        for turn in range(MOST):
            where = ("--new", points) if bench.points == "every" else ("--die", str(SPREAD[turn % len(SPREAD)]))
            done = bench.drive(*command, *where, "--victim", victim)
            if "killed " not in done.stdout:
                break
            kills[place] += 1
        if done.returncode and not (place and "it is over: rolled-back" in done.stdout):
            return f"{kills[0]} + {kills[1]} kills, then {bench.said(done)}"
    return f"{kills[0]} kills on the way to the end, {kills[1]} on the way back; both ways went to their end"


def killed_in_a_timer(bench: Bench, victim: str) -> str:
    """The same of a playbook that has no worker."""
    every_minute(bench.host)
    start = (TIMER_BOOK, "entry=deploy:8")
    try:
        tab = crontab(bench.host)
        told = agent_killed(bench, start, TIMER_BOOK) if victim == "agent" else killed(bench, victim, start, TIMER_BOOK)
        return told + ("" if crontab(bench.host) == tab else "; its crontab DIFFERS")
    finally:
        no_more_every_minute(bench.host)


def every_minute(host: DemoHost) -> None:
    line = "* * * * * /usr/bin/touch /home/deploy/ticked"
    host.run(["sh", "-c", f"echo '{line}' >> {CRONTAB}; touch {Path(CRONTAB).parent}"])


def no_more_every_minute(host: DemoHost) -> None:
    host.run(["sed", "-i", "/ticked/d", CRONTAB])


# --- reboot ----------------------------------------------------------------------------------------------------------


def reboot_at(bench: Bench, command: tuple[str, ...], after: str, *, hard: bool) -> str:
    """The host goes down two seconds after the driver has told `after`, and comes up again; what is told then."""
    python = f"/{fleet.TOOLS}/python"
    driver = bench.host.popen(
        [python, "-m", "tests.bench.playbook_driver", *command],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert driver.stdout is not None
    for line in iter(driver.stdout.readline, ""):
        bench.noted(line)
        if line.startswith(after):
            break
    else:
        raise AssertionError(f"the driver ended before it told {after!r}")
    time.sleep(2)
    bench.reboot(hard=hard)
    bench.noted(driver.communicate(timeout=60)[0])
    return bench.stands()


def to_its_end(bench: Bench) -> str:
    """A job whose worker went down with the host after the step that reclaims them is stuck: as the step says."""
    ahead = bench.resume()
    if "worktop reclaim" not in ahead:
        return ahead
    bench.host.run([bench.host.worktop, "reclaim", ROLE, "--yes"], check=False)
    return f"{ahead}, and after worktop reclaim {bench.resume()}"


def rebooted(bench: Bench) -> str:
    """Twice on the way to the end by `systemctl reboot`, once as when the current fails, and once on the way back."""
    told = [
        f"in the quiet tick: {reboot_at(bench, ('run', BOOK, *VALUES[:-2], 'tick_at_most=20s'), '4 done', hard=False)}",
        f"in the canary: {reboot_at(bench, ('resume', ROLE), '5 done', hard=True)}",
        f"in the ramp: {reboot_at(bench, ('resume', ROLE), '9 done', hard=False)}",
        f"then {to_its_end(bench)}, {bench.units_up()} units up",
        f"on the way back: {reboot_at(bench, ('rollback', ROLE), '10 undone', hard=True)}",
        f"then back {bench.back()}, {bench.units_up()} units up",
    ]
    return "; ".join(told)


def rebooted_in_the_swap(bench: Bench) -> str:
    told = reboot_at(bench, ("run", BOOK, *VALUES), "7 done", hard=False)
    return f"{told}; then back {bench.back()}, {bench.units_up()} units up"


# --- others ----------------------------------------------------------------------------------------------------------


def edited_meanwhile(bench: Bench) -> str:
    told = bench.until(QUIET_TICK)
    bench.host.run(["sh", "-c", f"echo '# added by somebody' >> {CRONTAB}; touch {Path(CRONTAB).parent}"])
    ahead, back = bench.resume(), bench.back()
    kept = "# added by somebody" in crontab(bench.host)
    bench.host.run(["sed", "-i", "/# added by somebody/d", CRONTAB])
    return f"until the tick {told}; on {ahead}; back {back}; the other's line is {'kept' if kept else 'LOST'}"


def put_back_by_management(bench: Bench) -> str:
    bench.until(QUIET_TICK)
    bench.host.run(["sed", "-i", "s/^# disabled by worktop [^:]*: //", CRONTAB])
    ahead, back = bench.resume(), bench.back()
    return f"{ahead}; back {back}"


def canary_crashes(bench: Bench) -> str:
    bench.until(CANARY)
    bench.drop_in("[Service]\nExecStart=\nExecStart=/bin/false\n")
    ahead = bench.resume()
    bench.no_drop_in()
    return f"{ahead}; back {bench.back()}; {bench.units_up()} units up"


def out_of_memory(bench: Bench) -> str:
    bench.until(CANARY)
    bench.drop_in("[Service]\nMemoryMax=6M\n")
    ahead = bench.resume()
    bench.no_drop_in()
    return f"{ahead}; back {bench.back()}; {bench.units_up()} units up"


def stray(bench: Bench, program: str) -> None:
    """An old worker that cron would have left behind: a process of deploy that no unit runs."""
    bench.host.run(["sh", "-c", 'setsid sh -c "$0" </dev/null >/dev/null 2>&1 &', program], user="deploy")
    time.sleep(1)


def ignores_sigterm(bench: Bench) -> str:
    bench.until(SWAP)
    code = "import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(900)"
    stray(bench, f"exec python3 -c '{code}' worker --role reports")
    ahead = bench.said(bench.drive("resume", ROLE))
    killed_too = worktop(bench.host, "resume", ROLE, "--yes", "--kill").returncode
    return f"without agreeing to a kill {ahead}; with it exit {killed_too}; back {bench.back()}"


def parent_respawns(bench: Bench) -> str:
    bench.until(SWAP)
    stray(bench, "while :; do python3 -c 'import time; time.sleep(900)' worker --role reports; done")
    ahead = bench.resume()
    left = bench.host.run(["pgrep", "-f", "sleep.900. worker --role reports"], check=False).stdout.split()
    back = bench.back()
    for pid in left:
        bench.host.run(["kill", "-9", pid], check=False)
    return f"{ahead}; {len(left)} of it left; back {back}"


def disk_full(bench: Bench) -> str:
    """The folder of worktop's journals has no room: at the start, and in the middle."""
    bench.until(CANARY)
    bench.host.run(["sh", "-c", "cp -a /var/lib/worktop /root/kept; mount -t tmpfs -o size=4m tmpfs /var/lib/worktop"])
    bench.host.run(["sh", "-c", "cp -a /root/kept/. /var/lib/worktop; cat /dev/zero > /var/lib/worktop/full || true"])
    ahead = bench.resume()
    bench.host.run(["rm", "/var/lib/worktop/full"])
    after = bench.resume()
    back = bench.back()
    bench.host.run(["sh", "-c", "cp -a /var/lib/worktop/. /root/kept; umount /var/lib/worktop"])
    bench.host.run(["sh", "-c", "cp -a /root/kept/. /var/lib/worktop; rm -r /root/kept"])
    return f"{ahead}; with room again {after}; back {back}"


def no_rights(bench: Bench) -> str:
    """As deploy, who may not write unit files."""
    done = bench.host.run(
        [bench.host.worktop, "playbook", "run", BOOK, "--role", "reports", "--entry", "deploy:4", "--yes", *REST],
        user="deploy", check=False, timeout=300,
    )  # fmt: skip
    said = (done.stdout + done.stderr).strip().splitlines()
    refused = next((line.strip() for line in said if "may not" in line), said[-1] if said else "")
    back = bench.host.run(
        [bench.host.worktop, "playbook", "rollback", ROLE, "--yes"], user="deploy", check=False, timeout=300
    )
    return f"exit {done.returncode}: {refused[:160]}; back exit {back.returncode}"


def started_twice(bench: Bench) -> str:
    python = f"/{fleet.TOOLS}/python"
    first = bench.host.popen(
        [python, "-m", "tests.bench.playbook_driver", "run", BOOK, *VALUES[:-2], "tick_at_most=40s"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert first.stdout is not None
    pid = next(first.stdout).split()[1]
    next(line for line in first.stdout if line.startswith("4 "))  # the line is retired, the tick is waited for
    second = bench.drive("run", BOOK, *VALUES)
    bench.host.run(["kill", "-9", pid])
    first.wait()
    return f"the second {bench.said(second)}; back {bench.back()}"


def second_owner(bench: Bench) -> str:
    """When all is done, somebody starts a worker from a login, and a line of cron starts one."""
    ahead = bench.said(bench.drive("run", BOOK, *VALUES))
    worker = "/usr/local/bin/worktop worker --role reports --handlers console.demo.handlers:HANDLERS"
    before = owners_found(bench.host)
    terminal, inner = pty.openpty()
    login = enter.login_argv(bench.host.leader_pid, worker)
    by_hand = subprocess.Popen(login, stdin=inner, stdout=inner, stderr=inner, start_new_session=True)
    pids = outside(bench.host)
    told = [f"{ahead}; then found: {before}", f"from a login: {owners_found(bench.host)}"]
    bench.host.run(["kill", *pids], check=False)
    by_hand.wait(60)
    os.close(terminal)
    os.close(inner)
    bench.host.run(["sh", "-c", f"cat >> {CRONTAB}; touch {Path(CRONTAB).parent}"], input=f"* * * * * exec {worker}\n")
    pids = outside(bench.host)
    told.append(f"from a line of cron: {owners_found(bench.host)}")
    bench.host.run(["sed", "-i", "/exec .usr.local.bin.worktop worker --role reports/d", CRONTAB])
    bench.host.run(["kill", *pids], check=False)
    return f"{'; '.join(told)}; back {bench.back()}"


def outside(host: DemoHost) -> list[str]:
    """Pids of the role's workers that no unit has started, once there is one."""
    look = "for pid in $(pgrep -x -u deploy -f '[^ ]*python[^ ]* .*worker --role reports .*'); do "
    look += "grep -q reports-worker@ /proc/$pid/cgroup || echo $pid; done"
    deadline = time.monotonic() + 90
    while not (found := host.run(["sh", "-c", look], check=False).stdout.split()):
        assert time.monotonic() < deadline, "no such worker was started"
        time.sleep(0.2)
    return found


def owners_found(host: DemoHost) -> str:
    """What one look says of who owns the role, and how long it took."""
    began = time.monotonic()
    told = json.loads(host.run([host.worktop, "status", "--json"], check=False).stdout)
    took = time.monotonic() - began
    codes = ("two-owners", "outside-unit", "launcher-piles-up")
    found = [each["what"] for each in told["findings"] if each["role"] == ROLE and each["code"] in codes]
    return f"{' and '.join(found) or 'nothing'} ({took:.1f} s)"


FAULTS: dict[str, Callable[[Bench], str]] = {
    "crontab edited by somebody else meanwhile": edited_meanwhile,
    "configuration management puts the line back": put_back_by_management,
    "the canary crashes": canary_crashes,
    "the new unit runs out of memory": out_of_memory,
    "an old worker ignores SIGTERM": ignores_sigterm,
    "an old parent starts its child again": parent_respawns,
    "disk full while writing": disk_full,
    "no rights for one step": no_rights,
    "the playbook is started twice": started_twice,
    "a second owner afterwards": second_owner,
    "reboot in the middle": rebooted,
    "reboot in the swap": rebooted_in_the_swap,
    "kill -9 of the console": lambda bench: killed(bench, "console"),
    "kill -9 of the agent": agent_killed,
    "kill -9 of the console, a timer": lambda bench: killed_in_a_timer(bench, "console"),
    "kill -9 of the agent, a timer": lambda bench: killed_in_a_timer(bench, "agent"),
    "kill -9 of both, a timer": lambda bench: killed_in_a_timer(bench, "both"),
    "kill -9 of both": lambda bench: killed(bench, "both"),
}


def run(host: DemoHost, logs: Path, only: list[str], points: str) -> list[Result]:
    bench, results = Bench(host, logs, points), []
    for fault, inject in FAULTS.items():
        if only and not any(each in fault for each in only):
            continue
        begin_ledger(bench.host)
        before, began = crontab(bench.host), time.monotonic()
        try:
            came = inject(bench)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            came = f"THE BENCH FAILED: {str(error).splitlines()[0]}"
        same = "the same" if crontab(bench.host) == before else "DIFFERS"
        counted = rows(bench.host)
        results.append(Result(fault, f"{came} ({time.monotonic() - began:.0f} s)", same, counted.told))
        print(table(results[-1:]), file=sys.stderr)
    return results


def table(results: list[Result]) -> str:
    head = "| fault | what came of it | crontab afterwards | rows |"
    return "\n".join([head, "|---|---|---|---|", *(f"| {' | '.join(result)} |" for result in results)])
