"""Plans for limits of a role's units: a drop-in of the template, proposed from what was measured, and the reload."""

from __future__ import annotations

import asyncio
import math
import shlex
import signal
import time
from collections.abc import Mapping, Sequence

import msgspec

from console.actions.diff import file_diff
from console.actions.draft import plan_id
from console.actions.gates import Gates
from console.actions.scene import look
from console.config import Config
from console.errors import ConfigError, HostError
from console.fleet import limits
from console.fleet.capacity import start_limit
from console.fleet.limits import Proposal
from console.fleet.model import Host, Role, Unit, Value
from console.fleet.operations import FileRead
from console.fleet.plan import Consent, FileEdit, Outcome, Plan, Step, Suggestion
from console.host.client import HostClient
from console.text import mask, size

_SYSTEM = "/etc/systemd/system"
_USER = "~/.config/systemd/user"  # of the agent's account
_SETTLE_SECONDS = 15.0  # until the units are told anew after the reload
_SHOWN = {"StartLimitIntervalSec": "StartLimitIntervalUSec", "RestartSec": "RestartUSec"} | {
    "TimeoutStopSec": "TimeoutStopUSec"
}


class LimitPlans:
    """Makes plans; changes nothing."""

    def __init__(self, config: Config, host: HostClient, gates: Gates) -> None:
        self._config = config
        self._host = host
        self._gates = gates

    async def plan(self, name: str, settings: Mapping[str, str] | None, why: str) -> Plan:
        """Without settings those that are proposed. ConfigError: no such role, or setting. HostError: no agent."""
        scene = await look(self._config, self._host, None)
        role = scene.status(name).role
        if not role.template:
            raise ConfigError(f"role {name}", "it has no unit", "set unit = in its table of worktop.toml")
        given = limits.checked(settings) if settings is not None else None
        others = tuple(status.role for status in scene.fleet.roles if status.role.name != name)
        draft = _Draft(role, others, self._host, self._config)
        draft.refuse(await self._gates.files())
        await draft.read()
        await draft.change(draft.proposed() if given is None else tuple(_asked(given)), given is not None)
        return draft.plan(given, why)


class _Edit(Value, frozen=True, kw_only=True):
    """A drop-in: as it is, and as it is to be."""

    file: FileRead
    content: bytes | None

    @property
    def same(self) -> bool:
        return self.file.content == self.content


class _Draft:
    """One plan in the making: the files and numbers it is made of."""

    def __init__(self, role: Role, others: tuple[Role, ...], host: HostClient, config: Config) -> None:
        self._role = role
        self._other_roles = others
        self._host = host
        self._config = config
        self._units: tuple[Unit, ...] = ()
        self._others: tuple[tuple[Role, tuple[Unit, ...]], ...] = ()
        self._shown: dict[str, str] = {}  # properties of one of the units
        self._machine: Host | None = None
        self._folder = _SYSTEM
        self._proposals: Sequence[Proposal] = ()
        self._edits: list[_Edit] = []
        self._after: list[Unit] = []
        self._refused: list[str] = []
        self._allow: list[str] = []
        self._warnings: list[str] = []
        self._typed: list[str] = []

    def refuse(self, consent: Consent | None) -> None:
        if consent is not None:
            self._refused += consent.why
            self._allow += consent.allow

    async def read(self) -> None:
        """What the units have now. HostError."""
        role, facts = self._role, self._host.facts
        units = facts.units.value or ()
        self._machine = facts.host.value
        self._units = _of(role, units)
        self._others = tuple((other, _of(other, units)) for other in self._other_roles)
        sample = next((unit.name for unit in self._units if not _later(unit)), role.unit_name("1"))
        self._shown = dict((await self._host.unit_detail(sample)).properties)
        if self._shown.get("LoadState") == "not-found":
            self._refused.append(f"{role.template} is not installed")
        if facts.hello is not None and facts.hello.manager == "user":
            self._folder = _USER

    def proposed(self) -> tuple[Proposal, ...]:
        stop = self._shown.get("TimeoutStopUSec", "")
        others = limits.taken_by(self._others)
        return limits.propose(self._counted(), others, self._machine, self._config.limits, stop)

    async def change(self, proposals: Sequence[Proposal], everywhere: bool) -> None:
        """The drop-ins that bring it about; `everywhere`: also where a unit has no need of it. HostError."""
        self._proposals = proposals
        total = self._machine.memory_total if self._machine is not None else None
        plain = [unit for unit in self._counted() if not _later(unit)]
        wanted = [
            each for each in proposals if everywhere or not plain or any(limits.needed_by(unit, each) for unit in plain)
        ]
        settings = {each.name: each.value for each in wanted}
        await self._edit(f"{self._role.template}.d/{limits.DROP_IN}", settings)
        self._after = [limits.changed(unit, settings, total) for unit in plain]
        for unit in self._units:
            if not (later := _later(unit)):
                continue
            needs = {each.name: each.value for each in proposals if everywhere or limits.needed_by(unit, each)}
            own = await self._overruled(unit, later)
            over = {name: value for name, value in needs.items() if name in own}
            inherited = {name: value for name, value in settings.items() if name not in own}
            if over:
                await self._edit(f"{unit.name}.d/{limits.OWN_DROP_IN}", over)
            self._after.append(limits.changed(unit, inherited | over, total))

    async def _overruled(self, unit: Unit, later: Sequence[str]) -> frozenset[str]:
        """Settings of the unit that drop-ins set which are read after the template's of worktop."""
        found: set[str] = set()
        for file in (await self._host.unit_detail(unit.name)).files:
            if file.path in later:
                found |= limits.settings_of(file.text.encode()).keys()
        return frozenset(found)

    async def _edit(self, name: str, settings: Mapping[str, str]) -> None:
        file = await self._host.read_file(f"{self._folder}/{name}")
        if file.problem:
            self._refused.append(f"{file.path} cannot be read: {file.problem}")
        foreign = limits.foreign_lines(file.content)
        if foreign and settings:
            self._refused.append(f"{file.path} has lines that worktop did not write: {mask(foreign[0])[:80]}")
            self._allow.append(f"move them to another drop-in: systemctl edit {self._role.template}")
        self._edits.append(
            _Edit(file=file, content=limits.drop_in(file.content, settings) if settings else file.content)
        )

    def plan(self, given: Mapping[str, str] | None, why: str) -> Plan:
        role, now = self._role, time.time()
        edits = [edit for edit in self._edits if not edit.same]
        settings = {each.name: each.value for each in self._proposals}
        empty = not self._refused and not edits
        if empty:
            nothing = "what was measured gives no reason to change them: name some with --set"
            self._refused.append(nothing if given is None else "they are so already")
        reasons = [self._told(each) for each in self._proposals]
        if edits:
            reasons += self._arithmetic(settings)
            self._look(settings)
        consent = Consent()
        if self._refused:
            consent = Consent(kind="refused", empty=empty, why=tuple(self._refused), allow=tuple(self._allow))
        elif self._typed:
            consent = Consent(kind="typed", word=role.name, why=tuple(self._typed))
        reload = Step(kind="reload", title="let systemd read its files again", text="systemctl daemon-reload")
        return Plan(
            id=plan_id(now),
            made=now,
            verb="limits",
            title=f"Set limits of {role.name}",
            role=role.name,
            risk="high" if self._typed else "medium",
            reasons=tuple(reasons),
            warnings=tuple(self._warnings),
            steps=(*map(_step, edits), reload) if edits else (),
            command=_command(role.name, given),
            consent=consent,
            why=why,
        )

    # ----------------------------------------------------------------------------------------------------------------

    def _counted(self) -> list[Unit]:
        """The units a limit is for: those that are loaded, and the desired ones that are not."""
        known = [unit for unit in self._units if unit.load == "loaded"]
        names = {unit.name for unit in known}
        like = next((unit for unit in known if not _later(unit)), Unit(name=""))
        missing = [name for name in self._role.desired_units() if name not in names]
        return known + [
            Unit(name=name, memory_max=like.memory_max, restart=like.restart, restart_sec=like.restart_sec)
            for name in missing
        ]

    def _told(self, proposal: Proposal) -> str:
        """ "MemoryMax from 256M to 512M: 1 of 4 was killed by it"."""
        shown = self._shown.get(_SHOWN.get(proposal.name, proposal.name), "")
        now = size(int(shown)) if proposal.name.startswith("Memory") and shown.isdecimal() else shown or "?"
        then = proposal.value or "what its own file says"
        change = f"from {now} to {then}" if now != then else f"{then} for all"
        return f"{proposal.name} {change}" + (f": {proposal.why}" if proposal.why else "")

    def _arithmetic(self, settings: Mapping[str, str]) -> list[str]:
        said: list[str] = []
        if "MemoryMax" in settings:
            budget = limits.budget(self._role, self._after, self._others, self._machine, self._config.limits)
            own = [unit.memory_max for unit in self._after if unit.memory_max is not None]
            if budget is not None and own:
                sums = f"{len(own)} × {size(max(own))}, with every other role and the reserve {size(budget.needed)}"
                said.append(f"memory: {sums} of {size(budget.total)}")
                if not budget.fits:
                    self._typed.append(f"over the budget: {sums} of {size(budget.total)}")
        if {"StartLimitIntervalSec", "StartLimitBurst", "RestartSec"} & settings.keys() and self._after:
            limit = start_limit(self._after[0])
            said.append(f"start limit: {limit.text}")
            if limit.enabled and not limit.reachable:
                self._warnings.append("the start limit will never be reached: a crash loop never ends")
        return said

    def _look(self, settings: Mapping[str, str]) -> None:
        """What a person should know before: who has more than the new limit, and what a reload does."""
        running = [unit for unit in self._units if unit.active == "active"]
        then = {unit.name: unit.memory_max for unit in self._after}
        beyond = [unit.name for unit in running if (unit.memory_now or 0) > (then.get(unit.name) or math.inf)]
        if "MemoryMax" in settings and beyond:
            names = ", ".join(beyond[:3]) + (" and others" if len(beyond) > 3 else "")
            self._typed.append(f"{names} takes more than that now: the kernel may kill it at once")
        if any(unit.memory_enforced is False for unit in running) and settings.get("MemoryMax"):
            self._warnings.append("the kernel holds no MemoryMax for these units: on this host it is a number only")
        if running:
            self._warnings.append(
                f"the reload makes them hold for the {len(running)} that run, none needs a restart; it also starts "
                "every unit's counter of the start limit anew"
            )


def _step(edit: _Edit) -> Step:
    path, before = edit.file.path, edit.file.content
    verb = "remove" if edit.content is None else "write" if before is None else "change"
    return Step(
        kind="file",
        title=f"{verb} {path}",
        text=file_diff(path, before, edit.content),
        file=FileEdit(path=path, expected=edit.file.sha256, content=edit.content, check="unit"),
        undo="its removal" if before is None else "the file as it was",
    )


def _later(unit: Unit) -> tuple[str, ...]:
    """Its drop-ins that are read after the template's of worktop, without those of worktop."""
    names = ((path, path.rpartition("/")[2]) for path in unit.drop_ins)
    return tuple(path for path, name in names if name > limits.DROP_IN and name != limits.OWN_DROP_IN)


def _asked(given: Mapping[str, str]) -> list[Proposal]:
    return [Proposal(name=name, value=value, why="") for name, value in given.items()]


def _of(role: Role, units: Sequence[Unit]) -> tuple[Unit, ...]:
    return tuple(unit for unit in units if role.template and role.template in (unit.template, unit.name))


def _command(role: str, given: Mapping[str, str] | None) -> str:
    sets = [f"--set {shlex.quote(f'{name}={value}')}" for name, value in (given or {}).items()]
    return " ".join(["worktop limits", shlex.quote(role), *sets])


# --- afterwards ------------------------------------------------------------------------------------------------------


async def look_afterwards(plan: Plan, outcome: Outcome, host: HostClient, config: Config) -> Outcome:
    """Whether systemd and the kernel have the settings now, and what is worth doing next."""
    if outcome.state != "done":
        return outcome
    role = (await look(config, host, None)).status(plan.role).role
    total = host.facts.host.value.memory_total if host.facts.host.value is not None else None
    wanted: dict[str, dict[str, str]] = {}  # by unit, or template
    for step in plan.steps:
        if step.file is not None:
            folder = step.file.path.rpartition("/")[0].rpartition("/")[2]
            wanted[folder.removesuffix(".d")] = limits.settings_of(step.file.content)
    memory = {
        name: limits.amount(settings["MemoryMax"], total)
        for name, settings in wanted.items()
        if "MemoryMax" in settings
    }
    units = await _told_again(role, host, memory)
    seen, unseen = list(outcome.verified), list(outcome.not_verified)
    of_memory = [unit for unit in units if _wants(unit, memory) is not None]
    held = [unit for unit in of_memory if unit.memory_max == _wants(unit, memory)]
    if of_memory:
        told = f"systemd has the new MemoryMax for {len(held)} of {len(of_memory)}"
        (seen if len(held) == len(of_memory) else unseen).append(told)
        running = [unit for unit in held if unit.active == "active"]
        kept = sum(unit.memory_enforced is True for unit in running)
        if running:
            told = f"the kernel holds it for {kept} of {len(running)} that run"
            (seen if kept == len(running) else unseen).append(told)
    for name, settings in wanted.items():
        asked = name if name in {unit.name for unit in units} else _sample(role, units)
        try:
            shown = dict((await host.unit_detail(asked)).properties)
        except HostError as error:
            unseen.append(error.problem.line())
            continue
        for setting, value in settings.items():
            now = shown.get(_SHOWN.get(setting, setting), "")
            if setting == "MemoryMax" or not now:
                continue
            right = limits.seconds(now) == limits.seconds(value) if setting in _SHOWN else now == value
            (seen if right else unseen).append(f"{asked} has {setting}={now}")
    suggestions = [
        Suggestion(
            title=f"Start {unit.name}, which was killed at its old limit",
            command=f"worktop start {unit.name}",
            verb="start",
            role=role.name,
            units=(unit.name,),
        )
        for unit in of_memory
        if unit.active == "failed" and unit.exit_status == signal.SIGKILL  # its peak is not near the new limit
    ]
    return msgspec.structs.replace(
        outcome, verified=tuple(seen), not_verified=tuple(unseen), next=(*outcome.next, *suggestions)
    )


def _wants(unit: Unit, memory: Mapping[str, int | None]) -> int | None:
    """The MemoryMax it was to get, in bytes; None: none."""
    return memory.get(unit.name, None if _later(unit) else memory.get(unit.template))


def _sample(role: Role, units: Sequence[Unit]) -> str:
    return next((unit.name for unit in units if not _later(unit)), role.unit_name("1"))


async def _told_again(role: Role, host: HostClient, memory: Mapping[str, int | None]) -> tuple[Unit, ...]:
    """The units as they are told after the reload; the last ones after a few seconds."""
    host.refresh()
    deadline = time.monotonic() + _SETTLE_SECONDS
    while True:
        units = tuple(unit for unit in _of(role, host.facts.units.value or ()) if unit.load == "loaded")
        due = [unit for unit in units if (wanted := _wants(unit, memory)) is not None and unit.memory_max != wanted]
        late = [unit for unit in units if _wants(unit, memory) and unit.active == "active" and not unit.memory_enforced]
        if not (due or late) or time.monotonic() > deadline:
            return units
        await asyncio.sleep(0.2)
