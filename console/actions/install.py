"""Plans that install files of units: the unit itself, its drop-ins, its environment file; then one reload."""

from __future__ import annotations

import time
from collections.abc import Sequence

from console.actions.diff import file_diff
from console.actions.draft import plan_id
from console.actions.gates import Gates
from console.actions.scene import host_answers
from console.errors import HostError
from console.fleet.plan import Consent, FileEdit, Plan, Step
from console.host.client import HostClient

UnitText = tuple[str, str, int]  # path, text, mode of a new file
SYSTEM_UNITS = "/etc/systemd/system"


class InstallPlans:
    """Makes plans; changes nothing."""

    def __init__(self, host: HostClient, gates: Gates) -> None:
        self._host = host
        self._gates = gates

    async def plan(self, files: Sequence[UnitText], role: str, why: str) -> Plan:
        """Environment files first, units last: nothing is there before what it needs. HostError: no agent."""
        await host_answers(self._host)
        refused: list[str] = []
        allow: list[str] = []
        warnings: list[str] = []
        steps: list[Step] = []
        gate = await self._gates.files()
        if gate is not None:
            refused += gate.why
            allow += gate.allow
        for path, text, mode in sorted(files, key=lambda file: (not file[0].endswith(".env"), file[0])):
            try:
                there = await self._host.read_file(path)
            except HostError as error:
                refused.append(error.problem.line())
                continue
            if there.problem:
                refused.append(f"{there.path} cannot be read: {there.problem}")
                continue
            content = text.encode()
            if there.content == content:
                continue
            if there.content is not None:
                warnings.append(f"{there.path} is there, and is replaced; a copy of it is kept")
            steps.append(
                Step(
                    kind="file",
                    title=f"{'write' if there.content is None else 'change'} {there.path}",
                    text=file_diff(there.path, there.content, content),
                    file=FileEdit(
                        path=there.path,
                        expected=there.sha256,
                        content=content,
                        mode=mode,
                        check="" if path.endswith(".env") else "unit",
                    ),
                    undo="its removal" if there.content is None else "the file as it was",
                )
            )
        empty = not steps and not refused
        if empty:
            refused.append("they are installed already, just so")
        if steps:
            steps.append(Step(kind="reload", title="let systemd read its files again", text="systemctl daemon-reload"))
        now, units = time.time(), [path.rpartition("/")[2] for path, _, _ in files if not path.endswith(".env")]
        consent = Consent(kind="refused", empty=empty, why=tuple(refused), allow=tuple(allow)) if refused else Consent()
        return Plan(
            id=plan_id(now),
            made=now,
            verb="install",
            title=f"Install {', '.join(units)}",
            role=role,
            risk="medium" if warnings else "low",
            reasons=("nothing is started by this: systemd only knows the unit afterwards",),
            warnings=tuple(warnings),
            steps=tuple(steps) if not refused else (),
            consent=consent,
            why=why,
        )
