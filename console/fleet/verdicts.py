"""Is the holder of a running job dead, alive, slow or hung? A verdict is only as strong as its evidence.

DEAD is said only where it is proved, and never of a process that lives under the same identity:

- by the row's own words (host, pid, start time, boot id): the host has booted since, the pid is free, or another
  process has it, one with another start time or one that started after the claim;
- by systemd, where the row names a unit alone: the unit is down and nothing of it runs;
- by exclusion, where the row names no process (unnamed.py): the heartbeat has expired by the database's clock, and no
  live process that could be the holder goes unaccounted for.

The host's clock and the database's are never compared: an age by one is compared with an age by the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from console.fleet.evidence import NOT_LOOKED_UP, UNDECIDED, key_of, unit_reason
from console.fleet.model import (
    Claim,
    Holder,
    HostFacts,
    Job,
    PidState,
    Process,
    QueueFacts,
    Reading,
    Role,
    Unit,
    Verdict,
)
from console.fleet.unnamed import by_exclusion
from console.text import ago

WATCHED_LONG_ENOUGH = 5.0  # seconds without CPU before a silent holder is called hung
_SLACK = 60.0  # seconds by which ages of two clocks may be off: latency, a poll, an agent that was silent for a while
_STALE = 90.0  # seconds: the queue is read at least once a minute
_CLOCKS = 5.0  # seconds by which the time of a reading may be off

_Judged = tuple[Verdict, tuple[str, ...], str]  # verdict, evidence, key of the worker


def judge(
    job: Job,
    role: str,
    facts: HostFacts,
    rows: QueueFacts | None = None,
    roles: Sequence[Role] = (),
    now: float | None = None,
) -> Claim:
    """The claim on one running job. For several of the same facts make one `Judge`."""
    return Judge(facts, rows, roles, now).claim(job, role)


class Judge:
    """Judges the holders of running jobs by the same facts.

    DEAD needs proof, see above. HUNG: it lives, its lease or heartbeat has run out, and neither it nor its children
    used any CPU while they were watched; or it is stopped by a signal. ALIVE_SLOW: it lives past its lease and works,
    or was not watched long enough to tell. ALIVE: it lives within its lease. UNKNOWN: nothing identifies it, it is on
    another host, or the host could not be asked. FINISHED_BUT_CLAIMED: the queue holds the job's end elsewhere.
    """

    def __init__(
        self,
        facts: HostFacts,
        rows: QueueFacts | None = None,
        roles: Sequence[Role] = (),
        now: float | None = None,
    ) -> None:
        """`rows`: connections and workers of the queue, where its rows name no process. `now`: epoch seconds of this
        machine; without it what depends on the age of a reading is not proved."""
        self.facts = facts
        self.rows = rows
        self.roles = {role.name: role for role in roles}
        self.now = now
        self.units = {unit.name: unit for unit in facts.units.value or ()}
        self.processes = {process.ident.pid: process for process in facts.processes.value or ()}
        self._states = {state.pid: state for state in facts.holders.value or ()}
        self._children: dict[int, list[Process]] | None = None

    def claim(self, job: Job, role: str) -> Claim:
        verdict, evidence, worker = self._judged(job, role)
        lease = _lease_sentence(job)
        return Claim(
            job=job,
            role=role,
            verdict=verdict,
            evidence=(*evidence, *((lease,) if lease else ())),
            stuck=_overdue(job) or verdict in ("DEAD", "FINISHED_BUT_CLAIMED"),
            worker=worker,
        )

    def _judged(self, job: Job, role: str) -> _Judged:
        holder = job.holder
        if job.ended:
            return "FINISHED_BUT_CLAIMED", (f"its end is on record: {job.ended}", "its claim is left over"), ""
        if holder is None or (holder.pid is None and not holder.unit):
            return by_exclusion(self, job, role)
        hello = self.facts.hello
        if self.facts.agent.problem is not None:
            return "UNKNOWN", (f"the host cannot be asked: {self.facts.agent.problem.line()}",), ""
        if hello is None:
            return "UNKNOWN", (NOT_LOOKED_UP,), ""
        if holder.host and holder.host != hello.host:
            return "UNKNOWN", (f"held on another host: {holder.host}",), ""
        if holder.boot_id and holder.boot_id != hello.boot_id and not self._claimed_since_boot(job):
            if not holder.host:
                return "UNKNOWN", ("held on another host, or before a boot of this one: the row names no host",), ""
            return "DEAD", (f"{hello.host} has booted again since the claim",), ""
        unit = self.units.get(holder.unit)
        if holder.pid is None:
            return self._by_unit(holder, unit)
        return self._by_pid(job, holder, holder.pid, unit)

    # --- the row names a process ------------------------------------------------------------------------------------

    def _by_pid(self, job: Job, holder: Holder, pid: int, unit: Unit | None) -> _Judged:
        assert self.facts.hello is not None
        host, worker = self.facts.hello.host, unit.name if unit else ""
        process, state = self.processes.get(pid), self._states.get(pid)
        if self.facts.holders.problem is not None:
            return "UNKNOWN", (NOT_LOOKED_UP,), worker
        if state is None and process is not None and holder.start in (None, process.ident.start):
            state = PidState(pid=pid, start=process.ident.start, name=process.name)
        if state is None or self._may_be_older_than_the_claim(job, holder):
            return "UNKNOWN", (NOT_LOOKED_UP,), worker
        gone = self._gone(job, holder, state)
        if gone and not (holder.host or holder.boot_id):
            return "UNKNOWN", (f"{gone} on {host}, but the row does not say on which host it was claimed",), ""
        if gone:
            return "DEAD", (gone, *self._unit_sentences(unit, holder)), worker
        if not (holder.host or holder.boot_id or holder.start is not None):
            return "UNKNOWN", (f"pid {pid} lives on {host}, but the row does not say on which host it was claimed",), ""
        verdict, sentences = self.alive(job, process)
        if process is not None and not worker:
            worker = key_of(process)
        return verdict, (f"pid {pid} is alive", *sentences), worker

    def _claimed_since_boot(self, job: Job) -> bool:
        """Then another boot id proves nothing: in a container, a unit that systemd gives a /proc/sys of its own
        (ProtectKernelTunables=) sees the boot id of the machine, and the agent that of the container."""
        uptime = self.facts.uptime
        return uptime is not None and job.running_for is not None and job.running_for + _SLACK < uptime

    def _gone(self, job: Job, holder: Holder, state: PidState) -> str:
        """Why the process that claimed the row no longer lives; "" when it may."""
        if state.start is None:
            return f"pid {state.pid} no longer exists"
        who = f" ({state.name})" if state.name else ""
        if holder.start is not None:
            return "" if state.start == holder.start else f"pid {state.pid} is another process now{who}"
        if self.started_after_the_claim(state.start, job):
            return f"the process with pid {state.pid}{who} started after the claim"
        return ""

    def started_after_the_claim(self, start: int, job: Job) -> bool:
        """Whether a process is surely younger than the claim: an age by the host's clock of processes, and one by the
        database's, each as it was read. What has been running for longer by now only makes the first one greater."""
        hello, uptime = self.facts.hello, self.facts.uptime
        if hello is None or uptime is None or job.running_for is None:
            return False
        return uptime - start / hello.ticks + _SLACK < job.running_for

    def _may_be_older_than_the_claim(self, job: Job, holder: Holder) -> bool:
        """The pid may have been looked up before the row was claimed: it may have been another's, or free, then."""
        taken, uptime, hello = self.facts.holders.taken, self.facts.uptime, self.facts.hello
        if taken is None or uptime is None or hello is None or self.now is None:
            return False
        age = max(0.0, self.now - taken) + _CLOCKS
        if holder.start is not None:
            return holder.start / hello.ticks > uptime - age
        return job.running_for is not None and job.running_for < age

    def before_the_claim(self, reading: Reading[Any], job: Job) -> bool:
        """Whether a reading may be older than the claim, or is too old to be relied on: the holder may be missing."""
        if self.now is None or reading.taken is None:
            return False
        age = max(0.0, self.now - reading.taken) + _CLOCKS
        return age > (_STALE if job.running_for is None else job.running_for)

    # --- the row names a unit alone -----------------------------------------------------------------------------------

    def _by_unit(self, holder: Holder, unit: Unit | None) -> _Judged:
        sentences = self._unit_sentences(unit, holder)
        if unit is None or unit.load != "loaded":
            return "UNKNOWN", (f"systemd has not told of {holder.unit}",), ""
        left = [process.ident.pid for process in self.processes.values() if process.unit == unit.name]
        known = self.facts.units.problem is None and self.facts.processes.problem is None
        if not known or unit.active not in ("failed", "inactive"):
            return "UNKNOWN", sentences, unit.name
        if left:
            return "UNKNOWN", (*sentences, f"pid {left[0]} of it still runs"), unit.name
        return "DEAD", sentences, unit.name

    def _unit_sentences(self, unit: Unit | None, holder: Holder) -> tuple[str, ...]:
        if unit is None or unit.load != "loaded":
            return ()
        if unit.active == "active" and unit.main_pid and unit.main_pid != holder.pid:
            again = f", {unit.restarts} restart{'s' if unit.restarts > 1 else ''} so far" if unit.restarts else ""
            return (f"{unit.name} runs as pid {unit.main_pid} now{again}",)
        return (unit_reason(unit, self.now),)

    # --- a process that lives ---------------------------------------------------------------------------------------

    def alive(self, job: Job, process: Process | None) -> tuple[Verdict, tuple[str, ...]]:
        """What a live holder is doing."""
        sentences: list[str] = []
        if job.heartbeat_age is not None:
            sentences.append(f"last heartbeat {ago(job.heartbeat_age)} ago")
        if process is not None and process.state == "T":
            return "HUNG", ("it is stopped (state T, by a signal or a debugger)", *sentences)
        limit = self.rows.heartbeat_limit if self.rows is not None else None
        silent = limit is not None and job.heartbeat_age is not None and job.heartbeat_age > limit
        if not _overdue(job) and not silent:
            return "ALIVE", tuple(sentences)
        if process is None:
            return "ALIVE_SLOW", (*sentences, "whether it works is not known: it matches no role, so it is not watched")
        if process.idle_for is not None and process.idle_for >= WATCHED_LONG_ENOUGH:
            child = self._working_child(process)
            if child is not None:
                name = f" ({child.name})" if child.name else ""
                return "ALIVE_SLOW", (*sentences, f"it waits for its child pid {child.ident.pid}{name}, which works")
            return "HUNG", (*sentences, f"it has used no CPU for {ago(process.idle_for)}")
        if process.cpu and process.idle_for is not None:
            return "ALIVE_SLOW", (*sentences, f"it works: {process.cpu:.0%} of a core")
        return "ALIVE_SLOW", (*sentences, UNDECIDED)

    def _working_child(self, process: Process) -> Process | None:
        if self._children is None:
            self._children = {}
            for each in self.processes.values():
                for ancestor in each.ancestors:
                    self._children.setdefault(ancestor.pid, []).append(each)
        below = self._children.get(process.ident.pid, ())
        working = (each for each in below if each.cpu and each.idle_for is not None)
        return next((each for each in working if (each.idle_for or 0.0) < WATCHED_LONG_ENOUGH), None)


def pending(claim: Claim) -> bool:
    """The host has not answered yet: the claim is not judged, which is no finding."""
    return NOT_LOOKED_UP in claim.evidence


def undecided(claim: Claim) -> bool:
    """A longer look at the holder can tell slow from hung."""
    return UNDECIDED in claim.evidence


def _overdue(job: Job) -> bool:
    return job.overdue is not None and job.overdue > 0


def _lease_sentence(job: Job) -> str:
    if job.overdue is None:
        return ""
    if job.overdue > 0:
        return f"its lease ran out {ago(job.overdue)} ago by the database's clock"
    return f"its lease is valid for another {ago(-job.overdue)}"
