"""Process trees: of one control group, and of the whole host under the owners of their roots."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

import msgspec

from console.fleet.model import HostDetail, Ident, Owner, TreeProcess
from console.fleet.ownership import CRON_UNITS, AncestorFacts, ProcessFacts, owner_of
from console.host import procfs
from console.host.processes import SLICE_SECONDS, Scanner
from console.host.relatives import ancestors_of
from console.host.secrets import masked_command

T = TypeVar("T")

AT_MOST = 400  # processes that are told
_FRESH = 2.5  # seconds: a pass this young need not be done again
_KTHREADD = 2


async def tree_of_group(scanner: Scanner, cgroup: str) -> tuple[TreeProcess, ...]:
    """The processes of a control group and of those below it, parents before their children."""
    if not cgroup or cgroup == "/":
        return ()
    await look(scanner)
    inside = {
        pid
        for pid, known in scanner.known.items()
        if pid in scanner.stats
        and known.cgroup is not None
        and (known.cgroup == cgroup or known.cgroup.startswith(cgroup + "/"))
    }
    roots = sorted(pid for pid in inside if scanner.stats[pid].ppid not in inside)
    children = _children(scanner, inside)
    rows = [_row(scanner, pid, depth) for root in roots for pid, depth in _walk(root, children)]
    return tuple(rows[:AT_MOST])


async def trees_of_host(scanner: Scanner) -> HostDetail:
    """Every process but the kernel's threads. A root is a process that somebody else than its parent's owner owns.

    Owners come by the memory of all they own, and their trees by the memory of the tree, biggest first. Rows of depth
    0 carry the evidence of the owner, those below name it only.
    """
    await look(scanner)
    stats = scanner.stats
    pids = {pid for pid, stat in stats.items() if _KTHREADD not in (pid, stat.ppid) or stats[1].name == "kthreadd"}
    owners: dict[int, Owner] = {}
    async for pid in in_slices(sorted(pids)):
        owners[pid] = owner_in(scanner, pid)
    roots = [pid for pid in owners if _is_root(scanner, pid, owners)]
    children = _children(scanner, set(owners) - set(roots))
    sizes: dict[int, int] = {}
    groups: dict[tuple[str, str], list[int]] = {}
    trees: dict[int, list[tuple[int, int]]] = {}
    async for root in in_slices(roots):
        trees[root] = list(_walk(root, children))
        sizes[root] = sum(stats[pid].rss for pid, _ in trees[root])
        groups.setdefault(_key(owners[root]), []).append(root)
    order = sorted(groups.values(), key=lambda members: -sum(sizes[root] for root in members))
    rows: list[TreeProcess] = []
    wanted = [
        (root, pid, depth)
        for members in order
        for root in sorted(members, key=lambda root: (-sizes[root], root))
        for pid, depth in trees[root]
    ]
    async for root, pid, depth in in_slices(wanted[:AT_MOST]):
        owner = owners[root]
        rows.append(_row(scanner, pid, depth, owner if depth == 0 else msgspec.structs.replace(owner, evidence=())))
    return HostDetail(trees=tuple(rows), cut=max(0, len(wanted) - AT_MOST))


async def look(scanner: Scanner) -> None:
    """Read /proc, unless that was done a moment ago."""
    if time.monotonic() - scanner.read_at > _FRESH or not scanner.known:
        for _ in scanner.read(time.monotonic()):
            await asyncio.sleep(0)


async def in_slices(items: Iterable[T]) -> AsyncIterator[T]:
    """The items, with a turn of the event loop after every SLICE_SECONDS."""
    until = time.monotonic() + SLICE_SECONDS
    for item in items:
        if time.monotonic() > until:
            await asyncio.sleep(0)
            until = time.monotonic() + SLICE_SECONDS
        yield item


def _children(scanner: Scanner, pids: set[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for pid in sorted(pids):
        found.setdefault(scanner.stats[pid].ppid, []).append(pid)
    return found


def _walk(root: int, children: dict[int, list[int]]) -> Iterable[tuple[int, int]]:
    """(pid, depth) of a tree, parents first."""
    waiting = [(root, 0)]
    seen = {root}
    while waiting:
        pid, depth = waiting.pop()
        yield pid, depth
        below = [child for child in children.get(pid, ()) if child not in seen]
        seen.update(below)
        waiting += [(child, depth + 1) for child in reversed(below)]


def _is_root(scanner: Scanner, pid: int, owners: dict[int, Owner]) -> bool:
    parent = scanner.stats[pid].ppid
    above = scanner.stats.get(parent)
    if parent not in owners or above is None or above.start > scanner.stats[pid].start or parent == 1:
        return True
    return _key(owners[parent]) != _key(owners[pid])


def _key(owner: Owner) -> tuple[str, str]:
    return owner.kind, owner.name


def owner_in(scanner: Scanner, pid: int) -> Owner:
    """Who owns a process of the scanner's last pass."""
    stat, known = scanner.stats[pid], scanner.known.get(pid)
    if known is None:
        return Owner(kind="unknown", evidence=("it could not be read",))
    if known.unit == "init.scope":
        return Owner(kind="systemd", name="init.scope", evidence=("the manager itself",))
    by_login = not known.unit or known.unit.endswith(".scope") or known.unit in CRON_UNITS
    login = procfs.audit_number(pid, "loginuid") if by_login else None
    facts = ProcessFacts(
        pid=pid,
        ppid=stat.ppid,
        uid=known.uid,
        user=scanner.account(known.uid),
        role=known.role,
        cgroup=known.cgroup,
        ancestors=tuple(
            AncestorFacts(
                pid=above,
                name=scanner.stats[above].name,
                command=scanner.known[above].command if above in scanner.known else (),
            )
            for above in ancestors_of(pid, scanner.stats)
        ),
        session=procfs.audit_number(pid, "sessionid") if by_login else None,
        login_uid=login,
        group=stat.group,
        terminal=stat.tty != 0,
        session_service=scanner.session_service(known.cgroup or "") if by_login else "",
    )
    return owner_of(facts, (), {login: scanner.account(login)} if login is not None else {})


def _row(scanner: Scanner, pid: int, depth: int, owner: Owner | None = None) -> TreeProcess:
    stat, known = scanner.stats[pid], scanner.known.get(pid)
    return TreeProcess(
        ident=Ident(scanner.boot_id, pid, stat.start),
        depth=depth,
        user=scanner.account(known.uid) if known else "",
        name=stat.name,
        command=masked_command(known.command) if known else (),
        state="S" if stat.state == "I" else stat.state,
        rss=stat.rss,
        cpu_seconds=round(stat.ticks / procfs.TICKS, 2),
        started=round(scanner.boot_time + stat.start / procfs.TICKS, 2),
        role=known.role if known else "",
        owner=owner or Owner(kind="unknown"),
    )
