"""How far a run has come, as its journal says it."""

from __future__ import annotations

from console.playbook.journal import Record
from console.playbook.model import Playbook, RunStatus, StepState, StepStatus
from console.playbook.settings import filled_text


def status_of(record: Record, book: Playbook, held: str = "") -> RunStatus:
    """`held`: who runs it at this moment."""
    head, end = record.head, record.end
    steps: list[StepStatus] = []
    reached = False
    for step in book.steps:
        ended = record.steps.get(step.number)
        plans = record.plans_of(step.number)
        state: StepState = ended.state if ended is not None else "open"
        if state not in ("done", "skipped") and not reached:
            reached = True
            if end is None and state == "open":
                waits = any(number == step.number for number, _ in record.waiting)
                state = "waits" if waits else "now"
        steps.append(
            StepStatus(
                number=step.number,
                title=filled_text(step.title, record.values),
                state=state,
                text=ended.text if ended is not None else "",
                evidence=ended.evidence if ended is not None else (),
                plans=plans,
                at=ended.at if ended is not None else None,
            )
        )
    deadlines = [each.until.wall for each in record.waiting.values()] if end is None else []
    return RunStatus(
        run=head.run,
        playbook=head.playbook,
        title=head.title,
        role=str(record.values.get("role", "")),
        values=record.values,
        state=end.state if end is not None else "open",
        steps=tuple(steps),
        at=head.at,
        who=head.who,
        host=head.host,
        held=held,
        waits_until=max(deadlines, default=None),
        report=end.report if end is not None else "",
    )
