"""Asking a service to end before it is stopped: a stop of systemd kills after TimeoutStopSec=, whoever would mind.

The signal of the service (KillSignal=) goes to those processes that a stop would send it to (KillMode=). When the main
process has ended, its unit must be stopped at once, or Restart= may start it again.

A service that tells systemd that it stops (sd_notify STOPPING=1) is taken for one that is being stopped: from then on
its TimeoutStopSec= counts, and systemd kills it at its end. Nothing can keep it from that; it is said.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

from console.fleet.operations import UnitJob, UnitProgress
from console.host.bus import SERVICE, UNIT, Connection, text, unit_path
from console.text import duration

_TICK = 1.0
_BEFORE_KILL = 1.0  # seconds before systemd kills it, the wait is over
_WHOM = {"control-group": b"all", "mixed": b"main", "process": b"main"}
_ASKED = ("active", "deactivating")


async def ask_to_end(
    ask: Connection, name: str, patience: float, told: Callable[[UnitProgress], None]
) -> UnitJob | None:
    """None: there is nothing (any more) that would have to be waited for. Else what is the case after `patience` s.

    HostError: not permitted, the bus is gone. A service with an ExecStop= is ended by that, and not asked here.
    """
    path = unit_path(name)
    pid = ask.property(path, SERVICE, b"MainPID", b"u")
    active = text(ask.property(path, UNIT, b"ActiveState", b"s"))
    whom = _WHOM.get(text(ask.property(path, SERVICE, b"KillMode", b"s")))
    if not isinstance(pid, int) or pid <= 1 or active not in _ASKED or whom is None:
        return None
    if ask.property(path, SERVICE, b"ExecStop", b"a(sasbttttuii)"):
        return None
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return None  # it has ended already
    began = time.monotonic()
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(handle, ended.set)
        if active == "active":  # who is asked twice may take that for an order to leave its work
            number = ask.property(path, SERVICE, b"KillSignal", b"i")
            ask.kill_unit(name, whom, number if isinstance(number, int) else 15)
        until, kills = began + patience, None
        while (left := until - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(min(_TICK, left)):
                    await ended.wait()
                return None
            except TimeoutError:
                pass
            if kills is None and (kills := _killed_at(ask, path)) is not None:
                until = min(until, kills - _BEFORE_KILL)
            told(_progress(name, time.monotonic() - began, until, kills))
    finally:
        loop.remove_reader(handle)
        os.close(handle)
    active = text(ask.property(path, UNIT, b"ActiveState", b"s"))
    words = f"{name} was asked to end {duration(time.monotonic() - began)} ago, and pid {pid} has not ended"
    if kills is not None:
        words += (
            f"; it has told systemd that it stops, which kills it in {duration(max(0.0, kills - time.monotonic()))}"
        )
    return UnitJob(
        unit=name,
        verb="stop",
        result="timeout",
        active=active,
        sub=text(ask.property(path, UNIT, b"SubState", b"s")),
        main_pid=pid,
        took=round(time.monotonic() - began, 3),
        text=words,
    )


def _killed_at(ask: Connection, path: bytes) -> float | None:
    """When systemd kills it, by time.monotonic(); None: it has not been told that it stops, or never does."""
    if text(ask.property(path, UNIT, b"ActiveState", b"s")) != "deactivating":
        return None
    limit = ask.property(path, SERVICE, b"TimeoutStopUSec", b"t")
    since = ask.property(path, UNIT, b"StateChangeTimestampMonotonic", b"t")
    if not isinstance(limit, int) or not isinstance(since, int) or not 0 < limit < 2**63:
        return None
    return (since + limit) / 1e6


def _progress(name: str, elapsed: float, until: float, kills: float | None) -> UnitProgress:
    now = time.monotonic()
    words = f"{name} was asked to end and finishes what it has"
    if kills is not None:
        words += f"; systemd kills it in {duration(max(0.0, kills - now))}"
    return UnitProgress(
        unit=name,
        verb="stop",
        active="active" if kills is None else "deactivating",
        elapsed=round(elapsed, 1),
        remaining=round(max(0.0, until - now), 1),
        text=words,
    )
