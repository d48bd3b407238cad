"""A run of a playbook that is stopped by a kill -9 at a chosen write of its journal. Runs inside a demo host.

    python -m tests.bench.playbook_driver run|resume|rollback|each|twice PLAYBOOK [NAME=VALUE ...] [--die N]
        [--victim WHO]

Points are counted from 1: before and after each line that the journal of the run writes. With --victim agent the host
agent alone is killed, at each Nth point. With --new FILE it is killed at the first point of a step that is not in the
file, and the point is added to it. It prints each step's end and, last, how many points.
`each` follows the playbook to its first step and takes it back, then to its second and takes it back, and so on.
`twice` follows it once: each step that changes something is done, taken back by itself, and done again; from the last
all is taken back.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from console import config
from console.actions.steps.doing import OnQuestion
from console.errors import WorktopError
from console.fleet.plan import Plan, Question
from console.playbook.desk import Playbooks
from console.playbook.engine import Run
from console.playbook.model import BackView, Settings, StepEnd
from console.wiring import Sources

LOOKS = 60  # one a second
FOLDERS = (Path("/etc/systemd/system"), Path("/var/spool/cron/crontabs"))


class Points:
    """Kills at the point that was asked for."""

    def __init__(self, sources: Sources, die: int, victim: str, new: Path | None) -> None:
        self._sources = sources
        self._die = die
        self._victim = victim
        self._new = new
        self._met: Counter[str] = Counter()
        self.run: Run | None = None
        self.seen = 0

    def at(self, point: str) -> None:
        self.seen += 1
        if not (self._is_new(point) if self._new is not None else self._die and self.seen % self._die == 0):
            return
        agent = self._sources.host.process
        if agent is not None and self._victim in ("agent", "both"):
            os.kill(agent.pid, signal.SIGKILL)
        print(f"killed {point} ({self._victim})", flush=True)
        if self._victim != "agent":
            os.kill(os.getpid(), signal.SIGKILL)

    def _is_new(self, point: str) -> bool:
        """Whether nobody was killed here yet: at this point of this step, met so many times in one process."""
        assert self._new is not None
        step = self.run.step.number if self.run is not None and self.run.step is not None else 0
        self._met[f"{step} {point}"] += 1
        name = f"{step} {point} {self._met[f'{step} {point}']}"
        known = self._new.read_text().splitlines() if self._new.exists() else []
        if name in known:
            return False
        with self._new.open("a") as written:
            print(name, file=written)
        return True


def typed(plan: Plan | None) -> str:
    return plan.consent.word if plan is not None and plan.consent.kind == "typed" else ""


async def agrees(plan: Plan) -> tuple[bool, str]:
    return True, typed(plan)


async def no(question: Question) -> bool:
    return False


async def yes(question: Question) -> bool:
    return True


def files() -> dict[str, str]:
    """What is in the units' folder and the crontabs."""
    found = {}
    for folder in FOLDERS:
        for path in folder.rglob("*"):
            if path.is_symlink():
                found[str(path)] = str(path.readlink())
            elif path.is_file():
                found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


ByHand = dict[int, str]  # what a person does while a step waits for them: a command of the shell


async def ahead(run: Run, until: int, on_question: OnQuestion = no, by_hand: ByHand | None = None) -> int:
    waiting = dict(by_hand or {})
    while (step := run.step) is not None and not (until and step.number >= until):
        view = await run.show()
        if not view.may_go:
            print(f"{step.number} refused: {view.problem}")
            return 1
        plan = view.shown.plan if view.shown is not None else None
        end = await run.go(view, typed=typed(plan), on_agree=agrees, on_question=on_question)
        print(f"{end.number} {end.state}: {end.text}", flush=True)
        if end.state not in ("done", "skipped"):
            command = waiting.pop(end.number, "")
            if not command:
                return 1
            await shell(command)
    return 0


async def shell(command: str) -> None:
    await (await asyncio.create_subprocess_shell(command)).wait()


async def back_one(run: Run, view: BackView, on_question: OnQuestion) -> StepEnd:
    word = next((typed(plan) for plan in view.plans if typed(plan)), "")
    end = await run.back(view, typed=word, on_question=on_question)
    print(f"{end.number} {end.state}: {end.text}", flush=True)
    return end


async def back(run: Run, on_question: OnQuestion = no) -> int:
    while run.status.state == "open" or run.status.state == "done":
        end = await back_one(run, await run.show_back(), on_question)
        if end.state != "undone":
            return 1
    return 0


async def each(books: Playbooks, name: str, values: Settings, first: int, to: int, again: str, by_hand: ByHand) -> int:
    """0: from every step everything came back."""
    steps, before = len(books.book(name).steps), files()
    for number in range(first, (to or steps) + 1):
        began = time.monotonic()
        if again:
            await shell(again)
        run = await books.start(name, {**values})
        try:
            for _ in range(LOOKS):  # until there is again what the playbook is for
                if (await run.show()).may_go:
                    break
                await asyncio.sleep(1)
            went = await ahead(run, number + 1, yes, by_hand)
            came = await back(run, yes)
            state = run.status.state
        finally:
            run.close()
        after = files()
        differs = _differing(before, after)
        told = f"{'differs: ' + ' '.join(differs) if differs else 'files the same'}, {time.monotonic() - began:.0f} s"
        print(f"each {number} of {steps}: ahead {went}, back {came}, {state}, {told}", flush=True)
        if went or came or differs:
            return 1
    return 0


async def twice(books: Playbooks, name: str, values: Settings, by_hand: ByHand, at_end: str) -> int:
    """0: each step by itself came back, could be done again, and from the end all of them came back."""
    steps, first = len(books.book(name).steps), files()
    run = await books.start(name, {**values})
    try:
        for number in range(1, steps + 1):
            before, began = files(), time.monotonic()
            went = await ahead(run, number + 1, yes, by_hand)
            view = await run.show_back() if not went and number < steps else None
            came = "-"
            if view is not None and not view.plans and view.step.inverse.kind == "undo":
                came = "nothing"
            elif view is not None:
                end = await back_one(run, view, yes)
                differs = _differing(before, files())
                came = end.state if not differs else f"differs: {' '.join(differs)}"
                if number == 1:  # nothing of the run is left: it is over
                    run.close()
                    run = await books.start(name, {**values})
                went = await ahead(run, number + 1, yes)
            print(f"twice {number} of {steps}: back {came}, again {went}, {time.monotonic() - began:.0f} s", flush=True)
            if went or came not in ("undone", "nothing", "-"):
                return 1
        await shell(at_end)
        came_back = await back(run, yes)
        differs = _differing(first, files())
        print(f"twice: back from the end {came_back}, {run.status.state}, {'differs' if differs else 'files the same'}")
        return 1 if came_back or differs else 0
    finally:
        run.close()


def _differing(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


async def main(asked: argparse.Namespace) -> int:
    found = config.load()
    sources = Sources(found, interval=0.5)
    points = Points(sources, asked.die, asked.victim, asked.new)
    try:
        await sources.host.ready(20.0)
        books = Playbooks(sources.actions, found, sources.host, sources.queue, at=points.at)
        values: Settings = dict(pair.split("=", 1) for pair in asked.values)
        by_hand = {int(step): command for step, command in (pair.split("=", 1) for pair in asked.by_hand)}
        if asked.what == "each":
            return await each(books, asked.playbook, values, asked.first, asked.to, asked.again, by_hand)
        if asked.what == "twice":
            return await twice(books, asked.playbook, values, by_hand, asked.at_end)
        if asked.what == "run":
            run = await books.start(asked.playbook, {**values})
        else:
            run = await books.resume(asked.playbook)
        points.run = run
        try:
            return await back(run) if asked.what == "rollback" else await ahead(run, asked.until)
        finally:
            run.close()
    except WorktopError as error:
        print(f"refused: {error.problem.line()}")
        return 2
    finally:
        await sources.stop()
        print(f"points {points.seen}")


if __name__ == "__main__":
    print(f"pid {os.getpid()}", flush=True)
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("run", "resume", "rollback", "each", "twice"))
    parser.add_argument("playbook")
    parser.add_argument("values", nargs="*")
    parser.add_argument("--die", type=int, default=0)
    parser.add_argument("--new", type=Path, help="points where somebody was killed already; one more is added")
    parser.add_argument("--victim", default="console", choices=("console", "agent", "both"))
    parser.add_argument("--until", type=int, default=0, help="the step that is not done")
    parser.add_argument("--first", type=int, default=1, help="the first step that is tried by `each`")
    parser.add_argument("--to", type=int, default=0, help="the last step that is tried by `each`")
    parser.add_argument(
        "--again", default="", help="a command of the shell that makes again, before each of `each`, what is mended"
    )
    parser.add_argument("--at-end", default="", help="a command of the shell for the end of `twice`")
    parser.add_argument(
        "--by-hand", nargs="*", default=[], metavar="STEP=COMMAND", help="what a person does while the step waits"
    )
    sys.exit(asyncio.run(main(parser.parse_args())))
