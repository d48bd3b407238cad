"""The console on made-up fleets, in a terminal of its own: python -m tests.tui.launch [WHAT].

still      the example fleet, always the same (default)
live       two cells of one row in ten change once a second, on 20 roles
crash      an exception with a secret in a local variable when the first refresh is asked for (ctrl+r)
hang       a feed whose stop never ends
block      a callback that blocks the loop for good when the refresh is asked for
thread     a worker thread that sleeps for 30 s
hostile    escape sequences in everything that is shown
nothing    no fleet ever comes
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time

import msgspec

from console.fleet.model import Fleet
from console.tui import run_console
from tests.examples import NOW, counts, example_fleet
from tests.tui.feeds import StillFeed
from tests.tui.hostile import hostile_fleet


def many_roles(number: int) -> Fleet:
    """A fleet of that many roles."""
    fleet = example_fleet()
    some = []
    for index in range(number):
        status, name = fleet.roles[index % len(fleet.roles)], f"role-{index:03d}"
        role = msgspec.structs.replace(status.role, name=name)
        workers = tuple(msgspec.structs.replace(worker, role=name) for worker in status.workers)
        some.append(msgspec.structs.replace(status, role=role, workers=workers))
    return msgspec.structs.replace(fleet, roles=tuple(some))


class LaunchFeed(StillFeed):
    def __init__(self, what: str) -> None:
        fleets = {"hostile": hostile_fleet, "live": lambda: many_roles(20)}
        super().__init__(None if what == "nothing" else fleets.get(what, example_fleet)())
        self._what = what
        self._changing: asyncio.Task[None] | None = None
        if self._fleet is not None:
            self._shift = time.time() - NOW
            self._fleet = self._now(self._fleet)

    def _now(self, fleet: Fleet) -> Fleet:
        return msgspec.structs.replace(fleet, now=time.time())

    async def start(self) -> None:
        if self._what == "live":
            self._changing = asyncio.create_task(self._change())
        else:
            self._changing = asyncio.create_task(self._repeat())

    async def _repeat(self) -> None:
        while self._fleet is not None:
            await asyncio.sleep(1)
            self.say(self._now(self._fleet))

    async def _change(self) -> None:
        step = 0
        while True:
            await asyncio.sleep(1)
            step += 1
            assert self._fleet is not None
            roles = list(self._fleet.roles)
            for index in range(step % 10, len(roles), 10):
                roles[index] = msgspec.structs.replace(
                    roles[index], queue=counts(roles[index].role.name, 400 + step % 90, 41.0, 3, 2, 100 + step % 50)
                )
            self.say(msgspec.structs.replace(self._now(self._fleet), roles=tuple(roles)))

    def rest(self, resting: bool) -> None:
        pass

    async def refresh(self) -> None:
        if self._what == "crash":
            dsn = "postgresql://app:hunter2@db1/app"
            raise KeyError(f"no such thing in {dsn}")
        if self._what == "block":
            time.sleep(30)  # noqa: ASYNC251  that is the fault
        if self._what == "thread":
            threading.Thread(target=time.sleep, args=(30,)).start()
            await asyncio.get_running_loop().run_in_executor(None, time.sleep, 30)

    async def stop(self) -> None:
        if self._what == "hang":
            while True:
                try:
                    await asyncio.sleep(30)
                except asyncio.CancelledError:
                    continue


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "still"
    sys.exit(run_console(lambda: LaunchFeed(what)))
