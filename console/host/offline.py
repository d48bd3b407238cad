"""The schedules in the files of another host: read below a folder, without an agent, and nothing of this host is asked
but systemd-analyze for the units that are made."""

from __future__ import annotations

from console.host.inventory import Inventories
from console.host.offering import translated
from console.host.rooted import Root
from console.schedules.inventory import Inventory, Translated


class Offline:
    def __init__(self, root: str) -> None:
        self._inventories = Inventories(Root(root), None, tuple)

    async def schedules(self) -> Inventory:
        return await self._inventories.read()

    async def translate(self, names: tuple[str, ...], prove: bool = True) -> tuple[Translated, ...]:
        """HostError: there is no entry of one of these names."""
        return await translated(self._inventories, names, prove, here=False)
