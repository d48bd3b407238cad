"""What became of a plan whose end worktop did not live to see: asked of the plan's own journal, and noted."""

from __future__ import annotations

from collections.abc import Callable

from console.errors import RefusedError
from console.playbook.journal import Applied, Line, Record
from console.playbook.model import PlaybookStep, Shown
from console.playbook.showing import Tools


async def settled(
    tools: Tools, record: Callable[[], Record], write: Callable[[Line], None], step: PlaybookStep
) -> Shown | None:
    """What is to be shown in place of what the step's action says: what is left of a plan that was cut off, where that
    can be done by itself; that the step was applied already. None: the action is asked. RefusedError: somebody applies
    a plan of the step now."""
    last = record().unsettled(step.number)
    if last is None:
        return _applied_before(record(), step)
    actions = tools.actions
    found = actions.became(last.plan)
    if found.fate == "running":
        raise RefusedError(last.title, f"{found.who} is applying it now", "wait until it has ended")
    if found.fate != "cut-off":
        states = {"never": "refused", "undone": "undone", "closed": "stopped", "ended": found.state}
        text = "it was never begun" if found.fate == "never" else "seen in its journal"
        write(Applied(step.number, last.plan, states[found.fate], text, back=last.back))
        return _applied_before(record(), step)
    rest = None
    if not last.back:
        try:
            rest = await actions.plan_continue(last.plan)
        except RefusedError:  # rows or files: planned anew from what is there now
            rest = None
    if rest is None or rest.consent.empty:
        actions.abandon(last.plan, "the rest is planned anew")
        write(Applied(step.number, last.plan, "stopped", "it was cut off", back=last.back))
        return None
    return Shown(plan=rest, facts=(f"worktop was cut off in this step: {last.title}",), more=last.more)


def _applied_before(record: Record, step: PlaybookStep) -> Shown | None:
    """A plan that was applied is not made again because worktop did not come to verify it."""
    ended = record.steps.get(step.number)
    last = next((each for each in reversed(record.plans) if each.step == step.number and not each.back), None)
    if last is None or last.more or (ended is not None and ended.state == "failed"):
        return None
    applied = record.applied.get(last.plan)
    if applied is None or applied.state != "done":
        return None
    return Shown(nothing=f"it was applied already ({last.plan}): {applied.text}")
