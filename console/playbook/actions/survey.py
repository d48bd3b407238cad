"""What a role is before anything is changed: who starts it, what is alive of it, what forbids running two at once."""

from __future__ import annotations

from collections import Counter

from console.fleet.model import RoleStatus, Worker
from console.playbook.actions.workers import legacy
from console.playbook.kinds import Action, Given, Inputs
from console.playbook.lines import one_entry
from console.playbook.model import Shown
from console.playbook.settings import Input
from console.playbook.standing import owner_name
from console.schedules.inventory import Listed, Run
from console.text import ago, mask, size

_EXCLUSIVE = {
    "fixed_port_blocks_parallel_canary": "it listens on a fixed port",
    "fleet_singleton": "there may be one of it only",
}
_RECYCLER = "recycler"
_GENERATIONS = 6  # runs of the launcher that are told one by one


async def _survey(given: Given, inputs: Inputs) -> Shown:
    role = inputs.text("role")
    inventory = await given.actions.schedules()
    chosen = one_entry(inventory, inputs.text("entry"))
    status = (await given.scene()).status(role)
    others = [each for each in inventory.entries if _starts_too(each, chosen, status)]
    outside = legacy(status.workers)
    exclusive = _exclusive(chosen)
    count = inputs.number("count") or _instances(chosen, status)
    facts = [
        f"{chosen.name} ({mask(chosen.entry.command)}) is {_kind(chosen)}",
        *_generations(chosen.alive.runs if chosen.alive is not None else (), given.now()),
        *_memory(status.workers),
        *(f"{other.name} starts it, too: {mask(other.entry.command)}" for other in others),
        _parallel(exclusive),
        f"{count} should run in units when this is over",
    ]
    facts += [
        f"not read, so that it may start it, too: {each.source.path or each.source.kind} ({each.problem.why})"
        for each in inventory.unread
    ]
    refused = [
        f"{other.name} would go on starting it: retire it first (worktop schedules disable {other.name}), or --set "
        "other_origins=true"
        for other in others
        if not inputs.truth("other_origins")
    ]
    if not chosen.entry.active:
        kind = chosen.entry.source.kind
        why = f"{kind} does not start it by itself" if kind in ("supervisord", "pm2") else "it is a comment for cron"
        refused.append(f"{chosen.name} is not active: {why}")
    return Shown(
        nothing="looked at" if not refused else "",
        facts=tuple(facts),
        refused=tuple(refused),
        evidence=tuple(mask(each.text) for each in chosen.explained.evidence),
        found={
            "instances": count,
            "exclusive": bool(exclusive),
            "legacy": len(outside),
        },
    )


def _starts_too(other: Listed, chosen: Listed, status: RoleStatus) -> bool:
    """Another active entry that starts the role, unless it is the role's own unit."""
    if other.name == chosen.name or not other.entry.active or other.ignored:
        return False
    if other.entry.source.kind in ("unit", "timer"):
        return False
    wanted = {role.name for role in chosen.explained.roles}
    same_words = {role.argv for role in chosen.explained.roles}
    return other.role == status.role.name or any(
        role.name in wanted and role.argv in same_words for role in other.explained.roles
    )


def _exclusive(chosen: Listed) -> tuple[str, ...]:
    """Why an old and a new worker must not run side by side."""
    explained = chosen.explained
    locks = {lock for role in explained.roles for lock in role.locks}
    return (
        *(text for code, text in _EXCLUSIVE.items() if code in explained.hazards),
        *(f"it takes the lock {lock}" for lock in sorted(locks)),
    )


def _parallel(exclusive: tuple[str, ...]) -> str:
    if exclusive:
        return f"old and new must not run side by side: {', '.join(exclusive)}; the old ones are stopped first"
    return "nothing was found that forbids old and new ones to run side by side"


def _kind(chosen: Listed) -> str:
    told = f"{chosen.explained.kind.replace('_', ' ')} ({chosen.explained.pattern.replace('_', ' ')})"
    again = ", and kills what runs before it starts it anew" if _RECYCLER in chosen.explained.hazards else ""
    return f"a {told}{again}"


def _instances(chosen: Listed, status: RoleStatus) -> int:
    """As many as one run of the launcher starts; what the configuration wants when that cannot be seen."""
    starts = sum(role.instances or 0 for role in chosen.explained.roles)
    return max(starts or len(status.role.instances), 1)


def _generations(runs: tuple[Run, ...], now: float) -> list[str]:
    """What each run of the launcher has left alive."""
    told = [
        f"{len(run.pids)} alive of its run {ago(now - run.started)} ago: pid {', '.join(map(str, run.pids))}"
        for run in runs[-_GENERATIONS:]
    ]
    if len(runs) > _GENERATIONS:
        told.insert(0, f"{sum(len(run.pids) for run in runs[:-_GENERATIONS])} alive of earlier runs")
    return told


def _memory(workers: tuple[Worker, ...]) -> list[str]:
    """Measured, by owner."""
    used: Counter[str] = Counter()
    number: Counter[str] = Counter()
    for worker in workers:
        if worker.memory is not None and worker.processes:
            used[owner_name(worker)] += worker.memory
            number[owner_name(worker)] += 1
    return [
        f"{owner}: {number[owner]} worker{'' if number[owner] == 1 else 's'} with {size(memory)} of memory"
        for owner, memory in used.most_common()
    ]


SURVEY = Action(
    "survey",
    "who starts the role, what is alive of it by generation, its memory, what forbids running old and new together",
    _survey,
    {
        "entry": Input(required=True, about="as worktop schedules names it"),
        "role": Input(required=True),
        "count": Input(kind="number", about="how many should run in the end; 0: as many as the launcher starts"),
        "other_origins": Input(kind="truth", about="go on although others start it, too"),
    },
    finds=("instances", "exclusive", "legacy"),
    changes=False,
)
