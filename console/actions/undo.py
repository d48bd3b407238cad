"""Undo: rows, units and files go back to what they were, where nobody has changed them since."""

from __future__ import annotations

import time

import msgspec

from console.actions import words
from console.actions.draft import plan_id as new_id
from console.actions.gates import Gates
from console.actions.putback import file_steps, unit_steps
from console.actions.queues import queue_plan
from console.actions.records import Record
from console.actions.steps.doing import no_database
from console.config import Config
from console.fleet.model import Count
from console.fleet.plan import Consent, Plan, Step
from console.host.client import HostClient
from console.queue.writer import QueueWriter
from console.text import ago

_BACK: dict[str, str] = {
    "reclaim": "They are running again by their rows, under their former holders, which do not work on them: "
    "they are stuck until they are reclaimed.",
    "discard": "They are inserted again as they were.",
    "retry": "They are failed again.",
}
_ROW_VERBS_OF_RISK = ("reclaim",)


async def undo_plan(
    record: Record, config: Config, host: HostClient, queue: QueueWriter | None, gates: Gates, why: str
) -> Plan:
    """The plan that restores what a journal holds, or turns a switch back. QueueError, ConfigError."""
    now = time.time()
    undone = record.plan
    if undone.verb in ("pause", "resume"):
        if queue is None:
            raise no_database()
        back = await queue_plan(config, queue, gates, "resume" if undone.verb == "pause" else "pause", undone.role, why)
        return msgspec.structs.replace(
            back, undoes=undone.id, title=f"Undo: {undone.title}", command=f"worktop undo {undone.id}"
        )
    rows = Count(sum(len(images.changes) for images in record.images()))
    refused: list[str] = []
    allow: list[str] = []
    steps: list[Step] = []
    warnings: list[str] = []
    if record.batches:
        steps.append(_row_step(record, rows))
        await _may_restore(record, queue, gates, refused, allow)
    if record.units and not _only_lent(record):
        units = await unit_steps(record, config, host, gates)
        steps += units.steps
        warnings += units.warnings
        refused += units.refused
        allow += units.allow
    if record.files:
        steps += await file_steps(record, host)
    empty = not refused and (record.undone or not steps or not (rows.n or record.units or record.files))
    if empty:
        refused.append(_nothing_to_do(record))
    if record.state == "unsure":
        warnings.append("worktop was cut off while it applied this: what was not changed after all stays as it is")
    if _only_lent(record) and undone.reversible == "partly":
        warnings.append("only the rows go back: what was done to units and processes stays")
    if record.closed:
        warnings.append(f"{record.closed} went on with it: undo that one first")
    return Plan(
        id=new_id(now),
        made=now,
        verb="undo",
        title=f"Undo: {undone.title}",
        role=undone.role,
        risk="low" if undone.verb not in _ROW_VERBS_OF_RISK and not record.units else "medium",
        reversible="no",
        batch=undone.batch,
        undoes=undone.id,
        rows=rows if record.batches else None,
        reasons=(
            f"{record.who.name} applied it {ago(now - record.at)} ago on {record.host}",
            *((_BACK[undone.verb],) if undone.verb in _BACK else ()),
        ),
        warnings=tuple(warnings),
        steps=tuple(steps),
        command=f"worktop undo {undone.id}",
        consent=Consent(kind="refused", empty=empty, why=tuple(refused), allow=tuple(allow)) if refused else Consent(),
        why=why,
    )


def _nothing_to_do(record: Record) -> str:
    if record.undone:
        return "it has been undone already"
    if (record.units and not _only_lent(record)) or record.files:
        return "what it changed is as it was before it"
    return "it has changed nothing that can be put back"


def _only_lent(record: Record) -> bool:
    """Its units were stopped for the sake of rows, and started again: they are not what was to be changed."""
    return bool(record.batches)


def _row_step(record: Record, rows: Count) -> Step:
    text = (
        f"each of {words.jobs_word(rows)} gets back the columns it had, if it still is exactly as "
        f"{record.plan.id} left it, its token too; one that was claimed or changed since is left alone and named"
    )
    return Step(kind="sql", title=f"restore {words.jobs_word(rows)}", text=text, rows=rows)


async def _may_restore(
    record: Record, queue: QueueWriter | None, gates: Gates, refused: list[str], allow: list[str]
) -> None:
    gate = await gates.of("undo")
    if gate is not None:
        refused += gate.why
        allow += gate.allow
    elif queue is not None and (identity := await queue.identity()) != record.identity:
        refused.append(f"the rows are those of {record.identity}, and this is {identity}")
