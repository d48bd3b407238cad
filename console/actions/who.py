"""Who acts, and on what machine."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Mapping
from pathlib import Path

from console.fleet.plan import Actor

_UNSET = 2**32 - 1  # audit(7): nobody logged in


def this_person(environment: Mapping[str, str] = os.environ, proc: Path = Path("/proc")) -> Actor:
    """The login account (kept by the kernel through su and sudo), SUDO_USER, and the account worktop runs as."""
    try:
        login = int((proc / "self/loginuid").read_text())
    except (OSError, ValueError):  # no audit in this kernel, or no /proc
        login = _UNSET
    uid = os.geteuid()
    return Actor(
        login=account(login) if login != _UNSET else "",
        sudo=environment.get("SUDO_USER", ""),
        user=account(uid),
        uid=uid,
    )


def account(uid: int) -> str:
    """The name of an account, its number when it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def this_machine() -> str:
    return socket.gethostname()
