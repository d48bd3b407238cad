"""Rows of the statements in reads.py as values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from console.fleet.model import Count, Holder, Job, QueueCounts
from console.queue.preset import Preset

COUNT_CAP = 10_000  # a count goes no further
RATE_MINUTES = 5  # rates are over this time

JOB_COLUMNS = (
    "id", "queue", "type", "state", "attempts", "max_attempts", "priority",
    "run_after", "created", "started", "finished", "lease_expires", "heartbeat",
    "overdue", "heartbeat_age", "running_for", "waiting_for", "token", "error",
)  # fmt: skip
HOLDER_COLUMNS = ("host", "unit", "pid", "start", "boot_id", "text")
COUNT_COLUMNS = (
    "waiting", "scheduled", "running", "stuck", "failed", "oldest_waiting", "done_recently", "failed_recently",
    "last_finished",
)  # fmt: skip


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
    if not parts:
        return None
    numbers = {name: int(value) for name in ("pid", "start") if (value := parts.pop(name, "")).isdigit()}
    return Holder(
        host=parts.get("host", ""),
        unit=parts.get("unit", ""),
        boot_id=parts.get("boot_id", ""),
        text=parts.get("text", ""),
        pid=numbers.get("pid"),
        start=numbers.get("start"),
    )


def counts_of(row: Sequence[Any], queue: str, types: tuple[str, ...]) -> QueueCounts:
    """One queue from a row of `counts`, without its place and clock."""
    found = dict(zip(COUNT_COLUMNS, row, strict=True))
    rates = {name: found[f"{name}_recently"] for name in ("done", "failed")}
    return QueueCounts(
        queue=queue,
        types=types,
        waiting=_count(found["waiting"]),
        scheduled=_count(found["scheduled"]),
        running=_count(found["running"]),
        stuck=_count(found["stuck"]),
        failed=_count(found["failed"]),
        oldest_waiting=found["oldest_waiting"],
        done_per_minute=None if rates["done"] is None else rates["done"] / RATE_MINUTES,
        failed_per_minute=None if rates["failed"] is None else rates["failed"] / RATE_MINUTES,
        last_finished=found["last_finished"],
    )


def _count(number: int) -> Count:
    return Count(number) if number <= COUNT_CAP else Count(COUNT_CAP, "at-least")
