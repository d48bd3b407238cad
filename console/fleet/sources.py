"""How each source of facts is doing: live, down, denied, or simply not there."""

from __future__ import annotations

from typing import Any

from console.fleet.model import HostFacts, QueueFacts, Reading, SourceName, SourceStatus
from console.text import ago

NOW = 5.0  # seconds; a reading that is no older was the last one due

LABELS: dict[SourceName, str] = {
    "agent": "agent",
    "units": "units",
    "processes": "processes",
    "host": "host",
    "schedules": "crontabs",
    "queue": "queue",
}


def statuses(host: HostFacts, queue: Reading[QueueFacts] | None, now: float) -> tuple[SourceStatus, ...]:
    """One status per source, in the order of the header. `queue` is None when no database is configured."""
    readings: tuple[tuple[SourceName, Reading[Any]], ...] = (
        ("agent", host.agent),
        ("units", host.units),
        ("processes", host.processes),
        ("host", host.host),
        ("schedules", host.schedules),
    )
    found = [_status(name, reading, now, host) for name, reading in readings]
    if queue is None:
        found.append(SourceStatus(name="queue", state="absent", text="queue: no database configured"))
    else:
        found.append(_status("queue", queue, now, host))
    return tuple(found)


def _status(name: SourceName, reading: Reading[Any], now: float, host: HostFacts) -> SourceStatus:
    label = LABELS[name]
    age = now - reading.taken if reading.taken is not None else None
    if name == "units" and host.hello is not None and host.hello.manager == "none":
        return SourceStatus(name=name, state="absent", text="units: no systemd here", problem=reading.problem)
    if reading.problem is None:
        if age is None or (name == "units" and host.units_partial):
            return SourceStatus(name=name, state="waiting", text=f"{label}: asking…")
        return SourceStatus(name=name, state="live", age=age, text=f"{label} {'now' if age < NOW else ago(age)}")
    denied = "not permitted" in reading.problem.why or "permission denied" in reading.problem.why.lower()
    old = f"{ago(age)} old" if age is not None else "never read"
    if denied and reading.value is not None:
        return SourceStatus(
            name=name, state="denied", age=age, text=f"{label}: in part not permitted", problem=reading.problem
        )
    return SourceStatus(
        name=name,
        state="denied" if denied else "down",
        age=age,
        text=f"{label} {old}: {reading.problem.why}",
        problem=reading.problem,
    )
