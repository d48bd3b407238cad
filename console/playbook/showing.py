"""What a step would do here and now: prose, inputs and plan filled with this host's facts. Nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from console.actions.desk import Actions
from console.config import Config
from console.errors import ConfigError, WorktopError
from console.fleet.plan import Consent, Plan
from console.host.client import HostClient
from console.playbook.clock import Clock
from console.playbook.kinds import Action, Check, Given, Inputs, Registry
from console.playbook.looking import look
from console.playbook.model import Checked, Condition, PlaybookStep, Setting, Settings, Shown, StepView
from console.playbook.settings import Input, filled, filled_text
from console.playbook.standing import sentences, snapshot
from console.queue.client import QueueClient

ROLE = "role"


class Tools(NamedTuple):
    """What runs act with."""

    actions: Actions
    config: Config
    host: HostClient
    reader: QueueClient | None
    registry: Registry
    clock: Clock


def in_words(step: PlaybookStep, values: Mapping[str, Setting]) -> PlaybookStep:
    """The step with its texts filled."""
    return msgspec.structs.replace(
        step,
        title=filled_text(step.title, values),
        prose=filled_text(step.prose, values),
        stop=filled_text(step.stop, values),
    )


def inputs_for(word: Action | Check, settings: Settings, values: Mapping[str, Setting]) -> Inputs:
    """The inputs of a step; the role of the run is given where it takes one. ConfigError: a value is not known."""
    return Inputs(filled(_with_role(word.inputs, settings), values))


def _with_role(takes: Mapping[str, Input], settings: Settings) -> Settings:
    return {ROLE: "{role}", **settings} if ROLE in takes else settings


async def show(
    tools: Tools, given: Given, step: PlaybookStep, *, begun: bool, planned: Shown | None = None
) -> StepView:
    """`begun`: something of it has been done, so that what must hold before may not hold any more. `planned`: what is
    to be shown in place of what its action says."""
    values = given.values
    told = in_words(step, values)
    before = () if begun else await conditions(tools, given, step.before)
    problem = next((each.seen.text for each in before if each.seen.state != "holds"), "")
    shown = planned
    if step.action and shown is None:
        try:
            action = tools.registry.actions[step.action]
            shown = await action.plan(given, inputs_for(action, step.inputs, values))
        except WorktopError as error:
            problem = problem or error.problem.line()
    shown = emptied(shown)
    if shown is not None and not problem:
        problem = "; ".join(shown.refused or refusal(shown.plan))
    return StepView(
        step=told,
        shown=shown,
        problem=problem,
        before=before,
        standing=await standing(given),
        back=_way_back(tools, step),
    )


async def conditions(tools: Tools, given: Given, wanted: Sequence[Condition]) -> tuple[Checked, ...]:
    """Each looked at once."""
    found = []
    for condition in wanted:
        check = tools.registry.checks[condition.check]
        try:
            inputs = inputs_for(check, condition.inputs, given.values)
            seen = await look(check, given, inputs, await check.begin(given, inputs))
        except WorktopError as error:
            raise ConfigError(f"check {condition.check}", error.problem.line()) from None
        found.append(Checked(check=condition.check, seen=seen))
    return tuple(found)


def emptied(shown: Shown | None) -> Shown | None:
    """A plan that finds nothing to do is none: the step is done as it is."""
    if shown is None or shown.plan is None or not shown.plan.consent.empty:
        return shown
    return msgspec.structs.replace(shown, plan=None, nothing=shown.nothing or "; ".join(shown.plan.consent.why))


def refusal(plan: Plan | None) -> tuple[str, ...]:
    consent = plan.consent if plan is not None else Consent()
    return (*consent.why, *consent.allow) if consent.kind == "refused" else ()


async def standing(given: Given) -> tuple[str, ...]:
    """How the role stands, or why that is not known."""
    if not given.role:
        return ()
    try:
        return sentences(given.role, snapshot(await given.status(), given.now()))
    except WorktopError as error:
        return (f"how {given.role} stands is not known: {error.problem.line()}",)


def _way_back(tools: Tools, step: PlaybookStep) -> str:
    action = tools.registry.actions.get(step.action)
    if action is None or not action.changes:
        return "it changes nothing"
    inverse = step.inverse
    if inverse.kind == "none":
        return f"it cannot be taken back: {inverse.reason}"
    if inverse.kind == "action":
        return f"it is taken back by {inverse.action}"
    return "what it changes goes back to what it was"
