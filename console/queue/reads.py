"""The SQL of everything the console reads, built from a preset. This is the only place with such SQL.

Each statement visits a handful of index entries, whatever the size of the table: counts stop at a cap, lists have a
limit, and both go queue by queue (a LATERAL per queue), because an index that starts with the queue then gives the
order for nothing. Comparisons stay in the columns' own encoding (times.py) so that indexes serve them.

    queues      which queues there are: a loose scan, one index entry per queue
    counts      one row per asked (queue, types): due, scheduled, running, stuck, failed, rates, ages
    running     the running jobs of some queues, longest overdue first
    page        one state of some queues in the order of ids, newest first for what has ended, after an id
    job         one job by its id, with its payload
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, LiteralString

import msgspec
from psycopg import sql

from console.fleet.model import JobState
from console.queue import preset as presets
from console.queue.preset import Expression, Field, Preset
from console.queue.rows import COUNT_CAP, COUNT_COLUMNS, HOLDER_COLUMNS, JOB_COLUMNS, RATE_MINUTES
from console.queue.times import Encoding, ago, to_timestamptz

ListedState = Literal["waiting", "running", "stuck", "failed", "done"]

RATE_CAP = 60_000  # ended jobs counted for a rate; more than 12 000 a minute are shown as 12 000
RUNNING_CAP = 500
QUEUES_CAP = 200
PAYLOAD_CAP = 65_536  # characters of a payload that are read
ERROR_CAP = 4_000  # characters of an error in lists; a single job has all of it

Part = sql.Composable
_EVERY_STATE: tuple[presets.StateName, ...] = ("waiting", "scheduled", "running", "done", "failed")
_ROWS_OF: dict[ListedState, tuple[presets.StateName, ...]] = {
    "waiting": ("waiting", "scheduled"),
    "running": ("running",),
    "stuck": ("running",),
    "done": ("done",),
    "failed": ("failed",),
}


class Rows(msgspec.Struct, frozen=True):
    """Where the rows of one state are: a FROM list, a condition, and the fields there."""

    state: JobState
    from_: Part
    where: Part
    fields: presets.Fields


class Reads:
    """The statements for one preset in one schema.

    Without `by_type` counts do not look at types, and most need the index only. `queues` are needed only where each
    queue has a table of its own.
    """

    def __init__(self, preset: Preset, schema: str, *, by_type: bool = False, queues: Sequence[str] = ()) -> None:
        self._preset = preset
        self._schema = schema
        self._queues = tuple(queues)
        self._by_type = by_type

    # --- statements ------------------------------------------------------------------------------------------------

    def queues(self) -> sql.Composed:
        """No parameters. -> (queue)"""
        listed = self._preset.queues or (self._preset.per_queue.queues if self._preset.per_queue else "")
        if listed:
            return sql.SQL("SELECT listed.* FROM ({query}) AS listed LIMIT {cap}").format(
                query=self._raw(listed), cap=sql.Literal(QUEUES_CAP)
            )
        return sql.SQL(
            """WITH RECURSIVE found(queue) AS (
                   (SELECT ({queue})::text FROM {from_} ORDER BY ({queue})::text LIMIT 1)
                   UNION ALL
                   SELECT (SELECT ({queue})::text FROM {from_} WHERE ({queue})::text > found.queue
                           ORDER BY ({queue})::text LIMIT 1)
                   FROM found WHERE found.queue IS NOT NULL
               ) SELECT queue FROM found WHERE queue IS NOT NULL LIMIT {cap}"""
        ).format(
            queue=self._field(self._preset.fields.queue),
            from_=self._raw(self._preset.from_),
            cap=sql.Literal(QUEUES_CAP),
        )

    def counts(self) -> sql.Composed:
        """Parameter asked: a JSON array of {"place", "queue", "types" or null}. -> place, the clock, COUNT_COLUMNS"""
        waiting, scheduled = self._rows("waiting"), self._rows("scheduled")
        running, done, failed = self._rows("running"), self._rows("done"), self._rows("failed")
        due = self._condition(self._preset.states.waiting.due)
        later: list[Part] = [self._counted(scheduled)] if scheduled else []
        if due is not None:
            later.append(self._counted(waiting, sql.SQL("NOT ({})").format(due)))
        columns: dict[str, Part] = {
            "waiting": self._counted(waiting, *([due] if due is not None else [])),
            "scheduled": sql.SQL(" + ").join(later) if later else sql.Literal(0),
            "running": self._counted(running),
            "stuck": self._counted(running, self.stuck()),
            "failed": self._counted(failed),
            "oldest_waiting": self._oldest(waiting, due),
            "done_recently": self._recent(done),
            "failed_recently": self._recent(failed),
            "last_finished": sql.SQL("least({}, {})").format(self._youngest(done), self._youngest(failed)),
        }
        return sql.SQL(
            """SELECT asked.place, extract(epoch FROM now())::float8, {columns}
               FROM jsonb_to_recordset(%(asked)s::jsonb) AS asked(place integer, queue text, types text[])"""
        ).format(columns=sql.SQL(", ").join(columns[name] for name in COUNT_COLUMNS))

    def running(self) -> sql.Composed:
        """Parameter queues. -> job rows, longest overdue first."""
        rows = self._rows("running")
        order = self._field(self._preset.lease.at or rows.fields.started or rows.fields.id) if rows else sql.SQL("1")
        nulls = "NULLS FIRST" if self._preset.lease.kind == "worker-heartbeat" else "NULLS LAST"
        limit = sql.Literal(RUNNING_CAP)
        return self._listed([self._lateral(rows, order, sql.SQL(nulls), limit)], sql.SQL(nulls), limit)

    def page(self, state: ListedState, after: bool) -> sql.Composed | None:
        """Parameters queues, limit and, with `after`, the last id of the page before. -> job rows.

        None: this queue keeps no rows of the state.
        """
        wanted = _ROWS_OF[state]
        direction = sql.SQL("DESC" if state in ("done", "failed") else "ASC")
        limit = sql.Placeholder("limit")
        parts = []
        for rows in filter(None, map(self._rows, wanted)):
            identity = self._field(rows.fields.id)
            conditions = [self.stuck()] if state == "stuck" else []
            if after:
                sign = sql.SQL("<" if state in ("done", "failed") else ">")
                conditions.append(sql.SQL("{} {} {}").format(identity, sign, self._id_parameter("after")))
            parts.append(self._lateral(rows, identity, direction, limit, conditions))
        return self._listed(parts, direction, limit) if parts else None

    def job(self) -> sql.Composed:
        """Parameter id. -> a job row, then the payload (cut) and its size in bytes."""
        parts = []
        for name in _EVERY_STATE:
            if rows := self._rows(name):
                payload = self._field(rows.fields.payload, "text")
                parts.append(
                    sql.SQL(
                        """(SELECT {columns}, left(({payload})::text, {cap}), octet_length(({payload})::text)
                            FROM {from_} WHERE ({where}) AND {id} = {parameter} LIMIT 1)"""
                    ).format(
                        columns=self._columns(rows, error_cap=None),
                        payload=payload,
                        cap=sql.Literal(PAYLOAD_CAP),
                        from_=rows.from_,
                        where=rows.where,
                        id=self._field(rows.fields.id),
                        parameter=self._id_parameter("id"),
                    )
                )
        return sql.SQL("{} LIMIT 1").format(sql.SQL(" UNION ALL ").join(parts))

    def text(self, query: str) -> sql.Composed:
        """A query that the preset brings, with its placeholders filled in."""
        return self._raw(query)

    # --- the parts -------------------------------------------------------------------------------------------------

    def stuck(self) -> Part:
        """The condition on a running row: its lease has expired, by the database's clock."""
        lease = self._preset.lease
        if lease.kind in ("session", "none"):
            return sql.SQL("false")
        at, encoding = self._field(lease.at), self._encoding(lease.at)
        if isinstance(lease.timeout, str):
            expired: Part = sql.SQL("{} < now()").format(self._expires())
        else:
            limit = 0.0 if lease.kind == "expiry" else lease.timeout
            expired = sql.SQL("{} < {}").format(at, _trusted(ago(limit, encoding, self._preset.zone)))
        return sql.SQL("({} OR {} IS NULL)").format(expired, at) if lease.kind == "worker-heartbeat" else expired

    def _expires(self) -> Part:
        """When the lease of a running row expires, timestamptz."""
        lease = self._preset.lease
        if lease.kind in ("session", "none"):
            return sql.SQL("NULL::timestamptz")
        at = self._time(lease.at)
        if lease.kind == "expiry":
            return at
        seconds = self._raw(lease.timeout) if isinstance(lease.timeout, str) else sql.Literal(lease.timeout)
        return sql.SQL("({} + make_interval(secs => ({})::float8))").format(at, seconds)

    def _rows(self, name: presets.StateName) -> Rows | None:
        state: presets.State | None = getattr(self._preset.states, name)
        if state is None:
            return None
        changed = {key: value for key in presets.Fields.__struct_fields__ if (value := getattr(state.fields, key))}
        return Rows(
            state="waiting" if name == "scheduled" else name,
            from_=self._raw(state.from_ or self._preset.from_),
            where=self._raw(state.where),
            fields=msgspec.structs.replace(self._preset.fields, **changed),
        )

    def _of_asked(self, rows: Rows, *conditions: Part) -> Part:
        """The conditions of the rows that `asked` asks for."""
        parts = [sql.SQL("({})").format(rows.where)]
        parts.append(sql.SQL("({}) = asked.queue").format(self._field(rows.fields.queue)))
        if rows.fields.type and self._by_type:
            parts.append(
                sql.SQL("(asked.types IS NULL OR ({})::text = ANY (asked.types))").format(self._field(rows.fields.type))
            )
        return sql.SQL(" AND ").join([*parts, *(sql.SQL("({})").format(condition) for condition in conditions)])

    def _counted(self, rows: Rows | None, *conditions: Part, cap: int = COUNT_CAP + 1) -> Part:
        """Counts up to the cap: one more than COUNT_CAP says "at least"."""
        if rows is None:
            return sql.Literal(0)
        return sql.SQL("(SELECT count(*) FROM (SELECT FROM {from_} WHERE {where} LIMIT {cap}) AS counted)").format(
            from_=rows.from_, where=self._of_asked(rows, *conditions), cap=sql.Literal(cap)
        )

    def _oldest(self, rows: Rows | None, due: Part | None) -> Part:
        key = rows and (rows.fields.run_after or rows.fields.created)
        if not rows or not key:
            return sql.SQL("NULL::float8")
        return sql.SQL("(SELECT {age} FROM {from_} WHERE {where} ORDER BY {order} LIMIT 1)").format(
            age=_age(self._due_since(rows)),
            from_=rows.from_,
            where=self._of_asked(rows, *([due] if due is not None else [])),
            order=self._field(key),
        )

    def _recent(self, rows: Rows | None) -> Part:
        if rows is None or not rows.fields.finished:
            return sql.SQL("NULL::bigint")
        since = ago(RATE_MINUTES * 60, self._encoding(rows.fields.finished), self._preset.zone)
        lately = sql.SQL("{} > {}").format(self._field(rows.fields.finished), _trusted(since))
        return self._counted(rows, lately, cap=RATE_CAP)

    def _youngest(self, rows: Rows | None) -> Part:
        if rows is None or not rows.fields.finished:
            return sql.SQL("NULL::float8")
        finished = self._field(rows.fields.finished)
        return sql.SQL("(SELECT {age} FROM {from_} WHERE {where} ORDER BY {finished} DESC LIMIT 1)").format(
            age=_age(self._time(rows.fields.finished)),
            from_=rows.from_,
            where=self._of_asked(rows, sql.SQL("{} IS NOT NULL").format(finished)),
            finished=finished,
        )

    def _lateral(
        self, rows: Rows | None, order: Part, direction: Part, limit: Part, conditions: Sequence[Part] = ()
    ) -> Part:
        assert rows is not None, "every preset has waiting and running"
        every = [rows.where, sql.SQL("{} = asked.queue").format(self._field(rows.fields.queue)), *conditions]
        return sql.SQL(
            """(SELECT {columns}, {order} AS sorted FROM {from_} WHERE {where}
                ORDER BY {order} {direction} LIMIT {limit})"""
        ).format(
            columns=self._columns(rows, ERROR_CAP),
            order=order,
            from_=rows.from_,
            where=sql.SQL(" AND ").join(sql.SQL("({})").format(condition) for condition in every),
            direction=direction,
            limit=limit,
        )

    def _listed(self, parts: Sequence[Part], direction: Part, limit: Part) -> sql.Composed:
        return sql.SQL(
            """SELECT listed.* FROM unnest(%(queues)s::text[]) AS asked(queue)
               CROSS JOIN LATERAL ({parts}) AS listed ORDER BY listed.sorted {direction} LIMIT {limit}"""
        ).format(parts=sql.SQL(" UNION ALL ").join(parts), direction=direction, limit=limit)

    def _columns(self, rows: Rows, error_cap: int | None) -> Part:
        fields, running = rows.fields, rows.state == "running"
        none = sql.SQL("NULL::float8")
        error = sql.SQL("({})::text").format(self._field(fields.error, "text"))
        values: dict[str, Part] = {
            **{name: sql.SQL("({})::text").format(self._field(getattr(fields, name))) for name in ("id", "queue")},
            "type": sql.SQL("({})::text").format(self._field(fields.type, "text")),
            "state": sql.SQL("{}::text").format(sql.Literal(rows.state)),
            **{
                name: sql.SQL("({})::bigint").format(self._field(getattr(fields, name), "bigint"))
                for name in ("attempts", "max_attempts", "priority")
            },
            **{
                name: _epoch(self._time(getattr(fields, name)))
                for name in ("run_after", "created", "started", "finished", "heartbeat")
            },
            "lease_expires": _epoch(self._expires()) if running else none,
            "overdue": _age(self._expires()) if running else none,
            "heartbeat_age": _age(self._time(fields.heartbeat)) if running else none,
            "running_for": _age(self._time(fields.started)) if running else none,
            "waiting_for": _age(self._due_since(rows)) if rows.state == "waiting" else none,
            "token": self._running_text(self._preset.fence.token, running),
            "error": error if error_cap is None else sql.SQL("left({}, {})").format(error, sql.Literal(error_cap)),
        }
        holder = [self._running_text(getattr(self._preset.holder, name), running) for name in HOLDER_COLUMNS]
        return sql.SQL(", ").join([*(values[name] for name in JOB_COLUMNS), *holder])

    def _running_text(self, expression: str, running: bool) -> Part:
        return sql.SQL("({})::text").format(self._raw(expression)) if expression and running else sql.SQL("NULL::text")

    def _due_since(self, rows: Rows) -> Part:
        return sql.SQL("coalesce({}, {})").format(self._time(rows.fields.run_after), self._time(rows.fields.created))

    def _encoding(self, field: Field) -> Encoding:
        return (field.time if isinstance(field, Expression) else None) or self._preset.time

    def _time(self, field: Field) -> Part:
        """The field as timestamptz; NULL where it holds a sentinel."""
        if not field:
            return sql.SQL("NULL::timestamptz")
        text = field if isinstance(field, str) else field.sql
        for sentinel in field.unset if isinstance(field, Expression) else ():
            text = f"nullif({text}, {sentinel})"
        return self._raw(to_timestamptz(text, self._encoding(field), self._preset.zone))

    def _field(self, field: Field, missing: LiteralString = "text") -> Part:
        """The field as it is, for comparisons and order; a typed NULL when the queue does not have it."""
        if not field:
            return sql.SQL("NULL::{}").format(sql.SQL(missing))
        return self._raw(field if isinstance(field, str) else field.sql)

    def _condition(self, text: str) -> Part | None:
        return self._raw(text) if text else None

    def _id_parameter(self, name: str) -> Part:
        return sql.SQL("{}::{}").format(sql.Placeholder(name), _trusted(self._preset.id_type))

    def _raw(self, text: str) -> sql.Composed:
        """SQL of the preset with its placeholders filled in."""
        parts: list[Part] = []
        for piece in re.split(r"(\{(?:schema|now|table)\})", text):
            match piece:
                case "{schema}":
                    parts.append(sql.Identifier(self._schema))
                case "{now}":
                    parts.append(_trusted(ago(0, self._preset.time, self._preset.zone)))
                case "{table}":
                    parts.append(self._union())
                case _:
                    parts.append(_trusted(piece))
        return sql.Composed(parts)

    def _union(self) -> Part:
        per_queue = self._preset.per_queue
        assert per_queue is not None, "preset.py lets {table} pass with per_queue only"
        tables = [
            sql.SQL("SELECT {}::text AS queue, one.* FROM {} AS one").format(
                sql.Literal(queue), sql.Identifier(self._schema, per_queue.prefix + queue)
            )
            for queue in self._queues
        ]
        return sql.SQL("({})").format(sql.SQL(" UNION ALL ").join(tables))


def _trusted(text: str) -> sql.SQL:
    """SQL of a preset: configuration, trusted as the DSN is; never a value from a row or a person."""
    return sql.SQL(text.replace("%", "%%"))


def _epoch(moment: Part) -> Part:
    return sql.SQL("extract(epoch FROM {})::float8").format(moment)


def _age(moment: Part) -> Part:
    return sql.SQL("extract(epoch FROM now() - {})::float8").format(moment)
