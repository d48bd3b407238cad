"""Rules -> findings, worst first. Each rule looks at one thing and says it with evidence and with what mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from console.fleet.model import Finding, Fleet, RoleStatus, Severity, SourceName
from console.fleet.rules import budget, ownership, sources, units, work

# A rule judges when the facts it looks at have come: in the first second after a start some are there and others are
# not, and what would be found then is gone in the next. A source that fails has come, with its problem.
Facts = frozenset[SourceName]
_UNITS: Facts = frozenset({"units"})
_WORKERS: Facts = frozenset({"units", "processes"})
_STARTERS: Facts = frozenset({"units", "processes", "schedules"})
_QUEUE: Facts = frozenset({"queue"})
_MEMORY: Facts = frozenset({"units", "host"})
_ACCOUNTS: Facts = frozenset({"units", "processes", "host"})

ROLE_RULES: tuple[tuple[Callable[[RoleStatus, Fleet], Iterable[Finding]], Facts], ...] = (
    (ownership.two_owners, _STARTERS),
    (ownership.watchdogs, _STARTERS),
    (ownership.launchers, _STARTERS),
    (ownership.outside_unit, _WORKERS),
    (units.template_missing, _UNITS),
    (units.nothing_runs, _WORKERS),
    (work.paused, _QUEUE),
    (work.no_progress, _WORKERS | _QUEUE),
    (units.crash_loops, _UNITS),
    (units.given_up, _UNITS),
    (work.stuck_jobs, _WORKERS | _QUEUE),
    (budget.too_many_workers, _WORKERS),
    (units.missing, _UNITS),
    (work.oldest_waiting, _QUEUE),
    (work.failing, _QUEUE),
    (units.start_limit_out_of_reach, _UNITS),
    (units.limit_not_enforced, _UNITS),
)
FLEET_RULES: tuple[tuple[Callable[[Fleet], Iterable[Finding]], Facts], ...] = (
    (budget.memory, _MEMORY),
    (budget.account_processes, _ACCOUNTS),
    (sources.down, frozenset()),
)
_RANK: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}


def with_findings(fleet: Fleet) -> Fleet:
    """The fleet with its findings: errors first, then in the order of the rules (two owners before all), then roles."""
    awaited = {source.name for source in fleet.sources if source.state == "waiting"}
    found = [
        (finding, order)
        for order, (rule, facts) in enumerate(ROLE_RULES)
        if not facts & awaited
        for status in fleet.roles
        for finding in rule(status, fleet)
    ]
    found += [
        (finding, len(ROLE_RULES) + order)
        for order, (rule, facts) in enumerate(FLEET_RULES)
        if not facts & awaited
        for finding in rule(fleet)
    ]
    found.sort(key=lambda pair: (_RANK[pair[0].severity], pair[1]))
    return msgspec.structs.replace(fleet, findings=tuple(finding for finding, _ in found))
