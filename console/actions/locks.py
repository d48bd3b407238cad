"""One console at a time acts on a role: of a database, from one machine; of a host, from anywhere.

The lock is the name of an abstract Unix socket: it needs no folder that all accounts may write, the kernel drops it
when its process ends, however it ends, and tells who has it. The rows themselves are guarded by the database: this
lock only spares two people the surprise. Whoever acts on units or processes has the host's agent hold one there too
(console/host/holding.py), since their consoles may run on different machines.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

from console.actions.scene import host_answers
from console.actions.who import account, this_machine, this_person
from console.errors import AgentLost, HostError, RefusedError
from console.fleet.plan import Plan
from console.host.client import HostClient

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


@contextlib.asynccontextmanager
async def on_host(host: HostClient, plan: Plan, roles: Sequence[str]) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Hold the roles on the host while it lasts, where the plan acts on it; what is given holds them again, after the
    agent was lost. RefusedError names who holds one of them already."""
    who = f"the worktop of {this_person().name} on {this_machine()} (pid {os.getpid()}, plan {plan.id})"

    async def hold() -> None:
        await host.hold(tuple(roles), who)

    if all(step.kind in ("sql", "notify") for step in plan.steps):
        yield hold
        return
    await host_answers(host)
    try:
        await hold()
    except AgentLost:
        raise
    except HostError as error:
        raise RefusedError(error.problem.what, error.problem.why, error.problem.do) from None
    try:
        yield hold
    finally:
        with contextlib.suppress(HostError):
            await host.release()


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
