"""The words of evidence: what was not seen, and how a unit ended (systemd's Result= and the main process's exit)."""

from __future__ import annotations

from console.fleet.model import Process, Unit
from console.fleet.workers import ending, memory_killed
from console.text import ago

UNDECIDED = "its CPU use has not been watched long enough to tell slow from hung"
NOT_LOOKED_UP = "its pid has not been looked up yet"
NOBODY = "the row does not say who holds it"

# Result= of systemd.service(5) where the way the main process ended does not say it
_RESULTS = {
    "timeout": "did not start or stop in time and was killed",
    "watchdog": "was killed because its watchdog had heard nothing",
    "protocol": "did not keep to the protocol of its Type=",
    "resources": "could not be started: systemd lacked a resource",
    "start-limit-hit": "is not started any more: its start limit is reached",
    "exec-condition": "was not started: its ExecCondition= said no",
}


def unit_reason(unit: Unit, now: float | None = None) -> str:
    """One sentence on a unit that does not run as it did: "x.service was killed by its memory limit 96 MiB 31 min ago".

    `now`: epoch seconds; without it the time is left out.
    """
    since = f", {ago(now - unit.exited)} ago" if now is not None and unit.exited else ""
    if unit.active == "failed" or unit.sub == "auto-restart":
        again = "; systemd starts it again" if unit.sub == "auto-restart" else ""
        words = _RESULTS.get(unit.result)
        if words is not None and not memory_killed(unit):
            return f"{unit.name} {words}{since}{again}"
        how = ending(unit)
        verb = "was" if how.startswith("killed") else "has" if how.startswith("dumped") else "ended with"
        return f"{unit.name} {verb} {how}{since}{again}"
    if unit.active == "inactive":
        stopped = f", {ago(now - unit.since)} ago" if now is not None and unit.since else ""
        return f"{unit.name} was stopped{stopped}" if unit.started or unit.exited else f"{unit.name} does not run"
    return f"{unit.name} is {unit.active} ({unit.sub})"


def key_of(process: Process) -> str:
    """The key of the worker a process belongs to: its unit, or "pid:start"."""
    return process.unit or f"{process.ident.pid}:{process.ident.start}"
