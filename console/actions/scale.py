"""Plans that bring a role to so many workers: which start or stop, whether there is room, and one at a time."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Sequence

import msgspec

from console.actions import words
from console.actions.drain import drain_step
from console.actions.gates import Gates
from console.actions.scene import Scene, look, room
from console.actions.steps.units import RUNS
from console.actions.switches import switch_step
from console.actions.unitdraft import Maker, UnitDraft, unloaded
from console.actions.units import PAST_RESTART, lift_limit, start_step
from console.config import Config
from console.errors import ConfigError
from console.fleet.budget import Budget, budget_of, room_of
from console.fleet.choices import Choice, is_up, to_start, to_stop
from console.fleet.diagnosis.model import QueueRoom
from console.fleet.model import Limits, Role, RoleStatus, Unit, Worker
from console.fleet.plan import Outcome, Plan, Watch
from console.fleet.workers import loops
from console.host.client import HostClient
from console.text import duration

MOST = 1000  # workers of a role
_NAMED = 12  # choices that are explained one by one
_TOLD_WITHIN = 3.0  # seconds the host may take to tell of the last unit
_ENABLED = ("enabled", "enabled-runtime")
_NO_SWITCH = ("static", "generated", "transient", "masked", "masked-runtime")


class ScalePlans(Maker):
    """Up and down."""

    async def plan(self, name: str, count: int, watch: float | None, at_boot: bool, why: str) -> Plan:
        """HostError: how the units are is not known. ConfigError: no such role, or it has no unit, or no such count."""
        if not 0 <= count <= MOST:
            raise ConfigError("scale", f"found {count}", f"expected a number from 0 to {MOST}")
        scene = await look(self._config, self._host, self._reader)
        status = scene.status(name)
        if not status.role.template:
            raise ConfigError(f"role {name}", "it has no unit", "set unit = in its table of worktop.toml")
        draft = ScaleDraft(scene, status, self._gates, why)
        running = draft.running
        draft.nothing = f"{running} of {name} run{'s' if running == 1 else ''} already"
        if count > running:
            asked = await room(self._reader, status.role)
            draft.refuse_over(count, budget(self._host, self._config.limits, status, count, asked))
            await draft.up(count, watch if watch is not None else status.role.watch)
        elif count < running:
            await draft.down(count)
        if at_boot and draft.steps:
            await draft.at_boot()
        if status.role.configured and count != len(status.role.instances) and draft.steps:
            draft.warnings.append(
                f"worktop.toml wants {len(status.role.instances)} of {name}: set instances = {count} there to keep it"
            )
        command = ["worktop", "scale", name, str(count)]
        command += [] if at_boot else ["--not-at-boot"]
        command += ["--watch", f"{watch:g}s"] if watch is not None else []
        return draft.plan(
            f"Scale {name} from {running} to {count}", name, shlex.join(command), risk="medium", reversible="yes"
        )


def budget(host: HostClient, limits: Limits, status: RoleStatus, count: int, asked: QueueRoom | None) -> Budget:
    """Whether so many workers of the role have room."""
    backends = host.facts.clients.value or ()
    up = {worker.key for worker in status.workers if is_up(worker)}
    own = sum(client.unit in up for client in backends)
    connections = (asked.connections, asked.connections_max) if asked is not None else (None, None)
    each = own / len(up) if own and up else None
    machine = host.facts.host.value
    return budget_of(status.role, count, room_of(status.role, status.workers, machine, limits, connections, each))


async def count_afterwards(plan: Plan, outcome: Outcome, host: HostClient, config: Config) -> Outcome:
    """How many run now, beside what was done: others may have started and stopped some meanwhile."""
    role = next((one for one in config.roles if one.name == plan.role), None)
    if role is None:
        return outcome
    steps = zip(plan.steps, outcome.steps, strict=False)
    done = [step for step, came in steps if came.state == "done" and step.kind == "unit" and step.unit]
    starts = {step.unit for step in done if step.verb == "start"}
    stops = {step.unit for step in done if step.verb == "stop"}
    deadline = time.monotonic() + _TOLD_WITHIN
    while True:
        units = [unit for unit in host.facts.units.value or () if unit.template == role.template]
        up = {unit.name for unit in units if unit.active in RUNS}
        lacking = sorted((starts - up) | (stops & up))
        if not lacking or time.monotonic() > deadline:
            break
        await asyncio.sleep(0.1)
    told, right = told_of(role.name, [unit for unit in units if unit.name in up], lacking, time.time())
    if right:
        return msgspec.structs.replace(outcome, verified=(*outcome.verified, told))
    return msgspec.structs.replace(outcome, not_verified=(*outcome.not_verified, told))


def told_of(role: str, up: Sequence[Unit], lacking: Sequence[str], now: float) -> tuple[str, bool]:
    """How many run, a sentence; whether they run as they should. One that fails again and again does not run."""
    again = sorted(unit.name for unit in up if unit.sub == "auto-restart" or loops(unit, now))
    running = len(up) - len(again)
    told = f"{running} of {role} run{'s' if running == 1 else ''} now"
    if again:
        told += (
            f"; {words.listed(again)} {'fails and is' if len(again) == 1 else 'fail and are'} started again and again"
        )
    if lacking:
        told += f"; not as this has left them: {words.listed(lacking)}"
    return told, not (again or lacking)


class ScaleDraft(UnitDraft):
    """The plan of one scale."""

    def __init__(self, scene: Scene, status: RoleStatus, gates: Gates, why: str) -> None:
        super().__init__("scale", scene, gates, why)
        self._status = status
        self._role: Role = status.role
        self._workers = {worker.key: worker for worker in status.workers}
        self.running = sum(is_up(worker) for worker in status.workers)
        self._chosen: list[Choice] = []
        self._grows = False

    def refuse_over(self, count: int, budget: Budget) -> None:
        """What is over a budget must be typed; the sums that hold are reasons."""
        for need in budget.needs:
            if need.fits:
                self.reasons.append(f"{need.kind}: {need.text}")
            else:
                self.typed.append(f"over the budget of {need.kind}: {need.text}")
        for sentence in budget.unknown:
            self.warnings.append(f"not known: {sentence}")

    async def up(self, count: int, seconds: float) -> None:
        """One at a time, each watched before the next."""
        await self.permit(("start",), (self._role.name,))
        chosen, lacking = to_start(self._role, self._status.workers, count - self.running)
        if lacking:
            self.refused.append(lacking)
        self._chosen, self._grows = list(chosen), True
        self._explain("starts")
        like = next(
            (worker.unit for worker in self._status.workers if worker.unit and worker.unit.load == "loaded"), None
        )
        lived = (like.restart_sec if like is not None else 0.1) + PAST_RESTART
        watch = Watch(kind="growth", seconds=seconds, lived=lived, jobs=bool(self._role.queues))
        counts = self._status.queue
        if counts is not None and counts.waiting.n == 0:
            self.warnings.append("no job waits: more workers have nothing to do")
        for choice in chosen:
            worker = self._worker(choice)
            if worker.state == "start-limit" and worker.unit is not None:
                self.steps.append(lift_limit(worker.unit))
            self.steps.append(start_step(worker, "start", watch, alone=False))
        if chosen:
            self.reasons.append(
                f"one at a time, each watched for {duration(seconds)}; it ends by itself when one more brings nothing, "
                "or more jobs fail"
            )
            self.cannot_see_jobs(ends=False)

    async def down(self, count: int) -> None:
        """Drained one after another."""
        await self.permit(("stop", "kill"), (self._role.name,))
        claims = self.scene.fleet.claims
        self._chosen = list(to_stop(self._status.workers, claims, self.running - count))
        self._explain("stops")
        self.cannot_see_jobs(ends=True)
        targets = [(self._role, self._worker(choice)) for choice in self._chosen]
        self.tell_jobs(targets, "it is left to finish", drain=False)
        self.steps += [drain_step(worker, None) for _, worker in targets]
        if self._chosen:
            self.reasons.append("each is asked to end and finishes what it holds; nobody is killed without a question")

    async def at_boot(self) -> None:
        """What runs is what starts at the next boot. Where that is not permitted, the rest is done all the same."""
        verb = "enable" if self._grows else "disable"
        names = [choice.unit for choice in self._chosen if self._switches(choice)]
        if not names:
            return
        refusal = await self.may("enable" if self._grows else "disable", self._role.name)
        if refusal is not None:
            self.warnings.append(f"the next boot is left as it is: {'; '.join(refusal.why)}")
            return
        self.steps.append(switch_step(names, "enable" if verb == "enable" else "disable"))

    def _switches(self, choice: Choice) -> bool:
        unit = self._worker(choice).unit
        enabled = unit.enabled if unit is not None else ""
        if enabled in _NO_SWITCH:
            return False
        return (enabled not in _ENABLED) if self._grows else (enabled in _ENABLED)

    def _explain(self, word: str) -> None:
        for choice in self._chosen[:_NAMED]:
            self.reasons.append(f"{choice.unit} {word}: {choice.why}")
        if len(self._chosen) > _NAMED:
            self.reasons.append(f"{len(self._chosen) - _NAMED} more {word.removesuffix('s')}, for the same reasons")

    def _worker(self, choice: Choice) -> Worker:
        known = self._workers.get(choice.unit)
        if known is not None and known.unit is not None:
            return known
        return unloaded(self._role, choice.unit)
