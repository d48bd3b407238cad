"""Every entry of every source below a root: crontabs, run-parts folders, anacron, rc.local, timers, supervisord, pm2.

What cannot be read is a source with a problem; what is no schedule at all (binary, far too large) is one too. Nothing
is executed.
"""

from __future__ import annotations

import pwd
from collections.abc import Generator, Iterator
from typing import NamedTuple

import msgspec

from console.errors import Problem
from console.host import tabs
from console.host.rooted import Root
from console.host.starters import SUPERVISOR_FILES, SUPERVISOR_FOLDERS, UNIT_FOLDERS
from console.host.tabs import MORE_RIGHTS, Tab
from console.host.unit_tree import UnitFound, folders_of_users, unit_tree
from console.schedules.crontab import entries as crontab_entries
from console.schedules.crontab import without_header
from console.schedules.inventory import Unread
from console.schedules.managed import managers_of
from console.schedules.model import Account, Dialect, Entry, Explained, Source
from console.schedules.others import (
    anacrontab,
    kept_by_systemd,
    parts_line,
    pm2,
    service_entry,
    supervisord,
    timer_entry,
    whole_file,
)

_LONGEST = 1024 * 1024  # bytes of any other file


class Found(NamedTuple):
    """An entry; `ready`: what it is, where that needs no look at the command. `ignored`: why its file is passed over.
    `warnings`: what its file says of it, or might."""

    entry: Entry
    ready: Explained | None = None
    ignored: str = ""
    warnings: tuple[str, ...] = ()


class Gathered(NamedTuple):
    """Everything below a root; `units` are services, which are told of only where an entry starts the same."""

    found: tuple[Found, ...]
    units: tuple[Explained, ...]
    entries: tuple[Entry, ...]  # of both
    unread: tuple[Unread, ...]
    notes: tuple[str, ...]
    accounts: tuple[Account, ...]
    dialect: Dialect
    zone: str


def gather(root: Root, own: Tab | None = None) -> Generator[None, None, Gathered]:
    """Read all of it, with pauses. `own`: the account's own crontab where the spool may not be read."""
    return (yield from _Gathering(root).all(own))


class _Gathering:
    def __init__(self, root: Root) -> None:
        self._root = root
        self._cron = tabs.cron_of(root)
        self._accounts = accounts(root)
        self._found: list[Found] = []
        self._units: list[Explained] = []
        self._unread: list[Unread] = []

    def all(self, own: Tab | None) -> Generator[None, None, Gathered]:
        yield from self._tabs(own)
        yield from self._parts()
        yield from self._supervisors()
        yield from self._systemd()
        notes = (self._cron.absent,) if self._cron.absent and any(_by_cron(each) for each in self._found) else ()
        return Gathered(
            found=tuple(self._found),
            units=tuple(self._units),
            entries=(*(each.entry for each in self._found), *(each.entry for each in self._units)),
            unread=tuple(self._unread),
            notes=notes,
            accounts=self._accounts,
            dialect=self._cron.dialect,
            zone=zone(self._root),
        )

    # --- cron ---------------------------------------------------------------------------------------------------------

    def _tabs(self, own: Tab | None) -> Iterator[None]:
        root, dialect = self._root, self._cron.dialect
        uids = {account.name: account.uid for account in self._accounts}
        user_tabs = [own] if own is not None else []
        for tab in (
            *tabs.system_tabs(root, dialect),
            *tabs.user_tabs(root, uids),
            *user_tabs,
            *tabs.single_files(root),
        ):
            yield
            kind = tab.source.kind
            if not self._readable(tab):
                continue
            if kind == "rc.local":
                self._found.append(Found(whole_file(tab.source, "@reboot"), None, tab.ignored))
                continue
            data = tab.content.data
            read = anacrontab(data, tab.source) if kind == "anacron" else crontab_entries(data, tab.source, dialect)
            owned = managers_of(without_header(data)) if kind != "anacron" else {}
            for entry in read:
                manager = owned.get(entry.line)
                warnings = (*((tab.doubt,) if tab.doubt else ()), *((manager.warning,) if manager else ()))
                self._found.append(Found(_told(entry, tab.ignored), None, tab.ignored, warnings))

    def _parts(self) -> Iterator[None]:
        lines = tuple(each.entry for each in self._found)
        for tab in tabs.parts(self._root, self._cron.dialect):
            yield
            if not self._readable(tab):
                continue
            folder = tab.source.path.rpartition("/")[0]
            line = parts_line(lines, folder)
            entry = whole_file(tab.source, line.expression if line is not None else "")
            ignored = tab.ignored or ("" if line is not None else f"no line of cron or anacron runs {folder}")
            if line is not None:
                entry = msgspec.structs.replace(entry, environment=line.environment, label=line.label)
            self._found.append(Found(_told(entry, ignored), None, ignored))

    # --- supervisors --------------------------------------------------------------------------------------------------

    def _supervisors(self) -> Iterator[None]:
        root = self._root
        paths = [*SUPERVISOR_FILES]
        for folder in SUPERVISOR_FOLDERS:
            paths += [f"{folder}/{name}" for name in root.names(folder).names if name.endswith((".conf", ".ini"))]
        for path in paths:
            yield
            tab = Tab(Source(kind="supervisord", path=path), root.read(path, _LONGEST))
            if not tab.content.absent and self._readable(tab):
                self._ready(supervisord(tab.content.data.decode("utf-8", "replace"), tab.source))
        for account in self._accounts:
            yield
            path = f"{account.home.rstrip('/')}/.pm2/dump.pm2"
            tab = Tab(Source(kind="pm2", path=path, user=account.name), root.read(path, _LONGEST))
            if not tab.content.absent and not tab.content.denied and self._readable(tab):
                self._ready(pm2(tab.content.data, tab.source))

    def _ready(self, explained: tuple[Explained, ...]) -> None:
        self._found += [Found(each.entry, each) for each in explained]

    # --- systemd ------------------------------------------------------------------------------------------------------

    def _systemd(self) -> Iterator[None]:
        yield from self._manager("", UNIT_FOLDERS)
        hidden = []
        for user, folders in folders_of_users(self._accounts):
            yield
            if user and self._root.names(folders[0]).denied:
                hidden.append(user)
            elif not user or self._root.exists(folders[0]):
                yield from self._manager(user, folders)
        if hidden:
            named = ", ".join(hidden[:3]) + (f" and {len(hidden) - 3} more" if len(hidden) > 3 else "")
            problem = Problem(f"timers and pm2 of {named}", "not permitted", MORE_RIGHTS)
            self._unread.append(Unread(source=Source(kind="timer", path="~/.config/systemd/user"), problem=problem))

    def _manager(self, user: str, folders: tuple[str, ...]) -> Iterator[None]:
        tree = yield from unit_tree(self._root, folders, user)
        for path in tree.denied:
            problem = Problem(f"units in {path}", "not permitted", MORE_RIGHTS)
            self._unread.append(Unread(source=Source(kind="unit", path=path, user=user), problem=problem))
        for timer in tree.timers.values():
            service = tree.service_of(timer)
            if service is not None and (timer.wanted or timer.own):
                entry = timer_entry(timer.source, timer.text, service.text)
                entry = entry if timer.wanted else msgspec.structs.replace(entry, active=False)
                self._found.append(Found(entry, kept_by_systemd(entry, timer.name, service.name)))
        self._units += [_unit(each) for each in tree.services.values() if each.text.values("ExecStart")]

    # ------------------------------------------------------------------------------------------------------------------

    def _readable(self, tab: Tab) -> bool:
        """Whether there is something to read in it; else it is told as unread."""
        content = tab.content
        why, do = content.problem, MORE_RIGHTS if content.denied else ""
        if not why and b"\0" in content.data:
            why, do = "it holds a NUL byte: it is no text that can be understood", f"look at it: less {tab.source.path}"
        if why:
            what = tab.source.path + (f" (crontab of {tab.source.user})" if tab.source.kind == "user" else "")
            self._unread.append(Unread(source=tab.source, problem=Problem(what, why, do)))
        return not why


def _unit(unit: UnitFound) -> Explained:
    return kept_by_systemd(service_entry(unit.source, unit.text), unit.name, unit.name)


def _by_cron(found: Found) -> bool:
    return found.entry.source.kind not in ("timer", "unit", "supervisord", "pm2", "rc.local")


def _told(entry: Entry, ignored: str) -> Entry:
    """What cron does not read it does not run: the line says so."""
    return msgspec.structs.replace(entry, problems=(*entry.problems, ignored)) if ignored else entry


# --- accounts and zone ------------------------------------------------------------------------------------------------


def accounts(root: Root) -> tuple[Account, ...]:
    """The accounts of the root's passwd database; of this host also those with a crontab that only NSS knows."""
    groups = {row[2]: row[0] for row in _rows(root, "/etc/group", 3)}
    found = {
        row[0]: Account(
            name=row[0],
            uid=int(row[2]),
            gid=int(row[3]),
            home=row[5],
            shell=row[6] if len(row) > 6 else "",
            group=groups.get(row[3], ""),
        )
        for row in _rows(root, "/etc/passwd", 6)
        if row[2].isdecimal() and row[3].isdecimal()
    }
    for name in (name for spool in tabs.SPOOLS for name in root.names(spool).names) if root.here else ():
        try:
            known = pwd.getpwnam(name)
        except (KeyError, ValueError):
            continue
        found.setdefault(
            name,
            Account(name=name, uid=known.pw_uid, gid=known.pw_gid, home=known.pw_dir, shell=known.pw_shell),
        )
    return tuple(found.values())


def _rows(root: Root, path: str, least: int) -> list[list[str]]:
    text = root.read(path, 16 * _LONGEST).data.decode("utf-8", "replace")
    return [
        row for row in (line.split(":") for line in text.split("\n")) if len(row) >= least and row[0][:1] not in "#+-"
    ]


def zone(root: Root) -> str:
    """The name of the host's time zone: where /etc/localtime points, else /etc/timezone, else UTC."""
    _, found, name = root.link("/etc/localtime").partition("/zoneinfo/")
    if found and name:
        return name
    told = root.read("/etc/timezone", 256).data.decode("utf-8", "replace").split()
    return told[0] if told else "UTC"
