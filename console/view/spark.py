"""Pure: the last minutes of a queue as a line of bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from console.fleet.model import Trend, TrendPoint

TREND_MINUTES = 15


def spark(values: Sequence[float | None], bars: str) -> str:
    """One bar per value, the greatest the highest; a blank where nothing is known."""
    most = max((value for value in values if value is not None), default=0)
    steps = len(bars) - 1
    return "".join(
        " " if value is None else bars[0] if most <= 0 else bars[min(steps, max(0, round(value / most * steps)))]
        for value in values
    )


def minutes(trend: Trend, read: Callable[[TrendPoint], int | None], number: int) -> list[float | None]:
    """The values of the last `number` minutes up to the newest point, oldest first."""
    out: list[float | None] = [None] * number
    if not trend.points:
        return out
    last = trend.points[-1].at
    for point in trend.points:
        back = round((last - point.at) / 60)
        if 0 <= back < number:
            out[number - 1 - back] = read(point)
    return out
