"""Cron expressions as the cron that is installed reads them. Pure.

The rules are those of entry.c of Debian's cron 3.0pl1 and of cronie; where the two differ, the dialect decides:

- what follows a complete part of a field (`mon#1`, `0~30`, `*5`) Debian passes over in silence; cronie refuses it
  after a number or a name, and passes it over after a star;
- a range that runs backwards (`fri-sun`, `50-10`) is an empty one to Debian, which then never fires; cronie refuses it;
- a step without a range (`5/15`) both refuse.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from console.fleet.model import Value
from console.schedules.model import Dialect

SPECIALS = {
    "@reboot": "",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")  # 0 is Sunday
_LONGEST = {1: 31, 2: 29, 3: 31, 4: 30, 5: 31, 6: 30, 7: 31, 8: 31, 9: 30, 10: 31, 11: 30, 12: 31}


class _Rule(NamedTuple):
    name: str
    low: int
    high: int
    names: dict[str, int]


FIELDS = (
    _Rule("minute", 0, 59, {}),
    _Rule("hour", 0, 23, {}),
    _Rule("day of month", 1, 31, {}),
    _Rule("month", 1, 12, {name.lower(): number for number, name in enumerate(MONTHS, start=1)}),
    _Rule("day of week", 0, 7, {name.lower(): number for number, name in enumerate(DAYS)}),
)


class CronExpression(Value, frozen=True, kw_only=True):
    """When a line runs, as sorted numbers. A field that can never hold is empty."""

    text: str  # as the line has it: five fields joined by one blank, or @special
    fields: tuple[str, ...] = ()  # the five fields; none for @reboot
    minutes: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    days: tuple[int, ...] = ()  # of the month
    months: tuple[int, ...] = ()
    weekdays: tuple[int, ...] = ()  # 0 is Sunday
    both: bool = False  # the day must be one of `days` and of `weekdays`; otherwise either is enough
    by_the_clock: bool = (
        False  # minute or hour begins with *: when clocks change it follows them, nothing is made up for
    )
    remarks: tuple[str, ...] = ()  # what cron does with it that its author may not have meant

    @property
    def at_boot(self) -> bool:
        return not self.fields

    @property
    def every_day(self) -> bool:
        """No field restricts the day."""
        all_days, all_weekdays = len(self.days) == 31, len(self.weekdays) == 7
        free = (all_days and all_weekdays) if self.both else (all_days or all_weekdays)
        return free and len(self.months) == 12

    @property
    def fires(self) -> bool:
        """There is a time at which it runs."""
        if not (self.minutes and self.hours and self.months):
            return False
        some_day = any(self.days[0] <= _LONGEST[month] for month in self.months) if self.days else False
        return some_day and bool(self.weekdays) if self.both else some_day or bool(self.weekdays)


@functools.lru_cache(maxsize=4096)
def parse(text: str, dialect: Dialect = "debian") -> CronExpression:
    """The expression as numbers. ValueError says which field is wrong and why."""
    if text.startswith("@"):
        if text not in SPECIALS:
            raise ValueError(f"{text} is no schedule cron knows")
        fields = tuple(SPECIALS[text].split())
        if not fields:
            return CronExpression(text=text)
    else:
        fields = tuple(re.split("[ \t]+", text.strip(" \t")))
        if len(fields) != len(FIELDS):
            raise ValueError(f"{text!r} has {len(fields)} of the 5 fields of a schedule")
    remarks: list[str] = []
    sets = [_field(field, rule, dialect, remarks) for field, rule in zip(fields, FIELDS, strict=True)]
    expression = CronExpression(
        text=text,
        fields=fields,
        minutes=tuple(sorted(sets[0])),
        hours=tuple(sorted(sets[1])),
        days=tuple(sorted(sets[2])),
        months=tuple(sorted(sets[3])),
        weekdays=tuple(sorted({day % 7 for day in sets[4]})),
        both=fields[2].startswith("*") or fields[4].startswith("*"),
        by_the_clock=fields[0].startswith("*") or fields[1].startswith("*"),
    )
    return msgspec.structs.replace(expression, remarks=(*remarks, *_meant_otherwise(expression)))


def _field(text: str, rule: _Rule, dialect: Dialect, remarks: list[str]) -> set[int]:
    """entry.c, get_list: parts joined by commas, the star included."""
    found: set[int] = set()
    rest = text
    while True:
        first, last, step = rule.low, rule.high, 1
        if rest.startswith("*"):
            rest = rest[1:]
            may_step = True
        else:
            first, rest = _number(rest, text, rule)
            last, may_step = first, False
            if rest.startswith("-"):
                last, rest = _number(rest[1:], text, rule)
                may_step = True
            elif rest.startswith("/"):
                raise _wrong(text, rule, "a step needs a range")
        if may_step and rest.startswith("/"):
            step, rest = _number(rest[1:], text, _Rule(rule.name, 0, 0, {}))
            if step == 0:
                raise _wrong(text, rule, "the step is 0")
        if not (rule.low <= first <= rule.high and rule.low <= last <= rule.high):
            raise _wrong(text, rule, f"it goes from {rule.low} to {rule.high}")
        if first > last:
            if dialect == "cronie":
                raise _wrong(text, rule, "the range runs backwards")
            remarks.append(f"{rule.name} {text}: the range runs backwards, and cron takes it for an empty one")
        found.update(range(first, last + 1, step))
        if not rest.startswith(","):
            break
        rest = rest[1:]
    if rest:
        after_star = re.search(r"\*[^,/][^,]*\Z", text)
        if dialect == "cronie" and not after_star:
            raise _wrong(text, rule, f"{rest!r} is not understood")
        remarks.append(f"{rule.name} {text}: cron passes over {rest} in silence")
    return found


def _number(text: str, field: str, rule: _Rule) -> tuple[int, str]:
    found = re.match(r"[0-9A-Za-z]+", text)
    if not found:
        raise _wrong(field, rule)
    word = found[0].lower()
    if word.isdigit() and len(word) < 6:
        return int(word), text[found.end() :]
    if word in rule.names:
        return rule.names[word], text[found.end() :]
    raise _wrong(field, rule)


def _wrong(field: str, rule: _Rule, why: str = "") -> ValueError:
    return ValueError(f"{field!r} is no {rule.name}" + (f": {why}" if why else ""))


def _meant_otherwise(expression: CronExpression) -> list[str]:
    """Sentences about what is legal and surprises."""
    found: list[str] = []
    for field, rule, size in zip(expression.fields[:2], FIELDS[:2], (60, 24), strict=True):
        step = re.fullmatch(r"\*/(\d+)", field)
        if step and size % int(step[1]) and int(step[1]) < size:
            gap = size % int(step[1])
            found.append(f"{rule.name} {field}: counted anew in every {_OUTER[rule.name]}, the last gap is {gap} only")
        elif step and int(step[1]) >= size:
            found.append(
                f"{rule.name} {field}: the step is longer than the {_OUTER[rule.name]}, only {rule.name} 0 is left"
            )
    day, weekday = expression.fields[2], expression.fields[4]
    if not expression.both and expression.fires:
        found.append(f"day of month {day} and day of week {weekday}: either is enough, not both")
    elif len(expression.days) < 31 and len(expression.weekdays) < 7:
        found.append(f"day of month {day} and day of week {weekday}: both must hold, because one begins with *")
    if not expression.fires:
        found.append("it never fires")
    return found


_OUTER = {"minute": "hour", "hour": "day"}


# --- how often ------------------------------------------------------------------------------------------------------


def per_hour(schedule: str) -> float | None:
    """How often it fires in an hour, on average over four years; None: only at boot, or never.

    Counted by python-crontab where it follows cron's rules; a day of month together with a day of week means "either
    of them" to cron and "both" to python-crontab, so that case is counted here.
    """
    try:
        expression = parse(schedule)
    except ValueError:
        return None
    if expression.at_boot:
        return None
    yearly: float | None = None
    if expression.fields[2] == "*" and expression.fields[4] == "*":
        yearly = _by_python_crontab(" ".join(expression.fields))
    if yearly is None:
        yearly = _days_a_year(expression) * len(expression.minutes) * len(expression.hours)
    return yearly / (365 * 24) if yearly else None


def _by_python_crontab(schedule: str) -> float | None:
    try:
        from crontab import CronSlices

        return float(CronSlices(schedule).frequency(year=2027))
    except Exception:  # noqa: BLE001  it raises several kinds for what cron accepts; it is counted here then
        return None


def spans(values: Sequence[int]) -> list[tuple[int, int]]:
    """The runs of sorted numbers without a gap, each as its first and last."""
    found: list[tuple[int, int]] = []
    for value in values:
        if found and found[-1][1] == value - 1:
            found[-1] = found[-1][0], value
        else:
            found.append((value, value))
    return found


def runs_on(expression: CronExpression, day: datetime.date) -> bool:
    """Whether it runs on this day at all."""
    if day.month not in expression.months:
        return False
    by_month, by_week = day.day in expression.days, day.isoweekday() % 7 in expression.weekdays
    return (by_month and by_week) if expression.both else (by_month or by_week)


def _days_a_year(expression: CronExpression) -> float:
    first = datetime.date(2025, 1, 1)
    return sum(runs_on(expression, first + datetime.timedelta(days=number)) for number in range(4 * 365 + 1)) / 4
