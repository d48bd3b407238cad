"""Which processes of this host are at the other end of the database's connections.

The database knows a client by its address and port, or, over a unix socket, by nothing. The connection is looked for
among this host's sockets, its inode among the descriptors of the processes. A connection to 127.0.0.1 or to a unix
socket begins on the database's own host: it is looked for only when the server's process of that connection runs here.

What cannot be seen is said, not guessed: descriptors of other accounts are readable for root alone, and a client behind
NAT, a tunnel or in a container's own network does not appear under its address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import time
from collections.abc import AsyncIterator, Iterable, Iterator

from console.fleet.model import Backend, DatabaseClient, Ident
from console.fleet.ownership import unit_of
from console.host import procfs
from console.host.processes import Scanner
from console.host.sockets import TcpSocket, plain_address, tcp_clients, unix_servers

_SLICE_SECONDS = 0.01
_SERVERS = frozenset({"postgres", "postmaster"})
_MOST_DESCRIPTORS = 65536  # of one process
_INODE = re.compile(r"socket:\[(\d+)\]\Z")


async def clients_of(backends: Iterable[Backend], server_port: int, scanner: Scanner) -> tuple[DatabaseClient, ...]:
    """At least one for every backend whose client may be seen by the database. Raises nothing."""
    asked = [each for each in backends if not each.own and not each.hidden]
    ends: dict[int, int] = {}  # pid of the backend: inode of the client's end; 0: not told
    owners: dict[int, int] = {}  # inode: uid
    elsewhere: list[Backend] = []
    local: list[Backend] = []
    connections = {(end.address, end.port): end for end in _to(tcp_clients(), server_port)}
    for backend in asked:
        if not backend.address:
            (local if _runs_here(backend.pid) else elsewhere).append(backend)
            continue
        address = plain_address(backend.address)
        end = connections.get((address, backend.port or 0))
        if end is None or (_loopback(address) and not _runs_here(backend.pid)):
            elsewhere.append(backend)
            continue
        ends[backend.pid] = end.inode
        owners[end.inode] = end.uid
    peers = _peers(server_port) if local else {}
    servers = {}
    if local:
        async for pid, inode in _holders({backend.pid for backend in local}, set(peers)):
            servers[pid] = inode
    for backend in local:
        ends[backend.pid] = peers.get(servers.get(backend.pid, 0), 0)
    # the server's own descriptors are not readable: whoever is connected to its socket may be it
    unsure = set(peers.values()) - set(ends.values()) if any(not ends[backend.pid] for backend in local) else set()
    wanted = {inode for inode in ends.values() if inode} | unsure
    holders: dict[int, set[int]] = {}
    if wanted:
        async for pid, inode in _holders(procfs.pids(), wanted):
            holders.setdefault(inode, set()).add(pid)
    found = [DatabaseClient(backend=each.pid, port=each.port or 0, here=False) for each in elsewhere]
    for backend in asked:
        if backend.pid in ends:
            inode = ends[backend.pid]
            found += _described(backend.pid, backend.port or 0, holders.get(inode, ()), owners.get(inode, -1), scanner)
    for inode in sorted(unsure):
        found += _described(0, 0, holders.get(inode, ()), -1, scanner)
    return tuple(found)


def _to(connections: list[TcpSocket], server_port: int) -> Iterator[TcpSocket]:
    return (each for each in connections if not server_port or each.remote_port == server_port)


def _loopback(address: str) -> bool:
    return bool(address) and ipaddress.ip_address(address).is_loopback


def _runs_here(pid: int) -> bool:
    stat = procfs.stat(pid)
    return stat is not None and stat.name in _SERVERS


def _peers(server_port: int) -> dict[int, int]:
    """The server's end of each connection to its unix socket: the client's end."""
    try:
        return {each.inode: each.peer for each in unix_servers(f"/.s.PGSQL.{server_port or 5432}")}
    except OSError:
        return {}


class _Pause:
    """Lets others have the event loop after every _SLICE_SECONDS."""

    def __init__(self) -> None:
        self._until = time.monotonic() + _SLICE_SECONDS

    async def here(self) -> None:
        if time.monotonic() > self._until:
            await asyncio.sleep(0)
            self._until = time.monotonic() + _SLICE_SECONDS


async def _holders(pids: Iterable[int], inodes: set[int]) -> AsyncIterator[tuple[int, int]]:
    """(pid, inode) of every process that has one of the inodes open, as far as may be seen."""
    pause = _Pause()
    for pid in sorted(pids):
        await pause.here()
        try:
            with os.scandir(f"{procfs.PROC}/{pid}/fd") as entries:
                names = [entry.name for _, entry in zip(range(_MOST_DESCRIPTORS), entries, strict=False)]
        except OSError:
            continue
        for name in names:
            try:
                target = os.readlink(f"{procfs.PROC}/{pid}/fd/{name}")  # noqa: PTH115  thousands of them
            except OSError:
                continue
            found = _INODE.match(target)
            if found and int(found[1]) in inodes:
                yield pid, int(found[1])


def _described(backend: int, port: int, pids: Iterable[int], uid: int, scanner: Scanner) -> Iterator[DatabaseClient]:
    """Every process that has the client's end open: a child may have it from its parent."""
    seen = False
    for pid in sorted(pids):
        stat, uid_now = procfs.stat(pid), procfs.user_id(pid)
        if stat is None or stat.state in ("Z", "X"):
            continue
        seen = True
        yield DatabaseClient(
            backend=backend,
            port=port,
            ident=Ident(scanner.boot_id, pid, stat.start),
            name=stat.name,
            user=scanner.account(-1 if uid_now is None else uid_now),
            unit=unit_of(procfs.cgroup(pid) or ""),
        )
    if not seen:
        yield DatabaseClient(backend=backend, port=port, user=scanner.account(uid) if uid >= 0 else "")
