"""Looking at checks: once, until one holds, or for as long as it must hold. A wait goes on where it was left."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from console.errors import WorktopError
from console.playbook.clock import Clock
from console.playbook.journal import Lapsed, Line, Waiting
from console.playbook.kinds import Check, Given, Inputs
from console.playbook.model import Begun, Seen

_EVERY = 1.0  # seconds between two looks
_BLIND = 30.0  # seconds that nothing can be seen at the end of a wait before it counts as failed


class Left(Exception):
    """A person has left while a check waited; it goes on by itself."""


async def look(check: Check, given: Given, inputs: Inputs, begun: Begun) -> Seen:
    """What it sees now; what cannot be looked at is unknown."""
    try:
        return await check.look(given, inputs, begun)
    except WorktopError as error:
        return Seen(state="unknown", text=error.problem.line())


class Waits:
    """The checks of one step."""

    def __init__(
        self, step: int, waiting: dict[tuple[int, str], Waiting], write: Callable[[Line], None], clock: Clock
    ) -> None:
        self._step = step
        self._waiting = waiting
        self._write = write
        self._clock = clock

    def remaining(self, slot: str) -> float | None:
        """Seconds of a wait that has begun; None: it has not."""
        found = self._waiting.get((self._step, slot))
        return self._clock.until(found.until) if found is not None else None

    async def hold(self, slot: str, check: Check, given: Given, inputs: Inputs) -> Seen:
        """What it saw at the end. Left: a person has left before. WorktopError: it could not begin."""
        found = self._waiting.get((self._step, slot))
        if found is None:
            begun = await check.begin(given, inputs)
            lasts, seconds = begun.seconds > 0, begun.seconds or inputs.span("within")
            if not seconds:
                return await look(check, given, inputs, begun)
            until = self._clock.now().after(seconds)
            found = Waiting(step=self._step, slot=slot, memory=begun.memory, until=until, lasts=lasts)
            self._write(found)
            self._waiting[self._step, slot] = found
        return await self._until(found, check, given, inputs)

    async def _until(self, found: Waiting, check: Check, given: Given, inputs: Inputs) -> Seen:
        begun = Begun(memory=found.memory)
        blind = 0.0
        while True:
            seen = await look(check, given, inputs, begun)
            remaining = self._clock.until(found.until)
            blind = blind + _EVERY if seen.state == "unknown" else 0.0
            over = not remaining and (seen.state == "holds" or not found.lasts or blind >= _BLIND)
            if over or seen.state == ("not" if found.lasts else "holds"):
                if seen.state != "holds":
                    self._write(Lapsed(self._step, found.slot))
                    self._waiting.pop((self._step, found.slot), None)
                return seen
            given.tell(seen.text, remaining)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(_EVERY, remaining or _EVERY)):
                    await given.stop.wait()
            if given.stop.is_set():
                raise Left
