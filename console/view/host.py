"""Pure: the host: memory and load, the accounts against their limits, and its processes as trees by owner."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from datetime import UTC, datetime

import msgspec

from console.fleet.model import Account, Fleet, Host, HostDetail, Limits, Owner, TreeProcess
from console.text import grouped, size
from console.view.cells import Grid, Part, Tone, cell, part_columns, safe
from console.view.glyphs import Glyphs
from console.view.jobs import lasted
from console.view.listing import ListColumn, Look, Parts, list_grid, matches, words_of

_NEAR = 0.8  # of a limit: worth a look
_FULL = 0.95
_BAR = 10
_INDENT_AT_MOST = 12  # levels


def _toned(share: float) -> Tone:
    return "bad" if share >= _FULL else "warn" if share >= _NEAR else "ok"


def bar(share: float, width: int, glyphs: Glyphs) -> Part:
    """How much of something is used, as `width` columns."""
    filled = round(min(1.0, max(0.0, share)) * width)
    full, empty = ("█", "░") if glyphs.unicode else ("#", ".")
    return full * filled + empty * (width - filled), _toned(share)


# --- the whole host ------------------------------------------------------------------------------------------------


def host_lines(fleet: Fleet | None, width: int, glyphs: Glyphs) -> tuple[tuple[Part, ...], ...]:
    """Memory, load and processes of the host; one line where they fit side by side, else two."""
    host = fleet.host if fleet is not None else None
    if host is None or fleet is None:
        return (cell((("the host has not said anything yet", "dim"),), width).parts,)
    left, right = _memory(host, fleet.limits, glyphs, width), _load(host, glyphs)
    if part_columns((*left, *right)) + 3 <= width:
        return (cell((*left, ("   ", ""), *right), width).parts,)
    return (cell(left, width).parts, cell(right, width).parts)


def _memory(host: Host, limits: Limits, glyphs: Glyphs, width: int) -> tuple[Part, ...]:
    total, free = host.memory_total, host.memory_available
    if not total or free is None:
        return (("MEMORY ", "head"), ("?", "dim"))
    used = max(0, total - free)
    low = free < limits.memory_reserve
    parts: list[Part] = [("MEMORY ", "head")]
    if width >= 50:
        parts += [bar(used / total, _BAR, glyphs), (" ", "")]
    parts += [
        (f"{size(used)} of {size(total)}", "bad" if low else ""),
        (f", {size(free)} free", "bad" if low else "dim"),
    ]
    if low:
        parts.append((f": below the reserve of {size(limits.memory_reserve)}", "bad"))
    return tuple(parts)


def _load(host: Host, glyphs: Glyphs) -> tuple[Part, ...]:
    parts: list[Part] = [("LOAD ", "head")]
    if host.load is None:
        parts.append(("?", "dim"))
    else:
        busy = host.load[0] / max(1, host.cpus)
        tone: Tone = "bad" if busy >= 2 else "warn" if busy >= 1 else ""
        parts.append((" ".join(f"{value:.2f}" if math.isfinite(value) else "?" for value in host.load), tone))
    cpus = f" on {host.cpus} CPU{'s' if host.cpus != 1 else ''}"
    parts += [(cpus, "dim"), (f"   {grouped(host.processes)} processes", "")]
    return tuple(parts)


# --- accounts ------------------------------------------------------------------------------------------------------


def _tasks(account: Account, look: Look) -> Parts:
    if account.limit is None:
        return ((grouped(account.tasks), ""),)
    share = account.tasks / account.limit if account.limit > 0 else 1.0
    tone = _toned(share)
    return ((f"{grouped(account.tasks)}/{grouped(account.limit)}", "" if tone == "ok" else tone),)


def _used(account: Account, look: Look) -> Parts:
    if not account.limit:
        return (("", ""),)
    return (bar(account.tasks / account.limit, _BAR, look.glyphs),)


def _source(account: Account, look: Look) -> Parts:
    if account.limit is None:
        return (("no limit known", "dim"),)
    return ((safe(account.limit_source, 80), "dim"),)


def _stale(parts: Callable[[Account, Look], Parts]) -> Callable[[Account, Look], Parts]:
    def made(account: Account, look: Look) -> Parts:
        found = parts(account, look)
        return tuple((text, "stale") for text, _ in found) if look.host_stale else found

    return made


_ACCOUNTS: tuple[ListColumn[Account], ...] = (
    ListColumn(
        key="user",
        label="ACCOUNT",
        parts=lambda account, look: ((safe(account.user, 40) or str(account.uid), "strong"),),
        sort=lambda account: account.user,
        most=20,
    ),
    ListColumn(
        key="processes",
        label="PROCESSES",
        parts=_stale(lambda account, look: ((grouped(account.processes), ""),)),
        sort=lambda account: account.processes,
        descends=True,
        right=True,
        leave=1,
    ),
    ListColumn(
        key="tasks",
        label="TASKS",
        parts=_stale(_tasks),
        sort=lambda account: account.tasks,
        descends=True,
        right=True,
        least=9,
    ),
    ListColumn(key="used", label="USED", parts=_stale(_used), leave=3),
    ListColumn(
        key="memory",
        label="MEMORY",
        parts=_stale(lambda account, look: ((size(account.memory), "" if account.memory is not None else "dim"),)),
        sort=lambda account: account.memory,
        descends=True,
        right=True,
    ),
    ListColumn(key="source", label="LIMIT BY", parts=_source, fill=True, least=8, leave=2),
)


def account_grid(fleet: Fleet | None, width: int, look: Look) -> Grid:
    """The accounts, most tasks first; the key of a row is the user id."""
    accounts = fleet.host.accounts if fleet is not None and fleet.host is not None else ()
    shown = sorted(accounts, key=lambda account: (-account.tasks, account.uid))
    return list_grid(shown, [str(account.uid) for account in shown], _ACCOUNTS, width, look) if shown else Grid()


# --- trees ---------------------------------------------------------------------------------------------------------


class TreeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the trees: an owner (no process) or one of its processes."""

    key: str
    group: str  # key of the owner's line
    owner: Owner
    process: TreeProcess | None = None
    count: int = 0  # of the owner's line: its processes, their memory, and whether they are hidden
    memory: int | None = None
    cpu_seconds: float | None = None
    collapsed: bool = False


def tree_rows(detail: HostDetail, collapsed: Collection[str], contains: str = "") -> tuple[list[TreeRow], int]:
    """The lines of the trees, and how many processes match.

    Trees of one owner stand together, in the order of the first; where a filter is set, only processes that match
    and their ancestors are left, and nothing is collapsed.
    """
    groups: dict[str, list[TreeProcess]] = {}
    owners: dict[str, Owner] = {}
    group = ""
    for process in detail.trees:
        if process.depth <= 0 or not group:
            group = group_key(process.owner)
            owners.setdefault(group, process.owner)
        groups.setdefault(group, []).append(process)
    words = words_of(contains)
    rows: list[TreeRow] = []
    matching = 0
    for group, processes in groups.items():
        kept = processes
        if words:
            kept, found = _matching(processes, owners[group], words)
            matching += found
            if not kept:
                continue
        else:
            matching += len(processes)
        hidden = group in collapsed and not words
        memory = [process.rss for process in processes if process.rss is not None]
        used = [process.cpu_seconds for process in processes if process.cpu_seconds is not None]
        rows.append(
            TreeRow(
                key=group,
                group=group,
                owner=owners[group],
                count=len(processes),
                memory=sum(memory) if memory else None,
                cpu_seconds=sum(used) if used else None,
                collapsed=hidden,
            )
        )
        if not hidden:
            rows += [
                TreeRow(
                    key=f"{process.ident.pid}:{process.ident.start}", group=group, owner=owners[group], process=process
                )
                for process in kept
            ]
    return rows, matching


def group_key(owner: Owner) -> str:
    """What names an owner's line."""
    return f"owner\0{owner.kind}\0{owner.name}"


def _matching(processes: list[TreeProcess], owner: Owner, words: tuple[str, ...]) -> tuple[list[TreeProcess], int]:
    """Those that match, with their ancestors so that the tree still hangs together, and how many match."""
    kept: list[TreeProcess] = []
    above: list[TreeProcess] = []  # the ancestors of the process that is looked at
    waiting: set[int] = set()
    found = 0
    for process in processes:
        while above and above[-1].depth >= process.depth:
            above.pop()
        above.append(process)
        text = " ".join(
            (str(process.ident.pid), process.user, process.name, *process.command, process.role, owner.kind, owner.name)
        )
        if not matches(words, text):
            continue
        found += 1
        for ancestor in above:
            if id(ancestor) not in waiting:
                waiting.add(id(ancestor))
                kept.append(ancestor)
    return kept, found


def _what(row: TreeRow, look: Look) -> Parts:
    process = row.process
    if process is None:
        sign = (("▸", "▾") if look.glyphs.unicode else ("+", "-"))[0 if row.collapsed else 1]
        named = safe(row.owner.name, 60)
        return (
            (f"{sign} ", "key"),
            (row.owner.kind, "head"),
            (f" {named}" if named else "", "head"),
        )
    level = min(max(0, process.depth), _INDENT_AT_MOST)
    lead = "  " * (level + 1)
    command = safe(" ".join(map(_short, process.command[:40])), 300) if process.command else ""
    name = safe(process.name, 40)
    if not command:
        return ((lead, ""), (f"[{name}]", "dim"))
    return ((lead, ""), (command, "warn" if process.state == "Z" else ""))


def _short(word: str) -> str:
    """A path without its folders: what differs between two workers stands at the end of their command lines."""
    return word.rpartition("/")[2] or word if word.startswith("/") else word


def _of_process(read: Callable[[TreeProcess], str]) -> Callable[[TreeRow, Look], Parts]:
    return lambda row, look: ((read(row.process) if row.process is not None else "", ""),)


def _pid(row: TreeRow, look: Look) -> Parts:
    return ((str(row.process.ident.pid), "") if row.process is not None else (f"{grouped(row.count)} proc", "dim"),)


def _tree_memory(row: TreeRow, look: Look) -> Parts:
    amount = row.process.rss if row.process is not None else row.memory
    return ((size(amount), "dim" if row.process is None or amount is None else ""),)


def _tree_cpu(row: TreeRow, look: Look) -> Parts:
    seconds = row.process.cpu_seconds if row.process is not None else row.cpu_seconds
    return ((lasted(seconds), "dim" if row.process is None or seconds is None else ""),)


def _age(row: TreeRow, look: Look) -> Parts:
    started = row.process.started if row.process is not None else None
    if row.process is None:
        return (("", ""),)
    return ((lasted(max(0.0, look.now - started)) if started is not None else "?", "dim"),)


TREE_COLUMNS: tuple[ListColumn[TreeRow], ...] = (
    ListColumn(key="what", label="PROCESSES BY OWNER", parts=_what, fill=True, least=36),
    ListColumn(key="pid", label="PID", parts=_pid, right=True, least=6),
    ListColumn(key="user", label="USER", parts=_of_process(lambda p: safe(p.user, 20)), most=12, leave=3),
    ListColumn(key="state", label="S", parts=_of_process(lambda p: safe(p.state, 1)), leave=4),
    ListColumn(key="memory", label="MEMORY", parts=_tree_memory, right=True, leave=1),
    ListColumn(key="cpu", label="CPU TIME", parts=_tree_cpu, right=True, leave=2),
    ListColumn(key="age", label="AGE", parts=_age, right=True, leave=5, least=6),
    ListColumn(key="role", label="ROLE", parts=_of_process(lambda p: safe(p.role, 24)), most=16, leave=6),
)


def tree_row_text(row: TreeRow) -> str:
    """A line of the trees as text to copy."""
    process = row.process
    if process is None:
        return f"{row.owner.kind} {safe(row.owner.name, 200)}".rstrip()
    return f"{process.ident.pid}\t{safe(process.user, 60)}\t{safe(' '.join(process.command) or process.name)}"


def group_keys(detail: HostDetail) -> frozenset[str]:
    """The keys of the owners' lines."""
    return frozenset(group_key(process.owner) for process in detail.trees if process.depth <= 0)


def trees_title(detail: HostDetail | None, taken: float | None, width: int) -> Parts:
    """ "TREES  181 processes, 12 more left out  read at 16:42:07 UTC"."""
    parts: list[Part] = [("TREES", "head")]
    if detail is not None:
        parts.append((f"  {grouped(len(detail.trees))} processes", ""))
        if detail.cut:
            parts.append((f", {grouped(detail.cut)} more left out", "warn"))
        if taken is not None and width >= 60:
            parts.append((f"  read at {datetime.fromtimestamp(taken, UTC):%H:%M:%S} UTC", "dim"))
    return tuple(parts)
