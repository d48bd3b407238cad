"""Checks on the workers of a role: who owns them, how many run, whether they are steady."""

from __future__ import annotations

from console.actions.scale import budget
from console.actions.scene import room
from console.fleet.choices import is_up
from console.fleet.model import Worker
from console.playbook.actions.unit_files import installed
from console.playbook.actions.workers import legacy
from console.playbook.kinds import Check, Given, Inputs
from console.playbook.model import Begun, Seen, Settings
from console.playbook.settings import Input
from console.playbook.standing import lives, owner_name

_ROLE = {"role": Input(required=True, about="the role; that of the run when it is not named")}
_NEAR = 0.95  # of MemoryMax: a worker there is about to be killed


async def _one_owner(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    role = inputs.text("role")
    alive = [worker for worker in (await given.status(role)).workers if lives(worker)]
    owners = sorted({owner_name(worker) for worker in alive})
    if len(owners) == 1:
        return Seen(state="holds", text=f"{role} has one owner: {owners[0]}")
    if not owners:
        return Seen(state="not", text=f"nobody runs {role}")
    return Seen(state="not", text=f"{role} has {len(owners)} owners: {', '.join(owners)}", evidence=_named(alive))


async def _running(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    role = inputs.text("role")
    workers = (await given.status(role)).workers
    number = sum(is_up(worker) and worker.state == "running" for worker in workers)
    text = f"{number} of {role} run{'s' if number == 1 else ''} in units"
    wanted = [
        (number == inputs.number("count"), f"{inputs.number('count')} should") if inputs.has("count") else None,
        (number >= inputs.number("at_least"), f"at least {inputs.number('at_least')} should")
        if inputs.has("at_least")
        else None,
        (number <= inputs.number("at_most"), f"at most {inputs.number('at_most')} should")
        if inputs.has("at_most")
        else None,
    ]
    lacking = [said for each in wanted if each is not None for right, said in (each,) if not right]
    if lacking:
        return Seen(state="not", text=f"{text}; {', '.join(lacking)}", evidence=_named(workers))
    return Seen(state="holds", text=text)


async def _no_strays(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    role = inputs.text("role")
    outside = legacy((await given.status(role)).workers)
    if not outside:
        return Seen(state="holds", text=f"no worker of {role} runs outside of its units")
    return Seen(state="not", text=f"{len(outside)} of {role} run outside of its units", evidence=_named(outside))


async def _unit_active(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    wanted = inputs.texts("units")
    units = {unit.name: unit for unit in (await given.scene()).facts.units.value or ()}
    wrong = [
        f"{name} is {units[name].active} ({units[name].sub})" if name in units else f"{name} is not loaded"
        for name in wanted
        if name not in units or units[name].active != "active"
    ]
    if wrong:
        return Seen(state="not", text="; ".join(wrong))
    return Seen(state="holds", text=f"{', '.join(wanted)} {'is' if len(wanted) == 1 else 'are'} active")


async def _steady_begin(given: Given, inputs: Inputs) -> Begun:
    """How often each has been restarted so far."""
    memory: Settings = {}
    for worker in (await given.status(inputs.text("role"))).workers:
        if worker.unit is not None and is_up(worker):
            memory[worker.key] = worker.unit.restarts
    return Begun(seconds=inputs.span("for"), memory=memory)


async def _steady(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    workers = {worker.key: worker for worker in (await given.status(inputs.text("role"))).workers}
    if not begun.memory:
        return Seen(state="not", text=f"no unit of {inputs.text('role')} runs")
    wrong: list[str] = []
    for key, restarts in begun.memory.items():
        worker = workers.get(key)
        unit = worker.unit if worker is not None else None
        if worker is None or unit is None or worker.state != "running":
            wrong.append(f"{key} is {worker.state if worker is not None else 'gone'}{_why(worker)}")
        elif unit.restarts > int(str(restarts)):
            wrong.append(f"{key} was restarted {unit.restarts - int(str(restarts))} times{_why(worker)}")
        elif unit.memory_max and (unit.memory_now or 0) > _NEAR * unit.memory_max:
            wrong.append(f"{key} has almost used up its memory limit")
    if wrong:
        return Seen(state="not", text="; ".join(wrong))
    number = len(begun.memory)
    who = "1 runs without a restart, below its" if number == 1 else f"{number} run without a restart, below their"
    return Seen(state="holds", text=f"{who} limits")


async def _memory_fits(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    status = await given.status(inputs.text("role"))
    sums = budget(
        given.host, given.config.limits, status, inputs.number("count"), await room(given.reader, status.role)
    )
    over = [need.text for need in sums.over]
    if over:
        return Seen(state="not", text=f"over the budget: {'; '.join(over)}")
    if sums.unknown:
        return Seen(
            state="holds", text="what is known fits", evidence=tuple(f"not known: {each}" for each in sums.unknown)
        )
    return Seen(state="holds", text="it fits", evidence=tuple(need.text for need in sums.needs))


async def _unit_installed(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    unit = inputs.text("unit") or (await given.status(inputs.text("role"))).role.template
    if unit and await installed(given, unit):
        return Seen(state="holds", text=f"{unit} is installed")
    return Seen(state="not", text=f"{unit or 'the unit'} is not installed")


def _named(workers: list[Worker] | tuple[Worker, ...]) -> tuple[str, ...]:
    return tuple(f"{worker.name}: {worker.state}, {owner_name(worker)}" for worker in workers if lives(worker))


def _why(worker: Worker | None) -> str:
    return f" ({worker.why})" if worker is not None and worker.why else ""


_COUNT = Input(kind="number")
ONE_OWNER = Check("one-owner", "exactly one owner runs the role", _one_owner, _ROLE)
RUNNING = Check(
    "running",
    "so many workers run in units",
    _running,
    {**_ROLE, "count": _COUNT, "at_least": _COUNT, "at_most": _COUNT},
)
NO_STRAYS = Check("no-strays", "no worker runs outside of the role's units", _no_strays, _ROLE)
UNIT_ACTIVE = Check("unit-active", "units are active", _unit_active, {"units": Input(kind="texts", required=True)})
STEADY = Check("steady", "no unit is restarted, and each stays below its limits", _steady, _ROLE, begin=_steady_begin)
MEMORY_FITS = Check(
    "memory-fits",
    "so many workers have room: memory, connections, processes",
    _memory_fits,
    {**_ROLE, "count": Input(kind="number", required=True)},
)
UNIT_INSTALLED = Check("unit-installed", "systemd knows the unit", _unit_installed, {**_ROLE, "unit": Input()})
