"""Questions about the work: the health check, the last finished jobs, the rows it holds."""

from __future__ import annotations

from collections.abc import Iterable

from console.fleet.assemble import is_of, no_progress
from console.fleet.diagnosis.model import FINISHES_JOBS, Case, Examined, StepState
from console.fleet.model import Claim, Job, QueueCounts, Role
from console.fleet.workers import ALIVE_STATES
from console.text import ago, duration, grouped

_CLAIMS_SHOWN = 6


def health(case: Case) -> Examined:
    asked = "What does the health check of its role say?"
    role = case.status.role
    if not role.health:
        return Examined(
            name="health",
            asked=asked,
            state="ok",
            answer=f"none is configured (roles.{role.name}.health)",
        )
    if role.health == (FINISHES_JOBS,):
        return _finishes_jobs(case, asked)
    said = case.looked.health if case.looked is not None else None
    if case.worker.state not in ALIVE_STATES:
        return Examined(name="health", asked=asked, state="ok", answer="it was not asked: the worker does not run")
    if said is None or said.ok is None:
        why = said.text if said is not None else "the host agent was not asked to run it"
        return Examined(name="health", asked=asked, state="unknown", answer=f"it was not asked: {why}")
    took = f" after {said.took:.1f} s" if said.took >= 0.05 else ""
    return Examined(
        name="health",
        asked=asked,
        state="ok" if said.ok else "fault",
        answer=f"{'healthy' if said.ok else 'NOT healthy'}: {said.text}{took}",
        evidence=(f"asked: {said.check}",),
    )


def _finishes_jobs(case: Case, asked: str) -> Examined:
    counts, role = case.status.queue, case.status.role
    if counts is None:
        return Examined(name="health", asked=asked, state="unknown", answer="its queue was not read")
    if paused(case):
        return Examined(name="health", asked=asked, state="ok", answer="its queue is paused: no job is given out")
    if not counts.waiting.n and not case.claims:
        return Examined(name="health", asked=asked, state="ok", answer="no job waits, so none need be finished")
    fine = counts.last_finished is not None and counts.last_finished <= role.progress_limit
    last = f"{ago(counts.last_finished)} ago" if counts.last_finished is not None else "at no time on record"
    return Examined(
        name="health",
        asked=asked,
        state="ok" if fine else "fault",
        answer=f"{'healthy' if fine else 'NOT healthy'}: {role.name} finished a job {last}, "
        f"the limit is {ago(role.progress_limit)}",
    )


def paused(case: Case) -> bool:
    """Every queue of the role gives out nothing, because somebody paused it."""
    queues = case.status.role.queues
    return bool(queues) and case.room is not None and set(queues) <= set(case.room.paused)


def stalled(case: Case) -> bool:
    """Jobs of the role wait, are given out, and for longer than its limit none was finished."""
    counts = case.status.queue
    return counts is not None and not paused(case) and no_progress(case.status.role, counts)


def progress(case: Case) -> Examined:
    asked = "When did it last finish a job, and when did its role?"
    counts, role = case.status.queue, case.status.role
    if not role.queues:
        return Examined(name="progress", asked=asked, state="unknown", answer="its role has no queue in worktop.toml")
    if counts is None:
        why = case.room.problem if case.room is not None and case.room.problem else "the queue was not read"
        return Examined(name="progress", asked=asked, state="unknown", answer=why)
    own, evidence = _own_last(case)
    whole = (
        f"{role.name} finished one {duration(counts.last_finished)} ago"
        if counts.last_finished is not None
        else f"no finished job of {role.name} is on record"
    )
    evidence = (*evidence, *_counts(counts))
    if paused(case):
        return Examined(
            name="progress", asked=asked, state="warning", answer=f"its queue is paused; {whole}", evidence=evidence
        )
    state: StepState = "fault" if stalled(case) else "ok"
    if state == "ok" and counts.oldest_waiting is not None and counts.oldest_waiting > role.oldest_limit:
        state = "warning"
        evidence = (
            f"the oldest waits for {duration(counts.oldest_waiting)}, the limit is {ago(role.oldest_limit)}",
            *evidence,
        )
    return Examined(name="progress", asked=asked, state=state, answer=f"{own}{whole}", evidence=evidence)


def _counts(counts: QueueCounts) -> tuple[str, ...]:
    rates = (
        f", {counts.done_per_minute:.1f} a minute are done, {counts.failed_per_minute or 0:.1f} fail"
        if counts.done_per_minute is not None
        else ""
    )
    oldest = f", the oldest for {duration(counts.oldest_waiting)}" if counts.oldest_waiting is not None else ""
    return (f"{grouped(counts.waiting.n)} jobs wait{oldest}; {grouped(counts.running.n)} run{rates}",)


def _own_last(case: Case) -> tuple[str, tuple[str, ...]]:
    """The last job this worker finished, where the queue keeps who did."""
    room = case.room
    if room is None or not room.finished:
        return "", ()
    told = [job for job in room.finished if job.holder is not None]
    if not told:
        return "", ("the queue does not keep who finished a job",)
    own = next((job for job in told if finished_here(case, job)), None)
    if own is None and not case.worker.key:
        return "", ()  # the role as a whole
    if own is None:
        return "", (f"none of the last {len(told)} finished jobs of the role is its own",)
    now = case.fleet.queue.now if case.fleet.queue is not None else case.fleet.now
    age = f" {duration(max(0.0, now - own.finished))} ago" if own.finished is not None else ""
    return f"it finished job {own.id}{age}; ", ()


def finished_here(case: Case, job: Job) -> bool:
    """This very process finished it, or an earlier run of its unit did."""
    holder, unit = job.holder, case.worker.unit
    if holder is None:
        return False
    pids = {process.ident.pid for process in case.worker.processes} | ({case.pid} if case.pid else set())
    hello = case.fleet.hello
    here = hello is None or holder.host in ("", hello.host)
    return here and ((unit is not None and holder.unit == unit.name) or (holder.pid is not None and holder.pid in pids))


def rows(case: Case) -> Examined:
    asked = "Which jobs does it hold?"
    if not case.status.role.queues or case.status.queue is None:
        return Examined(name="rows", asked=asked, state="unknown", answer="the queue was not read")
    if not case.claims:
        return Examined(name="rows", asked=asked, state="ok", answer="none")
    stuck = [claim for claim in case.claims if claim.stuck]
    verdicts = {claim.verdict for claim in case.claims}
    state: StepState = "ok"
    if verdicts & {"HUNG", "DEAD"}:
        state = "fault"
    elif stuck:
        state = "warning"
    number = len(case.claims)
    answer = f"{number} job{'s' if number != 1 else ''}: " + ", ".join(
        claim.job.id for claim in case.claims[:_CLAIMS_SHOWN]
    )
    if stuck:
        answer += f"; {len(stuck)} past {'its' if len(stuck) == 1 else 'their'} lease"
    return Examined(name="rows", asked=asked, state=state, answer=answer, evidence=tuple(_claims(case.claims)))


def _claims(claims: Iterable[Claim]) -> Iterable[str]:
    for claim in list(claims)[:_CLAIMS_SHOWN]:
        held = f" for {duration(claim.job.running_for)}" if claim.job.running_for is not None else ""
        yield f"job {claim.job.id} ({claim.job.type}){held}: holder {claim.verdict}: {'; '.join(claim.evidence)}"


def has_jobs(role: Role, job: Job) -> bool:
    """The job is one of this role."""
    return is_of(job, role)
