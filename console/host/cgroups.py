"""Memory and tasks of a control group, from its files: cgroup v2, v1 and hybrid.

systemd's own MemoryCurrent is "[not set]" where the controller cannot be used, and its MemoryMax is accepted all the
same: the group's files are the truth about both. Reading needs no rights.
"""

from __future__ import annotations

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

    def usage(self, group: str) -> Usage:
        """What the files of `group` ("/system.slice/…", as in ControlGroup and /proc/PID/cgroup) say."""
        if not group.startswith("/") or group == "/" or ".." in group.split("/"):
            return Usage()
        memory = self._memory / group[1:]
        pids = self._pids / group[1:]
        if self.unified:
            limit = _number(memory / "memory.max")
            now, peak = _number(memory / "memory.current"), _number(memory / "memory.peak")
        else:
            limit = _number(memory / "memory.limit_in_bytes")
            limit = None if limit is None or limit >= _V1_UNLIMITED else limit
            now, peak = _number(memory / "memory.usage_in_bytes"), _number(memory / "memory.max_usage_in_bytes")
        return Usage(now, peak, limit, _number(pids / "pids.current"), _number(pids / "pids.max"))


def _number(path: Path) -> int | None:
    try:
        with path.open("rb", buffering=0) as file:
            return int(file.read(64))
    except (OSError, ValueError):  # "max" is no number: no limit
        return None
