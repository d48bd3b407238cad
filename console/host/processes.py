"""One pass over /proc: the processes of the roles, with their owners, and the numbers of every account.

Cheap for thousands of processes: one small file each (stat); the command line and the account are read for new
identities only, and everything else only for the few that are workers.
"""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from console.fleet.model import Ancestor, CronLine, Ident, Owner, PidState, Process, Role
from console.fleet.ownership import AncestorFacts, ProcessFacts, owner_of, unit_of
from console.fleet.verdicts import WATCHED_LONG_ENOUGH
from console.host import procfs
from console.host.deltas import MEMORY_STEP, settle, settle_share
from console.host.protocol import process_key
from console.schedules.commands import Matcher, is_script_shell

_YOUNG = 10.0  # seconds: a process this young may still be about to run its program (fork, then exec)
_REREAD = 30.0  # seconds after which the command line of a process is read again (setproctitle)
_IDLE_SLACK = 15.0  # seconds by which the idle time that was told may be too long


class Known(msgspec.Struct):
    """What is remembered of one identity between passes."""

    start: int
    name: str
    command: tuple[str, ...]
    uid: int
    role: str
    read_at: float
    cgroup: str | None
    unit: str


class Lasting(msgspec.Struct):
    """What does not change in the life of one identity, and the owner that was decided from it."""

    start: int
    read_at: float
    session: int | None
    login_uid: int | None
    marks: tuple[str, ...]
    denied: tuple[str, ...]
    session_service: str
    decided: tuple[ProcessFacts, tuple[CronLine, ...], Owner] | None = None


class Used(NamedTuple):
    """CPU of one identity: ticks at `at`, and since when they have not grown (monotonic)."""

    ticks: int
    at: float
    idle_since: float | None


class Pass(NamedTuple):
    """One pass: the workers by key, and the numbers of each account."""

    workers: dict[str, Process]
    accounts: dict[int, tuple[int, int, int, int]]  # uid: processes, tasks, RSS in bytes, a pid to read limits of
    total: int


class Scanner:
    """Walks /proc; keeps what is needed to do it cheaply again."""

    def __init__(self) -> None:
        self.boot_id = procfs.boot_id()
        self._boot_time = procfs.boot_time()
        self._known: dict[int, Known] = {}
        self._used: dict[int, Used] = {}
        self._last: dict[str, Process] = {}
        self._lasting: dict[int, Lasting] = {}
        self._names: dict[int, str] = {}
        self._roles: tuple[Role, ...] = ()
        self._matcher = Matcher(())
        self._templates: frozenset[str] = frozenset()

    def look_for(self, roles: Iterable[Role]) -> None:
        self._roles = tuple(roles)
        self._matcher = Matcher(self._roles)
        self._templates = frozenset(role.template for role in self._roles if role.template)
        self._known.clear()

    def account(self, uid: int) -> str:
        """The account's name; its number when it has none."""
        if uid not in self._names:
            try:
                self._names[uid] = pwd.getpwuid(uid).pw_name
            except (KeyError, OverflowError):
                self._names[uid] = str(uid) if uid >= 0 else ""
        return self._names[uid]

    def scan(self, crontab: tuple[CronLine, ...] = ()) -> Pass:
        """Read /proc once."""
        now = time.monotonic()
        uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
        stats: dict[int, procfs.Stat] = {}
        for pid in procfs.pids():
            found = procfs.stat(pid)
            if found is not None:
                stats[pid] = found
        known: dict[int, Known] = {}
        accounts: dict[int, tuple[int, int, int, int]] = {}
        for pid, stat in stats.items():
            entry = self._recall(stat, now, uptime)
            if entry is None:
                continue
            known[pid] = entry
            count, tasks, memory, sample = accounts.get(entry.uid, (0, 0, 0, pid))
            accounts[entry.uid] = (count + 1, tasks + stat.threads, memory + stat.rss, sample)
        self._known = known
        chosen = self._choose(stats, known)
        workers = self._describe(chosen, stats, known, now, crontab)
        return Pass(workers, accounts, len(stats))

    # --- which ------------------------------------------------------------------------------------------------------

    def _recall(self, stat: procfs.Stat, now: float, uptime: float) -> Known | None:
        entry = self._known.get(stat.pid)
        age = uptime - stat.start / procfs.TICKS
        if (
            entry is not None
            and entry.start == stat.start
            and entry.name == stat.name
            and now - entry.read_at < (1.0 if age < _YOUNG else _REREAD + stat.pid % 16)
        ):
            return entry
        command = procfs.command(stat.pid)
        uid = procfs.user_id(stat.pid)
        if command is None or uid is None:
            return None
        role = self._matcher.role_of(command)
        cgroup = procfs.cgroup(stat.pid)
        return Known(stat.start, stat.name, command, uid, role, now, cgroup, unit_of(cgroup or ""))

    def _choose(self, stats: dict[int, procfs.Stat], known: dict[int, Known]) -> dict[int, str]:
        """pid -> role ("" when only the unit's cgroup holds it) of every process to tell of."""
        own = {os.getpid()}
        own.update(self._ancestors_of(os.getpid(), stats))
        chosen = {}
        for pid, entry in known.items():
            if pid in own or not entry.command:
                continue
            if entry.role or self._in_role_unit(entry.unit):
                chosen[pid] = entry.role
        for pid, role in [(pid, role) for pid, role in chosen.items() if role]:
            for ancestor in self._ancestors_of(pid, stats):
                if chosen.get(ancestor) == role and is_script_shell(known[ancestor].command):
                    # the script's own child is the worker; the script stays only when its unit holds it
                    if self._in_role_unit(known[ancestor].unit):
                        chosen[ancestor] = ""
                    else:
                        del chosen[ancestor]
        return chosen

    def _in_role_unit(self, unit: str) -> bool:
        stem, _, suffix = unit.rpartition(".")
        prefix, _, instance = stem.partition("@")
        if not instance or suffix != "service":
            return False
        template = f"{prefix}@.service"
        return template in self._templates if self._roles else template != "user@.service"

    def _ancestors_of(self, pid: int, stats: dict[int, procfs.Stat]) -> list[int]:
        """Parent first, up to pid 1; a parent that started later than its child is a reused pid."""
        found: list[int] = []
        seen = {pid}
        current = stats.get(pid)
        while current is not None and current.ppid > 0 and current.ppid not in seen and len(found) < 64:
            parent = stats.get(current.ppid)
            if parent is None or parent.start > current.start:
                break
            found.append(parent.pid)
            seen.add(parent.pid)
            current = parent
        return found

    # --- what -------------------------------------------------------------------------------------------------------

    def _describe(
        self,
        chosen: dict[int, str],
        stats: dict[int, procfs.Stat],
        known: dict[int, Known],
        now: float,
        crontab: tuple[CronLine, ...],
    ) -> dict[str, Process]:
        children: dict[int, list[int]] = {}
        if chosen:
            for stat in stats.values():
                children.setdefault(stat.ppid, []).append(stat.pid)
        used: dict[int, Used] = {}
        built: dict[int, Process] = {}
        for pid, role in chosen.items():
            built[pid] = self._process(stats[pid], known, role, stats, children, now, used, crontab)
        workers: dict[str, Process] = {}
        helpers = _helpers(built)
        for pid, process in built.items():
            workers[process_key(process)] = msgspec.structs.replace(process, main=False) if pid in helpers else process
        self._used = used
        self._last = workers
        self._lasting = {pid: self._lasting[pid] for pid in built}
        return workers

    def _process(
        self,
        stat: procfs.Stat,
        known: dict[int, Known],
        role: str,
        stats: dict[int, procfs.Stat],
        children: dict[int, list[int]],
        now: float,
        used: dict[int, Used],
        crontab: tuple[CronLine, ...],
    ) -> Process:
        pid, entry = stat.pid, known[stat.pid]
        last = self._last.get(f"{pid}:{stat.start}")
        cpu, idle = self._cpu(stat, now, used, last)
        lasting = self._lasting_of(stat, entry)
        line = self._ancestors_of(pid, stats)
        facts = ProcessFacts(
            pid=pid,
            ppid=stat.ppid,
            uid=entry.uid,
            user=self.account(entry.uid),
            role=role,
            role_template=next((each.template for each in self._roles if each.name == role), ""),
            cgroup=entry.cgroup,
            ancestors=tuple(
                AncestorFacts(pid=above, name=stats[above].name, command=known[above].command if above in known else ())
                for above in line
            ),
            session=lasting.session,
            login_uid=lasting.login_uid,
            group=stat.group,
            terminal=stat.tty != 0,
            marks=lasting.marks,
            session_service=lasting.session_service,
        )
        return Process(
            ident=Ident(self.boot_id, pid, stat.start),
            role=role,
            ppid=stat.ppid,
            name=stat.name,
            command=entry.command,
            user=facts.user,
            uid=entry.uid,
            state="S" if stat.state == "I" else stat.state,
            started=round(self._boot_time + stat.start / procfs.TICKS, 2),
            cgroup=entry.cgroup or "",
            unit=entry.unit,
            ancestors=tuple(Ancestor(pid=above.pid, name=above.name) for above in facts.ancestors),
            children=tuple(sorted(children.get(pid, ()))),
            rss=settle(stat.rss, last.rss if last else None, MEMORY_STEP),
            cpu=cpu,
            cpu_seconds=settle_seconds(stat.ticks / procfs.TICKS, last.cpu_seconds if last else None),
            idle_for=idle,
            session=facts.session,
            login_uid=facts.login_uid,
            marks=lasting.marks,
            denied=lasting.denied,
            owner=self._owner(facts, crontab, lasting),
        )

    def _cpu(
        self, stat: procfs.Stat, now: float, used: dict[int, Used], last: Process | None
    ) -> tuple[float | None, float | None]:
        """Share of a core since the last pass, and for how long none was used."""
        before = self._used.get(stat.pid)
        if before is None or last is None or last.ident.start != stat.start:
            used[stat.pid] = Used(stat.ticks, now, None)
            return None, None
        grown = stat.ticks - before.ticks
        elapsed = max(now - before.at, 0.001)
        idle_since = (
            before.idle_since if grown <= 0 and before.idle_since is not None else before.at if grown <= 0 else now
        )
        used[stat.pid] = Used(stat.ticks, now, idle_since)
        return settle_share(max(0.0, grown / procfs.TICKS / elapsed), last.cpu), round(now - idle_since, 1)

    def _lasting_of(self, stat: procfs.Stat, entry: Known) -> Lasting:
        """What is read once: it is read again together with the command line."""
        pid = stat.pid
        before = self._lasting.get(pid)
        if before is not None and before.read_at == entry.read_at and before.start == stat.start:
            return before
        marks, refused = procfs.environment_names(pid)
        denied = [f"environment: {refused}"] if refused else []
        if entry.cgroup is None:
            denied.append("cgroup: could not be read")
        lasting = Lasting(
            start=stat.start,
            read_at=entry.read_at,
            session=procfs.audit_number(pid, "sessionid"),
            login_uid=procfs.audit_number(pid, "loginuid"),
            marks=marks,
            denied=tuple(denied),
            session_service=self._session_service(entry.cgroup or ""),
        )
        self._lasting[pid] = lasting
        return lasting

    def _owner(self, facts: ProcessFacts, crontab: tuple[CronLine, ...], lasting: Lasting) -> Owner:
        """Decided again only when something it depends on is another."""
        decided = lasting.decided
        if decided is None or decided[0] != facts or decided[1] is not crontab:
            uids = (facts.login_uid, _manager_uid(facts.cgroup or ""))
            names = {uid: self.account(uid) for uid in uids if uid is not None}
            decided = lasting.decided = (facts, crontab, owner_of(facts, crontab, names))
        return decided[2]

    def _session_service(self, cgroup: str) -> str:
        unit = unit_of(cgroup)
        if not (unit.startswith("session-") and unit.endswith(".scope")):
            return ""
        return procfs.login_session(unit[8:-6]).get("SERVICE", "")


def look_up(pids: Iterable[int]) -> tuple[tuple[PidState, ...], int]:
    """Who has each pid now, and a pid that exists but is hidden (hidepid), 0 for none.

    A zombie has ended: it holds nothing any more, so its pid counts as free.
    """
    states: list[PidState] = []
    for pid in pids:
        stat = procfs.stat(pid)
        if stat is None and pid > 0 and procfs.hidden():
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                pass
            except PermissionError:
                return (), pid
        alive = stat is not None and stat.state not in ("Z", "X")
        states.append(
            PidState(pid=pid, start=stat.start, name=stat.name) if stat is not None and alive else PidState(pid=pid)
        )
    return tuple(states), 0


def settle_seconds(value: float, told: float | None) -> float:
    return told if told is not None and abs(value - told) < 1.0 else round(value, 1)


def same_but_age(now: Process, told: Process, elapsed: float) -> bool:
    """Nothing is different except that `elapsed` seconds have gone by: the console ages the idle time by itself."""
    state = told.state if now.state in "RS" and told.state in "RS" else now.state  # sampled at random: jitter
    if msgspec.structs.replace(now, idle_for=told.idle_for, state=state) != told:
        return False
    if now.idle_for is None or told.idle_for is None:
        return now.idle_for is told.idle_for
    aged = told.idle_for + elapsed
    if (aged >= WATCHED_LONG_ENOUGH) != (now.idle_for >= WATCHED_LONG_ENOUGH):
        return False  # a verdict hangs on this side or that
    return abs(aged - now.idle_for) < _IDLE_SLACK


def _helpers(built: dict[int, Process]) -> set[int]:
    """The pids that are not the main process of their worker.

    Of processes with a role: those below another of the same role and owner. Of processes that only their unit's
    cgroup holds: those below another of the unit, and those above one that has a role.
    """
    helpers: set[int] = set()
    for pid, process in built.items():
        for ancestor in process.ancestors:
            above = built.get(ancestor.pid)
            if above is None or _origin(above) != _origin(process):
                continue
            if process.role and not above.role:
                helpers.add(above.ident.pid)
            elif process.role == above.role or not process.role:
                helpers.add(pid)
    return helpers


def _origin(process: Process) -> tuple[str, str, str]:
    return process.owner.kind, process.owner.name, process.unit


def _manager_uid(cgroup: str) -> int | None:
    _, found, rest = cgroup.partition("/user@")
    uid = rest.partition(".")[0]
    return int(uid) if found and uid.isdecimal() and len(uid) < 11 else None
