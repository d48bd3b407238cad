"""Which instances a scale starts and stops."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from console.fleet.choices import is_up, to_start, to_stop
from console.fleet.model import Claim, Job, Role, Unit, Worker, WorkerState

ROLE = Role(name="mail", template="mail-worker@.service", instances=("1", "2", "3"))
STATES: tuple[WorkerState, ...] = ("running", "looping", "start-limit", "failed", "stopped", "missing", "restarting")


def worker(number: int, state: WorkerState = "running", jobs: Sequence[str] = ()) -> Worker:
    name = ROLE.unit_name(str(number))
    return Worker(key=name, role="mail", name=f"@{number}", state=state, unit=Unit(name=name), jobs=tuple(jobs))


def claim(job: str, seconds: float) -> Claim:
    return Claim(job=Job(id=job, state="running", running_for=seconds), role="mail", verdict="ALIVE")


def units(numbers: Sequence[int]) -> list[str]:
    return [ROLE.unit_name(str(number)) for number in numbers]


def test_up_starts_the_wanted_ones_first_then_known_ones_then_new_numbers() -> None:
    workers = [worker(1), worker(2, "stopped"), worker(3, "missing"), worker(7, "failed")]
    chosen, lacking = to_start(ROLE, workers, 5)
    assert [choice.unit for choice in chosen] == units([2, 3, 7, 4, 5]) and not lacking
    assert [choice.why for choice in chosen[1:4]] == [
        "it is one of the instances the role should have",
        "systemd has it already (failed)",
        "the next free number",
    ]


def test_named_instances_cannot_be_made_up() -> None:
    role = Role(name="mail", template="mail-worker@.service", instances=("eu", "us"))
    chosen, lacking = to_start(role, [], 3)
    assert [choice.unit for choice in chosen] == ["mail-worker@eu.service", "mail-worker@us.service"]
    assert lacking == "mail has no more instances than those named in worktop.toml"


def test_down_prefers_the_broken_then_the_idle_then_the_shortest_held() -> None:
    workers = [worker(1, jobs=["a"]), worker(2), worker(3, jobs=["b", "c"]), worker(4, "looping"), worker(5)]
    claims = [claim("a", 60), claim("b", 2), claim("c", 5)]
    chosen = to_stop(workers, claims, 5)
    assert [choice.unit for choice in chosen] == units([4, 5, 2, 3, 1])
    assert chosen[1].why == "it holds no job"
    assert chosen[3].why == "it has held 2 jobs for 0:05 only, shorter than the others" and chosen[3].jobs == ("b", "c")
    assert to_stop([worker(1, "stopped")], [], 3) == ()


@given(
    states=st.lists(st.sampled_from(STATES), max_size=12),
    holds=st.lists(st.floats(0, 1000), max_size=12),
    count=st.integers(0, 15),
)
def test_a_choice_is_never_made_twice_and_never_of_the_wrong_kind(
    states: list[WorkerState], holds: list[float], count: int
) -> None:
    workers = [worker(n, state, [str(n)] if n <= len(holds) else []) for n, state in enumerate(states, 1)]
    claims = [claim(str(n), seconds) for n, seconds in enumerate(holds, 1)]
    up = {one.key for one in workers if is_up(one)}
    started, lacking = to_start(ROLE, workers, count)
    assert len({choice.unit for choice in started}) == len(started) == count and not lacking
    assert not up & {choice.unit for choice in started}
    stopped = [choice.unit for choice in to_stop(workers, claims, count)]
    assert len(set(stopped)) == len(stopped) == min(count, len(up)) and set(stopped) <= up
    holding = {one.key for one in workers if one.jobs and one.state == "running"}
    idle = up - holding
    if set(stopped) & holding:
        assert idle & {one.key for one in workers if one.state == "running"} <= set(stopped)
