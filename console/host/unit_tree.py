"""The unit files of a host, of the system and of users, with their drop-ins and whether something starts them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

from console.host.rooted import Root
from console.schedules.model import Account, Source
from console.schedules.others import UnitText, started_unit, unit_text

_FOR_ALL_USERS = ("/etc/systemd/user", "/run/systemd/user", "/usr/lib/systemd/user")
_OF_A_USER = ".config/systemd/user"
_OURS = ("/etc/", "/run/", "/home/", "/root/")  # what a person put there, rather than a package
_LONGEST = 256 * 1024  # bytes of a unit file


class UnitFound(NamedTuple):
    """A unit that is not masked; `wanted`: it is enabled, in the way that a link in some .wants folder is seen."""

    name: str
    source: Source
    text: UnitText
    wanted: bool
    own: bool  # a person wrote it


class UnitTree(NamedTuple):
    services: dict[str, UnitFound]
    timers: dict[str, UnitFound]
    denied: tuple[str, ...]

    def service_of(self, timer: UnitFound) -> UnitFound | None:
        name = started_unit(timer.text, timer.name)
        prefix, at, rest = name.partition("@")
        return self.services.get(name) or (self.services.get(f"{prefix}@.{rest.rpartition('.')[2]}") if at else None)


def folders_of_users(accounts: tuple[Account, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The folders of each account's user manager that may hold units."""
    for account in accounts:
        if account.home.startswith("/") and account.home != "/":
            yield account.name, (f"{account.home.rstrip('/')}/{_OF_A_USER}",)
    yield "", _FOR_ALL_USERS


def unit_tree(root: Root, folders: tuple[str, ...], user: str) -> Generator[None, None, UnitTree]:
    """Services and timers of these folders. The first one that has a name wins, as with systemd."""
    names: dict[str, tuple[str, ...]] = {}
    denied: list[str] = []
    for folder in folders:
        listed = root.names(folder)
        names[folder] = listed.names
        if listed.denied:
            denied.append(folder)
    wanted = {
        unit
        for folder in folders
        for name in names[folder]
        if name.endswith((".wants", ".requires"))
        for unit in root.names(f"{folder}/{name}").names
    }
    services: dict[str, UnitFound] = {}
    timers: dict[str, UnitFound] = {}
    seen: set[str] = set()
    for folder in folders:
        for name in names[folder]:
            if name in seen or not name.endswith((".service", ".timer")):
                continue
            seen.add(name)
            yield
            content = root.read(f"{folder}/{name}", _LONGEST)
            if content.problem:  # a masked unit is a link to a device
                if content.denied:
                    denied.append(f"{folder}/{name}")
                continue
            texts = [content.data, *_drop_ins(root, folders, names, name)]
            found = UnitFound(
                name,
                Source(kind="timer" if name.endswith(".timer") else "unit", path=f"{folder}/{name}", user=user),
                unit_text(tuple(text.decode("utf-8", "replace") for text in texts)),
                name in wanted or _instance_wanted(name, wanted),
                folder.startswith(_OURS) or ".config/" in folder,
            )
            (timers if name.endswith(".timer") else services)[name] = found
    return UnitTree(services, timers, tuple(denied))


def _drop_ins(root: Root, folders: tuple[str, ...], names: dict[str, tuple[str, ...]], unit: str) -> list[bytes]:
    found: dict[str, str] = {}
    for folder in reversed(folders):
        if f"{unit}.d" in names[folder]:
            for name in root.names(f"{folder}/{unit}.d").names:
                if name.endswith(".conf"):
                    found[name] = f"{folder}/{unit}.d/{name}"
    return [root.read(path, _LONGEST).data for _, path in sorted(found.items())]


def _instance_wanted(template: str, wanted: set[str]) -> bool:
    prefix, at, rest = template.partition("@")
    if not at or not rest.startswith("."):
        return False
    return any(each.startswith(f"{prefix}@") and each.endswith(rest) for each in wanted)
