"""What the console needs from the layers below it: a fleet, and a word when there is a new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from console.fleet.model import Fleet


class Feed(Protocol):
    """A source of fleets. All of it is used on the event loop; none of it may block.

    `start` and `refresh` may raise WorktopError: it is shown, and the console goes on with what it has.
    """

    @property
    def fleet(self) -> Fleet | None:
        """The newest fleet; None until the first one is there."""
        ...

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the event loop whenever there is a new fleet."""
        ...

    async def start(self) -> None:
        """Start the sources; may return before they have said anything."""
        ...

    async def stop(self) -> None:
        """End the sources; the console does not wait for it longer than half a second."""
        ...

    async def refresh(self) -> None:
        """Ask every source again now."""
        ...
