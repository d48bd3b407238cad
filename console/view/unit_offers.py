"""Pure: what can be asked for with workers as units and processes: restart, drain, scale, limits and their like."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import cast, get_args

import msgspec

from console.fleet.model import Ident, RoleStatus, Worker
from console.fleet.plan import Suggestion, UnitVerb, Verb
from console.fleet.workers import ALIVE_STATES
from console.view.cells import safe
from console.view.offers import Offer, Request, choice_offer

_NAMED = 40  # columns of a unit's name
_RUNS = ("active", "activating", "reloading")
_UNIT_VERBS: tuple[UnitVerb, ...] = get_args(UnitVerb)


def unit_offers(workers: Sequence[Worker], status: RoleStatus | None) -> tuple[Offer, ...]:
    """What can be done with these workers, and with their role where it is one (`status`)."""
    units = tuple(worker.unit.name for worker in workers if worker.unit is not None)
    strays = tuple(
        process.ident for worker in workers if worker.unit is None for process in worker.processes if process.main
    )
    role = status.role.name if status is not None else ""
    offers: list[Offer] = []
    if units:
        offers += _of_units(workers, units, role)
    if units or strays:
        offers.insert(1 if units else 0, _drain(workers, units, strays, role))
    return (*offers, *_of_role(status))


def role_unit_offers(status: RoleStatus | None) -> tuple[Offer, ...]:
    """What can be done with all workers of a role."""
    if status is None:
        return ()
    role, name = status.role.name, safe(status.role.name, 24)
    if not status.role.template:
        return ()
    running = [worker for worker in status.workers if _runs(worker)]
    nothing = "" if running else f"no worker of {name} runs"
    return (
        _offer("restart", f"restart {name}, rolling", "one after another, each healthy first", nothing, role=role),
        _offer("drain", f"drain {name}", "asked to stop; the jobs they hold are waited for", nothing, role=role),
        *_of_role(status),
    )


def suggestion_offer(number: int, suggestion: Suggestion) -> Offer:
    """What an outcome proposes to do next."""
    title = safe(suggestion.title, 100)
    return Offer(
        id=f"next-{number}",
        label=title,
        help=safe(suggestion.command, 200),
        request=Request(
            verb=suggestion.verb,
            title=title,
            role=suggestion.role,
            rows=suggestion.rows,
            units=suggestion.units,
            plan=suggestion.plan,
        ),
    )


def command_offer(command: str, role: str) -> Offer | None:
    """The offer that is the same as a command that a diagnosis names; None when none is."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    words = [word for word in words if word != "--user"]
    if len(words) == 3 and words[0] in ("systemctl", "worktop") and words[1] in (*_UNIT_VERBS, "drain"):
        verb = cast("Verb", words[1])
        if words[2].endswith(".service"):
            return _offer(verb, f"{verb} {safe(words[2], _NAMED)}", safe(command, 80), role=role, units=(words[2],))
        return None
    if words[:1] != ["worktop"] or len(words) < 3:
        return None
    if words[1] == "limits" and len(words) == 3:
        return _offer("limits", f"limits of {safe(words[2], 24)}", safe(command, 80), role=words[2])
    if words[1] in ("pause", "resume") and len(words) == 3:
        switch: Verb = "pause" if words[1] == "pause" else "resume"
        return _offer(switch, f"{switch} {safe(words[2], 24)}", safe(command, 80), role=words[2])
    return choice_offer(command)


# ---------------------------------------------------------------------------------------------------------------------


def _of_units(workers: Sequence[Worker], units: tuple[str, ...], role: str) -> list[Offer]:
    what = _what(workers, units)
    found = [worker.unit for worker in workers if worker.unit is not None]
    one = len(units) == 1
    running = [unit for unit in found if unit.active in _RUNS]
    runs = f"{'it runs' if one else 'all of them run'} already" if len(running) == len(found) else ""
    down = f"{'it does' if one else 'none of them does'} not run" if not running else ""
    failed = any(unit.active == "failed" for unit in found)
    off = all(unit.enabled in ("disabled", "") for unit in found)
    on = all(unit.enabled == "enabled" for unit in found)
    how = "started again by systemd" if one else "one after another, each healthy first"
    return [
        _offer("restart", f"restart {what}", how, role=role, units=units),
        _offer("start", f"start {what}", "also after it failed", runs, role=role, units=units),
        _offer("stop", f"stop {what}", "killed at its stop timeout, with what it holds", down, role=role, units=units),
        _offer("kill", f"kill {what}", "asks for the signal", down, role=role, units=units, asks="signal"),
        _offer(
            "reset-failed", f"reset-failed {what}", "forgets its failures and its start limit",
            "" if failed else "nothing of it failed", role=role, units=units,
        ),
        _offer("enable", f"enable {what}", "started at boot", "it is already" if on else "", role=role, units=units),
        _offer(
            "disable", f"disable {what}", "not started at boot", "it is not now" if off else "", role=role, units=units
        ),
    ]  # fmt: skip


def _drain(workers: Sequence[Worker], units: tuple[str, ...], strays: tuple[Ident, ...], role: str) -> Offer:
    running = any(_runs(worker) for worker in workers)
    return _offer(
        "drain",
        f"drain {_what(workers, units)}",
        "asked to stop; the jobs it holds are waited for",
        "" if running else "nothing of it runs",
        role=role,
        units=units,
        processes=strays,
    )


def _of_role(status: RoleStatus | None) -> tuple[Offer, ...]:
    if status is None or not status.role.template:
        return ()
    role, name = status.role.name, safe(status.role.name, 24)
    running = sum(_runs(worker) for worker in status.workers)
    most = f", at most {status.role.budget}" if status.role.budget is not None else ""
    now = f"{running} run now, {len(status.role.instances)} desired{most}"
    scale = _offer("scale", f"scale {name}", f"asks for the number; {now}", role=role, asks="count", note=now)
    return (
        scale,
        _offer("limits", f"limits of {name}", "proposed from what was measured, as a drop-in", role=role),
        msgspec.structs.replace(
            _offer("limits", f"set limits of {name}", "asks for them: MemoryMax=512M", role=role, asks="settings"),
            id="set-limits",
        ),
    )


def _offer(id: Verb, title: str, help: str, lacking: str = "", **options: object) -> Offer:
    request: Request = msgspec.structs.replace(Request(verb=id, title=title), **options)
    return Offer(id=id, label=title, help=help, request=request, lacking=lacking)


def _what(workers: Sequence[Worker], units: Sequence[str]) -> str:
    """ "mail-worker@3.service", "3 workers"; safe."""
    if len(workers) > 1:
        return f"{len(workers)} workers"
    if units:
        return safe(units[0].removesuffix(".service"), _NAMED)
    return safe(workers[0].name, _NAMED) if workers else ""


def _runs(worker: Worker) -> bool:
    if worker.unit is not None:
        return worker.unit.active in _RUNS
    return worker.state in ALIVE_STATES
