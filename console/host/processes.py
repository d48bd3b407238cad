"""One pass over /proc: the processes of the roles, with their owners, and the numbers of every account.

Cheap for thousands of processes: one small file each (stat); the command line and the account are read for new
identities only, and everything else only for the few that are workers.
"""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Generator, Iterable
from typing import NamedTuple

import msgspec

from console.fleet.model import Ancestor, CronLine, Ident, Owner, Process, Role
from console.fleet.ownership import AncestorFacts, ProcessFacts, owner_of, unit_of
from console.host import procfs
from console.host.deltas import MEMORY_STEP, settle, settle_seconds, settle_share
from console.host.protocol import process_key
from console.host.relatives import ancestors_of, helpers_of
from console.schedules.commands import Matcher, is_script_shell

_YOUNG = 10.0  # seconds: a process this young may still be about to run its program (fork, then exec)
_REREAD = 30.0  # seconds after which the command line of a process is read again (setproctitle)
_CALM = 5  # passes without a change after which only one of _CALM_EVERY passes looks at a process
_CALM_EVERY = 3
SLICE_SECONDS = 0.01  # after this long a pass lets others have the event loop


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


class Made(NamedTuple):
    """A worker as the last pass made it, with what it was made of: while all of that is the same it is not made again.

    Only its idle time grows meanwhile, which nobody needs to be told.
    """

    process: Process
    stat: procfs.Stat
    known: Known
    above: tuple[int, ...]
    below: tuple[int, ...]
    role: str
    crontab: tuple[CronLine, ...]


class Pass(NamedTuple):
    """One pass: the workers by key, and the numbers of each account.

    A worker that did nothing since the pass before is the same object as in that pass.
    """

    workers: dict[str, Process]
    accounts: dict[int, tuple[int, int, int, int]]  # uid: processes, tasks, RSS in bytes, a pid to read limits of
    total: int
    resting: frozenset[str]  # units of workers of which none used any CPU


class Scanner:
    """Walks /proc; keeps what is needed to do it cheaply again."""

    def __init__(self) -> None:
        self.boot_id = procfs.boot_id()
        self.boot_time = procfs.boot_time()
        self.stats: dict[int, procfs.Stat] = {}  # every process as the last pass saw it
        self.known: dict[int, Known] = {}
        self.read_at = 0.0  # monotonic, of the last pass
        self._raw: dict[int, bytes] = {}
        self._calm: dict[int, int] = {}  # pid: how many passes found the same line
        self._passes = 0
        self.holders: frozenset[int] = frozenset()  # pids that hold a job: every pass looks at them
        self._used: dict[int, Used] = {}
        self._last: dict[str, Process] = {}
        self._made: dict[int, Made] = {}
        self._lasting: dict[int, Lasting] = {}
        self._names: dict[int, str] = {}
        self._roles: tuple[Role, ...] = ()
        self._matcher = Matcher(())
        self._templates: frozenset[str] = frozenset()
        self._watched = 0  # how often the roles have been set

    def look_for(self, roles: Iterable[Role]) -> None:
        self._roles = tuple(roles)
        self._matcher = Matcher(self._roles)
        self._templates = frozenset(role.template for role in self._roles if role.template)
        self._watched += 1
        self.known.clear()

    def account(self, uid: int) -> str:
        """The account's name; its number when it has none."""
        if uid not in self._names:
            try:
                self._names[uid] = pwd.getpwuid(uid).pw_name
            except (KeyError, OverflowError):
                self._names[uid] = str(uid) if uid >= 0 else ""
        return self._names[uid]

    def scan(self, crontab: tuple[CronLine, ...] = ()) -> Pass:
        """Read /proc once, without a pause."""
        steps = self.steps(crontab)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                found: Pass = end.value
                return found

    def steps(self, crontab: tuple[CronLine, ...] = ()) -> Generator[None, None, Pass]:
        """Read /proc once, with a pause after every SLICE_SECONDS."""
        watched = self._watched
        now = time.monotonic()
        accounts = yield from self.read(now, sparing=True)
        stats, known = self.stats, self.known
        chosen = self._choose(stats, known)
        before = self._last
        workers = yield from self._describe(chosen, stats, known, now, crontab)
        if watched != self._watched:  # other roles meanwhile
            self.known = {}
        stirred = {process.unit for key, process in workers.items() if before.get(key) is not process}
        resting = frozenset(process.unit for process in workers.values()) - stirred
        return Pass(workers, accounts, len(stats), resting)

    def read(self, now: float, sparing: bool = False) -> Generator[None, None, dict[int, tuple[int, int, int, int]]]:
        """Every process into `stats` and `known`; the numbers of each account.

        With `sparing` those that have done nothing for some passes are taken as they were, two times out of three.
        """
        self._passes += 1
        uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
        until = time.monotonic() + SLICE_SECONDS
        raw: dict[int, bytes] = {}
        stats: dict[int, procfs.Stat] = {}
        known: dict[int, Known] = {}
        calm: dict[int, int] = {}
        accounts: dict[int, tuple[int, int, int, int]] = {}
        for number, pid in enumerate(procfs.pids()):
            if not number % 16 and time.monotonic() > until:
                yield
                until = time.monotonic() + SLICE_SECONDS
            passes = self._calm.get(pid, 0)
            if sparing and passes >= _CALM and (pid + self._passes) % _CALM_EVERY and pid not in self.holders:
                data: bytes | None = self._raw[pid]
            else:
                data = procfs.read_bytes(f"{procfs.PROC}/{pid}/stat")
            if not data:
                continue
            # a process that did nothing has the same line as before
            same = self._raw.get(pid) == data
            stat = self.stats.get(pid) if same else procfs.parse_stat(data)
            entry = self._recall(stat, now, uptime) if stat is not None else None
            if stat is None:
                continue
            stats[pid], raw[pid] = stat, data
            calm[pid] = passes + 1 if same else 0
            if entry is None:
                continue
            known[pid] = entry
            count, tasks, memory, sample = accounts.get(entry.uid, (0, 0, 0, pid))
            accounts[entry.uid] = (count + 1, tasks + stat.threads, memory + stat.rss, sample)
        self.stats, self._raw, self._calm, self.known, self.read_at = stats, raw, calm, known, now
        return accounts

    # --- which ------------------------------------------------------------------------------------------------------

    def _recall(self, stat: procfs.Stat, now: float, uptime: float) -> Known | None:
        entry = self.known.get(stat.pid)
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
        own.update(ancestors_of(os.getpid(), stats))
        chosen = {}
        for pid, entry in known.items():
            if pid in own or not entry.command:
                continue
            if entry.role or self._in_role_unit(entry.unit):
                chosen[pid] = entry.role
        for pid, role in [(pid, role) for pid, role in chosen.items() if role]:
            for ancestor in ancestors_of(pid, stats):
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

    # --- what -------------------------------------------------------------------------------------------------------

    def _describe(
        self,
        chosen: dict[int, str],
        stats: dict[int, procfs.Stat],
        known: dict[int, Known],
        now: float,
        crontab: tuple[CronLine, ...],
    ) -> Generator[None, None, dict[str, Process]]:
        children: dict[int, list[int]] = {}
        if chosen:
            for stat in stats.values():
                children.setdefault(stat.ppid, []).append(stat.pid)
        used: dict[int, Used] = {}
        made: dict[int, Made] = {}
        lines: dict[int, tuple[int, ...]] = {}
        until = time.monotonic() + SLICE_SECONDS
        for pid, role in chosen.items():
            if time.monotonic() > until:
                yield
                until = time.monotonic() + SLICE_SECONDS
            stat = stats[pid]
            above = self._line(stat, stats, lines)
            below = tuple(sorted(children[pid])) if pid in children else ()
            before = self._made.get(pid)
            if (
                before is not None
                and before.stat is stat
                and before.known is known[pid]
                and (before.above, before.below, before.role) == (above, below, role)
                and before.crontab is crontab
                and before.process.cpu == 0  # it rested in the pass before too: the same is told of it
                and [stats[each].name for each in above] == [each.name for each in before.process.ancestors]
            ):
                made[pid], used[pid] = before, self._used[pid]
                continue
            process = self._process(stat, known, role, above, below, stats, now, used, crontab)
            made[pid] = Made(process, stat, known[pid], above, below, role, crontab)
        workers: dict[str, Process] = {}
        helpers = helpers_of({pid: each.process for pid, each in made.items()})
        for pid, each in made.items():
            key, process = process_key(each.process), each.process
            if pid in helpers:
                last = self._last.get(key)
                same = self._made.get(pid) is each and last is not None and not last.main
                process = last if same and last is not None else msgspec.structs.replace(process, main=False)
            workers[key] = process
        self._used, self._made, self._last = used, made, workers
        self._lasting = {pid: self._lasting[pid] for pid in made}
        return workers

    def _line(
        self, stat: procfs.Stat, stats: dict[int, procfs.Stat], lines: dict[int, tuple[int, ...]]
    ) -> tuple[int, ...]:
        """The ancestors; `lines` keeps them for the children of one parent, which are many."""
        parent = stats.get(stat.ppid)
        if parent is None or parent.start > stat.start:
            return ()
        line = lines.get(parent.pid)
        if line is None:
            line = lines[parent.pid] = (parent.pid, *ancestors_of(parent.pid, stats))
        return line

    def _process(
        self,
        stat: procfs.Stat,
        known: dict[int, Known],
        role: str,
        line: tuple[int, ...],
        below: tuple[int, ...],
        stats: dict[int, procfs.Stat],
        now: float,
        used: dict[int, Used],
        crontab: tuple[CronLine, ...],
    ) -> Process:
        pid, entry = stat.pid, known[stat.pid]
        last = self._last.get(f"{pid}:{stat.start}")
        cpu, idle = self._cpu(stat, now, used, last)
        lasting = self._lasting_of(stat, entry)
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
            started=round(self.boot_time + stat.start / procfs.TICKS, 2),
            cgroup=entry.cgroup or "",
            unit=entry.unit,
            ancestors=tuple(Ancestor(pid=above.pid, name=above.name) for above in facts.ancestors),
            children=below,
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
            session_service=self.session_service(entry.cgroup or ""),
        )
        self._lasting[pid] = lasting
        return lasting

    def idle_for(self, pid: int, now: float) -> float | None:
        """For how long a worker of the last pass has used no CPU at `now` (monotonic)."""
        used = self._used.get(pid)
        return round(now - used.idle_since, 1) if used is not None and used.idle_since is not None else None

    def _owner(self, facts: ProcessFacts, crontab: tuple[CronLine, ...], lasting: Lasting) -> Owner:
        """Decided again only when something it depends on is another."""
        decided = lasting.decided
        if decided is None or decided[0] != facts or decided[1] is not crontab:
            uids = (facts.login_uid, _manager_uid(facts.cgroup or ""))
            names = {uid: self.account(uid) for uid in uids if uid is not None}
            decided = lasting.decided = (facts, crontab, owner_of(facts, crontab, names))
        return decided[2]

    def session_service(self, cgroup: str) -> str:
        unit = unit_of(cgroup)
        if not (unit.startswith("session-") and unit.endswith(".scope")):
            return ""
        return procfs.login_session(unit[8:-6]).get("SERVICE", "")


def _manager_uid(cgroup: str) -> int | None:
    _, found, rest = cgroup.partition("/user@")
    uid = rest.partition(".")[0]
    return int(uid) if found and uid.isdecimal() and len(uid) < 11 else None
