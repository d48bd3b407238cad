"""The section [actions]: what is wrong with one is said, and a queue that is kept quite differently can be acted on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest

from console.config import Config, Database
from console.errors import ConfigError, QueueError
from console.fleet.model import Count
from console.fleet.plan import RowChange, RowRef, Selection
from console.queue import preset as presets
from console.queue.writer import QueueWriter

# the key has two columns, the token is an expression, rows are locked by columns, workers listen on a channel per queue
TABLES = """
CREATE TABLE "Jobs" (
    kind text, no uuid DEFAULT gen_random_uuid(), "order" integer DEFAULT 0, locked_at timestamp, locked_by text,
    tries smallint DEFAULT 0, run_at timestamp DEFAULT timezone('UTC', now()), dead boolean DEFAULT false, lock text,
    free boolean GENERATED ALWAYS AS (locked_at IS NULL) STORED, data json, PRIMARY KEY (kind, no)
);
CREATE UNIQUE INDEX one_free ON "Jobs" (lock) WHERE locked_at IS NULL AND NOT dead;
CREATE TABLE log (job text, what text);
INSERT INTO "Jobs" (kind, no, locked_at, locked_by, tries, lock, dead, data) VALUES
    ('a', '00000000-0000-0000-0000-000000000001', timezone('UTC', now()) - interval '2 h', 'w1', 1, 'x', false, '{}'),
    ('a', '00000000-0000-0000-0000-000000000002', timezone('UTC', now()) - interval '3 h', 'w1', 1, 'y', false, '{}'),
    ('b', '00000000-0000-0000-0000-000000000003', timezone('UTC', now()) - interval '2 h', 'w2', 7, NULL, false, '{}'),
    ('a', '00000000-0000-0000-0000-000000000004', NULL, NULL, 0, 'y', false, '{"z": 1,  "a": null}'),
    ('a', '00000000-0000-0000-0000-000000000005', timezone('UTC', now()) - interval '2 h', 'w1', 1, NULL, true, 'null');
"""
PRESET = """
name = "odd"
title = "an odd queue"
claim = "lock-columns"
time = "naive-utc"
tables = ["Jobs"]
id_type = "uuid"
from = '{schema}."Jobs" j'

[fields]
id = "j.no"
queue = "j.kind"
priority = 'j."order"'
started = "j.locked_at"

[states.waiting]
where = "j.locked_at IS NULL AND NOT j.dead"
[states.running]
where = "j.locked_at IS NOT NULL"
[states.failed]
where = "j.dead AND j.locked_at IS NULL"

[holder]
kind = "columns"
text = "j.locked_by"

[lease]
kind = "claimed"
at = "j.locked_at"
timeout = 3600

[fence]
token = "j.tries || ' ' || j.locked_by"

[wakeup]
channels = ["'jobs_' || j.kind", "'jobs'"]
payload = "'retry'"

[actions]
table = '{schema}."Jobs"'
key = ["kind", "no"]

[actions.reclaim]
states = ["running"]
set = { locked_at = "NULL", locked_by = "NULL", tries = "j.tries + 1" }
also = ["INSERT INTO {schema}.log SELECT id, coalesce({note}, 'reclaimed') FROM changed"]
irreversible = "its line in the log stays"
needs = ["INSERT ON {schema}.log"]

[[actions.reclaim.spare]]
where = "j.dead"
why = "it is dead"

[actions.discard]
states = ["waiting"]
delete = true

[actions.priority]
states = ["waiting"]
where = 'j."order" <> {priority}'
set = { order = "{priority}" }

[[actions.behind]]
query = '''SELECT o.lock AS name, count(*) AS n FROM {schema}."Jobs" o WHERE o.locked_at IS NULL
           AND o.lock IN (SELECT lock FROM {schema}."Jobs" WHERE no = ANY ({ids})) GROUP BY 1'''
text = "{n} waits for the lock {name}"

[[actions.traps]]
constraint = "one_f.*"
why = "job {by} with the lock {lock} waits already"
query = '''SELECT o.no AS by, o.lock AS lock FROM {schema}."Jobs" o JOIN {schema}."Jobs" j USING (lock)
           WHERE o.locked_at IS NULL AND j.no = {id}'''
choices = ["worktop discard --id {by}"]

[actions.refused]
retry = "dead is dead"
"""
STUCK = Selection(verb="reclaim", overdue_only=True)


def number(id: str) -> int:
    return int(id[-1])


async def test_a_queue_that_is_kept_quite_differently(empty_database: str, tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text(PRESET)
    kept: list[tuple[tuple[str, ...], Sequence[RowChange]]] = []
    writer = QueueWriter(Config(database=Database(dsn=empty_database, preset=str(tmp_path / "odd.toml"))))

    async def apply(selection: Selection) -> int:
        done = await writer.apply(
            selection,
            batch=2,
            before_commit=lambda columns, changes: kept.append((columns, changes)),
            on_batch=lambda rows, seconds: True,
        )
        assert done.problem is None
        assert [(number(one.id), one.why, number(one.by), one.choices) for one in done.blocked] == blocked
        return done.rows

    with psycopg.connect(empty_database, autocommit=True) as db:
        db.execute(TABLES.encode())
        db.execute("LISTEN jobs; LISTEN jobs_a; LISTEN jobs_b")
        try:
            survey = await writer.survey(STUCK)
            assert (survey.rows, survey.spared) == (Count(3), (("it is dead", Count(1)),))
            assert survey.behind == ("1 waits for the lock y",)
            groups = await writer.holders(STUCK)
            assert [(group.holder and group.holder.text, group.rows.n) for group in groups] == [("w1", 2), ("w2", 1)]
            assert number(groups[0].longest.id) == 2
            seen = groups[1].longest
            assert seen.token == "7 w2"
            blocked: list[tuple[int, str, int, tuple[str, ...]]] = []
            assert await apply(Selection(verb="reclaim", rows=(RowRef(seen.id, "6 w2"),))) == 0
            assert await apply(Selection(verb="reclaim", rows=(RowRef(seen.id, seen.token),), note="by hand")) == 1
            fourth = "00000000-0000-0000-0000-000000000004"
            blocked = [(2, f"job {fourth} with the lock y waits already", 4, (f"worktop discard --id {fourth}",))]
            assert await apply(STUCK) == 1
            assert writer.irreversible(STUCK) == "its line in the log stays"
            logged = db.execute("SELECT right(job, 1), what FROM log ORDER BY 1").fetchall()
            assert logged == [("1", "reclaimed"), ("3", "by hand")]
            noted = {(note.channel, note.payload) for note in db.notifies(timeout=2, stop_after=4)}
            assert noted == {(channel, "retry") for channel in ("jobs", "jobs_a", "jobs_b")}
            assert kept[0][0] == ("kind", "no", "locked_at", "locked_by", "tries", "@token")
            # undone where nobody has touched it, by the token too
            db.execute("UPDATE \"Jobs\" SET locked_by = 'w9', locked_at = timezone('UTC', now()) WHERE kind = 'b'")
            restored = [await writer.restore("reclaim", columns, changes) for columns, changes in kept]
            assert [one.rows for one in restored] == [0, 1]
            assert restored[0].refused[0][1] == "claimed again since by w9"
            state = db.execute("SELECT locked_by, tries FROM \"Jobs\" WHERE no::text LIKE '%1'").fetchall()
            assert state == [("w1", 1)]

            blocked = []
            kept.clear()
            whole = db.execute('SELECT "Jobs"::text FROM "Jobs" WHERE no = %s', (fourth,)).fetchall()
            assert await apply(Selection(verb="priority", priority=3, rows=(RowRef(fourth),))) == 1
            assert await apply(Selection(verb="discard", queues=("a",))) == 1
            assert json.loads(kept[1][1][0].before[0] or "")["data"] == '{"z": 1,  "a": null}'
            for columns, changes in reversed(kept):
                assert (await writer.restore("discard", columns, changes)).rows == 1
            assert db.execute('SELECT "Jobs"::text FROM "Jobs" WHERE no = %s', (fourth,)).fetchall() == whole

            assert writer.refusal("retry") == "dead is dead"
            assert writer.refusal("quarantine") == "an odd queue has no such action"
            assert writer.refusal("pause") == "an odd queue has no switch to pause a queue"
            with pytest.raises(QueueError, match="dead is dead"):
                await writer.survey(Selection(verb="retry"))
            with pytest.raises(QueueError, match="does not count reclaims"):
                await writer.survey(Selection(verb="reclaim", quarantine_after=2))
        finally:
            await writer.close()


async def test_a_count_that_takes_too_long_is_made_up_to_a_limit(
    empty_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.queue.survey.COUNT_TIMEOUT", 0.05)
    monkeypatch.setattr("console.queue.survey.SMALL_LIMIT", 1)
    slow = PRESET.replace(
        'where = "j.locked_at IS NOT NULL"', "where = \"j.locked_at IS NOT NULL AND pg_sleep(0.04)::text = ''\""
    )
    (tmp_path / "odd.toml").write_text(slow)
    writer = QueueWriter(Config(database=Database(dsn=empty_database, preset=str(tmp_path / "odd.toml"))))
    try:
        with psycopg.connect(empty_database, autocommit=True) as db:
            db.execute(TABLES.encode())
        survey = await writer.survey(STUCK)
        assert (survey.rows.kind, len(survey.samples)) == ("at-least", 3)
    finally:
        await writer.close()


@pytest.mark.parametrize(
    ("wrong", "instead", "told"),
    [
        ('key = ["kind", "no"]', "key = []", "actions.key: nothing; expected the columns that identify a row"),
        ("delete = true", "", "actions.discard: neither `set` nor `delete`; expected one of the two"),
        ('irreversible = "its line in the log stays"', "", "actions.reclaim.also: no `irreversible`"),
        ('tries = "j.tries + 1"', 'tries = "{ids}"', r"actions.reclaim.set.tries: \{ids\}; expected one of"),
        (
            'needs = ["INSERT ON {schema}.log"]',
            'needs = ["the log"]',
            "actions.reclaim.needs: 'the log'",
        ),
        ('constraint = "one_f.*"', 'constraint = "("', "actions.traps.constraint"),
        ('retry = "dead is dead"', 'reclaim = "no"', "actions.refused.reclaim: it is described too"),
        ('retry = "dead is dead"', 'sing = "no"', "actions.refused.sing: no verb"),
        ('[actions.discard]\nstates = ["waiting"]', '[actions.discard]\nstates = ["done"]', "actions.discard.states"),
    ],
)
def test_what_is_wrong_with_actions_is_said(wrong: str, instead: str, told: str) -> None:
    presets.parse(PRESET)
    assert wrong in PRESET
    with pytest.raises(ConfigError, match=told):
        presets.parse(PRESET.replace(wrong, instead, 1))


def test_without_actions_it_can_only_be_looked_at(tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text(PRESET[: PRESET.index("[actions]")])
    writer = QueueWriter(Config(database=Database(preset=str(tmp_path / "odd.toml"))))
    assert "does not say how rows may be changed" in writer.refusal("reclaim")
    with pytest.raises(QueueError, match="only look at it"):
        writer.statements(STUCK, 1000)
