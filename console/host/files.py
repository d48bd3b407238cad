"""Files that worktop edits on the host: unit files, drop-ins and crontabs; read, and replaced whole or not at all.

A replacement is written beside the file under a name that cron and systemd pass over (it begins with a dot), synced,
compared once more with what the console had read, and renamed over it. No folder on the way may be a symbolic link, and
nothing outside the folders of `_allowed` is read or written. What was there before is kept in the state directory,
where neither cron nor systemd looks.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import pwd
import re
import secrets
import socket
import stat
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from console.errors import HostError, WorktopError
from console.fleet.operations import FileRead, FileWritten
from console.state import StateDirectory, write_all

LONGEST = 1024 * 1024  # bytes of a file that is read or written
SPOOLS = ("/var/spool/cron/crontabs", "/var/spool/cron")  # Debian's, that of cronie
_SINGLE = ("/etc/crontab",)
UNITS = ("/etc/systemd/system", "/etc/systemd/user", "/run/systemd/system")
_CRON = ("/etc/cron.d", *SPOOLS)
_ENVIRONMENT = re.compile(r"/etc/[A-Za-z0-9_@-][A-Za-z0-9_.@-]{0,100}\.env\Z")  # EnvironmentFile= of a unit
_NAME = re.compile(r"[A-Za-z0-9:_\\@-][A-Za-z0-9:_.\\@-]{0,240}\Z")  # none that is hidden, none that leads elsewhere
_DROP_INS = re.compile(r"[A-Za-z0-9:_\\@-][A-Za-z0-9:_.\\@-]{0,240}\.d\Z")
_MORE_RIGHTS = "run the agent with sudo: agent in [host]"
_AGAIN = "nothing was done: plan it again"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Place(NamedTuple):
    """Where a file is: an allowed folder, the folder of drop-ins in it ("" : none), the name."""

    base: str
    drop_ins: str
    name: str

    @property
    def is_unit(self) -> bool:
        return self.base not in (*_CRON, "/etc")

    @property
    def folder(self) -> str:
        return f"{self.base}/{self.drop_ins}" if self.drop_ins else self.base


def _units() -> tuple[str, ...]:
    home = pwd.getpwuid(os.geteuid()).pw_dir
    return (*UNITS, f"{home}/.config/systemd/user")


def whole(path: str) -> str:
    """ "~/" is the home of the agent's account."""
    return f"{pwd.getpwuid(os.geteuid()).pw_dir}/{path[2:]}" if path.startswith("~/") else path


def place_of(path: str) -> Place:
    """HostError: worktop does not touch this file."""
    if path in _SINGLE or _ENVIRONMENT.match(path):
        base, _, name = path.rpartition("/")
        return Place(base, "", name)
    for base in (*_units(), *_CRON):
        inside = path.removeprefix(f"{base}/")
        if inside == path:
            continue
        folder, _, name = inside.rpartition("/")
        if _NAME.match(name) and (not folder or (base in _units() and _DROP_INS.match(folder))):
            return Place(base, folder, name)
    raise HostError(
        f"file {path[:200]}",
        "worktop edits no files there",
        f"it edits those in {', '.join((*_units(), *_CRON, *_SINGLE))} and /etc/NAME.env",
    )


def read_file(path: str) -> FileRead:
    """The file as it is now; its path is told whole. HostError: it is in no folder that worktop edits."""
    path = whole(path)
    place = place_of(path)
    try:
        with _folder(place) as folder:
            return _read(folder, place, path)
    except FileNotFoundError:
        return FileRead(path=path)
    except OSError as error:
        return FileRead(path=path, problem=_why(error))


def replace_file(
    path: str, expected: str, content: bytes | None, mode: int | None = None, backup: bool = True
) -> FileWritten:
    """Put `content` in the file's place, or remove it (None), if it still is what was read: `expected` is its sha256,
    "" when there was none. Mode and owner stay; a new file has `mode`, or what its folder is for.

    HostError: changed by somebody else since, not permitted, no such place. Then everything is as it was.
    """
    place = place_of(path)
    what = f"{'remove' if content is None else 'write'} {path}"
    if content is not None and len(content) > LONGEST:
        raise HostError(what, f"it would be longer than {LONGEST} bytes")
    try:
        with _folder(place, make=content is not None) as folder:
            before = _unchanged(folder, place, path, expected, what)
            if content is None and before.content is None:
                return FileWritten(path=path, text=f"{path} was not there")
            kept = keep_copy(before) if backup and before.content is not None else ""
            if content is None:
                os.unlink(place.name, dir_fd=folder)
            else:
                _write(folder, place, before, content, mode, expected, what)
            os.fsync(folder)
    except FileNotFoundError:  # the folder
        if content is not None:
            raise HostError(what, f"there is no folder {place.base}") from None
        if expected:
            raise HostError(what, "it is gone: by somebody else, since it was read", _AGAIN) from None
        return FileWritten(path=path, text=f"{path} was not there")
    except OSError as error:
        raise HostError(what, _why(error), _MORE_RIGHTS if isinstance(error, PermissionError) else "") from None
    if content is None and place.drop_ins:
        with contextlib.suppress(OSError):  # of others' drop-ins it is not empty
            Path(place.folder).rmdir()
    done = "removed" if content is None else "made" if before.content is None else "replaced"
    return FileWritten(
        path=path, sha256=digest(content), backup=kept, text=f"{path} {done}" + (f", copy in {kept}" if kept else "")
    )


def digest(content: bytes | None) -> str:
    """sha256 in hexadecimal; "" for a file that is not there."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


@contextlib.contextmanager
def _folder(place: Place, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder, reached without following a symbolic link below the allowed folder. OSError."""
    if make and place.base not in (*UNITS, *_CRON, "/etc"):
        Path(place.base).mkdir(parents=True, exist_ok=True)  # the account's own
    handle = os.open(place.base, _FOLDER)
    try:
        if place.drop_ins:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(place.drop_ins, 0o755, dir_fd=handle)
                    os.fsync(handle)
            base, handle = handle, os.open(place.drop_ins, _FOLDER, dir_fd=handle)
            os.close(base)
        yield handle
    finally:
        os.close(handle)


def _read(folder: int, place: Place, path: str) -> FileRead:
    """OSError, FileNotFoundError among them."""
    handle = os.open(place.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        found = os.fstat(handle)
        mode, uid, gid = stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid
        if not stat.S_ISREG(found.st_mode):
            return FileRead(path=path, mode=mode, uid=uid, gid=gid, problem="it is no regular file")
        with os.fdopen(os.dup(handle), "rb") as file:
            content = file.read(LONGEST + 1)
    finally:
        os.close(handle)
    if len(content) > LONGEST:
        return FileRead(path=path, mode=mode, uid=uid, gid=gid, problem=f"it is longer than {LONGEST} bytes")
    return FileRead(
        path=path, content=content, sha256=digest(content), mode=mode, uid=uid, gid=gid, changed=found.st_mtime
    )


def _unchanged(folder: int, place: Place, path: str, expected: str, what: str) -> FileRead:
    """The file as it is now, which is as it was read. HostError, OSError."""
    try:
        now = _read(folder, place, path)
    except FileNotFoundError:
        now = FileRead(path=path)
    if now.problem:
        raise HostError(what, now.problem)
    if now.sha256 != expected:
        why = "it is gone" if now.content is None else "it is there" if not expected else "it was changed"
        raise HostError(what, f"{why}: by somebody else, since it was read", _AGAIN)
    return now


def _write(
    folder: int, place: Place, before: FileRead, content: bytes, mode: int | None, expected: str, what: str
) -> None:
    """HostError: changed by somebody else while it was being written. OSError."""
    temporary = f".worktop-{secrets.token_hex(6)}.tmp"
    handle = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder
    )
    try:
        try:
            write_all(handle, content)
            uid, gid = (before.uid, before.gid) if before.content is not None else _owner(place, folder)
            made = os.fstat(handle)
            if (uid, gid) != (made.st_uid, made.st_gid):
                os.fchown(handle, uid, gid)
            os.fchmod(handle, before.mode if before.content is not None else _mode(place) if mode is None else mode)
            os.fsync(handle)
        finally:
            os.close(handle)
        if before.content is None:
            _link(folder, temporary, place.name, what)
        else:
            _unchanged(folder, place, before.path, expected, what)
            os.rename(temporary, place.name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)


def _link(folder: int, temporary: str, name: str, what: str) -> None:
    """A new file appears whole, and never in the place of another."""
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise HostError(what, "it is there: by somebody else, since it was read", _AGAIN) from None


def _owner(place: Place, folder: int) -> tuple[int, int]:
    """Of a new file: a crontab belongs to the account whose it is, and to the group of the spool."""
    if place.base in SPOOLS:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(place.name).pw_uid, os.fstat(folder).st_gid
    return os.geteuid(), os.getegid()


def _mode(place: Place) -> int:
    return 0o600 if place.base in SPOOLS else 0o644


def keep_copy(before: FileRead) -> str:
    """A copy of the file in the state directory; its path. HostError: without one nothing is replaced."""
    assert before.content is not None
    user = pwd.getpwuid(before.uid).pw_name if _known(before.uid) else str(before.uid)
    stamp = f"{datetime.fromtimestamp(time.time(), UTC):%Y%m%dT%H%M%SZ}"
    flat = before.path.strip("/").replace("/", "-")[-120:]
    name = f"{stamp}-{socket.gethostname()[:60]}-{user[:32]}-{flat}-{secrets.token_hex(3)}"
    try:
        path: Path = StateDirectory.find().folder("backups") / name
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            write_all(handle, before.content)
            os.fsync(handle)
        finally:
            os.close(handle)
    except WorktopError as error:
        raise HostError(f"keep a copy of {before.path}", error.problem.line(), "nothing was done") from None
    except OSError as error:
        raise HostError(f"keep a copy of {before.path}", _why(error), "nothing was done") from None
    return str(path)


def _known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _why(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "not permitted"
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "it, or its folder, is a symbolic link"
    if error.errno == errno.EROFS:
        return "the file system is read-only"
    return (error.strerror or str(error)).lower()
