"""What beside the role's own unit starts workers of it, or would: other units, timers, supervisord, pm2, init scripts.

Files are read when somebody diagnoses, a few hundred small ones in slices; nothing is executed but `systemctl show`
for the units that were found. Crontabs are known elsewhere.
"""

from __future__ import annotations

import asyncio
import configparser
import os
import pwd
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from console.fleet.diagnosis.model import Starter
from console.fleet.model import Role
from console.host.children import output_of
from console.host.secrets import masked_text
from console.schedules.crontab import Entry
from console.schedules.launchers import classify, scripts_of

UNIT_FOLDERS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
)
_USER_FOLDERS = ("~/.config/systemd/user", "/etc/systemd/user", "/usr/lib/systemd/user")
_SUPERVISOR_FILES = ("/etc/supervisord.conf", "/etc/supervisor/supervisord.conf")
_SUPERVISOR_FOLDERS = ("/etc/supervisor/conf.d", "/etc/supervisord.d")
_INIT_FOLDER = "/etc/init.d"
_RC_LOCAL = "/etc/rc.local"
_LONGEST = 64 * 1024
_MOST_FILES = 3000
_SLICE_SECONDS = 0.01
_SHOW_SECONDS = 3.0


class _Pm2App(msgspec.Struct):
    name: str = ""
    pm_exec_path: str = ""
    args: list[str] | str | None = None


async def starters_of(
    role: Role, accounts: Iterable[str], user_manager: bool, root: str = "/"
) -> tuple[tuple[Starter, ...], str]:
    """Everything that was found, and what could not be read ("" when all could).

    `accounts`: those whose pm2 is looked for; `root`: where the host's files begin, for tests.
    """
    folders: tuple[str, ...] = UNIT_FOLDERS
    if user_manager:
        folders = tuple(str(Path(folder).expanduser()) for folder in _USER_FOLDERS)
    search = _Search(role, Path(root), folders)
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
    def __init__(self, role: Role, root: Path, folders: tuple[str, ...]) -> None:
        self._folders = folders
        self._role = role
        self._root = root
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
        timers: list[tuple[str, str, str]] = []  # name, path, the unit it starts
        seen: set[str] = set()
        for folder in self._folders:  # the first one wins, as with systemd
            for name in self._names(folder)[:_MOST_FILES]:
                if name in seen or not name.endswith((".service", ".timer")):
                    continue
                seen.add(name)
                yield
                text = self._read(f"{folder}/{name}")
                if text is None:
                    continue
                if name.endswith(".timer"):
                    started = _values(text, "Unit")
                    timers.append((name, f"{folder}/{name}", started[-1] if started else f"{name[:-6]}.service"))
                elif not name.startswith(prefix):
                    for command in _values(text, "ExecStart"):
                        if self._starts(command.lstrip("-@:+!")):
                            services[name] = Starter(
                                kind="unit", name=name, path=f"{folder}/{name}", text=masked_text(command)
                            )
        started_by: set[str] = set()
        for name, path, unit in timers:
            if unit in services or unit.startswith(prefix):
                started_by.add(unit)
                text = services[unit].text if unit in services else unit
                self.found.append(Starter(kind="timer", name=name, path=path, text=f"starts {unit}: {text}"))
        # the unit of a timer is told with it
        self.found += [starter for name, starter in services.items() if name not in started_by]

    # --- supervisord, pm2, init -----------------------------------------------------------------------------------

    def _supervisord(self) -> Iterator[None]:
        paths = [*_SUPERVISOR_FILES]
        paths += [f"{folder}/{name}" for folder in _SUPERVISOR_FOLDERS for name in self._names(folder)]
        for path in paths:
            yield
            text = self._read(path) if path.endswith((".conf", ".ini")) else None
            if not text:
                continue
            parser = configparser.RawConfigParser(strict=False, interpolation=None, inline_comment_prefixes=(";", " #"))
            try:
                parser.read_string(text)
            except configparser.Error:
                continue
            for section in parser.sections():
                command = parser.get(section, "command", fallback="")
                if section.startswith("program:") and command and self._starts(command):
                    self.found.append(Starter(kind="supervisord", name=section, path=path, text=masked_text(command)))

    def _pm2(self, account: str) -> None:
        try:
            home = pwd.getpwnam(account).pw_dir
        except KeyError:
            return
        path = f"{home}/.pm2/dump.pm2"
        text = self._read(path)
        if not text:
            return
        try:
            apps = msgspec.json.decode(text.encode(), type=list[_Pm2App])
        except (msgspec.DecodeError, UnicodeError):
            return
        for app in apps:
            arguments = app.args if isinstance(app.args, list) else (app.args or "").split()
            command = " ".join([app.pm_exec_path, *arguments])
            if self._starts(command):
                self.found.append(Starter(kind="pm2", name=app.name, path=path, text=masked_text(command)))

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
        texts: dict[str, str] = {}
        waiting = list(scripts_of(command, {"HOME": "/"}, "/"))
        while waiting and len(texts) < 10:
            path = waiting.pop(0)
            if path in texts or path.startswith(("/dev/", "/proc/", "/sys/")):
                continue
            text = self._read(path, told=False)
            if text is not None and text.startswith("#!") and "sh" in text.partition("\n")[0]:
                texts[path] = text
                waiting += scripts_of(text, {"HOME": "/"}, "/")
        entry = Entry(line=1, schedule="@reboot", user="", command=command)
        line = classify(entry, owner="root", source="", home="/", scripts=texts, roles=(self._role,))
        return self._role.name in line.roles

    def _names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(self._root / folder.lstrip("/")))  # noqa: PTH208  names are enough
        except PermissionError:
            self.unread.add(folder)
        except OSError:
            pass
        return []

    def _read(self, path: str, told: bool = True) -> str | None:
        try:
            handle = os.open(self._root / path.lstrip("/"), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except PermissionError:
            if told:
                self.unread.add(path)
            return None
        except OSError:
            return None
        try:
            return os.read(handle, _LONGEST).decode("utf-8", "replace")
        except OSError:  # a folder, or a device that does not answer
            return None
        finally:
            os.close(handle)


def _values(text: str, key: str) -> list[str]:
    """The values of a key of a unit file; continued lines are joined, an empty value forgets those before."""
    found: list[str] = []
    for line in text.replace("\\\n", " ").split("\n"):
        name, equals, value = line.strip().partition("=")
        if equals and name.strip() == key:
            found = [*found, value.strip()] if value.strip() else []
    return found


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
