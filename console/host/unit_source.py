"""The units as they are told: systemd's properties, with memory, restarts per minute and journal lines added."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from console.fleet.model import Role, Unit
from console.host import journal, kernel_log, procfs
from console.host.cgroups import Hierarchy, Usage
from console.host.deltas import MEMORY_STEP, settle
from console.host.systemd import UnitTable
from console.host.units import Restarts, prevents_restart, unit_from, would_be_restarted

_YOUNG = 10.0  # seconds after its start in which a unit's memory is read often: a kill comes without warning
_NEAR = 0.7  # share of its limit from which on as well
_ASK_AGAIN = 15.0  # seconds between two questions to the journal about one unit that goes on restarting
_LATE = 1.5  # seconds after which a unit that failed is asked about once more: the journal is written behind
_OFTEN = 2
_AT_ONCE = 8  # units the journal is asked about in one go


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
        self._made: dict[str, tuple[int, Unit]] = {}  # by unit: the revision of its properties, and what they say
        self._units: dict[str, Unit] = {}

    def look_at(self, roles: Iterable[Role]) -> None:
        self._table.look_at(roles)

    def measure(self, only_urgent: bool = False) -> None:
        """Read the cgroup files of the running units; `only_urgent`: of those that are young or near their limit."""
        now = time.time()
        for name, unit in self._units.items():
            if unit.cgroup and _runs(unit) and (not only_urgent or _urgent(unit, now)):
                self._measure(name, unit.cgroup, unit.invocation)
            elif not only_urgent:
                self._usage.pop(name, None)

    def anything_urgent(self) -> bool:
        now = time.time()
        return any(_runs(unit) and _urgent(unit, now) for unit in self._units.values())

    def _measure(self, name: str, cgroup: str, invocation: str) -> None:
        usage = self._hierarchy.usage(cgroup)
        if usage.memory is None and usage.tasks is None:
            return  # gone just now: what was seen last stays until the unit is told to be dead
        self._usage[name] = usage
        seen = max(usage.peak or 0, usage.memory or 0)
        peak = self._peaks.get(name)
        if peak is None or peak.invocation != invocation:
            if seen:
                self._peaks[name] = Peak(invocation, seen)
        elif seen > peak.memory:
            peak.memory = seen

    def build(self, told: dict[str, Unit]) -> dict[str, Unit]:
        """Every unit now; numbers that jitter stay as `told` while they are close to it."""
        now = time.monotonic()
        units: dict[str, Unit] = {}
        for name, properties in self._table.properties.items():
            revision = self._table.revisions.get(name, 0)
            made = self._made.get(name)
            if made is None or made[0] != revision:
                made = self._made[name] = (revision, unit_from(name, properties))
            unit = made[1]
            restarts = self._restarts.setdefault(name, Restarts(now))
            restarts.saw(unit.restarts, unit.invocation, now)
            alive = _runs(unit)
            if alive and unit.cgroup and (name not in self._usage or self._units[name].invocation != unit.invocation):
                self._usage.pop(name, None)
                self._measure(name, unit.cgroup, unit.invocation)
            usage = self._usage.get(name, Usage()) if alive else Usage()
            peak = self._peaks.get(name)
            peak_now = peak.memory if peak and peak.invocation == unit.invocation else None
            before = told.get(name)
            lines = self._told.get(name)
            units[name] = msgspec.structs.replace(
                unit,
                restarts_per_minute=restarts.per_minute(now),
                memory_now=settle(usage.memory, before.memory_now if before else None, MEMORY_STEP),
                memory_peak=settle(peak_now, before.memory_peak if before else None, MEMORY_STEP),
                memory_enforced=_enforced(unit.memory_max, usage),
                tasks_now=usage.tasks,
                start_limit_hit=self._start_limit(unit, prevents_restart(properties), lines),
                last_log=lines.lines if lines and _in_trouble(unit) else (),
                last_words=lines.own if lines and _in_trouble(unit) else "",
            )
        for memory in (self._restarts, self._usage, self._peaks, self._told, self._asked, self._made):
            for name in [name for name in memory if name not in units]:
                del memory[name]
        self._units = units
        return units

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
    )


def _urgent(unit: Unit, now: float) -> bool:
    if unit.memory_max is None:
        return False
    young = unit.started is not None and now - unit.started < _YOUNG
    return young or (unit.memory_now or 0) > _NEAR * unit.memory_max


def _enforced(memory_max: int | None, usage: Usage) -> bool | None:
    """The kernel rounds the limit down to whole pages; None: no limit is set, or its file cannot be read."""
    if memory_max is None or usage.memory is None:
        return None
    return usage.limit is not None and usage.limit <= memory_max
