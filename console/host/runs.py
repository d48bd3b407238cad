"""The last runs of a unit as its journal tells: which lines belong to which invocation."""

from __future__ import annotations

import re

import msgspec

from console.fleet.diagnosis.model import Run
from console.host import journal
from console.host.children import output_of
from console.host.journal import Field, text_of, which

MOST = 6  # runs
_LINES = 400
_OWN = 12  # lines of the service itself that are kept of each run
_MANAGER = 8
_LONGEST = 1000  # characters of one of them
_FORMAT = (
    "--no-pager",
    "--all",
    "--output=json",
    "--output-fields=MESSAGE,_PID,UNIT,USER_UNIT,_SYSTEMD_INVOCATION_ID,INVOCATION_ID,USER_INVOCATION_ID",
)
# systemd's words on the end of a run
_ENDED = re.compile(
    r"Main process exited|Failed with result|Deactivated successfully|Succeeded\.|Stopped |Failed to start |Consumed "
)
_COUNTED = re.compile(r"Scheduled restart job|Start request repeated too quickly")


class _Entry(msgspec.Struct):
    message: Field = msgspec.field(name="MESSAGE", default="")
    realtime: str = msgspec.field(name="__REALTIME_TIMESTAMP", default="0")
    pid: Field = msgspec.field(name="_PID", default=None)
    about: Field = msgspec.field(name="UNIT", default=None)
    about_user: Field = msgspec.field(name="USER_UNIT", default=None)
    own_run: Field = msgspec.field(name="_SYSTEMD_INVOCATION_ID", default=None)
    run: Field = msgspec.field(name="INVOCATION_ID", default=None)
    user_run: Field = msgspec.field(name="USER_INVOCATION_ID", default=None)


_entry = msgspec.json.Decoder(_Entry)


class _Collected(msgspec.Struct):
    invocation: str
    began: float
    ended: float | None = None
    lines: list[str] = []
    manager: list[str] = []


async def runs_of(unit: str, user_manager: bool) -> tuple[tuple[Run, ...], str]:
    """The last runs, newest last, and why there are none, or not all ("" when there are)."""
    said = await output_of(["journalctl", *_FORMAT, f"--lines={_LINES}", which(unit, user_manager)], journal.SECONDS)
    runs = read_runs(said.out)
    problem = journal.problem_of(said.err.decode("utf-8", "replace"))
    if problem is not None:
        return runs, problem.why
    return runs, "" if runs else "nothing logged"


def read_runs(output: bytes) -> tuple[Run, ...]:
    """journalctl's JSON lines, grouped by invocation; what is no JSON is passed over."""
    found: dict[str, _Collected] = {}
    last: _Collected | None = None
    for data in output.split(b"\n"):
        if not data.startswith(b"{"):
            continue
        try:
            entry = _entry.decode(data)
            at = int(entry.realtime) / 1e6
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError):
            continue
        message = text_of(entry.message)[:_LONGEST]
        if not message.strip():
            continue
        about = text_of(entry.about) or text_of(entry.about_user)
        told = text_of(entry.run) or text_of(entry.user_run)
        by_manager = bool(about) and (text_of(entry.pid) == "1" or bool(entry.about_user))
        # what systemd's child says before it becomes the program ("Failed to execute …") names the run as systemd does
        invocation = told or ("" if by_manager else text_of(entry.own_run))
        if _COUNTED.search(message) and last is not None:
            invocation = last.invocation  # of the run before, whatever it names
        if not invocation:
            if last is None:
                continue
            invocation = last.invocation
        run = found.get(invocation)
        if run is None:
            run = found[invocation] = _Collected(invocation, at)
            while len(found) > MOST:
                del found[next(iter(found))]
        last = run
        (run.manager if by_manager else run.lines).append(message)
        if by_manager and _ENDED.match(message.partition(": ")[2] or message):
            run.ended = run.ended or at
    return tuple(
        Run(
            invocation=run.invocation,
            began=run.began,
            ended=run.ended,
            lines=tuple(run.lines[-_OWN:]),
            manager=tuple(run.manager[-_MANAGER:]),
        )
        for run in found.values()
    )
