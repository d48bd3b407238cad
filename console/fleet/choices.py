"""Which instances of a role a scale starts or stops, and why those. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from console.fleet.model import Claim, Role, Value, Worker
from console.fleet.workers import BROKEN_STATES
from console.text import duration

_UP = frozenset({"running", "starting", "hung", "stopping", "restarting", "looping"})  # it runs, or will by itself
_HIGHEST = 9999  # instances are numbered up to here


class Choice(Value, frozen=True, kw_only=True):
    """One instance that is to be started or stopped."""

    unit: str
    why: str  # a clause
    jobs: tuple[str, ...] = ()  # ids of what it holds


def is_up(worker: Worker) -> bool:
    """The unit runs, or systemd is about to run it: it counts as one of N."""
    return worker.unit is not None and worker.state in _UP


def to_start(role: Role, workers: Sequence[Worker], count: int) -> tuple[tuple[Choice, ...], str]:
    """So many more instances: the wanted ones first, then those systemd knows, then new numbers. And, where there are
    not enough, why: instances that are named, not numbered, cannot be made up."""
    up = {worker.key for worker in workers if is_up(worker)}
    known = {worker.key: worker for worker in workers if worker.unit is not None and worker.state != "unknown"}
    chosen: list[Choice] = []
    for name in role.desired_units():
        if name not in up and name not in (choice.unit for choice in chosen):
            chosen.append(Choice(unit=name, why="it is one of the instances the role should have"))
    for name, worker in known.items():
        if name not in up and name not in (choice.unit for choice in chosen):
            chosen.append(Choice(unit=name, why=f"systemd has it already ({worker.state})"))
    taken = {*up, *known, *(choice.unit for choice in chosen)}
    numbered = all(instance.isdecimal() for instance in role.instances)
    number = 0
    while numbered and len(chosen) < count and number < _HIGHEST:
        number += 1
        name = role.unit_name(str(number))
        if name not in taken:
            chosen.append(Choice(unit=name, why="the next free number"))
    lacking = "" if len(chosen) >= count else f"{role.name} has no more instances than those named in worktop.toml"
    return tuple(chosen[:count]), lacking


def to_stop(workers: Sequence[Worker], claims: Sequence[Claim], count: int) -> tuple[Choice, ...]:
    """So many of those that run: first whoever does not work anyway, then whoever holds no job, then whoever has held
    its jobs for the shortest time; of equals the one with the highest number."""
    held_for = {claim.job.id: claim.job.running_for or 0.0 for claim in claims}

    def longest(worker: Worker) -> float:
        return max((held_for.get(job, 0.0) for job in worker.jobs), default=0.0)

    def order(place: int, worker: Worker) -> tuple[int, float, int]:
        kind = 0 if _does_not_work(worker) else 2 if worker.jobs else 1
        return kind, longest(worker) if worker.jobs else 0.0, -place

    up = [worker for worker in workers if is_up(worker)]
    ordered = [worker for _, worker in sorted(enumerate(up), key=lambda pair: order(*pair))]
    return tuple(_stopped(worker, longest(worker)) for worker in ordered[:count])


def _does_not_work(worker: Worker) -> bool:
    return worker.state in BROKEN_STATES or worker.state == "restarting"


def _stopped(worker: Worker, longest: float) -> Choice:
    if _does_not_work(worker):
        why = f"it does not work anyway: {worker.why or worker.state}"
    elif not worker.jobs:
        why = "it holds no job"
    else:
        jobs = f"job {worker.jobs[0]}" if len(worker.jobs) == 1 else f"{len(worker.jobs)} jobs"
        why = f"it has held {jobs} for {duration(longest)} only, shorter than the others"
    return Choice(unit=worker.key, why=why, jobs=worker.jobs)
