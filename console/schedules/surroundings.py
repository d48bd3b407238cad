"""What a live worker has around it, compared with what systemd will give it. Pure.

What systemd 252 gives a service with User= (systemd.exec(5), tried): umask 0022, nice 0, / as its folder, 1024 open
files (524288 at most), the user's own groups, and PATH, LANG, HOME, LOGNAME, USER and SHELL beside its Environment=.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from console.schedules.model import LiveSurroundings
from console.text import mask

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DEFAULT_LIMITS: dict[str, tuple[int | None, int | None]] = {"NOFILE": (1024, 524_288)}
_WORDS = {
    "NOFILE": "open files", "NPROC": "processes", "AS": "address space", "MEMLOCK": "locked memory", "STACK": "stack",
    "CORE": "core dumps", "FSIZE": "file size", "CPU": "CPU seconds", "DATA": "data segment",
}  # fmt: skip
# set by the shell, cron, a terminal or a session for themselves: no worker is the poorer without them
_OF_THE_STARTER = re.compile(
    r"SHLVL|_|PWD|OLDPWD|MAILTO|MAILFROM|CRON_TZ|TERM|TMUX\w*|STY|WINDOW|XDG_\w+|SSH_\w+|SUDO_\w+|LS_COLORS|"
    r"INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_\w+|MANAGERPID|DBUS_SESSION_BUS_ADDRESS|LOGNAME|USER|HOME|SHELL|MEMORY_PRESSURE_\w+"
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def compare_surroundings(
    live: LiveSurroundings, unit: str, *, home: str = "", own_groups: Iterable[str] | None = None, language: str = ""
) -> tuple[str, ...]:
    """A sentence for each difference; none where the unit gives the same.

    `unit`: its text; `home`: of its user; `own_groups`: those the user has by the group database (None: not known);
    `language`: the host's LANG. Values that may be secret are masked.
    """
    settings = _settings(unit)
    given = _given(settings, language)
    return (
        *_environment(dict(live.environment), given, "EnvironmentFile" in settings),
        *_places(live, settings, home),
        *_rights(live, settings, own_groups),
        *_limits(live, settings),
    )


def _settings(unit: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in unit.splitlines():
        key, equals, value = line.partition("=")
        if equals and re.fullmatch(r"[A-Za-z]+", key):
            found.setdefault(key, []).append(value)
    return found


def _given(settings: dict[str, list[str]], language: str) -> dict[str, str]:
    given = {"PATH": DEFAULT_PATH} | ({"LANG": language} if language else {})
    for value in settings.get("Environment", []):
        for word in unquoted(value):
            name, _, text = word.partition("=")
            given[name] = text
    return given


def unquoted(value: str) -> list[str]:
    """The words of a setting as systemd reads them: quotes taken off, backslashes and %% undone."""
    words: list[str] = []
    current: str | None = None
    quote = ""
    place = 0
    while place < len(value):
        char = value[place]
        if char == "\\" and place + 1 < len(value):
            hexadecimal = re.match(r"x([0-9A-Fa-f]{2})", value[place + 1 :])
            following = value[place + 1]
            current = (current or "") + (
                chr(int(hexadecimal[1], 16)) if hexadecimal else _ESCAPES.get(following, following)
            )
            place += 4 if hexadecimal else 2
            continue
        if quote:
            if char == quote:
                quote = ""
            else:
                current = (current or "") + char
        elif char in "\"'":
            quote, current = char, current or ""
        elif char.isspace():
            if current is not None:
                words.append(current)
            current = None
        else:
            current = (current or "") + char
        place += 1
    return [word.replace("%%", "%") for word in (words if current is None else [*words, current])]


def _environment(live: dict[str, str], given: dict[str, str], from_file: bool) -> list[str]:
    said = []
    for name, value in sorted(live.items()):
        if _OF_THE_STARTER.fullmatch(name):
            continue
        now = mask(f"{name}={value}").partition("=")[2]
        if name not in given:
            if not from_file:
                said.append(f"{name} is {now!r} now and would not be set")
        elif given[name] != value:
            then = mask(f"{name}={given[name]}").partition("=")[2]
            said.append(f"{name} is {now!r} now and would be {then!r}")
    said += [
        f"{name} is not set now and would be {given[name]!r}"
        for name in ("LANG",)
        if name in given and name not in live
    ]
    return said


def _places(live: LiveSurroundings, settings: dict[str, list[str]], home: str) -> list[str]:
    folder = settings.get("WorkingDirectory", ["/"])[-1].replace("%%", "%").removeprefix("-")
    folder = home or live.folder if folder == "~" else folder
    said = []
    if live.folder and "%i" not in folder and live.folder.rstrip("/") != folder.rstrip("/"):
        said.append(f"it works in {live.folder} now and would in {folder}")
    umask = int(settings.get("UMask", ["0022"])[-1], 8)
    if live.umask is not None and live.umask != umask:
        said.append(f"its umask is {live.umask:04o} now and would be {umask:04o}: UMask={live.umask:04o} keeps it")
    return said


def _rights(live: LiveSurroundings, settings: dict[str, list[str]], own: Iterable[str] | None) -> list[str]:
    said = []
    user = settings.get("User", ["root"])[-1]
    if live.user and live.user != user:
        said.append(f"it runs as {live.user} now and would as {user}")
    if own is not None:
        given = {*own, *settings.get("Group", []), *" ".join(settings.get("SupplementaryGroups", [])).split()}
        extra = sorted(set(live.groups) - given)
        missing = sorted(given - set(live.groups))
        if extra:
            said.append(
                f"it is in {', '.join(extra)} now and would not be: SupplementaryGroups={' '.join(extra)} keeps it"
            )
        if missing:
            said.append(f"it is not in {', '.join(missing)} now and would be")
    nice = int(settings.get("Nice", ["0"])[-1])
    if live.nice != nice:
        said.append(f"its nice value is {live.nice} now and would be {nice}: Nice={live.nice} keeps it")
    return said


def _limits(live: LiveSurroundings, settings: dict[str, list[str]]) -> list[str]:
    said = []
    for name, soft, hard in live.limits:
        text = settings.get(f"Limit{name}", [""])[-1]
        if text:
            first, _, second = text.partition(":")
            given: tuple[int | None, int | None] = (_number(first), _number(second or first))
        elif name in _DEFAULT_LIMITS:
            given = _DEFAULT_LIMITS[name]
        else:
            continue
        if soft != given[0]:
            now, then = _limit(soft), _limit(given[0])
            keeps = f"Limit{name}={_limit(soft)}:{_limit(hard)}"
            said.append(
                f"its limit of {_WORDS.get(name, name.lower())} is {now} now and would be {then}: {keeps} keeps it"
            )
    return said


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _limit(value: int | None) -> str:
    return "infinity" if value is None else str(value)
