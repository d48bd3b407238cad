"""The schedules as the console keeps them from what the agent tells: all of them once, then what is different."""

from __future__ import annotations

import msgspec

from console.host.protocol import SchedulesAnswer
from console.schedules.inventory import Inventory, Listed, in_order


class SchedulesHeard:
    """What one agent has told."""

    def __init__(self) -> None:
        self._entries: dict[str, Listed] = {}
        self.known = 0

    def heard(self, answer: SchedulesAnswer) -> Inventory:
        """The whole inventory after an answer."""
        if answer.full:
            self._entries = {}
        for name in answer.gone:
            self._entries.pop(name, None)
        self._entries |= {each.name: each for each in answer.inventory.entries}
        self.known = answer.number
        return msgspec.structs.replace(answer.inventory, entries=in_order(self._entries.values()))
