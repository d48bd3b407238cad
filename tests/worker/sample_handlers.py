"""Handlers for the worker tests; they run in real worker processes."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from console.worker.handlers import ClaimedJob


def record(job: ClaimedJob) -> None:
    """Append "id pid" to the file that the payload names: one write, so that processes do not mix."""
    with Path(job.payload["file"]).open("a") as file:
        file.write(f"{job.id} {os.getpid()}\n")


def sleep(job: ClaimedJob) -> None:
    time.sleep(job.payload["seconds"])


async def sleep_async(job: ClaimedJob) -> None:
    await asyncio.sleep(job.payload["seconds"])


def fail(job: ClaimedJob) -> None:
    # neither NUL nor half a surrogate pair can be stored as text
    raise ValueError("\0\ud800" + job.payload.get("text", "told to fail"))


def leave(job: ClaimedJob) -> None:
    raise SystemExit("a handler must not end the worker")


async def leave_async(job: ClaimedJob) -> None:
    raise SystemExit("nor an async one")


HANDLERS = {
    "record": record,
    "sleep": sleep,
    "sleep-async": sleep_async,
    "fail": fail,
    "leave": leave,
    "leave-async": leave_async,
}
EMPTY: dict[str, object] = {}
NOT_CALLABLE = {"x": 1}
