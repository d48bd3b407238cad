"""Verdicts where the row names no process: death is proved by excluding everybody who could be the holder."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.fleet.model import (
    Backend,
    Claim,
    DatabaseClient,
    Holder,
    HostFacts,
    Ident,
    Job,
    Process,
    QueueFacts,
    QueueWorker,
    Reading,
    Role,
)
from console.fleet.verdicts import judge, pending
from tests.fleet.facts import BOOT, HELLO, MAIL, NOW, facts, failed_unit, failing_reading, good, job, process

UPTIME = 100_000.0
LIMIT = 30.0


def claimed(worker: str = "7", **given: Any) -> Job:
    """A job of a worker whose heartbeat expired half an hour ago."""
    usual: dict[str, Any] = {"heartbeat_age": 1830.0, "overdue": 1800.0, "running_for": 1900.0}
    return job(holder=Holder(worker=worker), **(usual | given))


def worker(pid: int, **given: Any) -> Process:
    """A worker of mail that is older than the claim."""
    return process(pid, start=pid, **({"idle_for": 1.0, "unit": f"mail-worker@{pid}.service"} | given))


def connected(*processes: Process, backend: int = 0) -> tuple[DatabaseClient, ...]:
    return tuple(
        DatabaseClient(
            backend=backend or 5000 + one.ident.pid, port=40000, ident=one.ident, name=one.name, unit=one.unit
        )
        for one in processes
    )


def queue(clients: tuple[DatabaseClient, ...] = (), fresh: int = 0, **given: Any) -> QueueFacts:
    """What the queue says: these connections, and so many workers with a fresh heartbeat."""
    workers = tuple(QueueWorker(id=str(100 + number), heartbeat_age=3.0) for number in range(fresh))
    backends = tuple(Backend(pid=each.backend, address="127.0.0.1", port=each.port) for each in clients if each.backend)
    usual: dict[str, Any] = {"backends": backends, "workers": workers, "heartbeat_limit": LIMIT}
    return QueueFacts(**(usual | given))


def verdict(
    row: Job, processes: tuple[Process, ...], clients: tuple[DatabaseClient, ...], rows: QueueFacts, **given: Any
) -> Claim:
    there = facts(processes=processes, clients=good(clients), uptime=UPTIME, **given)
    return judge(row, "mail", there, rows, (MAIL,), NOW)


def test_an_expired_heartbeat_and_nobody_left_is_death() -> None:
    ended = failed_unit("mail-worker@2.service", result="oom-kill", exited=NOW - 1860)
    claim = verdict(claimed(), (), (), queue(), units=(ended,))
    assert claim.verdict == "DEAD" and claim.stuck
    assert claim.evidence == (
        "the last heartbeat of worker 7 was 30 min ago by the database's clock, which expires after 30 s",
        "nobody on wrk01 who is connected to the database, or of the role, can be its holder",
        "mail-worker@2.service was killed by its memory limit 256M, 31 min ago",
        "its lease ran out 30 min ago by the database's clock",
    )


def test_fresh_heartbeats_account_for_the_workers_that_live() -> None:
    live = (worker(1), worker(2))
    claim = verdict(claimed(), live, connected(*live), queue(connected(*live), fresh=2))
    assert claim.verdict == "DEAD"
    assert "2 fresh heartbeats account for the 2 that live" in claim.evidence[1]


def test_one_heartbeat_too_few_proves_nothing() -> None:
    live = (worker(1), worker(2))
    claim = verdict(claimed(), live, connected(*live), queue(connected(*live), fresh=1))
    assert claim.verdict == "UNKNOWN" and not claim.worker
    assert claim.evidence[1:4] == (
        "pid 1 (mail-worker@1.service) is connected to the database",
        "pid 2 (mail-worker@2.service) is connected to the database",
        "which of them holds it cannot be told: fewer heartbeats are fresh",
    )


@pytest.mark.parametrize(
    ("doing", "expected", "words"),
    [
        ({"idle_for": 600.0}, "HUNG", "it has used no CPU for 10 min"),
        ({"state": "T"}, "HUNG", "it is stopped"),
        ({"cpu": 0.97}, "ALIVE_SLOW", "it works: 97% of a core"),
    ],
)
def test_the_only_process_without_a_heartbeat_is_the_holder(doing: dict[str, Any], expected: str, words: str) -> None:
    """Its fellow sends heartbeats; it does not."""
    if expected == "HUNG":
        live, fresh = (worker(1, **doing), worker(2)), 1
    else:
        live, fresh = (worker(1, **doing),), 0
    claim = verdict(claimed(), live, connected(*live), queue(connected(*live), fresh=fresh))
    assert (claim.verdict, claim.worker) == (expected, "mail-worker@1.service")
    sentence = "pid 1 (mail-worker@1.service) is connected to the database and no fresh heartbeat accounts for it"
    assert claim.evidence[1] == sentence and words in claim.evidence[2]


def test_a_worker_that_has_lost_its_connection_is_found_by_its_role() -> None:
    claim = verdict(claimed(), (worker(1, idle_for=600.0),), (), queue())
    assert (claim.verdict, claim.worker) == ("HUNG", "mail-worker@1.service")
    assert claim.evidence[1] == "pid 1 (mail-worker@1.service) is of the role and no fresh heartbeat accounts for it"
    nameless = Role(name="mail", queues=("mail",))
    there = facts(clients=good(()), uptime=UPTIME)
    assert judge(claimed(), "mail", there, queue(), (nameless,), NOW).verdict == "UNKNOWN", "it would not be found"


def test_who_started_after_the_claim_or_is_a_tool_does_not_hold_it() -> None:
    young = process(1, start=int((UPTIME - 60) * 100))
    tool = Process(ident=Ident(BOOT, 2, 2), name="psql")
    clients = connected(young, tool)
    assert verdict(claimed(), (young,), clients, queue(clients)).verdict == "DEAD"
    older = msgspec.structs.replace(young, ident=Ident(BOOT, 1, int((UPTIME - 1899) * 100)))
    assert verdict(claimed(), (older,), connected(older), queue(connected(older))).verdict != "DEAD"


def test_a_connected_stranger_leaves_it_open() -> None:
    stranger = connected(Process(ident=Ident(BOOT, 9, 9), name="gunicorn"))
    claim = verdict(claimed(), (), stranger, queue(stranger))
    assert claim.verdict == "UNKNOWN" and "pid 9 (gunicorn) is connected to the database" in claim.evidence[1]


def test_several_workers_in_one_process_need_a_heartbeat_each() -> None:
    """One process with two workers, and one that hangs: two heartbeats are fresh, three are needed."""
    two, hung = worker(1), worker(2, cpu=0.9)
    clients = (*connected(two, backend=51), *connected(two, backend=52), *connected(hung, backend=53))
    backends = tuple(Backend(pid=pid, address="127.0.0.1", port=40000, listens=True) for pid in (51, 52, 53))
    assert verdict(claimed(), (two, hung), clients, queue(fresh=2, backends=backends)).verdict == "UNKNOWN"
    assert verdict(claimed(), (two,), clients[:2], queue(fresh=2, backends=backends)).verdict == "DEAD"


@pytest.mark.parametrize(
    ("rows", "clients", "words"),
    [
        ({"backends": None}, (), "who is connected to the database has not been read"),
        ({"backends": (Backend(pid=5, hidden=True),)}, (), "1 connections of other roles are hidden: GRANT"),
        (
            {"backends": (Backend(pid=5, address="10.0.0.7", port=1),)},
            (DatabaseClient(backend=5, port=1, here=False),),
            "1 clients of the database are not on this host (10.0.0.7)",
        ),
        ({}, (DatabaseClient(backend=5, port=1, user="deploy"),), "may not be seen (deploy): run the agent with more"),
    ],
    ids=["not read", "hidden", "elsewhere", "not permitted"],
)
def test_whoever_cannot_be_seen_leaves_it_open(
    rows: dict[str, Any], clients: tuple[DatabaseClient, ...], words: str
) -> None:
    claim = verdict(claimed(), (), clients, queue(**rows))
    assert claim.verdict == "UNKNOWN" and words in claim.evidence[1], claim.evidence


def test_a_client_elsewhere_that_has_gone_since_is_passed_over() -> None:
    gone = (DatabaseClient(backend=5, port=1, here=False),)
    assert verdict(claimed(), (), gone, queue(backends=())).verdict == "DEAD"


def test_old_or_failing_readings_prove_nothing() -> None:
    for reading, waits in (
        (Reading[Any](), True),
        (failing_reading("no answer", ()), False),
        (Reading[Any](value=(), taken=NOW - 1900), True),  # older than the claim
    ):
        claim = judge(claimed(), "mail", facts(clients=reading, uptime=UPTIME), queue(), (MAIL,), NOW)
        assert claim.verdict == "UNKNOWN" and pending(claim) == waits, claim.evidence
    hidden = failing_reading("not permitted", ())
    assert (
        judge(claimed(), "mail", facts(processes=hidden, clients=good(())), queue(), (MAIL,), NOW).verdict == "UNKNOWN"
    )
    down = facts(clients=good(()), agent=failing_reading("killed", HELLO))
    assert judge(claimed(), "mail", down, queue(), (MAIL,), NOW).verdict == "UNKNOWN"


def test_within_its_heartbeat_it_lives() -> None:
    claim = verdict(claimed(heartbeat_age=4.0, overdue=-26.0), (), (), queue())
    assert claim.verdict == "ALIVE" and not claim.stuck
    assert claim.evidence[0] == "the last heartbeat of worker 7 was 4 s ago by the database's clock"


def test_a_worker_that_the_queue_has_struck_off() -> None:
    row = claimed(heartbeat_age=None)
    row = msgspec.structs.replace(row, holder=Holder(pruned=True))
    claim = verdict(row, (), (), queue())
    assert claim.verdict == "DEAD"
    assert claim.evidence[0] == "its worker's row is gone: the queue has removed it as stale"


def test_a_row_that_names_no_worker_can_be_any_live_workers() -> None:
    """Heartbeats account for nobody then."""
    live = worker(1, cpu=0.4)
    row = msgspec.structs.replace(claimed(), holder=None, heartbeat_age=None)
    claim = verdict(row, (live,), connected(live), queue(connected(live), fresh=1))
    assert (claim.verdict, claim.worker) == ("ALIVE_SLOW", "mail-worker@1.service")
    assert verdict(row, (), (), queue(fresh=3)).verdict == "DEAD"


# --- never DEAD while the holder lives -------------------------------------------------------------------------------


@st.composite
def worlds(draw: st.DrawFn, blocked: bool) -> tuple[HostFacts, QueueFacts, Job]:
    """A host on which the holder lives: connected or of the role; its worker's heartbeat has expired.

    The others may be anything. With `blocked` the holder uses its connections for nothing any more, and any number of
    heartbeats may come from who knows where. Without, it may use them for its job, each fresh heartbeat comes from a
    connected process, and a process with several workers has a LISTEN connection for each.
    """
    running_for = draw(st.floats(100.0, 90_000.0))
    late = draw(st.floats(0.1, running_for - LIMIT))
    backend = iter(range(50, 500))
    processes: list[Process] = []
    clients: list[DatabaseClient] = []
    backends: list[Backend] = []
    fresh = draw(st.integers(0, 5)) if blocked else 0
    for number in range(draw(st.integers(1, 5))):
        holds = number == 0
        ours = draw(st.booleans())
        linked = draw(st.booleans()) or (holds and not ours)
        age = draw(st.floats(running_for if holds else 0.0, UPTIME - 1))
        tool = not holds and draw(st.booleans())
        one = Process(
            ident=Ident(BOOT, 10 + number, int((UPTIME - age) * 100)),
            name="psql" if tool else "python3",
            role="mail" if ours else "",
            unit=draw(st.sampled_from(["", f"mail-worker@{number}.service"])) if ours else "",
            idle_for=draw(st.one_of(st.none(), st.floats(0, 5000))),
            cpu=draw(st.one_of(st.none(), st.floats(0, 1))),
            state=draw(st.sampled_from(["R", "S", "D", "T"])),
        )
        sends = linked and not holds and not tool and (one.idle_for or 0.0) < 60.0
        beats = draw(st.integers(0, 3)) if sends else 0
        fresh += beats
        if ours or draw(st.booleans()):
            processes.append(one)
        for connection in range(max(beats, draw(st.integers(1, 2))) if linked else 0):
            pid = next(backend)
            clients.append(DatabaseClient(backend=pid, port=pid, ident=one.ident, name=one.name, unit=one.unit))
            listens = connection < beats if beats > 1 else draw(st.sampled_from([None, False, connection == 0]))
            used = st.one_of(st.none(), st.floats(0, 3.0 if beats and connection == 0 else 90))
            quiet = late + LIMIT if holds and blocked else draw(used)
            backends.append(Backend(pid=pid, address="127.0.0.1", port=pid, listens=listens, quiet=quiet))
    rows = queue(fresh=fresh, backends=tuple(draw(st.permutations(backends))))
    holder = draw(st.sampled_from([None, Holder(worker="7"), Holder(pruned=True)]))
    row = job(holder=holder, overdue=late, heartbeat_age=late + LIMIT, running_for=running_for)
    there = facts(processes=tuple(processes), clients=good(tuple(clients)), uptime=UPTIME)
    return there, rows, row


@pytest.mark.parametrize("blocked", [False, True])
@given(data=st.data())
def test_a_holder_that_lives_is_never_called_dead(blocked: bool, data: st.DataObject) -> None:
    there, rows, row = data.draw(worlds(blocked))
    claim = judge(row, "mail", there, rows, (MAIL,), NOW)
    assert claim.verdict != "DEAD", claim.evidence
    assert claim.evidence and all(claim.evidence)
