"""One console at a time acts on a role of this host: the lock is held by its agent, on the host itself.

It is the name of an abstract Unix socket (unix(7)): it needs no folder that all accounts may write, the kernel drops it
when the agent ends, however it ends, and whoever connects is told who holds it. It spares two people the surprise; it
guards nothing against somebody who means harm.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import socket

from console.errors import HostError

_ANSWERS = 0.5  # seconds the holder may take to say who it is
_LONGEST = 300  # bytes of what it says


class Holding:
    """The roles this agent holds."""

    def __init__(self) -> None:
        self._held: dict[str, socket.socket] = {}

    async def take(self, roles: tuple[str, ...], who: str) -> None:
        """Hold them all. HostError names who holds one of them already; then none is held."""
        self.drop()
        try:
            for role in sorted(set(roles)):
                await self._take(role, who)
        except BaseException:
            self.drop()
            raise

    def drop(self) -> None:
        """Hold none any more."""
        held, self._held = self._held, {}
        for lock in held.values():
            asyncio.get_running_loop().remove_reader(lock.fileno())
            lock.close()

    async def _take(self, role: str, who: str) -> None:
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            lock.bind(_name(role))
            lock.listen(8)
        except OSError as error:
            lock.close()
            what = f"role {role}" if role else "all roles"
            if error.errno != errno.EADDRINUSE:
                raise HostError(f"lock of {what}", error.strerror or str(error)) from error
            holder = await _holder(role) or "another worktop"
            raise HostError(
                what, f"{holder} is acting on it now", "wait until it has finished, then plan again"
            ) from None
        self._held[role] = lock
        asyncio.get_running_loop().add_reader(lock.fileno(), _tell, lock, who.encode()[:_LONGEST])


def _tell(lock: socket.socket, who: bytes) -> None:
    with contextlib.suppress(OSError):
        asking, _ = lock.accept()
        with asking:
            asking.setblocking(False)
            asking.send(who)


async def _holder(role: str) -> str:
    loop = asyncio.get_running_loop()
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe,
        contextlib.suppress(OSError, TimeoutError),
    ):
        async with asyncio.timeout(_ANSWERS):
            await loop.sock_connect(probe, _name(role))
            return (await loop.sock_recv(probe, _LONGEST)).decode("utf-8", "replace")
    return ""


def _name(role: str) -> bytes:
    return b"\0worktop/host/" + hashlib.sha256(role.encode()).hexdigest()[:32].encode()
