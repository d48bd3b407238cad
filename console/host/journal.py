"""Entries of the journal as `journalctl --output=json` writes them, and the last lines of one unit.

Asked by a `journalctl` child with limits of time and size: one query costs 0.1 s to 1 s and must not stand in the way
of the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from console.errors import Problem
from console.fleet.model import LogLine
from console.host.children import output_of

SECONDS = 4.0
LONGEST_TEXT = 4000  # characters of one message
REFUSED_START = "Start request repeated too quickly"

# MESSAGE over 4 KB is null without --all; more fields than these are not wanted
FORMAT = (
    "--no-pager",
    "--all",
    "--output=json",
    "--output-fields=MESSAGE,PRIORITY,_PID,_SYSTEMD_UNIT,_SYSTEMD_USER_UNIT,UNIT,USER_UNIT,OBJECT_SYSTEMD_UNIT,"
    "COREDUMP_UNIT",
)
_LINES = 60
_OWN = 6  # lines of the service itself that are kept
_MANAGER = 4  # lines of systemd about it that are kept
_LONGEST = 2000  # characters of one of them

_MORE_RIGHTS = "join the group systemd-journal, or run the agent with more rights: agent in [host]"

# What a field may be: text, a list of byte values when it is not UTF-8, a list of these when the entry has it more
# than once, null when it is too long.
Field = str | list[int | str | list[int] | None] | None


class Told(NamedTuple):
    """`lines` oldest first; `own`: the last one of the service itself;
    `readable` False: no journal, not permitted, or nothing in it about the unit."""

    lines: tuple[str, ...] = ()
    start_limit: bool = False
    readable: bool = False
    own: str = ""


class _Entry(msgspec.Struct):
    message: Field = msgspec.field(name="MESSAGE", default="")
    realtime: str = msgspec.field(name="__REALTIME_TIMESTAMP", default="0")
    cursor: str = msgspec.field(name="__CURSOR", default="")
    priority: Field = msgspec.field(name="PRIORITY", default=None)
    pid: Field = msgspec.field(name="_PID", default=None)
    unit: Field = msgspec.field(name="_SYSTEMD_UNIT", default=None)
    user_unit: Field = msgspec.field(name="_SYSTEMD_USER_UNIT", default=None)
    about: Field = msgspec.field(name="UNIT", default=None)
    about_user: Field = msgspec.field(name="USER_UNIT", default=None)
    about_object: Field = msgspec.field(name="OBJECT_SYSTEMD_UNIT", default=None)
    dumped: Field = msgspec.field(name="COREDUMP_UNIT", default=None)


_entry = msgspec.json.Decoder(_Entry)


def which(unit: str, user_manager: bool) -> str:
    return f"--user-unit={unit}" if user_manager else f"--unit={unit}"


async def last_lines(unit: str, since: float | None, user_manager: bool = False) -> Told:
    """What the journal says of the unit; `since` (epoch seconds) is when its last run started."""
    command = ["journalctl", "--quiet", *FORMAT, f"--lines={_LINES}", which(unit, user_manager)]
    output = (await output_of(command, SECONDS)).out
    return read_entries(output, unit, since)


async def log_of(unit: str, lines: int, user_manager: bool = False) -> tuple[tuple[LogLine, ...], str]:
    """The unit's last lines, newest last, and why there are none, or not all ("" when there are)."""
    command = ["journalctl", *FORMAT, f"--lines={lines}", which(unit, user_manager)]
    said = await output_of(command, SECONDS)
    found = tuple(line for line in map(line_of, said.out.split(b"\n")) if line is not None)
    problem = problem_of(said.err.decode("utf-8", "replace"))
    if problem is not None:
        return found, problem.why
    return found, "" if found else "nothing logged"


def problem_of(words: str) -> Problem | None:
    """What journalctl wrote on stderr, as a problem; None when it wrote nothing that matters."""
    if "No journal files were opened due to insufficient permissions" in words:
        return Problem("journal", "not permitted", _MORE_RIGHTS)
    if "currently not seeing messages from other users and the system" in words:
        return Problem("journal", "lines of systemd and of other accounts: not permitted", _MORE_RIGHTS)
    if "No journal files were found" in words:
        return Problem("journal", "there is no journal on this host")
    lines = [line.strip() for line in words.split("\n") if line.strip()]
    if not lines:
        return None
    if "No data available" in lines[-1]:
        return Problem("journal", "nothing logged")
    if lines[-1] == "No such file or directory":
        return Problem("journal", "journalctl is not installed here")
    return Problem("journal", lines[-1][:300])


def line_of(data: bytes) -> LogLine | None:
    """One line of JSON as an entry; None for anything else (journalctl writes "-- No entries --" between them)."""
    if not data.startswith(b"{"):
        return None
    try:
        entry = _entry.decode(data)
        moment = int(entry.realtime)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError):
        return None
    own = text_of(entry.user_unit) or text_of(entry.unit)
    pid = text_of(entry.pid)
    about = text_of(entry.about) if pid == "1" else ""  # any process may write UNIT=, only pid 1 is believed
    about = about or text_of(entry.about_user) or text_of(entry.dumped) or text_of(entry.about_object)
    by_manager = bool(about) and about != own
    priority = text_of(entry.priority)
    message = text_of(entry.message) if entry.message is not None else "(a message longer than journalctl tells)"
    return LogLine(
        at=moment / 1e6,
        unit=about if by_manager else own,
        priority=int(priority) if priority.isdecimal() and len(priority) == 1 and priority < "8" else 6,
        text=message if len(message) <= LONGEST_TEXT else message[:LONGEST_TEXT] + "…",
        pid=int(pid) if pid.isdecimal() and len(pid) < 11 else None,
        by_manager=by_manager,
        cursor=entry.cursor,
    )


def read_entries(output: bytes, unit: str, since: float | None) -> Told:
    """journalctl's JSON lines as Told; lines that are not JSON are passed over."""
    own: list[tuple[float, str]] = []
    manager: list[tuple[float, str]] = []
    start_limit = False
    for data in output.split(b"\n"):
        try:
            entry = _entry.decode(data)
            moment = int(entry.realtime) / 1e6
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError):
            continue
        message = text_of(entry.message)[:_LONGEST]
        if not message:
            continue
        by_itself = unit in (text_of(entry.unit), text_of(entry.user_unit))
        (own if by_itself else manager).append((moment, message))
        if not by_itself and REFUSED_START in message:
            start_limit = since is None or moment >= since - 1.0
        elif not by_itself and message.startswith("Started "):
            start_limit = False  # it was started again after systemd had given up
    kept = sorted(own[-_OWN:] + manager[-_MANAGER:], key=lambda pair: pair[0])
    last_own = own[-1][1] if own else ""
    return Told(tuple(message for _, message in kept), start_limit, bool(own or manager), last_own)


def text_of(field: Field) -> str:
    """A field as text, whatever form it came in: of several values the first for names, all of them for messages."""
    if field is None:
        return ""
    if isinstance(field, str):
        return field
    numbers = [value for value in field if isinstance(value, int) and 0 <= value < 256]
    if numbers:
        return bytes(numbers).decode("utf-8", "replace")
    parts = (value if isinstance(value, str) else text_of([*value]) for value in field if isinstance(value, str | list))
    return " ".join(parts)
