"""A feed of a table of jobs with actions on it, and the console on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC
from typing import Any

import msgspec

from console.fleet.model import Fleet, Job
from tests.examples import example_fleet
from tests.tui.pilots import Driven
from tests.tui.queue_feeds import TableFeed, console_on
from tests.tui.still_actions import StillActions, dead_claim


class ActingFeed(TableFeed):
    """A table of jobs with actions on it."""

    actions: StillActions

    def __init__(
        self, fleet: Fleet | None, count: int = 3, change: Callable[[Job], Job | None] = lambda job: job
    ) -> None:
        super().__init__(fleet, count, change)
        self.actions = StillActions()


def judged() -> Fleet:
    return msgspec.structs.replace(example_fleet(), claims=(dead_claim(), dead_claim("918240", token="t-2")))


def stuck(job: Job) -> Job:
    """The rows of the made-up table are those of the claims."""
    row = {"3": dead_claim().job, "2": dead_claim("918240", token="t-2").job}.get(job.id)
    return row if row is not None and job.state == "running" else msgspec.structs.replace(job, token=f"t{job.id}")


class Desk:
    """The console on a table of three jobs with actions."""

    def __init__(self, driven: Driven, feed: ActingFeed) -> None:
        self.driven, self.feed, self.actions = driven, feed, feed.actions

    @property
    def screen(self) -> Any:
        return self.driven.app.screen

    def text(self) -> str:
        return self.driven.text()

    async def press(self, *keys: str) -> None:
        """Press the keys and let the answers come."""
        await self.driven.press(*keys)
        await self.driven.shown()

    async def end(self) -> None:
        """The apply answers."""
        self.actions.ended.set()
        await self.press()


@asynccontextmanager
async def desk(
    *keys: str, size: tuple[int, int] = (80, 24), fleet: Fleet | None = None, **options: Any
) -> AsyncIterator[Desk]:
    feed = ActingFeed(fleet or judged(), 3, stuck)
    async with console_on(feed, size, zone=UTC, **options) as driven:
        made = Desk(driven, feed)
        await made.press(*keys)
        yield made
