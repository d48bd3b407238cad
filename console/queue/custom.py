"""A table of one's own as a preset: what [database.custom] maps, and what the table itself says of its columns.

The names are a person's: each is quoted, and a brace in one cannot be taken for a placeholder of a preset. What is not
mapped is not guessed. Without a fencing column a late finish counts as accepted, without a holder nothing is proven of
it, and an action for which something is missing is refused with that as the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec
from psycopg import sql

from console.config import Custom
from console.errors import ConfigError
from console.queue import preset as presets
from console.queue.connection import Connection, fetched
from console.queue.preset import Expression, Field, Fields, Preset, State
from console.queue.preset_actions import Actions, VerbAction
from console.queue.times import Encoding, ago, quoted

# "web1:4711", "web1 4711", "delayed_job host:web1 pid:4711"
HOLDER = r"^(?:.*\bhost:)?(?P<host>[^\s:/]+)(?:[:/ ]| pid:)(?P<pid>[0-9]+)$"
KEY = "database.custom"
QUEUE_ROWS = 100_000  # rows among which queues are looked for where no index begins with the queue

_COLUMNS = b"""
SELECT a.attname, format_type(a.atttypid, NULL), a.attnotnull, a.attgenerated <> '' OR a.attidentity = 'a',
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indkey[0] = a.attnum AND i.indisvalid)
FROM pg_attribute a WHERE a.attrelid = to_regclass(%(table)s) AND a.attnum > 0 AND NOT a.attisdropped"""
_TIMES: dict[str, Encoding] = {"timestamp with time zone": "timestamptz", "timestamp without time zone": "naive-utc"}
_NUMBERS = ("smallint", "integer", "bigint")
_TIME_KEYS = ("created", "run_after", "started", "finished", "updated", "heartbeat", "lease")
_OTHER_KEYS = (
    *("id", "status", "queue", "type", "payload", "error", "attempts", "max_attempts", "priority"),
    *("locked_by", "host", "pid", "fence", "reclaims"),
)


class Column(msgspec.Struct, frozen=True):
    """What the catalog says of a column."""

    type: str = "timestamp with time zone"
    required: bool = False  # NOT NULL
    generated: bool = False  # never written by anybody
    leads: bool = True  # an index begins with it


async def columns_of(connection: Connection, schema: str, table: str) -> dict[str, Column]:
    """The columns of the table; {} when it is not there."""
    rows = await fetched(connection, _COLUMNS, {"table": sql.Identifier(schema, table).as_string(None)})
    return {name: Column(*rest) for name, *rest in rows}


def checked(custom: Custom, schema: str, columns: Mapping[str, Column]) -> None:
    """ConfigError when the mapping names a column that is not there, or one that cannot be what it is mapped to."""
    if not columns:
        raise ConfigError(f"{KEY}.table", f"there is no table {custom.table} in the schema {schema}", "name both")
    for key in (*_OTHER_KEYS, *_TIME_KEYS):
        name = getattr(custom, key)
        if name and name not in columns:
            there = ", ".join(sorted(columns)[:30])
            raise ConfigError(f"{KEY}.{key}", f"{custom.table} has no column {name}", f"it has: {there}")
    for key in _TIME_KEYS:
        name = getattr(custom, key)
        if name and columns[name].type not in (*_TIMES, *_NUMBERS, "numeric", "double precision"):
            raise ConfigError(f"{KEY}.{key}", f"{name} is {columns[name].type}", "expected a timestamp or a number")


def lacks(custom: Custom) -> tuple[str, ...]:
    """What the table does not tell, as far as it is mapped, and what follows from that."""
    found = []
    if not custom.fence:
        found.append("no fencing column is mapped: a late finish of a former holder counts as accepted")
    if not (custom.locked_by or custom.pid):
        found.append("no holder is mapped: nothing can be proven of it, and a reclaim asks for the role's name")
    if not (custom.lease or custom.heartbeat or custom.updated or custom.started):
        found.append("no time of a claim is mapped: no job counts as stuck, and none can be reclaimed")
    return tuple(found)


def custom_preset(custom: Custom, columns: Mapping[str, Column] | None = None) -> Preset:
    """The preset of the mapping. Without the table's columns (not looked at yet) all times are taken as timestamptz."""
    return _Made(custom, columns or {}).preset()


class _Made:
    def __init__(self, custom: Custom, columns: Mapping[str, Column]) -> None:
        self._custom = custom
        self._columns = columns

    def preset(self) -> Preset:
        custom = self._custom
        done, failed = _listed(custom.done), _listed(custom.failed)
        return Preset(
            name="custom",
            title=f"the table {custom.table}",
            claim="status",
            time="timestamptz",
            zone=custom.zone,
            tables=(custom.table,),
            from_=f"{{schema}}.{quoted_name(custom.table)} j",
            id_type=self._id_type(),
            queues=self._queues(),
            fields=self._fields(),
            states=presets.States(
                waiting=self._state(
                    _listed(custom.waiting),
                    due=f"({self._sql('run_after')} IS NULL OR {self._sql('run_after')} <= {self._now('run_after')})"
                    if custom.run_after
                    else "",
                    created=custom.created or custom.updated,
                ),
                running=self._state(_listed(custom.running), started=custom.started or custom.updated),
                done=self._state(done, finished=custom.finished or custom.updated) if done else None,
                failed=self._state(failed, finished=custom.finished or custom.updated, index=True) if failed else None,
            ),
            holder=self._holder(),
            lease=self._lease(),
            fence=presets.Fence(token=self._token(), late_finish="rejected" if custom.fence else "accepted"),
            wakeup=presets.Wakeup(channel=custom.notify, payload=self._queue() if custom.notify else ""),
            indexes=self._indexes(),
            actions=self._actions(),
        )

    # --- reading -----------------------------------------------------------------------------------------------------

    def _column(self, name: str) -> Column:
        return self._columns.get(name, Column())

    def _sql(self, key: str) -> str:
        """The column that is mapped to the key, as SQL; "" : none is."""
        name: str = getattr(self._custom, key)
        return f"j.{quoted_name(name)}" if name else ""

    def _encoding(self, name: str) -> Encoding:
        kind = self._column(name).type
        if kind in _TIMES:
            return "naive-zone" if kind.endswith("without time zone") and self._custom.zone != "UTC" else _TIMES[kind]
        return "epoch-ms" if self._custom.epoch == "ms" else "epoch-s"

    def _time(self, name: str) -> Field:
        return Expression(sql=f"j.{quoted_name(name)}", time=self._encoding(name)) if name else ""

    def _now(self, key: str) -> str:
        return ago(0, self._encoding(getattr(self._custom, key)), self._custom.zone)

    def _id_type(self) -> presets.IdType:
        kind = self._column(self._custom.id).type
        if kind in _NUMBERS or not self._columns:
            return "bigint"
        return "uuid" if kind == "uuid" else "text"

    def _id(self) -> str:
        bare = self._sql("id")
        known = self._column(self._custom.id).type in (*_NUMBERS, "uuid", "text", "character varying")
        return bare if known or not self._columns else f"({bare})::text"

    def _queue(self) -> str:
        custom = self._custom
        return f"({self._sql('queue')})::text" if custom.queue else quoted_text(custom.queue_name or custom.table)

    def _queues(self) -> str:
        custom = self._custom
        if not custom.queue:
            return f"SELECT {self._queue()} AS queue"
        if self._column(custom.queue).leads:
            return ""
        table = f"{{schema}}.{quoted_name(custom.table)} j"
        looked_at = f"SELECT {self._queue()} AS queue FROM {table} LIMIT {QUEUE_ROWS}"  # noqa: S608 - names are quoted
        return f"SELECT DISTINCT one.queue FROM ({looked_at}) AS one"  # noqa: S608 - made of the line above

    def _fields(self) -> Fields:
        custom = self._custom
        priority = self._sql("priority")
        return Fields(
            id=self._id(),
            queue=self._queue(),
            type=self._sql("type"),
            attempts=self._sql("attempts"),
            max_attempts=self._sql("max_attempts"),
            reclaims=self._sql("reclaims"),
            priority=priority,
            run_after=self._time(custom.run_after),
            created=self._time(custom.created),
            started=self._time(custom.started),
            finished=self._time(custom.finished),
            heartbeat=self._time(custom.heartbeat or custom.updated),
            error=self._sql("error"),
            payload=self._sql("payload"),
        )

    def _state(self, values: Iterable[str | int], due: str = "", index: bool = False, **times: str) -> State:
        listed = ", ".join(quoted_text(value) for value in values)
        fields = Fields(**{key: self._time(name) for key, name in times.items() if name})
        named = next((one.name for one in self._indexes()), "") if index else ""
        return State(where=f"{self._sql('status')} IN ({listed})", due=due, fields=fields, index=named)

    def _indexes(self) -> tuple[presets.Index, ...]:
        """The one that lists and counts need, where no index begins with the queue or the status."""
        custom = self._custom
        if self._column(custom.status).leads or (custom.queue and self._column(custom.queue).leads):
            return ()
        name = f"worktop_{re.sub('[^a-z0-9_]', '_', custom.table.lower())[:48]}_page"
        names = ", ".join(quoted_name(one) for one in (custom.queue, custom.status, custom.id) if one)
        create = f"CREATE INDEX CONCURRENTLY {name} ON {{schema}}.{quoted_name(custom.table)} ({names})"
        return (
            presets.Index(name=name, table=custom.table, serves="lists and counts in a large table", create=create),
        )

    def _holder(self) -> presets.Holder:
        custom = self._custom
        if custom.host or custom.pid:
            return presets.Holder(
                kind="columns", host=self._sql("host"), pid=self._sql("pid"), text=self._sql("locked_by")
            )
        if custom.locked_by:
            return presets.Holder(kind="text", text=self._sql("locked_by"), pattern=custom.holder or HOLDER)
        return presets.Holder()

    def _lease(self) -> presets.Lease:
        custom = self._custom
        if custom.lease:
            return presets.Lease(kind="expiry", at=self._time(custom.lease))
        since = custom.heartbeat or custom.updated or custom.started
        if not since:
            return presets.Lease()
        assert not isinstance(custom.timeout, str), "config.py makes seconds of it"
        return presets.Lease(kind="claimed", at=self._time(since), timeout=custom.timeout)

    def _token(self) -> str:
        """What changes with every claim, as far as it is mapped: a row that was touched since is not acted on."""
        if self._custom.fence:
            return self._same_everywhere("fence")
        keys = [key for key in ("locked_by", "attempts", "started", "updated") if getattr(self._custom, key)]
        return f"concat_ws(' ', {', '.join(map(self._same_everywhere, keys))})" if keys else ""

    def _same_everywhere(self, key: str) -> str:
        """The column as something whose text does not depend on the session's TimeZone."""
        timed = self._column(getattr(self._custom, key)).type in _TIMES and (key in _TIME_KEYS or bool(self._columns))
        return f"extract(epoch FROM {self._sql(key)})" if timed else self._sql(key)

    # --- acting ------------------------------------------------------------------------------------------------------

    def _actions(self) -> Actions:
        custom = self._custom
        no_switch = "a table of one's own has no switch for it: stop or start the workers instead"
        refused = dict.fromkeys(("pause", "resume"), no_switch)
        verbs: dict[str, VerbAction] = {}

        def may(verb: str, missing: str, states: tuple[presets.StateName, ...], where: str = "", **more: str) -> None:
            if missing:
                refused[verb] = missing
            else:
                verbs[verb] = VerbAction(states=states, where=where, set=self._set(**more), notes=self._notes(verb))

        failed, run_after = _listed(custom.failed), self._sql("run_after")
        waiting = quoted_text(_listed(custom.waiting)[0])
        blind = "" if self._lease().kind != "none" or custom.locked_by or custom.pid else (
            "nothing is mapped that tells since when a row is running, or for whom: "
            "map updated, started, lease or locked_by in [database.custom]"
        )  # fmt: skip
        again = {"run_after": self._now("run_after")} if custom.run_after else {}
        may("reclaim", blind, ("running",), status=waiting, **again, **self._unclaimed(), **self._counted())
        none = "no value of the status is mapped to failed in [database.custom]"
        may("retry", "" if failed else none, ("failed",), status=waiting, **again, **self._unclaimed())
        unknown = "no column is mapped to {} in [database.custom]"
        later = f"{run_after} > {self._now('run_after')}" if run_after else ""
        may("run-now", "" if run_after else unknown.format("run_after"), ("waiting",), later, **again)
        priority = self._sql("priority")
        other = f"{priority} IS DISTINCT FROM {{priority}}"
        may("priority", "" if priority else unknown.format("priority"), ("waiting",), other, priority="{priority}")
        uncounted = "" if custom.reclaims and failed else unknown.format("reclaims, or no status to failed,")
        ended = {"finished": self._now("finished")} if custom.finished else {}
        note = {"error": "coalesce({note}, 'quarantined')"} if custom.error else {}
        to_failed = quoted_text(failed[0]) if failed else ""
        quarantined = {**self._unclaimed(), **self._counted(), **ended, **note}
        may("quarantine", uncounted, ("running",), status=to_failed, **quarantined)
        states: tuple[presets.StateName, ...] = ("waiting", "failed") if failed else ("waiting",)
        if custom.discarded != "":
            may("discard", "", states, status=quoted_text(custom.discarded))
        else:
            verbs["discard"] = VerbAction(states=states, delete=True)
        return Actions(
            table=f"{{schema}}.{quoted_name(custom.table)}",
            key=(custom.id,),
            refused=refused,
            # the verbs are fields of Actions, each of them a VerbAction
            **{verb.replace("-", "_"): action for verb, action in verbs.items()},  # type: ignore[arg-type]
        )

    def _set(self, **values: str) -> dict[str, str]:
        """Columns and what they get; the time of the last change too, as the application would."""
        if self._custom.updated and "updated" not in values:
            values["updated"] = self._now("updated")
        return {getattr(self._custom, key): value for key, value in values.items() if self._writable(key)}

    def _writable(self, key: str) -> bool:
        return not self._column(getattr(self._custom, key)).generated

    def _unclaimed(self) -> dict[str, str]:
        """A row that nobody holds: what may be empty is emptied, and the fence is moved on."""
        custom = self._custom
        keys = [key for key in ("locked_by", "host", "pid", "lease", "heartbeat", "finished") if getattr(custom, key)]
        changed = {key: "NULL" for key in keys if not self._column(getattr(custom, key)).required}
        if custom.fence and custom.fence not in (custom.attempts, custom.updated):
            changed["fence"] = self._next_fence()
        return changed

    def _next_fence(self) -> str:
        """A value that no former holder has."""
        column, bare = self._column(self._custom.fence), self._sql("fence")
        if column.type in (*_NUMBERS, "numeric"):
            return f"{bare} + 1" if column.required else f"coalesce({bare}, 0) + 1"
        if not column.required:
            return "NULL"
        if column.type == "uuid":
            return "gen_random_uuid()"
        return "clock_timestamp()" if column.type in _TIMES else "md5(random()::text)"

    def _counted(self) -> dict[str, str]:
        return {"reclaims": f"coalesce({self._sql('reclaims')}, 0) + 1"} if self._custom.reclaims else {}

    def _notes(self, verb: str) -> tuple[str, ...]:
        custom = self._custom
        if verb != "reclaim":
            return ()
        notes = []
        if not custom.fence:
            notes.append("no fencing column is mapped: the end of a former holder that still runs would be accepted")
        if not (custom.locked_by or custom.pid or custom.host):
            notes.append("no holder is mapped: nothing proves that nobody works on these rows")
        return tuple(notes)


def _listed(values: str | int | tuple[str | int, ...]) -> tuple[str | int, ...]:
    if isinstance(values, tuple):
        return values
    return () if values == "" else (values,)


def quoted_name(name: str) -> str:
    """The name as an SQL identifier in the text of a preset."""
    return sql.Identifier(name).as_string(None).replace("{", "{brace}")


def quoted_text(value: str | int) -> str:
    """The value as an SQL literal in the text of a preset."""
    return quoted(str(value)).replace("{", "{brace}")
