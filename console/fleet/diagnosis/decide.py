"""From the examination to one verdict, the next step, and why not to restart.

The order matters: what cannot be seen is not judged; a hung worker is hung whoever owns it; what is down is down for a
reason of its own; only a worker that lives and is not hung is judged by its owner, its settings and its work.
"""

from __future__ import annotations

import shlex

from console.fleet.diagnosis.down import down_verdict
from console.fleet.diagnosis.hung import hung_verdict
from console.fleet.diagnosis.model import Case, Examination
from console.fleet.diagnosis.owners import owner_name, parallels
from console.fleet.diagnosis.running import hidden
from console.fleet.diagnosis.settings import needs_reload
from console.fleet.diagnosis.wording import Decision, held_clause, jobs_named, slow_sentence
from console.fleet.diagnosis.working import finished_here, paused
from console.text import duration


def decide(case: Case, examination: Examination) -> Decision:
    """The verdict on one worker."""
    for rule in (_unseen, _not_loaded, hung_verdict, down_verdict, _owned, _unusable, _slow, _hidden):
        found = rule(case, examination)
        if found is not None:
            return found
    return _healthy(case, examination)


# --- cannot be seen ---------------------------------------------------------------------------------------------------


def _unseen(case: Case, examination: Examination) -> Decision | None:
    worker = case.worker
    hello = case.fleet.hello
    problems = [source.problem for source in case.fleet.sources if source.name in ("agent", "units") and source.problem]
    down = any(source.name == "units" and source.state in ("down", "denied") for source in case.fleet.sources)
    seen = worker.state != "unknown" and (worker.unit is not None or bool(worker.processes))
    if seen and not (down and worker.unit is not None):
        return None
    why = (
        problems[0].line()
        if problems
        else "systemd has not told of it"
        if hello is not None
        else "the host agent has not answered"
    )
    mend = problems[0].do if problems and problems[0].do else "worktop doctor says what is missing"
    return Decision(
        "not permitted to see",
        f"nothing can be said of it: {why}",
        f"let it be seen first: {mend}",
        "do not restart: nothing is known of what it does, and of the jobs it holds",
        ("worktop doctor",),
    )


def _hidden(case: Case, examination: Examination) -> Decision | None:
    """Only when its work does not speak for it."""
    if not hidden(case):
        return None
    room = case.room
    if room is not None and any(finished_here(case, job) for job in room.finished):
        return None
    return Decision(
        "not permitted to see",
        f"systemd says that it runs as pid {case.pid}, but this account sees neither the process nor a job it finished",
        "run the agent with more rights (agent in [host] of worktop.toml), then diagnose it again",
        "do not restart: whether it works cannot be seen from here",
        ("worktop doctor",),
    )


# --- not there --------------------------------------------------------------------------------------------------------


def _not_loaded(case: Case, examination: Examination) -> Decision | None:
    unit = case.worker.unit
    if unit is None or unit.load in ("loaded", "masked"):
        return None
    if unit.load == "not-found":
        template = unit.template or unit.name
        return Decision(
            "misconfigured",
            f"there is no unit {template}",
            f"install {template}, or correct roles.{case.status.role.name}.unit in worktop.toml",
            "do not restart: there is nothing to start",
            (f"systemctl cat {unit.name}",),
        )
    if unit.load == "not-loaded":
        return Decision(
            "misconfigured",
            "it is wanted, and systemd has not loaded it",
            f"start {unit.name} and enable it at boot",
            "do not restart: a restart of what never ran is a start",
            (f"systemctl start {unit.name}",),
        )
    why = case.properties.get("LoadError", "")
    return Decision(
        "misconfigured",
        f"systemd cannot use its file ({unit.load}){f': {why}' if why else ''}",
        "mend the file, then daemon-reload and start it",
        "do not restart: a running one would not come back",
        (f"systemd-analyze verify {unit.fragment or unit.name}", "systemctl daemon-reload"),
    )


# --- alive ------------------------------------------------------------------------------------------------------------


def _owned(case: Case, examination: Examination) -> Decision | None:
    status, worker = case.status, case.worker
    others = [each for each in parallels(case) if each.certain]
    besides = _besides(case)
    if worker.unit is None:
        name = owner_name(worker.owner)
        restarts = worker.owner.kind not in ("unknown", "session")
        role = f", not {status.role.template}" if status.role.template else f"; {status.role.name} has no unit"
        stop = f"move {status.role.name} to its unit: retire {name} first, then drain pid {case.pid}"
        if not status.role.template:
            stop = f"act through {name}; better, give {status.role.name} a template unit"
        return Decision(
            "owned by somebody else",
            f"it was started by {name}{role}{besides}",
            stop if restarts else f"drain pid {case.pid}, and let a unit do the work",
            "do not restart or kill it: "
            + (
                f"{name} starts another"
                if restarts
                else "nobody starts it again, and its jobs would wait for their lease"
            ),
            (f"worktop workers --role {shlex.quote(status.role.name)}",),
        )
    if others:
        names = ", ".join(each.name for each in others[:3])
        stops = list(dict.fromkeys(each.stop for each in others if each.stop))
        how = "; ".join(stops[:3]) or "disable the other one"
        return Decision(
            "owned by somebody else",
            f"systemd runs it, but its role has a second owner: {names}{besides}",
            f"keep one way of starting {status.role.name}: {how}, then drain what it started",
            f"do not restart: {names} would go on starting workers beside it",
            (f"worktop diagnose {shlex.quote(status.role.name)}",),
        )
    return None


def _besides(case: Case) -> str:
    slow = slow_sentence(case)
    return f"; besides, {slow}" if slow else ""


def _unusable(case: Case, examination: Examination) -> Decision | None:
    unit = case.worker.unit
    if unit is None:
        return None
    held = held_clause(case)
    if unit.load == "masked" or unit.enabled.startswith("masked"):
        return Decision(
            "misconfigured",
            "it runs, but is masked: once it ends nothing can start it again",
            f"find out who masked it and why; systemctl unmask {unit.name}, or stop it if it is to be stopped",
            f"do not restart: it would stop{held} and not come back",
            (f"systemctl unmask {unit.name}",),
        )
    if needs_reload(case):
        return Decision(
            "misconfigured",
            "it runs, but its unit was changed on disk and systemd still has the old one",
            "look at what was changed (systemctl cat), then systemctl daemon-reload; its restart comes after that",
            f"do not restart: systemd would start it by the old file{', and' + held if held else ''}",
            (f"systemctl cat {unit.name}", "systemctl daemon-reload"),
        )
    return None


def _slow(case: Case, examination: Examination) -> Decision | None:
    sentence = slow_sentence(case)
    health = examination.step("health")
    if not sentence and health is not None and health.state == "fault":
        sentence = f"it works, but its health check fails: {health.answer}"
    if not sentence and paused(case):
        return Decision(
            "stopped on purpose",
            f"it runs and has nothing to do: the queue of {case.status.role.name} is paused",
            f"resume it when that is over: worktop resume {case.status.role.name}",
            "do not restart: nothing is wrong with it, its queue gives out no job",
            (f"worktop resume {shlex.quote(case.status.role.name)}",),
        )
    if not sentence:
        return None
    held = [claim.job.id for claim in case.claims]
    again = (
        f"{jobs_named(held)} would be cut off and run a second time" if held else "what it has begun would be cut off"
    )
    return Decision(
        "working slowly",
        sentence,
        "let it work, and watch whether the job ends; give its type a longer lease if it always takes so long",
        f"do not restart: {again}",
        (f"worktop job {shlex.quote(held[0])}",) if held else (),
    )


def _healthy(case: Case, examination: Examination) -> Decision:
    warnings = [step for step in examination.steps if step.state in ("warning", "fault")]
    now = case.fleet.queue.now if case.fleet.queue is not None else case.fleet.now
    done = next(
        (job for job in (case.room.finished if case.room is not None else ()) if finished_here(case, job)), None
    )
    if case.claims:
        doing = f"it works on {jobs_named([claim.job.id for claim in case.claims])}"
    elif done is not None and done.finished is not None:
        doing = f"it finished job {done.id} {duration(max(0.0, now - done.finished))} ago"
    elif case.worker.state == "starting":
        doing = "it is starting"
    elif case.status.queue is None:
        doing = "it runs; of its work nothing is known"
    else:
        doing = "it runs and holds no job" + ("" if case.status.queue.waiting.n else "; none waits")
    if not warnings:
        step = "nothing needs to be done"
    else:
        step = f"it works; look at this when there is time: {warnings[0].answer}"
        doing += f"; {len(warnings)} thing{'s' if len(warnings) != 1 else ''} to look at"
    return Decision("healthy", doing, step, f"do not restart: it works{held_clause(case, ', and')}")
