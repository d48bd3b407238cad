"""The instants at which cron runs an expression, by an engine of its own (cronsim), and when a zone changes its clocks.

cronsim reproduces what Debian's cron does when clocks change: a fixed time that the gap leaves out runs right after
it, one that comes twice runs the first time; a line whose minute or hour begins with * follows the clock. It reads the
expression itself wherever it means the same by it, so that it is a second opinion on the reading here.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import re
from collections.abc import Iterator
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from console.schedules.expression import CronExpression

_RANGE = re.compile(r"([0-9A-Za-z]+)-([0-9A-Za-z]+)(?:/\d+)?\Z")
_STAR = re.compile(r"\*(?:/\d+)?\Z")
_NUMBER = re.compile(r"[0-9A-Za-z]+\Z")


def instants(expression: CronExpression, zone: ZoneInfo, after: float) -> Iterator[int]:
    """Seconds since the epoch, each later than `after` and than the one before; none for @reboot.

    It ends when nothing is found within fifty years.
    """
    if not expression.fires:
        return
    begin = datetime.datetime.fromtimestamp(after, datetime.UTC if zone.key == "UTC" else zone)
    last = int(after)
    for when in _engine(expression, begin):
        instant = int(when.timestamp())
        if instant > last:  # two fixed times that a gap left out are made up for together
            last = instant
            yield instant


def next_runs(expression: CronExpression, zone: ZoneInfo, after: float, count: int = 3) -> tuple[float, ...]:
    """The next instants, seconds since the epoch; fewer when there are no more."""
    return tuple(float(instant) for instant, _ in zip(instants(expression, zone, after), range(count), strict=False))


@functools.lru_cache(maxsize=64)
def changes(zone: ZoneInfo, after: float, count: int = 2, days: int = 800) -> tuple[int, ...]:
    """The next instants at which the clocks of the zone change, seconds since the epoch; none within `days`: none."""
    found: list[int] = []
    start = int(after)
    for begin in range(start, start + days * 86400, 86400):
        low, high = begin, begin + 86400
        if _offset(zone, low) == _offset(zone, high):
            continue
        before = _offset(zone, low)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
        found.append(high)
        if len(found) == count:
            break
    return tuple(found)


def _offset(zone: ZoneInfo, instant: int) -> datetime.timedelta | None:
    return datetime.datetime.fromtimestamp(instant, zone).utcoffset()


def _engine(expression: CronExpression, begin: datetime.datetime) -> CronSim:
    """cronsim on the expression as it stands where both read it alike, and on its numbers otherwise."""
    numbers = (expression.minutes, expression.hours, expression.days, expression.months, expression.weekdays)
    fields = list(zip(expression.fields, numbers, strict=True))
    if all(_read_alike(field) for field, _ in fields):
        with contextlib.suppress(CronSimError):  # a range that runs backwards
            return CronSim(" ".join(expression.fields), begin)
    return CronSim(" ".join(_in_numbers(field, values) for field, values in fields), begin)


def _read_alike(field: str) -> bool:
    for part in field.split(","):
        found = _RANGE.match(part)
        if found and found[1].lower() == found[2].lower() and "/" in part:
            return False  # 5-5/10: cronsim takes it for 5/10
        if not (found or _STAR.match(part) or _NUMBER.match(part)):
            return False
    return True


def _in_numbers(field: str, values: tuple[int, ...]) -> str:
    """Numbers alone; after a star, which decides what the field means together with others, behind its first part."""
    text = ",".join(map(str, values))
    if not text:
        return "*"  # one of two days of which either is enough: then the other decides
    star = re.match(r"\*(?:/\d+)?", field)
    return f"{star[0]},{text}" if star else text
