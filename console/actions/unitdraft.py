"""A plan for units in the making: steps, what the person must know, what they must agree to."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Iterable, Sequence
from typing import Literal

from console.actions import words
from console.actions.draft import plan_id
from console.actions.gates import Gates
from console.actions.remarks import Remarks
from console.actions.scene import Scene
from console.config import Config
from console.errors import ConfigError, HostError
from console.fleet.diagnosis import targets
from console.fleet.diagnosis.diagnose import diagnose
from console.fleet.diagnosis.model import Looked, QueueRoom
from console.fleet.model import Ident, Job, Role, Unit, Value, Worker
from console.fleet.plan import Consent, Plan, Step, UnitVerb, Verb
from console.host.client import HostClient
from console.queue.client import QueueClient
from console.text import duration

_EXAMINED = 8  # workers that are examined by the agent for a plan; of more, what is known with the fleet must do
_SHOWN = 5  # jobs and workers that are named
_NO_WARNING = frozenset({"healthy", "stopped on purpose"})
Target = tuple[Role, Worker]


class Maker:
    """What makes plans for units; it changes nothing."""

    def __init__(self, config: Config, host: HostClient, reader: QueueClient | None, gates: Gates) -> None:
        self._config = config
        self._host = host
        self._reader = reader
        self._gates = gates


class UnitDraft(Remarks):
    """What the makers of plans for units fill in."""

    def __init__(self, verb: Verb, scene: Scene, gates: Gates, why: str) -> None:
        super().__init__()
        self.verb = verb
        self.scene = scene
        self._gates = gates
        self._why = why
        self.steps: list[Step] = []
        self.jobs: list[Job] = []
        self.nothing = "there is nothing to do"

    async def permit(self, verbs: Iterable[UnitVerb], roles: Iterable[str]) -> None:
        """Refuse what the agent's account may not do to the units of these roles."""
        for verb in verbs:
            for role in dict.fromkeys(roles):
                self.refuse(await self._gates.unit(verb, role))

    async def may(self, verb: UnitVerb, role: str) -> Consent | None:
        """The refusal of a verb that the plan can do without."""
        return await self._gates.unit(verb, role)

    def cannot_see_jobs(self, ends: bool) -> None:
        """What the plan could not look at; where workers end, that must be agreed to by typing."""
        if not self.scene.unseen:
            return
        sentence = f"which jobs the workers hold is not known: {self.scene.unseen}"
        if ends and self.scene.unseen != "no database is configured":
            self.typed.append(sentence)
        else:
            self.warnings.append(sentence)

    def tell_jobs(self, workers: Sequence[Target], ends: str, drain: bool = True) -> None:
        """The jobs that those hold whose unit is about to end: `ends` is a clause on what becomes of them."""
        holding = [(role, worker, self.scene.claims(worker)) for role, worker in workers if worker.jobs]
        for _, worker, claims in holding[:_SHOWN]:
            named = [f"job {claim.job.id}{_for(claim.job)}" for claim in claims[:_SHOWN]]
            ids = words.listed(named or [f"job {job}" for job in worker.jobs])
            self.warnings.append(f"{worker.key} holds {ids}: {ends}")
        if len(holding) > _SHOWN:
            self.warnings.append(f"{len(holding) - _SHOWN} more hold jobs: {ends}")
        if holding and drain:
            names = " ".join(shlex.quote(worker.key) for _, worker, _ in holding[:_SHOWN])
            self.warnings.append(f"worktop drain {names} lets them finish first, and asks before it kills")
        self.jobs += [claim.job for _, _, claims in holding for claim in claims]

    async def protect(self, host: HostClient, workers: Sequence[Target], rooms: dict[str, QueueRoom | None]) -> None:
        """What a diagnosis says against it, as warnings with the reason."""
        looked = await _looked_at(host, workers) if len(workers) <= _EXAMINED else {}
        told = 0
        for role, worker in workers:
            status = self.scene.status(role.name)
            found = diagnose(self.scene.fleet, status, worker, looked.get(worker.key), rooms.get(role.name))
            if found.verdict in _NO_WARNING:
                continue
            told += 1
            if told <= _SHOWN:
                self.warnings.append(f"{worker.key}: {found.sentence}; {found.do_not}")
        if told > _SHOWN:
            self.warnings.append(f"{told - _SHOWN} more are not healthy: worktop diagnose says how")

    def plan(
        self,
        title: str,
        role: str,
        command: str,
        *,
        risk: Literal["low", "medium", "high"],
        reversible: Literal["yes", "partly", "no"],
    ) -> Plan:
        now = time.time()
        empty = not self.steps and not self.refused
        if empty:
            self.refused.append(self.nothing)
        consent = self.consent(role, empty=empty)
        return Plan(
            id=plan_id(now),
            made=now,
            verb=self.verb,
            title=title,
            role=role,
            risk="high" if self.typed else risk,
            reversible=reversible,
            reasons=tuple(dict.fromkeys(self.reasons)),
            warnings=tuple(dict.fromkeys(self.warnings)),
            claims=tuple(self.claims),
            samples=tuple(self.jobs[:_SHOWN]),
            steps=tuple(self.steps),
            command=command,
            consent=consent,
            why=self._why,
        )


def targets_of(scene: Scene, units: Sequence[str]) -> list[Target]:
    """The workers of these units. ConfigError: one is no unit of a role."""
    found = []
    for unit in dict.fromkeys(units):
        target = scene.worker(unit)
        if target is None or target[1].unit is None:
            roles = [status.role for status in scene.fleet.roles if status.role.template]
            role = next((role for role in roles if _is_instance(unit, role)), None)
            if role is None:
                templates = ", ".join(role.template for role in roles) or "none"
                raise ConfigError(f"unit {unit}", f"it is no worker of a role; units of the roles: {templates}")
            target = (role, unloaded(role, unit))
        found.append(target)
    return found


class Named(Value, frozen=True, kw_only=True):
    """What was named: a role, or workers."""

    role: str = ""
    units: tuple[str, ...] = ()
    processes: tuple[Ident, ...] = ()


def named_in(scene: Scene, names: Sequence[str]) -> Named:
    """A role among several names stands for its workers. ConfigError: there is nothing of that name."""
    if len(names) == 1 and any(status.role.name == names[0] for status in scene.fleet.roles):
        return Named(role=names[0])
    units: list[str] = []
    processes: list[Ident] = []
    for name in names:
        unit = _unit_named(scene, name)
        if unit:
            units.append(unit)
            continue
        target = targets.find(scene.fleet, name, "pid" if name.isdecimal() else None)
        for worker in scene.status(target.role).workers:
            if target.key not in ("", worker.key):
                continue
            if worker.unit is not None:
                units.append(worker.key)
            elif worker.processes and target.key:
                pid = int(name) if name.isdecimal() else worker.processes[0].ident.pid
                processes += [one.ident for one in worker.processes if one.ident.pid == pid]
    return Named(units=tuple(dict.fromkeys(units)), processes=tuple(dict.fromkeys(processes)))


def _unit_named(scene: Scene, name: str) -> str:
    """ "mail@7", "mail-worker@7" and "mail-worker@7.service" of an instance that systemd has not loaded; or ""."""
    before, at, instance = name.removesuffix(".service").partition("@")
    for status in scene.fleet.roles:
        prefix = status.role.template.partition("@")[0]
        if at and instance and status.role.template and before in (status.role.name, prefix):
            return status.role.unit_name(instance)
    return ""


def one_role(workers: Sequence[Target]) -> str:
    """The role of all of them; "" when they are of several."""
    names = {role.name for role, _ in workers}
    return next(iter(names)) if len(names) == 1 else ""


def _is_instance(unit: str, role: Role) -> bool:
    prefix, _, suffix = role.template.partition("@")
    return unit.startswith(f"{prefix}@") and unit.endswith(suffix) and unit != role.template


def unloaded(role: Role, unit: str) -> Worker:
    """An instance that systemd has not loaded and nobody wants so far."""
    name = f"@{unit.partition('@')[2].removesuffix('.service')}"
    bare = Unit(name=unit, load="not-loaded")
    return Worker(key=unit, role=role.name, name=name, state="stopped", desired=False, unit=bare)


def _for(job: Job) -> str:
    return f" ({job.type}, runs {duration(job.running_for)})" if job.running_for is not None else ""


async def _looked_at(host: HostClient, workers: Sequence[Target]) -> dict[str, Looked]:
    """By key; one that cannot be looked at is left out."""
    found: dict[str, Looked] = {}
    gate = asyncio.Semaphore(2)

    async def look(role: Role, worker: Worker) -> None:
        if worker.unit is None:
            return
        async with gate:
            try:
                found[worker.key] = await host.examine(role, worker.key, starters=False)
            except HostError:
                return

    await asyncio.gather(*(look(role, worker) for role, worker in workers))
    return found
