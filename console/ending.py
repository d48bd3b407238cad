"""How a task is ended for certain."""

from __future__ import annotations

import asyncio
from typing import Any

_TIDIES = 3.0  # seconds


async def end(task: asyncio.Task[Any], tidies: float = _TIDIES) -> None:
    """Cancel a task, and again each time it has not ended `tidies` seconds later; what it raised is left in it.

    One cancellation is not always enough: asyncio.wait_for of Python 3.11 loses the one that comes in the moment in
    which what it waits for is there, and a library may hold another one back.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=tidies)
    if not task.cancelled():
        task.exception()  # looked at: it is not told of as forgotten
