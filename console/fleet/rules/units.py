"""Rules about instances: missing, failed, looping, and start limits that cannot work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from console.fleet.capacity import start_limit
from console.fleet.model import Finding, Fleet, RoleStatus, Unit, Worker, WorkerState
from console.fleet.workers import ALIVE_STATES, run_time
from console.text import ago, grouped, size

_GIVEN_UP: dict[WorkerState, tuple[str, str]] = {
    "start-limit": ("start-limit-hit", "hit its start limit"),
    "memory-killed": ("memory-killed", "was killed by its memory limit"),
    "failed": ("failed", "failed and stays down"),
}


def _quoted(unit: Unit | None) -> str:
    """The last line the service itself wrote, which usually names the reason."""
    words = unit.last_words.strip() if unit else ""
    return f': "{words}"' if words else ""


def _unit_evidence(unit: Unit) -> tuple[str, ...]:
    facts = [
        f"{unit.name}: {unit.active} ({unit.sub}), result {unit.result}, {unit.restarts} restarts",
        f"Restart={unit.restart}, RestartSec={unit.restart_sec:g}, "
        f"StartLimitBurst={unit.start_limit_burst}, StartLimitIntervalSec={unit.start_limit_interval:g}",
    ]
    if unit.memory_max is not None:
        peak = f", highest seen {size(unit.memory_peak)}" if unit.memory_peak is not None else ""
        facts.append(f"MemoryMax={size(unit.memory_max)}{peak}")
    return (*facts, *(f"journal: {line}" for line in unit.last_log[-6:]))


def template_missing(status: RoleStatus, fleet: Fleet) -> Iterable[Finding]:
    """The role's template does not exist."""
    lost = [w for w in status.workers if w.unit is not None and w.unit.load == "not-found" and w.desired]
    if not lost or len(lost) < len([w for w in status.workers if w.desired]):
        return ()
    return (
        Finding(
            code="template-missing",
            severity="error",
            role=status.role.name,
            what=f"{status.role.template} is not installed",
            evidence=tuple(f"{w.unit.name}: LoadState={w.unit.load}" for w in lost[:6] if w.unit),
            remedy=f"Install {status.role.template}, or correct roles.{status.role.name}.unit in worktop.toml.",
            next="install the unit",
        ),
    )


def nothing_runs(status: RoleStatus, fleet: Fleet) -> Iterable[Finding]:
    """Workers are wanted, or jobs wait, and nothing runs."""
    if not _host_known(status, fleet):
        return ()
    waiting = status.queue.waiting.n if status.queue else 0
    trying = any(worker.state in (*ALIVE_STATES, "looping", "restarting") for worker in status.workers)
    if trying or (not status.desired and not waiting):
        return ()
    if not status.role.configured and not waiting:
        return ()
    jobs = f" while {grouped(waiting)} jobs wait" if waiting else ""
    return (
        Finding(
            code="nothing-runs",
            severity="error",
            role=status.role.name,
            what=f"nothing runs{jobs}",
            evidence=(
                f"{status.desired} worker{'s are' if status.desired != 1 else ' is'} wanted, no process matches",
                *(f"{w.name}: {w.state}: {w.why}" for w in status.workers[:6]),
                *((f"oldest waiting job: {ago(status.queue.oldest_waiting)}",) if status.queue and waiting else ()),
            ),
            remedy="Start its unit's instances, after finding out why they are down."
            if status.role.template
            else "Give the role a template unit and start one instance.",
            next="diagnose" if status.role.template else "move to systemd",
        ),
    )


def _host_known(status: RoleStatus, fleet: Fleet) -> bool:
    """Whether the host was asked at all: an unknown is not a zero."""
    states = {source.name: source.state for source in fleet.sources}
    if states.get("processes") not in ("live", "denied"):
        return False
    needs_units = bool(status.role.template)
    matched = bool(status.role.match)
    return states.get("units") == "live" if needs_units else matched


def crash_loops(status: RoleStatus, fleet: Fleet) -> Iterator[Finding]:
    for worker in status.workers:
        unit = worker.unit
        if worker.state != "looping" or unit is None:
            continue
        limit = start_limit(unit, run_time(unit) or 0.0)
        stops = (
            f"its start limit will stop it: {limit.text}"
            if limit.reachable
            else f"its start limit never stops it: {limit.text}"
        )
        yield Finding(
            code="crash-loop",
            severity="error",
            role=status.role.name,
            what=f"{worker.name} crash loop: {worker.why}{_quoted(unit)}",
            evidence=(*_unit_evidence(unit), stops),
            remedy="Mend the cause the journal names; stop the instance meanwhile, so that it does not burn claims.",
            next="diagnose",
        )


def given_up(status: RoleStatus, fleet: Fleet) -> Iterator[Finding]:
    """Instances that failed and that systemd leaves alone now."""
    for worker in status.workers:
        unit = worker.unit
        if unit is None or worker.state not in _GIVEN_UP:
            continue
        code, phrase = _GIVEN_UP[worker.state]
        since = f" {ago(fleet.now - unit.since)} ago" if unit.since else ""
        yield Finding(
            code=code,
            severity="error",
            role=status.role.name,
            what=f"{worker.name} {phrase}{since}; {_detail(worker)}{_quoted(unit)}",
            evidence=(f"{unit.name}: {worker.why}", *_unit_evidence(unit)),
            remedy={
                "start-limit": "systemd does not try again: mend the cause, then reset-failed and start it.",
                "memory-killed": "Compare the peak with MemoryMax: raise it within the budget, or mend the leak.",
            }.get(worker.state, "Read its last journal lines, mend the cause, then start the instance."),
            next="limits" if worker.state == "memory-killed" else "diagnose",
        )


def _detail(worker: Worker) -> str:
    return worker.why.removeprefix("start limit hit; ")


def missing(status: RoleStatus, fleet: Fleet) -> Iterable[Finding]:
    """Desired instances that are stopped or were never started, when others of the role exist."""
    absent = [w for w in status.workers if w.desired and w.state in ("missing", "stopped")]
    if not absent or not status.role.configured:
        return ()
    if all(w.unit is not None and w.unit.load == "not-found" for w in absent) and len(absent) == status.desired:
        return ()  # template-missing says it
    return (
        Finding(
            code="missing-instances",
            severity="warning",
            role=status.role.name,
            what=f"{len(absent)} of {status.desired} instances missing: " + ", ".join(w.name for w in absent[:8]),
            evidence=tuple(f"{w.key}: {w.state}: {w.why}" for w in absent[:20]),
            remedy="Start the missing instances, or lower `instances` in worktop.toml if fewer are wanted.",
            next="scale",
        ),
    )


def start_limit_out_of_reach(status: RoleStatus, fleet: Fleet) -> Iterator[Finding]:
    """Start limits that no crash loop can reach, one finding per role."""
    beyond: list[tuple[Worker, str, float]] = []
    for worker in status.workers:
        unit = worker.unit
        if unit is None or unit.load != "loaded" or unit.restart == "no":
            continue
        limit = start_limit(unit)
        if not limit.reachable:
            beyond.append((worker, limit.text, limit.takes))
    if not beyond or not status.role.configured:
        return
    texts = list(dict.fromkeys(text for _, text, _ in beyond))
    needed = max(takes for _, _, takes in beyond)
    yield Finding(
        code="start-limit-out-of-reach",
        severity="warning",
        role=status.role.name,
        what=f"start limit can never be reached: {texts[0]}",
        evidence=tuple(f"{worker.key}: {text}" for worker, text, _ in beyond[:8]),
        remedy=f"Raise StartLimitIntervalSec above {needed:g} s, or lower RestartSec or StartLimitBurst, "
        "so that a unit that keeps failing stops and is seen.",
        next="limits",
    )


def limit_not_enforced(status: RoleStatus, fleet: Fleet) -> Iterable[Finding]:
    bare = [w for w in status.workers if w.unit is not None and w.unit.memory_max and w.unit.memory_enforced is False]
    if not bare:
        return ()
    return (
        Finding(
            code="memory-limit-not-enforced",
            severity="warning",
            role=status.role.name,
            what=f"MemoryMax of {', '.join(w.name for w in bare[:8])} is set but not enforced by the kernel",
            evidence=tuple(
                f"{w.key}: MemoryMax={size(w.memory_max)}, its cgroup holds no such limit" for w in bare[:8]
            ),
            remedy="Give systemd the memory controller (cgroup v2), then restart the instances.",
            next="limits",
        ),
    )
