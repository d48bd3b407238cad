"""Rows of a state counted, and the first of them found: the parts of which reads.py makes the console's numbers.

They stand under a list of queues, `asked` (reads.py): counts stop at a cap, ages are of one index entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

import msgspec
from psycopg import sql

from console.fleet.model import JobSort
from console.queue import preset as presets
from console.queue.preset import Preset
from console.queue.render import Part, Rendered, Rows, age
from console.queue.rows import COUNT_CAP, RATE_MINUTES

RATE_CAP = 60_000  # ended jobs counted for a rate; more than 12 000 a minute are shown as 12 000
TYPE_SCAN = 1_000  # rows among which the first of a type is looked for
WINDOW = 20_000  # newest rows that are looked at for a count whose index is missing
_MOMENT = sql.SQL("moment")


class Counting(Rendered):
    """The parts for one preset in one schema.

    Without `by_type` counts do not look at types, and most need the index only. `queues` are needed only where each
    queue has a table of its own.
    """

    def __init__(
        self,
        preset: Preset,
        schema: str,
        *,
        by_type: bool = False,
        queues: Sequence[str] = (),
        missing: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(preset, schema, queues)
        self._by_type = by_type
        self._missing = missing

    def of_types(self, rows: Rows, types: Part) -> Part:
        return sql.SQL("({})::text = ANY ({})").format(self.field(rows.fields.type), types)

    def of_asked_type(self, rows: Rows) -> Part:
        """Whether a row is of a type that `asked` asks for."""
        if not rows.fields.type or not self._by_type:
            return sql.SQL("true")
        of_types = self.of_types(rows, sql.SQL("asked.types"))
        return sql.SQL("(asked.types IS NULL OR {})").format(of_types)

    def counted(
        self,
        every: Sequence[tuple[Rows | None, Sequence[Part]]],
        order: JobSort | None = None,
        cap: int = COUNT_CAP + 1,
    ) -> Part:
        """Counts up to the cap: one more than COUNT_CAP says "at least". `order` is that of the conditions."""
        parts = [
            sql.SQL("(SELECT {} AS counts FROM {} WHERE {} {} LIMIT {})").format(
                self.of_asked_type(rows),
                rows.from_,
                self.of_asked(rows, *conditions),
                self.in_order(rows, order),
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

    def misses_index(self, name: presets.StateName) -> bool:
        state: presets.State | None = getattr(self.preset.states, name)
        return state is not None and state.index in self._missing

    def newest(self, rows: Rows, cap: int) -> Part:
        """As `counted`, among the newest WINDOW rows of the table: "at least" when there are more."""
        return sql.SQL(
            """(SELECT ARRAY[count(*) FILTER (WHERE matches AND counts),
                             CASE WHEN count(*) = {window} THEN {cap} ELSE count(*) FILTER (WHERE matches) END]
                FROM (SELECT ({where}) AS matches, {counts} AS counts FROM {from_}
                      ORDER BY {id} DESC LIMIT {window}) AS newest)"""
        ).format(
            window=sql.Literal(WINDOW),
            cap=sql.Literal(cap + 1),
            where=self.of_asked(rows),
            counts=self.of_asked_type(rows),
            from_=rows.from_,
            id=self.field(rows.fields.id),
        )

    def in_order(self, rows: Rows, order: JobSort | None) -> Part:
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

    def found_once(self, rows: Rows, since: Part, found: list[Part]) -> Rows:
        """The rows that ended lately, where no index of a queue has their times: found once, for all queues.

        `found` gains what stands under WITH. Other rows are returned as they are.
        """
        if rows.recent is None:
            return rows
        name = sql.Identifier(f"ended_{rows.state}")
        lately = self.lately(rows, since)
        found.append(
            sql.SQL("{} AS MATERIALIZED (SELECT {} AS queue, {} AS type, {} AS at FROM {} WHERE {})").format(
                name,
                sql.SQL("({})::text").format(self.field(rows.fields.queue)),
                sql.SQL("({})::text").format(self.field(rows.fields.type)),
                self.field(rows.recent.at),
                lately.from_,
                lately.where,
            )
        )
        finished = presets.Expression(sql="ended.at", time=self.encoding(rows.recent.at))
        return msgspec.structs.replace(
            rows,
            from_=sql.SQL("{} AS ended").format(name),
            where=sql.SQL("true"),
            fields=presets.Fields(
                id="NULL", queue="ended.queue", type=rows.fields.type and "ended.type", finished=finished
            ),
            recent=None,
        )

    def recent(self, rows: Rows | None) -> Part:
        if rows is None or not rows.fields.finished:
            return sql.SQL("NULL::bigint[]")
        lately = self.lately(rows, self.ago(RATE_MINUTES * 60, self.ended_at(rows)))
        return self.counted([(lately, [])], "finished", RATE_CAP)

    def oldest(self, rows: Rows, due: Sequence[Part]) -> Part:
        key = rows.fields.run_after or rows.fields.created
        if not key:
            return sql.SQL("NULL::float8[]")
        return self.first(rows, self.due_since(rows), due, rows.oldest or self.field(key), sql.SQL("NULL::float8"))

    def youngest(self, rows: Rows | None) -> Part:
        if rows is None or not rows.fields.finished:
            return sql.SQL("NULL::float8[]")
        finished = self.field(rows.fields.finished)
        conditions = [sql.SQL("{} IS NOT NULL").format(finished)]
        order = sql.SQL("{} DESC").format(finished)
        # none among so many: it is at least as old as the last of them
        missed = sql.SQL("CASE WHEN count(*) = {} THEN max({}) END").format(sql.Literal(TYPE_SCAN), age(_MOMENT))
        return self.first(rows, self.time(rows.fields.finished), conditions, order, missed)

    def first(self, rows: Rows, moment: Part, conditions: Sequence[Part], order: Part, missed: Part) -> Part:
        """The age of the first row; of a type that is rare, among the first TYPE_SCAN of all types, else `missed`."""
        listed = sql.SQL("SELECT {} AS moment, {} AS counts FROM {} WHERE {} ORDER BY {} LIMIT {}").format(
            moment,
            self.of_asked_type(rows),
            rows.from_,
            self.of_asked(rows, *conditions),
            order,
            sql.Literal(TYPE_SCAN if self._by_type else 1),
        )
        first = sql.SQL("(SELECT ARRAY[{}, 0] FROM ({}) AS listed WHERE counts LIMIT 1)").format(age(_MOMENT), listed)
        if not self._by_type:
            return first
        none = sql.SQL("(SELECT ARRAY[{}, count(*)] FROM ({}) AS listed)").format(missed, listed)
        return sql.SQL("coalesce({}, {})").format(first, none)


def under_with(found: Sequence[Part]) -> Part:
    return sql.SQL("WITH {} ").format(sql.SQL(", ").join(found)) if found else sql.SQL("")


def of_all(extreme: LiteralString, parts: Sequence[Part]) -> Part:
    """Of several ages, as in `counts`, the greatest or the least."""
    return sql.SQL("(SELECT ARRAY[{}(found.age[1]), sum(found.age[2])] FROM (VALUES {}) AS found(age))").format(
        sql.SQL(extreme), sql.SQL(", ").join(sql.SQL("({})").format(part) for part in parts)
    )
