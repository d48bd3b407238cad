"""Rules about the queue: no progress, stuck jobs, old jobs, failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from console.fleet.counts import is_paused
from console.fleet.model import Claim, Finding, Fleet, RoleStatus, Severity, Verdict
from console.fleet.verdicts import pending
from console.fleet.workers import ALIVE_STATES
from console.text import ago, duration, grouped

_STUCK: dict[Verdict, tuple[Severity, str, str, str]] = {
    # verdict: severity, phrase, remedy, next
    "DEAD": (
        "error",
        "held by dead workers",
        "Reclaim them: they go back to waiting with a new token, so a late finish of the old holder is rejected.",
        "reclaim",
    ),
    "HUNG": (
        "error",
        "held by hung workers",
        "Diagnose the worker, stop it, then reclaim: never under a live holder.",
        "diagnose",
    ),
    "ALIVE_SLOW": (
        "warning",
        "past the lease, but the holder lives",
        "Let it work, or give this type a longer lease; stop its unit before you reclaim.",
        "diagnose",
    ),
    "UNKNOWN": (
        "warning",
        "past the lease, holder not known",
        "Find the holder on its own host first; nothing here proves that it is dead.",
        "look at the holder",
    ),
    "FINISHED_BUT_CLAIMED": (
        "warning",
        "ended, but still claimed",
        "Look at the job: its end is on record, so to return it to waiting would run it again.",
        "look at the job",
    ),
}


def paused(status: RoleStatus, fleet: Fleet) -> Iterable[Finding]:
    """Somebody has paused queues of the role: that jobs wait is meant, and easily forgotten."""
    counts = status.queue
    if counts is None or not counts.paused:
        return ()
    names = ", ".join(counts.paused)
    what = "paused: no job is given out" if is_paused(status.role, counts) else f"paused in part: {names}"
    waiting = f"{grouped(counts.waiting.n)} wait{'s' if counts.waiting.n == 1 else ''}"
    oldest = f", the oldest for {ago(counts.oldest_waiting)}" if counts.oldest_waiting is not None else ""
    return (
        Finding(
            code="paused",
            severity="warning",
            role=status.role.name,
            what=f"{what}, {waiting}" if counts.waiting.n else what,
            evidence=(
                f"the queue's own switch says so of: {names}",
                f"{waiting}{oldest}; {grouped(counts.running.n)} run and go on",
            ),
            remedy="Find out who paused it and why (worktop audit knows if it was done here); then resume it.",
            next="resume",
        ),
    )


def no_progress(status: RoleStatus, fleet: Fleet) -> Iterable[Finding]:
    """Workers live, jobs wait, and none has finished for longer than the role's limit."""
    counts, role = status.queue, status.role
    alive = [worker for worker in status.workers if worker.state in ALIVE_STATES]
    if counts is None or not alive or counts.waiting.n == 0 or not counts.ends_told or is_paused(role, counts):
        return ()
    if (counts.oldest_waiting or 0) < role.progress_limit:
        return ()
    if counts.last_finished is not None and counts.last_finished <= role.progress_limit:
        return ()
    own = [claim for claim in fleet.claims if claim.role == role.name]
    hung = any(worker.state == "hung" for worker in alive)
    finished = f"for {duration(counts.last_finished)}" if counts.last_finished is not None else "that is on record"
    waiting = f"{grouped(counts.waiting.n)} wait{'s' if counts.waiting.n == 1 else ''}"
    return (
        Finding(
            code="no-progress",
            severity="error" if hung else "warning",
            role=role.name,
            what=f"{'hung' if hung else 'slow'}: alive but no job finished {finished} while {waiting}",
            evidence=(
                f"oldest waiting job: {ago(counts.oldest_waiting)}; limit without progress: {ago(role.progress_limit)}",
                *(f"{worker.name}: {worker.state}: {worker.why}" for worker in alive[:6]),
                *(f"job {claim.job.id}: {claim.verdict}: {'; '.join(claim.evidence)}" for claim in own[:6]),
            ),
            remedy="Diagnose before you restart: what it waits for is lost with the process.",
            next="diagnose",
        ),
    )


def stuck_jobs(status: RoleStatus, fleet: Fleet) -> Iterator[Finding]:
    """Running jobs whose lease has run out or whose holder is dead, by verdict."""
    by_verdict: dict[Verdict, list[Claim]] = {}
    for claim in fleet.claims:
        if claim.role == status.role.name and claim.stuck and not pending(claim):
            verdict: Verdict = "ALIVE_SLOW" if claim.verdict == "ALIVE" else claim.verdict
            by_verdict.setdefault(verdict, []).append(claim)
    for verdict, (severity, phrase, remedy, step) in _STUCK.items():
        claims = by_verdict.get(verdict, [])
        if not claims:
            continue
        oldest = max((claim.job.overdue or 0.0) for claim in claims)
        many = f"{grouped(len(claims))} job{'s' if len(claims) != 1 else ''}"
        yield Finding(
            code=f"stuck-{verdict.lower().replace('_', '-')}",
            severity=severity,
            role=status.role.name,
            what=f"{many} {phrase} (oldest {duration(oldest)} overdue)",
            evidence=tuple(
                f"job {claim.job.id} ({claim.job.type}): {verdict}: {'; '.join(claim.evidence)}"
                for claim in claims[:10]
            )
            + ((f"and {len(claims) - 10} more",) if len(claims) > 10 else ()),
            remedy=remedy,
            next=step,
        )
    listed = sum(1 for claim in fleet.claims if claim.role == status.role.name and claim.stuck)
    if status.stuck and status.stuck > listed:
        yield Finding(
            code="stuck-unjudged",
            severity="warning",
            role=status.role.name,
            what=f"{grouped(status.stuck - listed)} more jobs past their lease, not judged one by one",
            evidence=("only the longest overdue jobs are judged at each refresh",),
            remedy="Reclaim the judged ones first; the next ones follow.",
            next="reclaim",
        )


def oldest_waiting(status: RoleStatus, fleet: Fleet) -> Iterable[Finding]:
    counts, limit = status.queue, status.role.oldest_limit
    if counts is None or counts.oldest_waiting is None or counts.oldest_waiting <= limit:
        return ()
    if is_paused(status.role, counts):  # that is why, and is said
        return ()
    return (
        Finding(
            code="oldest-waiting",
            severity="warning",
            role=status.role.name,
            what=f"oldest job waits for {duration(counts.oldest_waiting)}, limit {duration(limit)}",
            evidence=(
                f"{grouped(counts.waiting.n)} jobs are due and wait",
                f"{counts.done_per_minute or 0:.0f} a minute are done, {counts.failed_per_minute or 0:.0f} fail"
                if counts.done_per_minute is not None
                else "no rate known",
                f"{status.running} workers run, {status.desired} wanted, budget {status.role.budget or 'not set'}",
            ),
            remedy="Find out why they wait: workers missing, hung or too few; then scale by one and watch.",
            next="diagnose",
        ),
    )


def failing(status: RoleStatus, fleet: Fleet) -> Iterable[Finding]:
    """More jobs fail than succeed: a failure nobody notices for a week is the worst case."""
    counts = status.queue
    if counts is None or not counts.failed_per_minute or counts.failed_per_minute <= (counts.done_per_minute or 0):
        return ()
    rates = f"{counts.failed_per_minute:.1f} against {counts.done_per_minute or 0:.1f} a minute"
    return (
        Finding(
            code="failing",
            severity="warning",
            role=status.role.name,
            what=f"more jobs fail than succeed: {rates}",
            evidence=(f"{grouped(counts.failed.n)} failed jobs are kept",),
            remedy="Read the errors of the failed jobs (worktop jobs --state failed) before retrying any.",
            next="read the errors",
        ),
    )
