"""What worktop costs, beside isd and pg_activity on the same demo host. Not a test: nothing is asserted.

    python -m tests.bench [--out FILE] [--jobs 1000000] [--parts storm churn] [--churn-minutes 3]     (make bench)

boots a demo host of its own, adds 200 units and a million jobs, and prints a Markdown table; the raw samples are
written beside the table as JSON. Ten minutes on a quiet machine; a full run is --churn-minutes 30. Run it on a
machine that does nothing else: the load average is recorded, and shown when it speaks against the numbers.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from console.demo import fleet as demo
from console.demo import host as demo_host
from console.demo import state
from tests.bench import fleet, measure, rivals
from tests.bench.harness import COLUMNS, LINES, Ended, Pty
from tests.bench.measure import App
from tests.conftest import DemoHost

GOALS = {
    "first data": "≤ 0.7 × isd, no role ≤ 0.5 ×",
    "idle CPU": "≤ 0.25 × isd",
    "terminal": "≤ 2 KB/s",
    "memory": "≤ 130 MB",
    "change": "≤ 200 ms median",
    "storm": "≤ 100 ms",
    "database": "≤ 20 ms at 1 M rows, 30 ms at 10 M",
    "scans": "0",
    "slope": "flat",
}
KEY_WAITS = 0.1  # seconds, the goal of "storm"
BARE = str(Path(__file__).with_name("bare.py"))


class Bench:
    """One run: what was chosen, the raw samples, and the table made from them."""

    def __init__(self, host: DemoHost, chosen: argparse.Namespace) -> None:
        self.host = host
        self.chosen = chosen
        self.raw: dict[str, Any] = {"loads": []}
        self.rows: list[tuple[str, ...]] = []
        self.missing: dict[str, str] = {}
        self.apps: dict[str, App] = {}

    def say(self, what: str) -> None:
        load = os.getloadavg()[0]
        self.raw["loads"].append((round(time.time(), 1), load, what))
        print(f"{time.strftime('%H:%M:%S')}  load {load:.2f}  {what}", file=sys.stderr, flush=True)

    def programs(self) -> None:
        row = r"mail +\d+/\d+"
        found = [
            App(
                name="worktop",
                argv=(self.host.worktop, "--config", fleet.ALL_ROLES),
                first_row=row,
                then=r"mail +\d+/\d+.*systemd +[\d>~]",
                application="worktop",
            ),
            App(
                name="worktop, no role",
                argv=(self.host.worktop, "--config", fleet.NO_ROLE),
                first_row=r"[\w-]+ +\d+/\d+",
                application="worktop",
            ),
            App(name="bare Textual", argv=(sys.executable, BARE), first_row="bare and ready", units=False),
        ]
        for rival in rivals.RIVALS if {"start", "idle"} & set(self.chosen.parts) else ():
            self.say(f"installing {rival.name}")
            why = rivals.install(rival)
            if why:
                self.missing[rival.name] = why
                continue
            program = rivals.put_inside(self.host, rival)
            if rival.name == "isd":
                argv: tuple[str, ...] = ("env", "ISD_STARTUP_MODE=system", program)
                found.append(
                    App(name="isd", argv=argv, first_row=r"[\w@-]\.(service|mount|slice|scope|socket|target|path)")
                )
            else:
                found.append(
                    App(
                        name="pg_activity",
                        argv=(program, demo.DSN),
                        first_row=r"Sessions: +\d+/\d+ total",
                        application="pg_activity",
                        units=False,
                    )
                )
        self.apps = {app.name: app for app in found}

    # --- measuring ---------------------------------------------------------------------------------------------------

    def run(self) -> None:
        self.programs()
        for name in self.chosen.parts:
            try:
                PARTS[name](self)
            except (Ended, AssertionError, statistics.StatisticsError) as error:
                self.raw[f"{name}, failed"] = str(error)
                self.say(f"{name} failed: {error}")
                self.rows.append((name, f"failed: {str(error).splitlines()[0]}"))

    def first_data(self) -> None:
        chance = random.Random(self.chosen.seed)
        found = measure.first_data(self.host, list(self.apps.values()), self.chosen.repeats, chance, self.say)
        self.raw["first data, s"] = found
        middle = {name: statistics.median(values) for name, values in found.items() if values}
        words = {name: _spread(values) for name, values in found.items() if values}
        for name in self.apps:
            missed = found.get(f"{name}, {measure.NOTHING}")
            if missed:
                nothing = f"{len(missed)} starts showed nothing in {measure.FIRST_WITHIN:g} s"
                words[name] = ", ".join(part for part in (words.get(name), nothing) if part)
        self.row("first data on the screen", words, middle, "first data")
        if {"isd", "worktop, no role"} <= set(middle):
            *before, ratio, goal = self.rows[-1]
            self.rows[-1] = (*before, f"{ratio}, {middle['worktop, no role'] / middle['isd']:.2f} (no role)", goal)
        if found.get("worktop, all"):
            self.row("… and the queue's numbers", {"worktop": _spread(found["worktop, all"])})

    def idle(self) -> None:
        seconds = self.chosen.idle
        self.say(f"idle for {seconds:g} s: pg_activity and bare Textual, and nobody asks systemd")
        groups = [[app for app in self.apps.values() if not app.units]]
        groups += [[self.apps[name]] for name in ("worktop", "isd") if name in self.apps]
        found: dict[str, measure.Idle] = {}
        daemons: dict[str, dict[str, float]] = {}
        for group in groups:
            if group[0].units:
                self.say(f"idle for {seconds:g} s: {group[0].name}")
            try:
                results, used = measure.idle(self.host, group, seconds)
            except Ended as error:
                if "isd" not in (names := [app.name for app in group]):
                    raise
                self.missing["isd, idle"] = str(error).strip().splitlines()[0]
                self.say(f"idle: {names}: {error}")
                continue
            found |= results
            daemons[group[0].name if group[0].units else "nobody"] = used
        for name, used in daemons.items():
            if name != "nobody":
                found[name].parts |= {part: value - daemons["nobody"].get(part, 0.0) for part, value in used.items()}
        self.raw["idle, % of a core"] = {name: result.parts for name, result in found.items()}
        self.raw["idle, daemons, % of a core"] = daemons
        self.raw["idle, bytes/s"] = {name: result.bytes_per_second for name, result in found.items()}
        self.raw["idle, rss"] = {name: result.rss for name, result in found.items()}
        parts = ("own", "agent", "children", "pid 1", "bus", "journal", "database backends")
        totals = {name: result.total for name, result in found.items()}
        self.row(
            "idle: CPU with its effects, % of a core", {n: f"{v:.2f}" for n, v in totals.items()}, totals, "idle CPU"
        )
        self.row(
            "… of which",
            {
                name: ", ".join(f"{part} {result.parts[part]:.2f}" for part in parts if part in result.parts)
                for name, result in found.items()
            },
        )
        rate = {name: result.bytes_per_second for name, result in found.items()}
        self.row(
            "idle: written to the terminal, KB/s", {n: f"{v / 1e3:.2f}" for n, v in rate.items()}, rate, "terminal"
        )
        size = {name: float(result.rss) for name, result in found.items()}
        self.row(
            "memory (RSS of all its processes), MB", {n: f"{v / 1e6:.0f}" for n, v in size.items()}, size, "memory"
        )

    def database(self) -> None:
        self.say(f"database: {self.chosen.database:g} s without, then with the console")
        times, scans, quiet = measure.database(self.host, self.apps["worktop"], self.chosen.database)
        self.raw["database, ms per refresh"] = times
        self.raw["sequential scans"] = {"with": scans, "without": quiet}
        words = (
            f"{statistics.median(times):.1f} ms [max {max(times):.1f}] n={len(times)}" if times else "no refresh seen"
        )
        self.row("database: the server's time for one refresh", {"worktop": words}, goal="database")
        self.row("… sequential scans of the job table", {"worktop": f"{scans} ({quiet} without it)"}, goal="scans")

    def changes(self) -> None:
        with self.settled_console() as terminal:
            self.say(f"{self.chosen.changes} changes of one unit's state")
            took = measure.changes(self.host, terminal, self.chosen.units, self.chosen.changes)
        self.raw["change to screen, s"] = took
        words = f"{statistics.median(took) * 1e3:.0f} ms, 95 %: {_percentile(took, 95) * 1e3:.0f} ms"
        self.row("a unit's change of state to the screen", {"worktop": words}, goal="change")

    def storm(self) -> None:
        units = self.chosen.units
        with self.settled_console() as terminal:
            self.say(f"a storm: {units} restarts")
            found = measure.storm(self.host, terminal, units)
        self.raw["key to screen, s"] = vars(found)
        waits = found.during + found.after
        words = (
            f"at most {max(waits) * 1e3:.0f} ms, median {statistics.median(waits) * 1e3:.0f} ms,"
            f" {sum(wait > KEY_WAITS for wait in waits)} of {len(waits)} over {KEY_WAITS * 1e3:.0f} ms"
            f" (calm: at most {max(found.calm) * 1e3:.0f} ms)"
        )
        self.row(f"{units} restarts in {found.lasted:.1f} s: a key to the screen", {"worktop": words}, goal="storm")
        shown = "all were shown" if found.shown is None else f"not all were shown: {found.shown}"
        self.say(f"the storm: {words}; {shown}")

    def churn(self) -> None:
        minutes = self.chosen.churn_minutes
        if not minutes:
            return
        with self.settled_console() as terminal:
            self.say(f"{minutes:g} minutes of churn")
            samples = measure.churn(self.host, terminal, self.chosen.units, minutes)
        self.raw["churn, (s, rss)"] = samples
        words = f"{measure.slope(samples) / 1e3:+.0f} KB/min, {samples[-1][1] / 1e6:.0f} MB at the end"
        self.row(f"memory over {minutes:g} min of churn, all screens", {"worktop": words}, goal="slope")

    @contextmanager
    def settled_console(self) -> Iterator[Pty]:
        """A console of its own for one part: what another part did to the units is no longer in its rates."""
        units = self.chosen.units
        fleet.settled(self.host, units)
        with self.apps["worktop"].open(self.host) as terminal:
            terminal.wait_for(rf"{fleet.UNIT} +{units}/{units}", 60)
            time.sleep(2)
            yield terminal

    # --- the table ---------------------------------------------------------------------------------------------------

    NAMES = ("worktop", "worktop, no role", "isd", "pg_activity", "bare Textual")

    def row(self, what: str, values: dict[str, str], numbers: dict[str, float] | None = None, goal: str = "") -> None:
        ratio = "–"
        if numbers and numbers.get("isd") and "worktop" in numbers:
            ratio = f"{numbers['worktop'] / numbers['isd']:.2f}"
        self.rows.append((what, *(values.get(name, "–") for name in self.NAMES), ratio, GOALS.get(goal, "")))

    def table(self) -> str:
        titles = ("", *self.NAMES, "worktop ÷ isd", "goal")
        lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
        lines += [f"| {' | '.join(row + ('',) * (len(titles) - len(row)))} |" for row in self.rows]
        loads = [load for _, load, _ in self.raw["loads"]]
        notes = [
            f"{datetime.date.today()}, {os.cpu_count()} cores, Linux {platform.release()},"
            f" Python {platform.python_version()}, terminal {COLUMNS}x{LINES},"
            f" {self.chosen.units} units and {self.chosen.jobs} jobs beside the demo's own;"
            f" load average {min(loads):.1f} to {max(loads):.1f}. Times are medians [least .. most];"
            " of pid 1, bus and journal it is what they used more than without the program."
        ]
        notes += [f"{name} could not be measured: {why}" for name, why in self.missing.items()]
        return "\n".join([*lines, "", *notes]) + "\n"


PARTS: dict[str, Callable[[Bench], None]] = {
    "start": Bench.first_data,
    "idle": Bench.idle,
    "database": Bench.database,
    "changes": Bench.changes,
    "storm": Bench.storm,
    "churn": Bench.churn,
}


def _spread(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f} s [{min(seconds):.2f} .. {max(seconds):.2f}] n={len(seconds)}"


def _percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="write the table here, and the raw samples beside it as .json")
    parser.add_argument("--units", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1_000_000, help="10000000 takes some minutes and 5 GB of memory")
    parser.add_argument("--repeats", type=int, default=7, help="starts of each program")
    parser.add_argument("--idle", type=float, default=60.0, help="seconds each program is left alone")
    parser.add_argument("--changes", type=int, default=30, help="changes of one unit's state")
    parser.add_argument("--database", type=float, default=20.0, help="seconds the server's log is read")
    parser.add_argument("--churn-minutes", type=float, default=3.0)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seed", type=int, default=1, help="of the random order of the starts")
    parser.add_argument("--quick", action="store_true", help="few and short: shows that it works, measures nothing")
    parser.add_argument("--host", help="use this demo host, prepared already; it is left as it is")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.repeats, chosen.idle, chosen.changes, chosen.database, chosen.churn_minutes = 2, 8.0, 6, 8.0, 0.4
    began = time.monotonic()
    booted = None
    if chosen.host:
        running = state.running(chosen.host)
        if running is None:
            parser.error(f"no demo host {chosen.host} is running")
        bench = Bench(DemoHost(running), chosen)
    else:
        booted = demo_host.boot(f"bench-{os.getpid()}", progress=lambda step: print(step, file=sys.stderr))
        bench = Bench(DemoHost(booted.host), chosen)
    try:
        if bench.host.run(["test", "-e", fleet.ALL_ROLES], check=False).returncode:
            fleet.prepare(bench.host, chosen.units, chosen.jobs, bench.say)
        bench.run()
        bench.say(f"done in {time.monotonic() - began:.0f} s")
    finally:
        if booted:
            booted.close()
        if bench.rows:
            table = bench.table()
            print(table)
            if chosen.out:
                chosen.out.write_text(table, encoding="utf-8")
                bench.raw["chosen"] = {name: str(value) for name, value in vars(chosen).items()}
                chosen.out.with_suffix(".json").write_text(json.dumps(bench.raw, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
