"""One console at a time acts on a role of a database, on one host.

The lock is the name of an abstract Unix socket: it needs no folder that all accounts may write, the kernel drops it
when its process ends, however it ends, and tells who has it. The rows themselves are guarded by the database: this
lock only spares two people the surprise.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import socket
import struct
from collections.abc import Iterator, Sequence

from console.actions.who import account
from console.errors import RefusedError

_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


@contextlib.contextmanager
def locked(identity: str, roles: Sequence[str]) -> Iterator[None]:
    """Hold the roles while it lasts. RefusedError names who holds one of them already."""
    with contextlib.ExitStack() as held:
        for role in sorted(set(roles)):
            name = b"\0worktop/" + hashlib.sha256(f"{identity}\n{role}".encode()).hexdigest()[:32].encode()
            lock = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            try:
                lock.bind(name)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                what = f"role {role}" if role else "all roles"
                raise RefusedError(
                    what, f"{_holder(name)} is acting on it now", "wait until it has finished, then plan again"
                ) from None
            lock.listen(1)
        yield


def _holder(name: bytes) -> str:
    """Who listens there, by what the kernel noted when it began to."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        with contextlib.suppress(OSError):
            probe.connect(name)
            pid, uid, _ = _CREDENTIALS.unpack(
                probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            )
            return f"the worktop of {account(uid)} (pid {pid})"
    return "another worktop"
