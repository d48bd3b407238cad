"""The SQL of what the console does to rows. Nothing is executed here.

    WITH v AS (SELECT key, id, token, the columns as they are … FOR UPDATE OF j SKIP LOCKED LIMIT n)
    UPDATE … FROM v WHERE the key, the state and the token are still those RETURNING before and after

Rows that another session holds are skipped, and what another session has changed meanwhile is looked at again
(READ COMMITTED), so a heartbeat that comes between a survey and the change keeps its row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import sql

from console.fleet.plan import Statement
from console.queue.preset import Preset
from console.queue.render import Part, trusted
from console.queue.selecting import TOKEN, Change, Selecting, all_of
from console.queue.times import quoted

_RESERVED_WORDS = """
    all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation
    column concurrently constraint create cross current_catalog current_date current_role current_schema current_time
    current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze
    from full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit
    localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references
    returning right select session_user similar some symmetric system_user table tablesample then to trailing true
    union unique user using variadic verbose when where window with
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())
SEPARATOR = "\x1f"
_WAKES = frozenset({"reclaim", "retry", "run-now"})


class Writes(Selecting):
    """Statements for one preset in one schema. `columns`: of the changed table, in order; needed to delete rows."""

    def __init__(self, preset: Preset, schema: str, columns: Sequence[str] = ()) -> None:
        super().__init__(preset, schema)
        self._columns = tuple(columns)

    def value(self, column: str) -> Part:
        """A column of the journal as text."""
        if column == TOKEN:
            return sql.SQL("({})::text").format(self.token())
        return sql.SQL("{}.{}::text").format(name_of(self.actions.alias), name_of(column))

    def act(self, change: Change, *more: Part, without: bool = False) -> sql.Composed:
        """Parameters of `Change.values`, batch, those of more conditions, and without: ids to leave out.

        -> id, what is notified, before, after: the columns of `Change.columns`, after without the key; of a deleted
        row there is one value, the row as JSON.
        """
        actions = self.actions
        alias = name_of(actions.alias)
        key = [name_of(column) for column in actions.key]
        before = [self._whole_row()] if change.action.delete else [self.value(name) for name in change.columns]
        names = [name_of(f"before{place}") for place in range(len(before))]
        after = [] if change.action.delete else [self.value(name) for name in change.columns[len(key) :]]
        picked: list[Part] = [
            *(sql.SQL("{}.{} AS {}").format(alias, name, name_of(f"key{n}")) for n, name in enumerate(key)),
            sql.SQL("({})::text AS id").format(self.field(change.rows.fields.id)),
            sql.SQL("({})::text AS token").format(self.token()),
            sql.SQL("{} AS notice").format(self._notice(change)),
            *(sql.SQL("{} AS {}").format(part, name) for part, name in zip(before, names, strict=True)),
        ]
        again: list[Part] = [
            sql.SQL("{}.{} = v.{}").format(alias, name, name_of(f"key{n}")) for n, name in enumerate(key)
        ]
        if self._alone(change.rows.where.as_string(None)):
            again.append(change.rows.where)
        if self.preset.fence.token and self._alone(self.preset.fence.token):
            again.append(sql.SQL("({})::text IS NOT DISTINCT FROM v.token").format(self.token()))
        returned = sql.SQL(", ").join(
            [sql.SQL("v.id, v.notice"), *(sql.SQL("v.{}").format(name) for name in names), *after]
        )
        changed = self._changed(change, returned, all_of(again))
        query = sql.SQL(
            "WITH v AS (\n  SELECT {picked}\n  FROM {from_}\n  WHERE {where}\n"
            "  LIMIT %(batch)s FOR UPDATE OF {alias} SKIP LOCKED\n)"
        ).format(
            picked=sql.SQL(",\n    ").join(picked),
            from_=change.from_,
            where=self.where(change, *more, *(self._not_without(change) if without else ())),
            alias=alias,
        )
        if not change.action.also:
            return sql.SQL("{}\n{}").format(query, changed)
        columns = [sql.SQL("id"), sql.SQL("notice"), *names]
        columns += [name_of(f"after{place}") for place in range(len(after))]
        also = [
            sql.SQL(", {} AS ({})").format(name_of(f"also{place}"), self.verb_text(text))
            for place, text in enumerate(change.action.also)
        ]
        return sql.SQL("{}, changed({}) AS (\n{}\n){}\nSELECT * FROM changed").format(
            query, sql.SQL(", ").join(columns), changed, sql.Composed(also)
        )

    def one(self, change: Change) -> sql.Composed:
        """As `act`, for the row whose id is the parameter `only`."""
        return self.act(change, self.identified(change.rows, self.id_parameter("only")))

    def locked(self, change: Change) -> sql.Composed:
        """Parameters as of `act`. Locks the rows. -> (id)"""
        return sql.SQL("SELECT ({})::text FROM {} WHERE {} LIMIT %(batch)s FOR UPDATE OF {} SKIP LOCKED").format(
            self.field(change.rows.fields.id),
            change.from_,
            self.where(change, *self._not_without(change)),
            name_of(self.actions.alias),
        )

    def _changed(self, change: Change, returned: Part, again: Part) -> sql.Composed:
        table, alias = self.raw(self.actions.table), name_of(self.actions.alias)
        if change.action.delete:
            return sql.SQL("DELETE FROM {} AS {} USING v\nWHERE {}\nRETURNING {}").format(table, alias, again, returned)
        values = sql.SQL(",\n    ").join(
            sql.SQL("{} = {}").format(name_of(column), self.verb_text(text))
            for column, text in change.action.set.items()
        )
        return sql.SQL("UPDATE {} AS {} SET\n    {}\nFROM v\nWHERE {}\nRETURNING {}").format(
            table, alias, values, again, returned
        )

    def _not_without(self, change: Change) -> list[Part]:
        """Leaves out rows that could not be changed before."""
        id = self.field(change.rows.fields.id)
        return [sql.SQL("{} <> ALL (%(without)s::{}[])").format(id, trusted(self.preset.id_type))]

    def _alone(self, text: str) -> bool:
        """Whether the expression speaks of the changed table only: then it can be asked again in the UPDATE."""
        bare = re.sub(r"'[^']*'|\"[^\"]*\"\.|\{schema\}\.", "", text)
        return set(re.findall(r"\b([A-Za-z_]\w*)\.", bare)) <= {self.actions.alias}

    def _whole_row(self) -> Part:
        """The row as JSON, each column as text: a round trip through JSON's own types would lose some values."""
        names = sql.SQL(", ").join(trusted(quoted(column)) for column in self._columns)
        return sql.SQL("json_object(ARRAY[{}]::text[], ARRAY[{}]::text[])::text").format(
            names, sql.SQL(", ").join(self.value(column) for column in self._columns)
        )

    def _notice(self, change: Change) -> Part:
        return self.notice() if change.verb in _WAKES else sql.SQL("NULL::text")

    def notice(self) -> Part:
        """What is to be notified for a row: the payload and the channels, joined by SEPARATOR; NULL: workers poll."""
        wakeup = self.preset.wakeup
        channels: list[Part] = [self.raw(text) for text in wakeup.channels]
        if not channels and wakeup.channel:
            channels = [trusted(quoted(wakeup.channel))]
        if not channels:
            return sql.SQL("NULL::text")
        payload: Part = self.raw(wakeup.payload) if wakeup.payload else sql.SQL("''")
        return sql.SQL("concat_ws(chr(31), {})").format(sql.SQL(", ").join([payload, *channels]))

    def wake(self) -> sql.Composed:
        """Parameter queues. Notifies for one waiting job of each queue. -> nothing of interest"""
        every = [
            sql.SQL("(SELECT string_to_array({}, chr(31)) AS notice FROM {} WHERE {} LIMIT 1)").format(
                self.notice(), rows.from_, self.of_asked(rows)
            )
            for rows in self.rows_of("waiting")
        ]
        return sql.SQL(
            """SELECT pg_notify(channel, one.notice[1]) FROM unnest(%(queues)s::text[]) AS asked(queue)
               CROSS JOIN LATERAL (SELECT * FROM ({}) AS every LIMIT 1) AS one
               CROSS JOIN LATERAL unnest(one.notice[2:]) AS channel"""
        ).format(sql.SQL(" UNION ALL ").join(every))


def notifications(notices: set[str]) -> list[tuple[str, str]]:
    """(channel, payload) of what `notice` gave for some rows."""
    pairs = (
        (channel, payload) for payload, *channels in (one.split(SEPARATOR) for one in notices) for channel in channels
    )
    return sorted(pairs)


def name_of(column: str) -> Part:
    """A name as a person would write it: quoted only where it must be."""
    if re.fullmatch(r"[a-z_][a-z0-9_]*", column) and column not in _RESERVED:
        return trusted(column)
    return trusted(sql.Identifier(column).as_string(None))  # a % in it is no placeholder


def shown(query: sql.Composed, values: Mapping[str, Any]) -> Statement:
    """The statement as it is run, its parameters as literals, and with them in place."""
    text = _tidy(query.as_string(None))
    used = dict.fromkeys(re.findall(r"(?<!%)%\((\w+)\)s", text))
    literals = {name: sql.Literal(values[name]).as_string(None).strip() for name in used}
    return Statement(sql=text, parameters=tuple(literals.items()), psql=text % literals + ";")


def _tidy(text: str) -> str:
    return re.sub(r"[ \t]+(?=\n)", "", text)
