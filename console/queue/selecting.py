"""A selection made to SQL: one condition, `Change.found`, counts, samples, groups by holder, and acts (writes.py).

A statement looks at the rows of one state, so that its partial index serves it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from psycopg import sql

from console.errors import QueueError
from console.fleet.model import Holder
from console.fleet.plan import Selection
from console.queue import preset as presets
from console.queue.preset_actions import Actions, VerbAction
from console.queue.render import Part, Rendered, Rows, trusted
from console.queue.rows import HOLDER_COLUMNS

COUNT_LIMIT = 1_000_000  # rows of a selection are counted so far
TOKEN = "@token"  # in the journal: the fencing token where it is no column of its own


class Change(msgspec.Struct, frozen=True):
    """What one verb does to the rows of one state."""

    verb: str
    action: VerbAction
    rows: Rows
    from_: Part  # with the rows that were picked, if any were
    found: tuple[Part, ...]  # the conditions, all of which hold
    values: Mapping[str, Any]  # its parameters
    spared: tuple[tuple[str, Part], ...]  # why, the condition of the rows that are left alone
    columns: tuple[str, ...]  # of the journal: the key, what is set, the token
    timed: bool  # a row that comes back after it was changed is told by its time, and not changed twice


class Selecting(Rendered):
    """The conditions of selections, and what is read with them, for one preset in one schema."""

    @property
    def schema(self) -> str:
        return self._schema

    @property
    def actions(self) -> Actions:
        if self.preset.actions is None:
            raise QueueError(self.preset.title, "its preset does not say how rows may be changed", "only look at it")
        return self.preset.actions

    # --- the condition ---------------------------------------------------------------------------------------------

    def changes(self, selection: Selection) -> list[Change]:
        """One for each state, and for rows that are reclaimed too often; QueueError when it cannot be said in SQL."""
        names = [selection.verb]
        if selection.verb == "reclaim" and selection.quarantine_after is not None:
            if not self.preset.fields.reclaims or self.actions.quarantine is None:
                raise QueueError("reclaim", f"{self.preset.title} does not count reclaims", "leave the limit out")
            names = ["quarantine", "reclaim"]
        return [
            self._change(name, action, rows, selection)
            for name in names
            if (action := self._action(name))
            for state in self._states(action, selection)
            if (rows := self.rows(state))
        ]

    def _action(self, verb: str) -> VerbAction:
        action = self.actions.verb(verb)
        if action is None:
            why = self.actions.refused.get(verb, f"{self.preset.title} has no such action")
            raise QueueError(verb, why)
        return action

    def _states(self, action: VerbAction, selection: Selection) -> list[presets.StateName]:
        if selection.verb == "reclaim":
            return [name for name in action.states if name == "running"]
        if not selection.states:
            return list(action.states)
        wanted = set(selection.states)
        return [name for name in action.states if (rows := self.rows(name)) and {rows.state, name} & wanted]

    def _change(self, verb: str, action: VerbAction, rows: Rows, selection: Selection) -> Change:
        values: dict[str, Any] = {"moment": None}
        conditions: list[Part] = [rows.where]
        if action.where:
            conditions.append(self.verb_text(action.where))
        spared = tuple((spare.why, self.verb_text(spare.where)) for spare in action.spare)
        from_ = rows.from_
        if selection.rows:
            values |= {"ids": [row.id for row in selection.rows], "tokens": [row.token for row in selection.rows]}
            from_ = sql.SQL("{}, unnest(%(ids)s::text[], %(tokens)s::text[]) AS picked(id, token)").format(from_)
            conditions += [
                self.identified(rows, sql.SQL("picked.id::{}").format(trusted(self.preset.id_type))),
                sql.SQL("(picked.token = '' OR ({})::text = picked.token)").format(self.token()),
            ]
        else:
            conditions += self._matching(rows, selection, values)
        if verb == "quarantine" and selection.quarantine_after is not None:
            conditions.append(self._reclaimed(rows, ">=", values, selection))
        elif selection.quarantine_after is not None:
            conditions.append(self._reclaimed(rows, "<", values, selection))
        moment = self._moment(rows)
        if moment is not None:
            conditions.append(sql.SQL("({} <= %(moment)s::timestamptz) IS NOT FALSE").format(moment))
        values["note"] = selection.note or None
        values["priority"] = selection.priority
        return Change(
            verb=verb,
            action=action,
            rows=rows,
            from_=from_,
            found=tuple(conditions),
            values=values,
            spared=spared,
            columns=self.journalled(action),
            timed=moment is not None,
        )

    def _matching(self, rows: Rows, selection: Selection, values: dict[str, Any]) -> list[Part]:
        """The conditions of a selection without rows."""
        conditions: list[Part] = []
        if selection.queues:
            values["queues"] = list(selection.queues)
            conditions.append(sql.SQL("{} = ANY (%(queues)s::text[])").format(self.field(rows.fields.queue)))
        if selection.types:
            if not rows.fields.type:
                raise QueueError(selection.verb, f"{self.preset.title} does not tell types of jobs", "leave it out")
            values["types"] = list(selection.types)
            conditions.append(sql.SQL("({})::text = ANY (%(types)s::text[])").format(self.field(rows.fields.type)))
        if rows.state == "running":
            if selection.overdue_only or selection.older_than is not None:
                conditions.append(self.overdue(selection.older_than or 0.0))
            if selection.holders:
                parts = [self._held_by(holder, place, values) for place, holder in enumerate(selection.holders)]
                conditions.append(sql.SQL(" OR ").join(parts))
        elif selection.older_than is not None:
            field = rows.fields.run_after or rows.fields.created if rows.state == "waiting" else rows.fields.finished
            if not field:
                raise QueueError(selection.verb, f"{self.preset.title} does not tell since when", "leave the age out")
            conditions.append(sql.SQL("{} < {}").format(self.field(field), self.ago(selection.older_than, field)))
        return conditions

    def overdue(self, seconds: float) -> Part:
        """The condition on a running row that its lease expired more than so many seconds ago."""
        lease = self.preset.lease
        if not seconds or lease.kind in ("session", "none"):
            return self.stuck()
        at = self.field(lease.at)
        if isinstance(lease.timeout, str):
            expired: Part = sql.SQL("{} < now() - {} * interval '1 second'").format(
                self._expires(), sql.Literal(seconds)
            )
        else:
            limit = 0.0 if lease.kind == "expiry" else lease.timeout
            expired = sql.SQL("{} < {}").format(at, self.ago(limit + seconds, lease.at))
        return sql.SQL("({} OR {} IS NULL)").format(expired, at) if lease.kind == "worker-heartbeat" else expired

    def _held_by(self, holder: Holder, place: int, values: dict[str, Any]) -> Part:
        """Compared by every part that is set; a holder without any: rows that do not name one."""
        expressions = {name: text for name in HOLDER_COLUMNS if (text := getattr(self.preset.holder, name, ""))}
        if not expressions:
            raise QueueError("reclaim", f"{self.preset.title} does not tell who holds a job", "name the jobs")
        parts: list[Part] = []
        given = {name: value for name in expressions if (value := getattr(holder, name, None)) not in (None, "", False)}
        for name, value in given.items():
            values[f"{name}{place}"] = str(value).lower() if isinstance(value, bool) else str(value)
            parts.append(
                sql.SQL("({})::text = {}::text").format(self.raw(expressions[name]), sql.Placeholder(f"{name}{place}"))
            )
        if not parts:
            if holder != Holder():
                why = f"{self.preset.title} keeps nothing of what names this holder"
                raise QueueError("reclaim", why, "name the jobs")
            unset = [text for name, text in expressions.items() if name != "pruned"]
            parts = [sql.SQL("({}) IS NULL").format(self.raw(text)) for text in unset]
        return all_of(parts)

    def _reclaimed(self, rows: Rows, sign: str, values: dict[str, Any], selection: Selection) -> Part:
        values["limit"] = selection.quarantine_after
        return sql.SQL("coalesce({}, 0) {} %(limit)s::integer").format(self.field(rows.fields.reclaims), trusted(sign))

    def _moment(self, rows: Rows) -> Part | None:
        """Since when the row is in its state; None: the queue does not say."""
        fields = rows.fields
        since = {"running": fields.started, "waiting": fields.created}.get(rows.state, fields.finished)
        return self.time(since) if since else None

    def token(self) -> Part:
        token = self.preset.fence.token
        return self.raw(token) if token else sql.SQL("NULL::text")

    def journalled(self, action: VerbAction) -> tuple[str, ...]:
        """The columns of a change: the key, then what is set, then the token unless it is among them."""
        if action.delete:
            return self.actions.key
        columns = [*self.actions.key, *(column for column in action.set if column not in self.actions.key)]
        token = self._token_column()
        return tuple(columns) if not token or token in columns else (*columns, token)

    def _token_column(self) -> str:
        """The column that is the token, TOKEN for an expression, "" when the queue has none."""
        token = self.preset.fence.token
        if not token:
            return ""
        found = re.fullmatch(rf"{re.escape(self.actions.alias)}\.(\w+)", token)
        return found[1] if found else TOKEN

    def verb_text(self, text: str) -> sql.Composed:
        """SQL of the section [actions], its own placeholders filled in too."""
        typed = {
            "note": "text",
            "priority": "integer",
            "queues": "text[]",
            "paused": "boolean",
            "ids": f"{self.preset.id_type}[]",
            "id": self.preset.id_type,
        }
        parts: list[Part] = []
        for piece in re.split(rf"(\{{(?:{'|'.join(typed)})\}})", text):
            name = piece[1:-1] if piece.startswith("{") else ""
            if name in typed:
                parts.append(sql.SQL("{}::{}").format(sql.Placeholder(name), trusted(typed[name])))
            else:
                parts.append(self.raw(piece))
        return sql.Composed(parts)

    # --- what is read ----------------------------------------------------------------------------------------------

    def where(self, change: Change, *more: Part) -> Part:
        """The condition, without the rows that are spared."""
        left = [sql.SQL("({}) IS NOT TRUE").format(part) for _, part in change.spared]
        return all_of([*change.found, *left, *more])

    def count(self, change: Change, limit: int = COUNT_LIMIT) -> sql.Composed:
        """-> (queue, number of rows), no more than `limit` + 1 in all."""
        return sql.SQL(
            """SELECT found.queue, count(*)
               FROM (SELECT ({})::text AS queue FROM {} WHERE {} LIMIT {}) AS found GROUP BY 1"""
        ).format(self.field(change.rows.fields.queue), change.from_, self.where(change), sql.Literal(limit + 1))

    def spared(self, change: Change, limit: int) -> list[tuple[str, sql.Composed]]:
        """For each reason: (why, a statement that counts the rows left alone for it)."""
        return [
            (
                why,
                sql.SQL("SELECT count(*) FROM (SELECT FROM {} WHERE {} LIMIT {}) AS found").format(
                    change.from_, all_of([*change.found, part]), sql.Literal(limit + 1)
                ),
            )
            for why, part in change.spared
        ]

    def samples(self, change: Change, limit: int) -> sql.Composed:
        """-> job rows"""
        return sql.SQL("SELECT {} FROM {} WHERE {} LIMIT {}").format(
            self.columns(change.rows), change.from_, self.where(change), sql.Literal(limit)
        )

    def ids(self, change: Change, limit: int) -> sql.Composed:
        """-> (id)"""
        return sql.SQL("SELECT ({})::text FROM {} WHERE {} LIMIT {}").format(
            self.field(change.rows.fields.id), change.from_, self.where(change), sql.Literal(limit)
        )

    def holders(self, change: Change, rows: int, groups: int) -> sql.Composed:
        """-> HOLDER_COLUMNS, number of rows, most reclaims, id of the row whose lease ran out first."""
        held = {name: getattr(self.preset.holder, name, "") for name in HOLDER_COLUMNS}
        names = [sql.Identifier(name) for name in HOLDER_COLUMNS]
        return sql.SQL(
            """SELECT {names}, count(*), max(found.reclaims), (array_agg(found.id ORDER BY found.since {nulls}))[1]
               FROM (SELECT {held}, {id} AS id, {since} AS since, {reclaims} AS reclaims
                     FROM {from_} WHERE {where} LIMIT {rows}) AS found
               GROUP BY {names} ORDER BY min(found.since) {nulls} LIMIT {groups}"""
        ).format(
            names=sql.SQL(", ").join(names),
            nulls=sql.SQL("NULLS FIRST" if self.preset.lease.kind == "worker-heartbeat" else "NULLS LAST"),
            held=sql.SQL(", ").join(
                sql.SQL("{} AS {}").format(
                    sql.SQL("({})::text").format(self.raw(text)) if text else sql.SQL("NULL::text"), name
                )
                for text, name in zip(held.values(), names, strict=True)
            ),
            id=sql.SQL("({})::text").format(self.field(change.rows.fields.id)),
            since=self._expires() if self.preset.lease.at else self.time(change.rows.fields.started),
            reclaims=sql.SQL("({})::bigint").format(self.field(change.rows.fields.reclaims, "bigint")),
            from_=change.from_,
            where=self.where(change),
            rows=sql.Literal(rows + 1),
            groups=sql.Literal(groups),
        )

    def jobs(self, change: Change) -> sql.Composed:
        """Parameter wanted: ids. -> job rows of the state, whatever else is selected."""
        return sql.SQL("SELECT {} FROM {} WHERE ({}) AND {}").format(
            self.columns(change.rows),
            change.rows.from_,
            change.rows.where,
            self.identified(change.rows, sql.SQL("ANY (%(wanted)s::{}[])").format(trusted(self.preset.id_type))),
        )


def all_of(parts: Sequence[Part]) -> Part:
    return sql.SQL("\n    AND ").join(sql.SQL("({})").format(part) for part in parts)
