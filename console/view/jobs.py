"""Pure: pages of jobs as a table, the tabs above it, and what to say when there is nothing to list."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Literal, get_args

import msgspec

from console.fleet.counts import summed
from console.fleet.model import Claim, Count, Fleet, Holder, Job, JobQuery, JobSort, Role, Verdict
from console.text import duration, grouped
from console.view.cells import Grid, Part, Tone, cell, columns, part_columns, safe
from console.view.glyphs import Glyphs
from console.view.listing import LUXURY, ListColumn, Look, Order, Parts, list_grid
from console.view.rows import count_text

ListedState = Literal["waiting", "running", "stuck", "failed", "done"]
STATES: tuple[ListedState, ...] = get_args(ListedState)

VERDICT_TONES: dict[Verdict, Tone] = {
    "DEAD": "bad",
    "HUNG": "bad",
    "ALIVE_SLOW": "warn",
    "ALIVE": "ok",
    "UNKNOWN": "dim",
    "FINISHED_BUT_CLAIMED": "warn",
}
# The first is how a state is listed at first; the queue sorts by what it can sort cheaply.
SORTS: dict[ListedState, tuple[tuple[JobSort, bool], ...]] = {
    "waiting": (("id", False), ("age", False), ("priority", True), ("attempts", True)),
    "running": (("id", False), ("age", False), ("overdue", True), ("attempts", True)),
    "stuck": (("overdue", True), ("id", False)),
    "failed": (("finished", True), ("id", True), ("attempts", True)),
    "done": (("finished", True), ("id", True), ("attempts", True)),
}
_SORTED_COLUMN: dict[JobSort, tuple[str, ...]] = {
    "id": ("id",),
    "age": ("waits", "runs"),
    "priority": ("priority",),
    "attempts": ("attempts",),
    "overdue": ("overdue", "lease"),
    "finished": ("finished",),
}


# --- words ---------------------------------------------------------------------------------------------------------


def lasted(seconds: float | None) -> str:
    """A duration that may be anything a database can say: 0:41, 3d 4h, ever, ?."""
    if seconds is None or math.isnan(seconds):
        return "?"
    if math.isinf(seconds):
        return "ever"
    return duration(min(abs(seconds), 1e12))


def verdict_word(verdict: Verdict) -> str:
    """The verdict in one word: ALIVE_SLOW is shown as SLOW, FINISHED_BUT_CLAIMED as ENDED."""
    return {"ALIVE_SLOW": "SLOW", "FINISHED_BUT_CLAIMED": "ENDED"}.get(verdict, verdict)


def holder_text(holder: Holder | None) -> str:
    """ "thumbnails-worker@3 pid 812", "wrk02 pid 2211", or what the queue wrote; raw."""
    if holder is None:
        return "nobody"
    unit = holder.unit.removesuffix(".service")
    if not unit and holder.pid is None:
        return holder.text or holder.host or "nobody"
    names = [unit or holder.host]
    if holder.pid is not None:
        names.append(f"pid {holder.pid}")
    return " ".join(name for name in names if name)


def total_text(total: Count | None, loaded: int, more: bool, extra: int = 0) -> str:
    """How many jobs there are: "412", "> 10 000", "~ 4.6 M"; without a count what was loaded, "100+".

    `extra`: so many more are listed that the count does not know of.
    """
    if total is not None:
        return count_text(Count(total.n + extra, total.kind))
    return f"{grouped(loaded + extra)}+" if more else grouped(loaded + extra)


# --- columns -------------------------------------------------------------------------------------------------------


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A job of a page with what is known of it beside its row."""

    job: Job
    role: str  # raw
    now: float  # the database's clock when the page was read
    claim: Claim | None = None


def _tried(row: JobRow, look: Look) -> Part:
    job = row.job
    if job.max_attempts is None:
        return str(job.attempts), ""
    return f"{job.attempts}/{job.max_attempts}", "warn" if job.attempts >= job.max_attempts else ""


def _waits(row: JobRow, look: Look) -> Part:
    waits = row.job.waiting_for
    return (f"in {lasted(waits)}", "dim") if waits is not None and waits < 0 else (lasted(waits), "")


def _lease(row: JobRow, look: Look) -> Part:
    overdue = row.job.overdue
    if overdue is None:
        return look.glyphs.none, "dim"
    return (f"-{lasted(overdue)}", "bad") if overdue > 0 else (lasted(overdue), "dim")


def _overdue(row: JobRow, look: Look) -> Part:
    overdue = row.job.overdue
    if overdue is None:
        return "?", "dim"
    return (f"in {lasted(overdue)}", "dim") if overdue < 0 else (lasted(overdue), "bad")


def _verdict(row: JobRow, look: Look) -> Part:
    claim = row.claim
    return ("?", "dim") if claim is None else (verdict_word(claim.verdict), VERDICT_TONES[claim.verdict])


def _why(row: JobRow, look: Look) -> Part:
    if row.claim is None:
        return "not judged yet: Enter asks", "dim"
    return safe("; ".join(row.claim.evidence) or "no evidence", 300), "" if row.claim.evidence else "dim"


def _finished(row: JobRow, look: Look) -> Part:
    finished = row.job.finished
    return ("?", "dim") if finished is None else (lasted(max(0.0, row.now - finished)), "")


def _took(row: JobRow, look: Look) -> Part:
    if row.job.finished is None or row.job.started is None:
        return "?", "dim"
    seconds = row.job.finished - row.job.started
    return (f"{seconds:.1f} s", "") if 0 <= seconds < 10 else (lasted(seconds), "")


def _error(row: JobRow, look: Look) -> Part:
    # The last line of a traceback says more than its first.
    lines = [line for line in row.job.error[-4000:].splitlines() if line.strip()]
    return safe(lines[-1].strip() if lines else "", 300), ""


def _holder(row: JobRow, look: Look) -> Part:
    return safe(holder_text(row.job.holder), 60), "" if row.job.holder else "dim"


def _short_holder(row: JobRow, look: Look) -> Part:
    """ "@3 pid 812" of the role's own unit: the role stands beside it."""
    text, tone = _holder(row, look)
    stem, at, rest = text.partition("@")
    return (f"@{rest}", tone) if at and stem in (row.role, f"{row.role}-worker") else (text, tone)


def _reclaims(row: JobRow, look: Look) -> Part:
    times = row.job.reclaims
    return (look.glyphs.none, "dim") if times is None else (str(times), "warn" if times else "dim")


def _kind(row: JobRow, look: Look) -> Part:
    return safe(row.job.type, 60) or look.glyphs.none, ""


def _column(
    key: str,
    label: str,
    read: Callable[[JobRow, Look], Part],
    leave: int = 0,
    most: int = 24,
    least: int = 1,
    right: bool = False,
    fill: bool = False,
    wish: int = 0,
) -> ListColumn[JobRow]:
    def parts(row: JobRow, look: Look) -> Parts:
        text, tone = read(row, look)
        return ((text, "stale" if look.queue_stale else tone),)

    sort = (lambda row: row.job.id) if key in _SORTED_KEYS else None  # the queue sorts; here it makes room for the sign
    return ListColumn(
        key=key,
        label=label,
        parts=parts,
        sort=sort,
        right=right,
        leave=leave,
        least=least,
        most=most,
        fill=fill,
        wish=wish,
    )


_SORTED_KEYS = frozenset(key for keys in _SORTED_COLUMN.values() for key in keys)
_ID = _column("id", "JOB", lambda row, look: (safe(row.job.id, 40), "strong"), most=20)
_ROLE = _column("role", "ROLE", lambda row, look: (safe(row.role, 40), ""), most=16, leave=3)
_STAYING_ROLE = _column("role", "ROLE", lambda row, look: (safe(row.role, 40), ""), most=14, leave=1)
_TYPE = _column("type", "TYPE", _kind, leave=1)
_WAITS = _column("waits", "WAITS", _waits, right=True, least=7)
_RUNS = _column("runs", "RUNS", lambda row, look: (lasted(row.job.running_for), ""), right=True, least=6)
_VERDICT = _column("verdict", "VERDICT", _verdict)
_PRIORITY = _column(
    *("priority", "PRIO"),
    lambda row, look: (str(row.job.priority) if row.job.priority is not None else "", ""),
    right=True,
    leave=6,
)


def _tries(leave: int) -> ListColumn[JobRow]:
    return _column("attempts", "TRIES", _tried, right=True, leave=leave)


COLUMNS: dict[ListedState, tuple[ListColumn[JobRow], ...]] = {
    "waiting": (
        *(_ID, _ROLE, _TYPE, _WAITS, _tries(5), _PRIORITY),
        _column("error", "LAST ERROR", _error, fill=True, least=12, leave=4),
    ),
    "running": (
        *(_ID, _ROLE, _TYPE, _RUNS),
        _column("lease", "LEASE", _lease, right=True, least=6, leave=5),
        *(_tries(6), _VERDICT),
        _column("holder", "HOLDER", _holder, fill=True, least=14, leave=2),
    ),
    "stuck": (
        *(_ID, _STAYING_ROLE, _column("type", "TYPE", _kind, leave=LUXURY + 1)),
        _column("overdue", "OVERDUE", _overdue, right=True, least=7),
        _column("holder", "HOLDER", _short_holder, most=24, leave=2),
        _VERDICT,
        _column("reclaims", "RECLAIMS", _reclaims, right=True, leave=LUXURY),
        _column("why", "WHY", _why, fill=True, least=20, leave=4, wish=46),
    ),
    "failed": (
        *(_ID, _ROLE, _TYPE),
        _column("finished", "FAILED", _finished, right=True, least=6),
        _tries(5),
        _column("error", "ERROR", _error, fill=True, least=12, leave=2),
    ),
    "done": (
        *(_ID, _ROLE, _column("type", "TYPE", _kind, fill=True, least=10)),
        _column("finished", "DONE", _finished, right=True, least=6),
        _column("took", "TOOK", _took, right=True, least=6, leave=4),
        _tries(5),
    ),
}


def job_grid(
    rows: Sequence[JobRow],
    query: JobQuery,
    width: int,
    look: Look,
    marked: Collection[str] | None = None,
    before: dict[str, int] | None = None,
) -> Grid:
    """The table of these jobs; the key of a row is the job's id. `before` as in `list_grid`."""
    order = Order(sorted_column(query), query.descending)
    return list_grid(rows, [row.job.id for row in rows], COLUMNS[query.state], width, look, order, marked, before)


def sorted_column(query: JobQuery) -> str:
    """The key of the column that the query sorts by; "" when the state has none for it."""
    keys = {column.key for column in COLUMNS[query.state]}
    return next((key for key in _SORTED_COLUMN[query.sort] if key in keys), "")


# --- above and instead of the table --------------------------------------------------------------------------------


def tab_parts(fleet: Fleet | None, role: str | None, current: ListedState, width: int) -> tuple[Part, ...]:
    """ "waiting 412  running 3  [stuck 7]  failed 22  done", the numbers those of the shown roles.

    Where it is too narrow the numbers of the other states leave, then the other states.
    """
    numbers = {state: _count(fleet, role, state) for state in STATES}
    for form in range(3):
        parts: list[Part] = []
        for state in STATES:
            here = state == current
            number = numbers[state] if here or form == 0 else ""
            if form == 2 and not here:
                continue
            label = state.upper() if here else state
            text = f"{label} {number}".rstrip()
            gap = "  " if parts else ""
            parts += [(gap, ""), (f"[{text}]" if here else text, "head" if here else "dim")]
        if part_columns(tuple(parts)) <= width:
            break
    return cell(tuple(part for part in parts if part[0]), width).parts


def tab_at(parts: tuple[Part, ...], x: int) -> ListedState | None:
    """The state whose tab is at column `x`."""
    left = 0
    for text, _ in parts:
        left += columns(text)
        if x < left:
            word = text.strip(" []").partition(" ")[0].lower()
            return next((state for state in STATES if state == word), None)
    return None


def _count(fleet: Fleet | None, role: str | None, state: ListedState) -> str:
    count = state_count(fleet, role, state)
    return "" if count is None else count_text(count)


def state_count(fleet: Fleet | None, role: str | None, state: ListedState) -> Count | None:
    """How many jobs of the roles are in a state, from the counts of the fleet; None when that is not known."""
    if fleet is None or state == "done":
        return None
    roles = [status for status in fleet.roles if role is None or status.role.name == role]
    if state == "stuck":
        known = [status.stuck for status in roles if status.stuck is not None]
        return Count(sum(known)) if known else None
    counts: list[Count] = []
    for status in roles:
        if status.queue is None:
            continue
        counts.append(getattr(status.queue, state))
        if state == "waiting":
            counts.append(status.queue.scheduled)
    return summed(counts) if counts else None


def total_number(fleet: Fleet | None, role: str | None, state: ListedState) -> int:
    """The number of `state_count`, 0 when that is not known."""
    count = state_count(fleet, role, state)
    return 0 if count is None else count.n


def status_parts(
    query: JobQuery, role: str | None, kind: str, total: str, position: int | None, width: int, glyphs: Glyphs
) -> tuple[Part, ...]:
    """What is listed: "1 201 of ~ 4.6 M  role mail  type welcome  by age ↓"."""
    parts: list[Part] = []
    if total:
        parts.append((f"{grouped(position)} of {total}" if position is not None else f"{total} jobs", "strong"))
        parts.append(("  ", ""))
    parts += [("role ", "dim"), (safe(role, 24) if role is not None else "all", "")]
    if kind:
        parts += [("  type ", "dim"), (safe(kind, 24), "")]
    parts += [("  by ", "dim"), (f"{query.sort} {glyphs.down if query.descending else glyphs.up}", "")]
    return cell(tuple(part for part in parts if part[0]), width).parts


def next_sort(state: ListedState, sort: str) -> tuple[JobSort, bool]:
    """What to sort by after this; after the last the first."""
    able = SORTS[state]
    place = next((number for number, (name, _) in enumerate(able) if name == sort), -1)
    return able[(place + 1) % len(able)]


def unlisted(
    fleet: Fleet | None, query: JobQuery, role: str | None, rows: Sequence[JobRow], now: float
) -> list[JobRow]:
    """Stuck jobs that the queue does not list as such: their lease is still valid, and their holder is dead."""
    if fleet is None or query.state != "stuck":
        return []
    listed = {row.job.id for row in rows}
    text = query.contains.casefold()
    return [
        JobRow(job=claim.job, role=claim.role, now=now, claim=claim)
        for claim in fleet.claims
        if claim.stuck
        and claim.job.overdue is not None
        and claim.job.overdue <= 0
        and claim.job.id not in listed
        and (role is None or claim.role == role)
        and (not query.types or claim.job.type in query.types)
        and (not text or any(text in piece.casefold() for piece in (claim.job.id, claim.job.type, claim.job.error)))
    ]


def asked_of(fleet: Fleet | None, role: str | None) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """(queues, types) to ask for; None for a role that has no rows of its own."""
    if role is None:
        return (), ()
    found = next((s.role for s in fleet.roles if s.role.name == role), None) if fleet is not None else None
    return (found.queues, found.types) if found is not None and found.queues else None


def role_name(job: Job, roles: tuple[Role, ...]) -> str:
    """The role whose row it is; its queue when no role wants it."""
    for role in roles:
        if job.queue in role.queues and (not role.types or job.type in role.types):
            return role.name
    return job.queue


def empty_text(state: ListedState, contains: str, role: str | None, kind: str, no_rows: bool) -> str:
    """Why nothing is listed, and the next key; raw."""
    of = f" of {role}" if role is not None else ""
    if no_rows:
        return f"{role} has no queue of its own; ] shows the next role, Esc all"
    if contains:
        return f"no {state} job{of} has “{contains}” in its id, type or error; Esc ends the filter"
    if kind:
        return f"no {state} job{of} of type {kind}; Esc shows all types"
    what = {
        "waiting": f"no job{of} waits",
        "running": f"no job{of} is running",
        "stuck": f"no job{of} is stuck: every lease is valid",
        "failed": f"no job{of} failed",
        "done": f"no finished job{of} is kept",
    }[state]
    return f"{what}; Tab shows the next state" + (", Esc all roles" if role is not None else "")
