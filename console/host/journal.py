"""The last lines of a unit from the journal, by a `journalctl` child that is given a time limit.

Run only when a unit newly failed or loops: one query costs 0.1 s to 1 s and must not stand in the way of the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from console.host.children import output_of

SECONDS = 4.0
_LINES = 60
_OWN = 6  # lines of the service itself that are kept
_MANAGER = 4  # lines of systemd about it that are kept
_LONGEST = 2000  # characters of one line
REFUSED_START = "Start request repeated too quickly"


class Told(NamedTuple):
    """`lines` oldest first; `own`: the last one of the service itself;
    `readable` False: no journal, not permitted, or nothing in it about the unit."""

    lines: tuple[str, ...] = ()
    start_limit: bool = False
    readable: bool = False
    own: str = ""


class _Entry(msgspec.Struct):
    message: str | list[int | str] | None = msgspec.field(name="MESSAGE", default=None)
    realtime: str = msgspec.field(name="__REALTIME_TIMESTAMP", default="0")
    unit: str | list[str] = msgspec.field(name="_SYSTEMD_UNIT", default="")
    user_unit: str | list[str] = msgspec.field(name="_SYSTEMD_USER_UNIT", default="")


_entry = msgspec.json.Decoder(_Entry)


async def last_lines(unit: str, since: float | None, user_manager: bool = False) -> Told:
    """What the journal says of the unit; `since` (epoch seconds) is when its last run started."""
    which = f"--user-unit={unit}" if user_manager else f"--unit={unit}"
    command = ["journalctl", "--quiet", "--no-pager", "--output=json", f"--lines={_LINES}", which]
    output = (await output_of(command, SECONDS)).out
    return read_entries(output, unit, since)


def read_entries(output: bytes, unit: str, since: float | None) -> Told:
    """journalctl's JSON lines as Told; lines that are not JSON are passed over."""
    own: list[tuple[int, str]] = []
    manager: list[tuple[int, str]] = []
    start_limit = False
    for line in output.split(b"\n"):
        if not line.strip():
            continue
        try:
            entry = _entry.decode(line)
            moment = int(entry.realtime)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            continue
        message = _text(entry.message)[:_LONGEST]
        if not message:
            continue
        by_itself = unit in (entry.unit, entry.user_unit)
        (own if by_itself else manager).append((moment, message))
        if not by_itself and REFUSED_START in message:
            start_limit = since is None or moment / 1e6 >= since - 1.0
        elif not by_itself and message.startswith("Started "):
            start_limit = False  # it was started again after systemd had given up
    kept = sorted(own[-_OWN:] + manager[-_MANAGER:], key=lambda pair: pair[0])
    last_own = own[-1][1] if own else ""
    return Told(tuple(message for _, message in kept), start_limit, bool(own or manager), last_own)


def _text(message: str | list[int | str] | None) -> str:
    """MESSAGE is a list of byte values when it is not UTF-8, and null when it is too long."""
    if message is None:
        return ""
    if isinstance(message, str):
        return message
    numbers = [value for value in message if isinstance(value, int) and 0 <= value < 256]
    if numbers:
        return bytes(numbers).decode("utf-8", "replace")
    return " ".join(value for value in message if isinstance(value, str))
