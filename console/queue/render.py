"""A preset rendered to parts of SQL: where the rows of a state are, and what is in them.

Comparisons stay in the columns' own encoding (times.py) so that indexes serve them. A query goes queue by queue: a
part with `asked.queue` stands in a LATERAL under a list of the queues that are asked for, because an index that starts
with the queue then gives the order for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import LiteralString

import msgspec
from psycopg import sql

from console.fleet.model import JobSort, JobState
from console.queue import preset as presets
from console.queue.preset import Expression, Field, ListedState, Preset
from console.queue.rows import HOLDER_COLUMNS, JOB_COLUMNS
from console.queue.times import Encoding, ago, quoted, to_timestamptz

ERROR_CAP = 4_000  # characters of an error in lists; a single job has all of it

Part = sql.Composable
_ASKED_QUEUE = sql.SQL("asked.queue")
EVERY_STATE: tuple[presets.StateName, ...] = ("waiting", "again", "scheduled", "running", "done", "failed")
_ROWS_OF: dict[ListedState, tuple[presets.StateName, ...]] = {
    "waiting": ("waiting", "again", "scheduled"),
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
    orders: tuple[JobSort, ...]  # which an index of this queue serves
    due: Part | None = None  # the condition on a waiting row that it may be claimed now; None: all may
    oldest: Part | None = None  # what sorts the longest waiting first
    recent: presets.Recent | None = None


class Rendered:
    """The parts for one preset in one schema. `queues` are needed only where each queue has a table of its own."""

    def __init__(self, preset: Preset, schema: str, queues: Sequence[str] = ()) -> None:
        self.preset = preset
        self._schema = schema
        self._queues = tuple(queues)

    # --- rows and their conditions ---------------------------------------------------------------------------------

    def rows(self, name: presets.StateName) -> Rows | None:
        """None: the queue keeps no rows of the state."""
        state: presets.State | None = getattr(self.preset.states, name)
        if state is None:
            return None
        changed = {key: value for key in presets.Fields.__struct_fields__ if (value := getattr(state.fields, key))}
        return Rows(
            state="waiting" if name == "scheduled" or name == "again" else name,
            from_=self.raw(state.from_ or self.preset.from_),
            where=self.raw(state.where),
            fields=msgspec.structs.replace(self.preset.fields, **changed),
            orders=state.orders,
            due=self.raw(state.due) if state.due else None,
            oldest=self.raw(state.oldest) if state.oldest else None,
            recent=state.recent,
        )

    def rows_of(self, state: ListedState) -> list[Rows]:
        """The rows of what a person calls a state; those of "stuck" are the running ones, see `stuck`."""
        return [rows for name in _ROWS_OF[state] if (rows := self.rows(name))]

    def of_asked(self, rows: Rows, *conditions: Part, queue: Part = _ASKED_QUEUE) -> Part:
        """The condition of the state's rows in one queue, and more conditions."""
        parts = [rows.where, sql.SQL("{} = {}").format(self.field(rows.fields.queue), queue), *conditions]
        return sql.SQL(" AND ").join(sql.SQL("({})").format(part) for part in parts)

    def identified(self, rows: Rows, identity: Part) -> Part:
        """The condition that a row is the one of that id."""
        same = sql.SQL("{} = {}").format(self.field(rows.fields.id), identity)
        by_id = self.preset.by_id
        return sql.SQL("{} AND ({})").format(same, self.raw(by_id)) if by_id else same

    def stuck(self) -> Part:
        """The condition on a running row: its lease has expired, by the database's clock."""
        lease = self.preset.lease
        if lease.kind in ("session", "none"):
            return sql.SQL("false")
        at = self.field(lease.at)
        if isinstance(lease.timeout, str):
            expired: Part = sql.SQL("{} < now()").format(self._expires())
        else:
            limit = 0.0 if lease.kind == "expiry" else lease.timeout
            expired = sql.SQL("{} < {}").format(at, self.ago(limit, lease.at))
        return sql.SQL("({} OR {} IS NULL)").format(expired, at) if lease.kind == "worker-heartbeat" else expired

    def due_since(self, rows: Rows) -> Part:
        return sql.SQL("coalesce({}, {})").format(self.time(rows.fields.run_after), self.time(rows.fields.created))

    def lately(self, rows: Rows, since: Part) -> Rows:
        """Those of the rows that ended after a moment, a part in the encoding of `ended_at`."""
        ended = sql.SQL("{} >= {}").format(self.field(self.ended_at(rows)), since)
        recent = rows.recent
        if recent is None:
            return msgspec.structs.replace(rows, where=sql.SQL("({}) AND {}").format(rows.where, ended))
        return msgspec.structs.replace(
            rows,
            from_=self.raw(recent.from_, since),
            where=sql.SQL("({}) AND {}").format(self.raw(recent.where, since), ended),
            fields=msgspec.structs.replace(rows.fields, finished=recent.at),
        )

    def ended_at(self, rows: Rows) -> Field:
        """The time of their end by which `lately` finds them."""
        return rows.recent.at if rows.recent else rows.fields.finished

    # --- columns ---------------------------------------------------------------------------------------------------

    def columns(self, rows: Rows, error_cap: int | None = ERROR_CAP) -> Part:
        """JOB_COLUMNS and HOLDER_COLUMNS of rows.py."""
        fields, running = rows.fields, rows.state == "running"
        none = sql.SQL("NULL::float8")
        error = sql.SQL("({})::text").format(self.field(fields.error, "text"))
        values: dict[str, Part] = {
            **{name: sql.SQL("({})::text").format(self.field(getattr(fields, name))) for name in ("id", "queue")},
            "type": sql.SQL("({})::text").format(self.field(fields.type, "text")),
            "state": sql.SQL("{}::text").format(sql.Literal(rows.state)),
            **{
                name: sql.SQL("({})::bigint").format(self.field(getattr(fields, name), "bigint"))
                for name in ("attempts", "max_attempts", "reclaims", "priority")
            },
            **{
                name: epoch(self.time(getattr(fields, name)))
                for name in ("run_after", "created", "started", "finished", "heartbeat")
            },
            "lease_expires": epoch(self._expires()) if running else none,
            "overdue": age(self._expires()) if running else none,
            "heartbeat_age": age(self.time(fields.heartbeat)) if running else none,
            "running_for": age(self.time(fields.started)) if running else none,
            "waiting_for": age(self.due_since(rows)) if rows.state == "waiting" else none,
            "token": self._running_text(self.preset.fence.token, running),
            "error": error if error_cap is None else sql.SQL("left({}, {})").format(error, sql.Literal(error_cap)),
        }
        holder = [self._running_text(getattr(self.preset.holder, name), running) for name in HOLDER_COLUMNS]
        return sql.SQL(", ").join([*(values[name] for name in JOB_COLUMNS), *holder])

    def looked_up(self, every: Sequence[Rows], key: str) -> sql.Composed:
        """A LATERAL `job` with the columns of the one row that `key` (a relation with `id` and `queue`) names.

        Lists are made of keys first: then errors and what else is wide are read for the rows that are shown only.
        """
        name = sql.Identifier(key)
        parts = [
            sql.SQL("(SELECT {} FROM {} WHERE ({}) AND {} = {name}.id AND {} = {name}.queue LIMIT 1)").format(
                self.columns(rows),
                rows.from_,
                rows.where,
                self.field(rows.fields.id),
                self.field(rows.fields.queue),
                name=name,
            )
            for rows in every
        ]
        return sql.SQL("LATERAL ({}) AS job").format(sql.SQL(" UNION ALL ").join(parts))

    def _running_text(self, expression: str, running: bool) -> Part:
        return sql.SQL("({})::text").format(self.raw(expression)) if expression and running else sql.SQL("NULL::text")

    def _expires(self) -> Part:
        """When the lease of a running row expires, timestamptz."""
        lease = self.preset.lease
        if lease.kind in ("session", "none"):
            return sql.SQL("NULL::timestamptz")
        at = self.time(lease.at)
        if lease.kind == "expiry":
            return at
        seconds = self.raw(lease.timeout) if isinstance(lease.timeout, str) else sql.Literal(lease.timeout)
        limit = sql.SQL("make_interval(secs => ({})::float8)").format(seconds)
        expires = sql.SQL("({} + {})").format(at, limit)
        if lease.kind != "worker-heartbeat":
            return expires
        # the worker's row is gone: its lease has run out, a limit after the claim as far as is known
        started = self.time(self._running_fields().started)
        return sql.SQL("coalesce({}, least({} + {}, now() - interval '1 second'))").format(expires, started, limit)

    def _running_fields(self) -> presets.Fields:
        rows = self.rows("running")
        assert rows is not None, "every preset has running rows"
        return rows.fields

    # --- fields ----------------------------------------------------------------------------------------------------

    def ago(self, seconds: float, field: Field) -> Part:
        """The database's now, less so many seconds, in the encoding of the field."""
        return trusted(ago(seconds, self.encoding(field), self.preset.zone))

    def encoding(self, field: Field) -> Encoding:
        return (field.time if isinstance(field, Expression) else None) or self.preset.time

    def time(self, field: Field) -> Part:
        """The field as timestamptz; NULL where it holds a sentinel."""
        if not field:
            return sql.SQL("NULL::timestamptz")
        text = field if isinstance(field, str) else field.sql
        for sentinel in field.unset if isinstance(field, Expression) else ():
            text = f"nullif({text}, {sentinel})"
        return self.raw(to_timestamptz(text, self.encoding(field), self.preset.zone))

    def field(self, field: Field, missing: LiteralString = "text") -> Part:
        """The field as it is, for comparisons and order; a typed NULL when the queue does not have it."""
        if not field:
            return sql.SQL("NULL::{}").format(sql.SQL(missing))
        return self.raw(field if isinstance(field, str) else field.sql)

    def id_parameter(self, name: str) -> Part:
        return sql.SQL("{}::{}").format(sql.Placeholder(name), trusted(self.preset.id_type))

    def raw(self, text: str, since: Part | None = None) -> sql.Composed:
        """SQL of the preset with its placeholders filled in; {since} where it is given."""
        for name, part in self.preset.parts.items():
            text = text.replace(f"{{{name}}}", part)
        parts: list[Part] = []
        for piece in re.split(r"(\{(?:schema|schema_name|now|table|since|brace)\})", text):
            match piece:
                case "{brace}":
                    parts.append(sql.SQL("{"))
                case "{schema_name}":
                    parts.append(trusted(quoted(self._schema)))
                case "{since}" if since is not None:
                    parts.append(since)
                case "{schema}":
                    parts.append(trusted(sql.Identifier(self._schema).as_string(None)))  # a % is no placeholder
                case "{now}":
                    parts.append(trusted(ago(0, self.preset.time, self.preset.zone)))
                case "{table}":
                    parts.append(self._union())
                case _:
                    parts.append(trusted(piece))
        return sql.Composed(parts)

    def _union(self) -> Part:
        per_queue = self.preset.per_queue
        assert per_queue is not None, "preset.py lets {table} pass with per_queue only"
        tables = [
            sql.SQL("SELECT {}::text AS queue, one.* FROM {} AS one").format(
                sql.Literal(queue), sql.Identifier(self._schema, per_queue.prefix + queue)
            )
            for queue in self._queues
        ]
        return sql.SQL("({})").format(sql.SQL(" UNION ALL ").join(tables))


def trusted(text: str) -> sql.SQL:
    """SQL of a preset: configuration, trusted as the DSN is; never a value from a row or a person."""
    return sql.SQL(text.replace("%", "%%"))


# date_part, not extract: that reckons in numeric, which took half of the time of a list of running jobs


def epoch(moment: Part) -> Part:
    return sql.SQL("date_part('epoch', {})").format(moment)


def age(moment: Part) -> Part:
    return sql.SQL("date_part('epoch', now() - {})").format(moment)
