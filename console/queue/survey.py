"""What a selection finds now: how many rows, samples, holders, and who waits behind them. Nothing is changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

import psycopg
from psycopg import sql

from console.fleet.model import Count, Job
from console.fleet.plan import HolderRows, Selection, Survey
from console.queue.connection import Connection, fetched
from console.queue.rows import HOLDER_COLUMNS, holder_of, job_of
from console.queue.selecting import COUNT_LIMIT, Change
from console.queue.session import STATEMENT_TIMEOUT
from console.queue.writes import Writes, notifications

SAMPLES = 5
COUNT_TIMEOUT = 3.0  # seconds for a full count
SMALL_LIMIT = 10_000  # rows that are counted where a full count took too long
HOLDERS = 200  # groups
HOLDER_ROWS = 100_000  # rows that are grouped
BEHIND_IDS = 1_000  # rows of which it is asked what they hold
BEHIND = 5  # sentences

Values = Mapping[str, Any]


async def moment_of(connection: Connection) -> Any:
    """The database's clock: rows that come into a state later are not meant."""
    return (await fetched(connection, b"SELECT clock_timestamp()"))[0][0]


async def survey(connection: Connection, writes: Writes, selection: Selection) -> tuple[Survey, list[str]]:
    """The survey, and the queues it found rows in. psycopg.Error; a count that takes too long is "at least"."""
    moment = await moment_of(connection)
    rows, poisoned, at_least = 0, 0, False
    queues, samples = Counter[str](), list[Job]()
    spared, behind, notes = list[tuple[str, Count]](), list[str](), list[str]()
    for change in writes.changes(selection):
        values = dict(change.values) | {"moment": moment}
        found, capped = await _counted(connection, writes, change, values)
        queues.update(found)
        number = sum(found.values())
        rows, at_least = rows + number, at_least or capped
        poisoned += number if change.verb != selection.verb else 0
        if len(samples) < SAMPLES and number:
            read = await fetched(connection, writes.samples(change, SAMPLES - len(samples)), values)
            samples += [job_of(row, writes.preset) for row in read]
        for why, query in writes.spared(change, SMALL_LIMIT):
            left = int((await fetched(connection, query, values))[0][0])
            if left:
                spared.append((why, _count(left, SMALL_LIMIT)))
        behind += await _behind(connection, writes, change, values) if number else []
        notes += [note for note in change.action.notes if note not in notes]
    notes += await _hidden(connection, writes)
    kind: Literal["at-least", "exact"] = "at-least" if at_least else "exact"
    return (
        Survey(
            rows=Count(rows, kind),
            samples=tuple(samples),
            queues=tuple((queue, Count(number, kind)) for queue, number in sorted(queues.items())),
            behind=tuple(dict.fromkeys(behind))[:BEHIND],
            poisoned=Count(poisoned, kind),
            spared=tuple(spared),
            notes=tuple(notes),
        ),
        sorted(queues),
    )


async def _counted(
    connection: Connection, writes: Writes, change: Change, values: Values
) -> tuple[dict[str, int], bool]:
    """Rows by queue, and whether there may be more."""
    try:
        async with connection.transaction():
            await connection.execute(_timeout(COUNT_TIMEOUT))
            rows = await fetched(connection, writes.count(change), dict(values))
            await connection.execute(_timeout(STATEMENT_TIMEOUT))
            limit = COUNT_LIMIT
    except psycopg.errors.QueryCanceled:
        rows, limit = await fetched(connection, writes.count(change, SMALL_LIMIT), dict(values)), SMALL_LIMIT
    total = sum(number for _, number in rows)
    return {str(queue): number for queue, number in rows}, total > limit


def _timeout(seconds: float) -> bytes:
    return f"SET LOCAL statement_timeout = {seconds * 1000:.0f}".encode()


def _count(number: int, limit: int) -> Count:
    return Count(number) if number <= limit else Count(limit, "at-least")


async def _behind(connection: Connection, writes: Writes, change: Change, values: dict[str, Any]) -> list[str]:
    if not writes.actions.behind:
        return []
    ids = [row[0] for row in await fetched(connection, writes.ids(change, BEHIND_IDS), values)]
    sentences = []
    for behind in writes.actions.behind:
        result = await connection.execute(writes.verb_text(behind.query), {"ids": ids})
        rows = await result.fetchmany(BEHIND)  # first: in a pipeline the columns are not known before
        names = [column.name for column in result.description or ()]
        sentences += [filled(behind.text, dict(zip(names, row, strict=True))) for row in rows]
    return sentences


def filled(text: str, values: Mapping[str, Any]) -> str:
    """The text with {column}s filled in. What comes from rows is put in as it is: str.format would read it again."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", "" if value is None else str(value))
    return text


async def _hidden(connection: Connection, writes: Writes) -> list[str]:
    """A sentence when row level security hides rows: then the selection finds fewer than there are."""
    table = writes.raw(writes.actions.table).as_string(None).replace("%%", "%")
    rows = await fetched(connection, b"SELECT row_security_active(to_regclass(%(table)s))", {"table": table})
    if not rows[0][0]:
        return []
    return [f"row level security hides rows of {table} from this user: there may be more"]


async def holders(connection: Connection, writes: Writes, selection: Selection) -> tuple[HolderRows, ...]:
    """The running rows by holder, the lease that ran out first at the top."""
    moment = await moment_of(connection)
    groups = []
    for change in writes.changes(selection):
        if change.rows.state != "running":
            continue
        values = dict(change.values) | {"moment": moment}
        found = await fetched(connection, writes.holders(change, HOLDER_ROWS, HOLDERS), values)
        read = await fetched(connection, writes.jobs(change), {"wanted": [row[-1] for row in found]})
        jobs = {job.id: job for job in (job_of(row, writes.preset) for row in read)}
        capped = sum(row[-3] for row in found) > HOLDER_ROWS
        for *held, number, reclaims, first in found:
            if first in jobs:  # else it has just ended
                groups.append(
                    HolderRows(
                        holder=holder_of(held[: len(HOLDER_COLUMNS)], writes.preset),
                        rows=Count(number, "at-least" if capped else "exact"),
                        longest=jobs[first],
                        reclaims=reclaims,
                    )
                )
    return tuple(groups)


async def notices(connection: Connection, writes: Writes, queues: list[str]) -> list[tuple[str, str]]:
    """What idle workers of the queues would be notified with, (channel, payload); for the plan."""
    rows = writes.rows("waiting")
    if rows is None or not (writes.preset.wakeup.channel or writes.preset.wakeup.channels):
        return []
    query = sql.SQL(
        """SELECT one.notice FROM unnest(%(queues)s::text[]) AS asked(queue)
           CROSS JOIN LATERAL (SELECT {} AS notice FROM {} WHERE {} = asked.queue LIMIT 1) AS one"""
    ).format(writes.notice(), writes.raw(writes.preset.from_), writes.field(rows.fields.queue))
    return notifications({row[0] for row in await fetched(connection, query, {"queues": queues})})
