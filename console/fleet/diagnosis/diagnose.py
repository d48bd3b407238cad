"""One worker, or a role as a whole: examined in order, then judged."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from console.fleet.diagnosis import owners, running, settings, working
from console.fleet.diagnosis.decide import decide
from console.fleet.diagnosis.model import (
    WORST_FIRST,
    Case,
    Diagnosis,
    DiagnosisVerdict,
    Examination,
    Examined,
    Looked,
    QueueRoom,
    StepState,
)
from console.fleet.model import Claim, Finding, Fleet, Job, RoleStatus, Worker
from console.fleet.rules.ownership import lines_of, where
from console.fleet.workers import ALIVE_STATES
from console.text import duration, grouped

# in the order in which they are asked and told
_QUESTIONS = (
    running.process,
    running.children,
    running.how_it_ended,
    running.restarts,
    working.health,
    working.progress,
    working.rows,
    owners.owner,
    settings.unit,
    settings.near,
    settings.limits,
)
_ALIKE = 8  # workers of one verdict that are named


def examine(case: Case) -> Examination:
    """Every question about one worker, answered as far as the facts go; raises nothing."""
    worker = case.worker
    steps = tuple(question(case) for question in _QUESTIONS)
    if worker.state == "unknown" and worker.unit is None and not worker.processes:
        answer = worker.why or "systemd has not answered"
        steps = tuple(
            step
            if step.name in ("health", "progress", "rows")
            else Examined(name=step.name, asked=step.asked, state="unknown", answer=f"not known: {answer}")
            for step in steps
        )
    return Examination(role=worker.role, key=worker.key, name=worker.name, steps=steps)


def case_of(
    fleet: Fleet, status: RoleStatus, worker: Worker, looked: Looked | None = None, room: QueueRoom | None = None
) -> Case:
    """The worker with the claims on the jobs it holds."""
    return Case(fleet, status, worker, claims_of(fleet, worker), looked, room)


def claims_of(fleet: Fleet, worker: Worker) -> tuple[Claim, ...]:
    own = [
        claim
        for claim in fleet.claims
        if claim.role == worker.role
        and (claim.job.id in worker.jobs or (claim.worker == worker.key and claim.verdict != "DEAD"))
    ]
    return tuple(sorted(own, key=lambda claim: -(claim.job.running_for or 0.0)))


def diagnose(
    fleet: Fleet, status: RoleStatus, worker: Worker, looked: Looked | None = None, room: QueueRoom | None = None
) -> Diagnosis:
    """The verdict on one worker, with its examination."""
    case = case_of(fleet, status, worker, looked, room)
    examination = examine(case)
    decision = decide(case, examination)
    return Diagnosis(
        role=worker.role,
        key=worker.key,
        name=worker.name,
        verdict=decision.verdict,
        sentence=decision.sentence,
        next=decision.next,
        do_not=decision.do_not,
        commands=tuple(_as_typed(command, fleet, worker) for command in decision.commands),
        steps=examination.steps,
    )


def _as_typed(command: str, fleet: Fleet, worker: Worker) -> str:
    """The command as a shell takes it, for the manager that is looked at."""
    command = command.replace(worker.key, shlex.quote(worker.key)) if worker.unit is not None else command
    if fleet.hello is not None and fleet.hello.manager == "user":
        command = re.sub(r"^(systemctl|journalctl|systemd-analyze) ", r"\1 --user ", command)
    return command


def diagnose_role(
    fleet: Fleet,
    status: RoleStatus,
    looked: Mapping[str, Looked] | None = None,
    room: QueueRoom | None = None,
) -> tuple[Diagnosis, ...]:
    """The role as a whole, then each of its workers; `looked` by the worker's key."""
    found = looked or {}
    each = tuple(diagnose(fleet, status, worker, found.get(worker.key), room) for worker in status.workers)
    return (_whole(fleet, status, each, room), *each)


def _whole(fleet: Fleet, status: RoleStatus, each: Sequence[Diagnosis], room: QueueRoom | None) -> Diagnosis:
    role = status.role.name
    findings = tuple(finding for finding in fleet.findings if finding.role == role)
    steps = (_workers_step(status, each), *_role_steps(fleet, status, each, room))
    if not each:
        return _without_workers(status, findings, steps)
    worst = min(each, key=lambda diagnosis: WORST_FIRST.index(diagnosis.verdict))
    number = sum(1 for diagnosis in each if diagnosis.verdict == worst.verdict)
    if all(worker.state not in (*ALIVE_STATES, "looping", "restarting") for worker in status.workers):
        nothing = next((finding for finding in findings if finding.code == "nothing-runs"), None)
        before = f"{nothing.what}; " if nothing is not None else ""
    else:
        before = ""
    which = (
        ""
        if len(each) == 1
        else f"{number} of {len(each)} workers: "
        if number < len(each)
        else f"all {number} workers: "
    )
    names = ", ".join(diagnosis.name for diagnosis in each if diagnosis.verdict == worst.verdict)
    if worst.verdict == "healthy":
        sentence = f"{len(each)} worker{'s' if len(each) != 1 else ''} of {role} work{'s' if len(each) == 1 else ''}"
    else:
        sentence = (
            f"{before}{which}{worst.name}: {worst.sentence}"
            if len(each) > 1
            else f"{before}{worst.name}: {worst.sentence}"
        )
        if 1 < number < _ALIKE:
            sentence += f" (and {names.removeprefix(worst.name + ', ')})"
    return Diagnosis(
        role=role,
        verdict=worst.verdict,
        sentence=sentence,
        next=worst.next if len(each) == 1 or worst.verdict == "healthy" else f"{worst.name}: {worst.next}",
        do_not=worst.do_not,
        commands=worst.commands,
        steps=steps,
    )


def _workers_step(status: RoleStatus, each: Sequence[Diagnosis]) -> Examined:
    tally: dict[DiagnosisVerdict, list[str]] = {}
    for diagnosis in each:
        tally.setdefault(diagnosis.verdict, []).append(diagnosis.name)
    lines = []
    for verdict in WORST_FIRST:
        names = tally.get(verdict, [])
        more = f" and {len(names) - _ALIKE} more" if len(names) > _ALIKE else ""
        if names:
            lines.append(f"{verdict}: {', '.join(names[:_ALIKE])}{more}")
    enough = status.running >= status.desired
    budget = status.role.budget
    over = budget is not None and status.running > budget
    state: StepState = "fault" if over or (not status.running and status.desired) else "ok" if enough else "warning"
    limit = f", the budget is {budget}" if over else ""
    if status.workers and all(worker.state == "unknown" for worker in status.workers):
        state, limit = "unknown", ", as far as can be seen"
    return Examined(
        name="process",
        asked="Do its workers run?",
        state=state,
        answer=f"{status.running} run, {status.desired} {'are' if status.desired != 1 else 'is'} wanted{limit}",
        evidence=tuple(lines),
    )


def _role_steps(
    fleet: Fleet, status: RoleStatus, each: Sequence[Diagnosis], room: QueueRoom | None
) -> tuple[Examined, ...]:
    """What is asked of a role as a whole."""
    nobody = Worker(key="", role=status.role.name, name=status.role.name, state="unknown")
    case = Case(fleet, status, nobody, (), None, room)
    found = [working.progress(case)]
    claims = tuple(claim for claim in fleet.claims if claim.role == status.role.name)
    found.append(working.rows(case._replace(claims=claims)))
    own = [step for diagnosis in each for step in diagnosis.steps if step.name == "owner"]
    rank: dict[StepState, int] = {"fault": 0, "warning": 1, "unknown": 2, "ok": 3}
    if own:
        found.append(min(own, key=lambda step: rank[step.state]))
    else:
        others = owners.parallels(case)
        broken = tuple(
            f"{where(line)}: {line.schedule} {line.command}" for line in lines_of(status, fleet) if line.faults
        )
        found.append(
            Examined(
                name="owner",
                asked="Who starts its workers?",
                state="warning" if others else "fault",
                answer=", ".join(other.name for other in others[:3]) if others else "nothing that is known",
                evidence=(*(other.evidence for other in others), *broken),
            )
        )
    return tuple(found)


def _without_workers(status: RoleStatus, findings: tuple[Finding, ...], steps: tuple[Examined, ...]) -> Diagnosis:
    """A role of which nothing runs and nothing is loaded."""
    role = status.role
    causes = [
        finding for finding in findings if finding.code.startswith("watchdog") or finding.code == "template-missing"
    ]
    nothing = next((finding for finding in findings if finding.code == "nothing-runs"), None)
    waiting = status.queue.waiting.n if status.queue is not None else 0
    if causes:
        sentence = f"{nothing.what}: {causes[0].what}" if nothing is not None else causes[0].what
        return Diagnosis(
            role=role.name,
            verdict="misconfigured",
            sentence=sentence,
            next=causes[0].remedy,
            do_not="do not restart: there is nothing that runs, and what should start it cannot",
            steps=steps,
        )
    if not status.desired and not waiting:
        return Diagnosis(
            role=role.name,
            verdict="healthy",
            sentence="no worker runs, none is wanted, and no job waits",
            next="nothing needs to be done",
            do_not="do not start any: nothing asks for one",
            steps=steps,
        )
    oldest = status.queue.oldest_waiting if status.queue is not None else None
    waits = f" while {grouped(waiting)} jobs wait, the oldest for {duration(oldest)}" if waiting else ""
    start = (
        "give it a template unit and start one instance" if not role.template else f"start instances of {role.template}"
    )
    return Diagnosis(
        role=role.name,
        verdict="misconfigured",
        sentence=f"nothing runs{waits}, and nothing that is known would start it",
        next=start,
        do_not="do not restart: there is nothing to restart",
        steps=steps,
    )


def about_job(job: Job, claim: Claim | None, diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis of the worker that holds a job, or of the job's role, told from the job; of a dead holder, what is
    to be done with the job."""
    if claim is None:
        return replace(diagnosis, sentence=f"job {job.id} is {job.state}, nobody holds it; {diagnosis.sentence}")
    held = f" for {duration(job.running_for)}" if job.running_for is not None else ""
    if claim.verdict != "DEAD":
        return replace(diagnosis, sentence=f"job {job.id} is held{held}, holder {claim.verdict}: {diagnosis.sentence}")
    why = claim.evidence[0] if claim.evidence else "it is gone"
    where = f"{diagnosis.name} now: " if diagnosis.name else ""
    return replace(
        diagnosis,
        sentence=f"job {job.id} is held{held} by a worker that is dead: {why}; {where}{diagnosis.sentence}",
        next=f"reclaim job {job.id}; then {diagnosis.next}",
        commands=(f"worktop reclaim --id {shlex.quote(job.id)}", *diagnosis.commands),
    )
