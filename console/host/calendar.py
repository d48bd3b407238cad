"""Asks systemd when a timer would elapse, and compares it with when cron runs: the proof of a translation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from zoneinfo import ZoneInfo

from console.host.children import output_of
from console.schedules.expression import CronExpression
from console.schedules.proof import (
    AROUND,
    Difference,
    Proof,
    Window,
    differences,
    expected,
    read_calendar,
    to_ask,
    windows,
)

_SECONDS = 30.0
_AT_ONCE = 500  # expressions of one call: the command line of a process is limited


class Translated(NamedTuple):
    """An expression and the values of OnCalendar= that are to stand for it."""

    expression: CronExpression
    lines: tuple[str, ...]


async def prove(translated: Sequence[Translated], zone: ZoneInfo, now: float) -> tuple[Proof, ...]:
    """Compare the next fifty instants, and those around the next two changes of the clock. Raises nothing: where
    systemd-analyze cannot be asked, or refuses a line, the proof has a problem.

    `zone`: the host's, which lines without one of their own are read in. An expression without lines is compared as a
    timer that never elapses.
    """
    return await compare(translated, zone, windows(zone, now))


async def compare(translated: Sequence[Translated], zone: ZoneInfo, looked_at: Sequence[Window]) -> tuple[Proof, ...]:
    """As `prove`, in these windows."""
    found: list[list[Difference]] = [[] for _ in translated]
    compared = [0] * len(translated)
    problem = ""
    for window in looked_at:
        cron = [expected(one.expression, zone, window) for one in translated]
        counts = [to_ask(each, window) for each in cron]
        timers = await _elapses(translated, counts, zone, window)
        if isinstance(timers, str):
            problem = timers
            break
        for place, (each, timer, count) in enumerate(zip(cron, timers, counts, strict=True)):
            compared[place] += len(each)
            found[place] += differences(each, timer, count, window, zone)
    around = tuple(window.after + AROUND for window in looked_at if window.until is not None)
    return tuple(
        Proof(
            zone=zone.key,
            lines=one.lines,
            compared=count,
            changes=around,
            differences=tuple(differ),
            problem=problem,
        )
        for one, differ, count in zip(translated, found, compared, strict=True)
    )


async def _elapses(
    translated: Sequence[Translated], counts: Sequence[int], zone: ZoneInfo, window: Window
) -> list[list[tuple[int, ...]]] | str:
    """When each line of each timer elapses, `counts` times from the window's start, or why systemd does not say."""
    found: list[list[tuple[int, ...]]] = [[] for _ in translated]
    for count in sorted(set(counts)):
        asked = [(place, line) for place, one in enumerate(translated) if counts[place] == count for line in one.lines]
        for start in range(0, len(asked), _AT_ONCE):
            some = asked[start : start + _AT_ONCE]
            answers = await ask([line for _, line in some], count, zone, window)
            if isinstance(answers, str):
                return answers
            for (place, _), instants in zip(some, answers, strict=True):
                found[place].append(instants)
    return found


async def ask(lines: list[str], count: int, zone: ZoneInfo, window: Window) -> tuple[tuple[int, ...], ...] | str:
    """When each of these values of OnCalendar= elapses, `count` times from the window's start; or why not told."""
    given = ["env", f"TZ={zone.key}", "systemd-analyze", "calendar", f"--iterations={count}"]
    asked = await output_of([*given, f"--base-time=@{window.after}", "--", *lines], _SECONDS)
    answers = read_calendar(asked.out.decode("utf-8", "replace"))
    if asked.status != 0 or len(answers) != len(lines):
        why = asked.err.decode("utf-8", "replace").strip().partition("\n")[0]
        return f"systemd-analyze calendar: {why or 'another answer than expected'}"
    return answers
