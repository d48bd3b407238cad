"""From old workers to units: one new one is tried, then one is started for each old one that is drained."""

from __future__ import annotations

import contextlib

import msgspec

from console.errors import HostError
from console.fleet.choices import is_up, to_start
from console.fleet.model import RoleStatus, Worker
from console.playbook.actions.workers import legacy
from console.playbook.kinds import Action, Given, Inputs
from console.playbook.model import Settings, Shown
from console.playbook.settings import Input

_ROLE = Input(required=True, about="the role; that of the run when it is not named")
_TIMEOUT = Input(kind="span", about="how long an old worker may take to finish what it holds; 90 s")
_EXCLUSIVE = Input(kind="truth", about="old and new must not run side by side: the old ones end first")


async def _canary(given: Given, inputs: Inputs) -> Shown:
    """One instance with the unit as it is installed now. One that runs since before is restarted."""
    status = await given.status(inputs.text("role"))
    up = [worker for worker in status.workers if is_up(worker)]
    if inputs.truth("exclusive") and (outside := legacy(status.workers)):
        told = "1 old one ends" if len(outside) == 1 else f"{len(outside)} old ones end"
        return await _drain_one(given, inputs, outside, (f"stop, then start: {told} first",))
    old = await _older(given, up)
    if old:
        plan = await given.actions.plan_units("restart", units=(old[0].key,))
        return Shown(
            plan=plan,
            facts=(f"{old[0].key} runs what its unit said before: it is restarted, the first with the new one",),
            found={"canary": (old[0].key,), "canary_ran": True},
        )
    if up:
        return Shown(
            nothing=f"{up[0].key} runs its unit as it is installed, and is the first one",
            found={"canary": (up[0].key,), "canary_ran": given.values.get("canary_ran", True)},
        )
    chosen, lacking = to_start(status.role, status.workers, 1)
    if not chosen:
        return Shown(refused=(lacking,))
    plan = await given.actions.plan_units("start", units=(chosen[0].unit,))
    return Shown(plan=plan, found={"canary": (chosen[0].unit,), "canary_ran": False})


async def _canary_back(given: Given, inputs: Inputs) -> Shown:
    """One that this run has started is drained; one that ran before goes on."""
    canary = str(next(iter(_texts(given, "canary")), ""))
    worker = _named(await given.status(inputs.text("role")), canary)
    if not canary or worker is None or not is_up(worker):
        return Shown(nothing="it does not run")
    if given.values.get("canary_ran", True) is True:
        return Shown(nothing=f"{canary} ran before, and goes on")
    return Shown(plan=await given.actions.plan_drain(units=(canary,)))


async def _swap(given: Given, inputs: Inputs) -> Shown:
    """The next of: start one, drain one. As many are started as have ended, until enough run; then the rest end.

    What has been done is counted from what is there now against what was there at first, so that it goes on rightly
    after a crash, and when an old worker has ended by itself.
    """
    role, count = inputs.text("role"), inputs.number("count")
    status = await given.status(role)
    up = sum(is_up(worker) for worker in status.workers)
    outside = legacy(status.workers)
    first_up = int(str(given.values.get("swap_up", up)))
    first_outside = max(int(str(given.values.get("swap_outside", len(outside)))), len(outside))
    found: Settings = {"swap_up": first_up, "swap_outside": first_outside}
    if not outside:
        return Shown(nothing=f"no worker of {role} runs outside of its units", found=found)
    facts = (
        f"{len(outside)} old worker{'s' if len(outside) != 1 else ''} and {up} in units now; {count} in units, and no "
        "old one, when it is over",
    )
    ended, started = first_outside - len(outside), up - first_up
    if up < count and started <= ended and not inputs.truth("exclusive"):
        chosen, lacking = to_start(status.role, status.workers, 1)
        if not chosen:
            return Shown(refused=(lacking,))
        plan = await given.actions.plan_units("start", units=(chosen[0].unit,))
        risk = "medium" if plan.risk == "low" else plan.risk  # what is agreed to with it is that old ones are drained
        return Shown(plan=msgspec.structs.replace(plan, risk=risk), more=True, facts=facts, found=found)
    shown = await _drain_one(given, inputs, outside, facts)
    return msgspec.structs.replace(shown, found=found)


async def _drain_one(given: Given, inputs: Inputs, outside: tuple[Worker, ...], facts: tuple[str, ...]) -> Shown:
    """Of one that holds no job, where there is one; of those the oldest."""
    one = min(outside, key=lambda worker: (len(worker.jobs), worker.since or 0.0))
    timeout = inputs.span("timeout") if inputs.has("timeout") else None
    plan = await given.actions.plan_drain(processes=(one.processes[0].ident,), timeout=timeout)
    return Shown(plan=plan, more=True, facts=facts)


async def _renew(given: Given, inputs: Inputs) -> Shown:
    """Instances that were started before their unit's file was changed, one after another."""
    status = await given.status(inputs.text("role"))
    old = await _older(given, [worker for worker in status.workers if is_up(worker)])
    if not old:
        return Shown(nothing="every instance runs its unit as it is installed")
    return Shown(plan=await given.actions.plan_units("restart", units=tuple(worker.key for worker in old)))


async def _older(given: Given, up: list[Worker]) -> list[Worker]:
    """Those that run another text than the file of their unit has now."""
    changed: dict[str, float] = {}
    for path in {worker.unit.fragment for worker in up if worker.unit is not None}:
        with contextlib.suppress(HostError):  # no folder of worktop's: nobody has changed it by a playbook
            changed[path] = (await given.host.read_file(path)).changed or 0.0
    return [
        worker
        for worker in up
        if worker.unit is not None
        and worker.unit.started is not None
        and worker.unit.started < changed.get(worker.unit.fragment, 0.0)
    ]


def _named(status: RoleStatus, key: str) -> Worker | None:
    return next((worker for worker in status.workers if worker.key == key), None)


def _texts(given: Given, name: str) -> tuple[str, ...]:
    found = given.values.get(name, ())
    return found if isinstance(found, tuple) else (str(found),)


CANARY = Action(
    "canary",
    "one instance runs with the unit as it is installed; of an exclusive role after the old workers have ended",
    _canary,
    {"role": _ROLE, "exclusive": _EXCLUSIVE, "timeout": _TIMEOUT},
    finds=("canary", "canary_ran"),
    back=_canary_back,
)
SWAP = Action(
    "swap",
    "one is started, one old one is drained, until no old one is left",
    _swap,
    {
        "role": _ROLE,
        "count": Input(kind="number", required=True, about="how many should run in units"),
        "exclusive": _EXCLUSIVE,
        "timeout": _TIMEOUT,
    },
    finds=("swap_up", "swap_outside"),
)
RENEW = Action(
    "renew",
    "instances that were started before their unit's file was changed are restarted, one after another",
    _renew,
    {"role": _ROLE},
)
