"""Rules -> findings, worst first. Each rule looks at one thing and says it with evidence and with what mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from console.fleet.model import Finding, Fleet, RoleStatus, Severity
from console.fleet.rules import budget, ownership, sources, units, work

ROLE_RULES: tuple[Callable[[RoleStatus, Fleet], Iterable[Finding]], ...] = (
    ownership.two_owners,
    ownership.watchdogs,
    ownership.launchers,
    ownership.outside_unit,
    units.template_missing,
    units.nothing_runs,
    work.no_progress,
    units.crash_loops,
    units.given_up,
    work.stuck_jobs,
    budget.too_many_workers,
    units.missing,
    work.oldest_waiting,
    work.failing,
    units.start_limit_out_of_reach,
    units.limit_not_enforced,
)
FLEET_RULES: tuple[Callable[[Fleet], Iterable[Finding]], ...] = (
    budget.memory,
    budget.account_processes,
    sources.down,
)
_RANK: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}


def with_findings(fleet: Fleet) -> Fleet:
    """The fleet with its findings: errors first, then in the order of the rules (two owners before all), then roles."""
    found = [
        (finding, order)
        for order, rule in enumerate(ROLE_RULES)
        for status in fleet.roles
        for finding in rule(status, fleet)
    ]
    found += [(finding, len(ROLE_RULES) + order) for order, rule in enumerate(FLEET_RULES) for finding in rule(fleet)]
    found.sort(key=lambda pair: (_RANK[pair[0].severity], pair[1]))
    return msgspec.structs.replace(fleet, findings=tuple(finding for finding, _ in found))
