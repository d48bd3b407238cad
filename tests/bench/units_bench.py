"""Restarts and scales under load on a real systemd, counted to the row; and what the plan for a large role takes.

    python -m tests.bench.units_bench [--host NAME] [--restart 20] [--parts restart scale plan]

boots a demo host of its own, or uses one that `worktop demo --keep` left running. Twenty workers are restarted one
after another, and a role is scaled 1 -> 8 -> 2, while jobs flow: every job must have been done, and claimed exactly
once. Then a scale of a role of 200 instances is planned. Prints Markdown. Run by hand: it takes ten minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from console.demo import host as demo
from console.demo import state
from console.fleet.plan import Outcome
from tests.actions.hall import Hall, hall
from tests.conftest import DemoHost
from tests.host.conftest import Template, templates

SECONDS = 0.5  # one job takes so long


async def keep_adding(own: Hall, number: int, stop: asyncio.Event) -> int:
    """Jobs in small lots, as fast as they are done, so that some always wait; how many there were."""
    await own.add(2 * number, SECONDS)
    added = 2 * number
    while not stop.is_set():
        await own.add(number, SECONDS)
        added += number
        await asyncio.sleep(number * SECONDS / max(1, len(own.up())))
    return added


async def counted(own: Hall, added: int, what: str, outcomes: list[Outcome]) -> None:
    await own.each_once(added, 300)
    took = sum(outcome.took for outcome in outcomes)
    states = ", ".join(outcome.state for outcome in outcomes)
    print(f"| {what} | {states} | {took:.0f} s | {added} | {added} | 0 | 0 |")


async def restart(host: DemoHost, template: Template, folder: Path, number: int) -> None:
    names = [str(each) for each in range(1, number + 1)]
    async with hall(host, template, folder, "manyrolls", names, lives=1.0) as own:
        for first in range(1, number + 1, 4):  # the start of a Python program takes a second of a core
            await own.start(*range(first, min(first + 4, number + 1)))
        stop = asyncio.Event()
        adding = asyncio.create_task(keep_adding(own, 2 * number, stop))
        await own.holding(1)
        outcome = await own.apply(await own.actions.plan_units("restart", role="manyrolls"))
        stop.set()
        await counted(own, await adding, f"rolling restart of {number}", [outcome])


async def scale(host: DemoHost, template: Template, folder: Path) -> None:
    async with hall(host, template, folder, "manyscales", ("1", "2"), budget=8, lives=1.0) as own:
        await own.start(1)
        stop = asyncio.Event()
        adding = asyncio.create_task(keep_adding(own, 60, stop))
        await own.holding(1)
        up = await own.apply(await own.actions.plan_scale("manyscales", 8, watch=10.0))
        print(f"up: {len(own.up())} run; {up.text}")
        down = await own.apply(await own.actions.plan_scale("manyscales", 2))
        stop.set()
        await counted(own, await adding, f"scale 1 → {8} → {len(own.up())}", [up, down])


async def plan(host: DemoHost, template: Template, folder: Path, number: int = 200) -> None:
    names = [str(each) for each in range(1, number + 1)]
    async with hall(host, template, folder, "manyplans", names) as own:
        took = []
        for _ in range(10):
            began = time.perf_counter()
            made = await own.actions.plan_scale("manyplans", number)
            took.append(1000 * (time.perf_counter() - began))
        assert len([step for step in made.steps if step.verb == "start"]) == number
        first, *rest = took
        told = f"median {statistics.median(rest):.0f} ms, worst {max(rest):.0f} ms"
        print(f"\nplan of a scale to {number}: {told}; the first, which connects, {first:.0f} ms")


@contextmanager
def booted(name: str | None) -> Iterator[DemoHost]:
    if name:
        running = state.running(name)
        assert running, f"no demo host {name} is running"
        yield DemoHost(running)
        return
    made = demo.boot("bench-units")
    try:
        yield DemoHost(made.host)
    finally:
        made.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host")
    parser.add_argument("--restart", type=int, default=20)
    parser.add_argument("--parts", nargs="+", default=["restart", "scale", "plan"])
    chosen = parser.parse_args()
    with booted(chosen.host) as host, tempfile.TemporaryDirectory() as folder, templates(host) as template:
        print("| what | outcome | took | jobs added | done once | lost | done twice |\n|-|-|-|-|-|-|-|")
        if "restart" in chosen.parts:
            asyncio.run(restart(host, template, Path(folder) / "restart", chosen.restart))
        if "scale" in chosen.parts:
            asyncio.run(scale(host, template, Path(folder) / "scale"))
        if "plan" in chosen.parts:
            asyncio.run(plan(host, template, Path(folder) / "plan"))


if __name__ == "__main__":
    main()
