"""The service units of the roles, followed live.

One connection asks, another listens (pystemd keeps signals that arrive during a call where the event loop does not
see them). Properties are read once per unit and then kept up to date from PropertiesChanged; nothing polls them.
What systemd does not signal is mended here:

- a reload of the manager removes and adds every unit: nothing is told until it ends, then everything is read again;
- UnitNew of a unit that is known is passed over (asking for an unloaded unit loads it, which signals UnitNew);
- a re-executed manager and lost signals: states are compared with one listing every RELIST_SECONDS;
- the bus going away ends `follow` with BusLost; the caller connects again.

ListUnitFiles is never called: it takes 0.7 s, in which the manager does nothing else.
"""

from __future__ import annotations

import asyncio
import fnmatch
import time
from collections.abc import Callable, Iterable
from typing import Any

from console.errors import HostError
from console.fleet.model import Role
from console.host.bus import (
    MANAGER_PATH,
    SERVICE,
    BusLost,
    Connection,
    Listed,
    Properties,
    Refused,
    unit_of_path,
    unit_path,
)
from console.host.units import invocation_of, keep

PUMP_SECONDS = 0.02  # longest time one visit to the bus may take, so that the agent answers meanwhile
GATHER_SECONDS = 0.05  # signals that come within this time are told together
RELIST_SECONDS = 10.0
RELOAD_SECONDS = 5.0  # a reload whose end is not signalled (daemon-reexec) is taken as ended
SUSPECT_SECONDS = 1.0
EVERY_INSTANCE = "*@*.service"

_UNLOADED: Properties = {
    b"ActiveState": b"inactive",
    b"SubState": b"dead",
    b"MainPID": 0,
    b"ControlGroup": b"",
    b"StatusText": b"",
}


class UnitTable:
    """Properties of every unit that is looked at, by name; `changed` is called when some are different."""

    def __init__(self, user_manager: bool, changed: Callable[[], None]) -> None:
        self.properties: dict[str, Properties] = {}
        self.revisions: dict[str, int] = {}  # by unit: another number means that a property is another
        self._suspects: dict[str, tuple[float, Listed]] = {}
        self.version = ""
        self._user_manager = user_manager
        self._changed = changed
        self._desired: tuple[str, ...] = ()
        self._globs: tuple[str, ...] = (EVERY_INSTANCE,)
        self._reader: int | None = None  # the descriptor in the event loop: a lost bus no longer tells it
        self._ask: Connection | None = None
        self._listen: Connection | None = None
        self._inbox: list[tuple[str, bytes, Any]] = []
        self._wake = asyncio.Event()
        self._lost: BusLost | None = None
        self._reloading_since: float | None = None
        self._relist = True
        self._reading = False

    def look_at(self, roles: Iterable[Role]) -> None:
        """From now on the desired units of the roles and every loaded instance of their templates.

        With no role at all: every loaded instance of every template.
        """
        roles = tuple(roles)
        self._desired = tuple(dict.fromkeys(name for role in roles for name in role.desired_units()))
        templates = dict.fromkeys(role.template for role in roles if role.template)
        self._globs = tuple(name.replace("@.", "@*.", 1) for name in templates) if roles else (EVERY_INSTANCE,)
        self._relist = True
        self._wake.set()

    @property
    def quiet(self) -> bool:
        """The manager is reloading, or the list is about to be read again: what is here is not to be told."""
        return self._reloading_since is not None or self._relist or self._reading

    def connect(self) -> None:
        """Open both connections. BusLost when there is no bus or no systemd on it."""
        self.close()
        self._lost = None
        self._reloading_since = None
        self._relist, self._reading = True, False
        try:
            self._ask = Connection(self._user_manager)
            self.version = self._ask.version()
            self._inbox = []
            self._listen = Connection(self._user_manager)
            self._listen.subscribe(self._inbox)
        except HostError:
            self.close()
            raise
        self._reader = self._listen.fileno()
        asyncio.get_running_loop().add_reader(self._reader, self._pump)
        self._pump()

    def close(self) -> None:
        self._stop_reading()
        if self._listen is not None:
            self._listen.close()
        if self._ask is not None:
            self._ask.close()
        self._listen = self._ask = None

    def _pump(self) -> None:
        if self._listen is None or self._lost is not None:
            return
        try:
            more = self._listen.pump(PUMP_SECONDS)
        except BusLost as lost:
            self._lose(lost)
            return
        if any(member == "Disconnected" for member, _, _ in self._inbox):
            self._lose(BusLost("follow systemd", "the bus closed the connection"))
            return
        if more:  # the descriptor may not become readable again for what sd-bus has read already
            asyncio.get_running_loop().call_soon(self._pump)
        if self._inbox:
            self._wake.set()

    def _lose(self, lost: BusLost) -> None:
        self._lost = lost
        self._stop_reading()
        self._wake.set()

    def _stop_reading(self) -> None:
        if self._reader is not None:
            asyncio.get_running_loop().remove_reader(self._reader)
            self._reader = None

    async def follow(self) -> None:
        """Keep `properties` true until the connection is lost, which raises BusLost."""
        next_listing = time.monotonic() + RELIST_SECONDS
        while True:
            if self._relist and self._reloading_since is None:
                await self._read_all()
                self._changed()
            soon = self._reloading_since is not None or self._suspects
            timeout = 0.5 if soon else max(0.0, next_listing - time.monotonic())
            try:
                await asyncio.wait_for(self._wake.wait(), timeout)
                await asyncio.sleep(GATHER_SECONDS)
            except TimeoutError:
                pass
            self._wake.clear()
            if self._lost is not None:
                raise self._lost
            changed = await self._take(self._inbox)
            if self._reloading_since is not None and time.monotonic() - self._reloading_since > RELOAD_SECONDS:
                self._reloading_since = None
                self._relist = True
            if time.monotonic() >= next_listing:
                next_listing = time.monotonic() + RELIST_SECONDS
                if not self.quiet:
                    changed |= await self._compare_states()
            if self._suspects and not self.quiet:
                changed |= await self._read_suspects()
            if changed and not self.quiet:
                self._changed()

    def ping(self) -> None:
        """HostError when the manager does not answer."""
        self._asking().ping()

    def _asking(self) -> Connection:
        if self._ask is None:
            raise self._lost or BusLost("ask systemd", "not connected")
        return self._ask

    # --- reading ---------------------------------------------------------------------------------------------------

    def _wanted(self, name: str) -> bool:
        return name in self._desired or any(fnmatch.fnmatchcase(name, glob) for glob in self._globs)

    async def _read_all(self) -> None:
        """List and read everything again; bounded work between turns of the event loop."""
        ask = self._asking()
        self._relist, self._reading = False, True
        rows = {row.name: row for row in ask.list_by_names(list(self._desired))}
        rows.update((row.name, row) for row in ask.list_by_patterns(list(self._globs)) if _instance(row))
        fresh: dict[str, Properties] = {}
        for row in rows.values():
            fresh[row.name] = self._read(row)
            await asyncio.sleep(0)
            if self._lost is not None:
                raise self._lost
        self.properties = fresh
        self._suspects = {}
        self.revisions = {name: self.revisions.get(name, 0) + 1 for name in fresh}
        self._reading = False

    def _read(self, row: Listed) -> Properties:
        try:
            return keep(self._asking().properties(row.name))
        except Refused:  # it was unloaded meanwhile, or has a name that cannot be loaded
            return {
                b"LoadState": row.load.encode(),
                b"ActiveState": row.active.encode(),
                b"SubState": row.sub.encode(),
                b"Description": row.description.encode(),
            }

    async def _compare_states(self) -> bool:
        """One listing that loads nothing; True when a state was different from what the signals had said."""
        rows = {row.name: row for row in self._asking().list_by_patterns([*self._desired, *self._globs])}
        changed = False
        for name in list(self.properties):
            known = self.properties[name]
            row = rows.get(name)
            if row is None:
                if name not in self._desired:
                    del self.properties[name]
                    changed = True
                elif known.get(b"ActiveState") != b"inactive" or known.get(b"MainPID"):
                    known.update(_UNLOADED)
                    self._altered(name)
                    changed = True
            elif (row.active.encode(), row.sub.encode()) != (known.get(b"ActiveState"), known.get(b"SubState")):
                # the signal may still be on its way: the state now, the rest when no signal comes
                known[b"ActiveState"], known[b"SubState"] = row.active.encode(), row.sub.encode()
                self._suspects.setdefault(name, (time.monotonic(), row))
                self._altered(name)
                changed = True
        for name, row in rows.items():
            if name not in self.properties and (name in self._desired or _instance(row)):
                self.properties[name] = self._read(row)
                self._altered(name)
                changed = True
                await asyncio.sleep(0)
        return changed

    async def _read_suspects(self) -> bool:
        """Read again what was listed in another state and has not been signalled since: a signal was lost."""
        due = [name for name, (since, _) in self._suspects.items() if time.monotonic() - since > SUSPECT_SECONDS]
        for name in due:
            _, row = self._suspects.pop(name)
            if name in self.properties:
                self.properties[name] = self._read(row)
                self._altered(name)
                await asyncio.sleep(0)
        return bool(due)

    def _altered(self, name: str) -> None:
        self.revisions[name] = self.revisions.get(name, 0) + 1

    # --- signals ---------------------------------------------------------------------------------------------------

    async def _take(self, inbox: list[tuple[str, bytes, Any]]) -> bool:
        """Apply the signals that have arrived; True when something is different."""
        messages = inbox[:]
        del inbox[: len(messages)]
        changed = compare = False
        ran: set[str] = set()
        for member, path, body in messages:
            if member == "Reloading":
                self._reloading_since = time.monotonic() if body else None
                self._relist = True
            elif member == "UnitFilesChanged":
                self._relist = True
            elif member == "PropertiesChanged":
                if path.startswith(MANAGER_PATH + b"/unit/"):
                    name = unit_of_path(path)
                    known = self.properties.get(name)
                    if known is None:
                        compare |= self._wanted(name)
                    elif _apply(known, body, ran, name):
                        self._altered(name)
                        self._suspects.pop(name, None)
                        changed = True
            elif member in ("UnitNew", "UnitRemoved", "JobRemoved") and isinstance(body, list):
                name = body[2 if member == "JobRemoved" else 0].decode("utf-8", "replace")
                if member == "UnitNew":
                    compare |= name not in self.properties and self._wanted(name)
                else:
                    compare |= name in self.properties
        if self.quiet:
            return changed
        for name in ran:
            self._read_group(name)
        if compare:
            changed |= await self._compare_states()
        return changed

    def _read_group(self, name: str) -> None:
        """ControlGroup is not signalled; a new run has one."""
        known = self.properties.get(name)
        if known is not None:
            try:
                known[b"ControlGroup"] = self._asking().property(unit_path(name), SERVICE, b"ControlGroup", b"s")
            except Refused:
                known[b"ControlGroup"] = b""
            self._altered(name)


def _instance(row: Listed) -> bool:
    """`*@*.service` matches templates' instances; a row for another name is an alias listed under its own name."""
    return bool(row.name.partition("@")[2].rpartition(".")[0])


def _apply(known: Properties, body: Any, ran: set[str], name: str) -> bool:
    """Merge one PropertiesChanged(interface, changed, invalidated) into what is known."""
    if not isinstance(body, list | tuple) or len(body) < 2 or not isinstance(body[1], dict):
        return False
    news = {key: value for key, value in keep(body[1]).items() if known.get(key) != value}
    if not news:
        return False
    before = invocation_of(known)
    known.update(news)
    if (invocation_of(known) != before or b"MainPID" in news or b"ActiveState" in news) and known.get(b"MainPID"):
        ran.add(name)
    return True
