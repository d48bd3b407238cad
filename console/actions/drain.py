"""Plans that let workers finish what they hold and end: of units, and of processes outside of them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec

from console.actions.programs import other_supervisor, wrappers
from console.actions.scene import Scene, look, room
from console.actions.unitdraft import Maker, Target, UnitDraft, one_role, targets_of
from console.errors import ConfigError
from console.fleet.choices import is_up
from console.fleet.model import Ident, Process, Role, Worker
from console.fleet.plan import Plan, Step
from console.fleet.rules.ownership import retired
from console.text import duration

PROCESS_TIMEOUT = 90.0  # seconds a process outside of units is given, as systemd's own TimeoutStopSec=


class DrainPlans(Maker):
    """Of units and of processes."""

    async def plan(
        self, units: Sequence[str], processes: Sequence[Ident], role: str, timeout: float | None, why: str
    ) -> Plan:
        """HostError: how the units are is not known. ConfigError: no such role, unit or process, or none was named."""
        if not units and not processes and not role:
            raise ConfigError(
                "drain", "neither a role nor workers were named", "worktop drain ROLE, or worktop drain UNIT"
            )
        scene = await look(self._config, self._host, self._reader)
        draft = UnitDraft("drain", scene, self._gates, why)
        targets = _targets(scene, units, processes, role)
        of_units = [target for target in targets if target[1].unit is not None and is_up(target[1])]
        strays = [target for target in targets if target[1].unit is None and target[1].processes]
        draft.nothing = "none of them runs"
        named = one_role(targets) or role
        await draft.permit(("stop", "kill"), [each.name for each, _ in of_units])
        if of_units or strays:
            draft.cannot_see_jobs(ends=True)
            draft.tell_jobs([*of_units, *strays], "it is left to finish", drain=False)
        rooms = {each.name: await room(self._reader, each) for each in dict.fromkeys(r for r, _ in of_units)}
        await draft.protect(self._host, [target for target in of_units if target[1].state != "running"], rooms)
        for _, worker in of_units:
            draft.steps.append(drain_step(worker, timeout))
            if worker.unit is not None and timeout is not None and timeout > worker.unit.timeout_stop:
                draft.warnings.append(
                    f"{worker.key}: if it tells systemd that it stops (sd_notify), systemd kills it after its "
                    f"TimeoutStopSec, {duration(worker.unit.timeout_stop)}; worktop limits can raise that"
                )
        for each, worker in strays:
            await self._stray(draft, each, worker, timeout)
        kept = [worker.key for _, worker in of_units if worker.unit is not None and worker.unit.enabled == "enabled"]
        if kept:
            one = len(kept) == 1
            draft.warnings.append(
                f"{kept[0] if one else f'{len(kept)} of them'} will start at the next boot: worktop disable prevents it"
            )
        if draft.steps:
            draft.reasons.append("nobody is killed unless that is agreed to when it has not ended in time")
        several = f"{len(targets)} workers" + (f" of {named}" if named else "")
        title = f"Drain {_called(targets[0][1]) if len(targets) == 1 else several}"
        return draft.plan(
            title,
            named,
            _command(units, processes, role, timeout),
            risk="medium",
            reversible="partly" if strays else "yes",
        )

    async def _stray(self, draft: UnitDraft, role: Role, worker: Worker, timeout: float | None) -> None:
        """A process that no unit of the role runs: through whoever would start it again, else by its identity."""
        main = worker.processes[0]
        draft.refuse(await self._gates.signal(main))
        owner = worker.owner
        patience = timeout if timeout is not None else PROCESS_TIMEOUT
        other = other_supervisor(main)
        if other is not None:
            draft.steps.append(other)
            return
        scene = draft.scene
        if owner.kind == "cron" and not retired(owner, scene.status(role.name), scene.fleet):
            draft.warnings.append(
                f"cron starts another: {owner.detail or owner.name}; disable that line first (worktop schedules)"
            )
        elif owner.kind == "systemd":
            draft.warnings.append(f"pid {main.ident.pid} belongs to {owner.name}, which may start it again")
        for parent in await wrappers(self._host, main):
            draft.steps.append(_signal(parent.ident, parent.name, patience, "it would start the worker again"))
        draft.steps.append(_signal(main.ident, main.name or worker.name, patience, "", worker.key))


def drain_step(worker: Worker, timeout: float | None) -> Step:
    """Ask the unit to end, wait for that, stop it; a kill is asked for."""
    assert worker.unit is not None
    patience = timeout if timeout is not None else worker.unit.timeout_stop
    pid = f" (pid {worker.unit.main_pid})" if worker.unit.main_pid else ""
    return Step(
        kind="unit",
        title=f"drain {worker.key}{pid}",
        text=(
            f"its stop signal, then up to {duration(patience)} for it to end; systemctl stop {worker.key} when it has; "
            "whether it is killed when it has not is asked"
        ),
        unit=worker.key,
        verb="stop",
        drains=True,
        alone=True,
        timeout=patience,
        undo=f"systemctl start {worker.key}",
    )


def _signal(ident: Ident, name: str, patience: float, why: str, key: str = "") -> Step:
    return Step(
        kind="signal",
        title=f"drain pid {ident.pid} ({name})",
        text=(
            f"SIGTERM through a pidfd, if pid {ident.pid} is still the process that started at tick {ident.start}; "
            f"then up to {duration(patience)} for it to end; whether it is killed when it has not is asked"
            + (f"; first, because {why}" if why else "")
        ),
        ident=ident,
        signal="TERM",
        drains=True,
        timeout=patience,
        unit=key,
    )


def _targets(scene: Scene, units: Sequence[str], processes: Sequence[Ident], role: str) -> list[Target]:
    if units or processes:
        return [*targets_of(scene, units), *(_of_process(scene, ident) for ident in dict.fromkeys(processes))]
    status = scene.status(role)
    return [(status.role, worker) for worker in status.workers if worker.processes or (worker.unit and is_up(worker))]


def _of_process(scene: Scene, ident: Ident) -> Target:
    """The worker this process is the main one of, or belongs to."""
    for status in scene.fleet.roles:
        for worker in status.workers:
            if any(process.ident == ident for process in worker.processes):
                if worker.unit is not None:
                    return status.role, worker
                own: list[Process] = [process for process in worker.processes if process.ident == ident]
                rest = [process for process in worker.processes if process.ident != ident]
                first = worker.processes[0]
                if first.ident == ident or first.main:  # a child would be started again by the main process
                    return status.role, worker
                return status.role, _with(worker, (*own, *rest))
    raise ConfigError(f"pid {ident.pid}", "it is no worker of a role, or has ended", "list them with worktop workers")


def _with(worker: Worker, processes: tuple[Process, ...]) -> Worker:
    return msgspec.structs.replace(worker, processes=processes)


def _called(worker: Worker) -> str:
    """Its unit, or the pid: the key of a process has its start time in it, which tells a person nothing."""
    return worker.key if worker.unit is not None else f"pid {worker.processes[0].ident.pid}"


def _command(units: Sequence[str], processes: Sequence[Ident], role: str, timeout: float | None) -> str:
    parts = ["worktop", "drain", *units]
    for ident in processes:
        parts += ["--pid", str(ident.pid)]
    if not units and not processes:
        parts.append(role)
    if timeout is not None:
        parts += ["--timeout", f"{timeout:g}s"]
    return shlex.join(parts)
