"""Counts added up, and what they say of a role as a whole."""

from __future__ import annotations

from collections.abc import Iterable

from console.fleet.model import Count, QueueCounts, Role


def summed(counts: Iterable[Count]) -> Count:
    """The sum, as well known as the least known of them."""
    parts = list(counts)
    total = sum(part.n for part in parts)
    kinds = {part.kind for part in parts}
    if "estimate" in kinds:
        return Count(total, "estimate")
    return Count(total, "at-least" if "at-least" in kinds else "exact")


def is_paused(role: Role, counts: QueueCounts | None) -> bool:
    """Every queue of the role gives out no job, because somebody has paused it."""
    return counts is not None and bool(role.queues) and set(role.queues) <= set(counts.paused)
