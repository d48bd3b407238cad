"""The live processes with what tells which schedule they came from."""

from __future__ import annotations

import re

from console.fleet.model import Owner
from console.fleet.ownership import CRON_NAMES
from console.host import procfs
from console.host.processes import Scanner
from console.host.relatives import ancestors_of
from console.host.trees import in_slices, look, owner_in
from console.schedules.alive import Seen
from console.schedules.commands import is_shell_text
from console.schedules.model import LiveProcess

_KTHREADD = 2
_PEAK = re.compile(rb"^VmHWM:\s+(\d+) kB", re.MULTILINE)


async def living(scanner: Scanner) -> tuple[Seen, ...]:
    """Every process but the kernel's threads, with its owner."""
    await look(scanner)
    texts = {pid: text for pid in scanner.known if (text := _line_of(scanner, pid))}
    found: list[Seen] = []
    async for pid, stat in in_slices(sorted(scanner.stats.items())):
        known = scanner.known.get(pid)
        if known is None or not known.command or _KTHREADD in (pid, stat.ppid):
            continue
        owner = owner_in(scanner, pid)
        above = (pid, *ancestors_of(pid, scanner.stats))
        found.append(
            Seen(
                pid=pid,
                started=round(scanner.boot_time + stat.start / procfs.TICKS, 2),
                argv=known.command,
                user=scanner.account(known.uid),
                owner=owner,
                session=procfs.audit_number(pid, "sessionid") if owner.kind == "cron" else None,
                group=stat.group,
                lines=tuple(texts[each] for each in above if each in texts),
            )
        )
    return tuple(found)


def told(seen: Seen, now: float) -> LiveProcess:
    """A process as the classification wants it."""
    status = procfs.read_bytes(f"{procfs.PROC}/{seen.pid}/status") or b""
    peak = _PEAK.search(status)
    return LiveProcess(
        pid=seen.pid,
        argv=seen.argv,
        user=seen.user,
        age=max(0.0, now - seen.started),
        owner=owner_words(seen.owner),
        folder=procfs.folder(seen.pid),
        peak=int(peak[1]) * 1024 if peak else 0,
    )


def owner_words(owner: Owner) -> str:
    if owner.kind == "cron":
        return owner.detail or f"crontab of {owner.name}"
    return owner.name or owner.kind


def _line_of(scanner: Scanner, pid: int) -> str:
    """The text that cron gave a shell to run; "" for any other process."""
    command = scanner.known[pid].command
    parent = scanner.stats.get(scanner.stats[pid].ppid) if pid in scanner.stats else None
    if parent is None or parent.name not in CRON_NAMES or not is_shell_text(command) or len(command) < 3:
        return ""
    return command[2]
