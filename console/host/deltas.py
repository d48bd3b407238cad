"""Which items of a source are new or different since the console was last told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

MEMORY_STEP = 64 * 1024  # bytes; less is jitter
CPU_STEP = 0.01  # share of a core


class Delta(NamedTuple, Generic[T]):
    items: tuple[T, ...]
    gone: tuple[str, ...]
    full: bool

    @property
    def empty(self) -> bool:
        return not (self.items or self.gone or self.full)


class Told(Generic[T]):
    """What the console knows of one source."""

    def __init__(self) -> None:
        self.items: dict[str, T] = {}
        self._complete = False

    def forget(self) -> None:
        """The next delta is a full one."""
        self.items = {}
        self._complete = False

    def delta(self, now: Mapping[str, T]) -> Delta[T]:
        """What to send so that the console knows `now`; it counts as sent."""
        if not self._complete:
            self._complete = True
            self.items = dict(now)
            return Delta(tuple(now.values()), (), True)
        told = self.items
        # an item that was not made again is the same object: 200 comparisons of 40 fields are saved
        changed = tuple(item for key, item in now.items() if (before := told.get(key)) is not item and before != item)
        gone = tuple(key for key in self.items if key not in now)
        if changed or gone:
            self.items = dict(now)
        return Delta(changed, gone, False)


def settle(value: int | None, told: int | None, step: int) -> int | None:
    """`value` in steps, but what was told as long as it is less than a step away: a value on an edge does not flap."""
    if value is None or (told is not None and abs(value - told) < step):
        return value if value is None else told
    return round(value / step) * step


def settle_seconds(value: float, told: float | None) -> float:
    """As `settle`, for seconds of CPU in steps of one second."""
    return told if told is not None and abs(value - told) < 1.0 else round(value, 1)


def settle_share(value: float | None, told: float | None) -> float | None:
    """As `settle`, for a share of a core in steps of 1 %."""
    if value is None:
        return None
    if told is not None and abs(value - told) < CPU_STEP and not (told and not value):
        return told
    return round(value, 2)
