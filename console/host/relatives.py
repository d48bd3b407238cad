"""Who descends from whom among processes, and which of a worker's processes is its main one."""

from __future__ import annotations

from console.fleet.model import Process
from console.host import procfs


def ancestors_of(pid: int, stats: dict[int, procfs.Stat]) -> list[int]:
    """Parent first, up to pid 1; a parent that started later than its child is a reused pid."""
    found: list[int] = []
    seen = {pid}
    current = stats.get(pid)
    while current is not None and current.ppid > 0 and current.ppid not in seen and len(found) < 64:
        parent = stats.get(current.ppid)
        if parent is None or parent.start > current.start:
            break
        found.append(parent.pid)
        seen.add(parent.pid)
        current = parent
    return found


def helpers_of(built: dict[int, Process]) -> set[int]:
    """The pids that are not the main process of their worker.

    Of processes with a role: those below another of the same role and owner. Of processes that only their unit's
    cgroup holds: those below another of the unit, and those above one that has a role.
    """
    helpers: set[int] = set()
    for pid, process in built.items():
        for ancestor in process.ancestors:
            above = built.get(ancestor.pid)
            if above is None or _origin(above) != _origin(process):
                continue
            if process.role and not above.role:
                helpers.add(above.ident.pid)
            elif process.role == above.role or not process.role:
                helpers.add(pid)
    return helpers


def _origin(process: Process) -> tuple[str, str, str]:
    return process.owner.kind, process.owner.name, process.unit
