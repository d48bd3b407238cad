"""What the agent looks at for a diagnosis: the unit, its main process, its last runs, who else would start one.

Everything is bounded, runs side by side, and changes nothing; a part that fails is named and the rest is told.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable
from typing import TypeVar

from console.errors import HostError
from console.fleet.diagnosis.model import Health, Looked, MainProcess
from console.fleet.model import Ident, Role
from console.host import health, procfs
from console.host.cgroups import Hierarchy
from console.host.details import unit_detail
from console.host.processes import Scanner
from console.host.runs import runs_of
from console.host.secrets import masked_command
from console.host.starters import starters_of

T = TypeVar("T")
_ASLEEP = frozenset({"0", ""})  # /proc/PID/wchan of a process that runs, or that may not be seen


async def examine(
    name: str,
    ident: Ident | None,
    role: Role,
    scanner: Scanner,
    hierarchy: Hierarchy,
    user_manager: bool,
    read_only: bool,
    with_health: bool,
    with_starters: bool = True,
) -> Looked:
    """`name`: the unit, "" when it runs in none, then `ident` is its main process. HostError: neither is given."""
    if not name and ident is None:
        raise HostError("examine a worker", "neither a unit nor a process was named")
    problems: list[str] = []
    runs, detail, starters = await asyncio.gather(
        _part(runs_of(name, user_manager), problems) if name else _nothing(),
        _part(unit_detail(name, scanner, hierarchy, user_manager), problems) if name else _nothing(),
        _part(starters_of(role, _accounts(scanner, role), user_manager), problems) if with_starters else _nothing(),
    )
    properties = dict(detail.properties) if detail is not None else {}
    pid = ident.pid if ident is not None else int(properties.get("MainPID", "0") or 0)
    main, gone = main_process(pid, scanner.boot_id, scanner.boot_time) if pid else (None, False)
    if ident is not None and main is not None and main.ident.start != ident.start:
        main, gone = None, True
    said: Health | None = None
    if with_health and (main is not None or pid):
        account = properties.get("User", "") or (scanner.account(procfs.user_id(pid) or 0) if pid else "")
        said = await health.check(role, _instance(name), account, read_only)
    return Looked(
        at=time.time(),
        booted=scanner.boot_time,
        detail=detail,
        main=main,
        gone=gone,
        runs=runs[0] if runs is not None else (),
        runs_problem=runs[1] if runs is not None else "",
        starters=starters[0] if starters is not None else (),
        starters_problem=starters[1] if starters is not None else "",
        health=said,
        problems=tuple(problems),
    )


async def _part(work: Awaitable[T], problems: list[str]) -> T | None:
    try:
        return await work
    except HostError as error:
        problems.append(error.problem.line())
        return None


async def _nothing() -> None:
    return None


def _instance(name: str) -> str:
    return name.rpartition(".")[0].partition("@")[2]


def _accounts(scanner: Scanner, role: Role) -> list[str]:
    """Those that run workers of the role, root and the agent's own: where pm2 may have a list."""
    uids = {known.uid for known in scanner.known.values() if known.role == role.name}
    return [scanner.account(uid) for uid in sorted(uids | {0, os.geteuid()})]


def main_process(pid: int, boot_id: str, boot_time: float) -> tuple[MainProcess | None, bool]:
    """The process, and whether there is none. (None, False): it may not be seen."""
    stat = procfs.stat(pid)
    if stat is None:
        return None, not procfs.hidden()
    denied: list[str] = []
    program: str | None = None
    try:
        program = os.readlink(f"{procfs.PROC}/{pid}/exe")  # noqa: PTH115  what it says is wanted, also " (deleted)"
    except PermissionError:
        denied.append("its program: not permitted")
    except OSError:
        program = None
    files: int | None = None
    try:
        files = len(os.listdir(f"{procfs.PROC}/{pid}/fd"))  # noqa: PTH208  their number is enough
    except PermissionError:
        denied.append("its open files: not permitted")
    except OSError:
        files = None
    waits = (procfs.read_bytes(f"{procfs.PROC}/{pid}/wchan") or b"").decode("ascii", "replace").strip()
    return MainProcess(
        ident=Ident(boot_id, pid, stat.start),
        state=stat.state,
        command=masked_command(procfs.command(pid) or ()),
        cgroup=procfs.cgroup(pid) or "",
        started=round(boot_time + stat.start / procfs.TICKS, 2),
        program=program,
        open_files=files,
        open_files_limit=_files_limit(pid),
        waits_in="" if waits in _ASLEEP else waits,
        denied=tuple(denied),
    ), False


def _files_limit(pid: int) -> int | None:
    data = procfs.read_bytes(f"{procfs.PROC}/{pid}/limits")
    found = re.search(rb"^Max open files\s+(\d+)", data, re.MULTILINE) if data else None
    return int(found[1]) if found else None
