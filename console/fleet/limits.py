"""Limits of a role's units: which can be set, what is proposed from what was measured, and the drop-in that sets them.

The drop-in is 50-worktop.conf of the template: systemd reads it after the vendor's file, which stays as it is. Drop-ins
are read in the order of their names, whatever folder they are in, so an instance with one that is read later gets one
of worktop that is read after that.

What systemd does with a setting: the kernel holds MemoryMax= and MemoryHigh= for running workers from the reload on;
RestartSec=, StartLimit…= and TimeoutStopSec= are looked at when a worker ends, so they hold from the reload on as well.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from console.errors import ConfigError
from console.fleet.capacity import MemoryBudget, memory_budget, start_limit
from console.fleet.model import Host, Limits, Role, Unit, Value
from console.fleet.workers import NEAR_LIMIT, memory_killed, run_time
from console.text import size

DROP_IN = "50-worktop.conf"  # of the template
OWN_DROP_IN = "zz-worktop.conf"  # of an instance that has drop-ins of its own: read after them
SECTIONS = {
    "StartLimitIntervalSec": "Unit",
    "StartLimitBurst": "Unit",
    "MemoryHigh": "Service",
    "MemoryMax": "Service",
    "RestartSec": "Service",
    "TimeoutStopSec": "Service",
}
_HEAD = "# Written by worktop limits. The unit's own file is not changed; without this file everything is as it says."
_MEMORY = re.compile(r"(?:(\d{1,15}(?:\.\d{1,3})?)([KMGT]?)|(\d{1,3}(?:\.\d{1,2})?)%|infinity)\Z")
_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) *(us|usec|ms|msec|s|sec|m|min|h|hr|d|days?|w|weeks?|)(?= |\d|\Z) *")
_SPANS = {"us": 1e-6, "ms": 1e-3, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_FACTOR = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SETTING = re.compile(r"\s*([A-Za-z]+)\s*=\s*(.*?)\s*\Z")

STEP = 16 * 2**20  # bytes: proposals are rounded up to this
ROOM = 1.5  # a limit is proposed at this many times the measured peak
LEAST_ROOM = 1.1  # and never below this many
CUT_OFF = 2.0  # of a peak that ended at the limit nobody knows the rest: the limit is multiplied by this
_FAILS_FAST = 60.0  # seconds: a run that failed within this counts as one of a crash loop
_STOP_SECONDS = 90.0  # DefaultTimeoutStopSec=


class Proposal(Value, frozen=True, kw_only=True):
    """One setting, and the measurement or arithmetic it comes from."""

    name: str
    value: str
    why: str  # a sentence; raw


# --- settings as text ------------------------------------------------------------------------------------------------


def checked(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings as they are written, "" where a setting is taken back. ConfigError names the wrong one.

    Nothing but one word or time span gets through, so that a value cannot bring a line of its own.
    """
    known = {name.lower(): name for name in SECTIONS}
    found: dict[str, str] = {}
    for given, text in settings.items():
        name, value = known.get(given.strip().lower()), text.strip()
        if name is None:
            raise ConfigError(f"limits: {given[:40]}", "it is no limit worktop sets", f"one of {', '.join(SECTIONS)}")
        if value and not _valid(name, value):
            kind = (
                "a number" if name == "StartLimitBurst" else "an amount such as 512M" if _of_memory(name) else "a time"
            )
            raise ConfigError(f"limits: {name}", f"found {value[:60]!r}", f"expected {kind} as systemd reads it")
        found[name] = value
    return found


def _of_memory(name: str) -> bool:
    return name.startswith("Memory")


def _valid(name: str, value: str) -> bool:
    if name == "StartLimitBurst":
        return re.fullmatch(r"\d{1,6}", value) is not None
    if _of_memory(name):
        return _MEMORY.match(value) is not None and value != "0"
    if value == "infinity":
        return name == "TimeoutStopSec"
    return seconds(value) is not None


def seconds(text: str) -> float | None:
    """A time span as systemd writes it ("1min 30s", "90"), in seconds; infinite for "infinity"; None: it is none."""
    if text == "infinity":
        return math.inf
    rest, total = text.strip(), 0.0
    while rest:
        found = _SPAN.match(rest)
        if found is None:
            return None
        unit = found[2]
        short = unit if unit in _SPANS else "ms" if unit == "msec" else "us" if unit == "usec" else unit[:1]
        total += float(found[1]) * _SPANS[short]
        rest = rest[found.end() :]
    return total if text.strip() else None


def amount(text: str, total: int | None) -> int | None:
    """MemoryMax= in bytes; None: no limit, or a share of a memory whose `total` is not known."""
    found = _MEMORY.match(text)
    if found is None or text == "infinity":
        return None
    if found[3] is not None:
        return int(float(found[3]) / 100 * total) if total is not None else None
    return int(float(found[1]) * _FACTOR[found[2]])


# --- the drop-in -----------------------------------------------------------------------------------------------------


def drop_in(before: bytes | None, settings: Mapping[str, str]) -> bytes | None:
    """The drop-in with these settings on top of those it has; None when none is left."""
    kept = settings_of(before)
    for name, value in settings.items():
        kept.pop(name, None)
        if value:
            kept[name] = value
    if not kept:
        return None
    lines = [_HEAD]
    for section in dict.fromkeys(SECTIONS.values()):
        own = [f"{name}={kept[name]}" for name, of in SECTIONS.items() if of == section and name in kept]
        if own:
            lines += ["", f"[{section}]", *own]
    return ("\n".join(lines) + "\n").encode()


def settings_of(content: bytes | None) -> dict[str, str]:
    """The settings of a drop-in that worktop wrote."""
    found: dict[str, str] = {}
    for line in (content or b"").decode("utf-8", "replace").split("\n"):
        setting = _SETTING.match(line)
        if setting and setting[1] in SECTIONS:
            found[setting[1]] = setting[2]
    return found


def foreign_lines(content: bytes | None) -> tuple[str, ...]:
    """Lines of the drop-in that worktop did not write: somebody else edits it too."""
    own = {f"[{section}]" for section in SECTIONS.values()} | {"", _HEAD}
    lines = (line.strip() for line in (content or b"").decode("utf-8", "replace").split("\n"))
    return tuple(line for line in lines if line not in own and line.partition("=")[0] not in SECTIONS)


def changed(unit: Unit, settings: Mapping[str, str], total: int | None) -> Unit:
    """The unit as it will be with these settings."""
    unit_now = unit
    for name, value in settings.items():
        if not value:
            continue
        if name == "MemoryMax":
            unit_now = msgspec.structs.replace(unit_now, memory_max=amount(value, total))
        elif name == "StartLimitBurst":
            unit_now = msgspec.structs.replace(unit_now, start_limit_burst=int(value))
        elif (span := seconds(value)) is not None and name == "RestartSec":
            unit_now = msgspec.structs.replace(unit_now, restart_sec=span)
        elif span is not None and name == "StartLimitIntervalSec":
            unit_now = msgspec.structs.replace(unit_now, start_limit_interval=span)
    return unit_now


# --- proposals -------------------------------------------------------------------------------------------------------


def propose(
    units: Sequence[Unit], others: int, host: Host | None, limits: Limits, stop_timeout: str = ""
) -> tuple[Proposal, ...]:
    """What the settings should be, of what is measured on the units of a role; () when they fit.

    `others`: bytes the other roles may take; `stop_timeout`: TimeoutStopUSec as systemd shows it.
    """
    found = (_memory(units, others, host, limits), _start_limit(units), _stop(stop_timeout))
    return tuple(proposal for proposal in found if proposal is not None)


def needed_by(unit: Unit, proposal: Proposal) -> bool:
    """Whether the unit itself lacks what is proposed for its role."""
    if proposal.name == "MemoryMax":
        value = amount(proposal.value, None)
        return value is not None and (unit.memory_max is None or unit.memory_max < value)
    if proposal.name == "StartLimitIntervalSec":
        return unit.restart not in ("no", "") and not start_limit(unit, _lived(unit)).reachable
    return True


def _memory(units: Sequence[Unit], others: int, host: Host | None, limits: Limits) -> Proposal | None:
    """A limit that nobody was killed by and nobody is near to; for all units the same."""
    highest = max((unit.memory_max for unit in units if unit.memory_max is not None), default=None)
    killed = [unit for unit in units if memory_killed(unit) and unit.memory_max is not None]
    near = [unit for unit in units if unit.memory_max is not None and _peak(unit) >= NEAR_LIMIT * unit.memory_max]
    peak = max((_peak(unit) for unit in units), default=0)
    if killed and highest is not None:
        own = max(unit.memory_max or 0 for unit in killed)
        wanted, least = CUT_OFF * own, own + STEP
        why = f"{len(killed)} of {len(units)} was killed by MemoryMax={size(own)}, and what it needed is not known"
        if own < highest:
            wanted, least = max(wanted, highest), highest
            why += f"; others have {size(highest)}"
    elif near and highest is not None:
        wanted, least = ROOM * peak, int(LEAST_ROOM * peak)
        why = f"the highest peak of {len(units)}, {size(peak)}, is near MemoryMax={size(near[0].memory_max)}"
    elif peak and highest is None:
        wanted, least = ROOM * peak, int(LEAST_ROOM * peak)
        why = f"there is no limit; the highest peak of {len(units)} is {size(peak)}"
    else:
        return None
    value = _rounded(wanted)
    room = _room(len(units), others, host, limits)
    if room is not None and value > room:
        value = max(room // STEP * STEP, _rounded(least))
        why += f"; the host has room for {size(max(0, room))} each"
    return Proposal(name="MemoryMax", value=f"{value // 2**20}M", why=why)


def _peak(unit: Unit) -> int:
    return max(unit.memory_peak or 0, unit.memory_now or 0)


def _rounded(amount: float) -> int:
    return max(STEP, math.ceil(amount / STEP) * STEP)


def _room(count: int, others: int, host: Host | None, limits: Limits) -> int | None:
    """Bytes that each of `count` units may have; None when the host's memory is not known."""
    if host is None or host.memory_total is None or not count:
        return None
    return (host.memory_total - limits.memory_reserve - others) // count


def _start_limit(units: Sequence[Unit]) -> Proposal | None:
    """StartLimitIntervalSec= for a limit that stops a crash loop, where the one there is cannot."""
    restarting = [unit for unit in units if unit.restart not in ("no", "")]
    if not restarting:
        return None
    worst = [start_limit(unit, _lived(unit)) for unit in restarting if unit.start_limit_burst]
    limit = max((each for each in worst if not each.reachable), key=lambda each: each.takes, default=None)
    if limit is None:
        return None
    interval = _nice(ROOM * limit.takes)
    return Proposal(
        name="StartLimitIntervalSec",
        value=f"{interval}s",
        why=f"the start limit is never reached, so a crash loop never ends: {limit.text}",
    )


def _lived(unit: Unit) -> float:
    """How long the unit ran before it failed, when that was soon; seconds."""
    lived = run_time(unit)
    failed = unit.active == "failed" or unit.sub == "auto-restart"
    return lived if failed and lived is not None and lived < _FAILS_FAST else 0.0


def _nice(span: float) -> int:
    """Seconds rounded up to what a person would write."""
    step = 5 if span <= 60 else 30 if span <= 600 else 300
    return math.ceil(span / step) * step


def _stop(shown: str) -> Proposal | None:
    if seconds(shown) != math.inf:
        return None
    return Proposal(
        name="TimeoutStopSec", value=f"{_STOP_SECONDS:g}s", why="a stop waits for a hung worker for ever: infinity"
    )


# --- what it comes to ------------------------------------------------------------------------------------------------


def budget(
    role: Role,
    units: Sequence[Unit],
    others: Iterable[tuple[Role, tuple[Unit, ...]]],
    host: Host | None,
    limits: Limits,
) -> MemoryBudget | None:
    """The memory of all roles when this one has these units; None when the host's memory is not known."""
    return memory_budget(((role, tuple(units)), *others), host, limits)


def taken_by(others: Iterable[tuple[Role, tuple[Unit, ...]]]) -> int:
    """Bytes the units of these roles may take: their limit, or where they have none their peak."""
    return sum(
        unit.memory_max if unit.memory_max is not None else _peak(unit)
        for _, units in others
        for unit in units
        if unit.load == "loaded"
    )
