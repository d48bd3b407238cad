"""Limits: settings as text, the drop-in, and what is proposed of what was measured."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.errors import ConfigError
from console.fleet import limits
from console.fleet.capacity import start_limit
from console.fleet.model import Host, Limits, Unit

M, G = 2**20, 2**30
HOST = Host(name="wrk01", boot_id="b", memory_total=4 * G)
RESERVE = Limits(memory_reserve=512 * M)


def unit(number: int = 1, **changes: object) -> Unit:
    quiet = Unit(
        name=f"thumbs@{number}.service", active="active", sub="running", memory_max=256 * M, memory_peak=40 * M,
        restart="on-failure", restart_sec=0.5,
    )  # fmt: skip
    return msgspec.structs.replace(quiet, **changes)


def killed(number: int, limit: int) -> Unit:
    return unit(number, active="failed", sub="failed", result="oom-kill", memory_max=limit, memory_peak=limit)


# --- settings as text -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        *({"MemoryMax": value} for value in ("512M", "1.5G", "80%", "infinity", "536870912", "")),
        *({"RestartSec": value} for value in ("3", "500ms", "1min 30s", "0")),
        *({"TimeoutStopSec": value} for value in ("90s", "infinity", "2h")),
        {"StartLimitBurst": "5", "StartLimitIntervalSec": "5min"},
    ],
)
def test_what_systemd_reads_is_taken(settings: dict[str, str]) -> None:
    assert limits.checked(settings) == settings


@pytest.mark.parametrize(
    "settings",
    [
        *({"MemoryMax": value} for value in ("lots", "-1", "0", "5X", "1G\nExecStart=/bin/sh", "1G # x", "101.555%")),
        *({"RestartSec": value} for value in ("infinity", "5 minutes ago", "1min\n", "-3", "s")),
        *({"StartLimitBurst": value} for value in ("five", "5.5", "-1")),
        {"ExecStart": "/bin/sh"},
        {"Memory Max": "1G"},
    ],
)
def test_nothing_else_is(settings: dict[str, str]) -> None:
    if settings.get("RestartSec") == "1min\n":  # blanks around a value are no part of it
        assert limits.checked(settings) == {"RestartSec": "1min"}
        return
    with pytest.raises(ConfigError, match="limits: "):
        limits.checked(settings)


def test_names_are_taken_in_any_case() -> None:
    assert limits.checked({" memorymax ": "1G"}) == {"MemoryMax": "1G"}


@given(st.dictionaries(st.sampled_from([*limits.SECTIONS, "ExecStart"]), st.text(max_size=40)))
def test_no_value_brings_a_line_of_its_own(settings: dict[str, str]) -> None:
    try:
        taken = limits.checked(settings)
    except ConfigError:
        return
    content = limits.drop_in(None, taken) or b""
    lines = [line for line in content.decode().splitlines() if line and not line.startswith(("#", "["))]
    assert sorted(lines) == sorted(f"{name}={value}" for name, value in taken.items() if value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 90.0), ("1min 30s", 90.0), ("1min30s", 90.0), ("500ms", 0.5), ("2h", 7200.0), ("1d", 86400.0)],
)
def test_time_spans(text: str, expected: float) -> None:
    assert limits.seconds(text) == pytest.approx(expected)


def test_no_time_spans() -> None:
    assert limits.seconds("infinity") == math.inf
    assert [limits.seconds(text) for text in ("", "x", "5 parsecs", "[not set]")] == [None] * 4


# --- the drop-in ------------------------------------------------------------------------------------------------


def test_settings_are_put_on_top_of_those_there_and_taken_back() -> None:
    first = limits.drop_in(None, {"MemoryMax": "512M", "StartLimitBurst": "5"})
    assert first is not None
    assert first.decode().split("\n")[1:] == ["", "[Unit]", "StartLimitBurst=5", "", "[Service]", "MemoryMax=512M", ""]
    second = limits.drop_in(first, {"MemoryMax": "1G", "RestartSec": "5s"})
    assert limits.settings_of(second) == {"StartLimitBurst": "5", "MemoryMax": "1G", "RestartSec": "5s"}
    third = limits.drop_in(second, {"MemoryMax": "", "RestartSec": "", "StartLimitBurst": ""})
    assert third is None, "an empty drop-in is no drop-in"


def test_lines_of_others_are_seen() -> None:
    own = limits.drop_in(None, {"MemoryMax": "1G"})
    assert limits.foreign_lines(own) == ()
    assert limits.foreign_lines((own or b"") + b"Environment=A=1\n") == ("Environment=A=1",)
    assert limits.foreign_lines(None) == ()


# --- proposals --------------------------------------------------------------------------------------------------


def proposed(*units: Unit, others: int = 0, host: Host | None = HOST, stop: str = "1min 30s") -> dict[str, str]:
    found = limits.propose(units, others, host, RESERVE, stop)
    return {proposal.name: proposal.value for proposal in found}


def test_units_that_fit_get_no_proposal() -> None:
    assert proposed(unit(1), unit(2)) == {}
    assert proposed() == {}


def test_a_unit_killed_by_the_limit_of_all_gets_twice_as_much() -> None:
    assert proposed(unit(1), killed(2, 256 * M)) == {"MemoryMax": "512M"}


def test_a_unit_killed_by_a_limit_of_its_own_gets_that_of_the_others() -> None:
    units = (unit(1), killed(3, 96 * M))
    (proposal,) = limits.propose(units, 0, HOST, RESERVE)
    assert (proposal.name, proposal.value) == ("MemoryMax", "256M")
    assert [limits.needed_by(each, proposal) for each in units] == [False, True]
    assert "1 of 2 was killed by MemoryMax=96M" in proposal.why and "others have 256M" in proposal.why


def test_a_peak_near_the_limit_and_none_at_all() -> None:
    assert proposed(unit(1, memory_peak=240 * M)) == {"MemoryMax": "368M"}
    assert proposed(unit(1, memory_max=None, memory_peak=100 * M)) == {"MemoryMax": "160M"}
    assert proposed(unit(1, memory_max=None, memory_peak=None)) == {}


def test_the_room_of_the_host_bounds_what_is_proposed() -> None:
    units = [killed(number, 256 * M) for number in range(1, 5)]
    assert proposed(*units) == {"MemoryMax": "512M"}
    assert proposed(*units, others=2 * G) == {"MemoryMax": "384M"}
    assert proposed(*units, others=4 * G) == {"MemoryMax": "272M"}, "less than what it was killed at helps nobody"
    assert proposed(*units, others=4 * G, host=None) == {"MemoryMax": "512M"}


@pytest.mark.parametrize(
    ("restart_sec", "burst", "interval", "reaches"),
    [
        (30.0, 5, 300.0, True),
        (3.0, 5, 30.0, True),
        (6.0, 5, 30.0, False),
        (1.0, 5, 10.0, True),
        (2.0, 5, 10.0, False),
        (5.0, 5, 10.0, False),
        (3.0, 5, 10.0, False),
    ],
)
def test_a_start_limit_that_is_never_reached_is_widened(
    restart_sec: float, burst: int, interval: float, reaches: bool
) -> None:
    worker = unit(restart_sec=restart_sec, start_limit_burst=burst, start_limit_interval=interval)
    found = limits.propose((worker,), 0, HOST, RESERVE)
    assert bool(found) is not reaches
    if found:
        (proposal,) = found
        mended = limits.changed(worker, {proposal.name: proposal.value}, None)
        assert start_limit(mended).reachable
        assert not limits.needed_by(mended, proposal)


@given(st.floats(0.1, 600), st.integers(1, 50), st.floats(0.5, 59))
def test_whatever_is_proposed_is_reached(restart_sec: float, burst: int, lived: float) -> None:
    worker = unit(
        restart_sec=restart_sec, start_limit_burst=burst, start_limit_interval=1.0, active="failed",
        started=1000.0, exited=1000.0 + lived,
    )  # fmt: skip
    for proposal in limits.propose((worker,), 0, HOST, RESERVE):
        mended = limits.changed(worker, {proposal.name: proposal.value}, None)
        assert start_limit(mended, lived).reachable


def test_a_start_limit_that_is_off_on_purpose_stays_off_and_restart_no_has_none() -> None:
    assert proposed(unit(start_limit_burst=0)) == {}
    assert proposed(unit(restart="no", start_limit_interval=1.0)) == {}


def test_a_stop_that_never_ends_gets_an_end() -> None:
    assert proposed(unit(restart_sec=0.1), stop="infinity") == {"TimeoutStopSec": "90s"}


def test_what_the_other_roles_may_take() -> None:
    from console.fleet.model import Role

    role = Role(name="mail", template="mail@.service")
    units = (unit(1), unit(2, memory_max=None, memory_peak=70 * M), unit(3, load="not-found"))
    assert limits.taken_by([(role, units)]) == (256 + 70) * M
    assert limits.budget(role, units, (), None, RESERVE) is None
    budget = limits.budget(role, (unit(1), unit(2)), (), HOST, RESERVE)
    assert budget is not None and budget.needed == 1024 * M
