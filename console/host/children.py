"""Runs a small program to its end, with limits of time and size, and never left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
from asyncio.subprocess import DEVNULL, PIPE
from typing import NamedTuple

LONGEST = 16 * 1024 * 1024  # bytes of output
_LONGEST_ERROR = 64 * 1024
_END_SECONDS = 2.0


class Output(NamedTuple):
    status: int | None  # None: it could not be started, or was ended after the limit of time or size
    out: bytes = b""
    err: bytes = b""


async def output_of(command: list[str], seconds: float, longest: int = LONGEST) -> Output:
    """What the program wrote, in the C locale and UTC. Raises nothing: a program that is not there has status None."""
    try:
        child = await asyncio.create_subprocess_exec(
            *command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=environment()
        )
    except OSError as error:
        return Output(None, err=(error.strerror or str(error)).encode())
    assert child.stdout is not None and child.stderr is not None
    try:
        async with asyncio.timeout(seconds):
            out, err = await asyncio.gather(_read(child.stdout, longest), _read(child.stderr, _LONGEST_ERROR))
            if len(out) > longest:
                return Output(None, out[:longest], f"more than {longest} bytes".encode())
            await child.wait()
        return Output(child.returncode, out, err)
    except TimeoutError:
        return Output(None, err=f"no answer within {seconds:g} s".encode())
    finally:
        await end(child)


def environment() -> dict[str, str]:
    """The agent's own, but messages and times as they are read here."""
    return {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC", "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": ""}


async def end(child: asyncio.subprocess.Process) -> None:
    """Kill it if it still runs, and wait until it is gone.

    asyncio takes it for gone when its pipes have been read to their ends, so what nobody wants any more is read too.
    """
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
    streams = [stream for stream in (child.stdout, child.stderr) if stream is not None]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_END_SECONDS):  # a grandchild may hold a pipe open
            await asyncio.gather(*(_drain(stream) for stream in streams), child.wait())


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(65536):
        pass


async def _read(stream: asyncio.StreamReader, longest: int) -> bytes:
    """Everything up to the end, or a little more than `longest` bytes."""
    parts: list[bytes] = []
    size = 0
    while size <= longest:
        data = await stream.read(65536)
        if not data:
            break
        parts.append(data)
        size += len(data)
    return b"".join(parts)
