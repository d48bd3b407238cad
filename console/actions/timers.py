"""Plans that let timers run, also at boot, or end that."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence

from console.actions.draft import plan_id
from console.actions.gates import Gates
from console.actions.scene import host_answers
from console.actions.switches import switch_step
from console.errors import ConfigError
from console.fleet.plan import Consent, Plan, Step
from console.host.client import HostClient

_TIMEOUT = 60.0


class TimerPlans:
    """Makes plans; changes nothing."""

    def __init__(self, host: HostClient, gates: Gates) -> None:
        self._host = host
        self._gates = gates

    async def plan(self, timers: Sequence[str], on: bool, why: str) -> Plan:
        """What is as wanted already has no step. ConfigError: one is no timer. HostError."""
        for name in timers:
            if not name.endswith(".timer"):
                raise ConfigError(f"unit {name}", "it is no timer", "name it with .timer at its end")
        await host_answers(self._host)
        gate = await self._gates.files()  # whoever may write units may let them run
        steps: list[Step] = []
        switched: list[str] = []
        for name in timers:
            there = dict((await self._host.unit_detail(name)).properties)
            if (there.get("ActiveState") == "active") != on:
                steps.append(_step(name, on))
            if (there.get("UnitFileState") == "enabled") != on:
                switched.append(name)
        if switched:
            steps.append(switch_step(switched, "enable" if on else "disable"))
        refused = (*(gate.why if gate is not None else ()), *(() if steps else (_as_it_is(timers, on),)))
        consent = Consent(kind="refused", empty=gate is None, why=refused, allow=gate.allow if gate is not None else ())
        now, verb = time.time(), "start" if on else "stop"
        named = timers[0] if len(timers) == 1 else f"{len(timers)} timers"
        return Plan(
            id=plan_id(now),
            made=now,
            verb="start" if on else "stop",
            title=f"{verb.capitalize()} {named}",
            risk="low",
            steps=tuple(steps) if not refused else (),
            command=f"systemctl {'enable' if on else 'disable'} --now {shlex.join(timers)}",
            consent=consent if refused else Consent(),
            why=why,
        )


def _step(name: str, on: bool) -> Step:
    verb = "start" if on else "stop"
    return Step(
        kind="unit",
        title=f"{verb} {name}",
        text=f"systemctl {verb} {name}",
        unit=name,
        verb=verb,
        alone=True,
        timeout=_TIMEOUT,
        undo=f"systemctl {'stop' if on else 'start'} {name}",
    )


def _as_it_is(timers: Sequence[str], on: bool) -> str:
    return f"{', '.join(timers)} {'runs' if on else 'does not run'} already"
