"""The values of what a host agent does: a unit's job and how it ended, and what this account may do on the host."""

from __future__ import annotations

from typing import Literal

from console.fleet.model import Value
from console.fleet.plan import UnitVerb

JobResult = Literal[
    "done",
    "failed",
    "timeout",
    "canceled",  # another job of the unit took its place
    "dependency",  # a unit it requires did not start
    "skipped",  # a start that a Condition…= made pointless, a stop of what does not run
    "lost",  # its end was not signalled (the bus was restarted); the unit's state is what counts
    "other",  # once, assert, unsupported, collected, …: the text names it
]


class UnitProgress(Value, frozen=True, kw_only=True):
    """A job of a unit that is not over; sent once a second."""

    unit: str
    verb: UnitVerb
    active: str = ""  # ActiveState, SubState: "deactivating", "stop-sigterm"
    sub: str = ""
    elapsed: float = 0.0  # seconds since the job was made
    remaining: float | None = None  # seconds until systemd kills or gives up (TimeoutStopSec, TimeoutStartSec)
    text: str = ""  # a sentence


class UnitJob(Value, frozen=True, kw_only=True):
    """How a job of a unit ended (the result of JobRemoved), and the unit's state after it had settled."""

    unit: str
    verb: UnitVerb
    result: JobResult
    ok: bool = False  # the unit is now as the verb wanted it
    active: str = ""
    sub: str = ""
    main_pid: int = 0
    invocation: str = ""
    took: float = 0.0  # seconds from the call to the settled state
    text: str = ""  # a sentence: "mail-worker@1.service runs as pid 812"


class UnitRight(Value, frozen=True, kw_only=True):
    """What may be done to the units of one role; one of them was asked about."""

    role: str
    unit: str
    allowed: tuple[UnitVerb, ...] = ()
    refused: tuple[UnitVerb, ...] = ()
    problem: str = ""  # why it could not be found out


class HostRights(Value, frozen=True, kw_only=True):
    """What the host agent's account may do."""

    user: str
    uid: int
    read_only: bool = False  # the agent was started with --read-only: it does nothing, whatever the account may do
    units: tuple[UnitRight, ...] = ()
    processes: Literal["all", "own"] = "own"  # which it may signal, and whose connections and files it sees
    rule: str = ""  # the polkit rule that would allow what is refused, "" when nothing is
    rule_path: str = ""

    def allows(self, verb: UnitVerb, role: str) -> bool:
        return not self.read_only and any(verb in each.allowed for each in self.units if each.role == role)


# --- files ------------------------------------------------------------------------------------------------------------


FileCheck = Literal["", "unit", "crontab"]  # what is asked whether it is valid: systemd-analyze verify, crontab


class FileRead(Value, frozen=True, kw_only=True):
    """A file that may be edited through the agent, as it is now. Its bytes are raw: they are shown masked."""

    path: str
    content: bytes | None = None  # None: there is no such file, or it could not be read
    sha256: str = ""  # of the content, hexadecimal; "" without content
    mode: int = 0o644  # permission bits
    uid: int = -1
    gid: int = -1
    changed: float | None = None  # when its content was written, epoch seconds of the host; None without content
    problem: str = ""  # why it could not be read: a clause


class FileWritten(Value, frozen=True, kw_only=True):
    """A file that was replaced, made or removed."""

    path: str
    sha256: str = ""  # of what is there now; "": it was removed
    backup: str = ""  # path of the copy of what was there before, on the agent's host; "": none was made
    text: str = ""  # a sentence
