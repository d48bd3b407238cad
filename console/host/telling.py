"""Which processes the console has to be told of again: idle times grow by themselves there."""

from __future__ import annotations

import msgspec

from console.fleet.model import Process
from console.fleet.verdicts import WATCHED_LONG_ENOUGH
from console.host.deltas import Delta, Told
from console.host.processes import Scanner

_IDLE_SLACK = 15.0  # seconds by which the idle time that was told may be too long
_EXACT = 1.0  # seconds


class ProcessTelling:
    """What the console knows of the processes."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Tell everything anew."""
        self._told: Told[Process] = Told()
        self._told_at: dict[str, float] = {}  # monotonic
        self._seen: dict[str, Process] = {}
        self._exact: set[str] = set()  # keys whose idle time the console knows to a second

    def delta(self, workers: dict[str, Process], scanner: Scanner, at: float) -> Delta[Process]:
        """What to send so that the console knows these workers; `at`: now, monotonic."""
        told, current = self._told.items, {}
        for key, process in workers.items():
            before = told.get(key)
            rests = self._seen.get(key) is process
            if before is not None and rests and key in self._exact:
                current[key] = before
                continue
            now = process
            if rests and process.idle_for is not None:
                now = msgspec.structs.replace(process, idle_for=scanner.idle_for(process.ident.pid, at))
            elapsed = at - self._told_at.get(key, at)
            if before is not None and _same_but_age(now, before, elapsed):
                current[key] = before
                off = abs((before.idle_for or 0) + elapsed - (now.idle_for or 0))
                (self._exact.add if off < _EXACT else self._exact.discard)(key)
            else:
                current[key] = now
                self._told_at[key] = at
                self._exact.add(key)
        self._seen = workers
        self._told_at = {key: self._told_at[key] for key in current}
        self._exact &= current.keys()
        return self._told.delta(current)


def _same_but_age(now: Process, told: Process, elapsed: float) -> bool:
    """Nothing is different except that `elapsed` seconds have gone by: the console ages the idle time by itself."""
    state = told.state if now.state in "RS" and told.state in "RS" else now.state  # sampled at random: jitter
    if msgspec.structs.replace(now, idle_for=told.idle_for, state=state) != told:
        return False
    if now.idle_for is None or told.idle_for is None:
        return now.idle_for is told.idle_for
    aged = told.idle_for + elapsed
    if (aged >= WATCHED_LONG_ENOUGH) != (now.idle_for >= WATCHED_LONG_ENOUGH):
        return False  # a verdict hangs on this side or that
    return abs(aged - now.idle_for) < _IDLE_SLACK
