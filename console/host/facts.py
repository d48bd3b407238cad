"""What one agent has said so far, as HostFacts: updates merged, failures kept beside the last good value."""

from __future__ import annotations

import re
import time
from typing import Any

import msgspec

from console.errors import Problem
from console.fleet.model import CronLine, Hello, Host, HostFacts, Process, Reading, Unit
from console.host.protocol import (
    HoldersUpdate,
    HostUpdate,
    ProcessesUpdate,
    SchedulesUpdate,
    UnitsUpdate,
    Update,
    process_key,
)

_CLOCK_SLACK = 5.0  # seconds: a `taken` further off comes from another clock, the arrival counts instead
_SOURCES = ("units", "processes", "host", "schedules")


class Keeper:
    """Holds the facts of one host over many agents."""

    def __init__(self) -> None:
        self.facts = HostFacts()
        self.greetings = 0
        self._begun = time.monotonic()
        self._partial = False  # the units are known by their states alone
        self._units: dict[str, Unit] = {}
        self._processes: dict[str, Process] = {}
        self._idle: dict[str, tuple[float, float]] = {}  # key: idle time as told, and when (the agent's clock)

    @property
    def complete(self) -> bool:
        """Every source has said something since the last agent began, a value or a problem."""
        readings: list[Reading[Any]] = [getattr(self.facts, name) for name in _SOURCES]
        return (
            self.greetings > 0
            and not self._partial
            and all(reading.taken is not None or reading.problem is not None for reading in readings)
        )

    def begin(self) -> None:
        self._begun = time.monotonic()

    def lived_for(self) -> float:
        """Seconds since the last agent was started."""
        return time.monotonic() - self._begun

    def greeted(self, hello: Hello, took: float) -> None:
        self.greetings += 1
        self.facts = msgspec.structs.replace(
            self.facts, hello=hello, agent=Reading(value=hello, taken=time.time(), took=round(took, 3))
        )

    def failed(self, problem: Problem) -> None:
        """The agent is gone: every reading keeps its value and says why it grows old."""
        now = time.time()
        changes = {name: _failing(getattr(self.facts, name), problem, now) for name in ("agent", *_SOURCES, "holders")}
        self.facts = msgspec.structs.replace(self.facts, **changes)

    def not_looked_up(self, problem: Problem) -> None:
        """The holders could not be asked for."""
        self.facts = msgspec.structs.replace(self.facts, holders=_failing(self.facts.holders, problem, time.time()))

    def refused(self, problem: Problem) -> None:
        """A request of the console was not understood."""
        self.facts = msgspec.structs.replace(self.facts, agent=_failing(self.facts.agent, problem, time.time()))

    def update(self, message: Update) -> None:
        """Merge one update; a failed try (`taken` None) leaves the value as it is."""
        now = time.time()
        agent = self.facts.agent
        if agent.problem is None:
            agent = msgspec.structs.replace(agent, taken=now)
        name = type(message).__struct_config__.tag
        if isinstance(message, UnitsUpdate):
            self._partial = message.partial
        reading: Reading[Any] = getattr(self.facts, str(name))
        if message.taken is None:
            problem = message.problem or Problem(str(name), "failed without saying why")
            changed = _failing(reading, problem, now)
        else:
            taken = message.taken if abs(now - message.taken) < _CLOCK_SLACK else now
            changed = Reading(
                value=self._value(message, reading.value),
                taken=taken,
                took=message.took,
                problem=message.problem,
                failing_since=(reading.failing_since or now) if message.problem else None,
            )
        self.facts = msgspec.structs.replace(self.facts, agent=agent, **{str(name): changed})

    def _value(self, message: Update, value: Any) -> Any:
        if isinstance(message, UnitsUpdate):
            return self._merge_units(message, value)
        if isinstance(message, ProcessesUpdate):
            return self._merge_processes(message)
        if isinstance(message, HostUpdate):
            host: Host | None = message.items[-1] if message.items else value
            return msgspec.structs.replace(host, now=message.taken) if host is not None else None
        if isinstance(message, HoldersUpdate):
            return message.items
        assert isinstance(message, SchedulesUpdate)
        lines: tuple[CronLine, ...] = message.items if message.full else value or ()
        return lines

    def _merge_units(self, message: UnitsUpdate, value: tuple[Unit, ...] | None) -> tuple[Unit, ...]:
        if value is not None and not (message.full or message.items or message.gone):
            return value
        known = self._units
        if message.full:
            self._units = {}
        for key in message.gone:
            self._units.pop(key, None)
        if message.partial:
            self._units.update((unit.name, _stated(unit, known.get(unit.name))) for unit in message.items)
        else:
            self._units.update((unit.name, unit) for unit in message.items)
        return tuple(sorted(self._units.values(), key=lambda unit: natural(unit.name)))

    def _merge_processes(self, message: ProcessesUpdate) -> tuple[Process, ...]:
        """Idle times are told only when they are not what ageing gives: the others are aged here."""
        assert message.taken is not None
        if message.full:
            self._processes, self._idle = {}, {}
        for key in message.gone:
            self._processes.pop(key, None)
            self._idle.pop(key, None)
        for process in message.items:
            key = process_key(process)
            self._processes[key] = process
            self._idle.pop(key, None)
            if process.idle_for is not None:
                self._idle[key] = (process.idle_for, message.taken)
        aged = []
        for key, process in self._processes.items():
            told = self._idle.get(key)
            if told is not None:
                idle = round(told[0] + max(0.0, message.taken - told[1]), 1)
                process = msgspec.structs.replace(process, idle_for=idle)
            aged.append(process)
        return tuple(sorted(aged, key=lambda process: (process.role, process.ident.pid)))


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Sorts worker@2 before worker@10."""
    return tuple(
        (0, int(part)) if part.isdecimal() and len(part) < 19 else (1, part) for part in re.split(r"(\d+)", name)
    )


def _stated(unit: Unit, before: Unit | None) -> Unit:
    """A unit of which only the states are known yet; what an earlier agent said of it stays meanwhile."""
    if before is None:
        return unit
    return msgspec.structs.replace(before, load=unit.load, active=unit.active, sub=unit.sub)


def _failing(reading: Reading[Any], problem: Problem, now: float) -> Reading[Any]:
    return msgspec.structs.replace(reading, problem=problem, failing_since=reading.failing_since or now)
