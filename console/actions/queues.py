"""Pausing and resuming a role: the queue's own switch."""

from __future__ import annotations

import time

from console.actions import words
from console.actions.draft import joined, plan_id, rows_of
from console.actions.gates import Gates
from console.config import Config
from console.fleet.plan import Consent, Plan, QueueVerb, Step
from console.queue.writer import QueueWriter


async def queue_plan(config: Config, queue: QueueWriter, gates: Gates, verb: QueueVerb, role: str, why: str) -> Plan:
    """The plan that pauses or resumes the queues of a role. QueueError, ConfigError."""
    now = time.time()
    queues, _ = rows_of(config, role)
    await queue.ready()
    gate = await gates.of(verb)
    changed: tuple[str, ...] = queues
    if not queue.refusal(verb):
        paused = await queue.paused()
        changed = tuple(name for name in queues if (name in paused) != (verb == "pause"))
    others = sorted({one.name for one in config.roles if one.name != role and set(one.queues) & set(changed)})
    names = ", ".join(changed)
    done = "give out no job of" if verb == "pause" else "give out jobs of"
    statements = queue.pause_statements(changed, verb == "pause") if changed else ()
    refused = gate
    if refused is None and not changed:
        refused = Consent(
            kind="refused", empty=True, why=(f"{role} is {'paused already' if verb == 'pause' else 'not paused'}",)
        )
    steps = (
        Step(
            kind="sql",
            title=f"{done} {names}",
            statement=joined(statements) if statements else None,
            queues=changed,
            undo=f"worktop {'resume' if verb == 'pause' else 'pause'} --role {role}",
        ),
    )
    return Plan(
        id=plan_id(now),
        made=now,
        verb=verb,
        title=f"{verb.capitalize()} {role}",
        role=role,
        risk="medium" if verb == "pause" else "low",
        reasons=("workers finish what they have; nothing new is claimed until it is resumed",)
        if verb == "pause"
        else ("idle workers are woken",),
        warnings=tuple(f"role {other} takes its jobs from the same queue" for other in others),
        steps=steps if changed else (),
        command=words.command(verb, role=role),
        psql=words.by_hand(statements),
        consent=refused or Consent(),
        why=why,
    )
