"""Is the holder of a running job dead, alive, slow or hung? A verdict is only as strong as its evidence."""

from __future__ import annotations

from console.fleet.model import Claim, Holder, HostFacts, Job, PidState, Process, Unit, Verdict
from console.text import ago

WATCHED_LONG_ENOUGH = 5.0  # seconds without CPU before a silent holder is called hung
UNDECIDED = "its CPU use has not been watched long enough to tell slow from hung"

NOT_LOOKED_UP = "its pid has not been looked up yet"


def judge(job: Job, role: str, facts: HostFacts) -> Claim:
    """The claim on a running job, judged by the row's holder and the host's facts.

    DEAD needs proof: the host has booted since, the pid is gone, or it is another process (other start time, or one
    later than the claim). HUNG: it lives, its lease has run out without a heartbeat, and it used no CPU while it was
    watched. ALIVE_SLOW: it lives past its lease and works, or was not watched long enough to tell. UNKNOWN: nothing
    identifies it, it is on another host, or the host could not be asked.
    """
    verdict, evidence, worker = _judge(job, facts)
    overdue = job.overdue is not None and job.overdue > 0
    lease = _lease_sentence(job)
    return Claim(
        job=job,
        role=role,
        verdict=verdict,
        evidence=(*evidence, *((lease,) if lease else ())),
        stuck=overdue or verdict == "DEAD",
        worker=worker,
    )


def _lease_sentence(job: Job) -> str:
    if job.overdue is None:
        return ""
    if job.overdue > 0:
        return f"its lease ran out {ago(job.overdue)} ago by the database's clock"
    return f"its lease is valid for another {ago(-job.overdue)}"


def _judge(job: Job, facts: HostFacts) -> tuple[Verdict, tuple[str, ...], str]:
    holder = job.holder
    if holder is None or (holder.pid is None and not holder.unit):
        return "UNKNOWN", ("the row does not say who holds it",), ""
    hello = facts.hello
    if facts.agent.problem is not None:
        return "UNKNOWN", (f"the host cannot be asked: {facts.agent.problem.line()}",), ""
    if hello is None:
        return "UNKNOWN", (NOT_LOOKED_UP,), ""
    if holder.host and holder.host != hello.host:
        return "UNKNOWN", (f"held on another host: {holder.host}",), ""
    if holder.boot_id and holder.boot_id != hello.boot_id:
        return "DEAD", (f"{hello.host} has booted again since the claim",), ""
    unit = next((unit for unit in facts.units.value or () if unit.name == holder.unit), None)
    worker = unit.name if unit else ""
    if holder.pid is None:
        return _by_unit(holder, unit), _unit_sentences(unit, holder), worker
    process = next((p for p in facts.processes.value or () if p.ident.pid == holder.pid), None)
    state = next((state for state in facts.holders.value or () if state.pid == holder.pid), None)
    if state is None and process is not None:
        state = PidState(pid=holder.pid, start=process.ident.start, name=process.name)
    if state is None or facts.holders.problem is not None:
        return "UNKNOWN", (NOT_LOOKED_UP,), worker
    if state.start is None:
        return "DEAD", (f"pid {holder.pid} no longer exists", *_unit_sentences(unit, holder)), worker
    if holder.start is not None and state.start != holder.start:
        who = f" ({state.name})" if state.name else ""
        return "DEAD", (f"pid {holder.pid} is another process now{who}", *_unit_sentences(unit, holder)), worker
    if (
        holder.start is None
        and process is not None
        and process.started is not None
        and job.started is not None
        and process.started > job.started + 1
    ):
        return (
            "DEAD",
            (f"the process with pid {holder.pid} started after the claim", *_unit_sentences(unit, holder)),
            worker,
        )
    verdict, sentences = _alive(job, process)
    if process is not None and not worker:
        worker = process.unit or f"{process.ident.pid}:{process.ident.start}"
    return verdict, (f"pid {holder.pid} is alive", *sentences), worker


def _alive(job: Job, process: Process | None) -> tuple[Verdict, tuple[str, ...]]:
    sentences: list[str] = []
    if job.heartbeat_age is not None:
        sentences.append(f"last heartbeat {ago(job.heartbeat_age)} ago")
    if process is not None and process.state == "T":
        return "HUNG", ("it is stopped (state T, by a signal or a debugger)", *sentences)
    if job.overdue is None or job.overdue <= 0:
        return "ALIVE", tuple(sentences)
    if process is None:
        return "ALIVE_SLOW", (*sentences, "whether it works is not known: it matches no role, so it is not watched")
    if process.idle_for is not None and process.idle_for >= WATCHED_LONG_ENOUGH:
        return "HUNG", (*sentences, f"it has used no CPU for {ago(process.idle_for)}")
    if process.cpu and process.idle_for is not None:
        return "ALIVE_SLOW", (*sentences, f"it works: {process.cpu:.0%} of a core")
    return "ALIVE_SLOW", (*sentences, UNDECIDED)


def pending(claim: Claim) -> bool:
    """The host has not answered yet: the claim is not judged, which is no finding."""
    return NOT_LOOKED_UP in claim.evidence


def undecided(claim: Claim) -> bool:
    """A longer look at the holder can tell slow from hung."""
    return UNDECIDED in claim.evidence


def _by_unit(holder: Holder, unit: Unit | None) -> Verdict:
    return "DEAD" if unit is not None and unit.load == "loaded" and unit.active in ("failed", "inactive") else "UNKNOWN"


def _unit_sentences(unit: Unit | None, holder: Holder) -> tuple[str, ...]:
    if unit is None or unit.load != "loaded":
        return ()
    if unit.active == "active" and unit.main_pid and unit.main_pid != holder.pid:
        return (f"{unit.name} runs as pid {unit.main_pid} now",)
    if unit.active in ("failed", "activating"):
        return (f"{unit.name} is {unit.active} ({unit.sub}), result {unit.result}",)
    return (f"{unit.name} is {unit.active}",)
