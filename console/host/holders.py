"""Who has a pid now: the holders of running jobs are asked for by number."""

from __future__ import annotations

import os
from collections.abc import Iterable

from console.fleet.model import PidState
from console.host import procfs


def look_up(pids: Iterable[int]) -> tuple[tuple[PidState, ...], int]:
    """Who has each pid now, and a pid that exists but is hidden (hidepid), 0 for none.

    A zombie has ended: it holds nothing any more, so its pid counts as free.
    """
    states: list[PidState] = []
    for pid in pids:
        stat = procfs.stat(pid)
        if stat is None and pid > 0 and procfs.hidden():
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                pass
            except PermissionError:
                return (), pid
        alive = stat is not None and stat.state not in ("Z", "X")
        states.append(
            PidState(pid=pid, start=stat.start, name=stat.name) if stat is not None and alive else PidState(pid=pid)
        )
    return tuple(states), 0
