"""How a role stands: who runs its workers, how many, and what becomes of its jobs; in words. Pure."""

from __future__ import annotations

from collections import Counter

from console.fleet.choices import is_up
from console.fleet.model import Owner, RoleStatus, Worker
from console.playbook.model import Snapshot
from console.text import grouped, size


def lives(worker: Worker) -> bool:
    """It has a process, or systemd is about to give it one."""
    return is_up(worker) or (worker.unit is None and bool(worker.processes))


def owner_name(worker: Worker) -> str:
    """ "mail-worker@.service", "crontab of deploy, line 4"."""
    if worker.unit is not None:
        return worker.unit.template or worker.unit.name
    return named(worker.owner)


def named(owner: Owner) -> str:
    if owner.kind == "unknown":
        return "nobody known"
    return owner.detail or f"{owner.kind} {owner.name}".strip()


def snapshot(status: RoleStatus, now: float) -> Snapshot:
    alive = [worker for worker in status.workers if lives(worker)]
    queue = status.queue
    return Snapshot(
        at=now,
        owners=tuple(Counter(owner_name(worker) for worker in alive).most_common()),
        workers=tuple(_worker(worker) for worker in alive),
        memory=status.memory,
        waiting=queue.waiting.n if queue is not None else None,
        running=queue.running.n if queue is not None else None,
        stuck=status.stuck,
        failed=queue.failed.n if queue is not None else None,
        done_per_minute=queue.done_per_minute if queue is not None else None,
    )


def sentences(role: str, seen: Snapshot) -> tuple[str, ...]:
    """Who runs it, and its jobs."""
    total = sum(count for _, count in seen.owners)
    if not total:
        who = f"nobody runs {role} now: its jobs wait"
    else:
        parts = ", ".join(f"{count} by {owner}" for owner, count in seen.owners)
        who = f"{role} has {total} worker{'' if total == 1 else 's'}: {parts}"
        if len(seen.owners) > 1:
            who += f" ({len(seen.owners)} owners)"
    return (who, *([f"of its jobs {jobs(seen)}"] if seen.waiting is not None else []))


def jobs(seen: Snapshot) -> str:
    """ "1 204 wait, 7 run, 2 of them stuck, 0 have failed"."""
    told = [_so_many(seen.waiting or 0, "wait", "waits"), _so_many(seen.running or 0, "run", "runs")]
    if seen.stuck:
        told.append(_so_many(seen.stuck, "are stuck", "is stuck"))
    if seen.failed:
        told.append(_so_many(seen.failed, "have failed", "has failed"))
    return ", ".join(told)


def _so_many(count: int, they: str, it: str) -> str:
    return f"{grouped(count)} {it if count == 1 else they}"


def _worker(worker: Worker) -> str:
    pid = worker.processes[0].ident.pid if worker.processes else 0
    told = f"{worker.key if worker.unit is not None else f'pid {pid}'}: {worker.state}, {owner_name(worker)}"
    return told + (f", {size(worker.memory)}" if worker.memory is not None else "")
