"""Checks on the jobs of a role."""

from __future__ import annotations

from console.fleet.model import Holder, Worker
from console.playbook.kinds import Check, Given, Inputs
from console.playbook.model import Begun, Seen
from console.playbook.settings import Input

_ROLE = {"role": Input(required=True, about="the role; that of the run when it is not named")}
_LATELY = 60.0  # seconds


async def _no_stuck(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    role = inputs.text("role")
    scene = await given.scene()
    stuck = scene.status(role).stuck
    if stuck is None:
        return Seen(state="unknown", text=f"the jobs of {role} are not known: {scene.unseen}")
    if not stuck:
        return Seen(state="holds", text=f"no job of {role} is stuck")
    named = [
        f"job {claim.job.id}: {claim.verdict}" for claim in scene.fleet.claims if claim.role == role and claim.stuck
    ]
    text = f"{stuck} jobs of {role} are stuck" if stuck > 1 else f"1 job of {role} is stuck"
    return Seen(state="not", text=f"{text} (worktop reclaim {role})", evidence=tuple(named[:5]))


async def _flow_begin(given: Given, inputs: Inputs) -> Begun:
    return Begun(seconds=inputs.span("for"), memory={"at": given.now()})


async def _flow(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    """A job has ended since the check has begun, or in the last minute; or there is none to do."""
    role = inputs.text("role")
    scene = await given.scene()
    queue = scene.status(role).queue
    if queue is None:
        return Seen(state="unknown", text=f"the jobs of {role} are not known: {scene.unseen}")
    if not queue.waiting.n and not queue.running.n:
        return Seen(state="holds", text=f"no job of {role} waits")
    if not queue.ends_told:
        return Seen(state="unknown", text="the queue does not tell when jobs end")
    since = max(_LATELY, given.now() - float(str(begun.memory.get("at", given.now()))))
    if queue.last_finished is not None and queue.last_finished <= since:
        return Seen(state="holds", text=f"a job of {role} ended {queue.last_finished:.0f} s ago")
    return Seen(state="not", text=f"no job of {role} has ended lately, and {queue.waiting.n} wait")


async def _no_dead(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    role = inputs.text("role")
    scene = await given.scene()
    if scene.unseen:
        return Seen(state="unknown", text=f"the jobs of {role} are not known: {scene.unseen}")
    dead = [claim for claim in scene.fleet.claims if claim.role == role and claim.verdict == "DEAD"]
    if not dead:
        return Seen(state="holds", text=f"no job of {role} is held by a dead worker")
    named = tuple(f"job {claim.job.id}: {'; '.join(claim.evidence)}" for claim in dead[:5])
    return Seen(state="not", text=f"{len(dead)} of {role} are held by dead workers", evidence=named)


async def _worked_begin(given: Given, inputs: Inputs) -> Begun:
    return Begun(seconds=inputs.span("for"), memory={"at": given.now()})


async def _worked(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    """One of the units has finished a job: the last finished ones tell the pid that held them."""
    role, units = inputs.text("role"), inputs.texts("units")
    scene = await given.scene()
    status = scene.status(role)
    chosen = [worker for worker in status.workers if worker.unit is not None and worker.key in units]
    if given.reader is None or status.queue is None:
        return Seen(state="unknown", text=f"the jobs of {role} are not known: {scene.unseen}")
    finished = (await given.reader.room(status.role)).finished
    for job in finished:
        for worker in chosen:
            if job.holder is not None and _is_its(job.holder, worker):
                return Seen(state="holds", text=f"{worker.key} has finished job {job.id}")
    if not status.queue.waiting.n and not status.queue.running.n:
        return Seen(state="holds", text=f"no job of {role} waits for it")
    return Seen(state="not", text=f"{', '.join(units)} has not finished a job yet")


def _is_its(holder: Holder, worker: Worker) -> bool:
    """By its main process; after a reboot the same pid may be another's."""
    if worker.unit is None or not worker.unit.main_pid or holder.pid != worker.unit.main_pid:
        return False
    starts = [process.ident.start for process in worker.processes if process.ident.pid == holder.pid]
    return holder.start is None or not starts or holder.start in starts


NO_STUCK = Check("no-stuck", "no job is held by a dead worker or past its lease", _no_stuck, _ROLE)
JOBS_FLOW = Check("jobs-flow", "jobs of the role are finished, or none waits", _flow, _ROLE, begin=_flow_begin)
NO_DEAD = Check("no-dead-holders", "no job is held by a worker that is proved dead", _no_dead, _ROLE)
WORKED = Check(
    "has-worked",
    "one of the units has finished a job, or none waits",
    _worked,
    {**_ROLE, "units": Input(kind="texts", required=True)},
    begin=_worked_begin,
)
