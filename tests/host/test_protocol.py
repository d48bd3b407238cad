from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.errors import HostError, Problem
from console.fleet.model import Hello, Ident, PidState, Process, Role, Unit
from console.host import protocol
from console.host.deltas import MEMORY_STEP, Told, settle, settle_share
from console.host.facts import Keeper, natural
from console.host.protocol import Greeting, HoldersUpdate, Lines, ProcessesUpdate, UnitsUpdate, Watch

_VERSION = protocol.PROTOCOL
HELLO = Hello(protocol=_VERSION, version="0.1.0", host="wrk01", boot_id="b", user="root", uid=0, manager="system")


def _process(pid: int, idle: float | None = None) -> Process:
    return Process(ident=Ident("b", pid, 7), command=("x",), idle_for=idle)


@given(st.text(), st.lists(st.text(), max_size=3))
def test_messages_come_back_as_they_were(text: str, lines: list[str]) -> None:
    sent = UnitsUpdate(
        taken=1.5, full=True, items=(Unit(name=text, last_log=tuple(lines)),), problem=Problem(text, text)
    )
    line = protocol.encode(sent)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert protocol.decode(line.rstrip(b"\n")) == sent


def test_a_watch_comes_back_as_it_was() -> None:
    watch = Watch(roles=(Role(name="mail", template="mail@.service", instances=("1",), match=("a|b",)),), interval=0.5)
    assert protocol.decode_watch(protocol.decode_request(protocol.encode_request(3, "watch", watch))) == watch


@given(st.binary(max_size=300))
def test_whatever_is_no_message_is_a_host_error(data: bytes) -> None:
    for decode in (protocol.decode, protocol.decode_request):
        try:
            decode(data)
        except HostError as error:
            assert len(str(error)) < 500


def test_another_version_is_named_whatever_else_it_changed() -> None:
    for other in (protocol.PROTOCOL - 1, protocol.PROTOCOL + 1):
        with pytest.raises(HostError, match=f"speaks protocol {other}, this console speaks {protocol.PROTOCOL}; inst"):
            protocol.decode(b'{"type":"hello","hello":{"protocol":%d,"machine":{}},"more":1}' % other)
    assert protocol.decode(protocol.encode(Greeting(HELLO))) == Greeting(HELLO)


@given(st.lists(st.binary(max_size=20)), st.lists(st.integers(min_value=1, max_value=7)))
def test_lines_are_the_same_however_the_stream_is_cut(parts: list[bytes], cuts: list[int]) -> None:
    stream = b"\n".join(part.replace(b"\n", b"") for part in parts) + b"\n"
    wanted = [line for line in stream.split(b"\n") if line.strip()]
    lines, found, place = Lines(1000), [], 0
    for cut in cuts:
        found += lines.feed(stream[place : place + cut])
        place += cut
    found += lines.feed(stream[place:])
    assert found == wanted


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory() -> None:
    lines = Lines(100)
    lines.feed(b"x" * 90)
    with pytest.raises(HostError, match="longer than 100"):
        lines.feed(b"x" * 90)


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3)), max_size=6))
def test_deltas_add_up_to_the_whole(states: list[dict[str, int]]) -> None:
    told: Told[int] = Told()
    known: dict[str, int] = {}
    for number, state in enumerate(states):
        delta = told.delta(state)
        assert delta.full == (number == 0)
        if delta.full:
            known = dict(state)
            continue
        for key in delta.gone:
            del known[key]
        changed = [key for key, value in state.items() if known.get(key) != value]
        assert list(delta.items) == [state[key] for key in changed]
        known.update((key, state[key]) for key in changed)
        assert known == state


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_what_is_told_is_never_a_step_wrong(value: int, told: int) -> None:
    settled = settle(value, told, MEMORY_STEP)
    assert settled is not None and abs(settled - value) < MEMORY_STEP
    assert settle(None, told, MEMORY_STEP) is None


def test_a_share_that_falls_to_nothing_is_told_as_nothing() -> None:
    assert settle_share(0.004, 0.0) == 0.0
    assert settle_share(0.0, 0.01) == 0.0
    assert settle_share(0.126, 0.12) == 0.12
    assert settle_share(0.5, None) == 0.5


def test_a_failed_try_keeps_the_value_and_says_since_when() -> None:
    keeper = Keeper()
    keeper.greeted(HELLO, 0.1)
    keeper.update(UnitsUpdate(taken=1.0, full=True, items=(Unit(name="a@1.service"),)))
    keeper.update(UnitsUpdate(problem=Problem("list units", "no bus")))
    first = keeper.facts.units
    assert first.value == (Unit(name="a@1.service"),) and first.problem and first.failing_since
    keeper.update(UnitsUpdate(problem=Problem("list units", "still no bus")))
    assert keeper.facts.units.failing_since == first.failing_since
    keeper.update(UnitsUpdate(taken=2.0, gone=("a@1.service",), items=(Unit(name="a@2.service"),)))
    assert keeper.facts.units.value == (Unit(name="a@2.service"),)
    assert keeper.facts.units.problem is None and keeper.facts.units.failing_since is None


def test_partial_values_carry_their_problem() -> None:
    keeper = Keeper()
    refused = Problem("processes of other accounts", "not permitted")
    keeper.update(ProcessesUpdate(taken=5.0, full=True, items=(_process(4),), problem=refused))
    assert keeper.facts.processes.value and keeper.facts.processes.problem == refused


def test_idle_times_age_without_being_told() -> None:
    keeper = Keeper()
    keeper.update(ProcessesUpdate(taken=100.0, full=True, items=(_process(1, 3.0), _process(2))))
    keeper.update(ProcessesUpdate(taken=110.0, items=(_process(2, 0.0),)))
    keeper.update(ProcessesUpdate(taken=112.0))
    keeper.update(HoldersUpdate(taken=112.0, full=True, items=(PidState(pid=1), PidState(pid=2))))
    assert [each.idle_for for each in keeper.facts.processes.value or ()] == [15.0, 2.0]
    keeper.update(ProcessesUpdate(taken=114.0))
    assert [each.idle_for for each in keeper.facts.processes.value or ()] == [17.0, 4.0]


def test_what_did_not_change_is_not_made_anew() -> None:
    keeper = Keeper()
    keeper.update(ProcessesUpdate(taken=100.0, full=True, items=(_process(1, 3.0), _process(2))))
    keeper.update(UnitsUpdate(taken=100.0, full=True, items=(Unit(name="a@2.service"), Unit(name="a@10.service"))))
    units, processes = keeper.facts.units.value, keeper.facts.processes.value
    keeper.update(ProcessesUpdate(taken=109.0))
    keeper.update(UnitsUpdate(taken=112.0))
    assert keeper.facts.units.value is units and keeper.facts.processes.value is processes
    keeper.update(ProcessesUpdate(taken=112.0))
    aged = keeper.facts.processes.value or ()
    assert [each.idle_for for each in aged] == [13.0, None]  # of others than holders of jobs: in steps
    keeper.update(ProcessesUpdate(taken=119.0))
    assert keeper.facts.processes.value is aged
    keeper.update(UnitsUpdate(taken=113.0, items=(Unit(name="a@2.service", sub="running"),)))
    assert [unit.sub for unit in keeper.facts.units.value or ()] == ["running", "dead"]


def test_only_states_are_seen_at_once() -> None:
    keeper = Keeper()
    worker = Unit(name="a@1.service", active="active", sub="running", main_pid=5)
    again = Unit(name="a@1.service", active="activating", sub="auto-restart", restarts=1)
    assert keeper.update(UnitsUpdate(taken=1.0, full=True, items=(worker,), partial=True))
    assert keeper.update(UnitsUpdate(taken=1.1, full=True, items=(worker,)))
    said = msgspec.structs.replace(worker, status_text="idle", memory_now=70)
    assert not keeper.update(UnitsUpdate(taken=2.0, items=(said,)))
    assert keeper.update(UnitsUpdate(taken=3.0, items=(again,)))
    loops = msgspec.structs.replace(worker, restarts=2, restarts_per_minute=20.0)
    assert keeper.update(UnitsUpdate(taken=4.0, items=(loops,)))
    assert not keeper.update(UnitsUpdate(taken=5.0, items=(msgspec.structs.replace(again, restarts_per_minute=20.0),)))
    failed = Unit(name="a@1.service", active="failed", sub="failed", restarts_per_minute=20.0)
    assert keeper.update(UnitsUpdate(taken=6.0, items=(failed,)))
    assert keeper.update(UnitsUpdate(problem=Problem("list units", "no bus")))
    assert not keeper.update(UnitsUpdate(problem=Problem("list units", "no bus")))


def test_a_dead_agent_is_told_of_by_every_reading() -> None:
    keeper = Keeper()
    assert not keeper.complete
    keeper.greeted(HELLO, 0.1)
    keeper.failed(Problem("host agent", "was killed by SIGKILL"))
    facts = keeper.facts
    for reading in (facts.agent, facts.units, facts.processes, facts.host, facts.schedules, facts.holders):
        assert reading.problem and reading.failing_since
    assert facts.agent.value == HELLO


def test_instances_sort_as_people_count() -> None:
    names = ["w@10.service", "w@2.service", "w@eu.service", "a@1.service"]
    assert sorted(names, key=natural) == ["a@1.service", "w@2.service", "w@10.service", "w@eu.service"]


@given(st.lists(st.text()))
def test_every_name_can_be_sorted(names: list[str]) -> None:
    sorted(names, key=natural)


def test_values_survive_infinity_free_json() -> None:
    unit = Unit(name="x", start_limit_interval=18446744073709.551615)
    assert msgspec.json.decode(msgspec.json.encode(unit), type=Unit) == unit
