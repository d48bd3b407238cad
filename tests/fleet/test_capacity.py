"""Start-limit arithmetic against what systemd 252 really did, and the memory budget."""

from __future__ import annotations

import pytest

from console.fleet.capacity import memory_budget, start_limit
from console.fleet.model import Host, Limits
from tests.fleet.facts import BOOT, GIB, MAIL, MIB, unit


@pytest.mark.parametrize(
    ("restart_sec", "burst", "interval", "run_time", "hit"),
    [
        (30, 5, 300, 0, True),
        (30, 5, 300, 30, False),
        (3, 5, 30, 0, True),
        (3, 5, 30, 2, True),
        (3, 5, 30, 4, False),
        (6, 5, 30, 0, False),
        (1, 5, 10, 0, True),
        (2, 5, 10, 0, False),
        (5, 5, 10, 0, False),
        (0.1, 5, 10, 0, True),
    ],
)
def test_reachable_as_measured(restart_sec: float, burst: int, interval: float, run_time: float, hit: bool) -> None:
    found = start_limit(
        unit(restart_sec=float(restart_sec), start_limit_burst=burst, start_limit_interval=float(interval)), run_time
    )
    assert found.reachable is hit
    assert str(burst) in found.text


def test_a_limit_that_is_off_is_not_reachable() -> None:
    assert not start_limit(unit(start_limit_interval=0.0)).reachable
    assert "off" in start_limit(unit(start_limit_burst=0)).text


def test_memory_budget_is_instances_times_limit_plus_reserve() -> None:
    units = tuple(unit(f"mail-worker@{n}.service", memory_max=1 * GIB) for n in range(1, 4))
    host = Host(name="h", boot_id=BOOT, memory_total=4 * GIB)
    found = memory_budget(((MAIL, units),), host, Limits(memory_reserve=512 * MIB))
    assert found is not None
    assert found.needed == 3 * GIB + 512 * MIB
    assert found.fits
    tight = memory_budget(((MAIL, units),), host, Limits(memory_reserve=2 * GIB))
    assert tight is not None
    assert not tight.fits


def test_memory_budget_names_roles_without_a_limit() -> None:
    found = memory_budget(((MAIL, (unit(memory_max=None),)),), Host(name="h", boot_id=BOOT, memory_total=GIB), Limits())
    assert found is not None
    assert found.unlimited == ("mail",)


def test_memory_budget_unknown_host() -> None:
    assert memory_budget(((MAIL, (unit(),)),), None, Limits()) is None
