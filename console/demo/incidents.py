"""Accidents of the demo host, run inside it as root at boot: workers that are really killed in the middle of a job.

    python -m console.demo.incidents

The jobs are in seed.sql, before all others: live workers claim them, and are killed with -9 once they hold them all.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psycopg

from console.demo.fleet import DSN

EARLIER_MINUTES = Path("/etc/cron.d/demo-earlier-minutes")

_HELD = """
    SELECT queue, array_agg(DISTINCT lease_pid) AS holders, bool_and(status = 'running') AS all_held
    FROM worktop_jobs WHERE status IN ('waiting', 'running') AND priority = 100 AND payload @> '{"accident": true}'
    GROUP BY queue
"""


def main(timeout: float = 60.0) -> None:
    if not EARLIER_MINUTES.exists():
        return  # they have happened before a reboot: the holders of these jobs are other processes now
    deadline = time.monotonic() + timeout
    over: set[str] = set()
    with psycopg.connect(DSN, autocommit=True) as database:
        while True:
            accidents = database.execute(_HELD).fetchall()
            for queue, holders, all_held in accidents:
                if all_held and queue not in over:
                    for pid in holders:
                        os.kill(pid, signal.SIGKILL)
                    over.add(queue)
            left = sorted(queue for queue, _, _ in accidents if queue not in over)
            if not left:
                break
            if time.monotonic() > deadline:
                raise SystemExit(f"no worker took the jobs of {', '.join(left)} in {timeout:.0f} s")
            time.sleep(0.1)
    EARLIER_MINUTES.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
