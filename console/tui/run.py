"""Starting and ending the console. Textual is imported only when the terminal is fit and the feed is on its way."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from console import heap
from console.errors import EXIT_FAILED, EXIT_USAGE
from console.tui.feed import Feed
from console.tui.terminal import Guard, flush, lingering_threads, refusal, speaks_utf8, theme_for
from console.view.glyphs import to_ascii

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

END_WITHIN = 0.9  # seconds from the wish to leave to the end of the process, whatever hangs
CRASH_WITHIN = 3.0  # a crash has a log to write
_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT)


def run_console(feed_factory: Callable[[], Feed], *, mouse: bool = True) -> int:
    """Run the console on a feed until the person leaves; the exit status.

    0 left, 1 the console failed (one line and a crash log say how), 2 no terminal it could draw on, 128 + n ended by
    signal n. `feed_factory` is called before Textual is imported, so that sources start meanwhile; what it raises is
    passed on. The end takes at most a second; where threads or a blocked call would hold the process after that, it
    is ended hard with the same status.
    """
    reason = refusal(os.environ)
    if reason is not None:
        print(f"worktop: {reason}", file=sys.stderr)  # noqa: T201  there is no console to say it in
        return EXIT_USAGE
    heap.keep_small()
    unicode = speaks_utf8(os.environ)
    _prepare_output(unicode)
    feed = feed_factory()

    no_color = bool(os.environ.get("NO_COLOR"))
    from console.tui.app import ConsoleApp

    guard = Guard()
    app = ConsoleApp(
        feed,
        unicode=unicode,
        no_color=no_color,
        theme=theme_for(os.environ),
        on_end=lambda status: guard.end_within(CRASH_WITHIN if status == EXIT_FAILED else END_WITHIN, status),
    )
    # What was imported stays: a full collection that walked through it each time would hold up a key by 0.1 s.
    gc.freeze()
    fault: BaseException | None = None
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _, context: _tell_of_background(app, context))
    with _signals_end(loop, app.exit, guard) as ended_by, _quiet_threads(loop, app.exit):
        try:
            loop.run_until_complete(app.run_async(mouse=mouse))
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  told below, in one line
            fault = error
            guard.restore()
        finally:
            _cancel_rest(loop)
    fault = app.fault or fault
    if ended_by:
        status = 128 + ended_by[0]
    elif fault is not None:
        status = EXIT_FAILED
    else:
        status = app.return_code or 0
    if fault is not None and not ended_by:
        from console.tui.crash import crash_line

        line = crash_line(fault, os.environ)
        with contextlib.suppress(OSError):
            print(line if unicode else to_ascii(line), file=sys.stderr)  # noqa: T201
    flush()
    if lingering_threads():
        os._exit(status)
    guard.ended()
    return status


def _prepare_output(unicode: bool) -> None:
    """No character may break the thread that writes to the terminal, whatever PYTHONIOENCODING says."""
    stream = sys.__stderr__
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8" if unicode else "ascii", errors="replace")


def _tell_of_background(app: ConsoleApp, context: dict[str, Any]) -> None:
    """A task that nobody waits for failed: the console goes on, says so, and keeps the traceback."""
    error = context.get("exception")
    if not isinstance(error, BaseException) or not app.is_running:
        return
    from console.tui.crash import crash_line

    line = crash_line(error, os.environ, what="something in the background failed")
    app.call_later(app.tell, line)


@contextlib.contextmanager
def _signals_end(loop: asyncio.AbstractEventLoop, leave: Callable[..., None], guard: Guard) -> Iterator[list[int]]:
    """While it lasts, the signals that end a process end the console; yields the list of those that came.

    Handlers of the interpreter, not of the loop: they also run while a callback holds the loop.
    """
    came: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        came.append(number)
        guard.end_within(END_WITHIN, 128 + number)
        with contextlib.suppress(RuntimeError):  # the loop has ended already
            loop.call_soon_threadsafe(leave, None, 128 + number)

    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _quiet_threads(loop: asyncio.AbstractEventLoop, leave: Callable[..., None]) -> Iterator[None]:
    """A thread that cannot write to the terminal any more ends the console, without a traceback on the screen."""
    before = threading.excepthook

    def hook(arguments: threading.ExceptHookArgs) -> None:
        if arguments.thread is not None and arguments.thread.name == "textual-output":
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(leave, None, 128 + signal.SIGHUP)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before


def _cancel_rest(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what still runs and give it a moment; the threads of the loop's executor are not waited for."""
    rest = asyncio.all_tasks(loop)
    for task in rest:
        task.cancel()
    with contextlib.suppress(Exception):
        if rest:
            loop.run_until_complete(asyncio.wait(rest, timeout=0.2))
        loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
