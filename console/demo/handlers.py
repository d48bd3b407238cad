"""What the demo host's workers do with their jobs."""

from __future__ import annotations

import ctypes
import os
import random
import sys
import time
from typing import Protocol

_MEGABYTE = 1024 * 1024


class Job(Protocol):
    """The part of a claimed job that the handlers use."""

    @property
    def payload(self) -> dict[str, object]: ...


def _seconds(job: Job, least: float, most: float) -> float:
    """How long this job takes: its payload's `seconds`, else something between the two."""
    asked = job.payload.get("seconds")
    return float(asked) if isinstance(asked, int | float) else random.uniform(least, most)


def newsletter(job: Job) -> None:
    time.sleep(_seconds(job, 0.4, 1.8))


def resize(job: Job) -> None:
    """Sleeps; with CACHE_MB in the environment it fills a cache of that size first."""
    allocate(int(os.environ.get("CACHE_MB", "0")))
    time.sleep(_seconds(job, 2.0, 6.0))


def deliver(job: Job) -> None:
    time.sleep(_seconds(job, 2.0, 6.0))


def monthly(job: Job) -> None:
    time.sleep(_seconds(job, 10.0, 25.0))


def daily(job: Job) -> None:
    time.sleep(_seconds(job, 1.0, 2.0))


def allocate(megabytes: int) -> list[bytes]:
    """Memory that is really used: every page is written to."""
    return [b"\xff" * _MEGABYTE for _ in range(megabytes)]


def fail(job: Job) -> None:
    raise RuntimeError("no such customer")


def hang(job: Job) -> None:
    """Never returns and never gives the interpreter's lock back: the whole process stands still, renewals too."""
    sys.setswitchinterval(3600)  # the threads that wait for the lock do not even ask for it
    pause = ctypes.PyDLL(None).pause
    while True:
        pause()


def slow(job: Job) -> None:
    """Alive, with a little CPU, for an hour."""
    until = time.monotonic() + _seconds(job, 3600, 3600)
    while time.monotonic() < until:
        sum(range(250_000))
        time.sleep(0.5)


HANDLERS = {
    "newsletter": newsletter,
    "resize": resize,
    "deliver": deliver,
    "monthly": monthly,
    "daily": daily,
    "csv": hang,
    "fail": fail,
}
SLOW = {"monthly": slow}
