"""How a step is taken back: its plans undone, the last first; or as its action, or the playbook, says."""

from __future__ import annotations

from collections.abc import Sequence

from console.errors import RefusedError
from console.fleet.plan import Outcome, Plan
from console.playbook.kinds import Given
from console.playbook.model import PlaybookStep
from console.playbook.showing import Tools, inputs_for, refusal


async def undoing(
    tools: Tools, step: PlaybookStep, given: Given, plans: Sequence[str]
) -> tuple[tuple[Plan, ...], bool]:
    """The plans that take it back, in order, and whether more are to be asked for after them. `plans`: those it has
    applied. WorktopError: they cannot be made."""
    inverse, actions = step.inverse, tools.registry.actions
    named = inverse.kind == "action"
    by = actions[inverse.action] if named else actions.get(step.action)
    way = None if by is None else by.plan if named else by.back
    if by is not None and way is not None:
        shown = await way(given, inputs_for(by, inverse.inputs if named else step.inputs, given.values))
        if shown.refused:
            raise RefusedError(f"take back step {step.number}", "; ".join(shown.refused))
        found = [shown.plan] if shown.plan is not None else []
        more = shown.more
    else:
        found, more = [await tools.actions.plan_undo(plan) for plan in reversed(plans)], False
    stands_against = [each for plan in found if not plan.consent.empty for each in refusal(plan)]
    if stands_against:
        raise RefusedError(f"take back step {step.number}", "; ".join(stands_against))
    todo = tuple(plan for plan in found if not plan.consent.empty)
    return todo, more and bool(todo)


async def differs_from_before(tools: Tools, step: PlaybookStep, plans: Sequence[str]) -> tuple[str, ...]:
    """What the plans of the step have left otherwise than it was, where undoing them is the way back."""
    action = tools.registry.actions.get(step.action)
    if step.inverse.kind != "undo" or action is None or action.back is not None:
        return ()
    found: list[str] = []
    for plan in plans:
        if tools.actions.became(plan).fate != "never":
            found += await tools.actions.not_as_before(plan)
    return tuple(found)


def went_on(outcome: Outcome) -> bool:
    """All was tried, and what is not as it was are rows that somebody has changed since: trying again is in vain."""
    return outcome.state == "partly" and bool(outcome.blocked) and all(step.state != "failed" for step in outcome.steps)
