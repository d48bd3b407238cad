"""Pure: the workers of a role, or of all, as a list, and everything about one of them as sections."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import msgspec

from console.fleet.model import Claim, Fleet, Owner, Worker, WorkerState
from console.text import ago, duration, size
from console.view.cells import Part, Tone, columns, safe
from console.view.glyphs import Glyphs, word
from console.view.listing import ListColumn, Look
from console.view.rows import STATE_TONES, WORST_FIRST, rate_text

Parts = tuple[Part, ...]
_NOT_KNOWN: Parts = (("?", "dim"),)
_NEAR_LIMIT = 0.9  # of the memory limit
_RANK: dict[WorkerState, int] = {state: number for number, state in enumerate(WORST_FIRST)}


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A worker and the jobs it holds."""

    worker: Worker
    claims: tuple[Claim, ...] = ()  # longest running first

    @property
    def key(self) -> str:
        return f"{self.worker.role}/{self.worker.key}"

    @property
    def pid(self) -> int | None:
        """Its main process."""
        unit = self.worker.unit
        if unit is not None and unit.main_pid:
            return unit.main_pid
        return self.worker.processes[0].ident.pid if self.worker.processes else None

    @property
    def started(self) -> float | None:
        """When its process started; for one without a process, since when its unit has its state."""
        process = next(iter(self.worker.processes), None)
        if process is not None and process.started is not None:
            return process.started
        return self.worker.since

    @property
    def claim(self) -> Claim | None:
        return self.claims[0] if self.claims else None


def worker_items(fleet: Fleet, role: str | None = None) -> tuple[Item, ...]:
    """The workers (of one role, or all), in the fleet's order."""
    held: dict[str, list[Claim]] = {}
    for claim in sorted(fleet.claims, key=lambda claim: -(claim.job.running_for or 0.0)):
        if claim.worker:
            held.setdefault(claim.worker, []).append(claim)
    return tuple(
        Item(worker=worker, claims=tuple(held.get(worker.key, ())))
        for status in fleet.roles
        if role is None or status.role.name == role
        for worker in status.workers
    )


# --- columns -------------------------------------------------------------------------------------------------------


def _host(text: str, look: Look, tone: Tone = "") -> Parts:
    return ((text, "stale" if look.host_stale else tone),)


def state_parts(worker: Worker, look: Look) -> Parts:
    """ "● ok"."""
    text = f"{look.glyphs.state(worker.state)} {word(worker.state)}"
    return _host(text, look, STATE_TONES[worker.state])


def owner_text(owner: Owner) -> str:
    """Who would start it again, in a few words: "systemd", "cron (deploy)"."""
    if owner.kind in ("systemd", "unknown"):
        return owner.kind
    return f"{owner.kind} ({owner.name})" if owner.name else owner.kind


def _owner(item: Item, look: Look) -> Parts:
    if item.pid is None:
        return ((look.glyphs.none, "dim"),)
    tone: Tone = "warn" if item.worker.state == "stray" else ""
    return _host(safe(owner_text(item.worker.owner), 40), look, tone)


def _pid(item: Item, look: Look) -> Parts:
    return ((look.glyphs.none, "dim"),) if item.pid is None else _host(str(item.pid), look)


def _age(item: Item, look: Look) -> Parts:
    if item.started is None:
        return ((look.glyphs.none, "dim"),)
    return _host(ago(max(0.0, round(look.now - item.started))), look)


def _restarts(item: Item, look: Look) -> Parts:
    unit = item.worker.unit
    if unit is None:
        return ((look.glyphs.none, "dim"),)
    if unit.restarts_per_minute is None:
        return _NOT_KNOWN
    return _host(rate_text(unit.restarts_per_minute), look, "warn" if unit.restarts_per_minute else "dim")


def _memory(item: Item, look: Look) -> Parts:
    now, most = item.worker.memory, item.worker.memory_max
    if now is None:
        return _NOT_KNOWN if item.pid is not None else ((look.glyphs.none, "dim"),)
    near = most is not None and now >= _NEAR_LIMIT * most
    return _host(size(now), look, "warn" if near else "")


def _peak(item: Item, look: Look) -> Parts:
    peak = item.worker.memory_peak
    return ((look.glyphs.none, "dim"),) if peak is None else _host(size(peak), look)


def _limit(item: Item, look: Look) -> Parts:
    unit, most = item.worker.unit, item.worker.memory_max
    if most is None:
        return (("none", "dim"),) if unit is not None else ((look.glyphs.none, "dim"),)
    if unit is not None and unit.memory_enforced is False:
        return ((f"{size(most)}?", "warn"),)
    return _host(size(most), look)


def _cpu(item: Item, look: Look) -> Parts:
    cpu = item.worker.cpu
    return ((look.glyphs.none, "dim"),) if cpu is None else _host(f"{cpu * 100:.0f}%", look)


def _job(item: Item, look: Look) -> Parts:
    claim = item.claim
    if claim is None:
        jobs = item.worker.jobs
        return ((safe(jobs[0], 20), ""),) if jobs else ((look.glyphs.none, "dim"),)
    more = f" +{len(item.claims) - 1}" if len(item.claims) > 1 else ""
    return ((safe(claim.job.id, 20) + more, "stale" if look.queue_stale else "bad" if claim.stuck else ""),)


def _held(item: Item, look: Look) -> Parts:
    claim = item.claim
    if claim is None or claim.job.running_for is None:
        return ((look.glyphs.none, "dim"),)
    return ((duration(claim.job.running_for), "stale" if look.queue_stale else "bad" if claim.stuck else ""),)


def _why(item: Item, look: Look) -> Parts:
    why = item.worker.why
    if not why and item.claim is not None and item.claim.stuck:
        why = next(iter(item.claim.evidence), "")
    return ((safe(why), ""),)


def _job_started(item: Item) -> float | None:
    return item.claim.job.running_for if item.claim is not None else None


def _role(item: Item, look: Look) -> Parts:
    return ((safe(item.worker.role, 24), "strong"),)


def _name(item: Item, look: Look) -> Parts:
    return ((safe(item.worker.name, 20), "" if item.worker.desired or item.worker.state == "stray" else "dim"),)


_STATE_WIDTH = max(columns(f"x {word(state)}") for state in get_args(WorkerState))

COLUMNS: tuple[ListColumn[Item], ...] = (
    ListColumn(
        key="state",
        label="STATE",
        parts=lambda item, look: state_parts(item.worker, look),
        sort=lambda item: _RANK[item.worker.state],
        least=5,
        most=_STATE_WIDTH,
    ),
    ListColumn(key="role", label="ROLE", parts=_role, sort=lambda item: item.worker.role, leave=1),
    ListColumn(key="name", label="NAME", parts=_name, sort=lambda item: item.worker.name, most=20),
    ListColumn(key="pid", label="PID", parts=_pid, sort=lambda item: item.pid, right=True, leave=6, least=5),
    ListColumn(
        key="owner", label="OWNER", parts=_owner, sort=lambda item: owner_text(item.worker.owner), leave=4, most=20
    ),
    ListColumn(
        key="age",
        label="AGE",
        parts=_age,
        sort=lambda item: -item.started if item.started is not None else None,
        right=True,
        leave=9,
        least=6,
    ),
    ListColumn(
        key="restarts",
        label="RST/MIN",
        parts=_restarts,
        sort=lambda item: item.worker.unit.restarts_per_minute if item.worker.unit is not None else None,
        descends=True,
        right=True,
        leave=10,
    ),
    ListColumn(
        key="memory",
        label="MEM",
        parts=_memory,
        sort=lambda item: item.worker.memory,
        descends=True,
        right=True,
        leave=3,
        least=5,
    ),
    ListColumn(
        key="peak",
        label="PEAK",
        parts=_peak,
        sort=lambda item: item.worker.memory_peak,
        descends=True,
        right=True,
        leave=12,
        least=5,
    ),
    ListColumn(
        key="limit",
        label="LIMIT",
        parts=_limit,
        sort=lambda item: item.worker.memory_max,
        right=True,
        leave=11,
        least=5,
    ),
    ListColumn(
        key="cpu",
        label="CPU",
        parts=_cpu,
        sort=lambda item: item.worker.cpu,
        descends=True,
        right=True,
        leave=7,
        least=4,
    ),
    ListColumn(key="job", label="JOB", parts=_job, sort=lambda item: item.claim and item.claim.job.id, leave=2),
    ListColumn(key="held", label="FOR", parts=_held, sort=_job_started, descends=True, right=True, leave=8, least=5),
    ListColumn(key="why", label="WHY", parts=_why, leave=2, least=14, fill=True, wish=36),
)
OF_ONE_ROLE = tuple(column for column in COLUMNS if column.key != "role")


def summary_parts(items: tuple[Item, ...], glyphs: Glyphs) -> Parts:
    """How many of which state, the worst first: "× 1 start-limit  ● 9 ok"."""
    counts = Counter(item.worker.state for item in items)
    return tuple(
        (f"{glyphs.state(state)} {counts[state]} {word(state)}", STATE_TONES[state])
        for state in WORST_FIRST
        if counts[state]
    )
