"""Counts added up."""

from __future__ import annotations

from collections.abc import Iterable

from console.fleet.model import Count


def summed(counts: Iterable[Count]) -> Count:
    """The sum, as well known as the least known of them."""
    parts = list(counts)
    total = sum(part.n for part in parts)
    kinds = {part.kind for part in parts}
    if "estimate" in kinds:
        return Count(total, "estimate")
    return Count(total, "at-least" if "at-least" in kinds else "exact")
