"""What the steps of an apply came to, as one outcome with one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from console.actions import words
from console.actions.steps.doing import Doing
from console.fleet.model import Count
from console.fleet.plan import Outcome, Plan, StepOutcome

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


def outcome_of(doing: Doing, steps: Sequence[StepOutcome], took: float) -> Outcome:
    """The outcome of the steps that were done, skipped or failed."""
    plan, rows = doing.plan, doing.rows
    units, files = len(doing.journal.units), len(doing.journal.files)
    state = _state(doing, steps)
    text = _done(plan, rows, steps)
    failed = [step for step in steps if step.state == "failed"]
    if failed:
        why = failed[0].problem.line() if failed[0].problem is not None else failed[0].text
        then = f"; {len(failed)} failed, the first" if len(failed) > 1 else "; then it failed"
        text += f"{then if rows or any(step.state == 'done' for step in steps) else ''}: {why}"
    if doing.blocked:
        text += f"; {words.jobs_word(Count(len(doing.blocked)))} could not be moved"
    if doing.left_out:
        text += "; rows of holders that are not what they were are left alone"
    if doing.unsure:
        text += f"; whether {doing.unsure} more are is not known: the connection was lost during the COMMIT"
    if doing.ends_here:
        text += f"; it ended there: {doing.ends_here}"
    if state == "stopped":
        text += "; stopped"
    if state == "cancelled" and plan.verb not in ("pause", "resume"):
        text += ": none is any more as it was when the plan was made"
    if doing.lost or (state == "stopped" and any(step.kind == "unit" for step in plan.steps)):
        text += f"; worktop continue {plan.id} goes on with it, worktop abandon {plan.id} gives it up"
    changed = bool(rows or doing.unsure or units or files) and plan.verb != "undo" and plan.reversible != "no"
    return Outcome(
        plan=plan.id,
        state=state,
        text=text,
        steps=tuple(steps),
        rows=rows,
        blocked=tuple(doing.blocked),
        verified=tuple(doing.seen),
        not_verified=(*doing.left_out, *doing.unseen),
        undo=f"worktop undo {plan.id}" if changed else "",
        took=took,
        units=units,
        files=files,
        next=tuple(doing.next),
    )


def _state(doing: Doing, steps: Sequence[StepOutcome]) -> State:
    rows, blocked, left_out = doing.rows, doing.blocked, doing.left_out
    states = {step.state for step in steps}
    if "failed" in states:
        of_rows = any(step.kind == "sql" for step in doing.plan.steps)
        return "partly" if rows or (not of_rows and "done" in states) else "failed"
    if "stopped" in states:
        return "stopped"
    if not rows and not blocked and any(step.kind == "sql" for step in doing.plan.steps):
        return "cancelled"
    return "partly" if blocked or left_out or doing.ends_here else "done"


def _done(plan: Plan, rows: int, steps: Sequence[StepOutcome]) -> str:
    if plan.verb in ("pause", "resume"):
        return f"{plan.role} is {plan.verb}d" if rows else f"{plan.role} was {plan.verb}d already"
    if plan.verb in _DONE and (rows or any(step.kind == "sql" for step in plan.steps)):
        return f"{_DONE[plan.verb]} {words.jobs_word(Count(rows))}"
    done = sum(step.state == "done" for step in steps)
    if done == len(plan.steps) == 1:
        return steps[0].text or plan.title
    return f"{plan.title}: {done} of {len(plan.steps)} steps done"
