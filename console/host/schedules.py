"""The schedules of this host as the agent tells them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from console.fleet.model import Role
from console.host.deltas import Told
from console.host.inventory import Inventories
from console.host.offering import translated
from console.host.processes import Scanner
from console.host.protocol import SchedulesAnswer, SchedulesOf
from console.host.rooted import Root
from console.schedules.inventory import Listed, Translated


class SchedulesKept:
    """What was read, and what the console knows of it."""

    def __init__(self, scanner: Scanner, roles: Callable[[], Iterable[Role]]) -> None:
        self._inventories = Inventories(Root(), scanner, roles)
        self._told: Told[Listed] = Told()
        self._number = 0

    async def answer(self, number: int, wanted: SchedulesOf) -> SchedulesAnswer:
        inventory = await self._inventories.read(wanted.anew)
        if wanted.known != self._number:
            self._told.forget()
        delta = self._told.delta({each.name: each for each in inventory.entries})
        self._number += 1
        changed = msgspec.structs.replace(inventory, entries=delta.items)
        return SchedulesAnswer(number, self._number, delta.full, changed, delta.gone)

    async def translate(self, names: tuple[str, ...], prove: bool) -> tuple[Translated, ...]:
        """HostError: there is no entry of one of these names."""
        return await translated(self._inventories, names, prove, here=True)
