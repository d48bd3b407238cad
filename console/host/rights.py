"""What this account may do to the roles' units, found out without doing any of it.

CheckAuthorization of polkit answers root and the action's owner only when details (unit, verb) are passed, and the rule
needs them. So systemd itself is asked, with calls that it refuses after it has asked polkit, whatever polkit said:
a start or restart in the mode "triggering" (valid for stop alone), a stop in the mode "isolate" (valid for start
alone), a signal to a control process, and for enable and disable with an empty list of units. A systemd before 246
does not know the mode and refuses earlier, which is told as not known. reset-failed has no such call: it is taken to be
as start is, which holds for the rule of polkit.py.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable
from functools import partial

from console.fleet.model import Role
from console.fleet.operations import HostRights, UnitRight
from console.fleet.plan import UnitVerb
from console.host import polkit, procfs
from console.host.bus import Connection, NoAnswer, NotPermitted, Refused

_CALLS: tuple[tuple[UnitVerb, bytes, bytes], ...] = (
    ("start", b"StartUnit", b"triggering"),
    ("stop", b"StopUnit", b"isolate"),
    ("restart", b"RestartUnit", b"triggering"),
)
_EVERY: tuple[UnitVerb, ...] = (*polkit.VERBS, "enable", "disable")
_CAP_KILL, _CAP_SYS_PTRACE = 5, 19


async def rights_of(roles: Iterable[Role], user: str, user_manager: bool, read_only: bool, group: str) -> HostRights:
    """HostError when there is no bus."""
    roles = tuple(roles)
    uid = os.geteuid()
    everything = uid == 0 or user_manager
    units: list[UnitRight] = []
    connection = None
    try:
        for role in (role for role in roles if role.template):
            name = next(iter(role.desired_units()), role.unit_name("1"))
            if everything:
                units.append(UnitRight(role=role.name, unit=name, allowed=_EVERY))
                continue
            connection = connection or Connection(user_manager)
            units.append(_asked(connection, role.name, name))
            await asyncio.sleep(0)
    finally:
        if connection is not None:
            connection.close()
    lacking = {each.role for each in units if any(verb in each.refused for verb in polkit.VERBS)}
    return HostRights(
        user=user,
        uid=uid,
        read_only=read_only,
        units=tuple(units),
        processes="all" if uid == 0 or _capable() else "own",
        rule=polkit.rule(roles, group) if lacking else "",
        rule_path=polkit.RULE_PATH if lacking else "",
    )


def _asked(connection: Connection, role: str, name: str) -> UnitRight:
    files, _ = _may(connection.enable_nothing)
    answers: dict[UnitVerb, bool | None] = {"enable": bool(files), "disable": bool(files)}
    problem = ""
    for verb, method, mode in _CALLS:
        answers[verb], said = _may(partial(connection.make_job, method, name, mode))
        problem = problem or said
    answers["kill"], said = _may(lambda: connection.kill_unit(name, b"control", signal.SIGCONT))
    for verb in ("stop", "restart", "kill", "reset-failed"):
        if answers.get(verb) is None:
            answers[verb] = answers["start"]
    return UnitRight(
        role=role,
        unit=name,
        allowed=tuple(verb for verb in _EVERY if answers[verb]),
        refused=tuple(verb for verb in _EVERY if answers[verb] is False),
        problem=problem if answers["start"] is None else "",
    )


def _may(call: Callable[[], object]) -> tuple[bool | None, str]:
    """Whether systemd got past polkit; None, with its words, when it refused before."""
    try:
        call()
    except NotPermitted:
        return False, ""
    except Refused as error:
        why = error.problem.why
        before = isinstance(error, NoAnswer) or any(word in why for word in ("invalid", "not loaded", "not found"))
        return (None, why) if before else (True, "")
    return True, ""


def _capable() -> bool:
    """CAP_KILL and CAP_SYS_PTRACE without being root: a service with AmbientCapabilities=."""
    data = procfs.read_bytes(f"{procfs.PROC}/self/status", 8192) or b""
    for line in data.split(b"\n"):
        if line.startswith(b"CapEff:"):
            effective = int(line.split()[1], 16)
            return bool(effective >> _CAP_KILL & 1 and effective >> _CAP_SYS_PTRACE & 1)
    return False
