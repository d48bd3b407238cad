"""The kernel's socket tables: which inode is at the end of a TCP connection, or across a unix socket. Read only.

TCP from /proc/net/tcp and tcp6 (proc(5)); the peer of a unix socket is only told by netlink (sock_diag(7), unix_diag).
Both need no rights; whose an inode is does (clients.py).
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import sys
from typing import NamedTuple

from console.host import procfs

_LONGEST_TABLE = 32 * 1024 * 1024
_ESTABLISHED = "01"

# linux/netlink.h, linux/sock_diag.h, linux/unix_diag.h
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST_DUMP = 0x1 | 0x300
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_SHOW_NAME, _SHOW_PEER = 1, 4
_ATTRIBUTE_NAME, _ATTRIBUTE_PEER = 0, 2
_UNIX_ESTABLISHED = 1 << 1


class TcpSocket(NamedTuple):
    """The client's end of a connection: its own address and port."""

    address: str
    port: int
    remote_port: int
    uid: int
    inode: int


class UnixSocket(NamedTuple):
    """The server's end of a connection to a unix socket with a path."""

    inode: int
    peer: int
    path: str


def tcp_clients() -> list[TcpSocket]:
    """Every established TCP connection of this network namespace, seen from its local end."""
    found: list[TcpSocket] = []
    for table in ("tcp", "tcp6"):
        data = procfs.read_bytes(f"{procfs.PROC}/self/net/{table}", _LONGEST_TABLE)
        for line in (data or b"").decode("ascii", "replace").split("\n")[1:]:
            fields = line.split()
            if len(fields) < 10 or fields[3] != _ESTABLISHED:
                continue
            try:
                address, port = _endpoint(fields[1])
                _, remote_port = _endpoint(fields[2])
                found.append(TcpSocket(address, port, remote_port, int(fields[7]), int(fields[9])))
            except ValueError:
                continue
    return found


def _endpoint(text: str) -> tuple[str, int]:
    """`0100007F:1538`: the address as words of the machine's byte order, the port in hexadecimal."""
    words, _, port = text.partition(":")
    raw = bytes.fromhex(words)
    if sys.byteorder == "little":
        raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    return plain_address(str(ipaddress.ip_address(raw))), int(port, 16)


def plain_address(text: str) -> str:
    """One form of each address: `::ffff:127.0.0.1` is 127.0.0.1, without prefix length and zone. "" when it is none."""
    try:
        address = ipaddress.ip_address(text.partition("/")[0].partition("%")[0])
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def unix_servers(suffix: str) -> list[UnixSocket]:
    """The accepted connections of sockets whose path ends in `suffix`. OSError when the kernel does not tell."""
    request = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, _UNIX_ESTABLISHED, 0, _SHOW_NAME | _SHOW_PEER, 0, 0)
    header = struct.pack("=IHHII", 16 + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
    found: list[UnixSocket] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as netlink:
        netlink.settimeout(1.0)
        netlink.send(header + request)
        while True:
            data = netlink.recv(1 << 20)
            at = 0
            while at + 16 <= len(data):
                length, kind = struct.unpack_from("=IH", data, at)
                if kind == _NLMSG_DONE:
                    return found
                if kind == _NLMSG_ERROR or length < 16:
                    number = -struct.unpack_from("=i", data, at + 16)[0] if len(data) >= at + 20 else 0
                    raise OSError(number, "sock_diag refused")
                socket_found = _unix(data[at + 16 : at + length], suffix)
                if socket_found is not None:
                    found.append(socket_found)
                at += (length + 3) & ~3
            if not data:
                return found


def _unix(message: bytes, suffix: str) -> UnixSocket | None:
    """struct unix_diag_msg (family, type, state, pad, inode, cookie), then attributes."""
    if len(message) < 16:
        return None
    inode = struct.unpack_from("=I", message, 4)[0]
    path, peer, at = "", 0, 16
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        if length < 4:
            break
        body = message[at + 4 : at + length]
        if kind == _ATTRIBUTE_NAME:
            path = body.rstrip(b"\0").decode("utf-8", "replace")
        elif kind == _ATTRIBUTE_PEER and len(body) >= 4:
            peer = struct.unpack_from("=I", body)[0]
        at += (length + 3) & ~3
    return UnixSocket(inode, peer, path) if peer and path.endswith(suffix) else None
