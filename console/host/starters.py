"""What beside the role's own unit starts workers of it, or would: other units, timers, supervisord, pm2, init scripts.

Files are read when somebody diagnoses, a few hundred small ones in slices; nothing is executed but `systemctl show`
for the units that were found. Crontabs are known elsewhere.
"""

from __future__ import annotations

import asyncio
import pwd
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from console.fleet.diagnosis.model import Starter
from console.fleet.model import Role
from console.host.children import output_of
from console.host.rooted import Root
from console.host.scripts import Scripts
from console.host.secrets import masked_text
from console.host.unit_tree import unit_tree
from console.schedules.launchers import classify
from console.schedules.model import Entry, Explained, Source
from console.schedules.others import pm2, started_unit, supervisord

UNIT_FOLDERS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
)
_USER_FOLDERS = ("~/.config/systemd/user", "/etc/systemd/user", "/usr/lib/systemd/user")
SUPERVISOR_FILES = ("/etc/supervisord.conf", "/etc/supervisor/supervisord.conf")
SUPERVISOR_FOLDERS = ("/etc/supervisor/conf.d", "/etc/supervisord.d")
_INIT_FOLDER = "/etc/init.d"
_RC_LOCAL = "/etc/rc.local"
_LONGEST = 256 * 1024  # bytes of a file
_SLICE_SECONDS = 0.01
_SHOW_SECONDS = 3.0


async def starters_of(
    role: Role, accounts: Iterable[str], user_manager: bool, root: str = "/"
) -> tuple[tuple[Starter, ...], str]:
    """Everything that was found, and what could not be read ("" when all could).

    `accounts`: those whose pm2 is looked for; `root`: where the host's files begin, for tests.
    """
    folders: tuple[str, ...] = UNIT_FOLDERS
    if user_manager:
        folders = tuple(str(Path(folder).expanduser()) for folder in _USER_FOLDERS)
    search = _Search(role, Root(root), folders)
    until = time.monotonic() + _SLICE_SECONDS
    for _ in search.steps(tuple(dict.fromkeys(accounts))):
        if time.monotonic() > until:
            await asyncio.sleep(0)
            until = time.monotonic() + _SLICE_SECONDS
    found = await _with_states(search.found, user_manager) if root == "/" else search.found
    unread = sorted(search.unread)
    more = f" and {len(unread) - 3} more" if len(unread) > 3 else ""
    return tuple(found), f"not permitted to read {', '.join(unread[:3])}{more}" if unread else ""


class _Search:
    def __init__(self, role: Role, root: Root, folders: tuple[str, ...]) -> None:
        self._folders = folders
        self._role = role
        self._root = root
        self._scripts = Scripts(root)
        self.found: list[Starter] = []
        self.unread: set[str] = set()

    def steps(self, accounts: tuple[str, ...]) -> Iterator[None]:
        yield from self._units()
        yield from self._supervisord()
        for account in accounts:
            self._pm2(account)
            yield
        yield from self._init()

    # --- units and timers -----------------------------------------------------------------------------------------

    def _units(self) -> Iterator[None]:
        prefix = self._role.template.partition("@")[0] + "@" if self._role.template else "\0"
        services: dict[str, Starter] = {}
        tree = yield from unit_tree(self._root, self._folders, "")
        self.unread.update(tree.denied)
        for name, found in tree.services.items():
            for command in found.text.values("ExecStart") if not name.startswith(prefix) else ():
                if self._starts(command.lstrip("-@:+!")):
                    services[name] = Starter(kind="unit", name=name, path=found.source.path, text=masked_text(command))
            yield
        started_by: set[str] = set()
        for timer in tree.timers.values():
            unit = started_unit(timer.text, timer.name)
            if unit in services or unit.startswith(prefix):
                started_by.add(unit)
                text = f"starts {unit}: {services[unit].text if unit in services else unit}"
                self.found.append(Starter(kind="timer", name=timer.name, path=timer.source.path, text=text))
        # the unit of a timer is told with it
        self.found += [starter for name, starter in services.items() if name not in started_by]

    # --- supervisord, pm2, init -----------------------------------------------------------------------------------

    def _supervisord(self) -> Iterator[None]:
        paths = [*SUPERVISOR_FILES]
        paths += [f"{folder}/{name}" for folder in SUPERVISOR_FOLDERS for name in self._names(folder)]
        for path in paths:
            yield
            text = self._read(path) if path.endswith((".conf", ".ini")) else ""
            self._programs("supervisord", supervisord(text, Source(kind="supervisord", path=path)), "program:")

    def _pm2(self, account: str) -> None:
        try:
            home = pwd.getpwnam(account).pw_dir
        except KeyError:
            return
        path = f"{home}/.pm2/dump.pm2"
        text = self._read(path)
        if text:
            self._programs("pm2", pm2(text.encode(), Source(kind="pm2", path=path, user=account)))

    def _programs(self, kind: Literal["supervisord", "pm2"], programs: tuple[Explained, ...], prefix: str = "") -> None:
        for entry in (each.entry for each in programs):
            if entry.command and self._starts(entry.command):
                name, text = f"{prefix}{entry.label}", masked_text(entry.command)
                self.found.append(Starter(kind=kind, name=name, path=entry.source.path, text=text))

    def _init(self) -> Iterator[None]:
        for path in [_RC_LOCAL, *(f"{_INIT_FOLDER}/{name}" for name in self._names(_INIT_FOLDER))]:
            yield
            text = self._read(path)
            if text and text.startswith("#!") and self._starts(text):
                self.found.append(
                    Starter(kind="init script", name=path.rpartition("/")[2], path=path, text=f"{path} starts it")
                )

    # --- reading --------------------------------------------------------------------------------------------------

    def _starts(self, command: str) -> bool:
        """Whether the text of a command, or a script it runs, starts a worker of the role."""
        entry = Entry(source=Source(kind="rc.local", path=""), line=1, expression="@reboot", command=command)
        line = classify(entry, owner="root", source="", home="/", read=self._scripts.read, roles=(self._role,))
        return self._role.name in line.roles

    def _names(self, folder: str) -> tuple[str, ...]:
        found = self._root.names(folder)
        if found.denied:
            self.unread.add(folder)
        return found.names

    def _read(self, path: str) -> str:
        """The text of a file; "" when there is none, or it may not be read."""
        found = self._root.read(path, _LONGEST)
        if found.denied:
            self.unread.add(path)
        return found.data.decode("utf-8", "replace")


async def _with_states(found: list[Starter], user_manager: bool) -> list[Starter]:
    """Units and timers with the states that systemd has of them; those it does not know stay as they are."""
    names = [starter.name for starter in found if starter.kind in ("unit", "timer") and "@." not in starter.name][:50]
    if not names:
        return found
    which = ["--user"] if user_manager else []
    said = await output_of(
        ["systemctl", *which, "show", "--no-pager", "--property=Id,ActiveState,UnitFileState", "--", *names],
        _SHOW_SECONDS,
    )
    states: dict[str, dict[str, str]] = {}
    for block in said.out.decode("utf-8", "replace").split("\n\n"):
        values = dict(line.partition("=")[::2] for line in block.split("\n") if "=" in line)
        states[values.get("Id", "")] = values
    return [
        msgspec.structs.replace(
            starter,
            active=states.get(starter.name, {}).get("ActiveState", ""),
            enabled=states.get(starter.name, {}).get("UnitFileState", ""),
        )
        for starter in found
    ]
