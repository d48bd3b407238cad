"""A real procrastinate worker; see libraries.py."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import procrastinate

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=os.environ["DSN"]))


@app.task(name="hold", pass_context=True)
async def hold(context: procrastinate.JobContext, until: str = "", fail: str = "") -> None:
    print("begin", context.job.id, context.job.attempts, flush=True)
    while until and not Path(until).exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.02)
    if fail:
        raise RuntimeError(fail)
    print("end", context.job.id, context.job.attempts, flush=True)


async def main() -> None:
    async with app.open_async():
        work = asyncio.create_task(
            app.run_worker_async(install_signal_handlers=False, **json.loads(os.environ["OPTIONS"]))
        )
        print("ready", flush=True)
        await work


asyncio.run(main())
