"""What a crontab line starts: which roles' workers, how many a tick, guarded by what, and with which faults. Pure.

The line is read together with the text of the shell scripts it runs, two levels deep; nothing is executed. What cannot
be seen stays unknown, and the evidence says from which text each conclusion comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from console.fleet.model import CronLine, Role
from console.schedules import guards
from console.schedules.carriers import DROP_DESCRIPTORS, name_of, open_carriers
from console.schedules.commands import Matcher, words
from console.schedules.crontab import Entry, per_hour
from console.schedules.shell import Simple, simple_commands

Kind = Literal["launcher", "watchdog", "periodic", "at-boot", "unknown"]

GUARD_MATCHES_ITSELF = "guard-matches-itself"
GUARD_NEVER_MATCHES = "guard-never-matches"
LOCK_RELEASED_EARLY = "lock-released-early"

_BUILTINS = words(
    "cd exit export set unset source . : true false test [ [[ echo printf read wait sleep logger date mkdir rm "
    "touch cat chmod chown ulimit umask trap return shift eval exec ps grep egrep pgrep pidof pkill kill killall "
    "wc head tail awk sed cut sort uniq tr hostname id whoami basename dirname seq expr let local declare "
    "readonly break continue"
)
_BOUNDED = ("--once", "--stop-when-empty", "--burst", "--max-time", "--max-jobs", "--one-shot", "--oneshot", "--drain")
_STARTING_VERBS = frozenset({"start", "restart", "try-restart", "reload-or-restart", "try-reload-or-restart"})


class Start(NamedTuple):
    """One command that may start a worker, with everything around it."""

    words: tuple[str, ...]
    role: str
    times: int | None
    background: bool
    carriers: tuple[tuple[str, ...], ...]
    closes_lock: bool
    where: str  # "" on the line itself, else the script's path
    by_systemd: bool = False


class _Seen(msgspec.Struct):
    starts: list[Start] = []
    lookups: list[tuple[guards.Lookup, str]] = []  # with the script it stands in, "" for the line
    guards: list[str] = []  # words for the evidence


def scripts_of(text: str, environment: Mapping[str, str], home: str) -> tuple[str, ...]:
    """Absolute paths of the files the text runs or reads as shell scripts; to be read by the caller, if they are."""
    found: list[str] = []
    folder = home
    for simple in simple_commands(text, environment):
        folder = _changed_folder(simple.words, folder, home)
        path = _script_path(open_carriers(simple.words).words, folder, home)
        if path:
            found.append(path)
    return tuple(dict.fromkeys(found))


def classify(
    entry: Entry,
    *,
    owner: str,
    source: str,
    home: str,
    scripts: Mapping[str, str],
    roles: Sequence[Role],
) -> CronLine:
    """One line as it is told; `scripts`: path -> text of the shell scripts that could be read."""
    environment = dict(entry.environment)
    environment.setdefault("HOME", home)
    environment.setdefault("LOGNAME", owner)
    matcher = Matcher(tuple(roles))
    seen = _Seen()
    _walk(entry.command, environment, home, home, scripts, roles, matcher, seen, "", (), 1, False, False, 0)
    starts = [start for start in seen.starts if start.role]
    kind = _kind(entry, seen, starts)
    shell = environment.get("SHELL", "/bin/sh")
    faults, faulty = _faults(entry, seen, starts, shell, kind)
    return CronLine(
        owner=owner,
        source=source,
        line=entry.line,
        schedule=entry.schedule,
        command=entry.command,
        per_hour=per_hour(entry.schedule),
        roles=tuple(dict.fromkeys(start.role for start in starts)),
        kind=kind,
        workers_per_tick=_count(starts),
        faults=faults,
        evidence=(*_evidence(seen, starts, kind), *faulty),
    )


def _walk(
    text: str,
    environment: Mapping[str, str],
    folder: str,
    home: str,
    scripts: Mapping[str, str],
    roles: Sequence[Role],
    matcher: Matcher,
    seen: _Seen,
    where: str,
    around: tuple[tuple[str, ...], ...],
    times: int | None,
    background: bool,
    closes: bool,
    level: int,
) -> None:
    """Collect what one text starts; scripts it runs are walked with what stands around the call."""
    pipeline: list[str] = []
    for simple in simple_commands(text, environment, times=times):
        words = simple.words
        folder = _changed_folder(words, folder, home)
        opened = open_carriers(words)
        outer = tuple(carrier for each in simple.around for carrier in open_carriers(each).carriers)
        carriers = around + outer + opened.carriers
        _notice_guards(simple, opened.carriers, seen, where, pipeline)
        inner = opened.words
        if not inner or guards.lookup_of(inner):
            continue
        in_background = background or simple.background or any(_detaches(each) for each in outer + opened.carriers)
        path = _script_path(inner, folder, home)
        if path in scripts and level < 2:
            arguments = {str(number): word for number, word in enumerate(inner)}
            passed = {**environment, **arguments, "@": " ".join(inner[1:])}
            closed = closes or simple.closes_lock
            _walk(
                scripts[path], passed, folder, home, scripts, roles, matcher, seen, path, carriers, simple.times,
                in_background, closed, level + 1,
            )  # fmt: skip
            continue
        if name_of(inner) == "systemctl":
            seen.starts += _by_systemd(inner, roles, simple.times, where)
            continue
        role = matcher.role_of(inner)
        times_now = 1 if simple.times is None and not in_background else simple.times  # a loop that starts it again
        if name_of(inner) in _BUILTINS or (not role and (simple.condition or simple.substitution)):
            continue
        seen.starts.append(Start(inner, role, times_now, in_background, carriers, closes or simple.closes_lock, where))


def _notice_guards(
    simple: Simple, carriers: tuple[tuple[str, ...], ...], seen: _Seen, where: str, pipeline: list[str]
) -> None:
    name = name_of(simple.words)
    lookup = guards.lookup_of(simple.words)
    if lookup is not None:
        seen.lookups.append((lookup, where))
        seen.guards.append(f"{lookup.program}{' -f' if lookup.full else ''} {lookup.pattern}")
    elif name in ("grep", "egrep", "fgrep") and "ps" in pipeline and "ps|grep" not in seen.guards:
        seen.guards.append("ps|grep")
    elif name == "kill" and "-0" in simple.words:
        seen.guards.append("kill -0 of a pid file")
    elif name in ("test", "[", "[[") and any(word.endswith((".pid", ".lock")) for word in simple.words):
        seen.guards.append("a pid or lock file")
    elif name == "start-stop-daemon":
        seen.guards.append("start-stop-daemon")
    pipeline.append(name)
    for carrier in carriers:
        if name_of(carrier) == "flock":
            seen.guards.append("flock")
        elif name_of(carrier) in ("run-one", "run-this-one", "setlock", "solo", "keep-one-running"):
            seen.guards.append(name_of(carrier))
    if name == "flock" and not carriers:
        seen.guards.append("flock")


def _detaches(carrier: tuple[str, ...]) -> bool:
    name = name_of(carrier)
    if name == "screen":
        return any(word.startswith("-d") for word in carrier[1:])
    if name == "start-stop-daemon":
        return "--background" in carrier or "-b" in carrier
    return name in ("setsid", "tmux", "systemd-run") or (name == "sudo" and "-b" in carrier)


def _by_systemd(words: tuple[str, ...], roles: Sequence[Role], times: int | None, where: str) -> list[Start]:
    verbs = [word for word in words[1:] if not word.startswith("-")]
    if not verbs or verbs[0] not in _STARTING_VERBS:
        return []
    found = []
    for unit in verbs[1:]:
        prefix = unit.partition("@")[0]
        for role in roles:
            if role.template and "@" in unit and role.template.partition("@")[0] == prefix:
                found.append(Start(words, role.name, times, False, (), False, where, by_systemd=True))
    return found


# --- conclusions ----------------------------------------------------------------------------------------------------


def _kind(entry: Entry, seen: _Seen, starts: list[Start]) -> Kind:
    if entry.schedule.lower() == "@reboot":
        return "at-boot"
    workers = [start for start in starts if not start.by_systemd]
    if starts and not workers:
        return "periodic"
    if workers:
        if all(any(word.startswith(_BOUNDED) for word in start.words) or _timed(start) for start in workers):
            return "periodic"
        return "watchdog" if seen.guards else "launcher"
    if any(start.background for start in seen.starts) and (per_hour(entry.schedule) or 0) >= 1:
        return "watchdog" if seen.guards else "launcher"
    return "periodic"


def _timed(start: Start) -> bool:
    return any(name_of(carrier) == "timeout" for carrier in start.carriers)


def _count(starts: list[Start]) -> int | None:
    total = 0
    for start in starts:
        if start.by_systemd:
            continue
        if start.times is None:
            return None
        total += start.times
    return total or None


def _faults(
    entry: Entry, seen: _Seen, starts: list[Start], shell: str, kind: Kind
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Codes, and a sentence for each."""
    faults: dict[str, str] = {}
    shell_line = f"{shell} -c {entry.command}"
    started = [start for start in starts if not start.by_systemd] or [
        start for start in seen.starts if start.background and not start.by_systemd
    ]
    for lookup, where in seen.lookups if started else ():
        if not where and guards.finds_itself(lookup, shell_line):
            faults.setdefault(
                GUARD_MATCHES_ITSELF,
                f"pgrep -f {lookup.pattern!r} also finds cron's own shell, whose command line is this very line: "
                "it never starts anything",
            )
            continue
        reasons = [guards.misses(lookup, start.words) for start in started if start.where == where or start.role]
        if reasons and all(reasons) and GUARD_MATCHES_ITSELF not in faults:
            tail = ": every tick starts another" if kind != "at-boot" else ""
            faults.setdefault(GUARD_NEVER_MATCHES, f"{reasons[0]}{tail}")
    for start in started:
        lock = next((carrier for carrier in start.carriers if name_of(carrier) == "flock"), None)
        if lock is None or not start.background:
            continue
        dropped = next((name_of(carrier) for carrier in start.carriers if name_of(carrier) in DROP_DESCRIPTORS), "")
        closed = any(
            word in ("-o", "--close") or (word[:1] == "-" and word[1:2] != "-" and "o" in word[1:]) for word in lock
        )
        if closed or dropped or start.closes_lock:
            how = (
                "flock -o closes the lock for it"
                if closed
                else f"{dropped} does not pass the lock on"
                if dropped
                else "its descriptor is closed"
            )
            faults.setdefault(
                LOCK_RELEASED_EARLY,
                f"the worker goes on in the background and {how}: the lock is free again as soon as the launcher ends",
            )
    return tuple(faults), tuple(faults.values())


def _evidence(seen: _Seen, starts: list[Start], kind: Kind) -> tuple[str, ...]:
    said: list[str] = []
    if not starts:
        said.append("nothing on the line or in its scripts starts a worker of a known role")
    for start in starts:
        place = f"in {start.where}" if start.where else "on the line"
        if start.by_systemd:
            said.append(f"{' '.join(start.words)} {place} starts {start.role} through systemd")
            continue
        count = (
            ""
            if start.times == 1
            else " an unknown number of times"
            if start.times is None
            else f" {start.times} times"
        )
        how = " in the background" if start.background else ""
        said.append(f"{' '.join(start.words)} {place} matches {start.role}; started{count}{how} a tick")
    if seen.guards:
        said.append(f"guarded by {', '.join(dict.fromkeys(seen.guards))}")
    elif any(not start.by_systemd for start in starts) and kind == "launcher":
        said.append("nothing checks whether it runs already: every tick adds to what the last one started")
    return tuple(dict.fromkeys(said))


# --- paths ----------------------------------------------------------------------------------------------------------


def _changed_folder(words: tuple[str, ...], folder: str, home: str) -> str:
    if words[:1] != ("cd",) or len(words) < 2:
        return folder
    return _resolve(words[1], folder, home) or folder


def _script_path(words: tuple[str, ...], folder: str, home: str) -> str:
    """The file the words run; "" when it is found by PATH or not a plain path."""
    if not words or "/" not in words[0] or words[0].startswith("-"):
        if words and words[0].endswith((".sh", ".bash")) and "$" not in words[0]:
            return _resolve(words[0], folder, home)
        return ""
    return _resolve(words[0], folder, home)


def _resolve(path: str, folder: str, home: str) -> str:
    if any(sign in path for sign in "$*?[`\n\0"):
        return ""
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    if not path.startswith("/"):
        path = f"{folder.rstrip('/')}/{path}"
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)
