"""The sums of a budget."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from console.fleet.budget import Room, budget_of, room_of
from console.fleet.model import Account, Host, Limits, Role, Unit, Worker, WorkerState

MB = 1024 * 1024
ROLE = Role(name="mail", template="mail-worker@.service", instances=("1", "2"), budget=8)


def worker(
    number: int, state: WorkerState = "running", memory_max: int | None = 256 * MB, peak: int | None = None
) -> Worker:
    name = ROLE.unit_name(str(number))
    unit = Unit(name=name, memory_max=memory_max, tasks_now=4, user="deploy")
    return Worker(
        key=name,
        role="mail",
        name=f"@{number}",
        state=state,
        unit=unit,
        memory=100 * MB,
        memory_peak=peak,
    )


HOST = Host(
    name="wrk01",
    boot_id="b",
    memory_available=1000 * MB,
    accounts=(Account(user="deploy", uid=1500, processes=10, tasks=40, limit=50),),
)


def test_every_sum_is_written_out() -> None:
    limits = Limits(memory_reserve=200 * MB, account_processes=12)
    room = room_of(ROLE, [worker(1), worker(2), worker(3, "stopped")], HOST, limits, (90, 97), 2.0)
    fits = budget_of(ROLE, 4, room)
    assert [(need.kind, need.needed, need.there) for need in fits.needs] == [
        ("instances", 4, 8),
        ("memory", 4 * 256 * MB + 200 * MB, 1200 * MB),
        ("connections", 94, 97),
        ("processes", 48, 50),
        ("processes", 12, 12),
    ]
    assert [need.kind for need in fits.over] == ["memory"] and not fits.unknown
    assert fits.over[0].text == (
        "4 × 256M MemoryMax + 200M reserve = 1.2G, and 1.2G is there (available, and what the running ones have)"
    )
    assert {need.kind for need in budget_of(ROLE, 9, room).over} == {"instances", "memory", "connections", "processes"}


def test_without_a_limit_the_measured_peak_counts() -> None:
    workers = [worker(1, memory_max=None, peak=150 * MB), worker(2, memory_max=None, peak=180 * MB)]
    room = room_of(ROLE, workers, HOST, Limits(memory_reserve=0))
    assert (room.memory_each, room.measured) == (180 * MB, True)
    budget = budget_of(ROLE, 3, room)
    assert "3 × 180M measured peak" in budget.needs[1].text
    assert budget.unknown == ("how many connections the database has left",)


def test_what_is_not_known_is_said_and_not_taken_for_room() -> None:
    budget = budget_of(Role(name="mail"), 3, room_of(ROLE, [], None, Limits()))
    assert budget.needs == () and len(budget.unknown) == 2


@given(st.integers(0, 300), st.integers(0, 300))
def test_fewer_never_need_more(one: int, other: int) -> None:
    room = Room(
        running=3, memory_each=MB, memory_available=100 * MB, connections=10, connections_max=97, tasks=5,
        tasks_each=2, tasks_limit=100, connections_each=1.5,
    )  # fmt: skip
    few, many = sorted((one, other))
    pairs = zip(budget_of(ROLE, few, room).needs, budget_of(ROLE, many, room).needs, strict=True)
    assert all(less.needed <= more.needed and less.there == more.there for less, more in pairs)
