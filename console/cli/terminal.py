"""The terminal of a command that asks and waits: questions beside running sources, and signals that stop it softly."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator

import click

from console.cli.options import ascii_only
from console.view.glyphs import ASCII, UNICODE, Glyphs, to_ascii


def is_terminal() -> bool:
    """A person can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def glyphs() -> Glyphs:
    return ASCII if ascii_only() else UNICODE


def say(text: str) -> None:
    click.echo(to_ascii(text) if ascii_only() else text)


def overwrite(line: str) -> None:
    """The line in place of the last one, on stderr."""
    click.echo(f"\r\x1b[K{to_ascii(line) if ascii_only() else line}", nl=False, err=True)


async def ask_line(question: str) -> str:
    """A line of the terminal, read beside the sources: they go on talking while the person thinks."""
    click.echo(question, nl=False, err=True)
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ready.set)
    try:
        await ready.wait()
        return sys.stdin.readline().strip()
    finally:
        loop.remove_reader(sys.stdin.fileno())


@contextlib.contextmanager
def stopping(stop: asyncio.Event, told: str) -> Iterator[None]:
    """The first signal that would end worktop sets `stop`, and says so; the second one ends it."""
    loop = asyncio.get_running_loop()
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def end(number: signal.Signals) -> None:
        if not stop.is_set():
            stop.set()
            click.echo(f"worktop: {told}", err=True)
            return
        loop.remove_signal_handler(number)
        signal.raise_signal(number)

    for number in ends:
        loop.add_signal_handler(number, end, number)
    pipe = signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a reader that went away must not end it half way
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, pipe)
        for number in ends:
            loop.remove_signal_handler(number)
