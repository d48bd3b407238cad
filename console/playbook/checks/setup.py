"""Checks on what only a person can set up: worktop.toml, programs of other supervisors."""

from __future__ import annotations

from console.playbook.actions.unit_files import installed
from console.playbook.kinds import Check, Given, Inputs
from console.playbook.lines import one_entry
from console.playbook.model import Begun, Seen
from console.playbook.settings import Input
from console.schedules.inventory import find


async def _configured(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    """worktop.toml is read at a start of worktop: a person who has changed it starts it again."""
    role, unit = inputs.text("role"), inputs.text("unit")
    template = (await given.status(role)).role.template
    if template and (not unit or template == unit) and await installed(given, template):
        return Seen(state="holds", text=f"worktop.toml says that {template} runs {role}")
    named = unit or f"{role}-worker@.service"
    text = (
        f'worktop.toml must say unit = "{named}" in [roles.{role}]; then start worktop again: worktop playbook resume'
    )
    return Seen(state="not", text=text)


async def _program_retired(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    name = inputs.text("entry")
    inventory = await given.host.schedules(anew=True)
    listed = [each for each in find(inventory.entries, name) if each.entry.active]
    if not listed:
        return Seen(state="holds", text=f"{name} is started by nobody any more")
    path = listed[0].entry.source.path
    return Seen(state="not", text=f"{path} still starts {one_entry(inventory, name).name}")


async def _ran_begin(given: Given, inputs: Inputs) -> Begun:
    ended = (await _properties(given, inputs.text("unit"))).get("ExecMainExitTimestamp", "")
    return Begun(seconds=inputs.span("for"), memory={"ended": ended})


async def _ran(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    unit = inputs.text("unit")
    now = await _properties(given, unit)
    ended = now.get("ExecMainExitTimestamp", "")
    if not ended or ended == begun.memory.get("ended"):
        return Seen(state="not", text=f"{unit} has not run since")
    if now.get("Result") != "success":
        return Seen(state="not", text=f"{unit} has run, and failed: {now.get('Result')}")
    return Seen(state="holds", text=f"{unit} has run, and ended well")


async def _properties(given: Given, unit: str) -> dict[str, str]:
    return dict((await given.host.unit_detail(unit)).properties)


JOB_RAN = Check(
    "job-ran",
    "a service that ends by itself has run to a good end since the check has begun",
    _ran,
    {"unit": Input(required=True, about="the name of the service")},
    begin=_ran_begin,
)
UNIT_CONFIGURED = Check(
    "unit-configured",
    "worktop.toml names the unit of the role",
    _configured,
    {"role": Input(required=True), "unit": Input(about="the template it must name; without it any that is installed")},
)
PROGRAM_RETIRED = Check(
    "program-retired",
    "a program of another supervisor is started by it no more",
    _program_retired,
    {"entry": Input(required=True, about="as worktop schedules names it")},
)
