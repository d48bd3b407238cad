"""The inventory of the schedules of a host: every source is read, every entry explained, every live process counted.

Read again only when a file that was looked at is another (a stat call each), or when a person asks. Everything is
below one root: this host's, or a folder with the files of another one, of which no process is known.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Generator, Iterable
from typing import NamedTuple, TypeVar

import msgspec

from console.errors import HostError
from console.fleet.model import Role
from console.host import tabs
from console.host.accounts import meminfo
from console.host.elapses import Elapses
from console.host.entries import Found, Gathered, gather
from console.host.living import living, told
from console.host.processes import SLICE_SECONDS, Scanner
from console.host.rooted import Root
from console.host.scripts import Scripts
from console.schedules.alive import Living, Seen, alive
from console.schedules.classify import explain
from console.schedules.commands import Matcher
from console.schedules.inventory import Alive, Inventory, Listed, accepted, in_order, name_of
from console.schedules.model import (
    Account,
    Dialect,
    Entry,
    Explained,
    FoundRole,
    LiveProcess,
    Scheduled,
    Surroundings,
)
from console.schedules.timing import period, scheduled

T = TypeVar("T")

_HISTORY = 900.0  # seconds for which counts are kept


class _Kept(msgspec.Struct):
    """What is remembered of the entries between two passes, by name."""

    explained: dict[str, tuple[tuple[int, ...], Explained]] = {}  # and the processes it was explained with
    counts: dict[str, dict[float, int]] = {}  # how many were alive when


class Named(NamedTuple):
    """Entries that were asked for by name, and what their units are proved with."""

    entries: tuple[Listed, ...]
    accounts: tuple[Account, ...]
    dialect: Dialect


class Inventories:
    """Keeps what was read of one root. `scanner`: None where no process is of it."""

    def __init__(self, root: Root, scanner: Scanner | None, roles: Callable[[], Iterable[Role]]) -> None:
        self._root = root
        self._scanner = scanner
        self._roles = roles
        self._gathered: Gathered | None = None
        self._listing: _Listing | None = None  # the last one
        self._scripts = Scripts(self._root)
        self._kept = _Kept()
        self._elapses = Elapses()
        self._reading = asyncio.Lock()

    async def read(self, anew: bool = False) -> Inventory:
        """All of it as it is now, without unit text; `anew`: whether or not a file has changed."""
        async with self._reading:
            if anew or self._gathered is None or self._root.changed():
                await self._gather()
            assert self._gathered is not None
            return await self._list(self._gathered)

    async def named(self, names: Iterable[str]) -> Named:
        """These entries, with unit text. HostError: there is none of that name."""
        inventory = await self.read()
        by_name = {each.name: each for each in inventory.entries}
        lost = next((name for name in names if name not in by_name), None)
        if lost is not None:
            raise HostError(f"schedule {lost}", "there is no such entry", accepted(inventory.entries))
        assert self._gathered is not None and self._listing is not None
        entries = await _sliced(self._listing.translated([by_name[name] for name in names]))
        return Named(entries, self._gathered.accounts, self._gathered.dialect)

    async def _list(self, gathered: Gathered) -> Inventory:
        here = self._root.here
        seen = await living(self._scanner) if self._scanner is not None else None
        await self._elapses.refresh((each.entry for each in gathered.found), gathered.zone, time.time())
        host = socket.gethostname() if here else self._text("/etc/hostname")
        self._listing = _Listing(self._kept, gathered, seen, tuple(self._roles()), host, self._scripts, self._elapses)
        return Inventory(
            entries=in_order(await _sliced(self._listing.all())),
            unread=gathered.unread,
            notes=gathered.notes,
            dialect=gathered.dialect,
            zone=gathered.zone,
            host=host if here else "",
        )

    async def _gather(self) -> None:
        self._root.forget()
        self._scripts.forget()
        self._kept.explained.clear()
        own, _ = await tabs.own_tab(self._root)
        self._gathered = await _sliced(gather(self._root, own))

    def _text(self, path: str) -> str:
        return self._root.read(path, 4096).data.decode("utf-8", "replace").strip()


class _Listing:
    """One pass over what was gathered."""

    def __init__(
        self,
        kept: _Kept,
        gathered: Gathered,
        seen: tuple[Seen, ...] | None,
        roles: tuple[Role, ...],
        host: str,
        scripts: Scripts,
        elapses: Elapses,
    ) -> None:
        self._kept = kept
        self._gathered = gathered
        self._now = time.time()
        self._living = Living(seen) if seen is not None else None
        self._matcher = Matcher(roles)
        self._scripts = scripts
        self._found: dict[str, Found] = {}
        self._elapses = elapses
        self._surroundings = Surroundings(
            accounts=gathered.accounts,
            processes=_told(seen, self._now),
            entries=gathered.entries,
            dialect=gathered.dialect,
            hostname=host,
            memory=meminfo().get("MemTotal", 0) if seen is not None else 0,
        )

    def all(self) -> Generator[None, None, list[Listed]]:
        listed: list[Listed] = []
        for found in self._gathered.found:
            yield
            listed.append(self._listed(found))
        by_timers = {each.explained.roles for each in listed if each.entry.source.kind == "timer"}
        launchers = [each for each in listed if each.explained.kind == "launcher"]
        started = {_started(role) for each in launchers for role in each.explained.roles}
        for unit in self._gathered.units:
            yield
            if unit.roles not in by_timers and any(_started(role) in started for role in unit.roles):
                listed.append(self._listed(Found(unit.entry, unit)))
        return listed

    def translated(self, entries: Iterable[Listed]) -> Generator[None, None, tuple[Listed, ...]]:
        """These of its entries, with unit text."""
        done: list[Listed] = []
        for listed in entries:
            yield
            found = self._found[listed.name]
            whole = found.ready or self._understood(found, listed.explained.scheduled, translate=True)
            whole = msgspec.structs.replace(whole, scheduled=listed.explained.scheduled)
            done.append(msgspec.structs.replace(listed, explained=whole))
        return tuple(done)

    def _listed(self, found: Found) -> Listed:
        name = self._name(found.entry)
        self._found[name] = found
        when = self._scheduled(found.entry)
        explained = found.ready or self._explained(name, found, when)
        explained = msgspec.structs.replace(explained, scheduled=when)
        roles = (self._matcher.role_of(role.argv) for role in explained.roles)
        return Listed(
            name=name,
            explained=explained,
            role=next((role for role in roles if role), ""),
            ignored=found.ignored,
            alive=self._alive(name, explained),
        )

    def _name(self, entry: Entry) -> str:
        """Two files may have a program of one name."""
        name = name_of(entry)
        return name if name not in self._found else f"{name}#{sum(each.startswith(name) for each in self._found) + 1}"

    def _scheduled(self, entry: Entry) -> Scheduled | None:
        """Without next moments for what does not run."""
        when = scheduled(entry, self._gathered.dialect, self._gathered.zone, self._now)
        if when is None:
            return None
        runs = self._elapses.of(entry) if entry.source.kind == "timer" else when.next_runs
        return msgspec.structs.replace(when, next_runs=runs if entry.active and not entry.problems else ())

    def _explained(self, name: str, found: Found, when: Scheduled | None) -> Explained:
        """Explained again only when other processes are alive of it."""
        before = self._kept.explained.get(name)
        if before is not None and before[0] == self._pids(before[1]):
            return before[1]
        explained = self._understood(found, when)
        self._kept.explained[name] = (self._pids(explained), explained)
        return explained

    def _understood(self, found: Found, when: Scheduled | None, translate: bool = False) -> Explained:
        entry = found.entry
        try:
            explained = explain(entry, self._scripts.read, self._surroundings, when, translate=translate)
        except Exception as error:  # noqa: BLE001  one line that worktop chokes on must not hide the others
            warning = f"a defect of worktop: this line could not be understood ({type(error).__name__}: {error})"
            explained = Explained(entry=entry, kind="none", pattern="", confidence="low", warnings=(warning,))
        return msgspec.structs.replace(explained, warnings=(*explained.warnings, *found.warnings))

    def _pids(self, explained: Explained) -> tuple[int, ...]:
        return tuple(sorted(each.pid for each in self._living.of(explained)[0])) if self._living is not None else ()

    def _alive(self, name: str, explained: Explained) -> Alive | None:
        if self._living is None:
            return None
        counted = {at: count for at, count in self._kept.counts.get(name, {}).items() if self._now - at < _HISTORY}
        found = alive(explained, self._living, period(explained.scheduled), self._now, counted)
        if found.count or counted:
            self._kept.counts[name] = {**counted, self._now: found.count}
        return found


def _told(seen: tuple[Seen, ...] | None, now: float) -> tuple[LiveProcess, ...] | None:
    """What may be evidence: a service of systemd that is no instance tells nothing of a line."""
    if seen is None:
        return None
    return tuple(told(each, now) for each in seen if each.owner.kind != "systemd" or "@" in each.owner.name)


def _started(role: FoundRole) -> tuple[str, ...]:
    """The arguments with the program by its whole path, so that a unit and a line can be compared."""
    program = role.argv[0] if role.argv else ""
    if "/" in program and not program.startswith("/") and role.workdir is not None:
        return (os.path.normpath(f"{role.workdir}/{program}"), *role.argv[1:])
    return role.argv


async def _sliced(steps: Generator[None, None, T]) -> T:
    """Run it to its end, with a turn of the event loop after every SLICE_SECONDS."""
    until = time.monotonic() + SLICE_SECONDS
    while True:
        try:
            next(steps)
        except StopIteration as end:
            done: T = end.value
            return done
        if time.monotonic() > until:
            await asyncio.sleep(0)
            until = time.monotonic() + SLICE_SECONDS
