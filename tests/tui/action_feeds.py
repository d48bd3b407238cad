"""A feed of a table of jobs with actions on it."""

from __future__ import annotations

from collections.abc import Callable

from console.fleet.model import Fleet, Job
from tests.tui.queue_feeds import TableFeed
from tests.tui.still_actions import StillActions


class ActingFeed(TableFeed):
    """A table of jobs with actions on it."""

    actions: StillActions

    def __init__(
        self, fleet: Fleet | None, count: int = 3, change: Callable[[Job], Job | None] = lambda job: job
    ) -> None:
        super().__init__(fleet, count, change)
        self.actions = StillActions()
