"""The SQL of what the console reads at each poll, built from a preset; pages of jobs are in pages.py.

Each statement visits a handful of index entries, whatever the size of the table: counts stop at a cap and lists have a
limit.

    queues      which queues there are: a loose scan, one index entry per queue
    counts      one row per asked (queue, types): due, scheduled, running, stuck, failed, done, rates, ages
    running     the running jobs of some queues, longest overdue first
    job         one job by its id, with its payload
    total       how many jobs of one state there are in some queues, up to the cap
    estimates   a plan that tells how many rows the server believes there are; nothing is read
    ended       how many jobs ended in each of the last minutes
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from console.queue import preset as presets
from console.queue.counting import Counting, of_all, under_with
from console.queue.preset import ListedState
from console.queue.render import EVERY_STATE, Part, Rows, epoch
from console.queue.rows import COUNT_CAP, COUNT_COLUMNS, HOLDER_COLUMNS, JOB_COLUMNS, RATE_MINUTES
from console.queue.times import at_minute

__all__ = ["ListedState", "Reads"]

RUNNING_CAP = 500
MERGED_QUEUES = 32  # up to so many
QUEUES_CAP = 200
PAYLOAD_CAP = 65_536  # characters of a payload that are read

_CLAIMABLE: tuple[presets.StateName, ...] = ("waiting", "again")  # once they are due
_ASKED = "jsonb_to_recordset(%(asked)s::jsonb) AS asked(place integer, queue text, types text[], wanted text[])"


class Reads(Counting):
    """The statements for one preset in one schema."""

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

        Only the columns in `wanted` are found out, the others are NULL. A number is an array of two: how many rows of
        the types there are among how many that were looked at, up to the cap and one. An age is an array of two as
        well: seconds or NULL, and how many rows were looked at in vain.
        """
        scheduled = self.rows("scheduled")
        waiting = [rows for name in _CLAIMABLE if (rows := self.rows(name))]
        due = [(rows, [rows.due] if rows.due is not None else []) for rows in waiting]
        not_due = [(rows, [sql.SQL("NOT ({})").format(rows.due)]) for rows in waiting if rows.due is not None]
        running, done, failed = self.rows("running"), self.rows("done"), self.rows("failed")
        found: list[Part] = []
        ended_done, ended_failed = (
            self.found_once(rows, self.ago(RATE_MINUTES * 60, self.ended_at(rows)), found) if rows else None
            for rows in (done, failed)
        )
        columns: dict[str, Part] = {
            "waiting": self.counted(due, "age", cap + 1),
            "scheduled": self.counted([(scheduled, []), *not_due], "age", cap + 1),
            "running": self.counted([(running, [])], cap=cap + 1),
            "stuck": self.counted([(running, [self.stuck()])], "overdue", cap + 1),
            "failed": self.newest(failed, cap)
            if failed and self.misses_index("failed")
            else self.counted([(failed, [])], cap=cap + 1),
            "done_recently": self.recent(ended_done),
            "failed_recently": self.recent(ended_failed),
            "done": self.counted([(done, [])], cap=cap + 1) if done else sql.SQL("NULL::bigint[]"),
            "oldest_waiting": of_all("max", [self.oldest(rows, conditions) for rows, conditions in due]),
            "last_finished": of_all("min", [self.youngest(ended_done), self.youngest(ended_failed)]),
        }
        for name in COUNT_COLUMNS:
            columns[name] = sql.SQL("CASE WHEN {} = ANY (asked.wanted) THEN {} END").format(
                sql.Literal(name), columns[name]
            )
        return sql.SQL("""{}SELECT asked.place, date_part('epoch', now()), {},
                      date_part('epoch', clock_timestamp() - statement_timestamp()) FROM {}""").format(
            under_with(found), sql.SQL(", ").join(columns[name] for name in COUNT_COLUMNS), trusted_parameters(_ASKED)
        )

    def running(self, queues: Sequence[str]) -> tuple[sql.Composed, dict[str, object]]:
        """-> job rows of these queues, longest overdue first; and the parameters."""
        rows = self.rows("running")
        assert rows is not None, "every preset has running rows"
        if len(queues) > MERGED_QUEUES:
            return self._running_of_many(rows), {"queues": list(queues)}
        # one ordered index scan per queue, merged: no more entries are read than jobs are shown
        order = self.field(self.preset.lease.at or rows.fields.started or rows.fields.id)
        names = sql.SQL(", ").join(sql.Identifier(name) for name in (*JOB_COLUMNS, *HOLDER_COLUMNS))
        branches = [
            sql.SQL(
                "(SELECT {columns}, {order} FROM {from_} WHERE {where} ORDER BY {order} {nulls} LIMIT {cap})"
            ).format(
                columns=self.columns(rows),
                order=order,
                from_=rows.from_,
                where=self.of_asked(rows, queue=sql.SQL("{}::text").format(sql.Placeholder(f"queue{place}"))),
                nulls=self._nulls,
                cap=sql.Literal(RUNNING_CAP),
            )
            for place in range(len(queues))
        ]
        merged = sql.SQL("SELECT {names} FROM ({every}) AS job({names}, sorted) ORDER BY sorted {nulls} LIMIT {cap}")
        return merged.format(
            names=names, every=sql.SQL(" UNION ALL ").join(branches), nulls=self._nulls, cap=sql.Literal(RUNNING_CAP)
        ), {f"queue{place}": queue for place, queue in enumerate(queues)}

    @property
    def _nulls(self) -> sql.SQL:
        """Where running rows without the time of their lease stand: first where the holder is gone."""
        return sql.SQL("NULLS FIRST" if self.preset.lease.kind == "worker-heartbeat" else "NULLS LAST")

    def _running_of_many(self, rows: Rows) -> sql.Composed:
        """`running` for so many queues that a plan with a scan for each takes too long to make; parameter queues."""
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
            nulls=self._nulls,
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
                            FROM {from_} WHERE ({where}) AND {identified} LIMIT 1)"""
                    ).format(
                        columns=self.columns(rows, error_cap=None),
                        payload=payload,
                        cap=sql.Literal(PAYLOAD_CAP),
                        from_=rows.from_,
                        where=rows.where,
                        identified=self.identified(rows, self.id_parameter("id")),
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
                self.in_order(rows, "overdue" if state == "stuck" else None),
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
            conditions = [self.of_types(rows, sql.Placeholder(f"types{place}"))] if types and rows.fields.type else []
            where = self.of_asked(rows, *conditions, queue=sql.Placeholder(f"queue{place}"))
            parts.append(sql.SQL("ARRAY(SELECT 1 FROM {} WHERE {})").format(rows.from_, where))
        return sql.SQL("EXPLAIN (FORMAT JSON) SELECT {}").format(sql.SQL(", ").join(parts)), values

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
        found: list[Part] = []
        parts = []
        kinds: tuple[presets.StateName, ...] = ("done", "failed")
        for name in kinds:
            rows = self.rows(name)
            if rows is None or not rows.fields.finished:
                continue
            since = trusted_parameters(at_minute("minutes", self.encoding(self.ended_at(rows)), self.preset.zone))
            rows = self.lately(self.found_once(rows, since, found), since)
            parts.append(
                sql.SQL(
                    """(SELECT {name}::text AS kind, {finished} AS moment, {counts} AS counts FROM {from_} WHERE {where}
                        ORDER BY {order} DESC LIMIT %(cap)s)"""
                ).format(
                    name=sql.Literal(name),
                    finished=sql.SQL("floor({} / 60) * 60").format(epoch(self.time(rows.fields.finished))),
                    counts=self.of_asked_type(rows),
                    from_=rows.from_,
                    where=self.of_asked(rows),
                    order=self.field(rows.fields.finished),
                )
            )
        if not parts:
            return None
        return sql.SQL(
            """{}SELECT asked.place, ended.kind, ended.moment, count(*) FILTER (WHERE ended.counts),
                      (sum(count(*)) OVER (PARTITION BY asked.place, ended.kind))::bigint, date_part('epoch', now())
               FROM {} CROSS JOIN LATERAL ({}) AS ended GROUP BY 1, 2, 3"""
        ).format(under_with(found), trusted_parameters(_ASKED), sql.SQL(" UNION ALL ").join(parts))

    def workers(self, cap: int) -> sql.Composed | None:
        """No parameters. -> id, heartbeat_age, host, pid, queues. None: there is no table of workers."""
        if self.preset.workers is None:
            return None
        return sql.SQL("SELECT listed.* FROM ({}) AS listed LIMIT {}").format(
            self.raw(self.preset.workers.query), sql.Literal(cap)
        )

    def text(self, query: str) -> sql.Composed:
        """A query that the preset brings, with its placeholders filled in."""
        return self.raw(query)


def trusted_parameters(text: str) -> sql.SQL:
    """SQL of ours that holds parameters."""
    return sql.SQL(text)
