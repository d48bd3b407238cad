"""Whether a timer would fire when cron does: instants of the two compared. Pure; the host asks systemd.

A proof covers the next instants, and the hours around the next two changes of the clock, from what cronsim says of the
cron expression and what `systemd-analyze calendar` says of the OnCalendar= values.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from console.fleet.model import Value
from console.schedules.expression import CronExpression
from console.schedules.runs import changes, instants

NEXT = 50  # instants from now on
AROUND = 3 * 3600  # seconds before and after a change of the clock
HORIZON = 50 * 365 * 86400  # seconds: what comes later is not compared; systemd ends with the year 2199


class Window(Value, frozen=True, kw_only=True):
    """A span of time to compare; `after` and `until` are seconds since the epoch, `until` belongs to it."""

    after: int
    until: int | None = None  # None: as far as `count` instants of cron reach
    count: int = NEXT


class Difference(Value, frozen=True, kw_only=True):
    """An instant at which only one of them runs."""

    at: int  # seconds since the epoch
    local: str  # "2027-03-28 03:00 CEST"
    only: str  # "cron", "timer"

    @property
    def text(self) -> str:
        return (
            f"{self.local}: {'cron runs it, the timer does not' if self.only == 'cron' else 'only the timer runs it'}"
        )


class Proof(Value, frozen=True, kw_only=True):
    """What the comparison found."""

    zone: str
    lines: tuple[str, ...] = ()  # of OnCalendar=
    compared: int = 0  # instants of cron
    changes: tuple[int, ...] = ()  # of the clock, that were looked at
    differences: tuple[Difference, ...] = ()
    problem: str = ""  # why nothing could be compared; "" otherwise

    @property
    def equal(self) -> bool:
        return not self.problem and not self.differences


def windows(zone: ZoneInfo, now: float) -> tuple[Window, ...]:
    """What a proof looks at: the next instants, then the hours around each change of the clock."""
    near = [Window(after=change - AROUND, until=change + AROUND) for change in changes(zone, now)]
    return (Window(after=int(now)), *near)


def expected(expression: CronExpression, zone: ZoneInfo, window: Window) -> tuple[int, ...]:
    """When cron runs in the window."""
    found = takewhile(lambda instant: instant <= _end(window), instants(expression, zone, window.after))
    return tuple(found if window.until is not None else islice(found, window.count))


def _end(window: Window) -> int:
    return window.after + HORIZON if window.until is None else window.until


def to_ask(cron: Sequence[int], window: Window) -> int:
    """How many instants of the timer are enough to see every difference, or that there are many; few steps, so that
    one call of systemd-analyze serves many expressions."""
    if window.until is None:
        return window.count
    return next(size for size in (16, 64, 256, 1024) if size >= min(len(cron) + 10, 1024))


def differences(
    cron: Sequence[int], timer: Sequence[Sequence[int]], asked: int, window: Window, zone: ZoneInfo
) -> tuple[Difference, ...]:
    """Instants of one of them only, as far as all are known; `timer`: of each of its lines, at most `asked` each."""
    until = cron[-1] if window.until is None and len(cron) == window.count else _end(window)
    until = min([until, *(line[-1] for line in timer if len(line) == asked)])
    others = {at for line in timer for at in line if window.after < at <= until}
    known = {at for at in cron if at <= until}
    lone = [(at, "cron") for at in known - others] + [(at, "timer") for at in others - known]
    return tuple(Difference(at=at, local=_local(at, zone), only=only) for at, only in sorted(lone))


def read_calendar(output: str) -> tuple[tuple[int, ...], ...]:
    """The instants of each expression, from what `systemd-analyze calendar` writes: a block of lines for each.

    An instant in a zone other than UTC stands once more below, in UTC.
    """
    found: list[list[int]] = []
    for line in output.splitlines():
        label, _, value = line.strip().partition(": ")
        if label == "Normalized form":
            found.append([])
        elif found and value.endswith(" UTC") and (label in ("Next elapse", "(in UTC)") or label.startswith("Iter. #")):
            when = datetime.datetime.strptime(value.partition(" ")[2], "%Y-%m-%d %H:%M:%S UTC")
            found[-1].append(int(when.replace(tzinfo=datetime.UTC).timestamp()))
    return tuple(tuple(one) for one in found)


def _local(at: int, zone: ZoneInfo) -> str:
    return f"{datetime.datetime.fromtimestamp(at, zone):%Y-%m-%d %H:%M %Z}"
