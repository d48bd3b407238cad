"""Caches of libraries that would grow for days: emptied when they hold more than a console has use for."""

from __future__ import annotations

from typing import Protocol, cast

from rich.segment import Segment

EVERY = 60.0  # seconds between two looks
_MOST = 512  # entries


class _Info(Protocol):
    currsize: int


class Cached(Protocol):
    """What functools.lru_cache makes of a function."""

    def cache_info(self) -> _Info: ...
    def cache_clear(self) -> None: ...


def empty_large_ones() -> None:
    """Rich keeps 16,384 segments that were cut in two, about 1 KB each: every line with a new number in it is another
    one. Measured under churn, 200 units: three quarters of what a console grows by, 0.3 MB a minute."""
    kept = split_segments()
    if kept is not None and kept.cache_info().currsize > _MOST:
        kept.cache_clear()


def split_segments() -> Cached | None:
    """Rich's cache of them, which has no public name; None in a version of Rich that has none."""
    found = getattr(Segment, "_split_cells", None)
    return cast("Cached", found) if hasattr(found, "cache_info") and hasattr(found, "cache_clear") else None
