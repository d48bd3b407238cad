"""Which job queue a database holds, and in which schema: told by the tables and columns that each preset speaks of.

`preset = "auto"` takes the one that is there. Where there are several, or one of another version, it says so and asks;
where there is none it means worktop's own table, which then is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from console.config import Database
from console.errors import ConfigError, QueueError
from console.fleet.model import Check
from console.queue import preset as presets
from console.queue.connection import Connection, fetched
from console.queue.custom import checked, columns_of, custom_preset, lacks
from console.queue.preset import Preset

AUTO, CUSTOM, OWN = "auto", "custom", "worktop"
_RESEMBLES = 0.5  # the share of its columns from which on a table is taken for another version of the queue

_COLUMNS = b"""
SELECT n.nspname, c.relname, a.attname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relname = ANY (%(tables)s::text[]) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname NOT LIKE 'pg\\_%%' AND a.attnum > 0 AND NOT a.attisdropped"""

Columns = Mapping[tuple[str, str], frozenset[str]]  # (schema, table) -> its columns


class Match(msgspec.Struct, frozen=True):
    """How much of a preset's fingerprint a schema has."""

    preset: Preset
    schema: str
    matched: int
    total: int
    missing: tuple[str, ...]  # "worktop_jobs.reclaims"

    @property
    def whole(self) -> bool:
        return self.matched == self.total

    @property
    def text(self) -> str:
        """ "procrastinate 3.x, 18/18 columns matched"."""
        return f"{self.preset.title}, {self.matched}/{self.total} columns matched"


class Resolved(msgspec.Struct, frozen=True):
    """The preset that is meant, and the database with its name and schema."""

    database: Database
    preset: Preset
    text: str = ""  # how it was recognised
    missing: tuple[str, ...] = ()  # columns of the fingerprint
    lacks: tuple[str, ...] = ()  # what a table of one's own does not tell, and what follows

    def checks(self) -> tuple[Check, ...]:
        """What the doctor says of it."""
        if not self.text:
            return ()
        text = f"{self.text}, in schema {self.database.schema}"
        if self.missing:
            shown = ", ".join(self.missing[:8]) + (", …" if len(self.missing) > 8 else "")
            remedy = f"use {self.preset.title}, or the preset of this version"
            return (Check(name="job queue", state="warning", text=f"{text}; missing: {shown}", remedy=remedy),)
        lacks = [Check(name="job queue", state="warning", text=one) for one in self.lacks]
        return (Check(name="job queue", state="ok", text=text), *lacks)


def preset_of(database: Database) -> Preset:
    """The preset that the configuration names; worktop's own until `resolve` has looked. ConfigError."""
    if database.preset == CUSTOM:
        if database.custom is None:
            raise ConfigError("database.preset", 'found "custom"', "expected a table [database.custom] beside it")
        return custom_preset(database.custom)
    return presets.load(OWN if database.preset == AUTO else database.preset)


async def resolve(connection: Connection, database: Database) -> Resolved:
    """Look at the tables; QueueError when a person must choose, psycopg.Error."""
    if database.custom is not None and database.preset == CUSTOM:
        columns_there = await columns_of(connection, database.schema, database.custom.table)
        checked(database.custom, database.schema, columns_there)
        preset = custom_preset(database.custom, columns_there)
        return Resolved(
            database, preset, f"{preset.title}, as mapped in [database.custom]", lacks=lacks(database.custom)
        )
    auto = database.preset == AUTO
    candidates = [presets.load(name) for name in presets.names()] if auto else [preset_of(database)]
    candidates = [preset for preset in candidates if preset.fingerprint]
    tables = sorted({table for preset in candidates for table in preset.fingerprint})
    columns: dict[tuple[str, str], set[str]] = {}
    for schema, table, column in await fetched(connection, _COLUMNS, {"tables": tables}):
        columns.setdefault((schema, table), set()).add(column)
    found = matches(candidates, {place: frozenset(names) for place, names in columns.items()})
    if only := database.only_schema:
        found = [match for match in found if match.schema == only]
    chosen = choose(found, database)
    if chosen is not None:
        database = msgspec.structs.replace(database, preset=chosen.preset.name if auto else database.preset)
        database = msgspec.structs.replace(database, schema=chosen.schema)
        return Resolved(database, chosen.preset, chosen.text, chosen.missing)
    preset = preset_of(database)
    schema = database.only_schema or preset.schema
    database = msgspec.structs.replace(database, preset=preset.name if auto else database.preset, schema=schema)
    return Resolved(database, preset)


def matches(candidates: Iterable[Preset], columns: Columns) -> list[Match]:
    """Every schema that resembles a queue, the best first."""
    found = []
    for preset in candidates:
        first = next(iter(preset.fingerprint))
        wanted = [(table, column) for table, names in preset.fingerprint.items() for column in names]
        for schema in sorted({schema for schema, table in columns if table == first}):
            missing = tuple(
                f"{table}.{column}"
                for table, column in wanted
                if column not in columns.get((schema, table), frozenset())
            )
            match = Match(preset, schema, len(wanted) - len(missing), len(wanted), missing)
            if match.matched >= _RESEMBLES * match.total:
                found.append(match)
    return sorted(found, key=lambda match: (len(match.missing) / match.total, match.preset.name, match.schema))


def choose(found: Sequence[Match], database: Database) -> Match | None:
    """The one that is meant; None: there is none. QueueError when that cannot be told."""
    whole = [match for match in found if match.whole]
    if database.preset != AUTO:
        whole = [match for match in whole if match.schema == match.preset.schema] or whole
    if len(whole) == 1:
        return whole[0]
    if whole:
        there = ", ".join(f"{match.preset.title} in schema {match.schema}" for match in whole)
        example = f'preset = "{whole[0].preset.name}", schema = "{whole[0].schema}"'
        said = f"there are {len(whole)}: {there}"
        raise QueueError("find the job queue", said, f"choose one in [database]: {example}")
    if not found:
        return None
    if database.preset != AUTO and len(found) == 1:
        return found[0]  # a person has named it: the doctor tells what is missing
    nearest = found[0]
    shown = ", ".join(nearest.missing[:3]) + (", …" if len(nearest.missing) > 3 else "")
    raise QueueError(
        "find the job queue",
        f"schema {nearest.schema} resembles {nearest.text}, but {shown} is missing: another version",
        f'use {nearest.preset.title}, or map its table with preset = "custom"',
    )
