"""Rows of the statements in reads.py as values."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from console.fleet.model import Count, Holder, Job, QueueCounts
from console.queue.preset import Preset

COUNT_CAP = 10_000  # a count goes no further
RATE_MINUTES = 5  # rates are over this time

JOB_COLUMNS = (
    "id", "queue", "type", "state", "attempts", "max_attempts", "reclaims", "priority",
    "run_after", "created", "started", "finished", "lease_expires", "heartbeat",
    "overdue", "heartbeat_age", "running_for", "waiting_for", "token", "error",
)  # fmt: skip
HOLDER_COLUMNS = ("host", "unit", "pid", "start", "boot_id", "text", "worker", "pruned")
# what is counted, and grows with the number of rows
COUNTED = ("waiting", "scheduled", "running", "stuck", "failed", "done_recently", "failed_recently", "done")
# one index entry each, but where a type is looked for that is rare
AGES = ("oldest_waiting", "last_finished")
COUNT_COLUMNS = (*COUNTED, *AGES)


def job_of(row: Sequence[Any], preset: Preset) -> Job:
    """A job from a row of `running`, `page` or `job`."""
    columns = dict(zip(JOB_COLUMNS, row, strict=False))
    held = row[len(JOB_COLUMNS) : len(JOB_COLUMNS) + len(HOLDER_COLUMNS)]
    known = {name: value for name, value in columns.items() if value is not None}
    return Job(**known, holder=holder_of(held, preset))


def holder_of(values: Sequence[str | None], preset: Preset) -> Holder | None:
    """Who holds the job; None when the row does not say."""
    parts = {name: value for name, value in zip(HOLDER_COLUMNS, values, strict=True) if value}
    if preset.holder.kind == "text" and "text" in parts and (found := re.search(preset.holder.pattern, parts["text"])):
        parts |= {name: value for name, value in found.groupdict().items() if value}
    pruned = parts.pop("pruned", "") == "true"
    if not parts and not pruned:
        return None
    numbers = {name: int(value) for name in ("pid", "start") if (value := parts.pop(name, "")).isdigit()}
    return Holder(
        host=parts.get("host", ""),
        unit=parts.get("unit", ""),
        boot_id=parts.get("boot_id", ""),
        text=parts.get("text", ""),
        pid=numbers.get("pid"),
        start=numbers.get("start"),
        worker=parts.get("worker", ""),
        pruned=pruned,
    )


def counts_of(found: Mapping[str, Any], queue: str, types: tuple[str, ...], done: Count | None) -> QueueCounts:
    """One queue from the values of COUNT_COLUMNS."""
    rates = {name: found[f"{name}_recently"] for name in ("done", "failed")}
    return QueueCounts(
        queue=queue,
        types=types,
        waiting=count_of(found["waiting"]),
        scheduled=count_of(found["scheduled"]),
        running=count_of(found["running"]),
        stuck=count_of(found["stuck"]),
        failed=count_of(found["failed"]),
        done=done,
        oldest_waiting=found["oldest_waiting"],
        done_per_minute=None if rates["done"] is None else rates["done"][0] / RATE_MINUTES,
        failed_per_minute=None if rates["failed"] is None else rates["failed"][0] / RATE_MINUTES,
        last_finished=found["last_finished"],
        ends_told=rates["done"] is not None,
    )


def with_paused(counts: QueueCounts, paused: Collection[str]) -> QueueCounts:
    """The counts of a queue, which is among those that give out no job, or is not."""
    return msgspec.structs.replace(counts, paused=(counts.queue,)) if counts.queue in paused else counts


def count_of(counted: Sequence[int]) -> Count:
    """From how many rows count, and how many were looked at, up to COUNT_CAP + 1."""
    number, seen = counted
    return Count(number) if seen <= COUNT_CAP else Count(min(number, COUNT_CAP), "at-least")
