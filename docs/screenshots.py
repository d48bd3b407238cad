"""Makes the pictures of the documentation: the running console on a booted demo host, exported as SVG.

sudo .venv/bin/python docs/screenshots.py     (make screenshots)
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp
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
    "limits": ((110, 40), ("down", "L")),  # deploy may not: the reason stands at its top
    "schedules": ((120, 24), ("6",)),
    "schedule": ((110, 44), ("6", "down", "enter")),  # proving its units takes some seconds
    "host": ((110, 34), ("7",)),
    "playbooks": ((120, 20), ("8",)),
    "wizard": ((110, 36), _STEP_2),
    "menu": ((110, 24), (*_DEAD, "x")),
    "plan": ((110, 40), (*_DEAD, "R")),
    "result": ((110, 36), (*_DEAD, "R", "A")),  # it is applied: last but for the audit, which has it
    "audit": ((110, 16), ("9",)),
}
_TERMINAL = ("TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8")
_OWN_STATE = {"wizard": "WORKTOP_STATE=/tmp/pictures"}  # its run is left unfinished: no other picture is to tell of it
_AFTER_A_KEY = 1.5  # seconds a screen has to ask for what it shows


def outside() -> None:
    """Boot a demo host, take each picture inside it as deploy, shut it down."""
    from console.demo import enter, fleet, host

    booted = host.boot("screenshots", progress=lambda step: print(step, file=sys.stderr))  # noqa: T201
    try:
        fleet.wait_for_stuck_jobs(booted.host.leader_pid)
        for name in PICTURES:
            environment = (*_TERMINAL, *(_OWN_STATE[each] for each in _OWN_STATE if each == name))
            command = ["env", *environment, sys.executable, str(Path(__file__).resolve()), name]
            argv = enter.exec_argv(booted.host.leader_pid, command, "deploy")
            picture = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
            (IMAGES / f"{name}.svg").write_text(picture, encoding="utf-8")
            print(f"docs/img/{name}.svg", file=sys.stderr)  # noqa: T201
    finally:
        booted.close()


async def inside(name: str) -> None:
    """Run the console on the host's own sources without a terminal and write its picture to stdout."""
    from console.config import load
    from console.tui.app import ConsoleApp
    from console.wiring import Sources

    size, keys = PICTURES[name]
    sources = Sources(load())
    app = ConsoleApp(sources)
    async with app.run_test(size=size, notifications=True) as pilot:
        deadline = time.monotonic() + 30
        while not settled(sources) and time.monotonic() < deadline:
            await pilot.pause(0.5)
        for key in keys:
            await pilot.press(key)
            await pilot.pause(_AFTER_A_KEY)
            while works(app) and time.monotonic() < deadline + 60:  # an action is verified for some seconds
                await pilot.pause(0.5)
        await pilot.pause(2 * _AFTER_A_KEY)
        print(app.export_screenshot(title="worktop on the demo host"))  # noqa: T201


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


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(inside(sys.argv[1]))
    else:
        outside()
