"""Undo: rows go back to what they were where nobody has changed them since."""

from __future__ import annotations

import time

import msgspec

from console.actions import words
from console.actions.draft import plan_id as new_id
from console.actions.gates import Gates
from console.actions.journal import Record
from console.actions.queues import queue_plan
from console.config import Config
from console.fleet.model import Count
from console.fleet.plan import Consent, Plan, Step
from console.queue.writer import QueueWriter
from console.text import ago

_BACK: dict[str, str] = {
    "reclaim": "They are running again by their rows, under their former holders, which do not work on them: "
    "they are stuck until they are reclaimed.",
    "discard": "They are inserted again as they were.",
    "retry": "They are failed again.",
}


async def undo_plan(record: Record, config: Config, queue: QueueWriter, gates: Gates, why: str) -> Plan:
    """The plan that restores the rows of a journal, or turns a switch back. QueueError, ConfigError."""
    now = time.time()
    undone = record.plan
    if undone.verb in ("pause", "resume"):
        back = await queue_plan(config, queue, gates, "resume" if undone.verb == "pause" else "pause", undone.role, why)
        return msgspec.structs.replace(
            back, undoes=undone.id, title=f"Undo: {undone.title}", command=f"worktop undo {undone.id}"
        )
    rows = sum(len(images.changes) for images in record.images())
    refused: list[str] = []
    allow: list[str] = []
    gate = await gates.of("undo")
    if gate is not None:
        refused, allow = list(gate.why), list(gate.allow)
    elif (identity := await queue.identity()) != record.identity:
        refused.append(f"the rows are those of {record.identity}, and this is {identity}")
    empty = not refused and (record.undone or not rows)
    if empty:
        refused.append("it has been undone already" if record.undone else "it changed no row")
    warnings = []
    if record.state == "unsure":
        warnings.append(
            "worktop was cut off while it applied this: rows that were not changed after all stay as they are"
        )
    if record.plan.reversible == "partly":
        warnings.append("only the rows go back: what was done to units and processes stays")
    count = Count(rows)
    text = (
        f"each of {words.jobs_word(count)} gets back the columns it had, if it still is exactly as "
        f"{undone.id} left it, its token too; one that was claimed or changed since is left alone and named"
    )
    return Plan(
        id=new_id(now),
        made=now,
        verb="undo",
        title=f"Undo: {undone.title}",
        role=undone.role,
        risk="low" if undone.verb not in ("reclaim",) else "medium",
        reversible="no",
        batch=undone.batch,
        undoes=undone.id,
        rows=count,
        reasons=(
            f"{record.who.name} applied it {ago(now - record.at)} ago on {record.host}",
            *((_BACK[undone.verb],) if undone.verb in _BACK else ()),
        ),
        warnings=tuple(warnings),
        steps=(Step(kind="sql", title=f"restore {words.jobs_word(count)}", text=text, rows=count),),
        command=f"worktop undo {undone.id}",
        consent=Consent(kind="refused", empty=empty, why=tuple(refused), allow=tuple(allow)) if refused else Consent(),
        why=why,
    )
