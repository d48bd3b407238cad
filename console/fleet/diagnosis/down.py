"""The verdict on a worker that does not run, or ends again and again."""

from __future__ import annotations

import shlex

from console.fleet.diagnosis.model import Case, Examination
from console.fleet.diagnosis.reasons import last_run, run_seconds, short_runs, was_asked_to_stop
from console.fleet.diagnosis.running import SHORT_RUN, loops
from console.fleet.diagnosis.settings import needs_reload, restart_mismatch, waiting_to_start
from console.fleet.diagnosis.wording import Decision, jobs_named, others_start, said
from console.fleet.diagnosis.words import RESULTS, ended_words, exec_failure, signal_name
from console.fleet.model import Unit
from console.fleet.workers import ending, memory_killed
from console.text import ago, size

_TIME_LIMITS = frozenset({"timeout", "watchdog"})
_LIMIT_SIGNALS = frozenset({"SIGXCPU", "SIGXFSZ"})


def down_verdict(case: Case, examination: Examination) -> Decision | None:
    """It does not run, or ends again and again."""
    unit, worker = case.worker.unit, case.worker
    if unit is None or worker.state in ("running", "hung", "stray", "starting", "unknown"):
        return None
    if unit.load == "masked" and unit.active in ("active", "reloading"):
        return None  # it runs on
    if worker.state == "stopping":
        return _stopping(case, unit)
    if worker.state in ("stopped", "missing"):
        return _stopped(case, unit)
    runs = case.looked.runs if case.looked is not None else ()
    ended = [run for run in runs if run.ended is not None]
    if unit.active == "failed" and ended and was_asked_to_stop(ended[-1]) and not unit.start_limit_hit:
        return _stopped_badly(case, unit)
    if memory_killed(unit):
        return _memory(case, unit)
    limit = signal_name(unit.exit_status) if unit.exit_code in ("killed", "dumped") else ""
    if unit.result in _TIME_LIMITS or limit in _LIMIT_SIGNALS:
        return _time(case, unit)
    word = exec_failure(unit)
    if word is not None:
        again = "; systemd tries again and again" if loops(case) and unit.active != "failed" else ""
        return Decision(
            "misconfigured",
            f"systemd cannot start it: exit status {unit.exit_status} ({word.name}): {word.what}{said(case)}{again}",
            f"{word.mend}; then daemon-reload, reset-failed and start it",
            "do not restart: its program was never run, and will not be until that is mended",
            (f"systemd-analyze verify {unit.name}", "systemctl daemon-reload", f"systemctl reset-failed {unit.name}"),
        )
    if unit.result == "resources" or unit.result == "exec-condition":
        return Decision(
            "misconfigured",
            f"systemd did not start it: {RESULTS[unit.result]}{said(case)}",
            "read what systemd says of it, and mend that",
            "do not restart: it would end the same way",
            (f"systemctl status {unit.name}", f"journalctl -u {unit.name} -n 50"),
        )
    if loops(case) or unit.sub == "auto-restart":
        return _loop(case, unit)
    mismatch = restart_mismatch(case)
    if mismatch:
        return Decision(
            "misconfigured",
            f"it failed ({ended_words(unit) or unit.result}){said(case)} and stays down: {mismatch}",
            "mend the reason, start it, and set Restart=on-failure if it is to come back by itself",
            "do not restart: it would fail the same way, and stay down again",
            (f"journalctl -u {unit.name} -n 50", f"systemctl start {unit.name}"),
        )
    return _loop(case, unit)


def _loop(case: Case, unit: Unit) -> Decision:
    runs = case.looked.runs if case.looked is not None else ()
    many = short_runs(runs, SHORT_RUN)
    lived = [seconds for run in runs[-many:] if many and (seconds := run_seconds(run)) is not None]
    each = f" after {ago(max(lived))} at most" if len(lived) > 1 else ""
    end = ended_words(unit) or RESULTS.get(unit.result, unit.result)
    if unit.active == "failed" and (unit.start_limit_hit or many > 1):
        sentence = f"it failed again and again{each} until systemd gave up (start limit): {end}{said(case)}"
        if not unit.start_limit_hit:
            sentence = f"it failed {many} times{each} and is down: {end}{said(case)}"
    elif loops(case):
        count = f"{unit.restarts} restarts so far" if unit.restarts else f"{many} runs in a row"
        sentence = f"it starts and fails again and again{each} ({count}): {end}{said(case)}"
    elif unit.active == "failed":
        sentence = f"it failed and is down: {end}{said(case)}"
    else:
        sentence = (
            f"its last run failed: {end}{said(case)}; systemd starts it again in {unit.restart_sec:g} s (no loop yet)"
        )
    commands = [f"journalctl -u {unit.name} -n 50"]
    if needs_reload(case):
        step = "its file was changed since it was loaded: daemon-reload first, that may be the mended one"
        commands.append("systemctl daemon-reload")
    else:
        step = "mend what the journal names"
    if unit.active == "failed":
        step += "; then reset-failed and start it"
        commands += [f"systemctl reset-failed {unit.name}", f"systemctl start {unit.name}"]
    else:
        step += "; stop it meanwhile, so that it does not take jobs it cannot finish"
        commands.append(f"systemctl stop {unit.name}")
    return Decision(
        "crash loop",
        sentence,
        step,
        "do not restart: it would fail the same way again" + others_start(case),
        tuple(commands),
    )


def _memory(case: Case, unit: Unit) -> Decision:
    times = "again and again, at last " if unit.restarts > 1 else ""
    when = f" {ago(max(0.0, case.fleet.now - unit.exited))} ago" if unit.exited else ""
    if unit.memory_max is not None:
        sentence = f"it was {times}{ending(unit)}{when}"
        mend = (
            f"compare its peak with MemoryMax={size(unit.memory_max)}: raise it within the host's memory, "
            "or mend what takes so much"
        )
    else:
        sentence = (
            f"the kernel killed it {times}because the host's memory, or that of a group above it, was used up{when}"
        )
        mend = "give it a MemoryMax= of its own and the host room; look at what else uses memory"
    return Decision(
        "killed by limit",
        sentence,
        f"{mend}; then start it",
        "do not restart as it is: the same job takes it to the same limit" + others_start(case),
        (f"worktop limits {shlex.quote(case.status.role.name)}", f"worktop start {unit.name}"),
    )


def _time(case: Case, unit: Unit) -> Decision:
    properties = case.properties
    when = f" {ago(max(0.0, case.fleet.now - unit.exited))} ago" if unit.exited else ""
    if unit.result == "watchdog":
        limit = f"WatchdogSec={unit.watchdog_sec:g}" if unit.watchdog_sec else "WatchdogSec="
        sentence = f"systemd killed it{when}: it sent no sign of life within {limit}: it hung, or was too busy"
        mend = "find out what it was doing then, before the limit is raised"
    elif unit.result == "timeout":
        told = " ".join(
            f"{key.removesuffix('USec')}Sec={properties[key]}"
            for key in ("TimeoutStartUSec", "RuntimeMaxUSec", "TimeoutStopUSec")
            if properties.get(key, "infinity") != "infinity"
        )
        sentence = f"systemd ended it{when} because a time limit was over{f' ({told})' if told else ''}{said(case)}"
        mend = "see in the journal which limit that was, and what it waited for"
    else:
        sentence = f"the kernel ended it{when}: {ended_words(unit)}"
        mend = "raise the limit, or mend what uses so much"
    return Decision(
        "killed by limit",
        sentence,
        f"{mend}; then reset-failed and start it",
        "do not restart as it is: it would run into the same limit" + others_start(case),
        (f"journalctl -u {unit.name} -n 50", f"systemctl reset-failed {unit.name}"),
    )


def _stopping(case: Case, unit: Unit) -> Decision:
    held = [claim.job.id for claim in case.claims]
    holds = f" and still holds {jobs_named(held)}" if held else ""
    limit = case.properties.get("TimeoutStopUSec", "")
    return Decision(
        "stopped on purpose",
        f"it has been asked to stop ({unit.sub}) {waiting_to_start(unit, case.fleet.now)} ago{holds}",
        f"wait for its end{f'; systemd kills it after TimeoutStopSec={limit}' if limit else ''}",
        "do not restart: it is finishing its work",
    )


def _stopped(case: Case, unit: Unit) -> Decision:
    last = last_run(case.looked)
    ran = unit.started is not None or bool(unit.exited) or last is not None
    role = case.status.role
    if unit.load == "masked" or unit.enabled.startswith("masked"):
        return Decision(
            "stopped on purpose",
            "it is masked: somebody has seen to it that nothing can start it",
            f"find out why before you unmask it: systemctl unmask {unit.name}",
            "do not start it: it was taken out on purpose",
            (f"systemctl unmask {unit.name}",),
        )
    step = _passed_over(case)
    if not ran:
        if step:
            return Decision(
                "misconfigured",
                step,
                "mend the condition, or start it by hand to see what systemd says",
                "do not restart: systemd passes over it as long as that is so",
                (f"systemctl status {unit.name}",),
            )
        if not case.worker.desired:
            return Decision(
                "stopped on purpose",
                "it has not run since the host booted, and nobody wants it to",
                "leave it as it is",
                "do not start it: worktop.toml does not ask for it",
            )
        enabled = unit.enabled.startswith("enabled")
        why = (
            "although it is enabled: it was held back at boot"
            if enabled
            else f"and it is {unit.enabled or 'not enabled'}: nothing starts it at boot"
        )
        return Decision(
            "misconfigured",
            f"it is wanted, but has not run since the host booted, {why}",
            "see what held it back"
            if enabled
            else f"enable and start it, or lower instances of {role.name} in worktop.toml",
            "do not restart: it never ran, so there is nothing to mend by that",
            ((f"systemctl status {unit.name}",) if enabled else (f"systemctl enable --now {unit.name}",)),
        )
    since = unit.since if unit.since is not None else last.ended if last is not None else None
    when = f" {ago(max(0.0, case.fleet.now - since))} ago" if since is not None else ""
    mismatch = restart_mismatch(case)
    if mismatch and case.worker.desired:
        return Decision(
            "misconfigured",
            f"it ended by itself{when}{f' ({how})' if (how := ended_words(unit)) else ''} and stays down: {mismatch}",
            "set Restart=always if a worker is to come back after a good end (a lifetime, a number of jobs)",
            "do not restart without that: it would end and stay down again",
            (f"systemctl edit {unit.name}", f"systemctl start {unit.name}"),
        )
    asked = last is not None and was_asked_to_stop(last)
    by = "an operator or another unit" if asked else "somebody, as far as can be told: it ended without a failure"
    left = _left_over(case)
    return Decision(
        "stopped on purpose",
        f"it was stopped{when} by {by}{left}",
        f"ask who stopped it and why (worktop audit, the journal); if nobody needs it stopped, start {unit.name}",
        "do not start it before you know why: somebody stopped it on purpose" + others_start(case),
        ("worktop audit", f"journalctl -u {unit.name} -n 20", f"systemctl start {unit.name}"),
    )


def _stopped_badly(case: Case, unit: Unit) -> Decision:
    end = ended_words(unit) or unit.result
    mend = ""
    if unit.exit_code == "exited" and unit.exit_status == 143:
        mend = "; SuccessExitStatus=143 says that this end is a good one"
    elif unit.result == "timeout":
        mend = "; it did not end within TimeoutStopSec= and was killed: its job was cut off"
    return Decision(
        "stopped on purpose",
        f"it was asked to stop and ended badly: {end}{mend}",
        f"ask who stopped it and why; if nobody needs it stopped, reset-failed and start {unit.name}",
        "do not start it before you know why: somebody stopped it on purpose" + others_start(case),
        ("worktop audit", f"systemctl reset-failed {unit.name}", f"systemctl start {unit.name}"),
    )


def _passed_over(case: Case) -> str:
    """Why systemd passed over its last start; "" when it did not."""
    condition = case.properties.get("ConditionResult") == "no"
    if condition and case.properties.get("ConditionTimestamp", "") not in ("", "n/a"):
        return "systemd passed over its start: a Condition…= of the unit does not hold"
    return ""


def _left_over(case: Case) -> str:
    tree = case.looked.detail.tree if case.looked is not None and case.looked.detail is not None else ()
    left = len(tree) or len(case.worker.processes)
    return f"; {left} of its processes still run" if left else ""
