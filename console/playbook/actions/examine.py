"""What is wrong with the workers of a role, and with the jobs they hold: looked at, nothing changed."""

from __future__ import annotations

import asyncio
import contextlib
import time

from console.actions.scene import Scene, room
from console.errors import HostError
from console.fleet.choices import is_up
from console.fleet.diagnosis.diagnose import diagnose
from console.fleet.diagnosis.model import Looked
from console.fleet.model import RoleStatus, Worker
from console.fleet.verdicts import WATCHED_LONG_ENOUGH, undecided
from console.playbook.kinds import Action, Given, Inputs
from console.playbook.model import Shown
from console.playbook.settings import Input
from console.text import size

_WATCHED = WATCHED_LONG_ENOUGH + 5.0  # seconds until a holder must have shown whether it works
_MOST = 8  # workers that are examined one by one, jobs that are named


async def _examine(given: Given, inputs: Inputs) -> Shown:
    role, states = inputs.text("role"), inputs.texts("states")
    scene = await _decided(given, role)
    status = scene.status(role)
    chosen = [worker for worker in status.workers if not states or worker.state in states]
    up = sum(is_up(worker) for worker in status.workers)
    facts = [f"{up} of {role} run in units"]
    if states:
        facts.append(f"{len(chosen)} of {role} are {' or '.join(states)}")
    for worker in chosen[:_MOST]:
        facts += await _diagnosed(given, scene, status, worker)
    facts += [
        f"job {claim.job.id} is held by a worker that is {claim.verdict}: {'; '.join(claim.evidence)}"
        for claim in scene.fleet.claims
        if claim.role == role and claim.stuck
    ][:_MOST]
    units = tuple(worker.key for worker in chosen if worker.unit is not None)
    if states and not chosen:
        return Shown(refused=(f"no worker of {role} is {' or '.join(states)}",), facts=tuple(facts))
    return Shown(
        nothing="looked at",
        facts=tuple(facts),
        found={"units": units, "running": up, "one_more": up + 1, "examined": given.now()},
    )


async def _decided(given: Given, role: str) -> Scene:
    """The fleet when it is known whether silent holders are slow or hung: they are watched for that."""
    until = time.monotonic() + _WATCHED
    while True:
        scene = await given.scene()
        open_still = any(undecided(claim) for claim in scene.fleet.claims if claim.role == role)
        if not open_still or time.monotonic() >= until or given.stop.is_set():
            return scene
        await asyncio.sleep(1.0)


async def _diagnosed(given: Given, scene: Scene, status: RoleStatus, worker: Worker) -> list[str]:
    """One worker: the verdict, what to do, its memory."""
    looked: Looked | None = None
    if worker.unit is not None:
        with contextlib.suppress(HostError):
            looked = await given.host.examine(status.role, worker.key, starters=False)
    found = diagnose(scene.fleet, status, worker, looked, await room(given.reader, status.role))
    told = [f"{worker.key}: {found.verdict}: {found.sentence}"]
    if found.next:
        told.append(f"{worker.key}: {found.next}")
    if worker.memory_peak is not None:
        limit = f"; its limit is {size(worker.memory_max)}" if worker.memory_max else "; it has no limit"
        told.append(f"{worker.key} has used {size(worker.memory_peak)} of memory at most{limit}")
    return told


EXAMINE = Action(
    "examine",
    "each worker is diagnosed, each stuck job is told with the evidence",
    _examine,
    {
        "role": Input(required=True, about="the role; that of the run when it is not named"),
        "states": Input(kind="texts", about="only workers like that: hung, looping, start-limit, failed, oom, …"),
    },
    finds=("units", "running", "one_more", "examined"),
    changes=False,
)
