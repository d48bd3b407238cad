"""Reads the crontabs of this host, and the shell scripts their lines run, when one of them has changed.

Raw bytes of the files, because `crontab -l` hides lines and rewrites control characters. Without the right to read the
spool only the own crontab is asked for (`crontab -l`), and the problem says that there may be more.
"""

from __future__ import annotations

import os
import pwd
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from console.errors import Problem
from console.fleet.model import CronLine, Role
from console.host.children import output_of
from console.schedules.crontab import Crontab, Entry, parse
from console.schedules.launchers import classify, scripts_of
from console.schedules.shell import LONGEST

SYSTEM_TAB = "/etc/crontab"
SYSTEM_FOLDER = "/etc/cron.d"
SPOOLS = ("/var/spool/cron/crontabs", "/var/spool/cron")  # Debian; RHEL and others
_LONGEST_TAB = 1024 * 1024
_LIST_SECONDS = 5.0
IGNORED = "file-ignored"
_MORE_RIGHTS = "run the agent with more rights: agent in [host]"

# Debian's cron reads names of these characters only (run-parts rule); cronie reads all but these
_DEBIAN_NAME = re.compile(r"[A-Za-z0-9_-]+\Z")
_CRONIE_SKIPS = re.compile(r"\.|#|.*(?:~|\.rpmsave|\.rpmnew|\.rpmorig|\.swp|,v)\Z")

Stamp = tuple[int, int, int] | None  # mtime in ns, size, inode; None: not there


class Tab(NamedTuple):
    source: str
    owner: str  # "" for a system crontab
    data: bytes
    ignored: str  # why cron passes it over, "" when it does not


class Crontabs:
    """The lines as they were at the last `refresh`, and what could not be read."""

    def __init__(self, root: str = "/") -> None:
        """`root`: where the host's files begin, for tests."""
        self.lines: tuple[CronLine, ...] = ()
        self.problem: Problem | None = None
        self._root = Path(root)
        self._roles: tuple[Role, ...] = ()
        self._stamps: dict[str, Stamp] = {}
        self._stale = True

    def look_for(self, roles: Iterable[Role]) -> None:
        self._roles = tuple(roles)
        self._stale = True

    async def refresh(self) -> None:
        """Read again what changed; a few dozen stat calls when nothing did."""
        if not self._stale and all(self._stamp(path) == stamp for path, stamp in self._stamps.items()):
            return
        self._stale = False
        self._stamps = {}
        tabs, self.problem = await self._tabs()
        lines: list[CronLine] = []
        for tab in tabs:
            crontab = parse(tab.data, system=not tab.owner)
            lines += [self._line(entry, tab, crontab) for entry in crontab.entries]
        self.lines = tuple(lines)

    # --- one line ---------------------------------------------------------------------------------------------------

    def _line(self, entry: Entry, tab: Tab, crontab: Crontab) -> CronLine:
        owner = entry.user or tab.owner
        environment = dict(entry.environment)
        home = environment.get("HOME") or _home(owner)
        scripts, unread = self._scripts(entry.command, {**environment, "HOME": home}, home)
        line = classify(entry, owner=owner, source=tab.source, home=home, scripts=scripts, roles=self._roles)
        extra = [f"{path} could not be read: {why}" for path, why in unread.items()]
        faults = line.faults
        if tab.ignored:
            extra.append(tab.ignored)
            faults = (*faults, IGNORED)
        elif crontab.mistakes and self._path("/etc/debian_version").exists():
            mistake = crontab.mistakes[0]
            extra.append(
                f"line {mistake.line} of the file is wrong ({mistake.why}): Debian's cron ignores the whole file"
            )
            faults = (*faults, IGNORED)
        return msgspec.structs.replace(line, faults=faults, evidence=(*line.evidence, *extra))

    def _scripts(self, command: str, environment: dict[str, str], home: str) -> tuple[dict[str, str], dict[str, str]]:
        """path -> text of the shell scripts the command runs, and of those they run; and what could not be read."""
        texts: dict[str, str] = {}
        unread: dict[str, str] = {}
        waiting = [(path, 0) for path in scripts_of(command, environment, home)]
        while waiting and len(texts) < 20:
            path, level = waiting.pop(0)
            if path in texts or path in unread or path.startswith(("/dev/", "/proc/", "/sys/")):
                continue
            self._stamps[path] = self._stamp(path)
            try:
                data = self._read(path, LONGEST)
            except PermissionError:
                unread[path] = "not permitted"
                continue
            except OSError:
                continue
            if not _is_shell(data, path):
                continue
            texts[path] = data.decode("utf-8", "replace")
            if level == 0:
                waiting += [(inner, 1) for inner in scripts_of(texts[path], environment, home)]
        return texts, unread

    # --- the files --------------------------------------------------------------------------------------------------

    async def _tabs(self) -> tuple[list[Tab], Problem | None]:
        tabs: list[Tab] = []
        refused: list[str] = []
        for path in [SYSTEM_TAB, *self._system_files()]:
            self._take(path, "", tabs, refused)
        problem = None
        for spool in SPOOLS:
            self._stamps[spool] = self._stamp(spool)
            if self._stamps[spool] is None:
                continue
            try:
                names = sorted(path.name for path in self._path(spool).iterdir())
            except OSError:
                own, why = await self._own(spool)
                if own is not None:
                    tabs.append(own)
                problem = Problem(
                    "crontabs of other accounts", "not permitted" + (f"; {why}" if why else ""), _MORE_RIGHTS
                )
                break
            for name in names:
                if not name.startswith(".") and not name.startswith("tmp."):
                    self._take(f"{spool}/{name}", name, tabs, refused)
            break
        if refused and problem is None:
            problem = Problem(f"crontab {refused[0]}", "not permitted", _MORE_RIGHTS)
        return tabs, problem

    def _system_files(self) -> list[str]:
        self._stamps[SYSTEM_FOLDER] = self._stamp(SYSTEM_FOLDER)
        debian = self._path("/etc/debian_version").exists()
        try:
            names = sorted(path.name for path in self._path(SYSTEM_FOLDER).iterdir())
        except OSError:
            return []
        read = [name for name in names if (_DEBIAN_NAME.match(name) if debian else not _CRONIE_SKIPS.match(name))]
        return [f"{SYSTEM_FOLDER}/{name}" for name in read]

    def _take(self, path: str, owner: str, tabs: list[Tab], refused: list[str]) -> None:
        self._stamps[path] = self._stamp(path)
        try:
            if not stat.S_ISREG(self._path(path).stat().st_mode):
                return
            data = self._read(path, _LONGEST_TAB)
        except PermissionError:
            refused.append(path)
            return
        except OSError:
            return
        ignored = ""
        if not owner and path != SYSTEM_TAB:
            ignored = self._why_ignored(path)
        tabs.append(Tab(path, owner, data, ignored))

    def _why_ignored(self, path: str) -> str:
        """cron.c and database.c: a system file that others could write is passed over."""
        try:
            status = self._path(path).stat()
        except OSError:
            return ""
        if status.st_uid != 0:
            return "the file does not belong to root: cron ignores it"
        if status.st_mode & 0o022:
            return "the file can be written by others than root: cron ignores it"
        if status.st_nlink != 1:
            return "the file has more than one hard link: cron ignores it"
        return ""

    async def _own(self, spool: str) -> tuple[Tab | None, str]:
        """The own crontab by `crontab -l` (run again only when the spool's folder has changed), or why there is none.

        Having no crontab is no failure: status 1 and "no crontab for NAME".
        """
        account = pwd.getpwuid(os.geteuid()).pw_name
        listed = await output_of(["crontab", "-l"], _LIST_SECONDS)
        if listed.status == 0:
            return Tab(f"{spool}/{account}", account, listed.out[:_LONGEST_TAB], ""), ""
        why = listed.err.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return None, "" if "no crontab for" in why else f"crontab -l of {account}: {why or 'failed'}"

    def _read(self, path: str, longest: int) -> bytes:
        """A regular file's first bytes; OSError otherwise. Never waits: a fifo is no script."""
        handle = os.open(self._path(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError("no regular file")
            return os.read(handle, longest)
        finally:
            os.close(handle)

    def _path(self, path: str) -> Path:
        return self._root / path[1:]

    def _stamp(self, path: str) -> Stamp:
        try:
            status = self._path(path).stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


def _is_shell(data: bytes, path: str) -> bool:
    """A shell script: by its first line, or text without one (which a shell runs itself)."""
    if b"\0" in data[:4096]:
        return False
    if data.startswith(b"#!"):
        words = data.split(b"\n", 1)[0][2:].split()
        names = {word.rpartition(b"/")[2] for word in words}
        return bool(names & {b"sh", b"bash", b"dash", b"ash", b"ksh", b"zsh", b"mksh"})
    return not path.endswith((".py", ".pl", ".rb", ".php", ".js", ".conf", ".yml", ".toml", ".json", ".env", ".ini"))


def _home(account: str) -> str:
    try:
        return pwd.getpwnam(account).pw_dir
    except KeyError:
        return "/"
