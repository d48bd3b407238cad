"""What the console does to rows: one predicate counts and acts, nothing is taken from a live holder, undo, rights."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from console.config import Config, Database
from console.errors import QueueError
from console.fleet.model import Count, Holder, Role
from console.fleet.plan import RowChange, RowRef, Selection
from console.queue.install import install
from console.queue.writer import QueueWriter
from tests.postgres import Server

Connection = psycopg.Connection[dict[str, Any]]
Kept = list[tuple[tuple[str, ...], tuple[RowChange, ...]]]


@pytest.fixture
def db(database: str) -> Iterator[Connection]:
    with psycopg.connect(database, autocommit=True, row_factory=dict_row) as connection:
        yield connection


@pytest.fixture
async def writer(database: str) -> AsyncIterator[QueueWriter]:
    opened = writer_of(database)
    yield opened
    await opened.close()


def writer_of(dsn: str, *roles: Role, **options: Any) -> QueueWriter:
    return QueueWriter(Config(database=Database(dsn=dsn, configured=True, **options), roles=roles))


def fill(db: Connection, number: int = 1, queue: str = "mail", **options: Any) -> list[int]:
    named = "".join(f", {name} => %({name})s" for name in options)
    query = f"SELECT worktop_enqueue(%(queue)s, 'send'{named}) AS id FROM generate_series(1, %(number)s)"
    return [row["id"] for row in db.execute(query.encode(), {"queue": queue, "number": number} | options)]


def claim(db: Connection, number: int = 1, queue: str = "mail", pid: int = 812, lease: float = -1) -> list[Any]:
    """Claimed rows; with a negative lease it has expired already."""
    query = """SELECT * FROM worktop_claim(%s::text[], 'web1', 'boot', 'mail@1.service', %s, 99,
                                          make_interval(secs => %s), %s)"""
    return db.execute(query.encode(), ([queue], pid, lease, number)).fetchall()


def rows(db: Connection, columns: str = "id, status, attempts, reclaims, lease_token") -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in db.execute(f"SELECT {columns} FROM worktop_jobs ORDER BY id".encode())]


async def apply(writer: QueueWriter, selection: Selection, kept: Kept | None = None, batch: int = 1000, **hooks: Any):  # type: ignore[no-untyped-def]
    def keep(columns: tuple[str, ...], changes: Sequence[RowChange]) -> None:
        if kept is not None:
            kept.append((columns, tuple(changes)))

    return await writer.apply(
        selection,
        batch=batch,
        before_commit=hooks.get("before_commit", keep),
        on_batch=hooks.get("on_batch", lambda rows, seconds: True),
    )


async def undo(writer: QueueWriter, verb: Any, kept: Kept) -> Any:
    ((columns, changes),) = kept
    return await writer.restore(verb, columns, changes)


STUCK = Selection(verb="reclaim", queues=("mail",), overdue_only=True)


async def test_what_is_counted_is_what_is_reclaimed(db: Connection, writer: QueueWriter) -> None:
    fill(db, 7), fill(db, 2, "other")
    claim(db, 4), claim(db, 2, lease=60), claim(db, 2, "other")
    survey = await writer.survey(STUCK)
    assert (survey.rows, survey.queues, len(survey.samples)) == (Count(4), (("mail", Count(4)),), 4)
    kept: Kept = []
    done = await apply(writer, STUCK, kept, batch=3)
    assert (done.rows, done.reclaimed, done.batches, done.stopped, done.blocked) == (4, 4, 2, False, ())
    assert sum(len(changes) for _, changes in kept) == 4
    assert (await writer.survey(STUCK)).rows == Count(0)
    found = db.execute("SELECT status, count(*), sum(reclaims) FROM worktop_jobs GROUP BY 1 ORDER BY 1").fetchall()
    assert [tuple(row.values()) for row in found] == [("running", 4, 0), ("waiting", 5, 4)]


async def test_a_heartbeat_between_survey_and_apply_keeps_the_row(db: Connection, writer: QueueWriter) -> None:
    fill(db, 2)
    alive, dead = claim(db, 2)
    assert (await writer.survey(STUCK)).rows == Count(2)
    db.execute("SELECT worktop_heartbeat(%s, %s)", (alive["id"], alive["lease_token"]))
    assert (await apply(writer, STUCK)).rows == 1
    assert [row[:2] for row in rows(db)] == [(alive["id"], "running"), (dead["id"], "waiting")]


async def test_a_late_finish_of_the_former_holder_is_rejected(db: Connection, writer: QueueWriter) -> None:
    (job,) = fill(db)
    (first,) = claim(db)
    assert writer.late_finish == "rejected"
    await apply(writer, STUCK)
    for call in ("finish(%s, %s)", "heartbeat(%s, %s)", "fail(%s, %s, 'late')"):
        with pytest.raises(psycopg.Error) as caught:
            db.execute(f"SELECT worktop_{call}".encode(), (job, first["lease_token"]))
        assert caught.value.sqlstate == "WT001"
    (second,) = claim(db, pid=813, lease=60)
    with pytest.raises(psycopg.Error, match="no longer the row's"):
        db.execute("SELECT worktop_finish(%s, %s)", (job, first["lease_token"]))
    db.execute("SELECT worktop_finish(%s, %s)", (job, second["lease_token"]))
    assert rows(db, "status, attempts, reclaims") == [("done", 2, 1)]


async def test_a_row_whose_attempts_are_used_up_goes_back_too(db: Connection, writer: QueueWriter) -> None:
    fill(db, max_attempts=1)
    claim(db)
    await apply(writer, STUCK)
    (again,) = claim(db, lease=60)
    assert (again["attempts"], again["max_attempts"], again["reclaims"]) == (2, 1, 1)


async def test_named_rows_are_changed_while_their_token_is_the_one_that_was_seen(
    db: Connection, writer: QueueWriter
) -> None:
    fill(db, 4)
    held = claim(db, 4)
    db.execute("SELECT worktop_finish(%s, %s)", (held[1]["id"], held[1]["lease_token"]))
    seen = tuple(RowRef(str(row["id"]), str(row["lease_token"])) for row in held[:3])
    seen = (*seen[:2], RowRef(seen[2].id, "999"))
    selection = Selection(verb="reclaim", rows=seen)
    assert (await writer.survey(selection)).rows == Count(1)
    done = await apply(writer, selection)
    assert (done.rows, done.skipped) == (1, 2)
    assert [row[1] for row in rows(db)] == ["waiting", "done", "running", "running"]


async def test_rows_of_a_holder(db: Connection, writer: QueueWriter) -> None:
    fill(db, 5)
    claim(db, 2, pid=1), claim(db, 1, pid=2, lease=-100), claim(db, 1, pid=2)
    groups = await writer.holders(STUCK)
    assert [(group.holder and group.holder.pid, group.rows, group.reclaims) for group in groups] == [
        (2, Count(2), 0),
        (1, Count(2), 0),
    ]
    assert groups[0].longest.overdue == pytest.approx(100, abs=5)
    assert groups[0].holder is not None
    selection = Selection(verb="reclaim", queues=("mail",), holders=(groups[0].holder,))
    assert (await writer.survey(selection)).rows == Count(2)
    assert (await apply(writer, selection)).rows == 2
    other_boot = Holder(pid=1, boot_id="another")
    assert (await writer.survey(Selection(verb="reclaim", holders=(other_boot,)))).rows == Count(0)


async def test_roles_types_and_ages_choose_rows(db: Connection, database: str) -> None:
    writer = writer_of(database, Role(name="post", queues=("mail", "fax"), types=("send",)))
    try:
        fill(db, 1, "mail"), fill(db, 1, "fax"), fill(db, 1, "other")
        db.execute("UPDATE worktop_jobs SET type = 'receive' WHERE queue = 'fax'")
        db.execute("UPDATE worktop_jobs SET run_after = now() - interval '1 hour' WHERE queue = 'mail'")
        for selection, expected in (
            (Selection(verb="discard", role="post"), 1),
            (Selection(verb="discard", role="post", types=("receive",)), 1),
            (Selection(verb="discard", queues=("other",)), 1),
            (Selection(verb="discard"), 2),  # the queues of all roles
            (Selection(verb="discard", states=("failed",)), 0),
            (Selection(verb="discard", role="post", older_than=1800), 1),
            (Selection(verb="discard", role="post", older_than=7200), 0),
        ):
            assert (await writer.survey(selection)).rows == Count(expected), selection
        with pytest.raises(QueueError, match="there is no role nobody"):
            await writer.survey(Selection(verb="discard", role="nobody"))
    finally:
        await writer.close()


async def test_poison_goes_to_failed(db: Connection, writer: QueueWriter) -> None:
    fill(db, 3)
    claim(db, 3)
    db.execute("UPDATE worktop_jobs SET reclaims = 3 WHERE id = 2")
    selection = Selection(verb="reclaim", queues=("mail",), overdue_only=True, quarantine_after=3)
    survey = await writer.survey(selection)
    assert (survey.rows, survey.poisoned) == (Count(3), Count(1))
    assert [text.sql.count("'failed'") for text in writer.statements(selection, 1000)] == [1, 0, 0]
    kept: Kept = []
    done = await apply(writer, selection, kept)
    assert (done.rows, done.reclaimed, done.quarantined) == (3, 2, 1)
    assert rows(db, "status, reclaims, last_error")[1] == (
        "failed",
        4,
        "quarantined: 4 × taken from a holder that did not end it",
    )
    for columns, changes in reversed(kept):
        assert (await writer.restore("reclaim", columns, changes)).rows == len(changes)
    assert rows(db, "status, reclaims") == [("running", 0), ("running", 3), ("running", 0)]
    await apply(writer, Selection(verb="quarantine", rows=(RowRef("1"),), note="makes the printer burn"))
    assert rows(db, "status, last_error")[0] == ("failed", "quarantined: makes the printer burn")


async def test_the_other_verbs(db: Connection, writer: QueueWriter) -> None:
    fill(db, 3, max_attempts=1)
    for held in claim(db, 2):
        db.execute("SELECT worktop_fail(%s, %s, 'broken')", (held["id"], held["lease_token"]))
    kept: Kept = []
    assert (await apply(writer, Selection(verb="retry", rows=(RowRef("1"),)), kept)).rows == 1
    assert rows(db, "id, status, attempts, max_attempts, finished_at")[0] == (1, "waiting", 1, 2, None)
    assert (await undo(writer, "retry", kept)).rows == 1
    assert rows(db, "id, status, max_attempts")[0] == (1, "failed", 1)

    db.execute("UPDATE worktop_jobs SET run_after = now() + interval '1 hour' WHERE id = 3")
    waiting = Selection(verb="run-now", queues=("mail",))
    assert [(await apply(writer, waiting)).rows for _ in range(2)] == [1, 0]
    higher = Selection(verb="priority", queues=("mail",), priority=7)
    assert [(await apply(writer, higher, batch=1)).rows for _ in range(2)] == [1, 0]
    assert rows(db, "id, priority, run_after <= now()")[2] == (3, 7, True)


async def test_a_discarded_row_comes_back_whole(db: Connection, writer: QueueWriter) -> None:
    db.execute(
        """SELECT worktop_enqueue('mail', 'send', payload => p, idempotency_key => k)
           FROM (VALUES ('null'::jsonb, 'a'), ('{"é": [1.10, "x\\ny"]}', NULL), ('"quote'' %"', 'c')) AS v(p, k)"""
    )
    before = rows(db, "*")
    kept: Kept = []
    assert (await apply(writer, Selection(verb="discard", queues=("mail",)), kept)).rows == 3
    assert rows(db) == []
    db.execute("SELECT worktop_enqueue('mail', 'send', idempotency_key => 'c')")
    restored = await undo(writer, "discard", kept)
    assert restored.rows == 2
    assert restored.refused[0][0] == "3"
    assert "already exists" in restored.refused[0][1]
    assert rows(db, "*")[:2] == before[:2]
    assert dict((await undo(writer, "discard", kept)).refused)["1"] == "there is such a job again"


async def test_undo_restores_what_nobody_has_touched(db: Connection, writer: QueueWriter) -> None:
    fill(db, 4)
    claim(db, 4)
    before = rows(db, "*")
    kept: Kept = []
    await apply(writer, STUCK, kept)
    (taken,) = claim(db, pid=4711, lease=60)
    (ended,) = claim(db, pid=4712, lease=60)
    db.execute("SELECT worktop_finish(%s, %s)", (ended["id"], ended["lease_token"]))
    db.execute("DELETE FROM worktop_jobs WHERE id = 3")
    restored = await undo(writer, "reclaim", kept)
    assert restored.rows == 1
    assert dict(restored.refused) == {
        str(taken["id"]): "claimed again since by pid 4711 on web1",
        str(ended["id"]): "done since",
        "3": "no longer there",
    }
    assert rows(db, "*")[-1] == before[3]


async def test_claimers_and_two_writers_never_take_the_same_row(db: Connection, database: str) -> None:
    fill(db, 600)
    claim(db, 300)
    writers = [writer_of(database) for _ in range(2)]
    kept: list[Kept] = [[], []]
    stop = asyncio.Event()

    async def claiming() -> list[int]:
        claimed = list[int]()
        async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
            while not stop.is_set():
                result = await connection.execute(
                    "SELECT id FROM worktop_claim('{mail}', 'web2', 'boot', 'u', 900, 1, '1 hour', 3)"
                )
                claimed += [row[0] for row in await result.fetchall()]
        return claimed

    try:
        claimer = asyncio.create_task(claiming())
        done = await asyncio.gather(
            *(apply(one, STUCK, into, batch=20) for one, into in zip(writers, kept, strict=True))
        )
        stop.set()
        claimed = await claimer
    finally:
        for one in writers:
            await one.close()
    taken = [change.id for into in kept for _, changes in into for change in changes]
    assert sum(one.rows for one in done) == len(taken) == len(set(taken)) == 300
    assert len(claimed) == len(set(claimed))
    (total,) = db.execute("SELECT max(reclaims) AS most, sum(reclaims) AS all FROM worktop_jobs").fetchall()
    assert (total["most"], total["all"]) == (1, 300)


async def test_a_row_that_another_session_holds_is_skipped(db: Connection, database: str, writer: QueueWriter) -> None:
    fill(db, 2)
    claim(db, 2)
    with psycopg.connect(database) as holder:
        holder.execute("SELECT FROM worktop_jobs WHERE id = 1 FOR UPDATE")
        assert (await apply(writer, STUCK)).rows == 1
        named = await apply(writer, Selection(verb="reclaim", rows=(RowRef("1"),)))
        assert (named.rows, named.skipped) == (0, 1)


async def test_rows_that_come_back_are_not_changed_again(db: Connection, writer: QueueWriter) -> None:
    fill(db, 3, max_attempts=1)
    for held in claim(db, 3):
        db.execute("SELECT worktop_fail(%s, %s, 'broken')", (held["id"], held["lease_token"]))

    def fail_again(rows: int, seconds: float) -> bool:
        for held in claim(db, 3):
            db.execute("UPDATE worktop_jobs SET max_attempts = 1 WHERE id = %s", (held["id"],))
            db.execute("SELECT worktop_fail(%s, %s, 'broken')", (held["id"], held["lease_token"]))
        return True

    done = await apply(writer, Selection(verb="retry", queues=("mail",)), batch=1, on_batch=fail_again)
    assert done.rows == 3


async def test_stopped_between_batches(db: Connection, writer: QueueWriter) -> None:
    fill(db, 10)
    claim(db, 10)
    done = await apply(writer, STUCK, batch=4, on_batch=lambda rows, seconds: False)
    assert (done.rows, done.batches, done.stopped, done.problem) == (4, 1, True, None)


async def test_a_journal_that_cannot_be_written_changes_nothing(db: Connection, writer: QueueWriter) -> None:
    fill(db, 2)
    claim(db, 2)

    def full(columns: tuple[str, ...], changes: Sequence[RowChange]) -> None:
        raise OSError(28, "No space left on device")

    done = await apply(writer, STUCK, before_commit=full)
    assert (done.rows, done.stopped, done.problem and done.problem.why) == (0, True, "No space left on device")
    assert [row[1] for row in rows(db)] == ["running", "running"]


async def test_idle_workers_are_woken(db: Connection, writer: QueueWriter) -> None:
    fill(db, 3)
    claim(db, 2)
    db.execute("LISTEN worktop_jobs")
    await apply(writer, STUCK, batch=1)
    await writer.wake(["mail"])
    assert [note.payload for note in db.notifies(timeout=2, stop_after=3)] == ["mail"] * 3


async def test_pause_and_resume(db: Connection, writer: QueueWriter) -> None:
    fill(db)
    assert [change.id for change in await writer.set_paused(["mail", "fax"], True)] == ["mail", "fax"]
    assert await writer.set_paused(["mail"], True) == ()
    assert await writer.paused() == {"mail", "fax"}
    assert claim(db) == []
    kept = await writer.set_paused(["fax"], False)
    assert (await writer.restore("resume", ("paused",), kept)).rows == 1
    assert await writer.paused() == {"mail", "fax"}


# --- what is in the way ----------------------------------------------------------------------------------------------


async def test_rows_that_a_constraint_forbids_are_told_and_the_others_go_on(
    db: Connection, writer: QueueWriter
) -> None:
    fill(db, 5)
    claim(db, 5)
    db.execute(
        """CREATE UNIQUE INDEX one_waiting ON worktop_jobs ((payload ->> 'lock')) WHERE status = 'waiting';
           UPDATE worktop_jobs SET payload = '{"lock": "a"}' WHERE id IN (2, 4);
           ALTER TABLE worktop_jobs ADD CONSTRAINT not_five CHECK (id <> 5 OR status <> 'waiting')"""
    )
    kept: Kept = []
    done = await apply(writer, STUCK, kept)
    assert (done.rows, done.stopped) == (3, False)
    first, second = sorted(done.blocked, key=lambda one: int(one.id))
    assert (first.id in "24", second.id) == (True, "5")
    assert "one_waiting" in first.why
    assert "(lock" in first.why or "Key" in first.why
    assert "not_five" in second.why
    assert "mail" not in second.why  # the row itself may hold what nobody should see here
    assert sum(len(changes) for _, changes in kept) == 3


# --- rights ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def reader(db: Connection, postgres: Server) -> Iterator[str]:
    """A role that may look, and its DSN's user part."""
    db.execute(
        "DROP ROLE IF EXISTS looker; CREATE ROLE looker LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO looker"
    )
    yield "looker"
    db.execute("DROP OWNED BY looker; DROP ROLE looker")


async def test_a_role_that_may_only_look(db: Connection, database: str, reader: str) -> None:
    writer = writer_of(database.replace("user=postgres", f"user={reader}"))
    try:
        fill(db, 2)
        claim(db, 1)
        assert (await writer.survey(STUCK)).rows == Count(1)
        done = await apply(writer, STUCK)
        assert (done.rows, done.stopped) == (0, True)
        assert done.problem is not None
        assert "permission denied" in done.problem.why
        for verb, selection in (
            ("reclaim", STUCK),
            ("discard", Selection(verb="discard", queues=("mail",))),
            ("priority", Selection(verb="priority", queues=("mail",), priority=1)),
        ):
            for grant in await writer.missing_rights(verb):  # type: ignore[arg-type]
                db.execute(grant.encode())
            assert await writer.missing_rights(verb) == ()  # type: ignore[arg-type]
            assert (await apply(writer, selection)).rows > 0
            db.execute("DELETE FROM worktop_jobs")
            fill(db, 2)
            claim(db, 1)
            db.execute(f"REVOKE ALL ON worktop_jobs FROM {reader}; GRANT SELECT ON worktop_jobs TO {reader}".encode())
        assert await writer.missing_rights("reclaim") == (
            "GRANT UPDATE (status, run_after, reclaims, lease_token, lease_expires, last_error) "
            'ON "public".worktop_jobs TO looker;',
        )
        assert await writer.missing_rights("pause") == ('GRANT INSERT, UPDATE ON "public".worktop_queues TO looker;',)
        with pytest.raises(QueueError, match="permission denied"):
            await writer.set_paused(["mail"], True)
        assert (await writer.identity()).endswith("/public/worktop")
    finally:
        await writer.close()


async def test_row_security_is_told(db: Connection, database: str, reader: str) -> None:
    db.execute("ALTER TABLE worktop_jobs ENABLE ROW LEVEL SECURITY")
    fill(db)
    writer = writer_of(database.replace("user=postgres", f"user={reader}"))
    try:
        survey = await writer.survey(STUCK)
        assert survey.rows == Count(0)
        assert "row level security hides rows" in survey.notes[0]
    finally:
        await writer.close()


# --- the connection breaks -------------------------------------------------------------------------------------------


def terminate(db: Connection) -> None:
    db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'worktop actions'")


@pytest.mark.parametrize("moment", ["before commit", "between batches"])
async def test_a_connection_that_is_cut_is_made_again(db: Connection, writer: QueueWriter, moment: str) -> None:
    fill(db, 9)
    claim(db, 9)
    cut = [True, True]

    def cut_off() -> None:
        if cut and cut.pop():
            terminate(db)

    def before_commit(columns: tuple[str, ...], changes: Sequence[RowChange]) -> None:
        if moment == "before commit":
            cut_off()

    def on_batch(rows: int, seconds: float) -> bool:
        if moment == "between batches":
            cut_off()
        return True

    done = await apply(writer, STUCK, batch=3, before_commit=before_commit, on_batch=on_batch)
    assert (done.rows, done.stopped, done.problem) == (9, False, None)
    assert rows(db, "status, reclaims") == [("waiting", 1)] * 9


async def test_a_commit_whose_answer_was_lost_is_asked_for(
    db: Connection, writer: QueueWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(db, 4)
    claim(db, 4)
    answer = psycopg.AsyncPipeline.__aexit__
    lost = [True]

    async def lose(self: psycopg.AsyncPipeline, *error: Any) -> None:
        await answer(self, *error)
        if self.level == 0 and kept and lost and lost.pop():
            terminate(db)
            self._conn.pgconn.finish()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(psycopg.AsyncPipeline, "__aexit__", lose)
    kept: Kept = []
    done = await apply(writer, STUCK, kept, batch=2)
    assert (done.rows, done.batches, done.unsure, done.problem) == (4, 2, 0, None)
    assert not lost
    assert sum(len(changes) for _, changes in kept) == 4


async def test_a_server_that_stays_away_ends_the_apply_with_what_was_done(
    own_postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.queue.session.AWAY", 0.5)
    dsn = own_postgres.dsn(own_postgres.new_database())
    install(Database(dsn=dsn))
    writer = writer_of(dsn)
    try:
        with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as db:
            db.execute("SET synchronous_commit = on")
            fill(db, 6)
            claim(db, 6)

        def restart(rows: int, seconds: float) -> bool:
            own_postgres.stop("immediate")
            if not stops:
                own_postgres.start()
            stops.append(True)
            return True

        stops = list[bool]()
        done = await apply(writer, STUCK, batch=2, on_batch=restart)
        assert (done.rows, done.batches, done.stopped) == (4, 2, True)
        assert done.problem is not None
        own_postgres.start()
        assert (await apply(writer, STUCK)).rows == 2
    finally:
        await writer.close()
