"""Workers are started, stopped, restarted, brought to a number, drained; jobs of dead ones are reclaimed."""

from __future__ import annotations

from typing import cast, get_args

from console.fleet.model import Verdict, Worker
from console.fleet.plan import UnitVerb
from console.playbook.kinds import Action, Given, Inputs
from console.playbook.model import Shown
from console.playbook.settings import Input

_ROLE = Input(required=True, about="the role; that of the run when it is not named")
_UNITS = Input(kind="texts", about="names of units; without them those of the role")
_VERDICTS: dict[str, Verdict] = {"unknown": "UNKNOWN", "hung": "HUNG", "slow": "ALIVE_SLOW"}


async def _units(given: Given, inputs: Inputs) -> Shown:
    verb = cast("UnitVerb", inputs.text("verb"))
    plan = await given.actions.plan_units(
        verb, units=inputs.texts("units"), role=inputs.text("role"), signal=inputs.text("signal", "TERM")
    )
    return Shown(plan=plan)


async def _scale(given: Given, inputs: Inputs) -> Shown:
    watch = inputs.span("watch") if inputs.has("watch") else None
    plan = await given.actions.plan_scale(
        inputs.text("role"), inputs.number("count"), watch=watch, at_boot=inputs.truth("at_boot", True)
    )
    return Shown(plan=plan)


async def _drain(given: Given, inputs: Inputs) -> Shown:
    timeout = inputs.span("timeout") if inputs.has("timeout") else None
    if not inputs.truth("legacy"):
        units = inputs.texts("units")
        return Shown(
            plan=await given.actions.plan_drain(units=units, role="" if units else inputs.text("role"), timeout=timeout)
        )
    outside = legacy((await given.status(inputs.text("role"))).workers)
    if not outside:
        return Shown(nothing="no worker of it runs outside of its units")
    idents = tuple(worker.processes[0].ident for worker in outside)
    return Shown(plan=await given.actions.plan_drain(processes=idents, timeout=timeout))


def legacy(workers: tuple[Worker, ...]) -> tuple[Worker, ...]:
    """Those that no unit of the role runs."""
    return tuple(worker for worker in workers if worker.unit is None and worker.processes)


async def _reclaim(given: Given, inputs: Inputs) -> Shown:
    verdicts = tuple(_VERDICTS[name] for name in inputs.texts("verdicts") if name in _VERDICTS)
    return Shown(plan=await given.actions.plan_jobs("reclaim", role=inputs.text("role"), verdicts=verdicts))


async def _limits(given: Given, inputs: Inputs) -> Shown:
    pairs = [text.partition("=") for text in inputs.texts("set")]
    settings = {name: value for name, _, value in pairs} or None
    return Shown(plan=await given.actions.plan_limits(inputs.text("role"), settings))


UNITS = Action(
    "units",
    "units are started, stopped, restarted one after another, enabled, …",
    _units,
    {"verb": Input(required=True, choices=get_args(UnitVerb)), "units": _UNITS, "role": _ROLE, "signal": Input()},
)
SCALE = Action(
    "scale",
    "the role is brought to so many workers, one at a time",
    _scale,
    {
        "role": _ROLE,
        "count": Input(kind="number", required=True),
        "watch": Input(kind="span"),
        "at_boot": Input(kind="truth"),
    },
)
DRAIN = Action(
    "drain",
    "workers finish what they hold, and end",
    _drain,
    {
        "role": _ROLE,
        "units": _UNITS,
        "legacy": Input(kind="truth", about="only those that no unit runs"),
        "timeout": Input(kind="span"),
    },
)
RECLAIM = Action(
    "reclaim",
    "jobs of dead workers wait again",
    _reclaim,
    {"role": _ROLE, "verdicts": Input(kind="texts", about="unknown, hung, slow: also of holders like that")},
)
LIMITS = Action(
    "limits",
    "limits of the role's units are set, those that what was measured speaks for, or the named ones",
    _limits,
    {"role": _ROLE, "set": Input(kind="texts", about='"MemoryMax=512M", …')},
)
