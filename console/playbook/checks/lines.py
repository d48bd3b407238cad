"""Checks on crontab lines: whether one is disabled, and whether cron really starts nothing any more."""

from __future__ import annotations

from console.errors import HostError
from console.fleet.model import Process, Worker
from console.playbook.actions.workers import legacy
from console.playbook.kinds import Check, Given, Inputs
from console.playbook.lines import line_of, runs_of
from console.playbook.model import Begun, Seen
from console.playbook.settings import Input
from console.playbook.standing import named
from console.schedules.timing import period
from console.text import duration

_ENTRY = {"entry": Input(required=True, about="as worktop schedules names it")}
_MARGIN = 5.0  # seconds after a tick within which what cron starts is there
_AT_MOST = 300.0
_MINUTE = 60.0


async def _disabled(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    line = await line_of(given, inputs.text("entry"))
    if line.state == "active":
        return Seen(state="not", text=f"{line.where} is active: cron goes on starting it")
    if line.state == "gone":
        return Seen(state="holds", text=f"{line.where} is there no more: somebody has removed it")
    return Seen(state="holds", text=f"{line.where} is disabled")


async def _active(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    line = await line_of(given, inputs.text("entry"))
    if line.state == "active":
        return Seen(state="holds", text=f"{line.where} is active")
    return Seen(state="not", text=f"{line.where} is {line.state}")


async def _tick_begin(given: Given, inputs: Inputs) -> Begun:
    """A whole period, so that one tick lies in it; what is alive already is known."""
    workers = legacy((await given.status(inputs.text("role"))).workers)
    line = await line_of(given, inputs.text("entry"))
    every = period(await runs_of(given, line)) or _MINUTE
    most = inputs.span("at_most", _AT_MOST)
    return Begun(
        seconds=min(every + _MARGIN, most),
        memory={
            "known": tuple(_identity(process) for worker in workers for process in worker.processes),
            "every": every,
            "at": given.now(),
            "whole": every + _MARGIN <= most,
        },
    )


async def _tick(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    line = await line_of(given, inputs.text("entry"))
    if line.state == "active":
        return Seen(state="not", text=f"{line.where} is active again: somebody has put it back")
    known = set(_texts(begun, "known"))
    parents = {text.rpartition(":")[0] for text in known}
    scene = await given.scene()
    if scene.facts.processes.problem is not None:
        problem = scene.facts.processes.problem
        raise HostError(problem.what, problem.why, problem.do)
    fresh = [
        (worker, process)
        for worker in legacy(scene.status(inputs.text("role")).workers)
        for process in worker.processes
        if _identity(process) not in known and not _came_from(process, parents)
    ]
    if fresh:
        return Seen(
            state="not",
            text=f"{len(fresh)} more were started outside of units",
            evidence=tuple(_told(worker, process) for worker, process in fresh[:5]),
        )
    every = float(str(begun.memory.get("every", _MINUTE)))
    if not begun.memory.get("whole", True):
        return Seen(state="holds", text=f"nothing was started; its period of {duration(every)} was not waited for")
    return Seen(state="holds", text=f"nothing was started outside of units (the line's period is {duration(every)})")


def _came_from(process: Process, parents: set[str]) -> bool:
    """A worker that was there has started it: that is no tick. A pid of before a reboot is somebody else's now."""
    pids = (process.ppid, *(ancestor.pid for ancestor in process.ancestors))
    return any(f"{process.ident.boot_id}:{pid}" in parents for pid in pids)


def _identity(process: Process) -> str:
    ident = process.ident
    return f"{ident.boot_id}:{ident.pid}:{ident.start}"


def _texts(begun: Begun, name: str) -> tuple[str, ...]:
    found = begun.memory.get(name, ())
    return found if isinstance(found, tuple) else ()


def _told(worker: Worker, process: Process) -> str:
    return f"pid {process.ident.pid} ({process.name}), by {named(worker.owner)}"


LINE_DISABLED = Check("line-disabled", "cron does not run the line", _disabled, _ENTRY)
LINE_ACTIVE = Check("line-active", "cron runs the line", _active, _ENTRY)
QUIET_TICK = Check(
    "quiet-tick",
    "for a whole period of the line nothing new of the role is started outside of units",
    _tick,
    {**_ENTRY, "role": Input(required=True), "at_most": Input(kind="span", about="longest wait; 5 min")},
    begin=_tick_begin,
)
