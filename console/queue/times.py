"""The one place where a queue's way of writing time meets the database's clock.

Queues write times in five encodings. Comparisons are made in the queue's own encoding, so that its indexes serve them;
what is read is converted to timestamptz. Naive columns are never compared with now() directly: PostgreSQL would
silently shift them by the session's TimeZone.
"""

from __future__ import annotations

from typing import Literal

Encoding = Literal[
    "timestamptz",
    "naive-utc",  # timestamp without time zone, in UTC (Oban, Rails)
    "naive-zone",  # timestamp without time zone, in the application's zone (Symfony)
    "epoch-s",  # integer seconds (Laravel)
    "epoch-ms",  # integer milliseconds (DBOS)
]


def to_timestamptz(expression: str, encoding: Encoding, zone: str = "") -> str:
    """The SQL expression, in the encoding, as a timestamptz."""
    match encoding:
        case "timestamptz":
            return f"({expression})"
        case "naive-utc":
            return f"(({expression}) AT TIME ZONE 'UTC')"
        case "naive-zone":
            return f"(({expression}) AT TIME ZONE {quoted(zone)})"
        case "epoch-s":
            return f"to_timestamp(({expression})::double precision)"
        case "epoch-ms":
            return f"to_timestamp(({expression}) / 1000.0::double precision)"


def ago(seconds: float, encoding: Encoding, zone: str = "") -> str:
    """The database's now, less so many seconds, in the encoding: to compare with a column by its index."""
    return _encoded("now()" if not seconds else f"(now() - interval '{seconds:.3f} seconds')", encoding, zone)


def at_minute(parameter: str, encoding: Encoding, zone: str = "") -> str:
    """The start of the minute that was running so many minutes ago, in the encoding; the number is a parameter."""
    # whole minutes since 1970 are whole minutes in every zone of this age
    return _encoded(
        f"to_timestamp((floor(extract(epoch FROM now()) / 60) - %({parameter})s::integer) * 60)", encoding, zone
    )


def column_type(encoding: Encoding) -> str:
    """The type of a column in the encoding, for parameters that are compared with it."""
    match encoding:
        case "timestamptz":
            return "timestamptz"
        case "naive-utc" | "naive-zone":
            return "timestamp"
        case "epoch-s" | "epoch-ms":
            return "bigint"


def _encoded(moment: str, encoding: Encoding, zone: str) -> str:
    match encoding:
        case "timestamptz":
            return moment
        case "naive-utc":
            return f"timezone('UTC', {moment})"
        case "naive-zone":
            return f"timezone({quoted(zone)}, {moment})"
        # as integers: compared with a numeric, an integer column could not use its index
        case "epoch-s":
            return f"floor(extract(epoch FROM {moment}))::bigint"
        case "epoch-ms":
            return f"floor(extract(epoch FROM {moment}) * 1000)::bigint"


def quoted(text: str) -> str:
    """The text as an SQL literal."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
