"""Questions about the unit's settings: is it as on disk, which limits is it near, which of them cannot work."""

from __future__ import annotations

import re
from collections.abc import Iterator

from console.fleet.capacity import start_limit
from console.fleet.diagnosis.model import Case, Examined, StepState
from console.fleet.diagnosis.reasons import last_run, was_asked_to_stop
from console.fleet.model import Unit
from console.fleet.workers import NEAR_LIMIT, run_time
from console.text import ago, grouped, size

NEAR_TASKS = 0.8  # of a limit of tasks, open files or connections
_UNIT_KEYS = re.compile(r"^\s*(StartLimitIntervalSec)\s*=", re.MULTILINE)
_SECTION = re.compile(r"^\s*\[([^\]]+)\]", re.MULTILINE)


def needs_reload(case: Case) -> bool:
    """A file of the unit is another than the one systemd has read."""
    return case.properties.get("NeedDaemonReload") == "yes"


def unit(case: Case) -> Examined:
    asked = "Is its unit there, as systemd has read it, and is it started at boot?"
    known = case.worker.unit
    if known is None:
        return Examined(name="unit", asked=asked, state="ok", answer="it runs in no unit of its role")
    properties = case.properties
    at_boot = known.enabled or properties.get("UnitFileState", "")
    evidence = [f"{path}" for path in (known.fragment, *known.drop_ins) if path]
    if known.load in ("not-found", "not-loaded"):
        what = (
            f"{known.template or known.name} is not installed"
            if known.load == "not-found"
            else "systemd has not loaded it"
        )
        return Examined(name="unit", asked=asked, state="fault", answer=what)
    if known.load == "masked" or at_boot.startswith("masked"):
        runs = " although it runs: it cannot be started again" if known.active in ("active", "activating") else ""
        return Examined(
            name="unit",
            asked=asked,
            state="fault" if runs else "warning",
            answer=f"it is masked (linked to /dev/null){runs}",
            evidence=tuple(evidence),
        )
    if known.load != "loaded":
        why = properties.get("LoadError", "")
        return Examined(
            name="unit",
            asked=asked,
            state="fault",
            answer=f"systemd cannot use its file: {known.load}",
            evidence=(*((why,) if why else ()), *evidence),
        )
    if needs_reload(case):
        return Examined(
            name="unit",
            asked=asked,
            state="fault",
            answer="its file was changed on disk and systemd still has the old one: daemon-reload was forgotten",
            evidence=("NeedDaemonReload=yes", *evidence),
        )
    condition = properties.get("ConditionResult") == "no" and properties.get("ConditionTimestamp", "") not in (
        "",
        "n/a",
    )
    if condition and known.active == "inactive":
        return Examined(
            name="unit",
            asked=asked,
            state="fault",
            answer="systemd passed over its last start: a Condition…= of it does not hold",
            evidence=(f"ConditionTimestamp={properties['ConditionTimestamp']}", *evidence),
        )
    if case.worker.desired and at_boot in ("disabled", "static", "indirect"):
        return Examined(
            name="unit",
            asked=asked,
            state="warning",
            answer=f"it is as it is on disk, but {at_boot}: nothing starts it at the next boot",
            evidence=tuple(evidence),
        )
    told = case.looked is not None and case.looked.detail is not None
    answer = (
        f"it is as it is on disk{f', {at_boot}' if at_boot else ''}"
        if told
        else f"it is loaded{f', {at_boot}' if at_boot else ''}"
    )
    return Examined(
        name="unit", asked=asked, state="ok" if told else "unknown", answer=answer, evidence=tuple(evidence)
    )


# --- near ------------------------------------------------------------------------------------------------------------


def near(case: Case) -> Examined:
    asked = "Which limits is it near: memory, tasks, open files, database connections?"
    found = list(_shares(case))
    warnings = [text for text, share, limit in found if share >= limit]
    evidence = tuple(text for text, _, _ in found)
    unknown = case.looked is None or (
        case.pid > 0 and (case.looked.main is None or case.looked.main.open_files is None)
    )
    if warnings:
        return Examined(
            name="near", asked=asked, state="warning", answer=f"near: {'; '.join(warnings)}", evidence=evidence
        )
    if not found:
        return Examined(
            name="near", asked=asked, state="unknown" if case.pid else "ok", answer="nothing of it is measured"
        )
    answer = "none" + ("; its open files could not be counted" if unknown and case.pid else "")
    return Examined(name="near", asked=asked, state="ok", answer=answer, evidence=evidence)


def _shares(case: Case) -> Iterator[tuple[str, float, float]]:
    """What is used of which limit: the sentence, the share, and from which share on that is near."""
    unit, looked, room = case.worker.unit, case.looked, case.room
    if unit is not None and unit.memory_max and (unit.memory_now is not None or unit.memory_peak is not None):
        used = max(unit.memory_now or 0, unit.memory_peak or 0)
        peak = f" (peak {size(unit.memory_peak)})" if unit.memory_peak is not None else ""
        yield f"memory {size(unit.memory_now)}{peak} of {size(unit.memory_max)}", used / unit.memory_max, NEAR_LIMIT
    high = case.properties.get("MemoryHigh", "")
    now = unit.memory_now if unit is not None else None
    if high.isdecimal() and int(high) and now is not None:
        yield (
            f"memory {size(now)} of MemoryHigh={size(int(high))}: above it the kernel slows it down",
            now / int(high),
            1.0,
        )
    if unit is not None and unit.tasks_max and unit.tasks_now is not None:
        yield f"tasks {unit.tasks_now} of {unit.tasks_max}", unit.tasks_now / unit.tasks_max, NEAR_TASKS
    main = looked.main if looked is not None else None
    if main is not None and main.open_files is not None and main.open_files_limit:
        share = main.open_files / main.open_files_limit
        yield f"open files {grouped(main.open_files)} of {grouped(main.open_files_limit)}", share, NEAR_TASKS
    if room is not None and room.connections is not None and room.connections_max:
        share = room.connections / room.connections_max
        yield f"database connections {room.connections} of {room.connections_max}", share, NEAR_TASKS
    uids = {process.uid for process in case.worker.processes}
    for account in case.fleet.host.accounts if case.fleet.host is not None else ():
        if account.uid in uids and account.limit:
            yield (
                f"tasks of {account.user} {account.tasks} of {account.limit}",
                account.tasks / account.limit,
                NEAR_TASKS,
            )


# --- cannot work -----------------------------------------------------------------------------------------------------


def restart_mismatch(case: Case) -> str:
    """Why Restart= does not bring it back after it ended the way it did; "" when it does, or nothing is known."""
    unit = case.worker.unit
    if unit is None or unit.load != "loaded":
        return ""
    last = last_run(case.looked)
    if unit.active == "inactive" and not unit.exit_code and last is not None and not was_asked_to_stop(last):
        again = unit.restart in ("always", "on-success")
        return "" if again else f"Restart={unit.restart}: it is not started again when it ends without a failure"
    if not unit.exit_code:
        return ""
    runs = [run for run in (case.looked.runs if case.looked is not None else ()) if run.ended is not None]
    if runs and was_asked_to_stop(runs[-1]):
        return ""
    if unit.active == "failed" and not unit.start_limit_hit and unit.restart in ("no", ""):
        return "Restart=no: nothing starts it again after a failure"
    prevent = case.properties.get("RestartPreventExitStatus", "").split()
    if unit.active == "failed" and str(unit.exit_status) in prevent and unit.exit_code == "exited":
        return (
            f"RestartPreventExitStatus={' '.join(prevent)}: with exit status {unit.exit_status} it is not started again"
        )
    if unit.active == "failed" and unit.restart == "on-success":
        return "Restart=on-success: it is started again only when it did not fail"
    if (
        unit.active == "failed"
        and unit.restart in ("on-abnormal", "on-abort", "on-watchdog")
        and unit.result == "exit-code"
    ):
        return f"Restart={unit.restart}: it is not started again after an exit status"
    ended_well = unit.active == "inactive" and unit.result == "success" and unit.exit_code == "exited"
    if ended_well and runs and unit.restart not in ("always", "on-success"):
        return f"Restart={unit.restart}: it is not started again when it ends with exit status {unit.exit_status}"
    return ""


def limits(case: Case) -> Examined:
    asked = "Which of its settings cannot work?"
    unit = case.worker.unit
    if unit is None:
        return Examined(name="limits", asked=asked, state="ok", answer="it runs in no unit of its role: it has none")
    if unit.load != "loaded":
        return Examined(name="limits", asked=asked, state="unknown", answer="its unit is not loaded")
    wrong = list(_wrong(case, unit))
    state: StepState = "warning" if wrong else "ok"
    told = case.looked is not None and case.looked.detail is not None
    if not wrong:
        answer = "they can work" if told else "none that is seen; its files were not read"
        return Examined(name="limits", asked=asked, state=state, answer=answer, evidence=_settings(case, unit))
    return Examined(
        name="limits",
        asked=asked,
        state=state,
        answer="; ".join(wrong[:2]),
        evidence=(*wrong[2:], *_settings(case, unit)),
    )


def _settings(case: Case, unit: Unit) -> tuple[str, ...]:
    properties = case.properties
    told = [
        f"Restart={unit.restart}, RestartSec={unit.restart_sec:g}, StartLimitBurst={unit.start_limit_burst}, "
        f"StartLimitIntervalSec={unit.start_limit_interval:g}"
    ]
    told += [f"{key}={properties[key]}" for key in ("KillMode", "TimeoutStopUSec", "OOMPolicy") if properties.get(key)]
    if unit.restart != "no":
        told.append(f"start limit: {start_limit(unit).text}")
    return tuple(told)


def _wrong(case: Case, unit: Unit) -> Iterator[str]:
    properties = case.properties
    if unit.restart not in ("no", ""):
        lived = run_time(unit) if unit.active != "active" or unit.restarts else None
        limit = start_limit(unit)
        if not limit.enabled:
            yield f"its start limit is off: {limit.text}; a crash loop never ends"
        elif not limit.reachable:
            yield f"its start limit can never be reached: {limit.text}; a crash loop never ends"
        elif case.worker.state == "looping" and lived and not (longer := start_limit(unit, lived)).reachable:
            yield f"its start limit is not reached the way it fails: {longer.text}"
    elif case.worker.desired:
        yield "Restart=no: nothing starts it again when it ends"
    mismatch = restart_mismatch(case)
    if mismatch and "Restart=no" not in mismatch:
        yield mismatch
    if unit.memory_max and unit.memory_enforced is False:
        yield f"MemoryMax={size(unit.memory_max)} is set, but the kernel holds no such limit for it"
    kill = properties.get("KillMode", "")
    if kill in ("process", "none"):
        yield f"KillMode={kill}: a stop or restart leaves its children running, and they may hold jobs"
    if unit.exit_code == "exited" and unit.exit_status == 143 and "143" not in properties.get("SuccessExitStatus", ""):
        yield "it ends with status 143 when it is asked to stop, which counts as failure: set SuccessExitStatus=143"
    if properties.get("SendSIGKILL") == "no" and properties.get("TimeoutStopUSec") == "infinity":
        yield "SendSIGKILL=no and TimeoutStopSec=infinity: a stop may never end"
    elif properties.get("TimeoutStopUSec") == "infinity":
        yield "TimeoutStopSec=infinity: a stop waits for a hung worker for ever"
    if properties.get("Type") == "oneshot":
        yield "Type=oneshot: systemd waits for its end and takes it for starting until then"
    for path, key in _misplaced(case):
        yield f"{key}= in [Service] of {path} is ignored: it belongs in [Unit]"


def _misplaced(case: Case) -> Iterator[tuple[str, str]]:
    """systemd only warns of a key in the wrong section (StartLimitInterval= there is still read, for old units)."""
    files = case.looked.detail.files if case.looked is not None and case.looked.detail is not None else ()
    for file in files:
        section = ""
        for line in file.text.split("\n"):
            if heading := _SECTION.match(line):
                section = heading[1]
            elif section == "Service" and (found := _UNIT_KEYS.match(line)):
                yield file.path, found[1]


def waiting_to_start(unit: Unit, now: float) -> str:
    """How long a start has been going on, in words."""
    return ago(max(0.0, now - unit.since)) if unit.since is not None else "an unknown time"
