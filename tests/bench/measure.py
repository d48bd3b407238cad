"""The measurements: each takes a demo host and returns raw samples; nothing is judged here."""

from __future__ import annotations

import random
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from console.tui.app import RESTS_AFTER
from console.tui.commands import SCREENS
from tests.bench import fleet
from tests.bench.harness import Ended, Pty, command, cpu, descendants, numbers_inside, rss
from tests.conftest import DemoHost

FIRST_WITHIN = 30.0  # seconds a program has to show something
NOTHING = "nothing shown"
_TERMINAL = ("TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8", "LC_ALL=C.UTF-8")


@dataclass(frozen=True, kw_only=True)
class App:
    """A program that is measured: what it is started with inside, and what its first row of data reads like."""

    name: str
    argv: tuple[str, ...]
    first_row: str
    application: str = ""  # its name at the database
    then: str = ""  # what shows that the rest has come as well
    units: bool = True  # it asks systemd

    def open(self, host: DemoHost) -> Pty:
        return Pty(host.exec_argv(["env", *_TERMINAL, *self.argv], "deploy"))


@dataclass
class Idle:
    """What a program costs while nobody touches it; CPU in per cent of one core."""

    seconds: float
    parts: dict[str, float] = field(default_factory=dict)
    bytes_per_second: float = 0.0
    rss: int = 0

    @property
    def total(self) -> float:
        return sum(self.parts.values())


def first_data(
    host: DemoHost, apps: Sequence[App], repeats: int, chance: random.Random, say: Callable[[str], None]
) -> dict[str, list[float]]:
    """Seconds from the start to the first row on the screen; in random order, after one start that is not counted."""
    found: dict[str, list[float]] = {app.name: [] for app in apps}
    rest: dict[str, list[float]] = {f"{app.name}, all": [] for app in apps if app.then}
    counted = [app for app in apps for _ in range(repeats)]
    chance.shuffle(counted)
    for number, app in enumerate([*apps, *counted]):
        with app.open(host) as terminal:
            try:
                took = terminal.wait_for(app.first_row, FIRST_WITHIN) - terminal.started
            except Ended as error:
                say(f"{app.name}: nothing after {FIRST_WITHIN:g} s: {str(error).strip()[-200:]}")
                if number >= len(apps):
                    found.setdefault(f"{app.name}, {NOTHING}", []).append(FIRST_WITHIN)
                continue
            if number >= len(apps):
                found[app.name].append(took)
            if f"{app.name}, all" in rest:
                try:
                    came = terminal.wait_for(app.then, 20) - terminal.started
                    if number >= len(apps):
                        rest[f"{app.name}, all"].append(came)
                except Ended:
                    del rest[f"{app.name}, all"]  # a source of it is down: the first row counts all the same
        say(f"{app.name}: first row after {took:.2f} s{' (not counted)' if number < len(apps) else ''}")
        time.sleep(0.3)
    return found | rest


def idle(host: DemoHost, apps: Sequence[App], seconds: float) -> tuple[dict[str, Idle], dict[str, float]]:
    """Run the programs beside each other and leave them alone: what each costs, and what the host's daemons use.

    Only one of them may ask systemd: what pid 1 does cannot be told apart.
    """
    opened = [(app, app.open(host)) for app in apps]
    daemons = _daemons(host)
    try:
        for app, terminal in opened:
            terminal.__enter__()
            terminal.wait_for(app.first_row, 60)
        # what follows a start, and until the console rests
        time.sleep(5.0 + (RESTS_AFTER if any(app.application for app, _ in opened) else 0.0))
        before = {app.name: _cpu_of(terminal) for app, terminal in opened}
        written = {app.name: terminal.written for app, terminal in opened}
        backends = {app.name: _backends(host, app) for app in apps}
        backend_cpu = {name: {pid: cpu(pid) for pid in pids} for name, pids in backends.items()}
        daemon_cpu = {name: cpu(pid) for name, pid in daemons.items()}
        began = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        used = {name: 100 * (cpu(pid) - daemon_cpu[name]) / took for name, pid in daemons.items()}
        results = {}
        for app, terminal in opened:
            if terminal.process.poll() is not None:
                raise Ended(f"{app.name} ended while it was left alone")
            result = Idle(seconds=took)
            for part, value in _cpu_of(terminal).items():
                result.parts[part] = 100 * (value - before[app.name].get(part, 0.0)) / took
            if app.application:
                spent = sum(cpu(pid) - start for pid, start in backend_cpu[app.name].items())
                result.parts["database backends"] = 100 * spent / took
            result.bytes_per_second = (terminal.written - written[app.name]) / took
            result.rss = sum(rss(pid) for pid in _own(terminal))
            results[app.name] = result
        return results, used
    finally:
        for _, terminal in opened:
            if terminal.started:
                terminal.__exit__(None, None, None)


def changes(host: DemoHost, terminal: Pty, units: int, count: int) -> list[float]:
    """Seconds from systemd's own time of a change of one unit's state to the screen that shows it."""
    took = []
    for number in range(count + count % 2):  # what was stopped is started again
        unit = f"{fleet.UNIT}@{7 + number // 2 % 50}.service"
        verb, wanted = ("stop", units - 1) if number % 2 == 0 else ("start", units)
        child = host.popen(["systemctl", verb, unit], stdout=subprocess.DEVNULL)
        at = terminal.wait_for(rf"{fleet.UNIT} +{wanted}/{units}", 30)
        child.wait(30)
        took.append(at - fleet.state_changed(host, unit))
        time.sleep(0.2 + 0.037 * (number % 7))  # anywhere between two readings
    return took


def keys(terminal: Pty, going_on: Callable[[], bool]) -> list[float]:
    """Seconds from a key that moves the cursor to the screen that shows it moved, pressed while something goes on."""
    waits: list[float] = []
    rows = [y for y, line in enumerate(terminal.screen.display) if re.match(r"\s*\w+ +\d+/\d+ ", line)]

    def marked() -> list[tuple[str, bool]]:
        cells = [terminal.screen.buffer[y][4] for y in rows]
        return [(cell.bg, cell.reverse) for cell in cells]

    down = True
    while going_on():
        terminal.catch_up()
        before = marked()
        pressed = terminal.send("j" if down else "k")
        shown = terminal.wait(lambda _: marked() != before, 20, "cursor that has moved")  # noqa: B023  waited for here
        waits.append(shown - pressed)
        down = not down
        time.sleep(0.02)
    return waits


@dataclass
class Storm:
    """What pressing a key took, in seconds, while all units are restarted."""

    calm: list[float]  # before
    during: list[float]
    after: list[float]  # in the two seconds that follow
    lasted: float  # seconds systemd needed for the restarts
    shown: str | None  # None: every unit was seen to run again; else what was seen last


def storm(host: DemoHost, terminal: Pty, units: int) -> Storm:
    """Press keys in calm, during a restart of all units, and until the console has caught up."""
    until = time.monotonic() + 3
    calm = keys(terminal, lambda: time.monotonic() < until)
    began = time.monotonic()
    child = host.popen(["systemctl", "restart", f"{fleet.UNIT}@*"], stdout=subprocess.DEVNULL)
    during = keys(terminal, lambda: child.poll() is None)
    ended = time.monotonic()
    after = keys(terminal, lambda: time.monotonic() < ended + 2)
    try:
        terminal.wait_for(rf"{fleet.UNIT} +{units}/{units}", 20)
        shown = None
    except Ended:
        shown = next((line.strip() for line in terminal.screen.display if line.startswith(fleet.UNIT)), "no row")
    return Storm(calm=calm, during=during, after=after, lasted=ended - began, shown=shown)


def database(host: DemoHost, app: App, seconds: float) -> tuple[list[float], int, int]:
    """Milliseconds of the server for each refresh, as its log has them; sequential scans of the job table meanwhile,
    and in as long a time without the console."""
    quiet = _sequential_scans(host)
    time.sleep(seconds)
    quiet = _sequential_scans(host) - quiet
    try:
        for setting in ("log_min_duration_statement = 0", "log_line_prefix = 'bench|%n|%p|%a|'"):
            fleet.sql(host, f"ALTER SYSTEM SET {setting}")
        fleet.sql(host, "SELECT pg_reload_conf()")
        with app.open(host) as terminal:
            terminal.wait_for(app.first_row, 60)
            time.sleep(5)
            scans, since = _sequential_scans(host), time.time()
            time.sleep(seconds)
            scans = _sequential_scans(host) - scans
        log = host.run(["journalctl", "--unit=postgresql.service", "--output=cat", f"--since=@{since:.0f}"]).stdout
    finally:
        fleet.sql(host, "ALTER SYSTEM RESET ALL")
        fleet.sql(host, "SELECT pg_reload_conf()")
    return _refreshes(log, app.application), scans, quiet


def _refreshes(log: str, application: str) -> list[float]:
    """What the statements of one application took, joined to refreshes: those that follow each other at once."""
    pattern = re.compile(rf"bench\|([\d.]+)\|(\d+)\|{re.escape(application)}\|LOG:  duration: ([\d.]+) ms")
    found: list[float] = []
    last = 0.0
    for match in pattern.finditer(log):
        at = float(match[1])
        if at - last > 0.7:
            found.append(0.0)
        found[-1] += float(match[3])
        last = at
    return found[1:-1] if len(found) > 4 else found  # the first and the last may be cut


def churn(host: DemoHost, terminal: Pty, units: int, minutes: float, digits: bool = True) -> list[tuple[float, int]]:
    """(seconds, bytes of memory of console and agent) while units are restarted five times a second, each screen is
    shown for some seconds in turn."""
    script = (
        f"while :; do systemctl restart {fleet.UNIT}@$(shuf -i 1-{units} -n 1); "
        "psql -qAt -h /run/postgresql -U postgres -c \"SELECT worktop_enqueue('mail', 'bench')\" app >/dev/null; "
        "sleep 0.15; done"
    )
    child = host.popen(["sh", "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    samples = []
    began = time.monotonic()
    shown = 0
    try:
        while (now := time.monotonic() - began) < 60 * minutes:
            samples.append((now, sum(rss(pid) for pid in _own(terminal))))
            if digits and now > 5 * shown:
                terminal.send(SCREENS[shown % len(SCREENS)].key)
                shown += 1
            time.sleep(1.0)
            terminal.catch_up()
    finally:
        for pid in reversed(descendants(child.pid)):
            subprocess.run(["kill", str(pid)], capture_output=True)
        child.wait(10)
    return samples


def slope(samples: Sequence[tuple[float, int]]) -> float:
    """Bytes per minute, by least squares, of the samples after the first fifth."""
    kept = samples[len(samples) // 5 :]
    if len(kept) < 3:
        return 0.0
    return 60 * statistics.linear_regression([at for at, _ in kept], [size for _, size in kept]).slope


# --- parts -----------------------------------------------------------------------------------------------------------


def _own(terminal: Pty) -> list[int]:
    """The processes of the program, without nsenter that entered the host."""
    return [pid for pid in terminal.tree() if not command(pid).startswith("nsenter ")]


def _cpu_of(terminal: Pty) -> dict[str, float]:
    """Seconds of CPU so far: of the program, of the agent, of children that have ended."""
    used = {"own": 0.0}
    own = _own(terminal)
    for pid in own:
        part = "agent" if " agent" in command(pid) else "own" if pid == own[0] else "children"
        used[part] = used.get(part, 0.0) + cpu(pid)
        used["children"] = used.get("children", 0.0) + cpu(pid, children=True)
    return used


def _daemons(host: DemoHost) -> dict[str, int]:
    """systemd, the bus and the journal of the demo host."""
    found = {"pid 1": host.leader_pid}
    for path in Path(f"/proc/{host.leader_pid}/task/{host.leader_pid}/children").read_text().split():
        line = command(int(path))
        if "dbus-daemon" in line and "--system" in line:
            found["bus"] = int(path)
        elif "systemd-journald" in line:
            found["journal"] = int(path)
    return found


def _backends(host: DemoHost, app: App) -> list[int]:
    """The database's processes that serve the program."""
    if not app.application:
        return []
    query = f"SELECT pid FROM pg_stat_activity WHERE application_name = '{app.application}'"
    return list(numbers_inside(host.leader_pid, [int(pid) for pid in fleet.sql(host, query).split()]).values())


def _sequential_scans(host: DemoHost) -> int:
    return int(fleet.sql(host, "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'worktop_jobs'"))
