"""Rules about budgets: instances, memory, processes of the account."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from console.fleet.capacity import memory_budget
from console.fleet.model import Finding, Fleet, RoleStatus
from console.fleet.workers import ALIVE_STATES
from console.text import size

NEAR_PROCESS_LIMIT = 0.8


def too_many_workers(status: RoleStatus, fleet: Fleet) -> Iterable[Finding]:
    budget = status.role.budget
    if budget is None or status.running <= budget:
        return ()
    return (
        Finding(
            code="over-budget",
            severity="error",
            role=status.role.name,
            what=f"{status.running} workers run, the budget is {budget}",
            evidence=_by_owner(status),
            remedy="Find out who starts the surplus before stopping any, or raise the budget on purpose.",
            next="find the owner",
        ),
    )


def _by_owner(status: RoleStatus) -> tuple[str, ...]:
    groups: dict[str, list[str]] = {}
    for worker in status.workers:
        if worker.state in ALIVE_STATES:
            groups.setdefault(worker.owner.detail or worker.owner.name or worker.owner.kind, []).append(worker.name)
    return tuple(f"{len(names)} from {owner}: {', '.join(names)}" for owner, names in groups.items())


def memory(fleet: Fleet) -> Iterator[Finding]:
    """N × MemoryMax plus the reserve must fit the host."""
    found = memory_budget(
        tuple((status.role, tuple(w.unit for w in status.workers if w.unit is not None)) for status in fleet.roles),
        fleet.host,
        fleet.limits,
    )
    if found is None or found.fits:
        return
    yield Finding(
        code="over-memory",
        severity="error",
        what=f"memory limits and reserve need {size(found.needed)}, the host has {size(found.total)}",
        evidence=(
            *(f"{role}: {count} × {size(limit)} = {size(count * limit)}" for role, count, limit in found.parts),
            f"reserve for database, web server and page cache: {size(found.reserve)}",
            *(f"{role}: at least one instance has no limit at all" for role in found.unlimited),
        ),
        remedy="Lower instances or MemoryMax to what was measured, or give the host more memory.",
        next="limits",
    )


def account_processes(fleet: Fleet) -> Iterator[Finding]:
    """The accounts that run workers, against their process limit and the configured budget."""
    for account in fleet.host.accounts if fleet.host else ():
        own_budget = fleet.limits.account_processes if _runs_workers(fleet, account.uid) else None
        if own_budget is not None and account.processes > own_budget:
            yield Finding(
                code="over-processes",
                severity="error",
                what=f"account {account.user} has {account.processes} processes, the budget is {own_budget}",
                evidence=(f"{account.tasks} tasks (threads), {size(account.memory)} resident",),
                remedy="Find the role that grows: look for a launcher that piles up.",
                next="look at the host",
            )
        if account.limit is not None and account.tasks > NEAR_PROCESS_LIMIT * account.limit:
            yield Finding(
                code="near-process-limit",
                severity="error",
                what=f"account {account.user} uses {account.tasks} of {account.limit} tasks: soon nothing can start",
                evidence=(f"limit from {account.limit_source or 'its processes'}",),
                remedy="Find the role that grows before the whole account can no longer fork.",
                next="look at the host",
            )


def _runs_workers(fleet: Fleet, uid: int) -> bool:
    return any(p.uid == uid for status in fleet.roles for worker in status.workers for p in worker.processes)
