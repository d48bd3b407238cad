"""What the detail of a unit shows, read when somebody looks: by children of the agent, so that nothing waits for it.

Properties come from `systemctl show`, whose forms of times, sizes and lists people know. Secrets are masked here: they
do not cross the pipe.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat

from console.errors import HostError
from console.fleet.model import UnitDetail, UnitFile
from console.host import journal
from console.host.cgroups import Hierarchy
from console.host.children import output_of
from console.host.processes import Scanner
from console.host.secrets import masked_file, masked_text
from console.host.trees import tree_of_group

_SHOW_SECONDS = 3.0
_LOG_LINES = 50
_LONGEST_FILE = 64 * 1024
_MOST_FILES = 50
_NAME = re.compile(r"[A-Za-z0-9:_.\\@-]{1,240}\.(?:service|socket|target|timer|slice|scope|mount|path)\Z")

# in the order they are told: what it is, its state, its last end, restarts, limits, how it is run and stopped
_TOLD = (
    "Description LoadState LoadError UnitFileState ActiveState SubState StatusText Result NeedDaemonReload "
    "TriggeredBy ConditionResult ConditionTimestamp "
    "StateChangeTimestamp ActiveEnterTimestamp InactiveEnterTimestamp ExecMainStartTimestamp ExecMainExitTimestamp "
    "MainPID ExecMainPID ExecMainCode ExecMainStatus InvocationID NRestarts "
    "Restart RestartUSec RestartPreventExitStatus SuccessExitStatus "
    "StartLimitIntervalUSec StartLimitBurst StartLimitAction "
    "MemoryCurrent MemoryPeak MemoryHigh MemoryMax MemorySwapMax OOMPolicy TasksCurrent TasksMax CPUUsageNSec "
    "CPUQuotaPerSecUSec CPUWeight LimitNOFILE LimitNPROC "
    "Type User Group DynamicUser WorkingDirectory RootDirectory EnvironmentFiles ExecStartPre ExecStart ExecReload "
    "ExecStop TimeoutStartUSec TimeoutStopUSec RuntimeMaxUSec WatchdogUSec KillMode KillSignal SendSIGKILL "
    "FragmentPath DropInPaths Slice ControlGroup"
)
_SHOWN = _TOLD.split()
_COMMANDS = frozenset({"ExecStartPre", "ExecStart", "ExecReload", "ExecStop"})
_ARGUMENTS = re.compile(r"argv\[\]=(.*?) ; (?:ignore_errors|flags)=")
_OPTIONS_OF_FILE = re.compile(r" \(ignore_errors=(?:yes|no)\)\Z")


async def unit_detail(name: str, scanner: Scanner, hierarchy: Hierarchy, user_manager: bool) -> UnitDetail:
    """HostError when `name` is no name of a unit, or systemd does not answer. A unit that does not exist has a
    detail: LoadState=not-found."""
    if not _NAME.match(name):
        raise HostError(f"detail of {name[:80]!r}", "that is no name of a unit")
    log = asyncio.create_task(journal.log_of(name, _LOG_LINES, user_manager))
    try:
        found = await _properties(name, user_manager)
        cgroup = found.get("ControlGroup", "")
        _measured(found, hierarchy, cgroup)
        files = []
        for path in [found.get("FragmentPath", ""), *_paths(found.get("DropInPaths", ""))][:_MOST_FILES]:
            if path:
                files.append(_file(path))
                await asyncio.sleep(0)
        tree = await tree_of_group(scanner, cgroup)
        lines, log_problem = await log
    finally:
        log.cancel()
    properties = tuple((key, found[key]) for key in _SHOWN if key in found)
    return UnitDetail(
        name=name, properties=properties, files=tuple(files), tree=tree, log=lines, log_problem=log_problem
    )


async def _properties(name: str, user_manager: bool) -> dict[str, str]:
    which = ["--user"] if user_manager else []
    command = ["systemctl", *which, "show", "--no-pager", f"--property={','.join(_SHOWN)}", "--", name]
    said = await output_of(command, _SHOW_SECONDS, 1024 * 1024)
    if said.status != 0:
        why = said.err.decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
        raise HostError(f"systemctl show {name}", why or f"ended with status {said.status}")
    found: dict[str, str] = {}
    for line in said.out.decode("utf-8", "replace").split("\n"):
        key, equals, value = line.partition("=")
        if not equals:
            continue
        if key in _COMMANDS:
            arguments = _ARGUMENTS.search(value)
            value = masked_text(arguments[1] if arguments else value)
        elif key == "EnvironmentFiles":
            value = _OPTIONS_OF_FILE.sub("", value)
        elif key in ("StatusText", "Description"):
            value = masked_text(value)
        # a list of files, or of commands, has a line for each
        found[key] = f"{found[key]} {value}" if key in found else value
    return found


def _measured(found: dict[str, str], hierarchy: Hierarchy, cgroup: str) -> None:
    """The group's own files where systemd says "[not set]": it does so when it cannot use the controller."""
    usage = hierarchy.usage(cgroup)
    for key, value in (("MemoryCurrent", usage.memory), ("MemoryPeak", usage.peak), ("TasksCurrent", usage.tasks)):
        if value is not None and not found.get(key, "").isdecimal():
            found[key] = str(value)


def _paths(text: str) -> list[str]:
    """`systemctl show` separates paths by blanks; one inside a path is written \\x20."""
    return [re.sub(r"\\x([0-9a-f]{2})", lambda code: chr(int(code[1], 16)), path) for path in text.split()]


def _file(path: str) -> UnitFile:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        return UnitFile(path=path, problem=_why(error))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            # /dev/null: the unit is masked
            return UnitFile(path=path, problem="" if os.path.realpath(path) == "/dev/null" else "no regular file")
        data = os.read(handle, _LONGEST_FILE + 1)
    except OSError as error:
        return UnitFile(path=path, problem=_why(error))
    finally:
        os.close(handle)
    cut = len(data) > _LONGEST_FILE
    text = masked_file(data[:_LONGEST_FILE].decode("utf-8", "replace"))
    return UnitFile(path=path, text=text, problem=f"longer than {_LONGEST_FILE} bytes: cut here" if cut else "")


def _why(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "not permitted"
    if isinstance(error, FileNotFoundError):
        return "it is gone: the unit was loaded from it before"
    return error.strerror or str(error)
