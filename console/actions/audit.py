"""The audit: what was applied, by whom, and what came of it. Lines are only ever appended.

STATE/audit.jsonl, mode 0600, one JSON line when an apply begins (state "started") and one when it has ended, each
fsynced; a plan that only began was cut off. The end also goes to the system journal, where there is one, so that a
copy lies where the account that acts cannot change it: `journalctl -t worktop`.
"""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from typing import Any

import msgspec

from console.fleet.plan import AuditEntry, Plan, Statement
from console.state import StateDirectory, append_only, write_all
from console.text import clean, mask

FILE = "audit.jsonl"
STARTED = "started"
_JOURNAL = "/run/systemd/journal/socket"
_READ_AT_MOST = 32 * 1024 * 1024  # bytes of the end of the file


def masked(value: Any) -> Any:
    """The value with the secrets in all its texts replaced; values stay of their types."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Statement):  # the SQL is worktop's own; what others wrote is in the parameters
        return msgspec.structs.replace(value, parameters=masked(value.parameters), psql="")
    if isinstance(value, msgspec.Struct):
        fields = {name: masked(getattr(value, name)) for name in value.__struct_fields__}
        return type(value)(**fields)
    if isinstance(value, tuple):
        return tuple(masked(item) for item in value)
    return value


def shown(plan: Plan) -> Plan:
    """The plan as the audit keeps it: without payloads and the contents of files, and with its SQL once."""
    bare = tuple(msgspec.structs.replace(job, payload="") for job in plan.samples)
    steps = tuple(msgspec.structs.replace(step, file=None) if step.file is not None else step for step in plan.steps)
    return msgspec.structs.replace(plan, samples=bare, steps=steps, psql="")


def append(state: StateDirectory, entry: AuditEntry, journal: str = _JOURNAL) -> None:
    """Write a line, masked. ConfigError, OSError: it could not be written."""
    line = masked(entry)
    descriptor = append_only(state.folder() / FILE)
    try:
        write_all(descriptor, msgspec.json.encode(line) + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if entry.state != STARTED:
        to_journal(line, journal)


def entries(state: StateDirectory, limit: int = 200) -> tuple[AuditEntry, ...]:
    """The newest entries, newest first, one for each plan; OSError when the file cannot be read."""
    found: dict[str, AuditEntry] = {}
    decoder = msgspec.json.Decoder(AuditEntry)
    for text in reversed(_last_lines(state.path / FILE)):
        try:
            entry = decoder.decode(text)
        except (msgspec.DecodeError, msgspec.ValidationError):
            continue  # torn off by a crash
        if entry.plan in found:
            continue
        if len(found) == limit:
            break
        found[entry.plan] = entry
    return tuple(found.values())


def _last_lines(path: Path) -> list[bytes]:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _READ_AT_MOST))
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return []
    return [line for line in (lines[1:] if size > _READ_AT_MOST else lines) if line]


def to_journal(entry: AuditEntry, path: str = _JOURNAL) -> bool:
    """One entry of the system journal; whether it was taken. Raises nothing: the file is the audit.

    The native protocol: systemd.io/JOURNAL_NATIVE_PROTOCOL. Values hold no line end, so each stands on its own line.
    """
    fields = {
        "MESSAGE": f"{entry.who.name}: {entry.title}: {entry.text}",
        "PRIORITY": "5",
        "SYSLOG_IDENTIFIER": "worktop",
        "WORKTOP_PLAN": entry.plan,
        "WORKTOP_VERB": entry.verb,
        "WORKTOP_ROLE": entry.role,
        "WORKTOP_STATE": entry.state,
        "WORKTOP_ROWS": str(entry.rows),
        "WORKTOP_WHO": entry.who.name,
        "WORKTOP_WHY": entry.why,
    }
    data = "".join(f"{name}={clean(value, 500)}\n" for name, value in fields.items() if value)
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as target:
        target.setblocking(False)
        target.sendto(data.encode(), path)
        return True
    return False
