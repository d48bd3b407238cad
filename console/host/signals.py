"""Signals to exactly one process, and waiting for its end: a pidfd cannot come to mean another process.

The order is what makes it safe (pidfd_open(2)): the pidfd is opened first, then the identity of whoever has the pid is
compared. If the process has ended in between and its pid was given away, either the start time differs, or the pidfd
is that of the dead one and the signal is refused with ESRCH.
"""

from __future__ import annotations

import asyncio
import os
import signal

from console.errors import HostError
from console.fleet.model import Ident
from console.host import procfs

_MORE_RIGHTS = "run the agent with more rights: agent in [host]"


def send(ident: Ident, name: str) -> None:
    """Send the signal ("TERM") to this process. HostError: it is gone, is another, or must not be signalled."""
    number = number_of(name)
    what = f"signal {name} to pid {ident.pid}"
    refusal = _protected(ident.pid)
    if refusal:
        raise HostError(what, refusal)
    handle = _open(ident, what)
    if handle is None:
        raise HostError(what, _gone(ident), "look at it again")
    try:
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        raise HostError(what, f"pid {ident.pid} has ended", "look at it again") from None
    except PermissionError:
        raise HostError(what, "not permitted: it belongs to another account", _MORE_RIGHTS) from None
    finally:
        os.close(handle)


async def wait_gone(ident: Ident, timeout: float) -> bool:
    """Whether this process has ended within `timeout` seconds; one whose pid is another's now has."""
    handle = _open(ident, f"wait for pid {ident.pid}")
    if handle is None:
        return True
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    try:
        loop.add_reader(handle, ended.set)  # a pidfd becomes readable when its process ends
        try:
            async with asyncio.timeout(timeout):
                await ended.wait()
        except TimeoutError:
            return False
        return True
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def number_of(name: str) -> signal.Signals:
    """`TERM` or `SIGTERM` -> the signal. HostError when there is none of that name."""
    short = name.upper().removeprefix("SIG")
    found = signal.Signals.__members__.get(f"SIG{short}")
    if found is None:
        raise HostError(f"signal {name[:20]}", "there is no such signal", "TERM, INT, HUP, QUIT, KILL, STOP, CONT, …")
    return found


def _protected(pid: int) -> str:
    """Why this pid is never signalled; "" when it may be."""
    if pid <= 1:
        return "pid 1 is the system's manager" if pid == 1 else "that is no process"
    if pid == os.getpid():
        return "that is worktop's own agent"
    stats = procfs.stat(os.getpid())
    above, seen = (stats.ppid if stats else 0), set[int]()
    while above > 1 and above not in seen:
        if above == pid:
            return "worktop's own agent runs below it"
        seen.add(above)
        stats = procfs.stat(above)
        above = stats.ppid if stats else 0
    return ""


def _open(ident: Ident, what: str) -> int | None:
    """A pidfd of exactly this process; None when it has ended."""
    if ident.boot_id != procfs.boot_id():
        return None
    try:
        handle = os.pidfd_open(ident.pid)
    except ProcessLookupError:
        return None
    except (OSError, OverflowError, ValueError) as error:
        raise HostError(what, f"no pidfd: {getattr(error, 'strerror', None) or error}") from error
    try:
        stat = procfs.stat(ident.pid)
        if stat is None and procfs.hidden():
            raise HostError(what, "it belongs to another account and is hidden from this one", _MORE_RIGHTS)
        if stat is not None and stat.start == ident.start and stat.state not in ("Z", "X"):
            kept, handle = handle, -1
            return kept
        return None
    finally:
        if handle >= 0:
            os.close(handle)


def _gone(ident: Ident) -> str:
    if ident.boot_id != procfs.boot_id():
        return "the host has booted again since it was seen"
    stat = procfs.stat(ident.pid)
    if stat is None or stat.start == ident.start:
        return f"pid {ident.pid} has ended"
    return f"pid {ident.pid} is another process now ({stat.name})"
