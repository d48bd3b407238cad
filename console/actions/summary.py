"""What the steps of an apply came to, as one outcome with one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from console.actions import words
from console.fleet.model import Count
from console.fleet.plan import Blocked, Outcome, Plan, StepOutcome

State = Literal["done", "partly", "failed", "stopped", "cancelled"]
_DONE: dict[str, str] = {
    "reclaim": "returned to waiting:",
    "retry": "wait again:",
    "discard": "deleted:",
    "run-now": "due now:",
    "priority": "of another priority now:",
    "quarantine": "with the failed ones now:",
    "undo": "restored:",
}


def outcome_of(
    plan: Plan,
    steps: Sequence[StepOutcome],
    *,
    rows: int,
    blocked: Sequence[Blocked],
    left_out: Sequence[str],
    unsure: int,
    took: float,
) -> Outcome:
    """`left_out`: sentences on holders whose rows were left alone; `unsure`: rows whose COMMIT was not answered."""
    state = _state(plan, steps, rows, blocked, left_out)
    text = _done(plan, rows)
    problem = next((step for step in steps if step.state == "failed"), None)
    if problem is not None:
        why = problem.problem.line() if problem.problem is not None else problem.text
        text += f"; then it failed: {why}" if rows else f": {why}"
    if blocked:
        text += f"; {words.jobs_word(Count(len(blocked)))} could not be moved"
    if left_out:
        text += "; rows of holders that are not what they were are left alone"
    if unsure:
        text += f"; whether {unsure} more are is not known: the connection was lost during the COMMIT"
    if state == "stopped":
        text += "; stopped"
    if state == "cancelled" and plan.verb not in ("pause", "resume"):
        text += ": none is any more as it was when the plan was made"
    return Outcome(
        plan=plan.id,
        state=state,
        text=text,
        steps=tuple(steps),
        rows=rows,
        blocked=tuple(blocked),
        not_verified=tuple(left_out),
        undo=f"worktop undo {plan.id}" if (rows or unsure) and plan.verb != "undo" else "",
        took=took,
    )


def _state(
    plan: Plan, steps: Sequence[StepOutcome], rows: int, blocked: Sequence[Blocked], left_out: Sequence[str]
) -> State:
    states = {step.state for step in steps}
    if "failed" in states:
        return "partly" if rows else "failed"
    if "stopped" in states:
        return "stopped"
    if not rows and not blocked and any(step.kind == "sql" for step in plan.steps):
        return "cancelled"
    return "partly" if blocked or left_out else "done"


def _done(plan: Plan, rows: int) -> str:
    if plan.verb in ("pause", "resume"):
        return f"{plan.role} is {plan.verb}d" if rows else f"{plan.role} was {plan.verb}d already"
    return f"{_DONE[plan.verb]} {words.jobs_word(Count(rows))}"
