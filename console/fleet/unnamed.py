"""The holder of a running job whose row names no process: judged by excluding everybody who could be it. Pure.

The queue's table of workers (where it has one) says that the holder's heartbeat has expired. That alone proves nothing:
a worker that hangs, or has lost its connection for a while, does not send one either and may still finish the job. So
everybody who could be the holder is looked for:

- every process of this host that is connected to the database, and
- every process of the job's role, connected or not;
- not those that started after the claim, nor tools that run no jobs (psql, pg_dump).

Each fresh heartbeat accounts for one live process, or for one LISTEN connection of it; that of a worker which started
after the claim for that one. A process is accounted for by none when it cannot have sent one: its connections have been
quiet for longer than a heartbeat lasts, it has none, it used no CPU for SILENT seconds, or it is stopped. Connections
from other hosts, and such as may not be seen, leave the verdict open: nothing here tells what lives there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from console.fleet.evidence import NOBODY, NOT_LOOKED_UP, key_of, unit_reason
from console.fleet.model import DatabaseClient, Ident, Job, Process, QueueFacts, QueueWorker, Unit, Verdict
from console.text import ago

if TYPE_CHECKING:
    from console.fleet.verdicts import Judge

SILENT = 120.0  # seconds without a clock tick of CPU; a worker that idles uses one every 10 to 60 s
TOOLS = frozenset(
    ["psql", "pg_dump", "pg_dumpall", "pg_restore", "pg_basebackup", "pg_isready", "vacuumdb", "reindexdb"]
)
MOST = 1000  # connections that are read
_NAMED = 3  # of the processes in question


class Candidate(msgspec.Struct, frozen=True):
    """A live process that could hold the row, or could have sent a heartbeat."""

    ident: Ident
    name: str
    unit: str
    process: Process | None  # as it is watched; None: it matches no role and runs in no unit of one
    connected: bool
    listeners: int
    quiet: float | None  # seconds since one of its connections was used; None: not told
    ours: bool  # of the job's role
    young: bool  # it started after the claim

    def silent(self, limit: float) -> bool:
        """Whether it can have sent no heartbeat that is fresh now."""
        if not self.connected or (self.quiet is not None and self.quiet > limit):
            return True
        return self.process is not None and (self.process.idle_for or 0.0) >= SILENT

    def suspect(self, limit: float) -> bool:
        """Whether no heartbeat is counted for it: one that is stopped may have sent it just before."""
        stopped = self.process is not None and self.process.state == "T"
        return not self.young and (stopped or self.silent(limit))

    def sentence(self) -> str:
        where = self.unit or self.name
        shown = f"pid {self.ident.pid}" + (f" ({where})" if where else "")
        return f"{shown} is connected to the database" if self.connected else f"{shown} is of the role"


def by_exclusion(judge: Judge, job: Job, role: str) -> tuple[Verdict, tuple[str, ...], str]:
    """Verdict, evidence, and the worker's key when one process alone can be the holder."""
    rows, facts, holder = judge.rows, judge.facts, job.holder
    known = holder is not None and bool(holder.worker or holder.pruned)
    heartbeat = _heartbeat(job, rows)
    if job.overdue is None or job.overdue <= 0:
        if known and heartbeat and not (holder and holder.pruned) and job.overdue is not None:
            return "ALIVE", (heartbeat,), ""
        return "UNKNOWN", (heartbeat or NOBODY,), ""
    told = (heartbeat or NOBODY,)
    if rows is None or rows.backends is None:
        return "UNKNOWN", (*told, "who is connected to the database has not been read"), ""
    if facts.agent.problem is not None:
        return "UNKNOWN", (*told, f"the host cannot be asked: {facts.agent.problem.line()}"), ""
    if role not in judge.roles or not (judge.roles[role].template or judge.roles[role].match):
        return "UNKNOWN", (*told, f"{role} has neither unit nor match: a worker without a connection is not found"), ""
    problem = facts.clients.problem or facts.processes.problem
    if problem is not None:
        return "UNKNOWN", (*told, f"not everybody can be seen: {problem.line()}"), ""
    read = (facts.clients, facts.processes)
    if facts.hello is None or any(each.value is None or judge.before_the_claim(each, job) for each in read):
        return "UNKNOWN", (*told, NOT_LOOKED_UP), ""
    clients = facts.clients.value or ()
    open_question = _out_of_sight(clients, rows)
    if open_question:
        return "UNKNOWN", (*told, open_question), ""
    candidates = _candidates(judge, job, role, clients, rows)
    left, accounted = _left(candidates, job, rows)
    if not left:
        nobody = f"nobody on {facts.hello.host} who is connected to the database, or of the role, can be its holder"
        return "DEAD", (*told, nobody + accounted, *_endings(judge, job, role)), ""
    sentences = tuple(each.sentence() for each in left[:_NAMED])
    more = (f"and {len(left) - _NAMED} more",) if len(left) > _NAMED else ()
    why = " and no fresh heartbeat accounts for it" if known else " and may be its holder"
    first = left[0]
    if len(left) == 1 and first.ours and first.process is not None:
        verdict, doing = judge.alive(msgspec.structs.replace(job, heartbeat_age=None), first.process)
        return verdict, (*told, sentences[0] + why, *doing), key_of(first.process)
    if len(left) == 1:
        return "UNKNOWN", (*told, sentences[0] + why, "it matches no role, so it is not known what it does"), ""
    apart = "which of them holds it cannot be told" + (": fewer heartbeats are fresh" if known else "")
    return "UNKNOWN", (*told, *sentences, *more, apart), ""


def _heartbeat(job: Job, rows: QueueFacts | None) -> str:
    holder = job.holder
    if holder is not None and holder.pruned:
        return "its worker's row is gone: the queue has removed it as stale"
    if job.heartbeat_age is None:
        return ""
    limit = rows.heartbeat_limit if rows is not None else None
    expired = f", which expires after {ago(limit)}" if limit is not None and job.heartbeat_age > limit else ""
    who = f" of worker {holder.worker}" if holder is not None and holder.worker else ""
    return f"the last heartbeat{who} was {ago(job.heartbeat_age)} ago by the database's clock{expired}"


def _out_of_sight(clients: Iterable[DatabaseClient], rows: QueueFacts) -> str:
    """Why somebody who is connected cannot be looked at; "" when everybody can."""
    backends = {backend.pid: backend for backend in rows.backends or ()}
    if len(backends) >= MOST:
        return f"the database has {len(backends)} connections or more: not all were read"
    hidden = sum(1 for backend in backends.values() if backend.hidden and not backend.own)
    if hidden:
        return f"{hidden} connections of other roles are hidden: GRANT pg_read_all_stats shows them"
    elsewhere = [backends[client.backend] for client in clients if not client.here and client.backend in backends]
    if elsewhere:
        addresses = ", ".join(sorted({backend.address or "a unix socket" for backend in elsewhere})[:_NAMED])
        return f"{len(elsewhere)} clients of the database are not on this host ({addresses})"
    unseen = [client for client in clients if client.here and client.ident is None]
    if unseen:
        users = ", ".join(sorted({client.user or "an account not told" for client in unseen})[:_NAMED])
        return f"{len(unseen)} clients of the database may not be seen ({users}): run the agent with more rights"
    return ""


def _candidates(
    judge: Judge, job: Job, role: str, clients: Iterable[DatabaseClient], rows: QueueFacts
) -> list[Candidate]:
    backends = {backend.pid: backend for backend in rows.backends or ()}
    connections: dict[Ident, list[DatabaseClient]] = {}
    for client in clients:
        if client.ident is not None and client.name not in TOOLS:
            connections.setdefault(client.ident, []).append(client)
    template = judge.roles[role].template

    def candidate(ident: Ident, name: str, unit: str, process: Process | None, ours: bool) -> Candidate:
        own = connections.get(ident, ())
        known = [backends[client.backend] for client in own if client.backend in backends]
        quiet = [backend.quiet for backend in known]
        return Candidate(
            ident=ident,
            name=name,
            unit=unit,
            process=process,
            connected=bool(own),
            listeners=sum(1 for backend in known if backend.listens),
            quiet=min((each for each in quiet if each is not None), default=None) if None not in quiet else None,
            ours=ours,
            young=judge.started_after_the_claim(ident.start, job),
        )

    # a parent without a connection that has children with one is the supervisor of these
    above = {
        ancestor.pid
        for process in judge.processes.values()
        if process.ident in connections
        for ancestor in process.ancestors
    }
    found: dict[Ident, Candidate] = {}
    for process in judge.processes.values():
        ours = process.role == role or (bool(template) and Unit(name=process.unit or "-").template == template)
        own = process.ident in connections
        if own or (ours and process.main and process.ident.pid not in above):
            found[process.ident] = candidate(process.ident, process.name, process.unit, process, ours)
    for ident, others in connections.items():
        if ident not in found:
            found[ident] = candidate(ident, others[0].name, others[0].unit, None, False)
    return sorted(found.values(), key=lambda each: each.ident)


def _left(candidates: list[Candidate], job: Job, rows: QueueFacts) -> tuple[list[Candidate], str]:
    """The candidates that no fresh heartbeat accounts for; and how the others were accounted for, a clause.

    A row that does not say which worker has claimed it can be any worker's, however fresh its heartbeat.
    """
    holder, limit = job.holder, rows.heartbeat_limit
    able = [each for each in candidates if not each.young]
    if holder is None or not (holder.worker or holder.pruned) or limit is None:
        return able, ""
    fresh = [worker for worker in rows.workers or () if worker.id != holder.worker and _is_fresh(worker, limit)]
    named = {worker.pid for worker in fresh if worker.pid is not None}
    unnamed = sum(1 for worker in fresh if worker.pid is None)
    rest = [each for each in candidates if each.ident.pid not in named]
    suspects = [each for each in rest if each.suspect(limit)]
    senders = [each for each in rest if not each.suspect(limit) and not each.silent(limit)]
    if sum(max(1, each.listeners) for each in senders) > unnamed:  # they cannot be told apart
        return [each for each in rest if not each.young], ""
    counted = len(senders) + len(candidates) - len(rest)
    clause = f"; {len(fresh)} fresh heartbeats account for the {counted} that live" if counted else ""
    return suspects, clause


def _is_fresh(worker: QueueWorker, limit: float) -> bool:
    return worker.heartbeat_age is not None and worker.heartbeat_age <= limit


def _endings(judge: Judge, job: Job, role: str) -> tuple[str, ...]:
    """Units of the role that ended since the claim: one of them was the holder, most likely."""
    if role not in judge.roles or not judge.roles[role].template or judge.now is None:
        return ()
    ended = [
        unit
        for unit in judge.units.values()
        if unit.template == judge.roles[role].template
        and unit.exited
        and (job.running_for is None or judge.now - unit.exited < job.running_for)
    ]
    return tuple(unit_reason(unit, judge.now) for unit in sorted(ended, key=lambda unit: -(unit.exited or 0))[:2])
