"""A table of one's own, mapped in [database.custom]: from one with nothing but a status to one with a fence."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import msgspec
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import sql

from console import config
from console.config import Custom
from console.errors import ConfigError, QueueError
from console.fleet.model import JobQuery, JobSort
from console.fleet.plan import RowRef
from console.queue import preset as presets
from console.queue.custom import Column, custom_preset, quoted_name, quoted_text
from console.queue.reads import ListedState
from console.queue.render import Rendered
from console.queue.times import quoted
from tests.queue.acting import Acting, acting

POOR = Custom(
    table="tasks",
    id="id",
    status="state",
    waiting=("new", "again"),
    running="processing",
    done="ok",
    failed="error",
    updated="updated_at",
)
POOR_TABLE = """
CREATE TABLE tasks (id bigserial PRIMARY KEY, state text NOT NULL, updated_at timestamptz NOT NULL DEFAULT now());
INSERT INTO tasks (state, updated_at) VALUES
  ('new', now() - interval '60 s'), ('again', now() - interval '30 s'), ('processing', now() - interval '1000 s'),
  ('processing', now() - interval '10 s'), ('ok', now() - interval '20 s'), ('error', now() - interval '5 s');
"""
# everything a name may be
HOSTILE = ['ta"ble', "{now}", "per%sent", "it's", "back\\slash", "; DROP TABLE x --", "j.id", "ünïcode {schema}", "{0}"]


def asked(dsn: str, query: str | sql.Composed) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        result = connection.execute(query.encode() if isinstance(query, str) else query)
        return result.fetchall() if result.description else []


def mapped(dsn: str, custom: Custom) -> Any:
    return acting(dsn, preset="custom", custom=custom)


async def ids(console: Acting, state: ListedState) -> set[str]:
    found = set[str]()
    for sort, descending in itertools.product(get_args(JobSort), (False, True)):
        page = await console.reader.page(JobQuery(state=state, sort=sort, descending=descending))
        found |= {job.id for job in page.jobs}
        assert {job.id for job in page.jobs} == found, (state, sort)
    return found


async def test_a_table_with_nothing_but_a_status_and_a_time(empty_database: str) -> None:
    dsn = empty_database
    asked(dsn, POOR_TABLE)
    async with mapped(dsn, POOR) as console:
        facts = await console.facts()
        (counts,) = facts.counts
        assert counts.queue == "tasks"
        assert (counts.waiting.n, counts.scheduled.n, counts.running.n, counts.stuck.n) == (2, 0, 2, 1)
        assert (counts.failed.n, counts.done and counts.done.n) == (1, 1)
        assert counts.oldest_waiting == pytest.approx(60, abs=10)
        assert counts.last_finished == pytest.approx(5, abs=10)
        assert (counts.done_per_minute, counts.failed_per_minute) == (0.2, 0.2)
        assert [await ids(console, state) for state in ("waiting", "running", "stuck", "failed", "done")] == [
            {"1", "2"}, {"3", "4"}, {"3"}, {"6"}, {"5"},
        ]  # fmt: skip
        (stuck,) = await console.jobs("stuck")
        assert (stuck.holder, stuck.overdue, stuck.running_for) == (
            None,
            pytest.approx(100, abs=10),
            pytest.approx(1000, abs=10),
        )
        assert facts.backends is not None  # nothing else tells who works on the queue
        warnings = [check.text for check in await console.reader.checks() if check.state == "warning"]
        assert warnings.pop().startswith("missing or invalid: worktop_tasks_page (for lists and counts")
        assert warnings == [
            "no fencing column is mapped: a late finish of a former holder counts as accepted",
            "no holder is mapped: nothing can be proven of it, and a reclaim asks for the role's name",
        ]
        assert console.writer.late_finish == "accepted"
        assert (await console.apply("reclaim", queues=("tasks",), overdue_only=True)).rows == 1
        assert asked(dsn, "SELECT state FROM tasks WHERE id = 3") == [("new",)]
        assert await console.undo("reclaim") == 1
        assert asked(dsn, "SELECT state, updated_at < now() - interval '900 s' FROM tasks WHERE id = 3") == [
            ("processing", True)
        ]
        # a holder that says something meanwhile keeps its row
        token = (await console.job(3)).token
        asked(dsn, "UPDATE tasks SET updated_at = now() - interval '999 s' WHERE id = 3")
        assert (await console.apply("reclaim", rows=(RowRef("3", token),))).rows == 0
        assert (await console.apply("retry", queues=("tasks",))).rows == 1
        before = asked(dsn, "SELECT * FROM tasks ORDER BY id")
        assert (await console.apply("discard", queues=("tasks",), states=("waiting",))).rows == 3
        assert await ids(console, "waiting") == set()
        assert await console.undo("discard") == 3
        assert asked(dsn, "SELECT * FROM tasks ORDER BY id") == before
        for verb, why in (
            ("run-now", "no column is mapped to run_after"),
            ("priority", "no column is mapped to priority"),
            ("quarantine", "no column is mapped to reclaims"),
            ("pause", "has no switch"),
        ):
            assert why in console.writer.refusal(verb)


async def test_what_only_a_status_tells_cannot_be_reclaimed(empty_database: str) -> None:
    asked(empty_database, POOR_TABLE)
    async with mapped(empty_database, msgspec.structs.replace(POOR, updated="")) as console:
        facts = await console.facts()
        (counts,) = facts.counts
        assert (counts.waiting.n, counts.running.n, counts.stuck.n) == (2, 2, 0)
        assert counts.last_finished is None
        assert await ids(console, "stuck") == set()
        assert "nothing is mapped that tells since when a row is running" in console.writer.refusal("reclaim")
        with pytest.raises(QueueError, match="since when a row is running"):
            await console.apply("reclaim", queues=("tasks",))


RICH = Custom(
    table='jobs {now} "x"; --',
    id="%s",
    status="it's {status}",
    waiting="to'do {schema}",
    running="do\\ing %s",
    done="{}",
    failed='fail"ed',
    discarded="gone",
    queue='que"ue',
    type="{type}",
    payload="pay load",
    error="j.error",
    attempts="attempts",
    max_attempts="max; attempts",
    priority="{priority}",
    run_after="run {now} after",
    created="created",
    started="started--",
    finished="finished",
    heartbeat="beat",
    locked_by="locked_by",
    lease="lease until",
    fence="fence{",
    reclaims="}",
)
_TYPES = {
    **dict.fromkeys(("status", "queue", "type", "error", "locked_by"), "text"),
    **dict.fromkeys(("attempts", "max_attempts", "priority", "reclaims"), "integer DEFAULT 0"),
    **dict.fromkeys(("run_after", "created", "started", "finished", "heartbeat", "lease"), "timestamptz"),
    "payload": "jsonb DEFAULT '{}'",
    "fence": "bigint NOT NULL DEFAULT 0",
}


def table_of(custom: Custom, **types: str) -> sql.Composed:
    columns = [sql.SQL("{} uuid PRIMARY KEY DEFAULT gen_random_uuid()").format(sql.Identifier(custom.id))]
    columns += [
        sql.SQL("{} {}").format(sql.Identifier(getattr(custom, key)), sql.SQL({**_TYPES, **types}[key]))  # type: ignore[arg-type]
        for key in _TYPES
        if getattr(custom, key)
    ]
    return sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(custom.table), sql.SQL(", ").join(columns))


def add(dsn: str, custom: Custom, **values: object) -> str:
    """The id of a new row; times are seconds from now."""
    names = {key: sql.Identifier(getattr(custom, key)) for key in values}
    given = [
        sql.SQL("now() + {} * interval '1 s'").format(value) if _TYPES[key] == "timestamptz" else sql.Literal(value)
        for key, value in values.items()
    ]
    insert = sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING {}::text").format(
        sql.Identifier(custom.table),
        sql.SQL(", ").join(names.values()),
        sql.SQL(", ").join(given),
        sql.Identifier(custom.id),
    )
    return str(asked(dsn, insert)[0][0])


async def test_hostile_names_are_names(empty_database: str) -> None:
    dsn, custom = empty_database, RICH
    asked(dsn, table_of(custom))
    common = {"queue": "q", "type": "send", "attempts": 1, "max_attempts": 3}
    waiting = add(dsn, custom, status=custom.waiting, run_after=-60, priority=1, **common)
    later = add(dsn, custom, status=custom.waiting, run_after=600, priority=1, **common)
    held = {
        "status": custom.running,
        "started": -100,
        "heartbeat": -90,
        "lease": -30,
        "locked_by": "web1:4711",
        "fence": 7,
    }
    stuck = add(dsn, custom, **held, **common)
    often = add(dsn, custom, **(held | {"reclaims": 3}), **common)
    busy = add(dsn, custom, **(held | {"lease": 30, "queue": "other"}))
    done = add(dsn, custom, status=custom.done, finished=-10, **common)
    failed = add(dsn, custom, status=custom.failed, finished=-20, error="bad 50%", **common)
    everything = sql.SQL("SELECT * FROM {} ORDER BY 1").format(sql.Identifier(custom.table))
    async with mapped(dsn, custom) as console:
        facts = await console.facts()
        assert [counts.queue for counts in facts.counts] == ["q", "other"]
        counts = facts.counts[0]
        assert (counts.waiting.n, counts.scheduled.n, counts.running.n, counts.stuck.n, counts.failed.n) == (
            1,
            1,
            2,
            2,
            1,
        )
        assert [await ids(console, state) for state in ("waiting", "running", "stuck", "failed", "done")] == [
            {waiting, later}, {stuck, often, busy}, {stuck, often}, {failed}, {done},
        ]  # fmt: skip
        job = await console.job(stuck)
        assert job.holder is not None
        assert (job.holder.host, job.holder.pid, job.token, job.reclaims) == ("web1", 4711, "7", 0)
        assert job.overdue == pytest.approx(30, abs=10)
        assert job.heartbeat_age == pytest.approx(90, abs=10)
        assert (await console.job(failed)).error == "bad 50%"
        assert facts.backends is None  # the rows name their processes
        assert console.writer.late_finish == "rejected" or await console.writer.ready() is None
        before = asked(dsn, everything)
        for verb, rows, more in (
            ("retry", 1, {}),
            ("discard", 3, {}),
            ("run-now", 1, {}),
            ("priority", 2, {"priority": 5}),
            ("reclaim", 2, {"overdue_only": True}),
            ("reclaim", 2, {"overdue_only": True, "quarantine_after": 3}),
        ):
            applied = await console.apply(verb, queues=("q",), **more)
            assert (applied.rows, applied.blocked, applied.problem) == (rows, (), None), verb
            assert asked(dsn, everything) != before
            if verb == "reclaim":
                shown = ("status", "fence", "reclaims", "locked_by", "lease")
                columns = sql.SQL("SELECT {}, {}, {}, {}, {} FROM {} WHERE {} = {}::uuid").format(
                    *(sql.Identifier(getattr(custom, key)) for key in shown),
                    sql.Identifier(custom.table),
                    sql.Identifier(custom.id),
                    stuck,
                )
                # the end of a former holder, with the fence 7, finds nothing
                assert asked(dsn, columns) == [(custom.waiting, 8, 1, None, None)]
            assert applied.quarantined == (1 if "quarantine_after" in more else 0)
            assert await console.undo(verb) == rows, verb
            assert asked(dsn, everything) == before, verb


@pytest.mark.parametrize(
    ("type", "expression", "custom"),
    [
        ("timestamp", "timezone('UTC', now()) - interval '100 s'", {}),
        ("timestamp", "timezone('Asia/Tokyo', now()) - interval '100 s'", {"zone": "Asia/Tokyo"}),
        ("integer", "extract(epoch FROM now())::integer - 100", {}),
        ("bigint", "(extract(epoch FROM now()) * 1000)::bigint - 100000", {"epoch": "ms"}),
    ],
)
async def test_times_are_read_as_they_are_written(
    empty_database: str, type: str, expression: str, custom: dict[str, Any]
) -> None:
    dsn = empty_database
    asked(
        dsn,
        f"""CREATE TABLE tasks (id text PRIMARY KEY, state integer, started {type}, run_at {type});
            INSERT INTO tasks VALUES ('a', 1, {expression}, NULL), ('b', 0, NULL, {expression})""",
    )
    mapping = Custom(
        table="tasks", id="id", status="state", waiting=0, running=1, started="started", run_after="run_at",
        timeout=90.0, **custom,
    )  # fmt: skip
    async with mapped(f"{dsn} options='-c timezone=America/New_York'", mapping) as console:
        facts = await console.facts()
        (counts,) = facts.counts
        assert counts.oldest_waiting == pytest.approx(100, abs=8)
        assert (counts.waiting.n, counts.stuck.n) == (1, 1)
        (job,) = facts.running
        assert (job.id, job.overdue, job.running_for) == ("a", pytest.approx(10, abs=8), pytest.approx(100, abs=8))
        assert (await console.apply("reclaim", rows=(RowRef("a", job.token),))).rows == 1
        assert (await console.facts()).counts[0].oldest_waiting == pytest.approx(100, abs=8)
        assert await console.undo("reclaim") == 1


async def test_a_mapping_that_is_not_the_tables_is_refused(empty_database: str) -> None:
    asked(empty_database, POOR_TABLE)
    for change, why in (
        ({"table": "jobs"}, "database.custom.table: there is no table jobs in the schema public"),
        ({"status": "status"}, "database.custom.status: tasks has no column status; it has: id, state, updated_at"),
        ({"started": "state"}, "database.custom.started: state is text; expected a timestamp or a number"),
    ):
        async with mapped(empty_database, msgspec.structs.replace(POOR, **change)) as console:
            reading = await console.reader.poll()
            assert reading.problem is not None
            assert why in reading.problem.line()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('preset = "custom"', 'nothing; expected both, or neither: preset = "custom" and [database.custom]'),
        ('[database.custom]\ntable = "t"\nid = "i"\nstatus = "s"\nwaiting = "w"\nrunning = "r"', "expected both, or"),
        ('preset = "custom"\n[database.custom]\ntable = "t"', "missing required field `id`"),
        (
            'preset = "custom"\n[database.custom]\ntable = "t"\nid = "i"\nstatus = "s"\nwaiting = "w"\nrunning = "w"',
            "found the status 'w' twice",
        ),
        (
            'preset = "custom"\n[database.custom]\ntable = "t"\nid = "i"\nstat = "s"',
            "database.custom.stat: unknown key",
        ),
        (
            'preset = "custom"\n[database.custom]\ntable = "t"\nid = "i"\nstatus = "s"\nwaiting = "w"\nrunning = "r"\n'
            'timeout = "soon"',
            "database.custom.timeout: found 'soon'",
        ),
    ],
)
def test_a_faulty_mapping_names_the_key(text: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.parse(f"[database]\n{text}\n", "mine.toml")
    assert why in str(caught.value)


def test_a_mapping_in_the_file_is_a_preset_without_fault() -> None:
    text = """[database]\npreset = "custom"\n[database.custom]\ntable = "tasks"\nid = "id"\nstatus = "state"
waiting = ["new", 3]\nrunning = "processing"\ntimeout = "2min"\nupdated = "updated_at"\n"""
    database = config.parse(text).database
    assert database.custom is not None
    assert (database.custom.waiting, database.custom.timeout) == (("new", 3), 120.0)
    assert config.parse("").database.preset == "auto"
    for custom in (database.custom, POOR, RICH):
        for columns in ({}, {name: Column() for name in HOSTILE}):
            assert presets.faults(custom_preset(custom, columns)) == []


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_no_name_or_value_can_be_taken_for_a_placeholder(text: str) -> None:
    rendered = Rendered(presets.load("worktop"), "public")
    for preset_text, expected in (
        (quoted_name(text), sql.Identifier(text).as_string(None)),
        (quoted_text(text), quoted(text)),
    ):
        assert rendered.raw(preset_text).as_string(None).replace("%%", "%") == expected.replace("%%", "%")
