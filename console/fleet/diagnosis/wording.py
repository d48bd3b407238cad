"""What the rules of a verdict say in the same words."""

from __future__ import annotations

from typing import NamedTuple

from console.fleet.diagnosis.model import Case, DiagnosisVerdict
from console.fleet.diagnosis.owners import parallels
from console.fleet.diagnosis.reasons import common_reason
from console.fleet.diagnosis.working import stalled
from console.fleet.workers import ALIVE_STATES
from console.text import duration, grouped


class Decision(NamedTuple):
    verdict: DiagnosisVerdict
    sentence: str
    next: str
    do_not: str
    commands: tuple[str, ...] = ()


def jobs_named(ids: list[str]) -> str:
    return f"job {ids[0]}" if len(ids) == 1 else f"{len(ids)} jobs"


def held_clause(case: Case, before: str = " with") -> str:
    held = [claim.job.id for claim in case.claims]
    if not held:
        return ""
    return f"{before} {jobs_named(held)} would be cut off" if before != " with" else f" with {jobs_named(held)} in work"


def others_start(case: Case) -> str:
    others = [each.name for each in parallels(case) if each.certain]
    return f"; {others[0]} starts workers of this role too" if others else ""


def said(case: Case) -> str:
    """What its journal says, as far as it is known."""
    reason = common_reason(case.looked.runs) if case.looked is not None else None
    words = reason.text if reason is not None else (case.worker.unit.last_words.strip() if case.worker.unit else "")
    return f': "{words}"' if words else ""


def for_how_long(case: Case) -> str:
    counts = case.status.queue
    if counts is None or counts.last_finished is None:
        return ", ever, as far as is on record"
    return f" for {duration(counts.last_finished)}"


def slow_sentence(case: Case) -> str:
    slow = [claim for claim in case.claims if claim.verdict == "ALIVE_SLOW"]
    if slow:
        job = slow[0].job
        held = f" for {duration(job.running_for)}" if job.running_for is not None else ""
        why = "; ".join(slow[0].evidence[1:] or slow[0].evidence)
        return f"it works on job {job.id} ({job.type}){held}, past its lease: {why}"
    if stalled(case) and case.worker.state in ALIVE_STATES:
        counts = case.status.queue
        waiting = grouped(counts.waiting.n) if counts is not None else "?"
        return f"it works, but {waiting} jobs of {case.status.role.name} wait and none was finished{for_how_long(case)}"
    return ""
