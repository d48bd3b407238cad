"""Careful readers of /proc/PID: each returns None (gone or not permitted) instead of raising, and is bounded."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import NamedTuple

from console.schedules.commands import words

PROC = "/proc"
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
NO_ID = 4294967295  # loginuid and sessionid of what was not started from a login

_LONGEST_COMMAND = 8192  # bytes of a command line that are kept
_LONGEST_ENVIRON = 256 * 1024

# Environment variables that tell of a starter; only their names are kept, their values may be secrets.
TELLING = words(
    "INVOCATION_ID JOURNAL_STREAM SYSTEMD_EXEC_PID MANAGERPID SUPERVISOR_ENABLED SUPERVISOR_PROCESS_NAME "
    "SUPERVISOR_GROUP_NAME PM2_HOME pm_id FOREVER_ROOT STY TMUX XDG_SESSION_ID XDG_SESSION_CLASS SSH_CONNECTION "
    "SSH_TTY SSH_CLIENT SUDO_USER SUDO_UID LOGNAME USER LANG TERM DISPLAY WAYLAND_DISPLAY MAILTO "
    "KUBERNETES_SERVICE_HOST container CRON_TZ"
)


class Stat(NamedTuple):
    """/proc/PID/stat, the fields that are used (proc(5))."""

    pid: int
    name: str
    state: str
    ppid: int
    group: int
    session: int
    tty: int
    ticks: int  # user and system time in clock ticks
    threads: int
    start: int  # clock ticks since boot
    rss: int  # bytes


def read_bytes(path: str, longest: int = 4096) -> bytes | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(handle, longest)
        while data and len(data) < longest and longest > 4096:
            more = os.read(handle, longest - len(data))
            if not more:
                break
            data += more
        return data
    except OSError:
        return None
    finally:
        os.close(handle)


def pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208  names are enough, and 5 times faster
    except OSError:
        return []


def parse_stat(data: bytes) -> Stat | None:
    """The name stands in parentheses and may itself hold parentheses, blanks and line ends."""
    opened, closed = data.find(b"("), data.rfind(b")")
    fields = data[closed + 1 :].split()
    if opened < 0 or closed < opened or len(fields) < 22:
        return None
    try:
        return Stat(
            pid=int(data[:opened]),
            name=data[opened + 1 : closed].decode("utf-8", "replace"),
            state=fields[0].decode("ascii", "replace"),
            ppid=int(fields[1]),
            group=int(fields[2]),
            session=int(fields[3]),
            tty=int(fields[4]),
            ticks=int(fields[11]) + int(fields[12]),
            threads=int(fields[17]),
            start=int(fields[19]),
            rss=int(fields[21]) * PAGE,
        )
    except ValueError:
        return None


def stat(pid: int) -> Stat | None:
    data = read_bytes(f"{PROC}/{pid}/stat")
    return parse_stat(data) if data else None


def command(pid: int) -> tuple[str, ...] | None:
    """The arguments; () for a kernel thread or a zombie, None when not readable."""
    data = read_bytes(f"{PROC}/{pid}/cmdline", _LONGEST_COMMAND)
    return None if data is None else parse_command(data)


def parse_command(data: bytes) -> tuple[str, ...]:
    """Arguments end with NUL; a process that renamed itself (setproctitle) leaves one text and many NULs."""
    parts = data.rstrip(b"\0").split(b"\0") if data.strip(b"\0") else []
    return tuple(part.decode("utf-8", "replace") for part in parts)


def user_id(pid: int) -> int | None:
    """The effective user id."""
    data = read_bytes(f"{PROC}/{pid}/status")
    found = re.search(rb"^Uid:\s+\d+\s+(\d+)", data, re.MULTILINE) if data else None
    return int(found[1]) if found else None


def cgroup(pid: int) -> str | None:
    """The group as systemd sees it: the line of cgroup v2, or of v1's name=systemd."""
    data = read_bytes(f"{PROC}/{pid}/cgroup", 16384)
    return None if data is None else parse_cgroup(data.decode("utf-8", "replace"))


def parse_cgroup(text: str) -> str:
    """On a hybrid host both lines are there, and name=systemd is the one that is filled everywhere."""
    unified = ""
    for line in text.split("\n"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "name=systemd":
            return path
        if line.startswith("0::"):
            unified = path
    return unified


def audit_number(pid: int, which: str) -> int | None:
    """`loginuid` or `sessionid`; None when there is none, or the kernel has no audit."""
    data = read_bytes(f"{PROC}/{pid}/{which}")
    try:
        number = int(data) if data else NO_ID
    except ValueError:
        return None
    return None if number == NO_ID else number


def environment_names(pid: int) -> tuple[tuple[str, ...], str]:
    """The telling names in the initial environment, and why it could not be read ("" when it could)."""
    try:
        with Path(f"{PROC}/{pid}/environ").open("rb") as file:
            data = file.read(_LONGEST_ENVIRON)
    except PermissionError:
        return (), "not permitted"
    except OSError:
        return (), ""
    names = {entry.partition(b"=")[0].decode("utf-8", "replace") for entry in data.split(b"\0")}
    return tuple(sorted(names & TELLING)), ""


def process_limit(pid: int) -> int | None:
    """Soft RLIMIT_NPROC; None: unlimited or not readable."""
    data = read_bytes(f"{PROC}/{pid}/limits")
    found = re.search(rb"^Max processes\s+(\d+)", data, re.MULTILINE) if data else None
    return int(found[1]) if found else None


def boot_id() -> str:
    data = read_bytes(f"{PROC}/sys/kernel/random/boot_id")
    return data.decode("ascii", "replace").strip() if data else ""


def boot_time() -> float:
    """Epoch seconds of the boot, by the host's clock now."""
    data = read_bytes(f"{PROC}/stat", 1024 * 1024)
    found = re.search(rb"^btime (\d+)", data, re.MULTILINE) if data else None
    return float(found[1]) if found else 0.0


def uptime() -> float:
    """Seconds since boot, by the clock that start times are counted with: no setting of the time moves it."""
    return round(time.clock_gettime(time.CLOCK_BOOTTIME), 2)


def hidden() -> bool:
    """Processes of other accounts are not shown to this one (mount option hidepid, or ProtectProc=)."""
    return os.getuid() != 0 and not os.access(f"{PROC}/1/stat", os.R_OK)


def login_session(number: str) -> dict[str, str]:
    """logind's file of a session: SERVICE, CLASS, TTY, REMOTE, LEADER, ...; {} when there is none.

    The file is private to logind and may change; the D-Bus calls would say the same but cost one call a session.
    """
    if not re.fullmatch(r"c?\d+", number):
        return {}
    data = read_bytes(f"/run/systemd/sessions/{number}")
    if not data:
        return {}
    pairs = (line.partition("=") for line in data.decode("utf-8", "replace").split("\n"))
    return {
        key: value for key, _, value in pairs if key in ("SERVICE", "CLASS", "TTY", "REMOTE", "REMOTE_HOST", "STATE")
    }


def folder(pid: int) -> str:
    """The working directory; "" when it may not be seen."""
    try:
        return os.readlink(f"{PROC}/{pid}/cwd")  # noqa: PTH115  what it says is wanted, also " (deleted)"
    except OSError:
        return ""
