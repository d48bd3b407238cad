"""Stopping a program of another supervisor: through its own command, or it would start the program again."""

from __future__ import annotations

import json
import os
import pwd
import re

from console.errors import HostError
from console.fleet.model import Ident
from console.host import procfs
from console.host.children import output_of
from console.host.protocol import SupervisorKind

_SECONDS = 120.0  # supervisord waits for stopwaitsecs=, by default 10
_LISTED = re.compile(r"^(\S+)\s+RUNNING\s+pid (\d+),", re.MULTILINE)


async def stop_program(kind: SupervisorKind, ident: Ident) -> str:
    """Stop the program whose process this is; a sentence. HostError: it is not in the supervisor's list, is not the
    process that was meant any more, or the command fails."""
    what = f"stop pid {ident.pid} through {kind}"
    stat = procfs.stat(ident.pid)
    if ident.boot_id != procfs.boot_id() or stat is None or stat.start != ident.start:
        raise HostError(what, f"pid {ident.pid} has ended", "look at it again")
    command = ["supervisorctl"] if kind == "supervisord" else _as_owner(ident.pid, "pm2")
    listed = await output_of([*command, *(["status"] if kind == "supervisord" else ["jlist"])], _SECONDS)
    if listed.status is None or not listed.out:
        raise HostError(what, (listed.err.decode("utf-8", "replace").strip() or "no answer")[:200])
    text = listed.out.decode("utf-8", "replace")
    name = program_of(text, ident.pid) if kind == "supervisord" else pm2_id_of(text, ident.pid)
    if not name:
        raise HostError(what, f"{kind} does not list it", "stop the program whose child it is")
    stopped = await output_of([*command, "stop", name], _SECONDS)
    if stopped.status != 0:
        said = (stopped.err or stopped.out).decode("utf-8", "replace").strip()
        raise HostError(f"{' '.join(command)} stop {name}", said[:200] or f"status {stopped.status}")
    return f"{kind} has stopped {name}"


def program_of(status: str, pid: int) -> str:
    """The name in `supervisorctl status` of the program that runs as this pid; "" when none does."""
    return next((name for name, number in _LISTED.findall(status) if int(number) == pid), "")


def pm2_id_of(listed: str, pid: int) -> str:
    """The id in `pm2 jlist` of the process that runs as this pid; "" when none does."""
    start = listed.find("[")  # pm2 may print a notice before it
    try:
        processes = json.loads(listed[start:]) if start >= 0 else []
    except ValueError:
        return ""
    for process in processes if isinstance(processes, list) else []:
        if isinstance(process, dict) and process.get("pid") == pid and isinstance(process.get("pm_id"), int):
            return str(process["pm_id"])
    return ""


def _as_owner(pid: int, program: str) -> list[str]:
    """pm2 has a daemon for each account."""
    uid = os.stat(f"{procfs.PROC}/{pid}").st_uid  # noqa: PTH116  it may be another root
    if uid == os.geteuid():
        return [program]
    account = pwd.getpwuid(uid)
    return ["runuser", "-u", account.pw_name, "--", "env", f"HOME={account.pw_dir}", program]
