"""The question who owns a worker, and who else starts workers of its role, or would."""

from __future__ import annotations

from typing import NamedTuple

from console.fleet.diagnosis.model import Case, Examined, Starter, StepState
from console.fleet.model import Owner, RoleStatus, template_of
from console.fleet.rules.ownership import lines_of, retired, where
from console.fleet.workers import ALIVE_STATES

_OFF = frozenset({"disabled", "masked", "masked-runtime", "static", "indirect", ""})
_LISTED = 6


class Parallel(NamedTuple):
    """One further way in which workers of the role are started."""

    name: str  # "the crontab of deploy, line 4"
    evidence: str
    certain: bool  # it does start them now; False: it would at the next boot, or when somebody starts it
    stop: str = ""  # how it is ended, an imperative clause
    retired: bool = False  # it starts no more of them, but some still run


def of_its_unit(status: RoleStatus, owner: Owner) -> bool:
    """The owner is a unit of the role's own template."""
    by_unit = owner.kind in ("systemd", "systemd-user") and bool(status.role.template)
    return by_unit and template_of(owner.name) == status.role.template


def owner_name(owner: Owner) -> str:
    """ "the crontab of deploy, line 4", "supervisord", "a login session"."""
    if owner.kind == "systemd":
        return owner.name or "systemd"
    if owner.kind == "cron":
        told = owner.detail or (f"crontab of {owner.name}" if owner.name else "a crontab")
        return f"the {told}" if told.startswith("crontab") else told
    if owner.kind == "unknown":
        return "nobody that is known"
    if owner.kind == "session":
        return f"a login session{f' of {owner.name}' if owner.name else ''}"
    if owner.kind == "systemd-user":
        return f"{owner.name} of a {owner.detail or 'user manager'}"
    return f"{owner.kind} {owner.name}".strip()


def parallels(case: Case) -> tuple[Parallel, ...]:
    """Every way but the role's own unit in which its workers are started: by processes that run, crontab lines, other
    units, timers, supervisors. Without a unit, the worker's own owner is its way, and the others are further ones."""
    status, own = case.status, case.worker.owner
    found: dict[str, Parallel] = {}
    for worker in status.workers:
        if worker.state not in ALIVE_STATES or worker.key == case.worker.key:
            continue
        owner = worker.owner
        if of_its_unit(status, owner) or owner.kind == "unknown" or _same(owner, own):
            continue
        name = owner_name(owner)
        if name not in found:
            evidence = f"{worker.name} was started by {name}: {'; '.join(owner.evidence[:2])}"
            gone = retired(owner, status, case.fleet)
            found[name] = Parallel(name, evidence, not gone, _ends(owner.kind), gone)
    for line in lines_of(status, case.fleet):
        if "guard-matches-itself" in line.faults or "file-ignored" in line.faults:
            continue
        place = where(line)
        name = f"the {place}" if place.startswith("crontab") else place
        if own.kind == "cron" and (own.detail or "") == place:
            continue
        certain = line.kind != "at-boot"
        found[name] = Parallel(name, f"{place}: {line.schedule} {line.command}", certain, "disable that line")
    for starter in case.looked.starters if case.looked is not None else ():
        if own.kind == starter.kind or (own.kind in ("systemd", "systemd-user") and own.name == starter.name):
            continue
        found.setdefault(_starter_name(starter), _starter(starter))
    triggered = case.properties.get("TriggeredBy", "")
    for name in triggered.split():
        found.setdefault(name, Parallel(name, f"TriggeredBy={triggered}", True, f"systemctl disable --now {name}"))
    return tuple(sorted(found.values(), key=lambda each: not each.certain))


def _same(one: Owner, other: Owner) -> bool:
    return (one.kind, one.name, one.detail) == (other.kind, other.name, other.detail)


def _ends(kind: str) -> str:
    return {
        "cron": "disable its line in the crontab",
        "supervisord": "supervisorctl stop it, and remove its program section",
        "pm2": "pm2 delete it, then pm2 save",
        "forever": "forever stop it",
        "runit": "sv down it, and remove its service folder's link",
        "container": "stop it through its container runtime",
        "systemd-user": "systemctl --user disable --now it",
    }.get(kind, "find out who started it")


def _starter_name(starter: Starter) -> str:
    return starter.name if starter.kind in ("unit", "timer") else f"{starter.kind} ({starter.name})"


def _starter(starter: Starter) -> Parallel:
    if starter.kind in ("unit", "timer"):
        certain = starter.active in ("active", "activating", "reloading") or starter.enabled not in _OFF
        state = ", ".join(each for each in (starter.active, starter.enabled) if each)
        stop = f"systemctl disable --now {starter.name}"
        return Parallel(starter.name, f"{starter.path} ({state or 'state not known'}): {starter.text}", certain, stop)
    return Parallel(
        _starter_name(starter), f"{starter.path}: {starter.text}", starter.kind != "init script", _ends(starter.kind)
    )


def owner(case: Case) -> Examined:
    own, looked = case.worker.owner, case.looked
    others = parallels(case)
    unread = [
        source.problem.line()
        for source in case.fleet.sources
        if source.name == "schedules" and source.problem is not None and source.state in ("denied", "down")
    ]
    evidence = [*own.evidence[:4], *(each.evidence for each in others[:_LISTED])]
    evidence += [f"crontabs: {line}" for line in unread]
    if looked is not None and looked.starters_problem:
        evidence.append(f"other supervisors: {looked.starters_problem}")
    name = f"{owner_name(own) if own.kind != 'unknown' else 'nobody that is known'} owns it"
    state, rest = _and_others(case, others, bool(unread))
    return Examined(
        name="owner",
        asked="Who owns it, and would anybody else start a second one?",
        state=state,
        answer=name + rest,
        evidence=tuple(evidence),
    )


def _and_others(case: Case, others: tuple[Parallel, ...], unread: bool) -> tuple[StepState, str]:
    """What is to be said after who owns it."""
    role = case.status.role
    certain = [each.name for each in others if each.certain]
    later = [each.name for each in others if not each.certain and not each.retired]
    if case.worker.unit is None and role.template:
        return "fault", f", not {role.template}"
    if certain:
        return "fault", f", and {_listed(certain)} start{'s' if len(certain) == 1 else ''} workers of {role.name} too"
    if later:
        return "warning", f"; {_listed(later)} would start another at the next boot or by hand"
    if others:
        gone = _listed([each.name for each in others])
        return "warning", f"; {gone} starts none any more, but some that it started still run"
    if case.worker.unit is None and case.worker.owner.kind in ("unknown", "session"):
        return "warning", ": when it ends nobody starts it again"
    if unread:
        return "unknown", "; whether a crontab starts another is not known"
    searched = "" if case.looked is not None else "; units, timers and other supervisors were not searched"
    return "ok", f", and nobody else starts its role{searched}"


def _listed(names: list[str]) -> str:
    shown = names[:3]
    more = [f"{len(names) - 3} more"] if len(names) > 3 else []
    parts = [*shown, *more]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
