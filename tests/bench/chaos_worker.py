"""The workers of chaos.py, in a module of its own: the process that forks them imports it once."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

from console.config import Database
from console.worker.handlers import ClaimedJob
from console.worker.worker import Options, run

LEASE = 4.0  # seconds


def _work(job: ClaimedJob) -> None:
    time.sleep(random.uniform(0.0, 0.02))
    with Path(os.environ["CHAOS_EFFECTS"]).open("a") as effects:
        effects.write(f"{job.id}\n")


def _fail(job: ClaimedJob) -> None:
    raise RuntimeError("this job always fails")


HANDLERS = {"work": _work, "fail": _fail}


def worker(dsn: str, log: str, effects: str) -> None:
    os.environ["CHAOS_EFFECTS"] = effects
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(out, 1)
    os.dup2(out, 2)
    options = Options(role="chaos", queues=("chaos",), lease=LEASE, poll=0.5, concurrency=8, drain_timeout=10.0)
    sys.exit(run(options, HANDLERS, Database(dsn=dsn, configured=True)))
