"""Pure: the last minutes of a role's queue as data to plot, and its present numbers as a table.

What is not known is a gap, never a zero: a line ends before it and begins anew behind it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, get_args

import msgspec

from console.fleet.counts import is_paused
from console.fleet.model import Fleet, QueueCounts, RoleStatus, Trend, TrendPoint
from console.text import ago, duration, grouped
from console.view.cells import Grid, Part, Tone, cell, safe
from console.view.jobs import lasted
from console.view.listing import ListColumn, Look, Parts, list_grid
from console.view.rows import count_text, rate_text

Measure = Literal["waiting", "oldest", "done", "failed"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
TITLES: dict[Measure, str] = {
    "waiting": "waiting",
    "oldest": "oldest waiting",
    "done": "done per minute",
    "failed": "failed per minute",
}
_MINUTE = 60.0
_TICKS = 3
_LATELY = 1.5  # minutes; the present one is not over, so what was done in it is not known yet
_OLD = 120.0  # seconds
_BIG = 1e15  # nothing that is counted is larger; keeps the arithmetic of a plot finite


class Run(msgspec.Struct, frozen=True):
    """Minutes that follow each other without a gap: x is minutes before now (-14 ... 0), y the values."""

    x: tuple[float, ...]
    y: tuple[float, ...]


class PlotData(msgspec.Struct, frozen=True, kw_only=True):
    """One plot: what is drawn, and the ends and labels of its axes. No runs: nothing is known."""

    measure: Measure
    title: str
    runs: tuple[Run, ...] = ()
    first: float = -1.0  # the left end of x, minutes before the newest point
    top: float = 1.0  # the upper end of y; the lower one is 0
    y_ticks: tuple[tuple[float, str], ...] = ()
    x_ticks: tuple[tuple[float, str], ...] = ()


def plot_data(trend: Trend | None, measure: Measure, minutes: int = 60) -> PlotData:
    """The last `minutes` of a measure, ready to be drawn."""
    read = _READ[measure]
    points = sorted((p for p in (trend.points if trend else ()) if math.isfinite(p.at)), key=lambda p: p.at)
    newest = points[-1].at if points else 0.0
    runs: list[Run] = []
    xs: list[float] = []
    ys: list[float] = []

    def end_run() -> None:
        if xs:
            runs.append(Run(tuple(xs), tuple(ys)))
            xs.clear()
            ys.clear()

    first = -1.0
    for point in points:
        x = (point.at - newest) / _MINUTE
        if x < -minutes:
            continue
        first = min(first, x)
        value = read(point)
        if value is None or not math.isfinite(value):
            end_run()
            continue
        if xs and x - xs[-1] > 1.5:  # a minute is missing altogether
            end_run()
        xs.append(x)
        ys.append(min(max(0.0, float(value)), _BIG))
    end_run()
    highest = max((max(run.y) for run in runs), default=0.0)
    top, step = _scale(highest, measure)
    last = runs[-1].y[-1] if runs and runs[-1].x[-1] >= -_LATELY else None
    return PlotData(
        measure=measure,
        title=f"{TITLES[measure]}  {_value(last, measure) if last is not None else '?'}",
        runs=tuple(runs),
        first=first,
        top=top,
        y_ticks=tuple((step * n, _value(step * n, measure)) for n in range(int(top / step + 0.5) + 1)),
        x_ticks=((first, f"-{ago(-first * _MINUTE)}"), (0.0, "now")),
    )


def _scale(highest: float, measure: Measure) -> tuple[float, float]:
    """(top, step) of an axis that starts at 0: round numbers, of seconds for an age."""
    if measure == "oldest":
        steps = [1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0]
        steps += [86400.0 * days for days in (1, 2, 5, 10, 30, 100, 300)]
        step = next((s for s in steps if s * _TICKS >= highest), 0.0) or math.ceil(highest / _TICKS)
        return step * max(1, math.ceil(highest / step)), step
    power = 10.0 ** max(0, math.floor(math.log10(max(1.0, highest / _TICKS))))
    step = next(power * m for m in (1, 2, 5, 10) if power * m * _TICKS >= highest)
    return step * max(1, math.ceil(highest / step)), step


def _value(value: float, measure: Measure) -> str:
    if measure == "oldest":
        return duration(value)
    if value >= 100_000:
        power, unit = (1e9, "G") if value >= 1e9 else (1e6, "M") if value >= 1e6 else (1e3, "k")
        return f"{value / power:g}{unit}" if value / power == round(value / power) else f"{value / power:.1f}{unit}"
    return grouped(round(value))


def _oldest(point: TrendPoint) -> float | None:
    return point.oldest if point.oldest is not None else (0.0 if point.waiting == 0 else None)


_READ: dict[Measure, Callable[[TrendPoint], float | None]] = {
    "waiting": lambda point: point.waiting,
    "oldest": _oldest,  # with nothing waiting the oldest is 0 old, and that is known
    "done": lambda point: point.done,
    "failed": lambda point: point.failed,
}


# --- the numbers of now --------------------------------------------------------------------------------------------


def _column(
    key: str, label: str, read: Callable[[RoleStatus, QueueCounts, Look], Part], leave: int
) -> ListColumn[RoleStatus]:
    def parts(status: RoleStatus, look: Look) -> Parts:
        text, tone = read(status, status.queue, look) if status.queue is not None else ("?", "dim")
        return ((text, "stale" if look.queue_stale else tone),)

    return ListColumn(key=key, label=label, parts=parts, right=True, leave=leave)


def _waiting(status: RoleStatus, queue: QueueCounts, look: Look) -> Part:
    number = count_text(queue.waiting)
    return (f"{look.glyphs.paused} paused {number}", "warn") if is_paused(status.role, queue) else (number, "")


def _age(status: RoleStatus, queue: QueueCounts, look: Look) -> Part:
    age = queue.oldest_waiting
    if age is None:
        return look.glyphs.none, "dim"
    return lasted(age), "bad" if age > status.role.oldest_limit else ""


def _stuck(status: RoleStatus, queue: QueueCounts, look: Look) -> Part:
    return "?" if status.stuck is None else grouped(status.stuck), "bad" if status.stuck else "dim"


_COLUMNS: tuple[ListColumn[RoleStatus], ...] = (
    ListColumn(
        key="role", label="ROLE", parts=lambda s, look: ((safe(s.role.name, 40), "strong"),), fill=True, least=10
    ),
    _column("waiting", "WAITING", _waiting, 0),
    _column("later", "LATER", lambda s, queue, look: (count_text(queue.scheduled), "dim"), 6),
    _column("oldest", "OLDEST", _age, 1),
    _column("run", "RUN", lambda s, queue, look: (count_text(queue.running), ""), 4),
    _column("stuck", "STUCK", _stuck, 2),
    _column("failed", "FAILED", lambda s, q, look: (count_text(q.failed), "warn" if q.failed.n else "dim"), 5),
    _column("done", "DONE/MIN", lambda s, queue, look: (rate_text(queue.done_per_minute), ""), 3),
    _column(
        *("failing", "FAIL/MIN"),
        lambda s, q, look: (rate_text(q.failed_per_minute), "warn" if q.failed_per_minute else "dim"),
        7,
    ),
)


def queue_grid(fleet: Fleet, width: int, look: Look) -> Grid:
    """The present numbers of every role that has rows; the key of a row is the role's name."""
    shown = roles_with_rows(fleet)
    return list_grid(shown, [status.role.name for status in shown], _COLUMNS, width, look) if shown else Grid()


def roles_with_rows(fleet: Fleet) -> list[RoleStatus]:
    """The roles whose jobs are looked at: those that name a queue."""
    return [status for status in fleet.roles if status.queue is not None or status.role.queues]


def title_parts(
    status: RoleStatus | None, taken_age: float | None, measure: Measure | None, width: int
) -> tuple[Part, ...]:
    """ "TREND of mail  read 4 s ago"."""
    if status is None:
        return cell((("TREND", "head"),), width).parts
    tone: Tone = "dim"
    said = "  not read yet"
    if taken_age is not None and math.isfinite(taken_age) and status.trend is not None:
        said = f"  {len(status.trend.points)} minutes"
        if taken_age > _OLD:
            said, tone = f"{said}, read {ago(taken_age)} ago", "warn"
    more = "  Esc shows all plots" if measure is not None else ""
    parts: tuple[Part, ...] = (
        *(("TREND of ", "head"), (safe(status.role.name, 24), "head"), (said, tone), (more, "dim")),
    )
    return cell(parts, width).parts


def why_nothing(fleet: Fleet | None) -> str:
    """Why there is nothing to plot, and the next key; "" when there is; raw."""
    if fleet is None:
        return "asking the queue   q quits, ? help"
    if roles_with_rows(fleet):
        return ""
    queue = next((source for source in fleet.sources if source.name == "queue"), None)
    if queue is not None and queue.state == "absent":
        return "no database: name one in worktop.toml or PGHOST; worktop doctor tries it"
    if queue is not None and queue.state in ("down", "denied"):
        why = queue.problem.why if queue.problem is not None else queue.text
        return f"the queue could not be read: {why}; ctrl+r asks again"
    if queue is not None and queue.state == "waiting":
        return "asking the queue   q quits, ? help"
    return "no role names a queue: write one into worktop.toml; ctrl+r asks again"
