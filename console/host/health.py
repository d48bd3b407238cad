"""The health check of a role: a command or an HTTP address, asked within a few seconds, when a person diagnoses.

It is never a part of anything that changes something. A command comes from the console, and the agent may have more
rights than the person at it (sudo). So an agent that runs as root runs only what its own /etc/worktop/worktop.toml
says, which must belong to root, and runs it as the account of the worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import signal
import stat
import time
import urllib.parse
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from pathlib import Path

from console.errors import WorktopError
from console.fleet.diagnosis.model import Health
from console.fleet.model import Role
from console.host import children
from console.host.secrets import masked_command, masked_text

SECONDS = 5.0
_OUTPUT = 4096  # bytes that are read
ROOTS_FILE = Path("/etc/worktop/worktop.toml")


async def check(role: Role, instance: str, account: str, read_only: bool) -> Health | None:
    """What the role's check says of one worker; None when it has none that a host can run. Raises nothing.

    `account`: the worker's, "" not known; `instance` stands for %i.
    """
    asked = role.health
    if not asked or asked == ("finishes jobs",):
        return None
    started = time.monotonic()
    if len(asked) == 1 and asked[0].startswith(("http://", "https://")):
        address = _filled(asked[0], urllib.parse.quote(instance, safe=""))
        try:
            async with asyncio.timeout(SECONDS + 1.0):
                ok, text = await asyncio.to_thread(_get, address)
        except TimeoutError:
            ok, text = False, f"no answer within {SECONDS:g} s"
        return Health(check=masked_text(address), ok=ok, text=text, took=round(time.monotonic() - started, 2))
    command = [_filled(word, instance) for word in asked]
    shown = " ".join(masked_command(tuple(command)))
    if read_only:
        return Health(check=shown, text="an agent that was started with --read-only runs no command")
    refused = _refusal(role) if os.geteuid() == 0 else ""
    if refused:
        return Health(check=shown, text=refused)
    answer = await _run(command, account)
    return Health(check=shown, ok=answer[0], text=answer[1], took=round(time.monotonic() - started, 2))


def _filled(text: str, instance: str) -> str:
    return text.replace("%%", "\0").replace("%i", instance).replace("\0", "%")


def _refusal(role: Role) -> str:
    """Why root does not run it; "" when it does."""
    from console.config import parse

    try:
        status = ROOTS_FILE.stat()
        if status.st_uid != 0 or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"an agent that runs as root runs only what {ROOTS_FILE} says, and others may write that file"
        configured = parse(ROOTS_FILE.read_text(encoding="utf-8"), str(ROOTS_FILE))
    except (OSError, UnicodeDecodeError, WorktopError):
        return f"an agent that runs as root runs only what {ROOTS_FILE} says, and that cannot be read"
    if not any(each.name == role.name and each.health == role.health for each in configured.roles):
        return f"an agent that runs as root runs only what {ROOTS_FILE} says, and that says something else"
    return ""


async def _run(command: list[str], account: str) -> tuple[bool | None, str]:
    """Run it to its end, as the account when this is root; whether it ended with 0, and what it said last."""
    user: int | None = None
    group: int | None = None
    groups: list[int] | None = None
    environment = children.environment()
    if os.geteuid() == 0 and account != "root":
        try:
            entry = pwd.getpwnam(account)
        except KeyError:
            return None, f"there is no account {account!r} to run it as"
        user, group, groups = entry.pw_uid, entry.pw_gid, os.getgrouplist(account, entry.pw_gid)
        environment |= {"HOME": entry.pw_dir, "USER": account, "LOGNAME": account}
    try:
        child = await asyncio.create_subprocess_exec(
            *command,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            env=environment,
            cwd="/",
            start_new_session=True,
            user=user,
            group=group,
            extra_groups=groups,
        )
    except (OSError, ValueError) as error:
        return False, f"it cannot be run: {getattr(error, 'strerror', None) or error}"
    assert child.stdout is not None
    try:
        async with asyncio.timeout(SECONDS):
            said = b""
            while data := await child.stdout.read(_OUTPUT):
                said = (said + data)[-_OUTPUT:]
            status = await child.wait()
    except TimeoutError:
        return False, f"it did not end within {SECONDS:g} s"
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)  # its session: what it started ends with it
        await children.end(child)
    lines = [line.strip() for line in masked_text(said.decode("utf-8", "replace")).splitlines() if line.strip()]
    last = f": {lines[-1][:200]}" if lines else ""
    how = f"exit status {status}" if status >= 0 else f"killed by signal {-status}"
    return status == 0, f"{how}{last}"


def _get(address: str) -> tuple[bool, str]:
    """GET; 2xx and 3xx are healthy. Only the status is told, nothing of what was answered."""
    parts = urllib.parse.urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return False, "that is no http(s) address"
    import http.client  # takes OpenSSL with it: 4 MB, where the health of no role is asked by HTTP

    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection: http.client.HTTPConnection | None = None
    try:
        connection = kind(parts.hostname, parts.port, timeout=SECONDS)
        path = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        connection.request("GET", path, headers={"User-Agent": "worktop", "Connection": "close"})
        answer = connection.getresponse()
        return 200 <= answer.status < 400, f"HTTP {answer.status} {answer.reason}"[:80]
    except (OSError, http.client.HTTPException, ValueError) as error:
        return False, f"no answer: {getattr(error, 'strerror', None) or str(error) or type(error).__name__}"[:200]
    finally:
        if connection is not None:
            connection.close()
