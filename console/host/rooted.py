"""Files of this host, or of a copy of another one below a folder: bounded reads, and no way out of that folder.

Below another root a symbolic link means what it meant there: /etc/cron.d/x -> /srv/x leads to srv/x below the root,
and no `..` leads above it. Nothing here waits (a fifo is no file) and nothing writes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import NamedTuple, TypeVar

_MOST_LINKS = 40  # as the kernel's ELOOP
_TRIES = 3  # to read a file that changes meanwhile

_T = TypeVar("_T")
Stamp = tuple[int, int, int, int] | None  # mtime and ctime in ns, size, inode; None: not there


class Content(NamedTuple):
    """What a file holds; `problem` says why it is not there to be read, and `data` is empty then."""

    data: bytes = b""
    problem: str = ""
    denied: bool = False
    absent: bool = False
    status: os.stat_result | None = None


class Names(NamedTuple):
    """The names in a folder, sorted."""

    names: tuple[str, ...] = ()
    problem: str = ""
    denied: bool = False


class Root:
    """Where a host's files begin: "/" for this host itself."""

    def __init__(self, path: str = "/") -> None:
        self._base = os.path.realpath(path).rstrip("/")
        self.here = self._base == ""
        self.stamps: dict[str, Stamp] = {}  # of everything that was looked at since `forget`

    def forget(self) -> None:
        self.stamps = {}

    def changed(self) -> bool:
        """Whether anything that was looked at is another now."""
        return any(self._stamp(path) != stamp for path, stamp in self.stamps.items())

    def status(self, path: str) -> os.stat_result | None:
        """What the path leads to; None when it is not there or may not be seen."""
        status = self._status(path)
        self.stamps[path] = _stamp_of(status)
        return status

    def exists(self, path: str) -> bool:
        return self.status(path) is not None

    def read(self, path: str, longest: int) -> Content:
        """A regular file of at most `longest` bytes, as it was at one moment."""
        self.stamps[path] = self._stamp(path)
        for _ in range(_TRIES):
            content = self._read(path, longest)
            if content is not None:
                return content
        return Content(problem="it changes while it is read")

    def names(self, folder: str) -> Names:
        """What lies in a folder; nothing when there is none."""
        self.stamps[folder] = self._stamp(folder)
        try:
            return Names(tuple(sorted(self._inside(folder, os.listdir))))
        except PermissionError:
            return Names(problem="not permitted", denied=True)
        except OSError:
            return Names()

    def link(self, path: str) -> str:
        """Where a symbolic link points, as it is written; "" when it is none."""
        self.stamps[path] = self._stamp(path)
        folder, _, name = path.rpartition("/")
        try:
            return self._inside(folder or "/", lambda real: os.readlink(f"{real}/{name}"))  # noqa: PTH115  as written
        except OSError:
            return ""

    def _read(self, path: str, longest: int) -> Content | None:
        """None: it was changed in between."""
        try:
            handle = self._inside(path, lambda real: os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
        except PermissionError:
            return Content(problem="not permitted", denied=True)
        except FileNotFoundError:
            return Content(problem="it is not there", absent=True)
        except OSError as error:
            return Content(problem=error.strerror or str(error))
        try:
            before = os.fstat(handle)
            if not stat.S_ISREG(before.st_mode):
                return Content(problem="it is no regular file", status=before)
            if before.st_size > longest:
                return Content(problem=f"it has {before.st_size} bytes, at most {longest} are read", status=before)
            parts: list[bytes] = []
            room = longest + 1
            while room > 0 and (part := os.read(handle, min(room, 1 << 20))):
                parts.append(part)
                room -= len(part)
            after = os.fstat(handle)
        except OSError as error:
            return Content(problem=error.strerror or str(error))
        finally:
            os.close(handle)
        if room <= 0 or _stamp_of(before) != _stamp_of(after):
            return None
        return Content(b"".join(parts), status=after)

    def _status(self, path: str) -> os.stat_result | None:
        try:
            return self._inside(path, os.stat)
        except OSError:
            return None

    def _stamp(self, path: str) -> Stamp:
        return _stamp_of(self._status(path))

    def _inside(self, path: str, use: Callable[[str], _T]) -> _T:
        return use(path if self.here else self._resolved(path))

    def _resolved(self, path: str) -> str:
        """The real path below the root, every link on the way taken by hand."""
        waiting = [part for part in reversed(path.split("/")) if part]
        walked: list[str] = []
        links = 0
        while waiting:
            part = waiting.pop()
            if part in (".", ".."):
                if part == "..":
                    del walked[-1:]
                continue
            here = f"{self._base}/{'/'.join([*walked, part])}"
            try:
                target = os.readlink(here)  # noqa: PTH115  as written
            except OSError:  # no link, or nothing at all: whoever uses the path is told
                walked.append(part)
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OSError(40, "Too many levels of symbolic links")
            if target.startswith("/"):
                walked = []
            waiting += [each for each in reversed(target.split("/")) if each]
        return f"{self._base}/{'/'.join(walked)}"


def _stamp_of(status: os.stat_result | None) -> Stamp:
    return None if status is None else (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
