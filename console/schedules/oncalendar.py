"""A cron expression as OnCalendar= of a systemd timer (systemd.time(7)): one line or, where either day is enough, two.

Two lines that name the same instant start the service once. A timer follows the local clock: it passes over what a gap
leaves out and runs the first of what comes twice. Lines that run in every hour of every day are therefore written in
UTC, where no hour is missing or double; whatever else differs when clocks change, a proof lists (proof.py).
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from zoneinfo import ZoneInfo

from console.fleet.model import Value
from console.schedules.expression import DAYS, CronExpression, runs_on, spans
from console.schedules.runs import changes

_NO_TIME = datetime.timedelta(0)
_WEEK = (1, 2, 3, 4, 5, 6, 0)  # systemd counts from Monday


class Translation(Value, frozen=True, kw_only=True):
    """The values of OnCalendar=, none when there is nothing to translate, and what to know about it."""

    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def on_calendar(expression: CronExpression, zone: ZoneInfo, now: float, *, foreign: bool = False) -> Translation:
    """`zone`: in which cron reads the expression; `foreign`: it is not the zone of the host (CRON_TZ of cronie).

    `now`: seconds since the epoch; which changes of the clock lie ahead is seen from there.
    """
    if expression.at_boot:
        return Translation(warnings=("@reboot is no time of the clock: a unit that is enabled starts at boot",))
    if not expression.fires:
        return Translation(warnings=("it never fires: there is nothing to translate",))
    changing = changes(zone, now)
    minutes, suffix = expression.minutes, f" {zone.key}" if foreign else ""
    warnings: list[str] = list(expression.remarks)
    if len(expression.hours) == 24 and expression.every_day and expression.by_the_clock:
        shift = _one_shift(zone, changing)
        if shift is not None and (changing or not shift):
            minutes, suffix = tuple(sorted((minute - shift) % 60 for minute in minutes)), " UTC"
    if suffix != " UTC":
        warnings += [told for change in changing if (told := _differs(expression, zone, change))]
    clock = f"{_part(expression.hours, 24, expression.fields[1])}:{_part(minutes, 60, expression.fields[0])}:00{suffix}"
    return Translation(lines=tuple(f"{day} {clock}" for day in _dates(expression)), warnings=tuple(warnings))


def _dates(expression: CronExpression) -> tuple[str, ...]:
    """The days, as one value of OnCalendar= or as two of which either is enough."""
    months, days, week = _part(expression.months, 12), _part(expression.days, 31), _weekdays(expression.weekdays)
    any_day = f"*-{months}-*"
    if expression.every_day:
        return (any_day,)
    if expression.both:
        return (f"{week} *-{months}-{days}".lstrip(),)
    by_week = (f"{week} {any_day}".lstrip(),) if expression.weekdays else ()
    return (f"*-{months}-{days}", *by_week) if expression.days else by_week


def _part(values: tuple[int, ...], size: int, field: str = "") -> str:
    """Numbers as systemd writes them.

    A step stays one where the field has one, but only in minutes and where it divides the hour: systemd 252 passes
    over midnight of the first of a month for `00/10:00`, when the month before has fewer than 31 days.
    """
    if len(values) == size:
        return "*"
    step = values[1] - values[0] if len(values) > 2 else 0
    if "/" in field and size == 60 and step > 1 and 60 % step == 0 and values == tuple(range(values[0], 60, step)):
        return f"{values[0]:02}/{step}"
    return _listed(values)


def _listed(values: tuple[int, ...]) -> str:
    """Three and more in a row as "a..b"."""
    parts: list[str] = []
    for first, last in spans(values):
        long = last - first > 1
        parts += [f"{first:02}..{last:02}"] if long else [f"{value:02}" for value in range(first, last + 1)]
    return ",".join(parts)


def _weekdays(days: tuple[int, ...]) -> str:
    """ "Mon..Fri", "Sat,Sun"; "" for all: a range must not run over Sunday."""
    if len(days) == 7:
        return ""
    places = tuple(place for place, day in enumerate(_WEEK) if day in days)
    if len(places) > 2 and places[-1] - places[0] + 1 == len(places):
        return f"{DAYS[_WEEK[places[0]]]}..{DAYS[_WEEK[places[-1]]]}"
    return ",".join(DAYS[_WEEK[place]] for place in places)


def _differs(expression: CronExpression, zone: ZoneInfo, change: int) -> str:
    """What a timer does otherwise than cron when the clocks change at this instant, a sentence; "" for nothing."""
    after = datetime.datetime.fromtimestamp(change, zone)
    before = datetime.datetime.fromtimestamp(change - 1, zone)
    shift = (after.utcoffset() or _NO_TIME) - (before.utcoffset() or _NO_TIME)
    first = after.replace(tzinfo=None) - (shift if shift > _NO_TIME else _NO_TIME)
    last = first + abs(shift)
    hours = f"{first:%H:%M} to {last:%H:%M}"
    if shift > _NO_TIME and not expression.by_the_clock and _runs_within(expression, first, last):
        return f"on {first:%-d %B %Y} {hours} is left out: cron makes up for it right after, a timer does not run"
    if shift < _NO_TIME and expression.by_the_clock and _runs_within(expression, first, last):
        return f"on {first:%-d %B %Y} {hours} comes twice: cron runs in both, a timer in the first"
    return ""


def _runs_within(expression: CronExpression, first: datetime.datetime, last: datetime.datetime) -> bool:
    """By the local clock; the end does not belong to it."""
    steps = int((last - first).total_seconds()) // 60
    times = [first + datetime.timedelta(minutes=number) for number in range(steps)]
    return any(
        time.minute in expression.minutes and time.hour in expression.hours and runs_on(expression, time.date())
        for time in times
    )


def _one_shift(zone: ZoneInfo, changing: Sequence[int]) -> int | None:
    """By how many minutes the zone's full hours lie beside those of UTC; None when that changes."""
    instants = [*changing, *(instant - 1 for instant in changing)] or [0]
    offsets = [datetime.datetime.fromtimestamp(instant, zone).utcoffset() for instant in instants]
    shifts = {int(offset.total_seconds()) // 60 % 60 for offset in offsets if offset is not None}
    return shifts.pop() if len(shifts) == 1 else None
