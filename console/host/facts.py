"""What one agent has said so far, as HostFacts: updates merged, failures kept beside the last good value."""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import Any

import msgspec

from console.errors import Problem
from console.fleet.model import CronLine, DatabaseClient, Hello, Host, HostFacts, Process, Reading, Unit
from console.fleet.workers import LOOPING_PER_MINUTE
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
_EXACT_STEP, _COARSE_STEP = 0.1, 10.0  # seconds by which idle times are aged
_SOURCES = ("units", "processes", "host", "schedules")
_TRYING = frozenset({"active", "activating", "reloading"})


class Keeper:
    """Holds the facts of one host over many agents."""

    def __init__(self) -> None:
        self.facts = HostFacts()
        self.greetings = 0
        self._begun = time.monotonic()
        self._greeted_at = 0.0
        self._units: dict[str, Unit] = {}  # in the order they are shown
        self._processes: dict[str, Process] = {}  # as told, in the order of their roles
        self._processes_taken = 0.0  # the agent's clock
        self._holders: frozenset[int] = frozenset()  # pids that hold jobs
        self._holding: frozenset[int] = frozenset()  # those, and pids that are connected to the database
        self._shown_aged: dict[str, Process] = {}  # processes with the idle time that was shown last
        self._idle: dict[str, tuple[float, float]] = {}  # key: idle time as told, and when (the agent's clock)

    @property
    def complete(self) -> bool:
        """Every source has said something since the last agent began, a value or a problem."""
        readings: list[Reading[Any]] = [getattr(self.facts, name) for name in _SOURCES]
        return (
            self.greetings > 0
            and not self.facts.units_partial
            and all(reading.taken is not None or reading.problem is not None for reading in readings)
        )

    def begin(self) -> None:
        self._begun = time.monotonic()

    def lived_for(self) -> float:
        """Seconds since the last agent was started."""
        return time.monotonic() - self._begun

    def greeted(self, hello: Hello, took: float) -> None:
        self.greetings += 1
        self._greeted_at = time.monotonic()
        self.facts = msgspec.structs.replace(
            self.facts,
            hello=hello,
            agent=Reading(value=hello, taken=time.time(), took=round(took, 3)),
            clients=Reading(),
            uptime=hello.uptime,
        )

    def _uptime(self) -> float | None:
        said = self.facts.hello.uptime if self.facts.hello is not None else None
        return None if said is None else round(said + time.monotonic() - self._greeted_at, 1)

    def failed(self, problem: Problem) -> None:
        """The agent is gone: every reading keeps its value and says why it grows old."""
        now = time.time()
        names = ("agent", *_SOURCES, "holders", "clients")
        changes = {name: _failing(getattr(self.facts, name), problem, now) for name in names}
        self.facts = msgspec.structs.replace(self.facts, **changes)

    def not_looked_up(self, problem: Problem) -> None:
        """The holders could not be asked for."""
        self.facts = msgspec.structs.replace(self.facts, holders=_failing(self.facts.holders, problem, time.time()))

    def clients(self, found: tuple[DatabaseClient, ...] | None, problem: Problem | None = None) -> None:
        """Who is connected to the database, or why that could not be asked for."""
        if found is None:
            assert problem is not None
            reading = _failing(self.facts.clients, problem, time.time())
        else:
            reading = Reading(value=found, taken=time.time())
        self.facts = msgspec.structs.replace(self.facts, clients=reading)
        self._hold()

    def refused(self, problem: Problem) -> None:
        """A request of the console was not understood."""
        self.facts = msgspec.structs.replace(self.facts, agent=_failing(self.facts.agent, problem, time.time()))

    def update(self, message: Update) -> bool:
        """Merge one update; a failed try (`taken` None) leaves the value as it is.

        True when a person must see it at once: a first answer, another problem, another state of a unit.
        """
        now = time.time()
        agent = self.facts.agent
        if agent.problem is None:
            agent = msgspec.structs.replace(agent, taken=now)
        name = type(message).__struct_config__.tag
        partial = message.partial if isinstance(message, UnitsUpdate) else self.facts.units_partial
        reading: Reading[Any] = getattr(self.facts, str(name))
        at_once = reading.taken is None or partial != self.facts.units_partial or self._news(message)
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
        changes = {"agent": agent, "units_partial": partial, "uptime": self._uptime(), str(name): changed}
        if isinstance(message, UnitsUpdate) and message.taken is not None:
            changes["reloads"] = message.reloads
        self.facts = msgspec.structs.replace(self.facts, **changes)
        if isinstance(message, HoldersUpdate):
            self._holders = frozenset(state.pid for state in message.items)
            self._hold()
        return at_once or changed.problem != reading.problem

    def _news(self, message: Update) -> bool:
        if not isinstance(message, UnitsUpdate):
            return False
        return bool(message.gone) or any(_is_news(self._units.get(unit.name), unit) for unit in message.items)

    def _value(self, message: Update, value: Any) -> Any:
        if isinstance(message, UnitsUpdate):
            return self._merge_units(message, value)
        if isinstance(message, ProcessesUpdate):
            return self._merge_processes(message, value)
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
        before = len(self._units)
        if message.partial:
            self._units.update((unit.name, _stated(unit, known.get(unit.name))) for unit in message.items)
        else:
            self._units.update((unit.name, unit) for unit in message.items)
        if len(self._units) != before:
            self._units = dict(sorted(self._units.items(), key=lambda item: natural(item[0])))
        return tuple(self._units.values())

    def _merge_processes(self, message: ProcessesUpdate, value: tuple[Process, ...] | None) -> tuple[Process, ...]:
        assert message.taken is not None
        if message.full:
            self._processes, self._idle, self._shown_aged = {}, {}, {}
        for key in message.gone:
            self._processes.pop(key, None)
            self._idle.pop(key, None)
            self._shown_aged.pop(key, None)
        self._processes_taken = message.taken
        unsorted = message.full
        for process in message.items:
            key = process_key(process)
            before = self._processes.get(key)
            unsorted |= before is None or before.role != process.role
            self._processes[key] = process
            self._idle.pop(key, None)
            self._shown_aged.pop(key, None)
            if process.idle_for is not None:
                self._idle[key] = (process.idle_for, message.taken)
        if unsorted:
            by_role = sorted(self._processes.items(), key=lambda item: (item[1].role, item[1].ident.pid))
            self._processes = dict(by_role)
        same = value is not None and not (message.full or message.items or message.gone)
        return self._aged(message.taken, value if same else None)

    def _aged(self, taken: float, value: tuple[Process, ...] | None) -> tuple[Process, ...]:
        """Idle times are told only when they are not what ageing gives: they are aged here. A verdict hangs on those
        of holders of jobs and of clients of the database, to the second; the others go in steps, and stay the objects
        they were in between, so that nothing is made anew of them.

        `value` is what was made of the same processes before, if it was.
        """
        made, shown, news = self._processes, self._shown_aged, value is None
        self._shown_aged = {}
        for key, (idle, told) in self._idle.items():
            step = _EXACT_STEP if made[key].ident.pid in self._holding else _COARSE_STEP
            steps = int((taken - told) / step)
            if steps <= 0:
                news |= key in shown
                continue
            before = shown.get(key)
            aged = round(idle + (steps * step if step == _COARSE_STEP else taken - told), 1)
            if before is not None and before.idle_for == aged and before.ident == made[key].ident:
                self._shown_aged[key] = before
                continue
            self._shown_aged[key] = msgspec.structs.replace(made[key], idle_for=aged)
            news = True
        if not news and value is not None:
            return value
        return tuple(self._shown_aged.get(key, process) for key, process in made.items())

    def _hold(self) -> None:
        connected = (client.ident for client in self.facts.clients.value or ())
        pids = self._holders | {ident.pid for ident in connected if ident is not None}
        if pids == self._holding:
            return
        self._holding = pids
        processes = self.facts.processes
        if processes.value is not None:
            aged = msgspec.structs.replace(processes, value=self._aged(self._processes_taken, None))
            self.facts = msgspec.structs.replace(self.facts, processes=aged)


def _is_news(before: Unit | None, now: Unit) -> bool:
    """Another state; the starts and ends of a unit that goes on restarting are none: it loops, as it did before."""
    if before is None:
        return True
    if (before.load, before.active, before.sub, before.result, before.main_pid, before.restarts) == (
        (now.load, now.active, now.sub, now.result, now.main_pid, now.restarts)
    ):
        return False
    loops = (before.restarts_per_minute or 0) >= LOOPING_PER_MINUTE
    return not (loops and before.active in _TRYING and now.active in _TRYING)


@lru_cache(maxsize=2048)
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
