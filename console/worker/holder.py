"""Who this process is, as the job's row names its holder."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from console.fleet.model import Holder


def this_process(proc: Path = Path("/proc")) -> Holder:
    """This process: host, boot, unit, pid and start, so that a row's holder can be told from a reused pid."""
    return Holder(
        host=socket.gethostname(),
        boot_id=_text(proc / "sys/kernel/random/boot_id").strip(),
        unit=unit_of(_text(proc / "self/cgroup")),
        pid=os.getpid(),
        start=start_ticks(_text(proc / "self/stat")),
    )


def start_ticks(stat: str) -> int | None:
    """Field 22 of /proc/PID/stat, clock ticks since boot; the name before it may hold blanks and parentheses."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 else None


def unit_of(cgroup: str) -> str:
    """The innermost service or scope in the text of /proc/PID/cgroup, "" when there is none.

    The hierarchy of systemd is `name=systemd` (v1, hybrid) or `0::` (v2); a leading `_` is systemd's escape.
    """
    paths = {controllers: path for _, controllers, path in (line.split(":", 2) for line in cgroup.splitlines() if line)}
    parts = (paths.get("name=systemd") or paths.get("") or "").split("/")
    units = [part.removeprefix("_") for part in parts if part.endswith((".service", ".scope"))]
    return units[-1] if units else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
