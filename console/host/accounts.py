"""The host and its accounts: memory, load, and the processes of each account against their limit."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Iterable

from console.fleet.model import Account, Host, Process
from console.host import procfs
from console.host.cgroups import Hierarchy
from console.host.deltas import settle
from console.host.processes import Pass

MEMORY_STEP = 1024 * 1024
MANY = 20  # an account with more processes than this is told of, also without a worker


def host_from(
    scanned: Pass,
    boot_id: str,
    name_of: Callable[[int], str],
    hierarchy: Hierarchy,
    told: Host | None,
) -> Host:
    """The host's numbers now; those that jitter are kept as `told` while they are close to it."""
    memory = meminfo()
    workers = list(scanned.workers.values())
    before = {account.uid: account for account in told.accounts} if told else {}
    return Host(
        name=socket.gethostname(),
        boot_id=boot_id,
        memory_total=memory.get("MemTotal"),
        memory_available=settle(memory.get("MemAvailable"), told.memory_available if told else None, 16 * MEMORY_STEP),
        load=_load(),
        cpus=_cpus(),
        processes=scanned.total,
        accounts=tuple(_accounts(scanned, workers, name_of, hierarchy, before)),
        now=time.time(),
    )


def _accounts(
    scanned: Pass,
    workers: list[Process],
    name_of: Callable[[int], str],
    hierarchy: Hierarchy,
    before: dict[int, Account],
) -> Iterable[Account]:
    of_workers: dict[int, list[Process]] = {}
    for worker in workers:
        of_workers.setdefault(worker.uid, []).append(worker)
    for uid, (count, tasks, memory, sample) in sorted(scanned.accounts.items()):
        if count <= MANY and uid not in of_workers:
            continue
        told = before.get(uid)
        limit, source = _limit(uid, [worker.ident.pid for worker in of_workers.get(uid, ())][:4] or [sample], hierarchy)
        yield Account(
            user=name_of(uid),
            uid=uid,
            processes=count,
            tasks=tasks,
            limit=limit,
            limit_source=source,
            memory=settle(memory, told.memory if told else None, MEMORY_STEP),
        )


def _limit(uid: int, pids: list[int], hierarchy: Hierarchy) -> tuple[int | None, str]:
    """The tightest limit that holds for the account; root is not held by RLIMIT_NPROC (getrlimit(2))."""
    found: list[tuple[int, str]] = []
    if uid != 0:
        found += [(value, "RLIMIT_NPROC") for value in map(procfs.process_limit, pids) if value is not None]
    of_slice = hierarchy.usage(f"/user.slice/user-{uid}.slice").tasks_limit
    if of_slice is not None:
        found.append((of_slice, f"TasksMax of user-{uid}.slice"))
    return min(found) if found else (None, "")


def meminfo() -> dict[str, int]:
    data = procfs.read_bytes(f"{procfs.PROC}/meminfo", 8192) or b""
    pairs = re.findall(rb"^(MemTotal|MemAvailable):\s+(\d+) kB", data, re.MULTILINE)
    return {key.decode(): int(value) * 1024 for key, value in pairs}


def _load() -> tuple[float, float, float] | None:
    try:
        one, five, fifteen = os.getloadavg()
    except OSError:
        return None
    return round(one, 1), round(five, 1), round(fifteen, 1)


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) or 1


def same_but_age(now: Host, told: Host) -> bool:
    """Only the clock and the count of processes that come and go are different."""
    return (
        now.memory_available == told.memory_available
        and now.memory_total == told.memory_total
        and now.load == told.load
        and now.cpus == told.cpus
        and now.accounts == told.accounts
        and abs(now.processes - told.processes) < 3
        and (now.name, now.boot_id) == (told.name, told.boot_id)
    )
