"""What a person means: a role, a unit, a process or a job, found in a fleet. Pure."""

from __future__ import annotations

from typing import Literal

from console.errors import ConfigError
from console.fleet.model import Claim, Fleet, Job, Role, RoleStatus, Value, Worker

Kind = Literal["role", "unit", "pid", "job"]
_LOOKED_AT = 12  # workers of a role; of the others what is known with the fleet must do
_WELL = 2  # of them so many that run well


class Target(Value, frozen=True, kw_only=True):
    """What is diagnosed: a role (`key` ""), one of its workers, or the job it is asked for."""

    role: str = ""
    key: str = ""
    job: str = ""  # an id: its role and worker are to be looked up in the queue


def find(fleet: Fleet, text: str, kind: Kind | None = None) -> Target:
    """What the text names: a role by name, "mail@1", a unit with or without ".service", a pid of a worker; any other
    number, and whatever is said to be one, is a job's id. ConfigError: there is nothing of that name."""
    if kind in (None, "role") and any(status.role.name == text for status in fleet.roles):
        return Target(role=text)
    if kind in (None, "unit"):
        for status in fleet.roles:
            for worker in status.workers:
                if text in _names(status.role, worker):
                    return Target(role=status.role.name, key=worker.key)
    if kind in (None, "pid") and text.isdecimal():
        for status in fleet.roles:
            for worker in status.workers:
                if int(text) in _pids(worker):
                    return Target(role=status.role.name, key=worker.key)
    if kind == "job" or (kind is None and not _is_name(text)):
        return Target(job=text)
    roles = ", ".join(status.role.name for status in fleet.roles) or "none"
    if kind == "pid":
        raise ConfigError(f"pid {text}", "no worker has that pid", "list them with worktop workers")
    raise ConfigError(
        text, f"there is no such {kind or 'role, unit or worker'}; known roles: {roles}", "a job: --as job"
    )


def _is_name(text: str) -> bool:
    """It can be no job's id: ids are numbers or UUIDs."""
    return not (text.isdecimal() or (text.count("-") == 4 and len(text) == 36))


def _names(role: Role, worker: Worker) -> tuple[str, ...]:
    names = (worker.key, f"{role.name}{worker.name}", f"{role.name}/{worker.name}")
    return (*names, worker.key.removesuffix(".service")) if worker.unit is not None or "@" in worker.key else names


def _pids(worker: Worker) -> set[int]:
    pids = {process.ident.pid for process in worker.processes}
    return pids | {worker.unit.main_pid} if worker.unit is not None and worker.unit.main_pid else pids


def of_job(fleet: Fleet, job: Job, claim: Claim | None) -> Target:
    """The worker that holds the job, or held it; where none is known, its role. ConfigError: it is of no role."""
    role = claim.role if claim is not None else ""
    for status in fleet.roles:
        own = job.queue in status.role.queues and (not status.role.types or job.type in status.role.types)
        if not role and own:
            role = status.role.name
        if status.role.name != role:
            continue
        unit = job.holder.unit if job.holder is not None and job.state == "running" else ""
        for worker in status.workers:
            if (
                job.id in worker.jobs
                or (claim is not None and claim.worker == worker.key)
                or (unit and unit == worker.key)
            ):
                return Target(role=role, key=worker.key, job=job.id)
        return Target(role=role, job=job.id)
    raise ConfigError(f"job {job.id}", f"its queue {job.queue} is of no role in worktop.toml")


def worker_of(fleet: Fleet, role: str, key: str) -> tuple[RoleStatus, Worker | None]:
    """The role, and the worker of that key; ConfigError: there is no such one (any more)."""
    status = next((status for status in fleet.roles if status.role.name == role), None)
    if status is None:
        known = ", ".join(status.role.name for status in fleet.roles) or "none"
        raise ConfigError(f"role {role}", f"there is no such role; known roles: {known}")
    if not key:
        return status, None
    worker = next((worker for worker in status.workers if worker.key == key), None)
    if worker is None:
        raise ConfigError(f"{key} of {role}", "there is no such worker any more", "list them with worktop workers")
    return status, worker


def worth_a_look(status: RoleStatus) -> tuple[Worker, ...]:
    """The workers of a role that are looked at one by one: those that do not run well, and a few that do."""
    ill = [worker for worker in status.workers if worker.state != "running"]
    well = [worker for worker in status.workers if worker.state == "running"]
    busy = sorted(well, key=lambda worker: not worker.jobs)
    room = max(_WELL, _LOOKED_AT - len(ill)) if len(status.workers) <= _LOOKED_AT else _WELL
    chosen = {worker.key for worker in (*ill[:_LOOKED_AT], *busy[:room])}
    return tuple(worker for worker in status.workers if worker.key in chosen)
