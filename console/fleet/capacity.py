"""Budgets as arithmetic: start limits, memory, instances, processes."""

from __future__ import annotations

from console.fleet.model import Host, Limits, Role, Unit, Value

RESTART_OVERHEAD = 0.2  # seconds systemd itself takes for one restart, measured


class StartLimit(Value, frozen=True, kw_only=True):
    """Whether a unit that fails again and again is ever stopped by its start limit.

    systemd refuses start number burst + 1 when it comes within the interval of the first one, so the limit works
    only if burst × (RestartSec + run time + overhead) < interval (systemd.unit(5), StartLimitIntervalSec=; checked
    against systemd 252).
    """

    reachable: bool
    enabled: bool  # False: interval or burst is 0, systemd never limits
    takes: float  # seconds of `burst` starts
    interval: float
    text: str  # the arithmetic, written out


def start_limit(unit: Unit, run_time: float = 0.0) -> StartLimit:
    """The start-limit arithmetic of a unit whose main process lives `run_time` seconds before it fails."""
    burst, interval = unit.start_limit_burst, unit.start_limit_interval
    enabled = burst > 0 and interval > 0
    takes = burst * (unit.restart_sec + run_time + RESTART_OVERHEAD)
    reachable = enabled and takes < interval
    lived = f" + {run_time:.1f} s of running" if run_time else ""
    text = (
        f"{burst} × ({unit.restart_sec:g} s RestartSec{lived} + {RESTART_OVERHEAD:g} s) = {round(takes, 1):g} s "
        f"{'<' if takes < interval else '≥'} {interval:g} s interval"
        if enabled
        else f"StartLimitBurst={burst}, StartLimitIntervalSec={interval:g}: the limit is off"
    )
    return StartLimit(reachable=reachable, enabled=enabled, takes=takes, interval=interval, text=text)


class MemoryBudget(Value, frozen=True, kw_only=True):
    """N × MemoryMax of every role plus the reserve, against the host's memory. Bytes."""

    needed: int
    total: int
    reserve: int
    parts: tuple[tuple[str, int, int], ...]  # role, instances, MemoryMax each
    unlimited: tuple[str, ...]  # roles with an instance that has no limit

    @property
    def fits(self) -> bool:
        return self.needed <= self.total


def memory_budget(
    roles: tuple[tuple[Role, tuple[Unit, ...]], ...], host: Host | None, limits: Limits
) -> MemoryBudget | None:
    """None when the host's memory is not known or no role has a unit."""
    if host is None or host.memory_total is None:
        return None
    parts: list[tuple[str, int, int]] = []
    unlimited: list[str] = []
    for role, units in roles:
        known = [unit for unit in units if unit.load == "loaded"]
        capped = [unit.memory_max for unit in known if unit.memory_max is not None]
        if len(capped) < len(known):
            unlimited.append(role.name)
        parts.extend((role.name, capped.count(size), size) for size in sorted(set(capped)))
    needed = sum(count * size for _, count, size in parts) + limits.memory_reserve
    return MemoryBudget(
        needed=needed,
        total=host.memory_total,
        reserve=limits.memory_reserve,
        parts=tuple(parts),
        unlimited=tuple(unlimited),
    )
