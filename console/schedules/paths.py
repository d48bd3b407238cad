"""Paths as a shell in a folder sees them. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from console.schedules import marks
from console.schedules.commands import words
from console.schedules.model import ScriptText

_SBIN = words(
    "logrotate cron crond anacron nginx apache2 httpd sshd ntpdate tmpwatch tmpreaper sendmail postfix exim4 ip "
    "iptables fstrim service update-rc.d useradd runuser sysctl mdadm zpool zfs btrfs"
)


def resolve(path: str, folder: str, home: str) -> str:
    """Absolute and without . and ..; `folder`: "" or a ~name stands for the home, "?" for a place nobody knows."""
    path = marks.concrete(path) if not marks.turns(path) else path
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    if path.startswith("/"):
        return _clean(path)
    if folder in ("", "?") or folder.startswith("~"):
        folder = home
    return _clean(f"{folder.rstrip('/')}/{path}")


def _clean(path: str) -> str:
    if "/." not in path and "//" not in path and not path.endswith("/"):
        return path
    return path if marks.has_marks(path) else posixpath.normpath("/" + path.lstrip("/"))


def search(name: str, path: str, read: Callable[[str], ScriptText | None]) -> ScriptText | None:
    """The first file of that name in PATH."""
    for folder in marks.concrete(path).split(":"):
        if folder.startswith("/"):
            found = read(f"{folder.rstrip('/')}/{name}")
            if found is not None:
                return found
    return None


def usual(name: str) -> str:
    """Where a distribution puts a program that was not found."""
    return f"/usr/sbin/{name}" if name in _SBIN else f"/usr/bin/{name}"
