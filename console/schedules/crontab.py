r"""Crontabs read as cron reads them: bytes, split on \n only. Pure.

The rules are those of Debian's cron 3.0 (entry.c, env.c, misc.c, do_command.c); where cronie differs it is said.
Line numbers count the bytes' line ends, so that a line can be found again in the file exactly.
"""

from __future__ import annotations

import calendar
import datetime
import re
from typing import NamedTuple

from console.fleet.model import Value

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

_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_DAYS = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)


class Entry(Value, frozen=True, kw_only=True):
    """One line that runs something."""

    line: int  # 1-based
    schedule: str  # five fields joined by one blank, or @special
    user: str  # of a system crontab; "" in a user's own
    command: str  # as the shell gets it: % and \% handled
    stdin: str = ""  # what stands behind the first unescaped %
    environment: tuple[tuple[str, str], ...] = ()  # the settings above the line


class Mistake(Value, frozen=True, kw_only=True):
    """A line cron does not understand. Debian's cron then ignores the whole file."""

    line: int
    why: str


class Crontab(Value, frozen=True, kw_only=True):
    entries: tuple[Entry, ...] = ()
    mistakes: tuple[Mistake, ...] = ()


class Times(NamedTuple):
    """A schedule as sets; `star`: the day of month or the day of week begins with * (then both must hold)."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # 0 is Sunday
    star: bool


def parse(data: bytes, system: bool) -> Crontab:
    """Every line of a crontab; `system`: of /etc/crontab and /etc/cron.d, where a sixth field names the user.

    Never raises. Bytes that are not UTF-8 are shown as U+FFFD.
    """
    entries: list[Entry] = []
    mistakes: list[Mistake] = []
    environment: dict[str, str] = {}
    for number, raw in enumerate(data.split(b"\n"), start=1):
        text = raw.decode("utf-8", "replace").lstrip(" \t")
        if not text or text.startswith("#") or text == "\r":
            continue
        setting = _setting(text)
        if setting is not None:
            environment[setting[0]] = setting[1]
            continue
        try:
            entries.append(_entry(text, number, system, tuple(environment.items())))
        except ValueError as error:
            mistakes.append(Mistake(line=number, why=str(error)))
    return Crontab(entries=tuple(entries), mistakes=tuple(mistakes))


def _setting(text: str) -> tuple[str, str] | None:
    """`NAME = value`, with optional quotes around either; None for anything else (env.c, load_env)."""
    found = re.match(r"""(?:"([^"]*)"|'([^']*)'|([^\s="'][^\s=]*))[ \t]*=[ \t]*(.*)\Z""", text, re.DOTALL)
    if not found:
        return None
    name = next((part for part in found.groups()[:3] if part is not None), "")
    value = found[4].rstrip(" \t")
    if len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]:
        value = value[1:-1]
    return name, value


def _entry(text: str, number: int, system: bool, environment: tuple[tuple[str, str], ...]) -> Entry:
    if text.startswith("@"):
        special, rest = _word(text)
        schedule = special.lower()
        if schedule not in SPECIALS:
            raise ValueError(f"{special} is no schedule cron knows")
    else:
        rest = text.removeprefix("-")  # cronie: do not log
        fields: list[str] = []
        for name, *_ in _FIELDS:
            field, rest = _word(rest)
            if not field:
                raise ValueError(f"the {name} is missing")
            fields.append(field)
        schedule = " ".join(fields)
        times(schedule)
    user = ""
    if system:
        user, rest = _word(rest)
        if not user:
            raise ValueError("the user is missing")
    rest = rest.lstrip(" \t")
    if not rest.strip():
        raise ValueError("the command is missing")
    command, stdin = split_percent(rest)
    return Entry(line=number, schedule=schedule, user=user, command=command, stdin=stdin, environment=environment)


def _word(text: str) -> tuple[str, str]:
    found = re.match(r"[ \t]*([^ \t]*)(.*)\Z", text, re.DOTALL)
    assert found is not None  # every part may be empty
    return found[1], found[2]


def split_percent(text: str) -> tuple[str, str]:
    r"""The command and what it gets on stdin (do_command.c).

    The first % that no backslash precedes ends the command; \% is % and \\ is \ in it. In what follows % is a line
    end and \% is %.
    """
    command: list[str] = []
    escaped = False
    for place, char in enumerate(text):
        if escaped:
            if char in "%\\":
                command.pop()
            command.append(char)
            escaped = False
            continue
        if char == "%":
            return "".join(command), re.sub(r"\\%|%", lambda hit: "%" if len(hit[0]) > 1 else "\n", text[place + 1 :])
        command.append(char)
        escaped = char == "\\"
    return "".join(command), ""


# --- schedules ------------------------------------------------------------------------------------------------------


def times(schedule: str) -> Times | None:
    """The schedule as sets of numbers; None for @reboot. ValueError says which field is wrong and why."""
    schedule = SPECIALS.get(schedule.lower(), schedule)
    if not schedule:
        return None
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"{len(fields)} fields instead of 5")
    sets = [_field(text, *rule) for text, rule in zip(fields, _FIELDS, strict=True)]
    weekdays = frozenset(0 if day == 7 else day for day in sets[4])
    return Times(sets[0], sets[1], sets[2], sets[3], weekdays, fields[2].startswith("*") or fields[4].startswith("*"))


def _field(text: str, name: str, low: int, high: int, names: dict[str, int]) -> frozenset[int]:
    """entry.c, get_list: parts joined by commas; what follows a part that is complete is passed over in silence."""
    found: set[int] = set()
    rest = text
    while True:
        first, last, step = low, high, 1
        if rest.startswith("*"):
            rest = rest[1:]
            may_step = True
        else:
            first, rest = _number(rest, text, name, names)
            last = first
            may_step = False
            if rest.startswith("-"):
                last, rest = _number(rest[1:], text, name, names)
                may_step = True
            elif rest.startswith("/"):
                raise ValueError(f"{text!r} is no {name}: a step needs a range")
        if may_step and rest.startswith("/"):
            step, rest = _number(rest[1:], text, name, {})
            if step == 0:
                raise ValueError(f"{text!r} is no {name}: the step is 0")
        numbers = range(first, last + 1, step)
        if first < low or first > high or (numbers and numbers[-1] > high):
            raise ValueError(f"{text!r} is no {name}: it goes from {low} to {high}")
        found.update(numbers)
        if not rest.startswith(","):
            return frozenset(found)
        rest = rest[1:]


def _number(text: str, field: str, name: str, names: dict[str, int]) -> tuple[int, str]:
    found = re.match(r"[0-9A-Za-z]+", text)
    if not found:
        raise ValueError(f"{field!r} is no {name}")
    word = found[0].lower()
    if word.isascii() and word.isdigit() and len(word) < 6:
        return int(word), text[found.end() :]
    if word in names:
        return names[word], text[found.end() :]
    raise ValueError(f"{field!r} is no {name}")


def per_hour(schedule: str) -> float | None:
    """How often it fires in an hour, on average over four years; None: only at boot, or never.

    Counted by python-crontab where it follows cron's rules; a day of month together with a day of week means "either
    of them" to cron and "both" to python-crontab, so that case is counted here.
    """
    try:
        when = times(schedule)
    except ValueError:
        return None
    if when is None:
        return None
    expanded = SPECIALS.get(schedule.lower(), schedule)
    fields = expanded.split()
    yearly: float | None = None
    if fields[2] == "*" and fields[4] == "*":
        yearly = _by_python_crontab(expanded)
    if yearly is None:
        yearly = _days_a_year(when) * len(when.minutes) * len(when.hours)
    return yearly / (365 * 24) if yearly else None


def _by_python_crontab(schedule: str) -> float | None:
    try:
        from crontab import CronSlices

        return float(CronSlices(schedule).frequency(year=2027))
    except Exception:  # noqa: BLE001  it raises several kinds for what cron accepts; it is counted here then
        return None


def _days_a_year(when: Times) -> float:
    day = datetime.date(2025, 1, 1)
    fires = 0
    for _ in range(4 * 365 + 1):
        if day.month in when.months:
            by_month, by_week = day.day in when.days, day.isoweekday() % 7 in when.weekdays
            fires += (by_month and by_week) if when.star else (by_month or by_week)
        day += datetime.timedelta(days=1)
    return fires / 4
