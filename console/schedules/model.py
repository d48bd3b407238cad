"""The values of the schedules: where a line stands, what it says, when it runs, what it is and the units it becomes.

Pure. Text from outside stays as it was found; whoever shows it passes it through console.text.
"""

from __future__ import annotations

from typing import Literal

from console.fleet.model import Value

SourceKind = Literal[
    "user", "system", "cron.d", "hourly", "daily", "weekly", "monthly", "anacron",
    "timer", "rc.local", "supervisord", "pm2", "unit",
]  # fmt: skip
Kind = Literal["launcher", "short_cycle", "periodic", "none", "invalid"]
Confidence = Literal["high", "medium", "low"]
Witness = Literal["line", "script", "processes"]
Dialect = Literal["debian", "cronie"]


class Source(Value, frozen=True, kw_only=True):
    """A file that may start something; `user`: whose it is ("" where each line names the user)."""

    kind: SourceKind
    path: str
    user: str = ""


class Entry(Value, frozen=True, kw_only=True):
    """One line (or one section, unit, script) that starts something, or a commented one that would."""

    source: Source
    line: int  # 1-based; 0: the file as a whole
    raw: bytes = b""  # the line as it stands, without its line end
    expression: str = ""  # five fields joined by one blank, an @special in lower case, anacron's period; "" when none
    user: str = ""  # whom it runs as
    command: str = ""  # as the shell gets it: % and \% handled
    stdin: str = ""  # what stands behind the first unescaped %
    environment: tuple[tuple[str, str], ...] = ()  # the settings in effect at that line
    problems: tuple[str, ...] = ()  # why cron ignores or misreads it
    active: bool = True  # False: commented out
    label: str = ""  # anacron's job identifier


class Scheduled(Value, frozen=True, kw_only=True):
    """When an entry runs."""

    expression: str
    words: str
    next_runs: tuple[float, ...] = ()  # seconds since the epoch
    zone: str = ""
    on_calendar: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class ScriptText(Value, frozen=True, kw_only=True):
    """A file that could be read, or why not. A file that is absent is None where this stands."""

    path: str
    text: str = ""
    problem: str = ""  # binary, larger than is read, not allowed to read: nothing is known of its content


class Account(Value, frozen=True, kw_only=True):
    """A line of the passwd database."""

    name: str
    uid: int
    gid: int
    home: str
    shell: str = ""
    group: str = ""  # of the gid


class LiveProcess(Value, frozen=True, kw_only=True):
    """A process that is alive now."""

    pid: int
    argv: tuple[str, ...]
    user: str = ""
    age: float = 0.0  # seconds
    owner: str = ""  # in words: "crontab of deploy", "mail-worker@1.service"
    folder: str = ""  # "": not readable
    peak: int = 0  # bytes of memory at most so far; 0: not known


class Surroundings(Value, frozen=True, kw_only=True):
    """What is known of the host beside the line: accounts, live processes, the other entries."""

    accounts: tuple[Account, ...] = ()  # empty: homes are taken to be /home/NAME and /root
    processes: tuple[LiveProcess, ...] | None = None  # None: nobody looked (another machine's files)
    entries: tuple[Entry, ...] = ()  # every entry that was found, this one among them
    dialect: Dialect = "debian"
    hostname: str = ""
    memory: int = 0  # bytes of the host; 0: not known


class Evidence(Value, frozen=True, kw_only=True):
    """One sentence, and what it was read from."""

    source: Witness
    text: str


class Limit(Value, frozen=True, kw_only=True):
    """A limit around the worker: nice, ionice, ulimit, timeout or softlimit, as it was written."""

    tool: str
    text: str


class FoundRole(Value, frozen=True, kw_only=True):
    """One kind of worker (or one command) that an entry starts."""

    name: str
    argv: tuple[str, ...]  # as written; <n>: the loop variable n; $NAME: a variable of its environment
    instances: int | None = 1  # None: it cannot be seen
    names: tuple[str, ...] = ()  # of the instances, as they would stand behind the @
    user: str = ""
    group: str = ""
    workdir: str | None = None  # None: where cron starts it; ~NAME: that user's home
    environment: tuple[tuple[str, str], ...] = ()
    output: str = ""  # the file its output goes to; "" none of its own
    limits: tuple[Limit, ...] = ()
    locks: tuple[str, ...] = ()
    guard: str = ""  # what keeps it from being started twice, as written
    guard_works: bool | None = None  # None: there is none, or it cannot be judged


class Explained(Value, frozen=True, kw_only=True):
    """What an entry is, why, and the units it would become."""

    entry: Entry
    kind: Kind
    pattern: str
    confidence: Confidence
    roles: tuple[FoundRole, ...] = ()
    scheduled: Scheduled | None = None
    evidence: tuple[Evidence, ...] = ()
    warnings: tuple[str, ...] = ()
    hazards: tuple[str, ...] = ()
    units: tuple[tuple[str, str], ...] = ()  # file name, text
    extras: tuple[tuple[str, str, int], ...] = ()  # drop-ins and environment files: path, text, mode
    questions: tuple[str, ...] = ()  # to the person, where the evidence does not agree or does not suffice


class LiveSurroundings(Value, frozen=True, kw_only=True):
    """What a live worker has around it, as the kernel tells; its environment is the one it was started with."""

    user: str = ""
    groups: tuple[str, ...] = ()  # all of them, names where there are any
    environment: tuple[tuple[str, str], ...] = ()
    folder: str = ""
    umask: int | None = None
    nice: int = 0
    limits: tuple[tuple[str, int | None, int | None], ...] = ()  # systemd's name, soft, hard; None: no limit
