"""The steps that put units and files back to what the journal of a plan says they were."""

from __future__ import annotations

import hashlib
from typing import cast

from console.actions.gates import Gates
from console.actions.records import Record
from console.actions.scene import host_answers
from console.actions.steps.units import ENABLED, as_it_is, boot_differs
from console.actions.switches import switch_step
from console.config import Config
from console.errors import HostError
from console.fleet.model import HostFacts, Value, template_of
from console.fleet.plan import FileChange, FileEdit, Step, UnitChange, UnitVerb
from console.host.client import HostClient

START_TIMEOUT = 60.0
_OF_SYSTEMD = ("/etc/systemd/", "/run/systemd/", "/.config/systemd/")


class Back(Value, frozen=True, kw_only=True):
    """The steps, and what stands in their way."""

    steps: tuple[Step, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()


async def unit_steps(record: Record, config: Config, host: HostClient, gates: Gates) -> Back:
    """Start, stop, enable and disable what is not as it was, the last changed first. One that is as it was is left."""
    await host_answers(host)
    facts = host.facts
    if facts.units.value is None:
        why = facts.units.problem or facts.agent.problem
        return Back(refused=(f"how the units are now is not known{f': {why.line()}' if why else ''}",))
    steps: list[Step] = []
    refused: dict[str, None] = {}
    allow: dict[str, None] = {}
    enable: list[str] = []
    disable: list[str] = []
    for was in reversed(record.units):
        verb = _verb_back(was, facts)
        if verb is not None:
            steps.append(_unit_step(was.unit, verb))
        now = as_it_is(facts, was.unit)
        if boot_differs(was, now):
            (enable if was.enabled in ENABLED else disable).append(was.unit)
    steps += [switch_step(enable, "enable")] if enable else []
    steps += [switch_step(disable, "disable")] if disable else []
    for step in steps:
        name = step.unit or step.units[0]
        role = next((role.name for role in config.roles if role.template and role.template == template_of(name)), "")
        gate = await gates.unit(cast("UnitVerb", step.verb), role)
        if gate is not None:
            refused.update(dict.fromkeys(gate.why))
            allow.update(dict.fromkeys(gate.allow))
    return Back(steps=tuple(steps), refused=tuple(refused), allow=tuple(allow))


def _verb_back(was: UnitChange, facts: HostFacts) -> UnitVerb | None:
    now = as_it_is(facts, was.unit)
    if was.active == now.active:
        return None
    return "start" if was.active else "stop"


def _unit_step(unit: str, verb: UnitVerb) -> Step:
    stops = verb == "stop"
    return Step(
        kind="unit",
        title=f"{verb} {unit}",
        text=f"systemctl {verb} {unit}" + (", as a drain: nobody is killed without a question" if stops else ""),
        unit=unit,
        verb=verb,
        drains=stops,
        alone=True,
        timeout=None if stops else START_TIMEOUT,  # of a drain: what the unit allows
    )


async def file_steps(record: Record, host: HostClient) -> tuple[Step, ...]:
    """Put the bytes back, the last changed first, where they are still those the plan left; then reload once. A file
    that is as it was is left: nobody came to write it, or somebody has put it back."""
    await host_answers(host)
    changes = [change for change in reversed(record.files) if not await _as_it_was(change, host)]
    steps = [_file_step(change) for change in changes]
    if any(part in change.path for change in changes for part in _OF_SYSTEMD):
        steps.append(Step(kind="reload", title="let systemd read its files again", text="systemctl daemon-reload"))
    return tuple(steps)


async def _as_it_was(change: FileChange, host: HostClient) -> bool:
    try:
        now = await host.read_file(change.path)
    except HostError:
        return False  # the step will tell why
    return not now.problem and now.content == change.before


def _file_step(change: FileChange) -> Step:
    edit = FileEdit(
        path=change.path,
        expected=hashlib.sha256(change.after).hexdigest() if change.after is not None else "",
        content=change.before,
        mode=change.mode if change.before is not None else None,
    )
    what = "remove" if change.before is None else "put back"
    text = "as it was, if it still is as the plan left it" if change.before is not None else "if it is unchanged since"
    return Step(kind="file", title=f"{what} {change.path}", text=text, file=edit)
