"""Questions about the process: does it live, is it the right one, its children, its last end, its restarts."""

from __future__ import annotations

from console.fleet.capacity import start_limit
from console.fleet.diagnosis.model import Case, Examined, Looked
from console.fleet.diagnosis.reasons import common_reason, last_run, run_seconds, short_runs, was_asked_to_stop
from console.fleet.diagnosis.words import RESULTS, ended_words
from console.fleet.model import Process, Unit
from console.fleet.workers import LOOPING_RESTARTS, ending, memory_killed, run_time
from console.text import ago

_SAME_START = 5.0  # seconds: systemd's record and the kernel's may differ by so much
SHORT_RUN = 60.0  # seconds: a run that ends sooner has not worked
_DOWN = frozenset({"inactive", "failed"})
_SHOWN_RUNS = 5


def process_of(case: Case) -> Process | None:
    """The main process as it was told with the fleet."""
    return next((process for process in case.worker.processes if process.ident.pid == case.pid), None)


def process_state(case: Case) -> str:
    """One letter as in ps, by the newest look; "" not known."""
    looked, process = case.looked, process_of(case)
    if looked is not None and looked.main is not None and looked.main.state:
        return looked.main.state
    return process.state if process is not None else ""


def hidden(case: Case) -> bool:
    """There is a main process, and this account may not see it."""
    if not case.pid or process_of(case) is not None:
        return False
    looked = case.looked
    if looked is not None and (looked.main is not None or looked.gone):
        return False
    states = {source.name: source.state for source in case.fleet.sources}
    return states.get("processes") in ("denied", "down", "waiting", "absent")


def process(case: Case) -> Examined:
    asked = "Does its main process exist, and is it the one that systemd started?"
    unit, pid = case.worker.unit, case.pid
    if unit is None:
        asked = "Does its main process exist?"
    if not pid:
        return _no_process(case, asked)
    found, looked = process_of(case), case.looked
    main = looked.main if looked is not None else None
    if looked is not None and looked.gone:
        return Examined(
            name="process",
            asked=asked,
            state="warning",
            answer=f"pid {pid} had gone when it was looked at: it has just ended, or the unit is being restarted",
        )
    if found is None and main is None:
        if hidden(case):
            return Examined(
                name="process",
                asked=asked,
                state="unknown",
                answer=f"systemd says pid {pid}, but this account may not see it",
                evidence=_refusals(case),
            )
        return Examined(
            name="process",
            asked=asked,
            state="unknown",
            answer=f"systemd says pid {pid}; it has not been looked at",
        )
    evidence: list[str] = []
    wrong: list[str] = []
    fault = False
    command = main.command if main is not None else found.command if found is not None else ()
    started = main.started if main is not None and main.started is not None else found.started if found else None
    if command:
        evidence.append(f"command line: {' '.join(command)}")
    if started is not None:
        evidence.append(f"it runs for {ago(max(0.0, case.fleet.now - started))}")
    if unit is not None:
        told = case.properties.get("ExecStart", "")
        if told and command and not " ".join(command).endswith(told):  # an interpreter may stand before it
            evidence.append(f"ExecStart is: {told}; it has executed another program since, or names itself")
        if unit.started is not None and started is not None and abs(unit.started - started) > _SAME_START:
            wrong.append(
                f"it started {ago(abs(unit.started - started))} {'before' if started < unit.started else 'after'} "
                "what systemd has on record"
            )
        group = main.cgroup if main is not None else found.cgroup if found is not None else ""
        if group and unit.cgroup and group != unit.cgroup and not group.startswith(unit.cgroup + "/"):
            wrong.append(f"its control group is {group}, the unit's is {unit.cgroup}")
            fault = True
    if main is not None and main.program is not None and main.program.endswith(" (deleted)"):
        wrong.append(f"its program {main.program.removesuffix(' (deleted)')} has been replaced since it started")
    state = process_state(case)
    if state == "T":
        wrong.append("it is stopped (state T, by a signal or a debugger)")
        fault = True
    elif state == "Z":
        wrong.append("it has ended and nobody has collected it (a zombie)")
        fault = True
    elif state == "D":
        wrong.append("it waits in the kernel and cannot be killed there (state D): disk or network storage")
    if main is not None:
        if main.waits_in:
            evidence.append(f"it sleeps in the kernel's {main.waits_in}")
        evidence.extend(f"not read: {reason}" for reason in main.denied)
    same = "" if unit is None else " and is the one that systemd started"
    answer = f"pid {pid} lives{same}" if not wrong else f"pid {pid} lives, but {wrong[0]}"
    return Examined(
        name="process",
        asked=asked,
        state="fault" if fault else "warning" if wrong else "ok",
        answer=answer,
        evidence=(*wrong[1:], *evidence),
    )


def _no_process(case: Case, asked: str) -> Examined:
    unit = case.worker.unit
    if unit is None:
        return Examined(name="process", asked=asked, state="fault", answer="it has ended")
    if unit.sub == "auto-restart":
        answer = f"there is none at the moment: systemd waits {unit.restart_sec:g} s before it starts it again"
        return Examined(name="process", asked=asked, state="fault", answer=answer)
    if unit.active == "failed":
        return Examined(name="process", asked=asked, state="fault", answer="there is none: the unit has failed")
    state = "warning" if case.worker.desired else "ok"
    since = f" for {ago(max(0.0, case.fleet.now - unit.since))}" if unit.since else ""
    return Examined(
        name="process",
        asked=asked,
        state="warning" if state == "warning" else "ok",
        answer=f"there is none: the unit is {unit.active} ({unit.sub}){since}",
    )


def _refusals(case: Case) -> tuple[str, ...]:
    told = [source.problem.line() for source in case.fleet.sources if source.name == "processes" and source.problem]
    return (*told, *(case.looked.problems if case.looked is not None else ()))


def children(case: Case) -> Examined:
    asked = "What else runs in it: children, and what an earlier run left behind?"
    unit, looked = case.worker.unit, case.looked
    tree = looked.detail.tree if looked is not None and looked.detail is not None else ()
    if tree:
        every = [(each.ident.pid, each.depth, each.name, each.state) for each in tree]
        roots = [pid for pid, depth, _, _ in every if depth == 0]
    else:
        pids = {each.ident.pid for each in case.worker.processes}
        every = [
            (each.ident.pid, 0 if each.ppid not in pids else 1, each.name, each.state) for each in case.worker.processes
        ]
        roots = [pid for pid, depth, _, _ in every if depth == 0]
    others = [(pid, name, state) for pid, _, name, state in every if pid != case.pid]
    shown = tuple(
        f"pid {pid} {name}{f' (state {state})' if state in 'DTZ' and state else ''}" for pid, name, state in others[:8]
    )
    if not every:
        known = looked is not None or case.worker.processes or not case.pid
        return Examined(
            name="children",
            asked=asked,
            state="ok" if known else "unknown",
            answer="nothing runs in it" if known else "its control group has not been looked at",
        )
    if unit is not None and not case.pid:
        why = case.properties.get("KillMode", "")
        return Examined(
            name="children",
            asked=asked,
            state="fault",
            answer=f"{_counted(len(others))} of it still run{'s' if len(others) == 1 else ''} although it has no main "
            "process: left behind by an earlier run",
            evidence=(*shown, *((f"KillMode={why}",) if why else ())),
        )
    strangers = [pid for pid in roots if pid != case.pid] if unit is not None else []
    zombies = [pid for pid, _, state in others if state == "Z"]
    if strangers:
        return Examined(
            name="children",
            asked=asked,
            state="warning",
            answer=f"not all of it are children of its main process: {_counted(len(strangers))} detached, "
            "or left behind by an earlier run",
            evidence=shown,
        )
    if zombies:
        return Examined(
            name="children",
            asked=asked,
            state="warning",
            answer=f"{_counted(len(zombies))} below it ended and it does not collect them (zombies)",
            evidence=shown,
        )
    answer = f"{len(others)} child{'ren' if len(others) != 1 else ''}" if others else "no children"
    return Examined(name="children", asked=asked, state="ok", answer=answer, evidence=shown)


def _counted(number: int) -> str:
    return f"{number} process{'es' if number != 1 else ''}"


def how_it_ended(case: Case) -> Examined:
    asked = "How did it end the last time, as systemd says?"
    unit = case.worker.unit
    if unit is None:
        return Examined(
            name="ending", asked=asked, state="ok", answer="systemd does not know it: it runs in no unit of its role"
        )
    runs = case.looked.runs if case.looked is not None else ()
    ended = [run for run in runs if run.ended is not None]
    words = ended_words(unit)
    evidence = [f"Result={unit.result}: {RESULTS.get(unit.result, 'not known to this version of worktop')}"]
    if words:
        evidence.append(f"main process: {words}")
    evidence += [f"systemd: {line}" for line in (ended[-1].manager[-4:] if ended else ())]
    if unit.load != "loaded":
        return Examined(
            name="ending", asked=asked, state="unknown", answer="it has not run: its unit is not loaded", evidence=()
        )
    failed = unit.active == "failed" or unit.sub == "auto-restart" or unit.result != "success"
    if failed:
        how = words if words and unit.result in ("exit-code", "signal", "core-dump") and not memory_killed(unit) else ""
        if memory_killed(unit):
            how = ending(unit)
        when = f", {ago(max(0.0, case.fleet.now - unit.exited))} ago" if unit.exited else ""
        return Examined(
            name="ending",
            asked=asked,
            state="fault",
            answer=f"{how or RESULTS.get(unit.result, unit.result)}{when}",
            evidence=tuple(evidence),
        )
    if unit.active in _DOWN:
        last = last_run(case.looked)
        if not words and last is not None:
            asked_to = was_asked_to_stop(last)
            return Examined(
                name="ending",
                asked=asked,
                state="ok" if asked_to else "warning",
                answer="when it was asked to stop; systemd has forgotten the rest"
                if asked_to
                else "by itself; systemd has forgotten how",
                evidence=tuple(f"systemd: {line}" for line in last.manager[-4:]),
            )
        if not words:
            return Examined(name="ending", asked=asked, state="ok", answer="it has not run since the host booted")
        asked_to = bool(ended) and was_asked_to_stop(ended[-1])
        by = "when it was asked to stop" if asked_to else "without a failure"
        return Examined(name="ending", asked=asked, state="ok", answer=f"{by}: {words}", evidence=tuple(evidence))
    if unit.restarts and ended and not was_asked_to_stop(ended[-1]):
        return Examined(
            name="ending",
            asked=asked,
            state="warning",
            answer=f"it runs; the run before ended by itself{_first_line(ended[-1].manager)}",
            evidence=tuple(evidence),
        )
    return Examined(
        name="ending", asked=asked, state="ok", answer="it runs, and no failure is on record", evidence=tuple(evidence)
    )


def _first_line(lines: tuple[str, ...]) -> str:
    told = next((line for line in lines if "exited" in line or "killed" in line or "Failed with" in line), "")
    return f": {told}" if told else ""


def restarts(case: Case) -> Examined:
    """The loop, and the reason that the last runs have in common."""
    asked = "How often was it started again, is it a crash loop, and what do its last runs say?"
    unit = case.worker.unit
    if unit is None:
        return Examined(
            name="restarts", asked=asked, state="ok", answer="nothing is known: no unit counts its restarts"
        )
    looked = case.looked
    evidence = _runs(looked, case.fleet.now)
    reason = common_reason(looked.runs) if looked is not None else None
    said = ""
    if reason is not None:
        said = (
            f'; {reason.runs} of the last {reason.of} runs said: "{reason.text}"'
            if reason.of > 1
            else f'; it said: "{reason.text}"'
        )
    elif unit.last_words:
        said = f'; it said: "{unit.last_words.strip()}"'
    if looked is not None and looked.runs_problem:
        evidence = (*evidence, f"journal: {looked.runs_problem}")
    rate = f", {unit.restarts_per_minute:.0f} a minute" if unit.restarts_per_minute else ""
    count = f"{unit.restarts} automatic restart{'s' if unit.restarts != 1 else ''}{rate}"
    looping = case.worker.state == "looping"
    if looping or (unit.start_limit_hit and unit.active == "failed"):
        limit = start_limit(unit, run_time(unit) or 0.0)
        stops = (
            "its start limit has stopped it"
            if unit.start_limit_hit
            else ("its start limit will stop it" if limit.reachable else "its start limit never stops it")
        )
        return Examined(
            name="restarts",
            asked=asked,
            state="fault",
            answer=f"a crash loop: {count}; {stops}{said}",
            evidence=(limit.text, *evidence),
        )
    down = unit.active == "failed" or unit.sub == "auto-restart"
    state = "warning" if unit.restarts or down else "ok"
    unknown = looked is None or bool(looked.runs_problem and not looked.runs)
    answer = count if unit.restarts or down else "it was not started again"
    return Examined(
        name="restarts",
        asked=asked,
        state="warning" if state == "warning" else "ok",
        answer=f"{answer}{said if unit.restarts or down else ''}" + ("; its journal was not read" if unknown else ""),
        evidence=evidence,
    )


def _runs(looked: Looked | None, now: float) -> tuple[str, ...]:
    sentences = []
    for run in looked.runs[-_SHOWN_RUNS:] if looked is not None else ():
        began = f"{ago(max(0.0, now - run.began))} ago" if run.began is not None else "at a time that is not known"
        lived = run_seconds(run)
        if lived is None:
            sentences.append(f"run begun {began}: it has not ended")
            continue
        by = (
            "it was asked to stop"
            if was_asked_to_stop(run)
            else (run.lines[-1].strip() if run.lines else "it wrote nothing")
        )
        sentences.append(f"run begun {began}, lived {ago(lived)}: {by}")
    return tuple(sentences)


def loops(case: Case) -> bool:
    """It starts, fails and starts again, or systemd has given that up."""
    unit, looked = case.worker.unit, case.looked
    if unit is None:
        return False
    if case.worker.state in ("looping", "start-limit") or unit.start_limit_hit:
        return True
    runs = looked.runs if looked is not None else ()
    return unit.sub == "auto-restart" and short_runs(runs, SHORT_RUN) >= LOOPING_RESTARTS


def young_start(unit: Unit, now: float) -> float | None:
    """For how long it has been starting or stopping, seconds."""
    return max(0.0, now - unit.since) if unit.since is not None else None
