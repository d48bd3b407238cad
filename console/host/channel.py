"""The agent's stdin and stdout as lines, for every kind of descriptor (pipe, socket, terminal, file, /dev/null).

Two threads do the blocking calls, so a console that stops reading stops neither SIGTERM nor the end of stdin.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Callable

from console.errors import HostError
from console.host.protocol import LONGEST_REQUEST, Lines

WAITING_AT_MOST = 8 * 1024 * 1024  # bytes that wait for the console; more is not told until it reads again

BUSY_FROM = 256 * 1024


class Channel:
    """`said` gets each line (or the HostError of one), `ended` is called once when either side closes."""

    def __init__(self, said: Callable[[bytes | HostError], None], ended: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._said = said
        self._ended = ended
        self._out: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._waiting = 0
        self._written = asyncio.Event()
        self._lock = threading.Lock()
        for work, name in ((self._read, "stdin"), (self._write, "stdout")):
            threading.Thread(target=work, name=name, daemon=True).start()

    @property
    def full(self) -> bool:
        """The console does not keep up: tell it nothing until it has read."""
        return self._waiting > WAITING_AT_MOST

    @property
    def busy(self) -> bool:
        """It has not read for a moment: what can wait (log lines) should."""
        return self._waiting > BUSY_FROM

    def send(self, line: bytes) -> None:
        with self._lock:
            self._waiting += len(line)
        self._out.put(line)

    async def drained(self, timeout: float) -> None:
        """Until everything has been written, or for `timeout` seconds."""
        self._out.put(b"")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._written.wait()

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop is closed: the agent is ending
            return

    def _read(self) -> None:
        lines = Lines(LONGEST_REQUEST)
        while True:
            try:
                data = os.read(0, 65536)
            except OSError:
                data = b""
            if not data:
                self._call(self._ended)
                return
            try:
                complete = lines.feed(data)
            except HostError as error:
                self._call(self._said, error)
                self._call(self._ended)
                return
            for line in complete:
                self._call(self._said, line)

    def _write(self) -> None:
        while True:
            line = self._out.get()
            if not line:
                self._call(self._written.set)
            rest = memoryview(line)
            while rest:
                try:
                    rest = rest[os.write(1, rest) :]
                except OSError:
                    self._call(self._ended)
                    return
            with self._lock:
                self._waiting -= len(line)
