"""Runs a small program to its end, with a time limit and never left behind."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import DEVNULL, PIPE
from typing import NamedTuple


class Output(NamedTuple):
    status: int | None  # None: it could not be started, or was ended after the time limit
    out: bytes = b""
    err: bytes = b""


async def output_of(command: list[str], seconds: float) -> Output:
    """What the program wrote. Nothing is raised: a program that is not there has status None."""
    try:
        child = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    except OSError as error:
        return Output(None, err=(error.strerror or str(error)).encode())
    try:
        async with asyncio.timeout(seconds):
            out, err = await child.communicate()
        return Output(child.returncode, out, err)
    except TimeoutError:
        return Output(None, err=f"no answer within {seconds:g} s".encode())
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
