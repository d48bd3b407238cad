"""The SQL of what the console reads at each poll, built from a preset; pages of jobs are in pages.py.

Each statement visits a handful of index entries, whatever the size of the table: counts stop at a cap and lists have a
limit.

    queues      which queues there are: a loose scan, one index entry per queue
    counts      one row per asked (queue, types): due, scheduled, running, stuck, failed, rates, ages
    running     the running jobs of some queues, longest overdue first
    job         one job by its id, with its payload
    total       how many jobs of one state there are in some queues, up to the cap
    done        as counts, of done jobs
    estimates   a plan that tells how many rows the server believes there are; nothing is read
    ended       how many jobs ended in each of the last minutes
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from console.fleet.model import JobSort
from console.queue import preset as presets
from console.queue.preset import ListedState, Preset
from console.queue.render import EVERY_STATE, Part, Rendered, Rows, age, epoch
from console.queue.rows import COUNT_CAP, COUNT_COLUMNS, COUNTED, RATE_MINUTES
from console.queue.times import at_minute

__all__ = ["ListedState", "Reads"]

RATE_CAP = 60_000  # ended jobs counted for a rate; more than 12 000 a minute are shown as 12 000
TYPE_SCAN = 1_000  # rows among which the first of a type is looked for
RUNNING_CAP = 500
QUEUES_CAP = 200
PAYLOAD_CAP = 65_536  # characters of a payload that are read

_ASKED = "jsonb_to_recordset(%(asked)s::jsonb) AS asked(place integer, queue text, types text[], wanted text[])"


class Reads(Rendered):
    """The statements for one preset in one schema.

    Without `by_type` counts do not look at types, and most need the index only. `queues` are needed only where each
    queue has a table of its own.
    """

    def __init__(self, preset: Preset, schema: str, *, by_type: bool = False, queues: Sequence[str] = ()) -> None:
        super().__init__(preset, schema, queues)
        self._by_type = by_type

    def queues(self) -> sql.Composed:
        """No parameters. -> (queue)"""
        listed = self.preset.queues or (self.preset.per_queue.queues if self.preset.per_queue else "")
        if listed:
            return sql.SQL("SELECT listed.* FROM ({query}) AS listed LIMIT {cap}").format(
                query=self.raw(listed), cap=sql.Literal(QUEUES_CAP)
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
            queue=self.field(self.preset.fields.queue),
            from_=self.raw(self.preset.from_),
            cap=sql.Literal(QUEUES_CAP),
        )

    def counts(self, cap: int = COUNT_CAP) -> sql.Composed:
        """Parameter asked: a JSON array of {"place", "queue", "types" or null, "wanted"}.

        -> place, the clock, COUNT_COLUMNS, the seconds this took so far

        Of COUNTED only the columns in `wanted` are counted, the others are NULL. A number is an array of two: how many
        rows of the types there are among how many that were looked at, up to the cap and one.
        """
        waiting, scheduled = self.rows("waiting"), self.rows("scheduled")
        running, done, failed = self.rows("running"), self.rows("done"), self.rows("failed")
        due = self.due()
        not_due = [sql.SQL("NOT ({})").format(due)] if due is not None else [sql.SQL("false")]
        columns: dict[str, Part] = {
            "waiting": self._counted([(waiting, [due] if due is not None else [])], "age", cap + 1),
            "scheduled": self._counted([(scheduled, []), (waiting, not_due)], "age", cap + 1),
            "running": self._counted([(running, [])], cap=cap + 1),
            "stuck": self._counted([(running, [self.stuck()])], "overdue", cap + 1),
            "failed": self._counted([(failed, [])], cap=cap + 1),
            "done_recently": self._recent(done),
            "failed_recently": self._recent(failed),
            "oldest_waiting": self._oldest(waiting, due),
            "last_finished": sql.SQL("least({}, {})").format(self._youngest(done), self._youngest(failed)),
        }
        for name in COUNTED:
            columns[name] = sql.SQL("CASE WHEN {} = ANY (asked.wanted) THEN {} END").format(
                sql.Literal(name), columns[name]
            )
        return sql.SQL("""SELECT asked.place, date_part('epoch', now()), {},
                      date_part('epoch', clock_timestamp() - statement_timestamp()) FROM {}""").format(
            sql.SQL(", ").join(columns[name] for name in COUNT_COLUMNS), trusted_parameters(_ASKED)
        )

    def running(self) -> sql.Composed:
        """Parameter queues. -> job rows, longest overdue first."""
        rows = self.rows("running")
        assert rows is not None, "every preset has running rows"
        return sql.SQL(
            """SELECT job.* FROM (
                   SELECT asked.queue, listed.* FROM unnest(%(queues)s::text[]) AS asked(queue) CROSS JOIN LATERAL (
                       SELECT {id} AS id, {order} AS sorted FROM {from_} WHERE {where}
                       ORDER BY {order} {nulls} LIMIT {cap}
                   ) AS listed ORDER BY listed.sorted {nulls} LIMIT {cap}
               ) AS top CROSS JOIN {job} ORDER BY top.sorted {nulls}"""
        ).format(
            id=self.field(rows.fields.id),
            order=self.field(self.preset.lease.at or rows.fields.started or rows.fields.id),
            from_=rows.from_,
            where=self.of_asked(rows),
            nulls=sql.SQL("NULLS FIRST" if self.preset.lease.kind == "worker-heartbeat" else "NULLS LAST"),
            cap=sql.Literal(RUNNING_CAP),
            job=self.looked_up([rows], "top"),
        )

    def job(self) -> sql.Composed:
        """Parameter id. -> a job row, then the payload (cut) and its size in bytes."""
        parts = []
        for name in EVERY_STATE:
            if rows := self.rows(name):
                payload = self.field(rows.fields.payload, "text")
                parts.append(
                    sql.SQL(
                        """(SELECT {columns}, left(({payload})::text, {cap}), octet_length(({payload})::text)
                            FROM {from_} WHERE ({where}) AND {id} = {parameter} LIMIT 1)"""
                    ).format(
                        columns=self.columns(rows, error_cap=None),
                        payload=payload,
                        cap=sql.Literal(PAYLOAD_CAP),
                        from_=rows.from_,
                        where=rows.where,
                        id=self.field(rows.fields.id),
                        parameter=self.id_parameter("id"),
                    )
                )
        return sql.SQL("{} LIMIT 1").format(sql.SQL(" UNION ALL ").join(parts))

    def total(self, state: ListedState) -> sql.Composed | None:
        """Parameter queues. -> the number of jobs, at most COUNT_CAP + 1. None: no rows of the state are kept."""
        cap = sql.Literal(COUNT_CAP + 1)
        conditions = [self.stuck()] if state == "stuck" else []
        parts = [
            sql.SQL("(SELECT FROM {} WHERE {} {} LIMIT {})").format(
                rows.from_,
                self.of_asked(rows, *conditions),
                self._in_order(rows, "overdue" if state == "stuck" else None),
                cap,
            )
            for rows in self.rows_of(state)
        ]
        if not parts:
            return None
        return sql.SQL(
            """SELECT count(*) FROM (SELECT FROM unnest(%(queues)s::text[]) AS asked(queue)
               CROSS JOIN LATERAL ({}) AS one LIMIT {}) AS counted"""
        ).format(sql.SQL(" UNION ALL ").join(parts), cap)

    def estimates(self, asked: Sequence[tuple[str, tuple[str, ...]]]) -> tuple[sql.Composed, dict[str, object]] | None:
        """A plan with one InitPlan per asked (queue, types): the server's estimate of its done jobs."""
        rows = self.rows("done")
        if rows is None:
            return None
        parts, values = [], dict[str, object]()
        for place, (queue, types) in enumerate(asked):
            values |= {f"queue{place}": queue, f"types{place}": list(types)}
            conditions = [self._of_types(rows, sql.Placeholder(f"types{place}"))] if types and rows.fields.type else []
            where = self.of_asked(rows, *conditions, queue=sql.Placeholder(f"queue{place}"))
            parts.append(sql.SQL("ARRAY(SELECT 1 FROM {} WHERE {})").format(rows.from_, where))
        return sql.SQL("EXPLAIN (FORMAT JSON) SELECT {}").format(sql.SQL(", ").join(parts)), values

    def done(self) -> sql.Composed | None:
        """Parameter asked. -> place, the number of done jobs as in `counts`"""
        rows = self.rows("done")
        if rows is None:
            return None
        return sql.SQL("SELECT asked.place, {} FROM {}").format(self._counted([(rows, [])]), trusted_parameters(_ASKED))

    @property
    def ends(self) -> tuple[bool, bool]:
        """Whether the table tells when jobs were done, and when they failed."""
        done, failed = self.rows("done"), self.rows("failed")
        return bool(done and done.fields.finished), bool(failed and failed.fields.finished)

    def ended(self) -> sql.Composed | None:
        """Parameters asked, minutes (so many before the running one) and cap.

        -> place, "done" or "failed", the start of a minute as epoch seconds, how many ended in it, how many rows of
        this place and kind were looked at in all (the cap: the oldest minute may be incomplete), the clock.
        """
        parts = []
        kinds: tuple[presets.StateName, ...] = ("done", "failed")
        for name in kinds:
            rows = self.rows(name)
            if rows is None or not rows.fields.finished:
                continue
            since = trusted_parameters(at_minute("minutes", self.encoding(rows.fields.finished), self.preset.zone))
            parts.append(
                sql.SQL(
                    """(SELECT {name}::text AS kind, {finished} AS moment, {counts} AS counts FROM {from_} WHERE {where}
                        ORDER BY {order} DESC LIMIT %(cap)s)"""
                ).format(
                    name=sql.Literal(name),
                    finished=sql.SQL("floor({} / 60) * 60").format(epoch(self.time(rows.fields.finished))),
                    counts=self._of_asked_type(rows),
                    from_=rows.from_,
                    where=self.of_asked(rows, self.lately(rows, since)),
                    order=self.field(rows.fields.finished),
                )
            )
        if not parts:
            return None
        return sql.SQL(
            """SELECT asked.place, ended.kind, ended.moment, count(*) FILTER (WHERE ended.counts),
                      (sum(count(*)) OVER (PARTITION BY asked.place, ended.kind))::bigint, date_part('epoch', now())
               FROM {} CROSS JOIN LATERAL ({}) AS ended GROUP BY 1, 2, 3"""
        ).format(trusted_parameters(_ASKED), sql.SQL(" UNION ALL ").join(parts))

    def text(self, query: str) -> sql.Composed:
        """A query that the preset brings, with its placeholders filled in."""
        return self.raw(query)

    # --- the parts -------------------------------------------------------------------------------------------------

    def _of_types(self, rows: Rows, types: Part) -> Part:
        return sql.SQL("({})::text = ANY ({})").format(self.field(rows.fields.type), types)

    def _of_asked_type(self, rows: Rows) -> Part:
        """Whether a row is of a type that `asked` asks for."""
        if not rows.fields.type or not self._by_type:
            return sql.SQL("true")
        of_types = self._of_types(rows, sql.SQL("asked.types"))
        return sql.SQL("(asked.types IS NULL OR {})").format(of_types)

    def _counted(
        self,
        every: Sequence[tuple[Rows | None, Sequence[Part]]],
        order: JobSort | None = None,
        cap: int = COUNT_CAP + 1,
    ) -> Part:
        """Counts up to the cap: one more than COUNT_CAP says "at least". `order` is that of the conditions."""
        parts = [
            sql.SQL("(SELECT {} AS counts FROM {} WHERE {} {} LIMIT {})").format(
                self._of_asked_type(rows),
                rows.from_,
                self.of_asked(rows, *conditions),
                self._in_order(rows, order),
                sql.Literal(cap),
            )
            for rows, conditions in every
            if rows is not None
        ]
        if not parts:
            return sql.SQL("ARRAY[0, 0]::bigint[]")
        return sql.SQL("(SELECT ARRAY[count(*) FILTER (WHERE counts), count(*)] FROM ({}) AS counted)").format(
            sql.SQL(" UNION ALL ").join(parts)
        )

    def _in_order(self, rows: Rows, order: JobSort | None) -> Part:
        """ORDER BY what an index serves: else the planner may take another one and look at every row of the state."""
        match order if order in rows.orders else None:
            case "age":
                key = rows.fields.run_after
            case "overdue":
                key = self.preset.lease.at
            case "finished":
                key = rows.fields.finished
            case _:
                return sql.SQL("")
        return sql.SQL("ORDER BY {}").format(self.field(key))

    def _recent(self, rows: Rows | None) -> Part:
        if rows is None or not rows.fields.finished:
            return sql.SQL("NULL::bigint[]")
        since = self.ago(RATE_MINUTES * 60, rows.fields.finished)
        return self._counted([(rows, [self.lately(rows, since)])], "finished", RATE_CAP)

    def _oldest(self, rows: Rows | None, due: Part | None) -> Part:
        key = rows and (rows.fields.run_after or rows.fields.created)
        if not rows or not key:
            return sql.SQL("NULL::float8")
        return self._first(rows, self.due_since(rows), [due] if due is not None else [], self.field(key))

    def _youngest(self, rows: Rows | None) -> Part:
        if rows is None or not rows.fields.finished:
            return sql.SQL("NULL::float8")
        finished = self.field(rows.fields.finished)
        conditions = [sql.SQL("{} IS NOT NULL").format(finished)]
        order = sql.SQL("{} DESC").format(finished)
        youngest = self._first(rows, self.time(rows.fields.finished), conditions, order)
        if not self._by_type:
            return youngest
        # none among so many: it is at least as old as the last of them
        return sql.SQL(
            """coalesce({youngest}, (SELECT max({age}) FROM (SELECT {moment} AS moment FROM {from_} WHERE {where}
                   ORDER BY {order} LIMIT {scan}) AS others HAVING count(*) = {scan}))"""
        ).format(
            youngest=youngest,
            age=age(sql.SQL("moment")),
            moment=self.time(rows.fields.finished),
            from_=rows.from_,
            where=self.of_asked(rows, *conditions),
            order=order,
            scan=sql.Literal(TYPE_SCAN),
        )

    def _first(self, rows: Rows, moment: Part, conditions: Sequence[Part], order: Part) -> Part:
        """The age of the first row; of a type that is rare, among the first TYPE_SCAN of all types."""
        return sql.SQL(
            """(SELECT {age} FROM (SELECT {moment} AS moment, {counts} AS counts FROM {from_} WHERE {where}
                ORDER BY {order} LIMIT {scan}) AS first WHERE counts LIMIT 1)"""
        ).format(
            age=age(sql.SQL("moment")),
            moment=moment,
            counts=self._of_asked_type(rows),
            from_=rows.from_,
            where=self.of_asked(rows, *conditions),
            order=order,
            scan=sql.Literal(TYPE_SCAN if self._by_type else 1),
        )


def trusted_parameters(text: str) -> sql.SQL:
    """SQL of ours that holds parameters."""
    return sql.SQL(text)
