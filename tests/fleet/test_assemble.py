"""What is remembered between two fleets changes nothing about them, and rules wait for their facts."""

from __future__ import annotations

import msgspec

from console.fleet.assemble import Memory, assemble
from console.fleet.model import HostFacts, Limits, Reading
from tests.fleet.facts import (
    MAIL,
    NOW,
    codes,
    counts,
    due,
    facts,
    failed_unit,
    failing_reading,
    good,
    healthy,
    job,
    process,
    rows,
    unit,
)


def test_a_fleet_is_the_same_with_and_without_a_memory() -> None:
    memory = Memory()
    slow = facts(healthy(), (process(101), process(102)))
    steps = (
        slow,
        slow,
        facts(healthy(), (process(101, cpu=0.5), process(102))),
        facts((unit("mail-worker@1.service"), failed_unit("mail-worker@2.service")), (process(101),)),
        facts((unit("mail-worker@1.service", restarts=5, restarts_per_minute=9.0),), ()),
        msgspec.structs.replace(slow, units=Reading()),
        slow,
    )
    queues = (rows(counts()), rows(due(9, 4000.0)), rows(counts(), running=(job(),)), None)
    for number, host in enumerate(steps):
        for queue in queues:
            now = NOW + 40 * number
            wanted = assemble(host, queue, (MAIL,), Limits(), now)
            assert assemble(host, queue, (MAIL,), Limits(), now, memory) == wanted


def test_of_the_same_facts_nothing_is_made_again() -> None:
    memory, host = Memory(), facts(healthy(), (process(101),))
    first = assemble(host, rows(due(9, 4000.0)), (MAIL,), Limits(), NOW, memory)
    again = assemble(host, rows(due(9, 4000.0)), (MAIL,), Limits(), NOW + 2, memory)
    assert first.roles[0] is again.roles[0]


def found(host: HostFacts) -> list[str]:
    return codes(assemble(host, None, (MAIL,), Limits(), NOW))


def test_rules_wait_for_the_facts_they_judge() -> None:
    host = facts((failed_unit("mail-worker@1.service"),))
    assert "failed" in found(host) and "missing-instances" in found(host)
    states = msgspec.structs.replace(host, units_partial=True)
    assert found(states) == []
    unread = msgspec.structs.replace(facts((), ()), processes=Reading())
    assert "nothing-runs" not in found(unread)
    refused = failing_reading("no bus")
    assert "source-down" in found(msgspec.structs.replace(host, units=refused, units_partial=True))
    assert found(facts(healthy(), schedules=good(()))) == []
