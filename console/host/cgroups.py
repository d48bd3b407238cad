"""Memory and tasks of a control group, from its files: cgroup v2, v1 and hybrid.

systemd's own MemoryCurrent is "[not set]" where the controller cannot be used, and its MemoryMax is accepted all the
same: the group's files are the truth about both. Reading needs no rights.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

ROOT = Path("/sys/fs/cgroup")
_V1_UNLIMITED = 2**62  # memory.limit_in_bytes of an unlimited group is 2^63 less a page


class Usage(NamedTuple):
    """Bytes and tasks of one group; None: not accounted here, or the group is gone."""

    memory: int | None = None
    peak: int | None = None
    limit: int | None = None  # None: no limit, or not readable (then `memory` is None too)
    tasks: int | None = None
    tasks_limit: int | None = None


class Hierarchy:
    """Where the controllers are mounted, found once."""

    def __init__(self, root: Path = ROOT) -> None:
        self.unified = (root / "cgroup.controllers").exists()
        self._memory = root if self.unified else root / "memory"
        self._pids = root if self.unified else root / "pids"

    def usage(self, group: str, before: Usage | None = None) -> Usage:
        """What the files of `group` ("/system.slice/…", as in ControlGroup and /proc/PID/cgroup) say.

        With `before` the limits are taken from there: they change only when somebody changes them.
        """
        if not group.startswith("/") or group == "/" or "/../" in f"{group}/":
            return Usage()
        memory, pids = f"{self._memory}{group}/memory.", f"{self._pids}{group}/pids."
        if self.unified:
            now, peak = _number(memory + "current"), _number(memory + "peak")
        else:
            now, peak = _number(memory + "usage_in_bytes"), _number(memory + "max_usage_in_bytes")
        tasks = _number(pids + "current")
        if before is not None:
            return Usage(now, peak, before.limit, tasks, before.tasks_limit)
        limit = _number(memory + ("max" if self.unified else "limit_in_bytes"))
        if not self.unified and limit is not None and limit >= _V1_UNLIMITED:
            limit = None
        return Usage(now, peak, limit, tasks, _number(pids + "max"))


def _number(path: str) -> int | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return int(os.read(handle, 64))
    except (OSError, ValueError):  # "max" is no number: no limit
        return None
    finally:
        os.close(handle)
