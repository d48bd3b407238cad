"""Caches of the libraries below do not grow for days."""

from __future__ import annotations

import pytest
from rich.segment import Segment

from console.tui import caches
from tests.examples import example_fleet
from tests.tui.feeds import StillFeed
from tests.tui.queue_feeds import console_on


def split(number: int) -> None:
    """As lines with another number each are cut when they are painted."""
    for place in range(number):
        before, after = Segment(f"waiting … {place}").split_cells(9)
        assert (before.text, after.text) == ("waiting …", f" {place}")


def kept() -> int:
    cache = caches.split_segments()
    assert cache is not None
    return cache.cache_info().currsize


async def test_a_console_that_is_open_for_long_empties_them(monkeypatch: pytest.MonkeyPatch) -> None:
    async with console_on(StillFeed(example_fleet())) as driven:
        split(2000)
        driven.app._tick()
        assert kept() >= 2000, "not each second"
        monkeypatch.setattr(caches, "EVERY", 0.0)
        driven.app._tick()
        assert kept() == 0
        split(10)
        driven.app._tick()
        assert kept() == 10, "what is small is worth more than it costs"
