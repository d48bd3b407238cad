"""What the console and its host agent say to each other: one JSON document a line, on the agent's stdin and stdout.

The agent speaks first: a `hello` with the version of this protocol. The console sends requests, `{id, method, params}`,
and gets a `response` or an `error` with the same id. After `watch` the agent pushes updates, one kind per source:

    {"type": "units" | "processes" | "host" | "schedules" | "holders",
     "taken": …, "took": …, "full": bool, "items": […], "gone": [keys], "problem": {what, why, do} | null}

- `full`: the items are everything there is; otherwise they replace those of the same key and `gone` are removed.
- `taken` null: the try failed, the last value stays and grows old. `problem` with a `taken`: the items are good, but
  not all there is (crontabs of other accounts are not permitted, for example).
- No items and nothing gone: a heartbeat; what was said before still holds at `taken`.

Keys: a unit's name; a process as "pid:start"; the host is one item; schedules are always sent in full. `holders` is
sent in full, as the answer to `look_up`, before the response.

`partial` units are their states alone, sent at once while the rest is still being read.

What a person looks at is asked for: `unit_detail`, `host_detail`, `examine` and `read_log` answer with a message of
that name instead of a `response`. `follow_log` is answered when the journal is being read; its lines come as `log`
messages, whose `follow` is the id of that request, until `stop_log`. A `log` message says why nothing comes as long as
nothing can.

What changes something is asked for as well: `unit_job` answers when the job of systemd has ended and the unit has
settled, with a `unit_job_progress` each second until then; `signal` reaches exactly the process it names;
`stop_program` has another supervisor stop it; `replace_file` writes a unit file or a crontab that still is as
`read_file` told it, and `daemon_reload` makes systemd read its files again. An agent started with --read-only refuses
these five. `hold` keeps other consoles from acting on a role until `release` or the agent's end. `wait_gone`,
`clients`, `rights` and `read_file` only look. None of them holds up the others.
"""

from __future__ import annotations

import re
from typing import Literal, TypeVar

import msgspec

from console.errors import HostError, Problem
from console.fleet.diagnosis.model import Looked
from console.fleet.model import (
    Backend,
    CronLine,
    DatabaseClient,
    Hello,
    Host,
    HostDetail,
    Ident,
    LogLine,
    PidState,
    Process,
    Role,
    Unit,
    UnitDetail,
)
from console.fleet.operations import FileCheck, FileRead, FileWritten, HostRights, UnitJob, UnitProgress
from console.fleet.plan import UnitVerb
from console.schedules.inventory import Inventory, Translated

SupervisorKind = Literal["supervisord", "pm2"]
PROTOCOL = 3
LONGEST_LINE = 16 * 1024 * 1024  # bytes; 2000 processes with long command lines take about 2 MB
LONGEST_REQUEST = 4 * 1024 * 1024

METHODS = (
    *("ping", "watch", "refresh", "look_up", "unit_detail", "host_detail", "follow_log", "stop_log"),
    *(
        "unit_job",
        "hold",
        "release",
        "signal",
        "stop_program",
        "wait_gone",
        "clients",
        "rights",
        "examine",
        "schedules",
        "translate",
    ),
    *("read_file", "replace_file", "daemon_reload", "read_log"),
)
LOG_LINES = 2000  # most lines of history a follow may ask for
LOG_UNITS = 2000  # most units, and globs, it may name


class Watch(msgspec.Struct, frozen=True, omit_defaults=True):
    """Parameters of `watch`: what to look at from now on, and how often what is not signalled is read (seconds)."""

    roles: tuple[Role, ...] = ()
    interval: float = 2.0


class LookUp(msgspec.Struct, frozen=True):
    """Parameters of `look_up`: the pids whose processes are asked for."""

    pids: tuple[int, ...] = ()


class UnitDetailOf(msgspec.Struct, frozen=True):
    """Parameters of `unit_detail`."""

    name: str


class ExamineOf(msgspec.Struct, frozen=True, omit_defaults=True):
    """Parameters of `examine`: a unit, or without one a main process; its role; whether to ask the health check, and
    whether to search for others that start the role."""

    role: Role
    name: str = ""
    ident: Ident | None = None
    health: bool = False
    starters: bool = True


class SchedulesOf(msgspec.Struct, frozen=True, omit_defaults=True):
    """Parameters of `schedules`: the number of the answer that the console has, so that only what is different is told
    (0: everything); whether to read every source again although no file has changed."""

    known: int = 0
    anew: bool = False


class TranslateOf(msgspec.Struct, frozen=True, omit_defaults=True):
    """Parameters of `translate`: the names of the entries, and whether what they would become is proved."""

    names: tuple[str, ...]
    prove: bool = True


class FollowLog(msgspec.Struct, frozen=True, omit_defaults=True):
    """Parameters of `follow_log`: names and globs of units, how many lines of history (or everything that came after
    the entry with the cursor `after`), and from when on (epoch seconds); `mentions`: only lines with this word."""

    units: tuple[str, ...]
    lines: int = 200
    after: str = ""
    since: float | None = None
    mentions: str = ""


class ReadLog(msgspec.Struct, frozen=True, omit_defaults=True):
    """Parameters of `read_log`: as of `follow_log`, and until when (epoch seconds)."""

    units: tuple[str, ...]
    lines: int = 200
    since: float | None = None
    until: float | None = None
    mentions: str = ""


class StopLog(msgspec.Struct, frozen=True):
    """Parameters of `stop_log`: the id of the `follow_log` request."""

    follow: int


class UnitJobOf(msgspec.Struct, frozen=True, omit_defaults=True):
    """Parameters of `unit_job`: what to do to which service, how long to wait for its end (seconds), and for `kill`
    with which signal. `patience`: of a stop, so many seconds it is asked to end before systemd is told to stop it; it
    is not stopped when it has not ended then. `also`: more services that are enabled or disabled with it."""

    name: str
    verb: UnitVerb
    timeout: float = 120.0
    signal: str = "KILL"
    patience: float = 0.0
    also: tuple[str, ...] = ()


class HoldRoles(msgspec.Struct, frozen=True):
    """Parameters of `hold`: the roles that this console is acting on, and who that is, for whoever asks."""

    roles: tuple[str, ...]
    who: str


class SignalTo(msgspec.Struct, frozen=True):
    """Parameters of `signal`: exactly this process, and the signal ("TERM")."""

    ident: Ident
    signal: str


class StopProgram(msgspec.Struct, frozen=True):
    """Parameters of `stop_program`: the supervisor, and exactly the process whose program it is to stop."""

    kind: SupervisorKind
    ident: Ident


class WaitGone(msgspec.Struct, frozen=True):
    """Parameters of `wait_gone`: exactly this process, and for how long (seconds)."""

    ident: Ident
    timeout: float


class ClientsOf(msgspec.Struct, frozen=True):
    """Parameters of `clients`: connections as the database sees them, and the port it listens on (0: not known)."""

    backends: tuple[Backend, ...]
    server_port: int = 0


class RightsFor(msgspec.Struct, frozen=True):
    """Parameters of `rights`: the group of operators that the rule is made for."""

    group: str


class ReadFile(msgspec.Struct, frozen=True):
    """Parameters of `read_file`."""

    path: str


class ReplaceFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """Parameters of `replace_file`: the sha256 of what was read ("": there was no file), what is to be there (None:
    nothing), the mode of a new file, what is asked whether it is valid, and whether a copy of the old one is kept."""

    path: str
    expected: str
    content: bytes | None = None
    mode: int | None = None
    check: FileCheck = ""
    backup: bool = True


Params = (
    Watch
    | LookUp
    | UnitDetailOf
    | FollowLog
    | StopLog
    | UnitJobOf
    | HoldRoles
    | SignalTo
    | WaitGone
    | StopProgram
    | ClientsOf
    | RightsFor
    | ExamineOf
    | SchedulesOf
    | TranslateOf
    | ReadFile
    | ReplaceFile
    | ReadLog
)


class Request(msgspec.Struct, frozen=True):
    """`id` comes back in the answer. Methods: ping, refresh (read everything now), watch (params: Watch),
    look_up (LookUp), unit_detail (UnitDetailOf), host_detail, follow_log (FollowLog), stop_log (StopLog),
    unit_job (UnitJobOf), hold (HoldRoles), release, stop_program (StopProgram), signal (SignalTo),
    wait_gone (WaitGone), clients (ClientsOf), rights (RightsFor), examine (ExamineOf), schedules (SchedulesOf),
    translate (TranslateOf), read_file (ReadFile), replace_file (ReplaceFile), daemon_reload,
    read_log (ReadLog)."""

    id: int
    method: str
    params: msgspec.Raw = msgspec.Raw(b"{}")


class Greeting(msgspec.Struct, frozen=True, tag="hello"):
    hello: Hello


class Response(msgspec.Struct, frozen=True, tag="response"):
    id: int
    result: str = ""


class Failure(msgspec.Struct, frozen=True, tag="error"):
    """The answer to a request that could not be done; id 0: the line was no request."""

    id: int
    problem: Problem


class UnitDetailAnswer(msgspec.Struct, frozen=True, tag="unit_detail"):
    id: int
    detail: UnitDetail


class HostDetailAnswer(msgspec.Struct, frozen=True, tag="host_detail"):
    id: int
    detail: HostDetail


class ExamineAnswer(msgspec.Struct, frozen=True, tag="examine"):
    id: int
    looked: Looked


class SchedulesAnswer(msgspec.Struct, frozen=True, tag="inventory"):
    """`number` is what the next request has as `known`. Not `full`: the entries are those that are different or new,
    and `gone` are the names of those that are no more; everything else in the inventory holds."""

    id: int
    number: int
    full: bool
    inventory: Inventory
    gone: tuple[str, ...] = ()


class TranslateAnswer(msgspec.Struct, frozen=True, tag="translated"):
    id: int
    translated: tuple[Translated, ...]


class UnitJobTold(msgspec.Struct, frozen=True, tag="unit_job_progress"):
    """A `unit_job` that is not over; `id` is that of its request."""

    id: int
    progress: UnitProgress


class UnitJobAnswer(msgspec.Struct, frozen=True, tag="unit_job"):
    id: int
    job: UnitJob


class ClientsAnswer(msgspec.Struct, frozen=True, tag="clients"):
    id: int
    clients: tuple[DatabaseClient, ...]


class RightsAnswer(msgspec.Struct, frozen=True, tag="rights"):
    id: int
    rights: HostRights


class FileReadAnswer(msgspec.Struct, frozen=True, tag="read_file"):
    id: int
    file: FileRead


class FileWrittenAnswer(msgspec.Struct, frozen=True, tag="replace_file"):
    id: int
    written: FileWritten


class LogAnswer(msgspec.Struct, frozen=True, tag="read_log"):
    """The lines, oldest first; `problem`: why there are none, or not all."""

    id: int
    lines: tuple[LogLine, ...] = ()
    problem: Problem | None = None


class LogUpdate(msgspec.Struct, frozen=True, tag="log", omit_defaults=True):
    """More lines of a follow, oldest first; `problem` holds until the next message of the follow."""

    follow: int
    lines: tuple[LogLine, ...] = ()
    problem: Problem | None = None


Answer = (
    Response
    | UnitDetailAnswer
    | HostDetailAnswer
    | UnitJobAnswer
    | ClientsAnswer
    | RightsAnswer
    | ExamineAnswer
    | SchedulesAnswer
    | TranslateAnswer
    | FileReadAnswer
    | FileWrittenAnswer
    | LogAnswer
)


class _Update(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    taken: float | None = None  # epoch seconds; None: the try failed
    took: float = 0.0
    full: bool = False
    gone: tuple[str, ...] = ()
    problem: Problem | None = None


class UnitsUpdate(_Update, tag="units", frozen=True, kw_only=True):
    items: tuple[Unit, ...] = ()
    partial: bool = False  # name, description, load, active and sub state alone are known yet
    reloads: int = 0  # reloads of systemd since the agent began


class ProcessesUpdate(_Update, tag="processes", frozen=True, kw_only=True):
    items: tuple[Process, ...] = ()


class HostUpdate(_Update, tag="host", frozen=True, kw_only=True):
    items: tuple[Host, ...] = ()


class SchedulesUpdate(_Update, tag="schedules", frozen=True, kw_only=True):
    items: tuple[CronLine, ...] = ()


class HoldersUpdate(_Update, tag="holders", frozen=True, kw_only=True):
    items: tuple[PidState, ...] = ()


Update = UnitsUpdate | ProcessesUpdate | HostUpdate | SchedulesUpdate | HoldersUpdate
Message = (
    Greeting
    | Response
    | UnitDetailAnswer
    | HostDetailAnswer
    | UnitJobAnswer
    | UnitJobTold
    | ClientsAnswer
    | RightsAnswer
    | ExamineAnswer
    | SchedulesAnswer
    | TranslateAnswer
    | FileReadAnswer
    | FileWrittenAnswer
    | LogAnswer
    | Failure
    | LogUpdate
    | UnitsUpdate
    | ProcessesUpdate
    | HostUpdate
    | SchedulesUpdate
    | HoldersUpdate
)

_encoder = msgspec.json.Encoder()
_message = msgspec.json.Decoder(Message)
_request = msgspec.json.Decoder(Request)
_watch = msgspec.json.Decoder(Watch)


def process_key(process: Process) -> str:
    return f"{process.ident.pid}:{process.ident.start}"


def encode(message: Message | Request) -> bytes:
    """The message as one line, with its line end."""
    return _encoder.encode(message) + b"\n"


def encode_request(number: int, method: str, params: Params | None = None) -> bytes:
    body = msgspec.Raw(_encoder.encode(params) if params is not None else b"{}")
    return encode(Request(id=number, method=method, params=body))


def decode(line: bytes) -> Message:
    """What the agent said. HostError when the line is no message of this protocol.

    An agent of another version is recognised at its hello, whatever else that version changed.
    """
    if len(line) > LONGEST_LINE:
        raise HostError("host agent", f"sent a line of more than {LONGEST_LINE} bytes", "restart the console")
    version = _foreign_version(line)
    if version is not None:
        raise HostError(
            "host agent",
            f"speaks protocol {version}, this console speaks {PROTOCOL}",
            "install the same version of worktop on both sides",
        )
    try:
        return _message.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        shown = line[:60].decode("utf-8", "replace").strip()
        raise HostError("host agent", f"sent a line that is no message ({error}): {shown!r}") from error


class _AnyHello(msgspec.Struct):
    protocol: int | str | float | None = None


class _AnyGreeting(msgspec.Struct):
    type: str = ""
    hello: _AnyHello | None = None


_any_greeting = msgspec.json.Decoder(_AnyGreeting)


def _foreign_version(line: bytes) -> str | None:
    if not line.startswith(b'{"type":"hello"'):
        return None
    try:
        greeting = _any_greeting.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if greeting.hello is None or greeting.hello.protocol in (PROTOCOL, None):
        return None
    return str(greeting.hello.protocol)[:20]


def decode_request(line: bytes) -> Request:
    """What the console asked. HostError when the line is no request."""
    if len(line) > LONGEST_REQUEST:
        raise HostError("request", f"the line is longer than {LONGEST_REQUEST} bytes")
    try:
        return _request.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HostError(
            "request", f"not understood: {error}", "send {id, method, params} as one line of JSON"
        ) from error


def decode_watch(request: Request) -> Watch:
    """The parameters of a `watch` request. HostError names the wrong field."""
    try:
        watch = _watch.decode(bytes(request.params))
        for role in watch.roles:
            for pattern in role.match:
                re.compile(pattern)
    except (msgspec.DecodeError, UnicodeDecodeError, re.error) as error:
        raise HostError("request watch", f"parameters not understood: {error}") from error
    return watch


P = TypeVar("P", bound=Params)


def decode_params(request: Request, kind: type[P]) -> P:
    """The parameters of a request. HostError names the wrong field."""
    try:
        return msgspec.json.decode(bytes(request.params), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HostError(f"request {request.method}", f"parameters not understood: {error}") from error


class Lines:
    """Cuts a stream of bytes into lines and refuses to collect one that is longer than `longest`."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete now, without their ends. HostError when one grows past the limit."""
        *complete, rest = data.split(b"\n")
        lines: list[bytes] = []
        for part in complete:
            lines.append(b"".join((*self._parts, part)))
            self._parts, self._size = [], 0
        self._parts.append(rest)
        self._size += len(rest)
        if self._size > self._longest or any(len(line) > self._longest for line in lines):
            raise HostError("host agent", f"a line is longer than {self._longest} bytes")
        return [line for line in lines if line.strip()]
