"""One page of jobs: the place where it begins, the steps it takes, how many there are in all."""

from __future__ import annotations

import base64
import binascii
import re
import time
import uuid
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from console.errors import QueueError
from console.fleet.model import Count, Job, JobPage, JobQuery
from console.queue.connection import Connection, fetched
from console.queue.ladder import best, estimated
from console.queue.pages import Filters, Pages
from console.queue.reads import Reads
from console.queue.rows import job_of

SCAN = 10_000  # rows that one statement looks at when it cannot go by an index
SCAN_TIME = 0.5  # seconds; a page with few matches goes on scanning so long
LARGEST = 10_000  # jobs in a page
PAGE_TIMEOUT = 1.0  # seconds for one statement

_BIGINT = re.compile(r"#?([0-9]{1,18})")


class _Place(msgspec.Struct, array_like=True):
    """What `next` holds: for which query, the place (empty: the beginning), the newest id of a windowed order."""

    query: int
    at: list[Any]
    top: str | None = None


async def read_page(
    connection: Connection, reads: Reads, pages: Pages, query: JobQuery, queues: Sequence[str]
) -> JobPage:
    """The page of the queues; QueueError when `after` is not of this query, psycopg.Error."""
    place = _read(query) if query.after is not None else None
    id_type = pages.preset.id_type
    pinned = _as_id(query.contains, id_type) if query.contains else None
    filters = Filters(types=bool(query.types), contains=bool(query.contains), pinned=pinned is not None)
    limit = max(1, min(query.limit, LARGEST))
    values: dict[str, Any] = {
        "queues": list(queues),
        "types": list(query.types),
        "contains": query.contains,
        "pinned": pinned,
    }
    jobs: list[Job] = []
    if place is None and pinned is not None and (statement := pages.pinned(query.state, filters)):
        jobs = [job_of(row, pages.preset) for row in await fetched(connection, statement, values)][:limit]
    began, first_matched, first_cut = time.monotonic(), None, False
    at = place.at if place else []
    top = place.top if place else None
    while True:
        page = pages.page(query.state, query.sort, query.descending, filters, after=bool(at))
        if page is None:
            return JobPage(total=Count(0))
        if at and len(at) != page.keys + 2:
            raise _no_place(query)
        wanted = limit - len(jobs)
        window = max(limit + 1, SCAN // len(queues)) if page.scans else wanted + 1
        values |= {"limit": wanted + 1, "window": window, "top": top, **_named(at)}
        rows = await fetched(connection, page.statement, values)
        matched, cut, newest = rows[0][:3]
        if first_matched is None:
            first_matched, first_cut = matched + len(jobs), cut
        top = top or newest
        found = [row for row in rows if row[4] is False]
        bounds = [row[3] for row in rows if row[4] is True]
        jobs += [job_of(row[5:], pages.preset) for row in found[:wanted] if row[5] is not None]
        if len(found) > wanted:
            after = found[wanted - 1][3] if wanted else "[]"
            break
        after = bounds[0] if bounds else None
        if after is None:
            break
        at = msgspec.json.decode(after)
        if len(jobs) >= limit or time.monotonic() - began > SCAN_TIME:
            break
    total = None
    if place is None:
        if after is None and not (page.windowed and cut):
            total = Count(len(jobs))
        elif page.windowed:
            total = Count(max(matched, len(jobs)), "at-least" if cut else "exact")
        elif page.scans:
            total = Count(max(first_matched, len(jobs)), "at-least" if first_cut else "exact")
        else:
            total = await _total(connection, reads, query, queues)
    note = ""
    if page.windowed and cut:
        note = f"sorted among the newest {window} jobs of each queue only"
    elif after is not None and len(jobs) < limit:
        note = "searched a part of the jobs; the next page goes on"
    return JobPage(
        jobs=tuple(jobs), total=total, next=None if after is None else _written(query, after, top), note=note
    )


async def _total(connection: Connection, reads: Reads, query: JobQuery, queues: Sequence[str]) -> Count | None:
    if query.state == "failed" and reads.misses_index("failed"):
        return None
    statement = reads.total(query.state)
    if statement is None:
        return Count(0)
    counted: int = (await fetched(connection, statement, {"queues": list(queues)}))[0][0]
    estimate = None
    if query.state == "done" and (asked := reads.estimates([(queue, ()) for queue in queues])):
        plan = (await fetched(connection, *asked))[0][0][0]["Plan"]
        estimate = sum(estimated(plan, [(queue, ()) for queue in queues])[0].values())
    return best((counted, counted), estimate)


def _as_id(text: str, id_type: str) -> str | None:
    """The text as an id of a job, when it may be one."""
    match id_type:
        case "bigint":
            found = _BIGINT.fullmatch(text.strip())
            return found[1] if found else None
        case "uuid":
            try:
                return str(uuid.UUID(text.strip()))
            except ValueError:
                return None
        case _:
            return text


def _named(at: Sequence[Any]) -> dict[str, Any]:
    """The parameters of a place: as text, the statement says of which type they are."""
    if not at:
        return {}
    *keys, identity, queue = ["" if value is None else str(value) for value in at]
    return {**{f"key{number}": key for number, key in enumerate(keys)}, "id": identity, "queue": queue}


def _fingerprint(query: JobQuery) -> int:
    parts = [query.state, query.queues, query.types, query.contains, query.sort, query.descending]
    return zlib.crc32(msgspec.json.encode(parts))


def _written(query: JobQuery, place: str, top: str | None) -> str:
    held = _Place(_fingerprint(query), msgspec.json.decode(place), top)
    return base64.urlsafe_b64encode(msgspec.json.encode(held)).decode().rstrip("=")


def _read(query: JobQuery) -> _Place:
    assert query.after is not None
    try:
        text = base64.b64decode(query.after + "=" * (-len(query.after) % 4), altchars=b"-_", validate=True)
        place = msgspec.json.decode(text, type=_Place)
    except (binascii.Error, ValueError, msgspec.MsgspecError, UnicodeError):
        raise _no_place(query) from None
    if place.query != _fingerprint(query):
        raise _no_place(query)
    return place


def _no_place(query: JobQuery) -> QueueError:
    return QueueError(
        f"list {query.state} jobs",
        "the place to go on after is not of this list",
        "give the `next` of a page with the same state, queues, filter and order, or none",
    )
