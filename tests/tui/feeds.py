"""Feeds of made-up fleets, for tests and for the launcher."""

from __future__ import annotations

from collections.abc import Callable

from console.fleet.model import Fleet


class StillFeed:
    """A feed that says what it is told to say."""

    def __init__(self, fleet: Fleet | None = None) -> None:
        self._fleet = fleet
        self._callbacks: list[Callable[[], None]] = []
        self.started = self.stopped = self.refreshed = 0

    @property
    def fleet(self) -> Fleet | None:
        return self._fleet

    def subscribe(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def say(self, fleet: Fleet | None) -> None:
        """There is a new fleet."""
        self._fleet = fleet
        for callback in self._callbacks:
            callback()

    async def start(self) -> None:
        self.started += 1

    async def stop(self) -> None:
        self.stopped += 1

    async def refresh(self) -> None:
        self.refreshed += 1
