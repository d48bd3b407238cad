"""Plans for units: restart (of several: one after another), start, stop, reset-failed, enable, disable, kill."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from console.actions.scene import Scene, look, room
from console.actions.switches import switch_step
from console.actions.unitdraft import Maker, Target, UnitDraft, one_role, targets_of
from console.errors import ConfigError
from console.fleet.choices import is_up
from console.fleet.model import Role, Unit, Worker
from console.fleet.plan import Plan, Step, UnitVerb, Watch
from console.fleet.workers import BROKEN_STATES
from console.text import duration

HEALTHY_WITHIN = 60.0  # seconds a restarted worker has until it must have claimed a job, where some wait
PAST_RESTART = 1.0  # seconds beyond its RestartSec=: then one that fails at once has shown it
JOB_TIMEOUT = 60.0
_ENDS: frozenset[UnitVerb] = frozenset({"stop", "restart", "kill"})
_SIGNALS = ("HUP", "INT", "QUIT", "KILL", "USR1", "USR2", "TERM", "CONT", "STOP", "ABRT")


class UnitPlans(Maker):
    """Restart, start, stop and the like."""

    async def plan(self, verb: UnitVerb, units: tuple[str, ...], role: str, signal: str, why: str) -> Plan:
        """HostError: how the units are is not known. ConfigError: no such role or unit, or none was named."""
        if not units and not role:
            raise ConfigError(
                verb, "neither a role nor units were named", f"worktop {verb} ROLE, or worktop {verb} UNIT"
            )
        signal = signal.upper().removeprefix("SIG")
        if verb == "kill" and signal not in _SIGNALS:
            raise ConfigError("signal", f"found {signal!r}", f"expected one of {', '.join(_SIGNALS)}")
        scene = await look(self._config, self._host, self._reader)
        draft = UnitDraft(verb, scene, self._gates, why)
        targets = targets_of(scene, units) if units else self._of_role(scene, role)
        chosen = [target for target in targets if _wants(verb, target[1], bool(units))]
        named = one_role(targets) or role
        draft.nothing = _nothing(verb, targets)
        await draft.permit((verb,), [role.name for role, _ in chosen])
        if chosen and verb in _ENDS:
            draft.cannot_see_jobs(ends=True)
            self._tell(draft, verb, signal, chosen)
        if chosen and verb in ("restart", "kill", "stop"):
            running = [target for target in chosen if is_up(target[1])]
            rooms = {each.name: await room(self._reader, each) for each in dict.fromkeys(r for r, _ in running)}
            await draft.protect(self._host, running, rooms)
        self._steps(draft, verb, signal, chosen)
        command = _command(verb, units, named, signal)
        return draft.plan(
            _title(verb, chosen or targets, named, signal),
            named,
            command,
            risk="high" if verb == "kill" else "medium" if verb in _ENDS else "low",
            reversible="no" if verb in ("restart", "kill", "reset-failed") else "yes",
        )

    def _of_role(self, scene: Scene, name: str) -> list[Target]:
        status = scene.status(name)
        if not status.role.template:
            raise ConfigError(f"role {name}", "it has no unit", "set unit = in its table of worktop.toml")
        return [(status.role, worker) for worker in status.workers if worker.unit is not None]

    def _tell(self, draft: UnitDraft, verb: UnitVerb, signal: str, chosen: Sequence[Target]) -> None:
        if verb == "kill":
            holding = [worker.key for _, worker in chosen if worker.jobs]
            draft.tell_jobs(chosen, f"SIG{signal} cuts it off, unless the worker handles that")
            if holding and signal in ("KILL", "ABRT", "QUIT"):
                draft.typed.append(f"SIG{signal} leaves the jobs of {', '.join(holding[:3])} claimed by a dead worker")
            return
        draft.tell_jobs(chosen, "it has its TimeoutStopSec to finish, then systemd kills it and the job stays claimed")
        if verb == "restart" and len(chosen) > 1:
            draft.reasons.append("one after another: the next only when the last one is healthy")
        if verb == "restart":
            stopped = [worker.key for _, worker in chosen if not is_up(worker)]
            if stopped:
                draft.reasons.append(f"{len(stopped)} of them {'does' if len(stopped) == 1 else 'do'} not run and will")
        if verb == "stop":
            kept = [worker.key for _, worker in chosen if worker.unit and worker.unit.enabled == "enabled"]
            if kept:
                draft.warnings.append(f"{_some(kept)} will start at the next boot: worktop disable prevents it")

    def _steps(self, draft: UnitDraft, verb: UnitVerb, signal: str, chosen: Sequence[Target]) -> None:
        if verb in ("enable", "disable"):
            if chosen:
                draft.steps.append(switch_step([worker.key for _, worker in chosen], verb))
            return
        rolling = verb == "restart" and len(chosen) > 1
        for role, worker in chosen:
            assert worker.unit is not None
            if verb in ("start", "restart") and worker.state == "start-limit":
                draft.steps.append(lift_limit(worker.unit))
            if verb in ("start", "restart"):
                draft.steps.append(start_step(worker, verb, self._watch(role, worker.unit, draft), alone=not rolling))
            else:
                draft.steps.append(_plain(worker, verb, signal))

    def _watch(self, role: Role, unit: Unit, draft: UnitDraft) -> Watch:
        jobs = bool(role.queues) and not draft.scene.unseen
        lived = unit.restart_sec + PAST_RESTART
        return Watch(kind="healthy", seconds=max(HEALTHY_WITHIN, lived), lived=lived, jobs=jobs)


def start_step(worker: Worker, verb: UnitVerb, watch: Watch, *, alone: bool) -> Step:
    """Start or restart it, and look until it is healthy."""
    name = worker.key
    pid = f" (pid {worker.unit.main_pid})" if verb == "restart" and worker.unit and worker.unit.main_pid else ""
    then = f"healthy: active for {duration(watch.lived)}"
    if watch.kind == "growth":
        then += f"; then watched for {duration(watch.seconds)}: no restart, memory below its limit, more jobs finished"
    elif watch.jobs:
        then += f", and where jobs wait it has claimed or finished one, within {duration(watch.seconds)}"
    return Step(
        kind="unit",
        title=f"{verb} {name}{pid}",
        text=f"systemctl {verb} {name}; {then}",
        unit=name,
        verb=verb,
        watch=watch,
        alone=alone,
        timeout=JOB_TIMEOUT,
        undo=f"systemctl stop {name}" if verb == "start" else "",
    )


def lift_limit(unit: Unit) -> Step:
    """systemd starts a unit again only when its start limit is lifted."""
    return Step(
        kind="unit",
        title=f"lift the start limit of {unit.name}",
        text=f"systemctl reset-failed {unit.name}",
        unit=unit.name,
        verb="reset-failed",
        alone=True,
        timeout=JOB_TIMEOUT,
    )


def _plain(worker: Worker, verb: UnitVerb, signal: str) -> Step:
    name = worker.key
    pid = f" (pid {worker.unit.main_pid})" if worker.unit is not None and worker.unit.main_pid else ""
    how = f"kill --signal=SIG{signal}" if verb == "kill" else verb
    return Step(
        kind="unit",
        title=f"send SIG{signal} to {name}{pid}" if verb == "kill" else f"{verb} {name}{pid if verb == 'stop' else ''}",
        text=f"systemctl {how} {name}",
        unit=name,
        verb=verb,
        signal=signal if verb == "kill" else "",
        alone=True,
        timeout=JOB_TIMEOUT,
        undo=f"systemctl start {name}" if verb == "stop" else "",
    )


def _wants(verb: UnitVerb, worker: Worker, named: bool) -> bool:
    """The verb would change something; a unit that was named is restarted whatever its state is."""
    unit = worker.unit
    if unit is None or unit.load in ("masked", "not-found"):
        return False
    if verb == "start":
        return not is_up(worker) and (named or worker.desired or worker.state in BROKEN_STATES)
    if verb == "restart":
        return named or is_up(worker) or worker.desired or worker.state in BROKEN_STATES
    if verb == "stop":
        return is_up(worker)
    if verb == "kill":
        return bool(unit.main_pid)
    if verb == "reset-failed":
        return unit.active == "failed"
    if verb == "enable":
        return unit.enabled not in ("enabled", "static", "generated", "transient")
    return unit.enabled in ("enabled", "enabled-runtime")


_LACKING: dict[UnitVerb, str] = {
    "start": "runs already",
    "stop": "runs",
    "restart": "can be restarted",
    "kill": "runs",
    "reset-failed": "is failed",
    "enable": "is enabled already, or has no [Install] section",
    "disable": "is enabled",
}
_LACKING_ALL: dict[UnitVerb, str] = {
    "start": "run already",
    "enable": "are enabled already, or have no [Install] section",
}


def _nothing(verb: UnitVerb, targets: Sequence[Target]) -> str:
    gone = [
        worker.key for _, worker in targets if worker.unit is not None and worker.unit.load in ("masked", "not-found")
    ]
    if gone:
        return f"{_some(gone)} cannot be loaded, or {'is' if len(gone) == 1 else 'are'} masked"
    every = "all of them" if verb in ("start", "enable") else "none of them"
    who = targets[0][1].key if len(targets) == 1 else every
    negated = " not" if len(targets) == 1 and verb not in ("start", "enable") else ""
    if negated:
        return f"{who}: nothing to {verb}"
    lacking = _LACKING[verb] if len(targets) == 1 else _LACKING_ALL.get(verb, _LACKING[verb])
    return f"{who} {lacking}"


def _title(verb: UnitVerb, targets: Sequence[Target], role: str, signal: str) -> str:
    word = f"Send SIG{signal} to" if verb == "kill" else verb.capitalize()
    several = f"{len(targets)} workers" + (f" of {role}" if role else "")
    what = targets[0][1].key if len(targets) == 1 else several
    boot = " at boot" if verb in ("enable", "disable") else ""
    return f"{word} {what}{boot}" + (", one after another" if verb == "restart" and len(targets) > 1 else "")


def _command(verb: UnitVerb, units: Sequence[str], role: str, signal: str) -> str:
    parts = ["worktop", verb, *(units or (role,))]
    if verb == "kill" and signal != "KILL":
        parts += ["--signal", signal]
    return shlex.join(parts)


def _some(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
