"""Makes the pictures of the documentation: the running console on a booted demo host, exported as SVG.

sudo .venv/bin/python docs/screenshots.py [NAME ...]     (make screenshots)

All of them take some ten minutes; the one name "migration" stands for those of a whole playbook.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.pilot import Pilot

    from console.tui.app import ConsoleApp
    from console.tui.wizard import Wizard
    from console.wiring import Sources

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "img"
_DEAD = ("3", "tab", "tab", "slash", *"resize", "enter", "space", "space")  # two jobs of killed workers, marked
# Stuck jobs after a crash: its second step, which is not done.
_STEP_2 = ("8", "slash", *"stuck", "enter", "enter", "enter", *"thumbnails", "enter", "enter", "enter")
PICTURES = {  # name: size, keys
    "fleet": ((120, 34), ()),
    "evidence": ((100, 28), ("tab", "enter")),
    "workers": ((120, 30), ("2",)),
    "diagnosis": ((120, 40), ("down", "d", *["home"] * 6)),  # it takes some seconds
    "worker": ((100, 34), ("2", "s", "home", "down", "enter")),
    "jobs": ((120, 20), ("3", "tab", "tab")),
    "job": ((100, 34), ("3", "tab", "tab", "enter")),
    "queue": ((100, 34), ("4",)),
    "log": ((110, 28), ("5",)),
    "scale": ((110, 40), ("down", "C", "6", "enter")),
    "limits": ((110, 40), ("down", "L")),
    "schedules": ((120, 24), ("6",)),
    "schedule": ((110, 44), ("6", "down", "enter")),  # proving its units takes some seconds
    "host": ((110, 34), ("7",)),
    "playbooks": ((120, 20), ("8",)),
    "wizard": ((110, 36), _STEP_2),
    "menu": ((110, 24), (*_DEAD, "x")),
    "plan": ((110, 40), (*_DEAD, "R")),
    "result": ((110, 36), (*_DEAD, "R", "A")),  # it is applied: the last one
}
MIGRATION = "migration"  # the main playbook, from the finding to its end, and the pictures that are taken on the way
_MIGRATION_SIZE = (100, 32)
_AS_ROOT = ("limits", MIGRATION)  # deploy may not write unit files
_TO_THE_FIRST_STEP = ("P", "enter", "enter")  # from the evidence: the playbook, begun, the line that is asked for
_ON_THE_WAY = {  # step, and when: name, keys before it is taken, seconds until then
    (1, "shown"): ("migration-survey", ("pagedown",), 0.0),
    (3, "plan"): ("migration-unit", ("pagedown",), 0.0),
    (4, "plan"): ("migration-line", ("end",), 0.0),
    (5, "done"): ("migration-tick", (), 8.0),
    (8, "done"): ("migration-swap", (), 14.0),
    (14, "ended"): ("migration-report", (), 0.0),
}
_STEP_TAKES = 400.0  # seconds at most
_TERMINAL = ("TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8")
_OWN_STATE = {"wizard": "WORKTOP_STATE=/tmp/pictures"}  # its run is left unfinished: no other picture is to tell of it
_AFTER_A_KEY = 1.5  # seconds a screen has to ask for what it shows


def outside(names: list[str]) -> None:
    """Boot a demo host, take each picture inside it, mostly as deploy, and shut it down."""
    from console.demo import enter, fleet, host

    booted = host.boot("screenshots", progress=lambda step: click.echo(step, err=True))
    try:
        fleet.wait_for_stuck_jobs(booted.host.leader_pid)
        for name in names:
            environment = (*_TERMINAL, *(_OWN_STATE[each] for each in _OWN_STATE if each == name))
            command = ["env", *environment, sys.executable, str(Path(__file__).resolve()), "--inside", name]
            user = "root" if name in _AS_ROOT else "deploy"
            argv = enter.exec_argv(booted.host.leader_pid, command, user)
            taken = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
            for each, picture in json.loads(taken).items():
                (IMAGES / f"{each}.svg").write_text(picture, encoding="utf-8")
                click.echo(f"docs/img/{each}.svg", err=True)
    finally:
        booted.close()


async def inside(name: str) -> None:
    """Run the console on the host's own sources without a terminal, and write its pictures to stdout as JSON."""
    from console.config import load
    from console.tui.app import ConsoleApp
    from console.wiring import Sources

    size, keys = PICTURES.get(name, (_MIGRATION_SIZE, ()))
    sources = Sources(load())
    app = ConsoleApp(sources)
    pictures: dict[str, str] = {}

    def take(name: str) -> None:
        pictures[name] = app.export_screenshot(title="worktop on the demo host")

    async with app.run_test(size=size, notifications=name != MIGRATION) as pilot:
        deadline = time.monotonic() + 30
        while not settled(sources) and time.monotonic() < deadline:
            await pilot.pause(0.5)
        if name == MIGRATION:
            await migrate(app, pilot, take)
        else:
            await press(app, pilot, keys)
            await pilot.pause(2 * _AFTER_A_KEY)
            take(name)
    click.echo(json.dumps(pictures))  # the process outside reads it


async def press(app: ConsoleApp, pilot: Pilot[None], keys: tuple[str, ...]) -> None:
    """One key after another, each when what the last one has begun is done."""
    deadline = time.monotonic() + 90
    for key in keys:
        await pilot.press(key)
        await pilot.pause(_AFTER_A_KEY)
        while works(app) and time.monotonic() < deadline:  # an action is verified for some seconds
            await pilot.pause(0.5)


async def migrate(app: ConsoleApp, pilot: Pilot[None], take: Callable[[str], None]) -> None:
    """Follow the main playbook to its end; the host is changed by that."""
    await press(app, pilot, ("tab", "home"))
    take("migration-fleet")
    await press(app, pilot, ("enter",))
    take("migration-evidence")
    await press(app, pilot, _TO_THE_FIRST_STEP)
    wizard = app.playbooks.wizard
    assert wizard is not None, "the playbook is not begun"
    await until(pilot, lambda: wizard.moment.view is not None)
    for number in range(1, len(wizard.moment.steps) + 1):
        await do_step(app, pilot, wizard, number, take)
        await pilot.press("enter")
        await until(pilot, lambda: wizard.moment.over or (wizard.moment.view is not None and not wizard.busy))
    await press(app, pilot, ("q", "1", "escape"))
    await pilot.pause(10)  # the findings of the role go
    take("migration-after")
    await press(app, pilot, ("9",))
    take("audit")


async def do_step(
    app: ConsoleApp, pilot: Pilot[None], wizard: Wizard, number: int, take: Callable[[str], None]
) -> None:
    """One step, with the consent it asks for, and the pictures that are taken of it."""
    from console.tui.screens.consent import ConsentScreen

    async def picture(moment: str) -> None:
        name, keys, seconds = _ON_THE_WAY.get((number, moment), ("", (), 0.0))
        if name:
            await pilot.pause(seconds)
            await press(app, pilot, keys) if moment != "done" else None
            take(name)

    def asks() -> bool:
        return isinstance(app.screen, ConsentScreen) and app.screen.plan is not None

    await picture("shown")
    await pilot.press("enter")
    await until(pilot, lambda: asks() or wizard.doing is not None or wizard.moment.end is not None)
    if asks():
        await picture("plan")
        await pilot.press("A")
        await until(pilot, lambda: wizard.doing is not None or wizard.moment.end is not None)
    await picture("done")
    while wizard.busy or wizard.moment.end is None:
        if asks():
            await pilot.press("A")
        await pilot.pause(0.5)
    assert wizard.moment.end.state == "done", wizard.moment.end
    await pilot.pause(_AFTER_A_KEY)
    await picture("ended")


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _STEP_TAKES
    while not holds():
        assert time.monotonic() < deadline, "it does not go on"
        await pilot.pause(0.2)


def works(app: ConsoleApp) -> bool:
    """An action, or a step of a playbook, goes on."""
    wizard = app.playbooks.wizard
    return app.desk.run is not None or (wizard is not None and wizard.busy)


def settled(sources: Sources) -> bool:
    """Every source has answered, and slow holders have been told from hung ones."""
    from console.fleet.verdicts import undecided

    fleet = sources.fleet
    return (
        fleet is not None
        and all(source.state in ("live", "denied") for source in fleet.sources)
        and bool(fleet.claims)
        and not any(undecided(claim) for claim in fleet.claims)
    )


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", type=click.Choice([*PICTURES, MIGRATION]))
@click.option("--inside", "one", hidden=True, help="Take this one, on the host that runs here.")
def main(names: tuple[str, ...], one: str | None) -> None:
    """Make these pictures of the documentation, or all; "migration" are those of a whole playbook."""
    if one is not None:
        asyncio.run(inside(one))
    else:
        outside(list(names) or [*PICTURES, MIGRATION])


if __name__ == "__main__":
    main()
