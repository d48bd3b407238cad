"""What a crontab line starts: which roles' workers, how many a tick, guarded by what, and with which faults. Pure.

The line is read together with the text of the shell scripts it runs; nothing is executed. What cannot be seen stays
unknown, and the evidence says from which text each conclusion comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from console.fleet.model import CronLine, Role
from console.schedules import guards, marks
from console.schedules.carriers import DROP_DESCRIPTORS, KEEP_ONE
from console.schedules.carrying import name_of
from console.schedules.commands import Matcher, words
from console.schedules.expression import per_hour
from console.schedules.model import Entry
from console.schedules.shell.interpret import interpret
from console.schedules.shell.values import Command, Read, Reading

Kind = Literal["launcher", "watchdog", "periodic", "at-boot", "unknown"]

GUARD_MATCHES_ITSELF = "guard-matches-itself"
GUARD_NEVER_MATCHES = "guard-never-matches"
LOCK_RELEASED_EARLY = "lock-released-early"

_BUILTINS = words(
    "cd exit export set unset source . : true false test [ [[ echo printf read wait sleep logger date mkdir rm touch "
    "cat chmod chown ulimit umask trap return shift eval exec ps grep egrep pgrep pidof pkill kill killall wc head "
    "tail awk sed cut sort uniq tr hostname id whoami basename dirname seq expr let local declare readonly break "
    "continue"
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


def classify(
    entry: Entry,
    *,
    owner: str,
    source: str,
    home: str,
    read: Read,
    roles: Sequence[Role],
) -> CronLine:
    """One line as it is told; `read`: the text of a file the line runs, None when it is absent."""
    environment = {"HOME": home, "LOGNAME": owner, **dict(entry.environment)}
    reading = interpret(
        entry.command, environment=environment, home=environment["HOME"], user=owner, read=read, stdin=entry.stdin
    )
    seen = _seen(reading, roles)
    starts = [start for start in seen.starts if start.role]
    kind = _kind(entry, seen, starts)
    shell = environment.get("SHELL", "/bin/sh")
    faults, faulty = _faults(entry, seen, starts, shell, kind)
    return CronLine(
        owner=owner,
        source=source,
        line=entry.line,
        schedule=entry.expression,
        command=entry.command,
        per_hour=per_hour(entry.expression),
        roles=tuple(dict.fromkeys(start.role for start in starts)),
        kind=kind,
        workers_per_tick=_count(starts),
        faults=faults,
        evidence=(*_evidence(seen, starts, kind), *faulty),
    )


def _seen(reading: Reading, roles: Sequence[Role]) -> _Seen:
    """What the commands start and look for; turns of one loop are one start with a count."""
    matcher = Matcher(tuple(roles))
    seen = _Seen()
    found: dict[tuple[object, ...], Start] = {}
    pipeline: list[str] = []
    for command in reading.commands:
        _notice_guards(command, seen, pipeline)
        inner = command.plain
        if not inner or command.followed or guards.lookup_of(inner):
            continue
        around = command.around
        times = around.times if around.endless != "read" else None
        if name_of(inner) == "systemctl":
            seen.starts += _by_systemd(inner, roles, times, around.where)
            continue
        role = matcher.role_of(inner)
        if name_of(inner) in _BUILTINS or (not role and (around.condition or around.substitution)):
            continue
        carriers = tuple(tuple(map(marks.concrete, carrier.words)) for carrier in around.carriers)
        start = Start(inner, role, times, around.background, carriers, around.closes_lock, around.where)
        key = (tuple(map(marks.shown, command.inner)), around.where, around.background)
        before = found.get(key)
        if before is None:
            found[key] = start
        else:
            total = None if before.times is None or times is None else before.times + times
            found[key] = before._replace(times=total)
    seen.starts += found.values()
    return seen


def _notice_guards(command: Command, seen: _Seen, pipeline: list[str]) -> None:
    words_of = tuple(map(marks.concrete, command.inner or command.words))
    name = name_of(words_of)
    lookup = guards.lookup_of(words_of)
    if lookup is not None:
        seen.lookups.append((lookup, command.around.where))
        seen.guards.append(f"{lookup.program}{' -f' if lookup.full else ''} {lookup.pattern}")
    elif name in ("grep", "egrep", "fgrep") and "ps" in pipeline and "ps|grep" not in seen.guards:
        seen.guards.append("ps|grep")
    elif name == "kill" and "-0" in words_of:
        seen.guards.append("kill -0 of a pid file")
    elif name in ("test", "[", "[[") and any(word.endswith((".pid", ".lock")) for word in words_of):
        seen.guards.append("a pid or lock file")
    pipeline.append(name)
    for carrier in command.around.carriers:
        name = name_of(carrier.words)
        if name in ("flock", "start-stop-daemon") or name in KEEP_ONE:
            seen.guards.append(name)
    if command.locks:
        seen.guards.append("flock")


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
    if entry.expression == "@reboot":
        return "at-boot"
    workers = [start for start in starts if not start.by_systemd]
    if starts and not workers:
        return "periodic"
    if workers:
        if all(any(word.startswith(_BOUNDED) for word in start.words) or _timed(start) for start in workers):
            return "periodic"
        return "watchdog" if seen.guards else "launcher"
    if any(start.background for start in seen.starts) and (per_hour(entry.expression) or 0) >= 1:
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
