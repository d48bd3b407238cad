"""The SQL of pages of jobs: keyset paging in any order, with filters, in bounded steps.

A page is made from *streams*, one per queue (and per kind of rows): the keys of the next rows in the order of the page,
by an index, at most `window` of them. What is filtered by (types, text) has no index: a stream then scans `window` rows
and says which match. Beyond the last row of a stream that came to its window nothing is known, so a page ends at the
first of those rows (`bound`), and the next page goes on from there: no row is left out or shown twice, and each
statement reads so many rows and no more.

An order that no index serves is *windowed*: the newest `window` rows of each queue are sorted, and the page says so.

What is sorted by:

    id          the id
    age         since it waits (run_after), runs (started) or has ended (finished)
    priority    the priority; those of equal priority by run_after, so that descending is the order of claims
    attempts    the attempts so far
    overdue     how long the lease has expired, running and stuck only
    finished    when it ended, done and failed only

Where a queue has no such field its jobs are sorted by id. Ties are broken by id, then queue.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from psycopg import sql

from console.fleet.model import JobSort
from console.queue.preset import Field, ListedState
from console.queue.render import ERROR_CAP, Part, Rendered, Rows, epoch, trusted
from console.queue.times import column_type


class Key(msgspec.Struct, frozen=True):
    """One expression that rows are sorted by, of a type, with its direction."""

    expression: Part
    type: str
    descending: bool


class Filters(msgspec.Struct, frozen=True):
    """What else narrows a page; the values are parameters: types, contains, pinned."""

    types: bool = False
    contains: bool = False
    pinned: bool = False  # the job of this id is on the first page already


class Page(msgspec.Struct, frozen=True):
    """A statement and how to read it.

    Rows: how many of the scanned rows match, whether a stream came to its window, the newest id scanned (windowed
    only), a place as JSON (the keys, the id, the queue), whether it is the bound, a job row. There is always one row;
    bound and job are NULL in it when nothing was found.
    """

    statement: sql.Composed
    keys: int
    windowed: bool
    scans: bool  # not every row that is read is in the page: `window` says how many are looked at


class Pages(Rendered):
    """Parameters of all statements: queues; of `page` also limit, window and, of the place after which it begins,
    key0, key1, …, id, queue, top."""

    def page(self, state: ListedState, sort: JobSort, descending: bool, filters: Filters, after: bool) -> Page | None:
        """None: this queue keeps no rows of the state."""
        every = self.rows_of(state)
        if not every:
            return None
        if not all(self._sortable(rows, sort) for rows in every):
            sort = "id"
        windowed = sort != "id" and (len(every) > 1 or sort not in every[0].orders)
        streams: list[Part] = []
        keys: list[Key] = []
        scans = windowed
        for rows in every:
            keys = self._keys(rows, sort, descending, windowed)
            by_index = state == "stuck" and sort == "overdue" and not windowed
            scans = scans or filters != Filters() or (state == "stuck" and not by_index)
            conditions = [self.stuck()] if by_index else []
            matched = self._matched(rows, filters, [self.stuck()] if state == "stuck" and not by_index else [])
            if windowed:
                top = [sql.SQL("{} <= {}").format(keys[-1].expression, self._id("top"))] if after else []
                streams.append(self._stream(rows, keys, [Key(keys[-1].expression, "", True)], matched, top))
            else:
                for beyond in self._beyond(keys) if after else [[]]:
                    streams.append(self._stream(rows, keys, keys, matched, [*conditions, *beyond]))
        return Page(self._page(every, streams, keys, windowed, after), len(keys) - 1, windowed, scans)

    def pinned(self, state: ListedState, filters: Filters) -> sql.Composed | None:
        """The jobs of that very id: parameters pinned, and types. -> job rows."""
        parts = []
        for rows in self.rows_of(state):
            conditions: list[Part] = [sql.SQL("{} = {}").format(self.field(rows.fields.id), self._id("pinned"))]
            conditions += [self.stuck()] if state == "stuck" else []
            conditions += [self._of_types(rows)] if filters.types else []
            where = self.of_asked(rows, *conditions, queue=sql.SQL("ANY (%(queues)s::text[])"))
            parts.append(sql.SQL("(SELECT {} FROM {} WHERE {})").format(self.columns(rows), rows.from_, where))
        return sql.SQL(" UNION ALL ").join(parts) if parts else None

    # --- what is sorted by -----------------------------------------------------------------------------------------

    def _sortable(self, rows: Rows, sort: JobSort) -> bool:
        match sort:
            case "id":
                return True
            case "overdue":
                return rows.state == "running" and bool(self.preset.lease.at)
            case "finished":
                return rows.state in ("done", "failed") and bool(rows.fields.finished)
            case "age":
                return bool(self._since(rows))
            case "priority" | "attempts":
                return bool(getattr(rows.fields, sort))

    def _since(self, rows: Rows) -> Field:
        match rows.state:
            case "waiting":
                return rows.fields.run_after or rows.fields.created
            case "running":
                return rows.fields.started
            case _:
                return rows.fields.finished

    def _keys(self, rows: Rows, sort: JobSort, descending: bool, windowed: bool) -> list[Key]:
        """The keys, the id last."""
        identity = self.field(rows.fields.id)
        match sort:
            case "id":
                return [Key(identity, self.preset.id_type, descending)]
            case "age" | "overdue":  # the greater, the earlier
                since = self._since(rows) if sort == "age" else self.preset.lease.at
                keys, last = [self._time_key(since, not descending, windowed)], not descending
            case "finished":
                keys, last = [self._time_key(rows.fields.finished, descending, windowed)], descending
            case "attempts":
                keys, last = [self._number_key(rows.fields.attempts, descending, windowed)], descending
            case "priority":
                keys, last = [self._number_key(rows.fields.priority, descending, windowed)], not descending
                since = rows.fields.run_after or (rows.fields.created if windowed else "")
                if since or windowed:  # the streams of a windowed order have the same keys
                    keys.append(self._time_key(since, not descending, windowed))
        return [*keys, Key(identity, self.preset.id_type, last)]

    def _time_key(self, field: Field, descending: bool, windowed: bool) -> Key:
        if windowed:
            return Key(_never_null(epoch(self.time(field))), "float8", descending)
        return Key(self.field(field), column_type(self.encoding(field)), descending)

    def _number_key(self, field: Field, descending: bool, windowed: bool) -> Key:
        if windowed:
            return Key(_never_null(sql.SQL("({})::float8").format(self.field(field))), "float8", descending)
        return Key(self.field(field), "bigint", descending)

    # --- the parts -------------------------------------------------------------------------------------------------

    def _id(self, name: str) -> Part:
        return self.id_parameter(name)

    def _of_types(self, rows: Rows) -> Part:
        return sql.SQL("coalesce(({})::text = ANY (%(types)s::text[]), false)").format(self.field(rows.fields.type))

    def _matched(self, rows: Rows, filters: Filters, conditions: Sequence[Part]) -> Part:
        parts = list(conditions)
        identity = self.field(rows.fields.id)
        if filters.types:
            parts.append(self._of_types(rows))
        if filters.contains:
            # what is searched is what lists show; strpos takes the text as it is
            error = sql.SQL("left(({})::text, {})").format(self.field(rows.fields.error), sql.Literal(ERROR_CAP))
            texts: list[Part] = [self.field(rows.fields.type), error]
            if self.preset.id_type != "bigint":
                texts.append(identity)
            found = [
                sql.SQL("coalesce(strpos(lower(({})::text), lower(%(contains)s::text)) > 0, false)").format(text)
                for text in texts
            ]
            parts.append(sql.SQL(" OR ").join(found))
        if filters.pinned:
            parts.append(sql.SQL("{} <> {}").format(identity, self._id("pinned")))
        return sql.SQL(" AND ").join(sql.SQL("({})").format(part) for part in parts) if parts else sql.SQL("true")

    def _beyond(self, keys: Sequence[Key]) -> list[list[Part]]:
        """The conditions on rows from the place on, for one stream each: every one is a range of the index.

        The place itself is not left out: in another queue there may be a row with the same keys and id.
        """
        first, rest = keys[0], keys[1:]
        if all(key.descending == first.descending for key in rest):
            left = sql.SQL(", ").join(key.expression for key in keys)
            right = sql.SQL(", ").join(_parameter(number, keys) for number in range(len(keys)))
            sign = sql.SQL("<=" if first.descending else ">=")
            return [[sql.SQL("({}) {} ({})").format(left, sign, right)]]
        equal = sql.SQL("{} = {}").format(first.expression, _parameter(0, keys))
        sign = sql.SQL("<" if first.descending else ">")
        past = sql.SQL("{} {} {}").format(first.expression, sign, _parameter(0, keys))
        same = all(key.descending == rest[0].descending for key in rest)
        assert same, "an order changes its direction once"
        left = sql.SQL(", ").join(key.expression for key in rest)
        right = sql.SQL(", ").join(_parameter(number, keys) for number in range(1, len(keys)))
        ranged = sql.SQL("({}) {} ({})").format(left, sql.SQL("<=" if rest[0].descending else ">="), right)
        return [[equal, ranged], [past]]

    def _stream(
        self, rows: Rows, keys: Sequence[Key], order: Sequence[Key], matched: Part, conditions: Sequence[Part]
    ) -> Part:
        by = sql.SQL(", ").join(_directed(key.expression, key.descending) for key in order)
        columns = [
            sql.SQL("{} AS {}").format(key.expression, name) for key, name in zip(keys, _names(keys), strict=True)
        ]
        return sql.SQL(
            """(SELECT {columns}, ({matched}) AS matched, row_number() OVER (ORDER BY {by}) AS nth
                FROM {from_} WHERE {where} ORDER BY {by} LIMIT %(window)s)"""
        ).format(
            columns=sql.SQL(", ").join(columns),
            matched=matched,
            by=by,
            from_=rows.from_,
            where=self.of_asked(rows, *conditions),
        )

    def _page(
        self, every: Sequence[Rows], streams: Sequence[Part], keys: Sequence[Key], windowed: bool, after: bool
    ) -> sql.Composed:
        names = _names(keys)
        listed = sql.SQL(", ").join([*names, sql.Identifier("queue")])

        def order(table: str) -> Part:
            by = [_directed(_of(table, name), key.descending) for key, name in zip(keys, names, strict=True)]
            return sql.SQL(", ").join([*by, _of(table, sql.Identifier("queue"))])

        conditions: list[Part] = [sql.SQL("scanned.matched")]
        if after:
            place = [_parameter(number, keys) for number in range(len(keys))]
            conditions.append(_later(keys, [*place, sql.SQL("%(queue)s::text")]))
        if not windowed:
            last = [_of("bound", name) for name in [*names, sql.Identifier("queue")]]
            conditions.append(sql.SQL("NOT EXISTS (SELECT FROM bound WHERE {})").format(_later(keys, last)))
        return sql.SQL(
            """WITH scanned AS MATERIALIZED (
                   SELECT stream.*, asked.queue FROM unnest(%(queues)s::text[]) AS asked(queue)
                   CROSS JOIN LATERAL ({streams}) AS stream
               ), bound AS MATERIALIZED (
                   SELECT {listed} FROM scanned WHERE nth = %(window)s ORDER BY {order_scanned} LIMIT {bounds}
               ), found AS MATERIALIZED (
                   SELECT {listed} FROM scanned WHERE {conditions} ORDER BY {order_scanned} LIMIT %(limit)s
               )
               SELECT summary.*, jsonb_build_array({place})::text, at.bound, job.*
               FROM (SELECT count(*) FILTER (WHERE matched), coalesce(bool_or(nth = %(window)s), false), {top}
                     FROM scanned) AS summary
               LEFT JOIN (SELECT false AS bound, found.* FROM found UNION ALL SELECT true, bound.* FROM bound) AS at
                      ON true
               LEFT JOIN {job} ON NOT at.bound
               ORDER BY at.bound, {order_at}"""
        ).format(
            streams=sql.SQL(" UNION ALL ").join(streams),
            listed=listed,
            order_scanned=order("scanned"),
            bounds=sql.Literal(0 if windowed else 1),
            conditions=sql.SQL(" AND ").join(conditions),
            place=sql.SQL(", ").join(_of("at", name) for name in [*names, sql.Identifier("queue")]),
            top=sql.SQL("(SELECT to_jsonb(id) #>> '{}' FROM scanned ORDER BY id DESC LIMIT 1)")
            if windowed
            else sql.SQL("NULL::text"),
            job=self.looked_up(every, "at"),
            order_at=order("at"),
        )


def _never_null(number: Part) -> Part:
    return sql.SQL("coalesce({}, '-Infinity'::float8)").format(number)


def _names(keys: Sequence[Key]) -> list[sql.Identifier]:
    return [*(sql.Identifier(f"key{number}") for number in range(len(keys) - 1)), sql.Identifier("id")]


def _parameter(number: int, keys: Sequence[Key]) -> Part:
    name = "id" if number == len(keys) - 1 else f"key{number}"
    return sql.SQL("{}::{}").format(sql.Placeholder(name), trusted(keys[number].type))


def _of(table: str, name: sql.Identifier) -> Part:
    return sql.SQL("{}.{}").format(sql.Identifier(table), name)


def _directed(expression: Part, descending: bool) -> Part:
    return sql.SQL("{} DESC" if descending else "{} ASC").format(expression)


def _later(keys: Sequence[Key], place: Sequence[Part]) -> Part:
    """The condition on a row of `scanned` that it comes after the place (its keys, id and queue) in the order."""
    last = sql.SQL("scanned.queue > {}").format(place[-1])
    for key, name, value in reversed(list(zip(keys, _names(keys), place, strict=False))):
        column = _of("scanned", name)
        last = sql.SQL("({column} {sign} {value} OR ({column} = {value} AND {rest}))").format(
            column=column, sign=sql.SQL("<" if key.descending else ">"), value=value, rest=last
        )
    return last
