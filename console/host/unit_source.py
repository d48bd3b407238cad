"""The units as they are told: systemd's properties, with memory, restarts per minute and journal lines added."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Generator, Iterable
from typing import NamedTuple

import msgspec

from console.fleet.model import Role, Unit
from console.fleet.workers import LOOPING_PER_MINUTE, loops
from console.host import journal, kernel_log, procfs
from console.host.bus import Properties, text
from console.host.cgroups import Hierarchy, Usage
from console.host.deltas import MEMORY_STEP, settle
from console.host.systemd import UnitTable
from console.host.units import Restarts, prevents_restart, unit_from, would_be_restarted

_YOUNG = 10.0  # seconds after its start in which a unit's memory is read often: a kill comes without warning
_NEAR = 0.7  # share of its limit from which on as well
_ASK_AGAIN = 15.0  # seconds between two questions to the journal about one unit that goes on restarting
_LATE = 1.5  # seconds after which a unit that failed is asked about once more: the journal is written behind
_OFTEN = 2
_HEALTHY_EVERY = 3  # of so many passes one reads the memory of a unit that is old and far from its limit
_RESTING_EVERY = 15  # and one of so many that of a unit whose processes use no CPU
_LIMITS_SECONDS = 30.0  # how often the limits in the group's files are read
_SLICE_SECONDS = 0.01
_YOUNG_AT_ONCE = 50  # of the young units so many are read at a time, in turns
_AT_ONCE = 8  # units the journal is asked about in one go


_TRYING = frozenset({"active", "activating", "reloading"})
_UNKNOWN = Usage()


class Asked(NamedTuple):
    """The last question to the journal about a unit: of which run and state, when (monotonic), the how manieth."""

    run: str
    at: float
    times: int


class Peak(msgspec.Struct):
    invocation: str
    memory: int


class UnitSource:
    """Builds the Unit values; `changed` of the table leads here."""

    def __init__(self, table: UnitTable, hierarchy: Hierarchy, user_manager: bool) -> None:
        self._table = table
        self._hierarchy = hierarchy
        self._user_manager = user_manager
        self._usage: dict[str, Usage] = {}
        self._peaks: dict[str, Peak] = {}
        self._restarts: dict[str, Restarts] = {}
        self._told: dict[str, journal.Told] = {}
        self._asked: dict[str, Asked] = {}
        self._limits_at: dict[str, float] = {}  # monotonic
        self._young: dict[str, float] = {}  # units with a limit, and until when they are young (epoch)
        self._near: set[str] = set()  # units near their memory limit
        self._dirty: set[str] = set()  # measured, or asked about, since they were built
        self._restless: set[str] = set()  # what is told of them changes as time goes by
        self._unwatched: dict[str, float] = {}  # units watched too short for a rate, and until when (monotonic)
        self._resting: frozenset[str] = frozenset()  # units whose processes have used no CPU
        self._pass = 0
        self._turn = 0
        self._units: dict[str, Unit] = {}

    def look_at(self, roles: Iterable[Role]) -> None:
        self._table.look_at(roles)

    def rest(self, units: frozenset[str]) -> None:
        """The processes of these units used no CPU in the last pass: their memory is hardly another."""
        self._resting = units

    def news(self, states: Iterable[str]) -> bool:
        """Whether one of these changed states is worth telling at once.

        The starts and ends of a unit that restarts again and again are not: it loops, as it did before.
        """
        for name in states:
            before, now = self._units.get(name), self._table.properties.get(name)
            if before is None or now is None or (before.restarts_per_minute or 0) < LOOPING_PER_MINUTE:
                return True
            if before.active not in _TRYING or text(now.get(b"ActiveState")) not in _TRYING:
                return True
        return False

    def measure(self, only_urgent: bool = False) -> Generator[None, None, None]:
        """Read the cgroup files of the running units, with a pause after every 10 ms; `only_urgent`: of those that
        are young or near their limit. Of the others a third is read each time, fewer of those that rest."""
        now, until = time.time(), time.monotonic() + _SLICE_SECONDS
        if not only_urgent:
            self._pass += 1
            for name in [name for name, young in self._young.items() if young < now]:
                del self._young[name]
        if only_urgent:
            first = self._turn % max(1, len(self._young))
            self._turn += _YOUNG_AT_ONCE
            young = [*self._young, *self._young][first : first + min(len(self._young), _YOUNG_AT_ONCE)]
            names = [*self._near, *(name for name in young if name not in self._near)]
        else:
            names = list(self._units)
        for name in names:
            unit = self._units.get(name)
            if unit is None or not unit.cgroup or not _runs(unit):
                continue
            healthy = name not in self._near and name not in self._young
            every = _RESTING_EVERY if name in self._resting else _HEALTHY_EVERY
            if healthy and (hash(name) + self._pass) % every and name in self._usage:
                continue
            self._measure(name, unit.cgroup, unit.invocation)
            if time.monotonic() > until:
                yield
                until = time.monotonic() + _SLICE_SECONDS

    def anything_urgent(self) -> bool:
        return bool(self._near or self._young)

    def _measure(self, name: str, cgroup: str, invocation: str) -> None:
        before, now = self._usage.get(name), time.monotonic()
        limits_known = before is not None and now - self._limits_at.get(name, 0.0) < _LIMITS_SECONDS
        usage = self._hierarchy.usage(cgroup, before if limits_known else None)
        if not limits_known:
            self._limits_at[name] = now
        if usage.memory is None and usage.tasks is None:
            return  # gone just now: what was seen last stays until the unit is told to be dead
        if usage != before:
            self._usage[name] = usage
            self._dirty.add(name)
        limit = usage.limit
        if limit is not None and (usage.memory or 0) > _NEAR * limit:
            self._near.add(name)
        else:
            self._near.discard(name)
        seen = max(usage.peak or 0, usage.memory or 0)
        peak = self._peaks.get(name)
        if peak is None or peak.invocation != invocation:
            if seen:
                self._peaks[name] = Peak(invocation, seen)
                self._dirty.add(name)
        elif seen > peak.memory:
            peak.memory = seen
            self._dirty.add(name)

    def stated(self) -> tuple[Unit, ...]:
        """Name, description and states of every unit that has been listed, before its properties are known."""
        return tuple(
            Unit(name=row.name, description=row.description, load=row.load, active=row.active, sub=row.sub)
            for row in self._table.listed.values()
        )

    def build(self, told: dict[str, Unit]) -> dict[str, Unit]:
        """Every unit now; numbers that jitter stay as `told` while they are close to it.

        Made again are those of which something is another since the last time; the rest are the same objects.
        """
        now = time.monotonic()
        properties = self._table.properties
        watched = [name for name, until in self._unwatched.items() if until < now]
        for name in watched:
            del self._unwatched[name]
        again = self._dirty | self._table.altered | self._restless.union(watched)
        self._dirty, self._table.altered, self._restless = set(), set(), set()
        units: dict[str, Unit] = {}
        for name in properties:
            known = self._units.get(name)
            if known is not None and name not in again and (name in told or not told):
                units[name] = known
            else:
                units[name] = self._build(name, properties[name], told.get(name), now)
        if len(self._units) != len(units) or self._units.keys() != units.keys():
            self._forget(units)
        self._units = units
        return units

    def _build(self, name: str, properties: Properties, before: Unit | None, now: float) -> Unit:
        unit = unit_from(name, properties)
        restarts = self._restarts.setdefault(name, Restarts(now))
        restarts.saw(unit.restarts, unit.invocation, now)
        per_minute = restarts.per_minute(now)
        if per_minute is None:
            self._unwatched.setdefault(name, now + Restarts.SHORTEST)
        elif per_minute > 0 or unit.active == "failed":
            self._restless.add(name)
        alive = _runs(unit)
        if not alive:
            self._usage.pop(name, None)
            self._near.discard(name)
            self._young.pop(name, None)
        elif unit.cgroup:
            known = self._units.get(name)
            if name not in self._usage or known is None or known.invocation != unit.invocation:
                self._usage.pop(name, None)
                if unit.memory_max is not None and unit.started is not None and time.time() < unit.started + _YOUNG:
                    self._young[name] = unit.started + _YOUNG
                self._measure(name, unit.cgroup, unit.invocation)
                self._dirty.discard(name)
        usage = self._usage.get(name, _UNKNOWN)
        peak = self._peaks.get(name)
        peak_now = peak.memory if peak and peak.invocation == unit.invocation else None
        lines = self._told.get(name)
        made = msgspec.structs.replace(
            unit,
            restarts_per_minute=per_minute,
            memory_now=settle(usage.memory, before.memory_now if before else None, MEMORY_STEP),
            memory_peak=settle(peak_now, before.memory_peak if before else None, MEMORY_STEP),
            memory_enforced=_enforced(unit.memory_max, usage),
            tasks_now=usage.tasks,
            start_limit_hit=self._start_limit(unit, prevents_restart(properties), lines),
        )
        if lines and _in_trouble(unit):
            made = msgspec.structs.replace(made, last_log=lines.lines, last_words=lines.own)
        return made

    def _forget(self, units: dict[str, Unit]) -> None:
        memories = (self._restarts, self._usage, self._peaks, self._told, self._asked, self._limits_at)
        for memory in (*memories, self._young, self._unwatched):
            for name in [name for name in memory if name not in units]:
                del memory[name]
        self._near &= units.keys()

    def _start_limit(self, unit: Unit, prevented: bool, told: journal.Told | None) -> bool:
        """Result= says so for some units only (252 keeps exit-code); else the journal; else what Restart= implies."""
        if unit.active != "failed":
            return False
        if unit.result == "start-limit-hit":
            return True
        implied = would_be_restarted(unit) and not prevented
        asked = self._asked.get(unit.name)
        if told is not None and told.readable and asked is not None and asked.run == _run_of(unit):
            return told.start_limit or (implied and asked.times < _OFTEN)
        return implied

    # --- the journal ------------------------------------------------------------------------------------------------

    def questions(self) -> list[Unit]:
        """Units whose last lines should be read now: newly failed, or restarting and not asked about for a while."""
        now = time.monotonic()
        wanted = []
        for unit in self._units.values():
            if not _in_trouble(unit):
                continue
            asked = self._asked.get(unit.name)
            if asked is None:
                wanted.append(unit)
            elif asked.run != _run_of(unit):
                if unit.active == "failed" or now - asked.at > _ASK_AGAIN:
                    wanted.append(unit)
            elif unit.active == "failed" and asked.times < _OFTEN and now - asked.at > _LATE:
                wanted.append(unit)
        return wanted[:_AT_ONCE]

    async def ask(self, units: list[Unit], timeout: float | None = None) -> None:
        """Ask the journal about each, two at a time; what came in time is used by the next `build`."""
        gate = asyncio.Semaphore(2)

        async def one(unit: Unit) -> None:
            async with gate:
                before = self._asked.get(unit.name)
                times = before.times + 1 if before and before.run == _run_of(unit) else 1
                self._asked[unit.name] = Asked(_run_of(unit), time.monotonic(), times)
                told = await journal.last_lines(unit.name, unit.started, self._user_manager)
                killed = self._memory_kill(unit)
                if killed:
                    told = told._replace(lines=(*told.lines, killed))
                if unit.name in self._asked:
                    self._told[unit.name] = told
                    self._dirty.add(unit.name)

        async with asyncio.timeout(timeout):
            await asyncio.gather(*(one(unit) for unit in units))

    def _memory_kill(self, unit: Unit) -> str:
        """The kernel's word that the unit was killed at its limit: then its memory did reach the limit."""
        if (unit.exit_code, unit.exit_status) != ("killed", signal.SIGKILL) or not unit.memory_max or not unit.exited:
            return ""
        log = kernel_log.read_all()
        said = kernel_log.memory_kill(log, unit.name, unit.exited, procfs.boot_time()) if log else ""
        if said:
            peak = self._peaks.get(unit.name)
            seen = peak.memory if peak and peak.invocation == unit.invocation else 0
            self._peaks[unit.name] = Peak(unit.invocation, max(seen, unit.memory_max))
        return said

    async def ask_first(self) -> None:
        """Before the first telling: short, so that a command that prints once has the lines."""
        units = self.questions()
        if units:
            try:
                await self.ask(units, timeout=1.5)
            except TimeoutError:
                return


def _runs(unit: Unit) -> bool:
    """It has processes: between two starts (auto-restart) a unit is "activating" without any."""
    return unit.active not in ("inactive", "failed") and unit.sub != "auto-restart"


def _run_of(unit: Unit) -> str:
    return f"{unit.invocation}/{unit.active}/{unit.restarts}"


def _in_trouble(unit: Unit) -> bool:
    return (
        unit.active == "failed"
        or unit.sub == "auto-restart"
        or (unit.restarts > 0 and (unit.restarts_per_minute or 0) > 0)
        or loops(unit, time.time())
    )


def _enforced(memory_max: int | None, usage: Usage) -> bool | None:
    """The kernel rounds the limit down to whole pages; None: no limit is set, or its file cannot be read."""
    if memory_max is None or usage.memory is None:
        return None
    return usage.limit is not None and usage.limit <= memory_max
