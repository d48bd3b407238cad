"""Running the console in a pilot, with a clock that stands still."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from console.fleet.model import Fleet
from console.tui.app import ConsoleApp
from console.tui.widgets.table import Table
from tests.examples import NOW
from tests.tui.feeds import StillFeed


class Driven:
    """The console, its feed and its pilot."""

    def __init__(self, app: ConsoleApp, feed: StillFeed, pilot: Pilot[Any]) -> None:
        self.app, self.feed, self.pilot = app, feed, pilot

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def say(self, fleet: Fleet | None) -> None:
        """The feed says this, and it is shown."""
        self.feed.say(fleet)
        await self.shown()

    async def shown(self) -> None:
        """Nothing waits to be shown any more."""
        await self.pilot.pause()
        while self.app._pending is not None:
            await self.pilot.pause(0.02)
        await self.pilot.pause()

    @property
    def roles(self) -> Table:
        return self.app.screen.query_one("#roles", Table)

    @property
    def findings(self) -> Table:
        return self.app.screen.query_one("#findings", Table)

    def lines(self) -> list[str]:
        """The lines of the screen, without blanks at their ends."""
        return [strip.text.rstrip() for strip in self.app.screen._compositor.render_strips()]

    def text(self) -> str:
        return "\n".join(self.lines()).rstrip()


@asynccontextmanager
async def console(fleet: Fleet | None, size: tuple[int, int] = (80, 24), **options: Any) -> AsyncIterator[Driven]:
    """The console on this fleet at this size."""
    feed = StillFeed(fleet)
    app = ConsoleApp(feed, clock=lambda: NOW, **options)
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        yield Driven(app, feed, pilot)
    if app.fault is not None:
        raise app.fault
