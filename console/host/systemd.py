"""The service units of the roles, followed live.

One connection asks, another listens (pystemd keeps signals that arrive during a call where the event loop does not
see them). Properties are read once per unit and then kept up to date from PropertiesChanged; nothing polls them.
What systemd does not signal is mended here:

- a reload of the manager removes and adds every unit: nothing is told until it ends, then everything is read again;
- UnitNew of a unit that is known is passed over (asking for an unloaded unit loads it, which signals UnitNew);
- a re-executed manager and lost signals: states are compared with one listing every RELIST_SECONDS, and the manager is
  asked whether it lives when it has said nothing for PING_SECONDS; nothing else is asked while nothing happens;
- the bus going away ends `follow` with BusLost; the caller connects again.

ListUnitFiles is never called: it takes 0.7 s, in which the manager does nothing else.
"""

from __future__ import annotations

import asyncio
import fnmatch
import math
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
from console.host.units import STATE, apply, keep

SLICE_SECONDS = 0.01  # longest time without a turn of the event loop, so that the agent answers meanwhile
GATHER_SECONDS = 0.03  # signals that come within this time are told together
RELIST_SECONDS = 30.0
PING_SECONDS = 10.0
RELOAD_SECONDS = 5.0  # a reload whose end is not signalled (daemon-reexec) is taken as ended
SUSPECT_SECONDS = 1.0
# After units came or went, and after jobs ended, the states are compared with a listing, but not while that goes on:
# a listing waits for a manager that starts two hundred units. (seconds of rest, longest time until then)
COMING_SECONDS = (0.1, 1.0)
ENDED_SECONDS = (1.0, 30.0)
ENDED_EVERY = 10.0  # seconds between two such listings after restarts: a unit in a crash loop has one every few seconds
EVERY_INSTANCE = "*@*.service"

_UNLOADED: Properties = {
    b"ActiveState": b"inactive",
    b"SubState": b"dead",
    b"MainPID": 0,
    b"ControlGroup": b"",
    b"StatusText": b"",
}


class UnitTable:
    """Properties of every unit that is looked at, by name; `changed` is called when states are different."""

    def __init__(self, user_manager: bool, changed: Callable[[set[str]], None], listed: Callable[[], None]) -> None:
        """`changed` is called with the units whose state is another; what else is different is in `altered` too.

        `listed` is called when the states are known (`listed`), before the properties are."""
        self.properties: dict[str, Properties] = {}
        self.listed: dict[str, Listed] = {}
        self.altered: set[str] = set()  # units of which a property is another; whoever uses them takes them out
        self._listed = listed
        self._groups: dict[str, bytes] = {}  # the last control group of each: the next run has the same
        self._compare_at = math.inf  # monotonic: when the states are to be compared, and when at the latest
        self._compare_latest = math.inf
        self._compared = -math.inf  # monotonic, when they were last
        self._heard = 0.0  # monotonic, when the manager said something
        self._paths: dict[bytes, bool] = {}
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
        self.reloads = 0
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
        self._paths.clear()
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
            self._listen.subscribe(self._inbox, self._wanted_path)
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
            more = self._listen.pump(SLICE_SECONDS)
        except BusLost as lost:
            self._lose(lost)
            return
        if any(member == "Disconnected" for member, _, _ in self._inbox):
            self._lose(BusLost("follow systemd", "the bus closed the connection"))
            return
        if more:  # the descriptor may not become readable again for what sd-bus has read already
            asyncio.get_running_loop().call_soon(self._pump)
        if self._inbox:
            self._heard = time.monotonic()
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
                self._pump()
                await self._take(self._inbox)  # what changed while it was read: the listing is older than the rest
                if not self.quiet:
                    self._changed(set(self.properties))
            soon = self._reloading_since is not None or self._suspects
            timeout = 0.5 if soon else max(0.0, min(next_listing, self._compare_at) - time.monotonic())
            try:
                async with asyncio.timeout(timeout):
                    await self._wake.wait()
                await asyncio.sleep(GATHER_SECONDS)
            except TimeoutError:
                pass
            self._wake.clear()
            if self._lost is not None:
                raise self._lost
            changed = await self._take(self._inbox)  # the units whose state is another
            if self._reloading_since is not None and time.monotonic() - self._reloading_since > RELOAD_SECONDS:
                self._reloading_since = None
                self._relist = True
            if time.monotonic() >= next_listing:
                next_listing = time.monotonic() + RELIST_SECONDS
                self._compare_soon((0.0, 0.0) if time.monotonic() - self._heard > 1.0 else ENDED_SECONDS)
            if time.monotonic() >= self._compare_at:
                next_listing = time.monotonic() + RELIST_SECONDS
                self._compare_at = self._compare_latest = math.inf
                self._compared = time.monotonic()
                if not self.quiet:
                    changed |= await self._compare_states()
            if self._suspects and not self.quiet:
                changed |= await self._read_suspects()
            if changed and not self.quiet:
                self._changed(changed)

    def ping(self) -> None:
        """HostError when the manager does not answer; it is asked only when it has said nothing for a while."""
        if time.monotonic() - self._heard > PING_SECONDS:
            self._asking().ping()
            self._heard = time.monotonic()

    def _asking(self) -> Connection:
        if self._ask is None:
            raise self._lost or BusLost("ask systemd", "not connected")
        return self._ask

    # --- reading ---------------------------------------------------------------------------------------------------

    def _wanted(self, name: str) -> bool:
        return name in self._desired or any(fnmatch.fnmatchcase(name, glob) for glob in self._globs)

    def _wanted_path(self, path: bytes) -> bool:
        known = self._paths.get(path)
        if known is None:
            if len(self._paths) > 10_000:
                self._paths.clear()
            known = self._paths[path] = self._wanted(unit_of_path(path))
        return known

    async def _read_all(self) -> None:
        """List and read everything again; bounded work between turns of the event loop."""
        ask = self._asking()
        self._relist, self._reading = False, True
        rows = {row.name: row for row in ask.list_by_names(list(self._desired))}
        rows.update((row.name, row) for row in ask.list_by_patterns(list(self._globs)) if _instance(row))
        self.listed = rows
        self._listed()
        fresh: dict[str, Properties] = {}
        self._groups = {}
        like: dict[str, Properties] = {}  # by template: the properties of its first instance
        until = time.monotonic()
        for row in rows.values():
            fresh[row.name] = self._read(row, like)
            if time.monotonic() > until:
                await asyncio.sleep(0)
                until = time.monotonic() + SLICE_SECONDS
            if self._lost is not None:
                raise self._lost
        self.properties = fresh
        self._suspects = {}
        self.altered.update(fresh)
        self._heard = time.monotonic()
        self._reading = False

    def _read(self, row: Listed, like: dict[str, Properties] | None = None) -> Properties:
        found: Properties | None = None
        template = row.name.partition("@")[0]
        try:
            if like is not None and template in like and row.load == "loaded":
                found = self._asking().standing(row, like[template])
            if found is None:
                found = keep(self._asking().properties(row.name))
                if like is not None and found.get(b"LoadState") == b"loaded":
                    like.setdefault(template, found)
            if found.get(b"ControlGroup"):
                self._groups[row.name] = found[b"ControlGroup"]
            return found
        except Refused:  # it was unloaded meanwhile, or has a name that cannot be loaded
            return {
                b"LoadState": row.load.encode(),
                b"ActiveState": row.active.encode(),
                b"SubState": row.sub.encode(),
                b"Description": row.description.encode(),
            }

    async def _compare_states(self) -> set[str]:
        """One listing that loads nothing; the units whose state was different from what the signals had said."""
        # systemd tries every pattern on every unit: of the names only those that no glob holds
        named = [name for name in self._desired if not any(fnmatch.fnmatchcase(name, glob) for glob in self._globs)]
        rows = {row.name: row for row in self._asking().list_by_patterns([*named, *self._globs])}
        changed: set[str] = set()
        for name in list(self.properties):
            known = self.properties[name]
            row = rows.get(name)
            if row is None:
                if name not in self._desired:
                    del self.properties[name]
                    changed.add(name)
                elif known.get(b"ActiveState") != b"inactive" or known.get(b"MainPID"):
                    known.update(_UNLOADED)
                    self._altered(name)
                    changed.add(name)
            elif (row.active.encode(), row.sub.encode()) != (known.get(b"ActiveState"), known.get(b"SubState")):
                # The signal is on its way most likely, with what belongs to the state (systemd answers before it
                # signals); "failed" with the result of the run before would be a wrong verdict.
                self._suspects.setdefault(name, (time.monotonic(), row))
        for name, row in rows.items():
            if name not in self.properties and (name in self._desired or _instance(row)):
                self.properties[name] = self._read(row)
                self._altered(name)
                changed.add(name)
                await asyncio.sleep(0)
        return changed

    async def _read_suspects(self) -> set[str]:
        """Read again what was listed in another state and has not been signalled since: a signal was lost."""
        due = [name for name, (since, _) in self._suspects.items() if time.monotonic() - since > SUSPECT_SECONDS]
        for name in due:
            _, row = self._suspects.pop(name)
            if name in self.properties:
                self.properties[name] = self._read(row)
                self._altered(name)
                await asyncio.sleep(0)
        return set(due)

    def _altered(self, name: str) -> None:
        self.altered.add(name)

    # --- signals ---------------------------------------------------------------------------------------------------

    async def _take(self, inbox: list[tuple[str, bytes, Any]]) -> set[str]:
        """Apply the signals that have arrived; the units whose state is another."""
        messages = inbox[:]
        if messages and _first_half(messages[-1]):
            messages.pop()
        del inbox[: len(messages)]
        changed: set[str] = set()
        ran: set[str] = set()
        until = time.monotonic() + SLICE_SECONDS
        for number, (member, path, body) in enumerate(messages):
            if time.monotonic() > until and not (number and _first_half(messages[number - 1])):
                await asyncio.sleep(0)
                until = time.monotonic() + SLICE_SECONDS
            if member == "Reloading":
                self._reloading_since = time.monotonic() if body else None
                self.reloads += bool(body)
                self._relist = True
            elif member == "UnitFilesChanged":
                self._relist = True
            elif member == "PropertiesChanged":
                if path.startswith(MANAGER_PATH + b"/unit/"):
                    name = unit_of_path(path)
                    known = self.properties.get(name)
                    if known is None:
                        self._compare_soon(COMING_SECONDS)
                    elif news := apply(known, body, ran, name):
                        self._altered(name)
                        self._suspects.pop(name, None)
                        if not STATE.isdisjoint(news):
                            changed.add(name)
            elif member in ("UnitNew", "UnitRemoved", "JobRemoved") and isinstance(body, list):
                name = body[2 if member == "JobRemoved" else 0].decode("utf-8", "replace")
                if member == "UnitNew":
                    if name not in self.properties and self._wanted(name):
                        self._compare_soon(COMING_SECONDS)
                elif name in self.properties:
                    if member == "UnitRemoved":
                        self._compare_soon(COMING_SECONDS)
                    else:
                        rest, longest = ENDED_SECONDS
                        if self.properties[name].get(b"NRestarts"):  # most likely its own restart, one of many
                            rest = max(rest, self._compared + ENDED_EVERY - time.monotonic())
                        self._compare_soon((rest, longest))
        if self.quiet:
            return changed
        for name in ran:
            self._know_group(name)
            if time.monotonic() > until:
                await asyncio.sleep(0)
                until = time.monotonic() + SLICE_SECONDS
        return changed

    def _compare_soon(self, seconds: tuple[float, float]) -> None:
        rest, longest = seconds
        now = time.monotonic()
        self._compare_latest = min(self._compare_latest, now + longest)
        # what is due earlier stays so unless the same thing goes on
        due = now + rest
        self._compare_at = min(
            self._compare_latest, due if self._compare_at == math.inf else max(self._compare_at, due)
        )

    def _know_group(self, name: str) -> None:
        """ControlGroup is not signalled; a new run has one, and it is that of the last run if there was one."""
        known = self.properties.get(name)
        if known is None:
            return
        if name not in self._groups:
            try:
                self._groups[name] = self._asking().property(unit_path(name), SERVICE, b"ControlGroup", b"s") or b""
            except Refused:
                return
        if known.get(b"ControlGroup") != self._groups[name]:
            known[b"ControlGroup"] = self._groups[name]
            self._altered(name)


def _first_half(message: tuple[str, bytes, Any]) -> bool:
    """systemd signals a unit's change in two messages, the service's properties before the unit's: between them the
    state is that of before, and the main process is the new one."""
    member, _, body = message
    return member == "PropertiesChanged" and bool(body) and body[0] == SERVICE


def _instance(row: Listed) -> bool:
    """`*@*.service` matches templates' instances; a row for another name is an alias listed under its own name."""
    return bool(row.name.partition("@")[2].rpartition(".")[0])
