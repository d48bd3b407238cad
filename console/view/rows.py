"""Pure: the roles of a fleet as a table that fits a width.

Columns leave by priority when the width does not hold them; a number is shown whole or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec

from console.fleet.counts import is_paused
from console.fleet.model import Count, Fleet, RoleStatus, SourceName, Trend, TrendPoint, WorkerState
from console.text import duration, grouped, size
from console.view.cells import Cell, Cells, Column, Grid, Part, Row, Tone, cell, part_columns, safe
from console.view.glyphs import Glyphs, word
from console.view.spark import TREND_MINUTES, minutes, spark

STATE_TONES: dict[WorkerState, Tone] = {
    "running": "ok",
    "starting": "note",
    "stopping": "note",
    "restarting": "warn",
    "looping": "warn",
    "start-limit": "bad",
    "memory-killed": "bad",
    "failed": "bad",
    "stopped": "dim",
    "missing": "bad",
    "hung": "bad",
    "stray": "warn",
    "unknown": "dim",
}
WORST_FIRST: tuple[WorkerState, ...] = (
    "start-limit",
    "memory-killed",
    "failed",
    "hung",
    "missing",
    "looping",
    "restarting",
    "stray",
    "unknown",
    "stopped",
    "stopping",
    "starting",
    "running",
)
_EACH_UP_TO = 8  # so many workers get a sign each; more are counted: 28●
_NAME_AT_MOST = 24

Parts = tuple[Part, ...]


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What the cells of one fleet need to know beside the role."""

    glyphs: Glyphs
    queue_stale: bool = False
    host_stale: bool = False


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """A column: `forms` go from the fullest to the shortest."""

    key: str
    labels: tuple[str, ...]
    forms: tuple[Callable[[RoleStatus, View], Parts], ...]
    right: bool = True
    queue: bool = False  # its values come from the database


# --- numbers -------------------------------------------------------------------------------------------------------


def count_text(count: Count) -> str:
    """ "412", "> 10 000" or "~ 4.6 M"."""
    if count.kind == "at-least":
        return f"> {grouped(count.n)}"
    if count.kind == "estimate":
        for limit, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")):
            if count.n >= limit:
                return f"~ {count.n / (1000 if unit == 'k' else limit):.1f} {unit}"
        return f"~ {grouped(count.n)}"
    return grouped(count.n)


def rate_text(rate: float | None) -> str:
    """A number per minute: 118, 2.5, 0; ? when not known."""
    if rate is None:
        return "?"
    return f"{rate:.1f}" if 0 < rate < 9.95 and abs(rate - round(rate)) > 0.04 else grouped(round(rate))


# --- cells ---------------------------------------------------------------------------------------------------------


def _queue(read: Callable[[RoleStatus], tuple[str, Tone]]) -> Callable[[RoleStatus, View], Parts]:
    def form(status: RoleStatus, view: View) -> Parts:
        if status.queue is None:
            return (("?", "dim"),)
        text, tone = read(status)
        return ((text, "stale" if view.queue_stale else tone),)

    return form


def _counted(name: str, alarm: Tone = "") -> Callable[[RoleStatus, View], Parts]:
    def read(status: RoleStatus) -> tuple[str, Tone]:
        count: Count = getattr(status.queue, name)
        return count_text(count), (alarm if count.n else "dim")

    return _queue(read)


def _waiting(status: RoleStatus, view: View) -> Parts:
    number = _counted("waiting")(status, view)
    if not is_paused(status.role, status.queue):
        return number
    return ((f"{view.glyphs.paused} ", "stale" if view.queue_stale else "warn"), *number)


def _oldest(status: RoleStatus) -> tuple[str, Tone]:
    age = status.queue.oldest_waiting if status.queue else None
    if age is None:
        return "-", "dim"
    return duration(age), "bad" if age > status.role.oldest_limit else ""


def _stuck(status: RoleStatus, view: View) -> Parts:
    if status.stuck is None:
        return (("?", "dim"),)
    return ((grouped(status.stuck), "stale" if view.queue_stale else "bad" if status.stuck else "dim"),)


def _last(status: RoleStatus) -> tuple[str, Tone]:
    age = status.queue.last_finished if status.queue else None
    return ("-" if age is None else duration(age)), ""


def _name(status: RoleStatus, view: View) -> Parts:
    return ((safe(status.role.name, _NAME_AT_MOST), "strong"),)


def _workers(with_budget: bool) -> Callable[[RoleStatus, View], Parts]:
    def form(status: RoleStatus, view: View) -> Parts:
        budget = status.role.budget
        tone: Tone = ""
        if status.running < status.desired:
            tone = "warn" if status.running else "bad"
        if budget is not None and status.running > budget:
            tone = "bad"
        if status.desired and status.running > status.desired:
            tone = tone or "warn"
        if view.host_stale:
            tone = "stale"
        parts: Parts = ((f"{status.running}/{status.desired}", tone),)
        if with_budget and budget is not None:
            parts += ((f" {view.glyphs.most}{budget}", "dim"),)
        return parts

    return form


def _owner(shorten: int) -> Callable[[RoleStatus, View], Parts]:
    def form(status: RoleStatus, view: View) -> Parts:
        if not status.owners:
            return (("nobody", "bad" if status.desired else "dim"),)
        names = [safe(owner, 40) for owner in status.owners]
        if shorten:
            names = list(dict.fromkeys(name.partition(" (")[0] for name in names))
        text = " + ".join(names) if shorten < 2 else names[0] + (f" +{len(names) - 1}" if len(names) > 1 else "")
        return ((text, "stale" if view.host_stale else "warn" if len(status.owners) > 1 else ""),)

    return form


def _memory(with_limit: bool) -> Callable[[RoleStatus, View], Parts]:
    def form(status: RoleStatus, view: View) -> Parts:
        if status.memory is None:
            return (("?" if status.running else view.glyphs.none, "dim"),)
        near = status.memory_allowed is not None and status.memory >= 0.9 * status.memory_allowed
        text = size(status.memory) + (f"/{size(status.memory_allowed)}" if with_limit else "")
        return ((text, "stale" if view.host_stale else "warn" if near else ""),)

    return form


# --- trends --------------------------------------------------------------------------------------------------------


def _trend(read: Callable[[TrendPoint], int | None], together: int) -> Callable[[RoleStatus, View], Parts]:
    """A bar for so many minutes together: the greatest of them."""

    def form(status: RoleStatus, view: View) -> Parts:
        if status.trend is None or not status.trend.points:
            return ((" " * -(-TREND_MINUTES // together), "dim"),)
        return ((_bars(status.trend, read, together, view.glyphs.bars), "stale" if view.queue_stale else "note"),)

    return form


@lru_cache(maxsize=256)
def _bars(trend: Trend, read: Callable[[TrendPoint], int | None], together: int, bars: str) -> str:
    wide = -(-TREND_MINUTES // together)
    values = minutes(trend, read, wide * together)
    groups = [values[start : start + together] for start in range(0, len(values), together)]
    highest = [max((value for value in group if value is not None), default=None) for group in groups]
    return spark(highest, bars)


# --- states --------------------------------------------------------------------------------------------------------


def state_forms(status: RoleStatus, view: View) -> list[Parts]:
    """The states of a role's workers from the fullest form to the shortest, each with a sign, most with words."""
    glyphs = view.glyphs
    counts = Counter(worker.state for worker in status.workers)
    if not counts:
        return [((f"{glyphs.none} none", "dim"),), ((glyphs.none, "dim"),)]

    def tone(state: WorkerState) -> Tone:
        return "stale" if view.host_stale else STATE_TONES[state]

    order = [state for state in WORST_FIRST if state in counts]
    fine_first = [state for state in ("running", *WORST_FIRST[:-1]) if state in counts]
    if len(status.workers) <= _EACH_UP_TO:
        signs: Parts = tuple((glyphs.state(worker.state), tone(worker.state)) for worker in status.workers)
    else:
        signs = _spaced(tuple((f"{counts[state]}{glyphs.state(state)}", tone(state)) for state in fine_first))
    if len(order) == 1:
        only = order[0]
        return [(*signs, (f" {word(only)}", tone(only))), signs, ((f"{glyphs.state(only)}", tone(only)),)]
    spelt: Parts = _spaced(
        tuple((f"{glyphs.state(state)} {counts[state]} {word(state)}", tone(state)) for state in fine_first), "  "
    )
    forms: list[Parts] = [spelt] if len(status.workers) > _EACH_UP_TO else []
    troubled = [state for state in order if state != "running"]
    for kept in range(len(troubled), 0, -1):
        words = tuple((f"{counts[state]} {word(state)}", tone(state)) for state in troubled[:kept])
        rest = len(troubled) - kept
        forms.append(
            (
                *signs[:-1],
                (signs[-1][0] + " ", signs[-1][1]),
                *_spaced(words),
                *(((f" +{rest}", "dim"),) if rest else ()),
            )
        )
    grouped_signs = _spaced(tuple((f"{counts[state]}{glyphs.state(state)}", tone(state)) for state in fine_first))
    return [*forms, signs, grouped_signs, ((glyphs.state(order[0]), tone(order[0])),)]


def _spaced(parts: Parts, by: str = " ") -> Parts:
    out: list[Part] = []
    for part in parts:
        if out:
            out[-1] = (out[-1][0] + by, out[-1][1])
        out.append(part)
    return tuple(out)


# --- layout --------------------------------------------------------------------------------------------------------

_STATES = "states"
SPECS: tuple[Spec, ...] = (
    Spec(key="role", labels=("ROLE",), forms=(_name,), right=False),
    Spec(key="workers", labels=("WORKERS",), forms=(_workers(True), _workers(False))),
    Spec(key=_STATES, labels=("STATES",), forms=(lambda status, view: state_forms(status, view)[-1],), right=False),
    Spec(key="owner", labels=("OWNER",), forms=(_owner(0), _owner(1), _owner(2)), right=False),
    Spec(key="waiting", labels=("WAITING",), forms=(_waiting,), queue=True),
    Spec(key="later", labels=("LATER",), forms=(_counted("scheduled"),), queue=True),
    Spec(key="oldest", labels=("OLDEST",), forms=(_queue(_oldest),), queue=True),
    Spec(key="run", labels=("RUN",), forms=(_counted("running"),), queue=True),
    Spec(key="stuck", labels=("STUCK",), forms=(_stuck,), queue=True),
    Spec(key="failed", labels=("FAILED",), forms=(_counted("failed", "warn"),), queue=True),
    Spec(
        key="done",
        labels=("DONE/MIN",),
        forms=(_queue(lambda s: (rate_text(s.queue.done_per_minute if s.queue else None), "")),),
        queue=True,
    ),
    Spec(
        key="failing",
        labels=("FAIL/MIN",),
        forms=(_queue(lambda s: (rate_text(s.queue.failed_per_minute if s.queue else None), "")),),
        queue=True,
    ),
    Spec(key="last", labels=("LAST END",), forms=(_queue(_last),), queue=True),
    Spec(key="memory", labels=("MEMORY",), forms=(_memory(True), _memory(False))),
    Spec(
        key="trend",
        labels=("WAITING 15 MIN", "WAIT 15M"),
        forms=(_trend(lambda point: point.waiting, 1), _trend(lambda point: point.waiting, 2)),
        right=False,
        queue=True,
    ),
    Spec(
        key="ended",
        labels=("DONE 15 MIN",),
        forms=(_trend(lambda point: point.done, 1),),
        right=False,
        queue=True,
    ),
)
_TRENDS = ("trend", "ended")
# What gives way when the width is too small, first to last: a key alone drops the column, key:n takes its nth form.
REDUCTIONS = (
    *(
        "last",
        "ended",
        "later",
        "failing",
        "trend:1",
        "owner:1",
        "states:1",
        "owner:2",
        "trend",
        "failed",
        "memory:1",
        "memory",
        "run",
        "done",
        "owner",
    ),
    *("workers:1", "oldest", "waiting", "workers", "stuck", "states"),
)
_WIDEST_STATES = 48


def role_grid(fleet: Fleet, width: int, glyphs: Glyphs) -> Grid:
    """The table of roles, at most `width` columns wide; rows keep the order of the fleet."""
    if width < 1 or not fleet.roles:
        return Grid()
    view = view_of(fleet, glyphs)
    no_queue = any(source.name == "queue" and source.state == "absent" for source in fleet.sources)
    watched = any(status.trend is not None and status.trend.points for status in fleet.roles)
    specs = [spec for spec in SPECS if not (no_queue and spec.queue) and (watched or spec.key not in _TRENDS)]
    form = {spec.key: 0 for spec in specs}
    states = [state_forms(status, view) for status in fleet.roles]

    def needed(spec: Spec) -> int:
        label = len(_label(spec, form))
        if spec.key == _STATES:
            wish = 0 if form[_STATES] else min(_WIDEST_STATES, max(part_columns(forms[0]) for forms in states))
            return max(label, wish, *(part_columns(_signs(forms)) for forms in states))
        return max(label, *(part_columns(parts) for parts in made(spec)))

    known: dict[tuple[str, int], list[Parts]] = {}

    def made(spec: Spec) -> list[Parts]:
        """Its cells in the form it has, one a role."""
        key = (spec.key, form[spec.key])
        if key not in known:
            known[key] = [spec.forms[form[spec.key]](status, view) for status in fleet.roles]
        return known[key]

    widths = {spec.key: needed(spec) for spec in specs}
    for reduction in REDUCTIONS:
        if _total(widths) <= width:
            break
        key, _, number = reduction.partition(":")
        if key not in widths:
            continue
        if number:
            form[key] = int(number)
            widths[key] = needed(next(spec for spec in specs if spec.key == key))
        else:
            del widths[key]
    specs = [spec for spec in specs if spec.key in widths]
    if _STATES in widths:
        wish = min(_WIDEST_STATES, max(part_columns(forms[0]) for forms in states))
        widths[_STATES] = min(max(widths[_STATES], wish), widths[_STATES] + width - _total(widths))
    widths["role"] = min(widths["role"], width)
    gaps = max(1, len(specs) - 1)
    gap = min(3, 1 + (width - _total(widths)) // gaps)
    keys = unique([status.role.name for status in fleet.roles])
    rows = []
    _cell.begin()
    for place, (key, forms) in enumerate(zip(keys, states, strict=True)):
        parts: list[Parts] = [() if spec.key == _STATES else made(spec)[place] for spec in specs]
        rows.append(Row(key, _cells(forms, specs, parts, widths, gap)))
    return Grid(columns=_columns(specs, form, widths, gap), rows=tuple(rows))


def view_of(fleet: Fleet, glyphs: Glyphs) -> View:
    """Which of the fleet's values are old because their source fails."""
    failing: set[SourceName] = {source.name for source in fleet.sources if source.state in ("down", "denied")}
    return View(glyphs=glyphs, queue_stale="queue" in failing, host_stale=bool(failing & {"agent", "units"}))


def unique(keys: Sequence[str]) -> list[str]:
    """The keys, the second and later of equal ones marked, so that each names one row."""
    seen: Counter[str] = Counter()
    out = []
    for key in keys:
        seen[key] += 1
        out.append(key if seen[key] == 1 else f"{key}\0{seen[key]}")
    return out


def _signs(forms: list[Parts]) -> Parts:
    """The shortest form that still shows every state."""
    return min(forms[-3:-1] or forms, key=part_columns)


def _total(widths: dict[str, int]) -> int:
    return sum(widths.values()) + max(0, len(widths) - 1)


def _label(spec: Spec, form: dict[str, int]) -> str:
    return spec.labels[min(form[spec.key], len(spec.labels) - 1)]


def _columns(specs: list[Spec], form: dict[str, int], widths: dict[str, int], gap: int) -> tuple[Column, ...]:
    out = []
    for index, spec in enumerate(specs):
        after = gap if index < len(specs) - 1 else 0
        label = cell(((_label(spec, form), "head"),), widths[spec.key], spec.right, after).plain
        out.append(Column(spec.key, label, widths[spec.key] + after))
    return tuple(out)


_cell = Cells()


def _cells(
    states: list[Parts], specs: list[Spec], made: list[Parts], widths: dict[str, int], gap: int
) -> tuple[Cell, ...]:
    out = []
    for index, (spec, parts) in enumerate(zip(specs, made, strict=True)):
        width = widths[spec.key]
        if spec.key == _STATES:
            parts = next((parts for parts in states if part_columns(parts) <= width), states[-1])
        out.append(_cell(parts, width, spec.right, gap if index < len(specs) - 1 else 0))
    return tuple(out)
