"""facts + configuration + now -> Fleet. Pure: the same facts give the same fleet."""

from __future__ import annotations

from collections.abc import Iterable

from console.fleet import findings, sources
from console.fleet.counts import is_paused, summed
from console.fleet.model import (
    Claim,
    Fleet,
    HostFacts,
    Job,
    Limits,
    QueueCounts,
    QueueFacts,
    Reading,
    Role,
    RoleStatus,
    Trend,
    TrendPoint,
    Unit,
    Worker,
)
from console.fleet.verdicts import Judge
from console.fleet.workers import (
    ALIVE_STATES,
    Made,
    Seen,
    owner_word,
    seen_of,
    stray_workers,
    unit_workers,
    with_claims,
    worth_showing,
)

_REMEMBERED = 10_000  # workers; those that are gone are forgotten with the rest


class Memory:
    """What was made of the facts the last time. Of facts that are still the same objects nothing is made again; the
    fleet is the same with and without."""

    def __init__(self) -> None:
        self.workers: dict[str, dict[str, Made]] = {}  # by role
        self.statuses: dict[str, RoleStatus] = {}  # by role
        self._stalled: dict[tuple[str, str], tuple[Worker, Worker]] = {}  # by role and key: a worker, and it as hung

    def stalled(self, worker: Worker) -> Worker:
        """A worker without a job in a role that makes no progress."""
        key = (worker.role, worker.key)
        made = self._stalled.get(key)
        if made is None or made[0] is not worker:
            made = (worker, with_claims(worker, (), no_progress=True))
            if len(self._stalled) > _REMEMBERED:
                self._stalled.clear()
            self._stalled[key] = made
        return made[1]


def assemble(
    host: HostFacts,
    queue: Reading[QueueFacts] | None,
    roles: tuple[Role, ...],
    limits: Limits,
    now: float,
    memory: Memory | None = None,
) -> Fleet:
    """The fleet at `now` (epoch seconds of this machine). `queue` is None when no database is configured.

    Without configured roles there is one per template that has instances, and one per queue that has rows.
    """
    units = host.units.value
    rows = queue.value if queue is not None else None
    shown = roles or _guessed(units or (), rows)
    claims = _claims(shown, rows, host, now)
    seen, memory = seen_of(units, host.processes.value or ()), memory or Memory()
    statuses = tuple(_status(role, seen, rows, claims, now, memory) for role in shown)
    fleet = Fleet(
        now=now,
        hello=host.hello,
        host=host.host.value,
        queue=rows,
        limits=limits,
        roles=statuses,
        claims=claims,
        sources=sources.statuses(host, queue, now),
        schedules=host.schedules.value or (),
    )
    return findings.with_findings(fleet)


def _guessed(units: Iterable[Unit], rows: QueueFacts | None) -> tuple[Role, ...]:
    templates: dict[str, list[str]] = {}
    for unit in units:
        if unit.template and worth_showing(unit):
            templates.setdefault(unit.template, []).append(unit.instance)
    roles = [
        Role(
            name=template.partition("@")[0],
            template=template,
            instances=tuple(sorted(instances, key=lambda name: (len(name), name))),
            configured=False,
        )
        for template, instances in sorted(templates.items())
    ]
    queues = [
        Role(name=counts.queue, queues=(counts.queue,), configured=False) for counts in (rows.counts if rows else ())
    ]
    return (*roles, *queues)


def _claims(roles: tuple[Role, ...], rows: QueueFacts | None, host: HostFacts, now: float) -> tuple[Claim, ...]:
    running, judge = (rows.running if rows else ()), Judge(host, rows, roles, now)
    owned = [(job, next((role.name for role in roles if is_of(job, role)), None)) for job in running]
    return tuple(judge.claim(job, role) for job, role in owned if role is not None)


def is_of(job: Job, role: Role) -> bool:
    return job.queue in role.queues and (not role.types or job.type in role.types)


def _status(
    role: Role,
    seen: Seen,
    rows: QueueFacts | None,
    claims: tuple[Claim, ...],
    now: float,
    memory: Memory,
) -> RoleStatus:
    own_claims = tuple(claim for claim in claims if claim.role == role.name)
    counts = merged(role, rows)
    made = memory.workers.setdefault(role.name, {})
    found = (*unit_workers(role, seen, now, made), *stray_workers(role, seen.of_role.get(role.name, ()), now))
    stalled = counts is not None and no_progress(role, counts) and any(worker.state in ALIVE_STATES for worker in found)
    if own_claims:
        workers = tuple(with_claims(worker, own_claims, stalled) for worker in found)
    else:
        workers = tuple(memory.stalled(worker) for worker in found) if stalled else found
    alive = [worker for worker in workers if worker.state in ALIVE_STATES]
    status = RoleStatus(
        role=role,
        workers=workers,
        trend=_trend(role, rows),
        running=len(alive),
        desired=len(role.instances),
        owners=_owners(workers),
        queue=counts,
        stuck=_stuck(counts, own_claims),
        memory=_sum(worker.memory for worker in alive),
        memory_allowed=_allowed(workers),
    )
    before = memory.statuses.get(role.name)
    if before == status:
        return before
    memory.statuses[role.name] = status
    return status


def _trend(role: Role, rows: QueueFacts | None) -> Trend | None:
    """The trend of a role that has one queue; of several the minutes are added up where all are known."""
    own = [trend for trend in (rows.trends if rows else ()) if trend.queue in role.queues and trend.types == role.types]
    if len(own) < 2:
        return own[0] if own else None
    minutes: dict[float, list[TrendPoint]] = {}
    for trend in own:
        for point in trend.points:
            minutes.setdefault(point.at, []).append(point)
    points = tuple(_added(at, found) for at, found in sorted(minutes.items()) if len(found) == len(own))
    return Trend(queue=role.name, types=role.types, points=points)


def _added(at: float, points: list[TrendPoint]) -> TrendPoint:
    def total(values: list[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    return TrendPoint(
        at=at,
        waiting=total([point.waiting for point in points]),
        oldest=max((point.oldest for point in points if point.oldest is not None), default=None),
        done=total([point.done for point in points]),
        failed=total([point.failed for point in points]),
    )


def _stuck(counts: QueueCounts | None, claims: tuple[Claim, ...]) -> int | None:
    """Expired leases as the database counts them, plus jobs of dead holders whose lease still runs."""
    if counts is None:
        return None
    early = sum(1 for claim in claims if claim.stuck and (claim.job.overdue is None or claim.job.overdue <= 0))
    return counts.stuck.n + early


def _owners(workers: tuple[Worker, ...]) -> tuple[str, ...]:
    tally: dict[str, int] = {}
    for worker in workers:
        if worker.state in ALIVE_STATES or worker.unit is not None:
            word = owner_word(worker.owner)
            tally[word] = tally.get(word, 0) + 1
    return tuple(sorted(tally, key=lambda word: (-tally[word], word)))


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _allowed(workers: tuple[Worker, ...]) -> int | None:
    limits = [worker.memory_max for worker in workers if worker.state in ALIVE_STATES or worker.desired]
    if not limits or any(limit is None for limit in limits):
        return None
    return _sum(limits)


def no_progress(role: Role, counts: QueueCounts) -> bool:
    """Jobs wait and are given out, and for longer than the role's limit none has finished."""
    if is_paused(role, counts):
        return False
    if counts.waiting.n == 0 or (counts.oldest_waiting or 0) < role.progress_limit or not counts.ends_told:
        return False
    return counts.last_finished is None or counts.last_finished > role.progress_limit


def merged(role: Role, rows: QueueFacts | None) -> QueueCounts | None:
    """The counts of a role's rows (its queues, its types) as one; None when not read, or when it has no queue."""
    if rows is None or not role.queues:
        return None
    own = [counts for counts in rows.counts if counts.queue in role.queues and counts.types == role.types]
    if not own:
        return QueueCounts(queue=role.name)
    if len(own) == 1:
        return own[0]
    return QueueCounts(
        queue=role.name,
        waiting=summed(counts.waiting for counts in own),
        scheduled=summed(counts.scheduled for counts in own),
        oldest_waiting=max((c.oldest_waiting for c in own if c.oldest_waiting is not None), default=None),
        running=summed(counts.running for counts in own),
        stuck=summed(counts.stuck for counts in own),
        failed=summed(counts.failed for counts in own),
        done_per_minute=_rate(counts.done_per_minute for counts in own),
        failed_per_minute=_rate(counts.failed_per_minute for counts in own),
        ends_told=all(c.ends_told for c in own),
        paused=tuple(sorted({queue for c in own for queue in c.paused})),
        last_finished=min((c.last_finished for c in own if c.last_finished is not None), default=None),
    )


def _rate(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
