"""One connection to systemd over D-Bus, made safe: pystemd 0.15 with its sharp edges behind one class.

What pystemd does and what is done about it:
- it holds the GIL through every call and sd-bus waits up to 25 s: the agent is a process of its own, and the wait is
  cut to CALL_SECONDS;
- closing twice aborts the process: `Connection.close` closes once;
- a match keeps no reference to its callback and takes plain functions only: the functions live in the connection;
- an exception in a callback comes out as SystemError: the callbacks only append to a list;
- signals that arrive during a call stay in user space, the descriptor does not become readable: signals have a
  connection of their own;
- messages of errors are "b'...'" reprs: `reason` cleans them;
- its package loads lxml, 4 MB, for wrappers that are not used here: `_dbuslib` loads the binding of sd-bus alone.
"""

from __future__ import annotations

import ast
import errno
import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from console.errors import HostError

CALL_SECONDS = 5  # a manager that does not answer for this long is a failing source

SYSTEMD = b"org.freedesktop.systemd1"
MANAGER_PATH = b"/org/freedesktop/systemd1"
MANAGER = b"org.freedesktop.systemd1.Manager"
JOB = b"org.freedesktop.systemd1.Job"
UNIT = b"org.freedesktop.systemd1.Unit"
SERVICE = b"org.freedesktop.systemd1.Service"
PROPERTIES = b"org.freedesktop.DBus.Properties"
UNIT_PREFIX = b"/org/freedesktop/systemd1/unit"

Properties = dict[bytes, Any]

_CHANGED = b"StateChangeTimestamp"
_TRIES = 3  # readings of a unit whose state changes while it is read

# properties of a service that its files do not say, with their D-Bus types
_STANDING = (
    (b"MainPID", b"u"),
    (b"NRestarts", b"u"),
    (b"ExecMainStartTimestamp", b"t"),
    (b"StatusText", b"s"),
    (b"ControlGroup", b"s"),
)
_ENDED = (
    (b"Result", b"s"),
    (b"ExecMainExitTimestamp", b"t"),
    (b"ExecMainCode", b"i"),
    (b"ExecMainStatus", b"i"),
)
_RUNNING: Properties = {b"Result": b"success", b"ExecMainExitTimestamp": 0, b"ExecMainCode": 0, b"ExecMainStatus": 0}


@lru_cache(maxsize=1)
def _dbuslib() -> Any:
    """pystemd.dbuslib, below a package of pystemd that is there and is not run."""
    found = importlib.util.find_spec("pystemd") if "pystemd" not in sys.modules else None
    if found is not None:
        sys.modules["pystemd"] = importlib.util.module_from_spec(found)
    try:
        return importlib.import_module("pystemd.dbuslib")
    except ImportError:  # it needs the package after all
        if found is None:
            raise
        del sys.modules["pystemd"]
        return importlib.import_module("pystemd.dbuslib")


class Listed(NamedTuple):
    """One row of ListUnitsByNames or ListUnitsByPatterns."""

    name: str
    description: str
    load: str
    active: str
    sub: str


class BusLost(HostError):
    """The connection is gone: the bus or the manager went away. A new one has to be made."""


class Refused(HostError):
    """The bus answered with an error; the connection is good."""


class NoAnswer(Refused):
    """The manager is busy (a reload of many units); what it was asked to do it may still do."""


class NotPermitted(Refused):
    """polkit, or the bus, does not let this account do it."""


_GONE = frozenset(
    -number
    for number in (
        errno.ECONNABORTED,
        errno.ECONNRESET,
        errno.ENOTCONN,
        errno.EPIPE,
        errno.EBADF,
        errno.ESHUTDOWN,
        errno.EBADFD,
    )
)


def reason(error: BaseException) -> str:
    """The text of a pystemd error as a person reads it: the b'...' repr opened, "Name(" and "[err -2]" removed."""
    message = getattr(error, "err_message", "") or str(error)
    if isinstance(message, bytes):
        message = message.decode("utf-8", "replace")
    text = str(message).strip()
    if text[:2] in ("b'", 'b"'):
        try:
            text = ast.literal_eval(text).decode("utf-8", "replace")
        except (ValueError, SyntaxError):
            text = text[2:-1]
    number = getattr(error, "errno", 0) or 0
    if not text and number:
        text = os.strerror(abs(number))
    elif number == -errno.ENOMEDIUM:  # sd_bus_open_user(3)
        text = "neither DBUS_SESSION_BUS_ADDRESS nor XDG_RUNTIME_DIR is set, and there is no /run/user/UID"
    elif text.startswith(("Could not open a bus", "Failed to ")) and number:  # pystemd's own words say less
        text = "the connection was closed" if number in _GONE else os.strerror(abs(number)).lower()
    return text or type(error).__name__


class Connection:
    """A connection to the system bus or the user's bus. HostError from the constructor when there is none."""

    def __init__(self, user_manager: bool = False) -> None:
        os.environ.setdefault("SYSTEMD_BUS_TIMEOUT", f"{CALL_SECONDS}s")
        if user_manager and not os.environ.get("XDG_RUNTIME_DIR"):
            runtime = Path(f"/run/user/{os.getuid()}")
            if runtime.is_dir():  # an ssh command without pam_systemd does not have it set
                os.environ["XDG_RUNTIME_DIR"] = str(runtime)
        self._bus = _dbuslib().DBus(user_mode=user_manager)
        self._open = False
        self._callbacks: list[Callable[..., None]] = []
        try:
            self._bus.open()
        except Exception as error:
            raise BusLost(f"connect to the {'user' if user_manager else 'system'} bus", reason(error)) from error
        self._open = True

    def close(self) -> None:
        if self._open:
            self._open = False
            self._bus.close()

    def fileno(self) -> int:
        return int(self._bus.get_fd())

    def _call(self, path: bytes, interface: bytes, method: bytes, signature: bytes = b"", *arguments: Any) -> Any:
        if not self._open:
            raise BusLost(f"call {method.decode()}", "the connection is closed")
        body = _dbuslib().apply_signature(signature, list(arguments)) if signature else []
        try:
            return self._bus.call_method(SYSTEMD, path, interface, method, body).body
        except Exception as error:
            raise self._failure(f"systemd {method.decode()}", error) from error

    def _failure(self, what: str, error: Exception) -> HostError:
        number = getattr(error, "errno", 0)
        if number in _GONE:
            return BusLost(what, reason(error))
        if number in (-errno.ETIMEDOUT, -errno.ETIME):
            return NoAnswer(what, f"no answer within {CALL_SECONDS} s")
        if number in (-errno.EACCES, -errno.EPERM):
            return NotPermitted(what, reason(error))
        return Refused(what, reason(error))

    def list_by_names(self, names: list[str]) -> list[Listed]:
        """Units by name, also those that are not loaded or do not exist. It loads them for a moment."""
        if not names:
            return []
        rows = self._call(MANAGER_PATH, MANAGER, b"ListUnitsByNames", b"as", [name.encode() for name in names])
        return _listed(rows)

    def list_by_patterns(self, patterns: list[str]) -> list[Listed]:
        """The loaded units that match one of the globs; loads nothing."""
        if not patterns:
            return []
        rows = self._call(
            MANAGER_PATH, MANAGER, b"ListUnitsByPatterns", b"asas", [], [pattern.encode() for pattern in patterns]
        )
        return _listed(rows)

    def properties(self, unit: str) -> Properties:
        """Every property of the Unit and Service interfaces, all of one moment: two calls, 4 ms, and one to see that
        its state has not changed between them; 27 single ones take 6 ms. A timer has those of the first only."""
        path = unit_path(unit)
        for _ in range(_TRIES):
            found: Properties = dict(_mapping(self._call(path, PROPERTIES, b"GetAll", b"s", UNIT)))
            if not unit.endswith(".service"):
                break
            found.update(_mapping(self._call(path, PROPERTIES, b"GetAll", b"s", SERVICE)))
            if self.property(path, UNIT, _CHANGED, b"t") == found.get(_CHANGED):
                break
        return found

    def standing(self, listed: Listed, like: Properties) -> Properties | None:
        """Properties of an instance whose template's other instance has those of `like`; None: it differs in its files.

        Ten or fourteen properties are asked for, 3 ms instead of 8 for all: what the unit's files say is the same.
        """
        path = unit_path(listed.name)
        found: Properties = dict(like)
        for name, kind in ((b"FragmentPath", b"s"), (b"DropInPaths", b"as")):
            if self.property(path, UNIT, name, kind) != like.get(name):
                return None
        for name, kind in ((b"UnitFileState", b"s"), (b"InvocationID", b"ay"), (b"StateChangeTimestamp", b"t")):
            found[name] = self.property(path, UNIT, name, kind)
        service = list(_STANDING)
        if (listed.active, listed.sub) == ("active", "running"):  # systemd clears these when it starts the process
            found |= _RUNNING
        else:
            service += _ENDED
        if like.get(b"User"):  # it may hold a specifier
            service.append((b"User", b"s"))
        for name, kind in service:
            found[name] = self.property(path, SERVICE, name, kind)
        found[b"LoadState"], found[b"ActiveState"] = listed.load.encode(), listed.active.encode()
        found[b"SubState"], found[b"Description"] = listed.sub.encode(), listed.description.encode()
        return found

    def property(self, path: bytes, interface: bytes, name: bytes, kind: bytes) -> Any:
        if not self._open:
            raise BusLost(f"read {name.decode()}", "the connection is closed")
        try:
            return self._bus.get_property(SYSTEMD, path, interface, name, kind)
        except Exception as error:
            raise self._failure(f"read {name.decode()}", error) from error

    def version(self) -> str:
        """systemd's version as it says it: "252.39-1~deb12u1"."""
        return text(self.property(MANAGER_PATH, MANAGER, b"Version", b"s"))

    def ping(self) -> None:
        """One cheap question (0.3 ms), to know that the manager answers."""
        self.property(MANAGER_PATH, MANAGER, b"NJobs", b"u")

    # --- acting ----------------------------------------------------------------------------------------------------

    def make_job(self, method: bytes, name: str, mode: bytes = b"replace") -> bytes:
        """StartUnit, StopUnit, RestartUnit: the path of the job. It is not done when this returns. NotPermitted."""
        return bytes(self._call(MANAGER_PATH, MANAGER, method, b"ss", name.encode(), mode))

    def reset_failed(self, name: str) -> None:
        self._call(MANAGER_PATH, MANAGER, b"ResetFailedUnit", b"s", name.encode())

    def kill_unit(self, name: str, whom: bytes, number: int) -> None:
        """`whom`: main, control or all."""
        self._call(MANAGER_PATH, MANAGER, b"KillUnit", b"ssi", name.encode(), whom, number)

    def enable_nothing(self) -> None:
        """EnableUnitFiles of no unit: polkit is asked, and nothing is done. NotPermitted."""
        self._call(MANAGER_PATH, MANAGER, b"EnableUnitFiles", b"asbb", [], True, False)

    def job_waits(self, path: bytes) -> bool:
        """Whether this job is still there, as far as is known."""
        try:
            self.property(path, JOB, b"State", b"s")
        except NoAnswer:
            return True
        except Refused:
            return False
        return True

    # --- signals ---------------------------------------------------------------------------------------------------

    def subscribe_jobs(self, inbox: list[tuple[str, bytes, Any]]) -> None:
        """Like `subscribe`, for the ends of jobs alone: ("JobRemoved", path, [id, path of the job, unit, result])."""
        self._call(MANAGER_PATH, MANAGER, b"Subscribe")
        self._match(inbox, SYSTEMD, MANAGER_PATH, MANAGER, b"JobRemoved")
        self._match_disconnected(inbox)

    def subscribe(self, inbox: list[tuple[str, bytes, Any]], wanted: Callable[[bytes], bool]) -> None:
        """From now on signals are appended to `inbox` as (member, object path, body) by `pump`.

        PropertiesChanged of an object that is not `wanted` is dropped unread: to read it takes 0.3 ms.
        """
        self._call(MANAGER_PATH, MANAGER, b"Subscribe")
        self._match(inbox, SYSTEMD, None, PROPERTIES, b"PropertiesChanged", wanted=wanted)
        for member in (b"UnitNew", b"UnitRemoved", b"JobRemoved", b"Reloading", b"UnitFilesChanged"):
            self._match(inbox, SYSTEMD, MANAGER_PATH, MANAGER, member)
        self._match_disconnected(inbox)

    def _match_disconnected(self, inbox: list[tuple[str, bytes, Any]]) -> None:
        self._match(
            inbox, b"org.freedesktop.DBus.Local", None, b"org.freedesktop.DBus.Local", b"Disconnected", b"Disconnected"
        )

    def _match(
        self,
        inbox: list[tuple[str, bytes, Any]],
        sender: bytes,
        path: bytes | None,
        interface: bytes,
        member: bytes,
        name: bytes = b"",
        wanted: Callable[[bytes], bool] | None = None,
    ) -> None:
        label = (name or member).decode()

        def received(message: Any, error: Any = None, userdata: Any = None) -> None:
            try:
                path = bytes(message.get_path() or b"")
                if wanted is None or wanted(path):
                    message.process_reply(False)
                    inbox.append((label, path, message.body))
            except Exception:  # noqa: BLE001  an exception here would come out of process() as SystemError
                inbox.append(("Unreadable", b"", None))

        self._callbacks.append(received)
        try:
            self._bus.match_signal(sender, path, interface, member, received)
        except Exception as error:
            raise self._failure(f"follow {label}", error) from error

    def pump(self, budget: float) -> bool:
        """Take what has arrived for at most `budget` seconds; True when more may be waiting. BusLost at its end."""
        if not self._open:
            raise BusLost("follow systemd", "the connection is closed")
        until = time.monotonic() + budget
        empty = 0
        while empty < 3:  # a step that was internal to sd-bus looks empty too
            try:
                message = self._bus.process()
            except Exception as error:
                raise BusLost("follow systemd", reason(error)) from error
            empty = empty + 1 if message.is_empty() else 0
            if time.monotonic() > until:
                return True
        return False


def unit_path(name: str) -> bytes:
    return bytes(_dbuslib().path_encode(UNIT_PREFIX, name.encode()))


def unit_of_path(path: bytes) -> str:
    """The unit an object path belongs to; "" for other objects."""
    if not path.startswith(UNIT_PREFIX + b"/"):
        return ""
    return bytes(_dbuslib().path_decode(path, UNIT_PREFIX)).decode("utf-8", "replace")


def text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")


def _mapping(body: Any) -> Mapping[bytes, Any]:
    return body if isinstance(body, dict) else {}


def _listed(rows: Any) -> list[Listed]:
    """pystemd gives a list of rows, or the bare row when there is just one."""
    if isinstance(rows, tuple):
        rows = [rows]
    return [Listed(text(row[0]), text(row[1]), text(row[2]), text(row[3]), text(row[4])) for row in rows or []]
