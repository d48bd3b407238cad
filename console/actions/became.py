"""What became of a plan: for whoever noted its id before it was applied, and did not live to see the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Literal

from console.actions import journal
from console.actions.records import Record
from console.actions.scene import host_answers
from console.actions.steps.units import ENABLED, as_it_is, boot_differs
from console.errors import HostError
from console.fleet.model import Value
from console.fleet.plan import UnitChange
from console.host.client import HostClient
from console.state import StateDirectory

_SETTLED = 5.0  # seconds
Fate = Literal[
    "never",  # it was not begun: there is no journal of it
    "running",  # somebody applies it now
    "cut-off",  # it was begun, and worktop or the host was lost on the way
    "ended",
    "undone",
    "closed",  # another plan went on with it, or it was given up
]


class Became(Value, frozen=True, kw_only=True):
    """What became of a plan."""

    fate: Fate
    state: str = ""  # of its outcome, where it has ended
    changed: bool = False  # it has changed something, or may have
    who: str = ""


def became(state: StateDirectory, plan_id: str) -> Became:
    """ConfigError: its journal cannot be read."""
    record = journal.find(state, plan_id)
    if record is None:
        return Became(fate="never")
    fate: Fate = (
        "undone"
        if record.undone
        else "running"
        if journal.being_applied(state, plan_id)
        else "closed"
        if record.closed is not None
        else "cut-off"
        if record.cut_off
        else "ended"
    )
    return Became(fate=fate, state=record.end, changed=record.changes_something, who=record.who.name)


async def not_as_before(record: Record, host: HostClient) -> tuple[str, ...]:
    """What the plan has changed of files and units and is not as it was before it: sentences. HostError."""
    found: list[str] = []
    for change in record.files:
        now = await host.read_file(change.path)
        if now.problem:
            raise HostError(f"read {change.path}", now.problem)
        if now.content != change.before:
            found.append(f"{change.path} is not as it was before")
    if record.units and not record.batches:  # else they were stopped for the sake of rows, and started again
        await host_answers(host)
        found += await _units(record, host)
    return tuple(found)


async def _units(record: Record, host: HostClient) -> list[str]:
    """Whether units run, and start at boot, as before; what systemd says of one that has just been stopped or disabled
    may take a moment to arrive."""
    until = time.monotonic() + _SETTLED
    while True:
        pairs = [(was, as_it_is(host.facts, was.unit)) for was in record.units]
        found = [
            f"{was.unit} {text}, and it was otherwise before" for was, now in pairs for text in _otherwise(was, now)
        ]
        if not found or time.monotonic() >= until:
            return found
        host.refresh()
        await asyncio.sleep(0.2)


def _otherwise(was: UnitChange, now: UnitChange) -> Iterator[str]:
    if was.active != now.active:
        yield "runs" if now.active else "does not run"
    if boot_differs(was, now):
        yield "does not start at boot" if was.enabled in ENABLED else "starts at boot"
