"""What a live worker has around it, compared with what the unit it would become gives it."""

from __future__ import annotations

import grp
import pwd
import re

from console.host import procfs
from console.schedules.inventory import Listed
from console.schedules.model import Account, LiveSurroundings
from console.schedules.surroundings import compare_surroundings

_LONGEST = 256 * 1024
_NICE = 16  # field of /proc/PID/stat after the name (proc(5): 19)
_LIMITS = {
    "Max open files": "NOFILE",
    "Max processes": "NPROC",
    "Max address space": "AS",
    "Max locked memory": "MEMLOCK",
    "Max stack size": "STACK",
    "Max core file size": "CORE",
    "Max file size": "FSIZE",
    "Max cpu time": "CPU",
    "Max data size": "DATA",
}
_LIMIT = re.compile(r"(Max [a-z ]+?)\s{2,}(\S+)\s+(\S+)")


def differences(listed: Listed, accounts: tuple[Account, ...]) -> tuple[str, ...]:
    """A sentence for each; nothing where no worker of the entry is alive, or it may not be looked at."""
    alive, explained = listed.alive, listed.explained
    units = [text for name, text in explained.units if name.endswith(".service")]
    if alive is None or not alive.runs or explained.kind != "launcher" or len(units) != 1 or not explained.roles:
        return ()
    pid = alive.runs[-1].pids[0]
    user = explained.roles[0].user or listed.entry.user
    live = live_surroundings(pid)
    if live is None:
        return ()
    account = next((each for each in accounts if each.name == user), None)
    own = groups_of(account) if account is not None else None
    home = account.home if account is not None else ""
    said = compare_surroundings(live, units[0], home=home, own_groups=own, language=_language())
    return tuple(f"pid {pid}: {text}" for text in said)


def live_surroundings(pid: int) -> LiveSurroundings | None:
    """None: it is gone, or not permitted."""
    environ = procfs.read_bytes(f"{procfs.PROC}/{pid}/environ", _LONGEST)
    status = procfs.read_bytes(f"{procfs.PROC}/{pid}/status")
    if environ is None or status is None:
        return None
    fields = dict(line.partition(":\t")[::2] for line in status.decode("utf-8", "replace").split("\n"))
    pairs = (pair.partition("=") for pair in environ.decode("utf-8", "replace").split("\0"))
    return LiveSurroundings(
        user=_account(pid),
        groups=tuple(_group(gid) for gid in fields.get("Groups", "").split()),
        environment=tuple((name, value) for name, equals, value in pairs if equals),
        folder=procfs.folder(pid),
        umask=int(fields["Umask"], 8) if "Umask" in fields else None,
        nice=_nice(pid),
        limits=_limits(pid),
    )


def groups_of(account: Account) -> tuple[str, ...]:
    """The groups a service with User= gets: the account's own and those that list it."""
    return (_group(str(account.gid)), *(each.gr_name for each in grp.getgrall() if account.name in each.gr_mem))


def _account(pid: int) -> str:
    uid = procfs.user_id(pid)
    try:
        return pwd.getpwuid(uid).pw_name if uid is not None else ""
    except KeyError:
        return str(uid)


def _group(gid: str) -> str:
    try:
        return grp.getgrgid(int(gid)).gr_name
    except (KeyError, ValueError):
        return gid


def _nice(pid: int) -> int:
    data = procfs.read_bytes(f"{procfs.PROC}/{pid}/stat") or b""
    fields = data[data.rfind(b")") + 1 :].split()
    return int(fields[_NICE]) if len(fields) > _NICE else 0


def _limits(pid: int) -> tuple[tuple[str, int | None, int | None], ...]:
    text = (procfs.read_bytes(f"{procfs.PROC}/{pid}/limits") or b"").decode("ascii", "replace")
    found = (_LIMIT.match(line) for line in text.split("\n"))
    return tuple(
        (_LIMITS[each[1]], _number(each[2]), _number(each[3])) for each in found if each and each[1] in _LIMITS
    )


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _language() -> str:
    """What systemd sets LANG to: locale.conf, or Debian's /etc/default/locale."""
    for path in ("/etc/locale.conf", "/etc/default/locale"):
        data = procfs.read_bytes(path)
        found = re.search(rb'^LANG="?([^"\n]*)', data, re.MULTILINE) if data else None
        if found:
            return found[1].decode("utf-8", "replace")
    return ""
