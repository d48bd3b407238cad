"""Timers run instead of crontab lines."""

from __future__ import annotations

from console.playbook.kinds import Action, Given, Inputs
from console.playbook.model import Shown
from console.playbook.settings import Input


async def _on(given: Given, inputs: Inputs) -> Shown:
    return Shown(plan=await given.actions.plan_timers(inputs.texts("units"), on=True))


async def _off(given: Given, inputs: Inputs) -> Shown:
    return Shown(plan=await given.actions.plan_timers(inputs.texts("units"), on=False))


TIMER = Action(
    "timer",
    "timers run, now and at boot",
    _on,
    {"units": Input(kind="texts", required=True, about="names of timers")},
    back=_off,
)
