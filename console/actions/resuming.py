"""Plans that were cut off: what is left of them is done by another plan, or given up; nothing is half forgotten."""

from __future__ import annotations

import time
from typing import cast

from console.actions import journal
from console.actions.draft import plan_id as new_id
from console.actions.gates import Gates
from console.actions.records import Record
from console.actions.scene import host_answers
from console.actions.steps.units import RUNS
from console.config import Config
from console.errors import RefusedError
from console.fleet.model import HostFacts, Unit, template_of
from console.fleet.plan import Consent, Plan, Step, UnitVerb
from console.host.client import HostClient
from console.state import StateDirectory
from console.text import ago

_KINDS = frozenset({"unit", "signal", "wait", "program"})


async def continue_plan(
    state: StateDirectory, plan_id: str, config: Config, host: HostClient, gates: Gates, why: str
) -> Plan:
    """The plan of the steps that are not known to be done. ConfigError: there is no such plan. RefusedError: nothing
    of it is left, somebody applies it now, or it changes rows or files and must be planned anew."""
    record = _left(state, plan_id)
    was = record.plan
    if any(step.kind not in _KINDS for number, step in enumerate(was.steps) if number not in record.steps):
        raise RefusedError(was.title, "its rows and files may have changed since", f"plan it again: {was.command}")
    await host_answers(host)
    now = time.time()
    reasons = [f"{record.who.name} began it {ago(now - record.at)} ago on {record.host}, and it was cut off"]
    steps: list[Step] = []
    for number, step in enumerate(was.steps):
        if number in record.steps:
            continue
        if _done_since(step, record, host.facts):
            reasons.append(f"{step.unit} has been started since then: “{step.title}” is not done again")
        else:
            steps.append(step)
    refused: list[str] = []
    allow: list[str] = []
    for step in steps:
        name = step.unit or next(iter(step.units), "")
        role = next((role.name for role in config.roles if role.template and role.template == template_of(name)), "")
        if step.kind == "unit":
            gate = await gates.unit(cast("UnitVerb", step.verb), role)
            if gate is not None:
                refused += gate.why
                allow += gate.allow
    empty = not steps
    if empty:
        refused.append("everything it was to do is done by now: worktop abandon closes it")
    return Plan(
        id=new_id(now),
        made=now,
        verb=was.verb,
        title=f"Continue: {was.title}",
        role=was.role,
        risk=was.risk,
        reversible=was.reversible,
        continues=was.id,
        reasons=tuple(reasons),
        warnings=(f"worktop undo {was.id} undoes what was done before it was cut off",) if record.units else (),
        steps=tuple(steps),
        command=f"worktop continue {was.id}",
        consent=Consent(kind="refused", empty=empty, why=tuple(refused), allow=tuple(allow)) if refused else Consent(),
        why=why or was.why,
    )


def abandoned(state: StateDirectory, plan_id: str) -> tuple[Record, str]:
    """Give up what is left of it; the record, and a sentence on what was done. ConfigError, RefusedError."""
    record = _left(state, plan_id)
    journal.close(state, plan_id)
    steps = record.plan.steps
    left = [step.title for number, step in enumerate(steps) if number not in record.steps]
    text = f"{len(record.steps)} of {len(steps)} steps were done"
    if left:
        text += f"; given up: {', '.join(left[:3])}" + (f" and {len(left) - 3} more" if len(left) > 3 else "")
    if record.changes_something:
        text += f"; worktop undo {plan_id} undoes what was done"
    return record, text


def _left(state: StateDirectory, plan_id: str) -> Record:
    """RefusedError: nothing of it is left, or somebody applies it now."""
    record = journal.read(state, plan_id)
    if journal.being_applied(state, plan_id):
        raise RefusedError(record.plan.title, f"{record.who.name} is applying it now", "wait until it has ended")
    stopped = record.end == "stopped" and not record.undone and record.closed is None
    if not record.cut_off and not stopped:
        how = (
            "it was undone"
            if record.undone
            else f"{record.closed} went on with it"
            if record.closed
            else "it was given up"
            if record.closed is not None
            else f"it has ended: {record.end}"
        )
        raise RefusedError(record.plan.title, how, f"plan it again: {record.plan.command}")
    return record


def _done_since(step: Step, record: Record, facts: HostFacts) -> bool:
    """A restart that was begun, of a unit that runs and was started after the plan had begun: systemd went on."""
    begun = any(change.unit == step.unit for change in record.units)
    unit: Unit | None = next((unit for unit in facts.units.value or () if unit.name == step.unit), None)
    if step.kind != "unit" or step.verb != "restart" or not begun or unit is None or unit.active not in RUNS:
        return False
    return unit.started is not None and unit.started > record.at
