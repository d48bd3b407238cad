"""When an entry runs: in words, and the next moments, for every kind of source. Pure."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from console.schedules.expression import parse
from console.schedules.model import Dialect, Entry, Scheduled
from console.schedules.oncalendar import on_calendar
from console.schedules.others import anacron_days
from console.schedules.runs import next_runs
from console.schedules.words import words

NEXT = 3  # runs that are told
_SAME_FOR = 3600.0  # seconds in which a translation is the same: it looks at the clock changes of years ahead
_DAY = 86400.0


def zone_of(name: str) -> ZoneInfo:
    """The zone of that name; UTC when there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def scheduled(entry: Entry, dialect: Dialect, zone: str, now: float) -> Scheduled | None:
    """None where nothing runs by the clock, or the expression means nothing.

    `zone`: in which the host's cron runs; a CRON_TZ of the entry counts where its cron heeds it.
    """
    kind = entry.source.kind
    if kind in ("timer", "supervisord", "pm2", "unit"):
        return Scheduled(expression=entry.expression, words=_of_systemd(entry), zone=zone) if entry.expression else None
    if kind == "anacron" or entry.label:  # a script of a folder that anacron runs has the label of that line
        return _of_anacron(entry)
    if not entry.expression:
        return None
    named = dict(entry.environment).get("CRON_TZ", "")
    own = named if dialect == "cronie" else ""
    found = _of_cron(entry.expression, dialect, own or zone, bool(own) and own != zone, now // _SAME_FOR)
    if found is None or entry.expression == "@reboot":
        return found
    if named and not own:
        ignored = f"CRON_TZ={named} does nothing: Debian's cron reads every line in the zone of the host"
        found = msgspec.structs.replace(found, warnings=(*found.warnings, ignored))
    return msgspec.structs.replace(found, next_runs=_next(entry.expression, dialect, own or zone, now // 60))


def period(scheduled: Scheduled | None) -> float | None:
    """Seconds between two runs, the shorter of the next; None when it does not run again and again."""
    runs = scheduled.next_runs if scheduled is not None else ()
    gaps = [later - sooner for sooner, later in pairwise(runs)]
    return min(gaps) if gaps else None


@lru_cache(maxsize=8192)
def _of_cron(expression: str, dialect: Dialect, zone: str, foreign: bool, hours: float) -> Scheduled | None:
    try:
        parsed = parse(expression, dialect)
    except ValueError:
        return None
    translated = on_calendar(parsed, zone_of(zone), hours * _SAME_FOR, foreign=foreign)
    return Scheduled(
        expression=expression,
        words=words(parsed),
        zone=zone,
        on_calendar=translated.lines,
        warnings=tuple(dict.fromkeys((*parsed.remarks, *translated.warnings))),
    )


@lru_cache(maxsize=8192)
def _next(expression: str, dialect: Dialect, zone: str, minutes: float) -> tuple[float, ...]:
    return next_runs(parse(expression, dialect), zone_of(zone), minutes * 60.0, NEXT)


def _of_anacron(entry: Entry) -> Scheduled | None:
    days = anacron_days(entry.expression)
    if days is None:
        return None
    often = "once a day" if days == 1 else f"every {days} days"
    return Scheduled(expression=entry.expression, words=f"{often}, by anacron, when the host is up")


def _of_systemd(entry: Entry) -> str:
    if entry.expression == "@reboot":
        return "at boot"
    return ", ".join(part.partition("=")[2] for part in entry.expression.split("; "))
