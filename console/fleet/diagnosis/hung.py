"""The verdict on a worker that lives and does nothing."""

from __future__ import annotations

import shlex

from console.fleet.diagnosis.model import Case, Examination
from console.fleet.diagnosis.running import process_state
from console.fleet.diagnosis.settings import waiting_to_start
from console.fleet.diagnosis.wording import Decision, for_how_long, jobs_named, others_start
from console.fleet.diagnosis.working import finished_here, paused, stalled
from console.fleet.model import Unit
from console.fleet.workers import ALIVE_STATES

LONG_START = 30.0  # seconds: a worker that starts for so long waits for something


def hung_verdict(case: Case, examination: Examination) -> Decision | None:
    worker, unit = case.worker, case.worker.unit
    hung = [claim for claim in case.claims if claim.verdict == "HUNG"]
    stopped = process_state(case) == "T"
    if unit is not None and unit.active == "activating" and unit.sub not in ("auto-restart", "auto-restart-queued"):
        since = max(0.0, case.fleet.now - unit.since) if unit.since is not None else 0.0
        if since >= LONG_START:
            return _hung_start(case, unit)
        return None
    if worker.state not in ALIVE_STATES or worker.state in ("stopping", "starting"):
        return None
    if stopped:
        sentence = f"its process {case.pid} is stopped by a signal or a debugger: it does nothing until it gets SIGCONT"
    elif hung:
        sentence = (
            f"it holds job {hung[0].job.id} and does nothing: {'; '.join(hung[0].evidence[1:] or hung[0].evidence)}"
        )
    elif worker.state == "hung" and not paused(case) and stalled(case) and not _works(case):
        sentence = f"it is alive, but jobs of {case.status.role.name} wait and none was finished{for_how_long(case)}"
    elif (step := examination.step("health")) is not None and step.state == "fault" and not _progresses(case):
        sentence = f"its health check failed and nothing shows that it works: {step.answer}"
    else:
        return None
    held = [claim.job.id for claim in case.claims]
    what = "see what it waits for, then stop it"
    if stopped:
        return Decision(
            "hung",
            sentence,
            f"find out who stopped it; kill -CONT {case.pid} lets it go on",
            "do not restart: it would go on where it was; a restart cuts its job off",
            (f"kill -CONT {case.pid}",),
        )
    after = f", and reclaim {jobs_named(held)} when it is gone" if held else ""
    where = ""
    if case.looked is not None and case.looked.main is not None and case.looked.main.waits_in:
        where = f" (it sleeps in the kernel's {case.looked.main.waits_in})"
    do_not = "do not restart yet: what it waits for is lost with the process"
    if held:
        do_not += f", and {jobs_named(held)} would stay stuck until reclaimed"
    commands = [f"cat /proc/{case.pid}/stack", f"ls -l /proc/{case.pid}/fd"] if case.pid else []
    if unit is not None:
        commands.append(f"systemctl stop {unit.name}")
    if held:
        commands.append(f"worktop reclaim --id {shlex.quote(','.join(held[:20]))}")
    return Decision("hung", sentence + where, what + after, do_not + others_start(case), tuple(commands))


def _hung_start(case: Case, unit: Unit) -> Decision:
    kind = case.properties.get("Type", "")
    waits = " for READY=1, which a service of Type=notify must send" if kind == "notify" and unit.sub == "start" else ""
    return Decision(
        "hung",
        f"it has been starting ({unit.sub}) for {waiting_to_start(unit, case.fleet.now)}; systemd waits{waits}",
        "read its journal: what does it wait for before it is ready?",
        "do not restart: it would wait for the same again; systemd ends it when TimeoutStartSec= is over",
        (f"journalctl -u {unit.name} -n 50",),
    )


def _works(case: Case) -> bool:
    """Something shows that this very worker is at work."""
    if any(claim.verdict in ("ALIVE", "ALIVE_SLOW") for claim in case.claims):
        return True
    return any(process.cpu and process.cpu >= 0.01 for process in case.worker.processes)


def _progresses(case: Case) -> bool:
    """It holds a job within its lease, or finished one lately; without a queue: nothing speaks for it."""
    if any(claim.verdict == "ALIVE" for claim in case.claims):
        return True
    now = case.fleet.queue.now if case.fleet.queue is not None else case.fleet.now
    limit = case.status.role.progress_limit
    return case.room is not None and any(
        finished_here(case, job) and job.finished is not None and now - job.finished <= limit
        for job in case.room.finished
    )
