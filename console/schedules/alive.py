"""Which processes that are alive came from which entry, in how many runs, and whether they pile up. Pure.

By what the kernel and the control groups tell (console.fleet.ownership), never by a name alone: a process is of an
entry when cron started it for the entry's account and its arguments are those the entry starts a worker with, or when
it runs below the very shell in which cron runs the line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from console.fleet.model import Owner, Value
from console.schedules.commands import is_shell_text
from console.schedules.inventory import Alive, Run
from console.schedules.model import Explained

_CRONTABS = frozenset({"user", "system", "cron.d", "hourly", "daily", "weekly", "monthly", "anacron"})
BEFORE_ARGV = 3  # an interpreter and its options may stand before the program: python3 -u /usr/bin/worktop
_TOGETHER = 5.0  # seconds between the processes of one run that has no audit session
_LATE = 2.5  # periods after which the next run should have been seen


class Seen(Value, frozen=True, kw_only=True):
    """A live process with what tells where it came from."""

    pid: int
    started: float  # epoch seconds
    argv: tuple[str, ...]
    user: str = ""
    owner: Owner = Owner(kind="unknown")
    session: int | None = None  # audit session: one for everything one run of a line started
    group: int = 0
    lines: tuple[str, ...] = ()  # the texts of the shells (`sh -c TEXT`) that it runs below, and its own


class Living:
    """The live processes, indexed for two thousand questions."""

    def __init__(self, processes: Iterable[Seen]) -> None:
        self._by_line: dict[str, list[Seen]] = defaultdict(list)
        self._by_word: dict[str, list[Seen]] = defaultdict(list)
        for process in processes:
            for line in process.lines:
                self._by_line[line].append(process)
            for word in {base_of(each) for each in process.argv[: BEFORE_ARGV + 1]}:
                self._by_word[word].append(process)

    def of(self, explained: Explained) -> tuple[tuple[Seen, ...], str]:
        """The workers (or else the shells) that came from the entry, and how they were told."""
        entry = explained.entry
        below = [each for each in self._by_line.get(entry.command, ()) if _may_be_of(each, explained)]
        sessions = {each.session for each in below if each.session is not None}
        found: dict[int, Seen] = {}
        for role in explained.roles:
            for process in self._by_word.get(base_of(role.argv[0]), ()) if role.argv else ():
                if is_run_of(role.argv, process.argv) and (
                    process in below or process.session in sessions or _may_be_of(process, explained)
                ):
                    found[process.pid] = process
        if found:
            return tuple(found.values()), _how(tuple(found.values()), explained)
        return tuple(below), "they run in the shell that runs the line" if below else ""


def alive(
    explained: Explained, living: Living, period: float | None, now: float, counted: Mapping[float, int]
) -> Alive:
    """What is alive of an entry. `period`: seconds between two runs; `counted`: time -> how many there were before."""
    found, evidence = living.of(explained)
    runs = in_runs(found)
    earlier = [(at, count) for at, count in counted.items() if now - at >= (period or 60.0)]
    before = max(earlier) if earlier else None
    return Alive(
        runs=runs,
        evidence=evidence,
        growing=_growing(runs, period, now),
        per_run=len(runs[-1].pids) if runs else 0,
        before=(round(now - before[0], 0), before[1]) if before else None,
    )


def in_runs(found: Sequence[Seen]) -> tuple[Run, ...]:
    """The processes by the run that started them: an audit session each; without one, what started together."""
    sessions: dict[int, list[Seen]] = defaultdict(list)
    others: list[list[Seen]] = []
    for process in sorted(found, key=lambda each: (each.started, each.pid)):
        if process.session is not None:
            sessions[process.session].append(process)
        elif others and process.started - others[-1][-1].started <= _TOGETHER:
            others[-1].append(process)
        else:
            others.append([process])
    runs = [
        Run(started=each[0].started, pids=tuple(process.pid for process in each))
        for each in (*sessions.values(), *others)
    ]
    return tuple(sorted(runs, key=lambda run: run.started))


def _growing(runs: tuple[Run, ...], period: float | None, now: float) -> bool | None:
    """Several runs are alive, and the youngest came when the last one was due."""
    if period is None or not runs:
        return None if runs else False
    return len(runs) > 1 and now - runs[-1].started <= _LATE * period


def is_run_of(wanted: tuple[str, ...], argv: tuple[str, ...]) -> bool:
    """Whether a command line is what the arguments of a role become: `<n>` and `$NAME` stand for anything, the program
    may be found by PATH, and its interpreter may stand before it."""
    if is_shell_text(argv):
        return False
    for place in range(min(BEFORE_ARGV + 1, len(argv))):
        if base_of(argv[place]) == base_of(wanted[0]) and len(argv) - place == len(wanted):
            return all(_same(word, live) for word, live in zip(wanted[1:], argv[place + 1 :], strict=True))
    return False


def _same(word: str, live: str) -> bool:
    if word == live or word.startswith("$"):
        return True
    if "<" not in word and "$" not in word:
        return base_of(word) == live or word.removeprefix("./") == live
    before, _, rest = word.replace("$", "<").partition("<")
    return live.startswith(before) and live.endswith(rest.rpartition(">")[2] if ">" in rest else "")


def _may_be_of(process: Seen, explained: Explained) -> bool:
    """Whether the process's owner is the mechanism that runs the entry."""
    entry, owner = explained.entry, process.owner
    kind = entry.source.kind
    unit = entry.source.path.rpartition("/")[2]
    if kind in _CRONTABS:
        if owner.kind == "cron":
            return owner.name in (entry.user, "")
        users = {entry.user, *(role.user for role in explained.roles)}
        return owner.kind in ("screen", "forever", "session", "unknown") and process.user in users
    if kind in ("supervisord", "pm2"):
        return owner.kind == kind
    if kind in ("timer", "unit"):
        return owner.kind in ("systemd", "systemd-user") and owner.name.partition(".")[0] == unit.partition(".")[0]
    return owner.kind in ("session", "unknown") or owner.name == "rc-local.service"


def _how(found: Sequence[Seen], explained: Explained) -> str:
    owners = {each.owner.kind: each.owner for each in found}
    if "cron" in owners:
        who = owners["cron"].name
        return f"cron started them for {who}, and their arguments are those of the line"
    if len(owners) == 1 and (only := next(iter(owners.values()))).name:
        return f"their arguments are those of the line, and their owner is {only.kind} ({only.name})"
    return "their arguments and their account are those of the line"


def base_of(word: str) -> str:
    """The name of a program or a file without its folder."""
    return word.rpartition("/")[2]
