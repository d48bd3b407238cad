"""The main playbook as a person follows it: over ssh, in 80 columns and 24 lines, with keys alone, there and back.

    python -m tests.bench.wizard [--host NAME] [--screens FOLDER]

boots a demo host, lets deploy run the host agent through sudo, and connects as deploy. The reports go from a growing
pile under two owners to three instances of systemd, and back. What was counted is printed as Markdown; the exit code
is 1 when something differs from what must be. It takes six minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from console.demo import state
from tests.bench.ledger import CRONTAB, Rows, begin_ledger, rows
from tests.conftest import DemoHost, fresh_host
from tests.e2e.ssh import Ssh
from tests.e2e.test_actions_console import Operator
from tests.e2e.test_console import first_data, flat
from tests.terminal import Terminal

ROLE, WANTED, TEMPLATE = "reports", 3, "reports-worker@"
CONFIG, UNIT_FILE = "/etc/worktop/worktop.toml", f"/etc/systemd/system/{TEMPLATE}.service"
RIGHTS = "deploy ALL=(root) NOPASSWD: /usr/local/bin/worktop agent"
AGENT = 'agent = ["sudo", "-n", "/usr/local/bin/worktop", "agent"]'
PILE = 6  # workers that cron has started, before the playbook is begun

READY, LOOK, ENDED = "shows what is to be agreed to", "row is changed", "⏎ goes on"
OVER, BACK = "● done to the end", "● taken back: everything is as it was before"
CONSENT, REFUSED = "[ Apply ]", ("[ Back ]", "refused:", "× failed")
PLACE = re.compile(r"step (\d+) of (\d+)")
COUNTDOWN = re.compile(r"waits, (\d+):(\d\d) more")
STEP_TAKES = 400.0  # seconds at most
BETWEEN_RUNS = 30.0  # seconds at most
UNITS = {f"{TEMPLATE}{number}.service": 1 for number in range(1, WANTED + 1)}


class Counted(NamedTuple):
    """What is there at one moment, seen without worktop's eyes."""

    owners: Counter[str]  # processes of the role, by the unit they are in
    crontab: str  # sha256
    unit: str  # sha256 of its file
    rows: Rows

    @property
    def told(self) -> str:
        return ", ".join(f"{count} in {owner}" for owner, count in sorted(self.owners.items())) or "none"


class Step(NamedTuple):
    """What was seen of one step."""

    number: int
    seconds: float  # of the screen: from Enter to its end
    countdown: tuple[int, ...]  # seconds that were left, as they were shown


def count(host: DemoHost) -> Counted:
    return Counted(owners(host), _digest(host, CRONTAB), _digest(host, UNIT_FILE), rows(host, ROLE))


def owners(host: DemoHost) -> Counter[str]:
    """Processes of the role, by the unit they are in."""
    processes = host.run(["ps", "-eo", "unit=,args="]).stdout.splitlines()
    return Counter(line.split()[0] for line in processes if f"worker --role {ROLE} " in line)


def counted_between_runs(host: DemoHost) -> Counted:
    """A worker of the reports ends after its --lifetime of 170 s, and systemd waits RestartSec= before the next run."""
    deadline = time.monotonic() + BETWEEN_RUNS
    while dict(owners(host)) != UNITS and time.monotonic() < deadline:
        time.sleep(0.5)
    return count(host)


def _digest(host: DemoHost, path: str) -> str:
    return hashlib.sha256(host.run(["cat", path]).stdout.encode()).hexdigest()


def give_rights(host: DemoHost) -> None:
    """What the documentation asks for: the agent alone runs as root."""
    host.run(["sh", "-c", "cat > /etc/sudoers.d/worktop && chmod 440 /etc/sudoers.d/worktop"], input=f"{RIGHTS}\n")
    host.run(["sh", "-c", f"grep -q ^agent {CONFIG} || sed -i '/^\\[host\\]/a {AGENT}' {CONFIG}"])


class Person(Operator):
    """Somebody at the keyboard, who keeps what the screen showed."""

    def __init__(self, host: DemoHost, terminal: Terminal, screens: Path | None) -> None:
        super().__init__(host, terminal)
        self._screens = screens
        self._kept = 0
        self._last = ""
        self.steps: list[Step] = []

    def check(self, screen: str) -> None:
        super().check(screen)
        assert all(len(line) <= 80 for line in screen.splitlines()), screen
        body = screen.partition("\n")[2]  # without the clock
        if self._screens is not None and body != self._last:
            self._last, self._kept = body, self._kept + 1
            (self._screens / f"{self._kept:04}.txt").write_text(screen)

    def agree(self) -> None:
        self.press("A")
        self.until(lambda text: CONSENT not in text, "the plan to close")

    # --- to the playbook -------------------------------------------------------------------------------------------

    def open_from_the_finding(self) -> None:
        """Fleet, the finding, its evidence, its playbook, its first step."""
        self.until(lambda text: re.search(rf"× {ROLE} +two owners", text) is not None, "the finding")
        self.press("Tab")
        self.press("Home")
        self.press("Enter")
        self.until(lambda text: "EVIDENCE" in text and "P mend" in text, "the evidence, and the key that mends it")
        self.press("P")
        self.until(lambda text: "⏎ begins it" in text, "the playbook")
        self.press("Enter")
        self.until(lambda text: ": entry" in text and "deploy:4" in text, "the question for the line")
        self.press("Enter")
        self.until(lambda text: "step 1 of 14" in text and LOOK in text, "the first step")

    def leave_and_come_back_from_schedules(self) -> None:
        self.press("q")
        self.until(lambda text: "PLAYBOOKS" in text and "unfinished" in text, "the list of playbooks")
        self.press("6")
        self.until(lambda text: "SCHEDULES" in text and "deploy:4" in text, "the schedules")
        self.press("Home")
        self.press("P")
        self.until(lambda text: "takes up the unfinished run" in text, "the playbook, with its run")
        self.press("Enter")
        self.until(lambda text: "step 1 of 14" in text and LOOK in text, "the first step again")

    # --- there, and back -------------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Each step to the last one."""
        number = 1
        while self._step(number):
            number += 1

    def _step(self, number: int) -> bool:
        """One step. False: it was the last one."""
        self.until(lambda text: _at(text, number) and (READY in text or LOOK in text), f"step {number}", 60.0)
        began = pressed = time.monotonic()
        countdown: list[int] = []
        self.press("Enter")
        while True:
            screen = self.until(lambda text: True, "anything")
            if left := COUNTDOWN.search(screen):
                seconds = int(left[1]) * 60 + int(left[2])
                if not countdown or countdown[-1] != seconds:
                    countdown.append(seconds)
            if CONSENT in screen:
                self.agree()
                pressed = time.monotonic()
            assert not any(word in screen for word in REFUSED), screen
            over = OVER in screen
            if over or (ENDED in screen and f"Step {number}. " in screen):
                break
            if (READY in screen or LOOK in screen) and time.monotonic() - pressed > 3:
                self.press("Enter")  # what was to be agreed to has come about by itself
                pressed = time.monotonic()
            assert time.monotonic() - began < STEP_TAKES, f"step {number} does not end\n{screen}"
            time.sleep(0.2)
        self.steps.append(Step(number, time.monotonic() - began, tuple(countdown)))
        if not over:
            self.press("Enter")
        return not over

    def take_back(self) -> float:
        """b until all is as it was. Returns seconds."""
        began = time.monotonic()
        for number in range(len(self.steps), 0, -1):

            def gone(text: str, number: int = number) -> bool:
                return BACK in flat(text) or (f"Step {number}. " in text and ENDED in text)

            self.press("b")
            screen = self.until(lambda text: CONSENT in text or gone(text), f"step {number} to go back", 60.0)
            if CONSENT in screen:
                self.agree()
                screen = self.until(lambda text: gone(text) or "× failed" in text, f"step {number} undone", STEP_TAKES)
            assert "× failed" not in screen, screen
        self.until(lambda text: BACK in flat(text), "the end of the way back")
        return time.monotonic() - began


def _at(screen: str, number: int) -> bool:
    place = PLACE.search(screen)
    return place is not None and int(place[1]) == number


def wrong(before: Counted, after: Counted, back: Counted, steps: list[Step]) -> list[str]:
    """What is not as it must be."""
    found = {
        f"there are not {WANTED} instances alone: {after.told}": dict(after.owners) != UNITS,
        "the crontab is not changed by the playbook": after.crontab == before.crontab,
        "the crontab is not the same after the way back": back.crontab != before.crontab,
        "the unit's file is not the same after the way back": back.unit != before.unit,
        "no instance runs after the way back": not any(TEMPLATE in owner for owner in back.owners),
        "rows are lost": not after.rows.before == after.rows.there == back.rows.there,
        "jobs ended twice": after.rows.twice or back.rows.twice,
        "a quiet tick has no countdown": any(len(steps[number - 1].countdown) < 30 for number in (5, 13)),
        "a countdown goes up": any(
            later > sooner + 1 for step in steps if step.number in (5, 13)
            for sooner, later in zip(step.countdown, step.countdown[1:], strict=False)
        ),
    }  # fmt: skip
    return [text for text, so in found.items() if so]


def table(before: Counted, after: Counted, back: Counted) -> str:
    lines = ["| | processes of reports | crontab, sha256 | unit's file, sha256 | rows |", "|---|---|---|---|---|"]
    for name, counted in (("before", before), ("at its end", after), ("taken back", back)):
        lines.append(f"| {name} | {counted.told} | {counted.crontab} | {counted.unit[:12]}… | {counted.rows.told} |")
    return "\n".join(lines)


def run(host: DemoHost, screens: Path | None) -> list[str]:
    """There and back; prints what was counted. Returns what is not as it must be."""
    give_rights(host)
    with tempfile.TemporaryDirectory() as folder:
        argv = Ssh(host, Path(folder)).argv("worktop", terminal=True)
        with Terminal(argv, 80, 24) as terminal:
            first_data(terminal)
            person = Person(host, terminal, screens)
            while owners(host)["cron.service"] < PILE:
                time.sleep(1)
            begin_ledger(host)
            before = count(host)
            person.open_from_the_finding()
            person.leave_and_come_back_from_schedules()
            began = time.monotonic()
            person.follow()
            ahead, after = time.monotonic() - began, counted_between_runs(host)
            back_took = person.take_back()
            back = count(host)
            person.press("q")
            person.until(lambda text: "PLAYBOOKS" in text and "taken back" in text, "the list again")
            person.leave()
    print(table(before, after, back))
    print(f"\nto its end {ahead:.0f} s, taken back {back_took:.0f} s")
    told = (f"{step.number}: {step.seconds:.0f}" for step in person.steps)
    print(f"seconds of each step: {', '.join(told)}")
    return wrong(before, after, back, person.steps)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", help="a kept demo host, instead of one of its own")
    parser.add_argument("--screens", type=Path, help="a folder for every screen that was shown, as text")
    asked = parser.parse_args()
    if asked.screens is not None:
        asked.screens.mkdir(parents=True, exist_ok=True)
    if asked.host:
        kept = state.running(asked.host)
        if kept is None:
            parser.error(f"no demo host {asked.host} is running")
        problems = run(DemoHost(kept), asked.screens)
    else:
        with fresh_host("wizard") as host:
            problems = run(host, asked.screens)
    for problem in problems:
        print(f"WRONG: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
