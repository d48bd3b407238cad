"""Rules about who starts a role: two owners, dead watchdogs, launchers that pile up, processes outside their unit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from console.fleet.model import CronLine, Finding, Fleet, Owner, RoleStatus, Worker
from console.fleet.workers import ALIVE_STATES
from console.text import ago

RETIRE = "retire the launcher"
_USE_A_UNIT = (
    "Move the role to a unit with Restart=on-failure; systemd knows its own process without looking for names."
)
_ONE_OWNER = (
    "Keep one way of starting: one unit instance per worker; disable the other one, then drain what it started."
)


def lines_of(status: RoleStatus, fleet: Fleet) -> tuple[CronLine, ...]:
    return tuple(line for line in fleet.schedules if status.role.name in line.roles)


def retired(owner: Owner, status: RoleStatus, fleet: Fleet) -> bool:
    """Cron started a worker, but no line of that crontab, which was read, starts the role any more."""
    if owner.kind != "cron" or lines_of(status, fleet):
        return False
    source = next((source for source in fleet.sources if source.name == "schedules"), None)
    read = source is not None and source.state == "live" and source.problem is None
    return read or any(line.owner == owner.name for line in fleet.schedules)


def where(line: CronLine) -> str:
    """A crontab line as a person finds it: "crontab of deploy, line 4"."""
    if "/cron/crontabs/" in line.source or line.source.startswith("crontab "):
        return f"crontab of {line.owner}, line {line.line}"
    return f"{line.source}, line {line.line}"


def _origins(status: RoleStatus, fleet: Fleet) -> dict[str, list[Worker]]:
    """What started the role's workers, and what would start some: one entry per mechanism, systemd as a whole."""
    origins: dict[str, list[Worker]] = {}
    for worker in status.workers:
        if worker.state in ALIVE_STATES or worker.state in ("looping", "restarting"):
            owner = worker.owner
            by_unit = owner.kind in ("systemd", "systemd-user")
            name: str = owner.kind if by_unit else owner.detail or f"{owner.kind} {owner.name}".strip()
            origins.setdefault(name, []).append(worker)
    for line in lines_of(status, fleet):
        if "guard-matches-itself" not in line.faults and line.kind != "at-boot":
            origins.setdefault(where(line), [])
    if status.role.template and any(
        worker.unit is not None
        and (worker.unit.enabled.startswith("enabled") or worker.unit.active in ("active", "activating"))
        for worker in status.workers
    ):
        origins.setdefault("systemd", [])
    return origins


def two_owners(status: RoleStatus, fleet: Fleet) -> Iterator[Finding]:
    """More than one mechanism starts workers of the role, or would."""
    origins = _origins(status, fleet)
    if len(origins) < 2:
        return
    parts = []
    evidence: list[str] = []
    for name, workers in origins.items():
        shown = f"{len(workers)} worker{'s' if len(workers) != 1 else ''}"
        if name.startswith("systemd") and len(workers) == 1:
            parts.append(workers[0].key.removesuffix(".service"))
        else:
            parts.append(f"{name} ({shown})")
        evidence.append(f"{name}: {shown} running")
        evidence.extend(_why_owned(workers))
    for line in lines_of(status, fleet):
        evidence.append(f"{where(line)}: {line.schedule} {line.command}")
        evidence.extend(line.evidence)
    yield Finding(
        code="two-owners",
        severity="error",
        role=status.role.name,
        what=f"two owners: {' and '.join(parts)}" if len(parts) == 2 else f"{len(parts)} owners: {', '.join(parts)}",
        evidence=tuple(evidence),
        remedy=_ONE_OWNER,
        next=RETIRE if lines_of(status, fleet) else "keep one owner",
    )


def _why_owned(workers: list[Worker]) -> Iterator[str]:
    """The evidence for the owner of the first worker, and the names of the others of which it also holds."""
    if not workers:
        return
    first, others = workers[0], workers[1:]
    yield from (f"{first.name}: {sentence}" for sentence in first.owner.evidence)
    if others:
        named = ", ".join(worker.name for worker in others[:12])
        more = f" and {len(others) - 12} more" if len(others) > 12 else ""
        yield f"the same holds for {named}{more}"


def watchdogs(status: RoleStatus, fleet: Fleet) -> Iterator[Finding]:
    """Crontab lines that look before they start, but look wrongly."""
    running = sum(1 for worker in status.workers if worker.state in ALIVE_STATES)
    for line in lines_of(status, fleet):
        evidence = (
            f"{where(line)}: {line.schedule} {line.command}",
            *line.evidence,
            f"{running} workers of {status.role.name} run now",
        )
        if "guard-matches-itself" in line.faults:
            yield Finding(
                code="watchdog-never-starts",
                severity="error",
                role=status.role.name,
                what=f"its watchdog line can never start it: pgrep finds its own shell ({where(line)})",
                evidence=evidence,
                remedy=_USE_A_UNIT,
                next="move to systemd",
            )
        if "guard-never-matches" in line.faults:
            yield Finding(
                code="watchdog-always-starts",
                severity="error",
                role=status.role.name,
                what=f"its watchdog never sees the running worker and starts another each time ({where(line)})",
                evidence=evidence,
                remedy=_USE_A_UNIT,
                next="move to systemd",
            )


def launchers(status: RoleStatus, fleet: Fleet) -> Iterator[Finding]:
    """A periodic line that starts long-lived workers without looking: they pile up."""
    for line in lines_of(status, fleet):
        if line.kind != "launcher":
            continue
        own = [w for w in status.workers if w.owner.kind == "cron" and w.state in ALIVE_STATES]
        each = f"{line.workers_per_tick} more" if line.workers_per_tick else "more"
        generations = _generations(own, fleet.now)
        rate = f", {line.per_hour:g} times an hour" if line.per_hour else ""
        faults = (
            ("its lock is released when the launcher ends, while the workers live on",)
            if "lock-released-early" in line.faults
            else ()
        )
        yield Finding(
            code="launcher-piles-up",
            severity="error" if len(own) > (line.workers_per_tick or 1) else "warning",
            role=status.role.name,
            what=f"cron is not a supervisor: {where(line)} starts {each} each time; {len(own)} run now",
            evidence=(
                f"{where(line)}: {line.schedule} {line.command}{rate}",
                *line.evidence,
                *faults,
                *generations,
            ),
            remedy="Replace the launcher by template instances, one worker each, and disable its line.",
            next=RETIRE,
        )


def _generations(workers: list[Worker], now: float) -> tuple[str, ...]:
    """Workers of one tick share the audit session cron opened for it."""
    by_session: dict[int | None, list[Worker]] = {}
    for worker in workers:
        by_session.setdefault(worker.processes[0].session if worker.processes else None, []).append(worker)
    sentences = []
    for _, members in sorted(by_session.items(), key=lambda item: min((w.since or now) for w in item[1])):
        started = [w.since for w in members if w.since is not None]
        age = f", started {ago(now - min(started))} ago" if started else ""
        sentences.append(f"one tick's generation: {', '.join(w.name for w in members)}{age}")
    return tuple(sentences)


def outside_unit(status: RoleStatus, fleet: Fleet) -> Iterable[Finding]:
    """Processes of a role that has a unit, running outside of it."""
    strays = [worker for worker in status.workers if worker.state in ("stray", "hung") and worker.unit is None]
    if not strays or not status.role.template:
        return ()
    by_owner: dict[str, list[Worker]] = {}
    for worker in strays:
        by_owner.setdefault(worker.owner.detail or f"{worker.owner.kind} {worker.owner.name}".strip(), []).append(
            worker
        )
    kinds = {worker.owner.kind for worker in strays}
    return (
        Finding(
            code="outside-unit",
            severity="warning",
            role=status.role.name,
            what=f"{len(strays)} process{'es' if len(strays) > 1 else ''} outside {status.role.template}: "
            + ", ".join(f"{len(group)} from {name}" for name, group in by_owner.items()),
            evidence=tuple(sentence for group in by_owner.values() for sentence in _why_owned(group)),
            remedy="Drain them and let the unit's instances do the work; nobody restarts a process outside a unit."
            if kinds <= {"cron", "session", "unknown"}
            else "Stop them through the supervisor that started them, or it will start them again.",
            next=RETIRE if "cron" in kinds else "drain",
        ),
    )
