"""Whether so many workers of a role have room: in its budget, in memory, at the database, in the account. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from console.fleet.choices import is_up
from console.fleet.model import Host, Limits, Role, Value, Worker
from console.text import size

Kind = Literal["instances", "memory", "connections", "processes"]


class Room(Value, frozen=True, kw_only=True):
    """What is known of the role and of what it shares with others. None: not known."""

    running: int
    memory_each: int | None = None  # bytes one worker may take
    measured: bool = False  # there is no MemoryMax: it is the highest that was measured
    memory_used: int = 0  # what the running ones take now
    memory_available: int | None = None
    reserve: int = 0
    tasks_each: int | None = None
    account: str = ""
    tasks: int | None = None  # of the account
    tasks_limit: int | None = None
    processes: int | None = None
    processes_budget: int | None = None  # account_processes of worktop.toml
    connections_each: float | None = None  # of one worker
    connections: int | None = None  # of all clients
    connections_max: int | None = None  # without those kept for superusers


class Need(Value, frozen=True, kw_only=True):
    """One sum of a budget."""

    kind: Kind
    needed: int
    there: int
    text: str  # the sum, written out

    @property
    def fits(self) -> bool:
        return self.needed <= self.there


class Budget(Value, frozen=True, kw_only=True):
    """Every sum that could be made, and what could not."""

    needs: tuple[Need, ...]
    unknown: tuple[str, ...] = ()  # sentences

    @property
    def over(self) -> tuple[Need, ...]:
        return tuple(need for need in self.needs if not need.fits)


def room_of(
    role: Role,
    workers: Sequence[Worker],
    host: Host | None,
    limits: Limits,
    connections: tuple[int | None, int | None] = (None, None),
    connections_each: float | None = None,
) -> Room:
    """`connections`: how many clients the database has, and how many it takes beside the superusers' reserve."""
    up = [worker for worker in workers if is_up(worker)]
    units = [worker.unit for worker in workers if worker.unit is not None and worker.unit.load == "loaded"]
    capped = [unit.memory_max for unit in units if unit.memory_max is not None]
    peaks = [value for worker in up for value in (worker.memory_peak, worker.memory) if value is not None]
    all_capped = bool(units) and len(capped) == len(units)
    tasks = [worker.unit.tasks_now for worker in up if worker.unit is not None and worker.unit.tasks_now]
    user = next((unit.user for unit in units if unit.user), "root" if units else "")
    account = next((one for one in (host.accounts if host is not None else ()) if one.user == user), None)
    return Room(
        running=len(up),
        memory_each=max(capped) if all_capped else max(peaks, default=None),
        measured=not all_capped,
        memory_used=sum(worker.memory or 0 for worker in up),
        memory_available=host.memory_available if host is not None else None,
        reserve=limits.memory_reserve,
        tasks_each=max(tasks, default=None),
        account=user,
        tasks=account.tasks if account is not None else None,
        tasks_limit=account.limit if account is not None else None,
        processes=account.processes if account is not None else None,
        processes_budget=limits.account_processes,
        connections_each=connections_each,
        connections=connections[0],
        connections_max=connections[1],
    )


def budget_of(role: Role, count: int, room: Room) -> Budget:
    """The sums for `count` workers of the role."""
    more = count - room.running
    needs: list[Need] = []
    unknown: list[str] = []
    if role.budget is not None:
        text = f"{count} workers, and the budget of {role.name} is {role.budget}"
        needs.append(Need(kind="instances", needed=count, there=role.budget, text=text))
    needs += _memory(count, room, unknown)
    needs += _connections(more, room, unknown)
    needs += _processes(more, room)
    return Budget(needs=tuple(needs), unknown=tuple(unknown))


def _memory(count: int, room: Room, unknown: list[str]) -> list[Need]:
    if room.memory_each is None:
        unknown.append("what one worker takes of memory: it has no MemoryMax, and none has been measured")
        return []
    if room.memory_available is None:
        unknown.append("how much memory is available")
        return []
    needed = count * room.memory_each + room.reserve
    there = room.memory_available + room.memory_used
    what = "measured peak" if room.measured else "MemoryMax"
    text = (
        f"{count} × {size(room.memory_each)} {what} + {size(room.reserve)} reserve = {size(needed)}, "
        f"and {size(there)} is there (available, and what the running ones have)"
    )
    return [Need(kind="memory", needed=needed, there=there, text=text)]


def _connections(more: int, room: Room, unknown: list[str]) -> list[Need]:
    if room.connections is None or room.connections_max is None:
        unknown.append("how many connections the database has left")
        return []
    each = room.connections_each if room.connections_each is not None else 1.0
    needed = room.connections + math.ceil(max(0, more) * each)
    assumed = "" if room.connections_each is not None else " (one each is assumed)"
    text = (
        f"{room.connections} connections + {max(0, more)} × {each:g}{assumed} = {needed}, "
        f"and the database takes {room.connections_max} beside the superusers'"
    )
    return [Need(kind="connections", needed=needed, there=room.connections_max, text=text)]


def _processes(more: int, room: Room) -> list[Need]:
    needs: list[Need] = []
    each = room.tasks_each if room.tasks_each is not None else 1
    if room.tasks is not None and room.tasks_limit is not None:
        needed = room.tasks + max(0, more) * each
        text = (
            f"{room.tasks} tasks of {room.account} + {max(0, more)} × {each} = {needed}, "
            f"its limit is {room.tasks_limit}"
        )
        needs.append(Need(kind="processes", needed=needed, there=room.tasks_limit, text=text))
    if room.processes is not None and room.processes_budget is not None:
        needed = room.processes + max(0, more)
        text = (
            f"{room.processes} processes of {room.account} + {max(0, more)} = {needed}, "
            f"the budget of the account is {room.processes_budget}"
        )
        needs.append(Need(kind="processes", needed=needed, there=room.processes_budget, text=text))
    return needs
