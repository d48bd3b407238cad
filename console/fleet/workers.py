"""The workers of one role: desired instances, missing ones, and processes outside their unit, in one list."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from console.fleet.model import Claim, Owner, Process, Role, Unit, Worker, WorkerState, template_of
from console.text import ago, size

LOOPING_PER_MINUTE = 1.5  # restarts a minute that make a loop
LOOPING_RESTARTS = 3  # or so many restarts of which the last is this young:
LOOPING_YOUNG = 60.0  # seconds
NEAR_LIMIT = 0.9  # of MemoryMax: a SIGKILL with this peak was the memory limit (cgroup v1 does not say oom-kill)

_OWNER_WORDS = {"systemd-user": "systemd --user", "session": "login session", "unknown": "nobody known"}

ALIVE_STATES: frozenset[WorkerState] = frozenset({"running", "hung", "stray", "starting", "stopping"})
BROKEN_STATES: frozenset[WorkerState] = frozenset({"looping", "start-limit", "memory-killed", "failed"})


class Seen(NamedTuple):
    """Units and processes as they are looked for. `units` is None when systemd could not be asked."""

    units: dict[str, Unit] | None  # by name
    templates: dict[str, list[str]]  # names of the instances of each template
    in_unit: dict[str, list[Process]]  # by the unit that holds them
    of_role: dict[str, list[Process]]  # by their role


def seen_of(units: Iterable[Unit] | None, processes: Iterable[Process]) -> Seen:
    seen = Seen(None if units is None else {unit.name: unit for unit in units}, {}, {}, {})
    for name in seen.units or ():
        seen.templates.setdefault(template_of(name), []).append(name)
    for process in processes:
        seen.in_unit.setdefault(process.unit, []).append(process)
        seen.of_role.setdefault(process.role, []).append(process)
    return seen


class Made(NamedTuple):
    """A worker and the very objects it was made of: of the same ones it is not made again."""

    unit: Unit
    processes: tuple[Process, ...]
    desired: bool
    worker: Worker


def unit_workers(role: Role, seen: Seen, now: float, made: dict[str, Made] | None = None) -> tuple[Worker, ...]:
    """One worker per desired instance and per further instance that systemd has loaded, in the order of instances.

    Where systemd could not be asked the desired instances are unknown, not missing. `made` holds the role's workers
    of the last time and is kept up to date.
    """
    if seen.units is None:
        return tuple(
            Worker(key=name, role=role.name, name=f"@{instance}", state="unknown", why="systemd has not answered")
            for name, instance in zip(role.desired_units(), role.instances, strict=False)
        )
    by_name = seen.units
    desired = role.desired_units()
    wanted = frozenset(desired)
    extra = sorted(
        (name for name in (seen.templates.get(role.template, ()) if role.template else ()) if name not in wanted),
        key=lambda name: (len(name), name),
    )
    made = {} if made is None else made
    workers = []
    for name in (*desired, *extra):
        unit = by_name.get(name)
        if name not in wanted and (unit is None or not worth_showing(unit)):
            continue
        own, before = tuple(seen.in_unit.get(name, ())), made.get(name)
        if before is None or before.unit is not unit or before.desired != (name in wanted) or before.processes != own:
            unit = unit or Unit(name=name, load="not-loaded")
            worker = _unit_worker(role, unit, name in wanted, own, now)
            made.pop(name, None)
            if _steady(unit):
                made[name] = Made(unit, own, name in wanted, worker)
        else:
            worker = before.worker
        workers.append(worker)
    for name in made.keys() - {worker.key for worker in workers}:
        del made[name]
    return tuple(workers)


def _steady(unit: Unit) -> bool:
    """What is said of it does not change as time goes by."""
    return unit.load == "loaded" and unit.active == "active" and unit.restarts < LOOPING_RESTARTS


def worth_showing(unit: Unit) -> bool:
    """An instance nobody asked for by name: shown unless it is merely loaded, neither running nor enabled."""
    return unit.active != "inactive" or unit.enabled in ("enabled", "enabled-runtime")


def _unit_worker(role: Role, unit: Unit, desired: bool, own: tuple[Process, ...], now: float) -> Worker:
    state, why = unit_state(unit, now)
    rss = sum(process.rss for process in own if process.rss is not None) if own else None
    cpu = [process.cpu for process in own if process.cpu is not None]
    return Worker(
        key=unit.name,
        role=role.name,
        name=f"@{unit.instance}" if unit.instance else unit.name,
        state=state,
        why=why,
        desired=desired,
        unit=unit,
        processes=own,
        owner=own[0].owner if own else Owner(kind="systemd", name=unit.name),
        since=unit.since,
        memory=unit.memory_now if unit.memory_now is not None else rss,
        memory_peak=unit.memory_peak,
        memory_max=unit.memory_max,
        cpu=sum(cpu) if cpu else None,
    )


def unit_state(unit: Unit, now: float) -> tuple[WorkerState, str]:
    """The state of an instance and one clause that says why."""
    if unit.load in ("not-found", "not-loaded"):
        return "missing", "no such unit: its template is not installed" if unit.load == "not-found" else "not loaded"
    if unit.load == "masked":
        return "stopped", "masked"
    if unit.load != "loaded":
        return "failed", f"unit file: {unit.load}"
    if unit.active in ("active", "reloading", "activating") and loops(unit, now):
        return "looping", _restarts(unit) + (f"; {ending(unit)}" if unit.exit_code else "")
    if unit.active in ("active", "reloading"):
        return "running", unit.status_text
    if unit.active == "activating":
        return (
            ("restarting", f"waits for its next start; {ending(unit)}")
            if unit.sub == "auto-restart"
            else ("starting", unit.sub)
        )
    if unit.active == "deactivating":
        return "stopping", unit.sub
    if unit.active == "failed":
        if memory_killed(unit):
            return "memory-killed", ending(unit)
        if unit.start_limit_hit:
            return "start-limit", f"start limit hit; {ending(unit)}"
        return "failed", ending(unit)
    if unit.started is None and not unit.exited:
        return "missing", "never started" + (
            "" if unit.enabled.startswith("enabled") else f" ({unit.enabled or 'not enabled'})"
        )
    return "stopped", f"stopped {ago(now - unit.since)} ago" if unit.since else "stopped"


def loops(unit: Unit, now: float) -> bool:
    """It is restarted again and again, also where it has not been watched long enough for a rate."""
    if unit.restarts == 0:  # starts by hand are no loop: they set the counter back
        return False
    if unit.restarts_per_minute is not None and unit.restarts_per_minute >= LOOPING_PER_MINUTE:
        return True
    if unit.restarts < LOOPING_RESTARTS:
        return False
    if unit.sub == "auto-restart":
        return True
    last_start = unit.started if unit.started is not None else unit.since
    return last_start is not None and now - last_start < LOOPING_YOUNG


def _restarts(unit: Unit) -> str:
    rate = f", {unit.restarts_per_minute:.0f} a minute" if unit.restarts_per_minute else ""
    return f"{unit.restarts} restarts{rate}"


def run_time(unit: Unit) -> float | None:
    """How long the main process lived the last time, seconds; None when systemd has not seen it end."""
    if unit.started is None or unit.exited is None or unit.exited < unit.started:
        return None
    return unit.exited - unit.started


def memory_killed(unit: Unit) -> bool:
    """Whether the last end was the memory limit.

    cgroup v2: Result=oom-kill. On v1 systemd does not learn of it: the process was killed by SIGKILL, nobody's
    stop timed out (that is Result=timeout), and its peak was at the limit or is not known.
    """
    if unit.result == "oom-kill":
        return True
    killed = unit.result == "signal" and unit.exit_code in ("killed", "dumped") and unit.exit_status == signal.SIGKILL
    if not killed or unit.memory_max is None:
        return False
    return unit.memory_peak is None or unit.memory_peak >= NEAR_LIMIT * unit.memory_max


def ending(unit: Unit) -> str:
    """How the main process ended last, as a clause: "exit status 1 after 0.3 s"."""
    lived = run_time(unit)
    after = f" after {ago(lived)}" if lived is not None else ""
    if memory_killed(unit):
        if unit.result == "oom-kill" or unit.memory_peak is not None:
            peak = f", peak {size(unit.memory_peak)}" if unit.memory_peak is not None else ""
            return f"killed by its memory limit {size(unit.memory_max)}{peak}{after}"
        return f"killed by SIGKILL{after}, most likely its memory limit {size(unit.memory_max)} (no peak was seen)"
    if unit.exit_code == "exited":
        return f"exit status {unit.exit_status}{after}"
    if unit.exit_code in ("killed", "dumped"):
        try:
            name = signal.Signals(unit.exit_status).name
        except ValueError:
            name = f"signal {unit.exit_status}"
        return f"{'dumped core by' if unit.exit_code == 'dumped' else 'killed by'} {name}{after}"
    return f"result {unit.result}"


def stray_workers(role: Role, processes: Iterable[Process], now: float) -> tuple[Worker, ...]:
    """The role's processes that run outside its units: one worker per main process, oldest first.

    For a role without a unit this is simply where its workers run, and they count as running; for a role with one,
    each is a second way of starting.
    """
    outside = [process for process in processes if process.role == role.name and not _in_own_unit(role, process)]
    mains = sorted((process for process in outside if process.main), key=lambda process: process.ident.start)
    return tuple(_stray(role, main, outside, now) for main in mains)


def _in_own_unit(role: Role, process: Process) -> bool:
    return bool(role.template) and template_of(process.unit) == role.template if process.unit else False


def _stray(role: Role, main: Process, outside: list[Process], now: float) -> Worker:
    helpers = [p for p in outside if not p.main and any(a.pid == main.ident.pid for a in p.ancestors)]
    tree = (main, *helpers)
    rss = [process.rss for process in tree if process.rss is not None]
    return Worker(
        key=f"{main.ident.pid}:{main.ident.start}",
        role=role.name,
        name=f"pid {main.ident.pid}",
        state="stray" if role.template else "running",
        why=main.owner.detail or main.owner.name or main.owner.kind,
        desired=False,
        processes=tree,
        owner=main.owner,
        since=main.started,
        memory=sum(rss) if rss else None,
        cpu=main.cpu,
    )


def owner_word(owner: Owner) -> str:
    """How an owner is named in a column: its mechanism in one word."""
    return _OWNER_WORDS.get(owner.kind, owner.kind)


def with_claims(worker: Worker, claims: Iterable[Claim], no_progress: bool) -> Worker:
    """The worker with the jobs it holds; hung when its job's holder is hung, or nothing of its role progresses.

    A worker that renews the lease of its job is slow, not hung, however long the others have waited.
    """
    own = [claim for claim in claims if _holds(worker, claim)]
    if not own and not worker.jobs and not no_progress:
        return worker
    jobs = tuple(claim.job.id for claim in own)
    alive = worker.state in ("running", "stray")
    hung = [claim for claim in own if claim.verdict == "HUNG"]
    healthy = any(claim.verdict in ("ALIVE", "ALIVE_SLOW") for claim in own)
    if alive and hung:
        why = f"job {hung[0].job.id}: {'; '.join(hung[0].evidence[1:])}"
        return msgspec.structs.replace(worker, jobs=jobs, state="hung", why=why)
    if alive and no_progress and not healthy:
        return msgspec.structs.replace(worker, jobs=jobs, state="hung", why="alive, but jobs wait and none finishes")
    return msgspec.structs.replace(worker, jobs=jobs)


def _holds(worker: Worker, claim: Claim) -> bool:
    if claim.verdict == "DEAD":
        return False
    holder = claim.job.holder
    if holder is None:
        return False
    pids = {process.ident.pid for process in worker.processes}
    if worker.unit is not None and worker.unit.main_pid:
        pids.add(worker.unit.main_pid)
    return claim.worker == worker.key or (claim.verdict != "UNKNOWN" and holder.pid in pids)
