"""Where worktop keeps what must outlive it: the journal of changes, the audit, copies of files that were replaced."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from console.errors import ConfigError

_OF_ROOT = Path("/var/lib/worktop")


class StateDirectory:
    """A folder of mode 0700 that belongs to the account worktop runs as. It is made when something is first written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def find(cls, environment: Mapping[str, str] = os.environ, uid: int | None = None) -> StateDirectory:
        """$WORKTOP_STATE; else /var/lib/worktop for root, $XDG_STATE_HOME/worktop (~/.local/state/worktop) for others.

        ConfigError when none of them says a place.
        """
        named = environment.get("WORKTOP_STATE", "")
        if named:
            if not named.startswith("/"):
                raise ConfigError("WORKTOP_STATE", f"found {named!r}", "expected an absolute path")
            return cls(Path(named))
        if (os.geteuid() if uid is None else uid) == 0:
            return cls(_OF_ROOT)
        base = environment.get("XDG_STATE_HOME", "")
        if base.startswith("/"):
            return cls(Path(base) / "worktop")
        try:
            return cls(Path.home() / ".local" / "state" / "worktop")
        except RuntimeError:
            raise ConfigError(
                "state directory", "this account has no home directory", "set WORKTOP_STATE to a folder of its own"
            ) from None

    def folder(self, name: str = "") -> Path:
        """The directory, or a folder in it, made where it is missing. ConfigError when it cannot be used safely."""
        path = self.path / name if name else self.path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = path.lstat()
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from None
        if not stat.S_ISDIR(found.st_mode):
            raise self._unusable("it is no directory, or a symbolic link")
        if found.st_uid not in (os.geteuid(), 0):
            raise self._unusable("it belongs to another account")
        if found.st_mode & 0o077:
            try:
                path.chmod(0o700)
            except OSError:
                raise self._unusable("others may look into it") from None
        return path

    def _unusable(self, why: str) -> ConfigError:
        return ConfigError(f"state directory {self.path}", why, "name another with WORKTOP_STATE")


def append_only(path: Path, *, new: bool = False) -> int:
    """A descriptor that appends to a file of mode 0600; with `new` the file must not be there yet. OSError.

    A line that a crash has torn off is closed, so that what is appended stands on a line of its own. The folder is
    fsynced where the file is new: otherwise the file itself may be lost with the power.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_EXCL if new else 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            write_all(descriptor, b"\n")
        if not size:
            folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def is_held(path: Path) -> bool:
    """Whether another process holds the file (flock, exclusive) at this moment; one that is not there is not held."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def write_new(path: Path, text: str) -> None:
    """Write the text, and a line end, to a file of mode 0600 that was not there before. OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text + "\n")


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it; a full disk is an OSError, never a half that passes for the whole."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
