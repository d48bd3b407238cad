"""When a console in a pilot has done what a key asked for: seen from its loop, not guessed from the processor's time.

Textual's pilot sleeps for a fiftieth of a second after each key, twice, and again in every pause, and takes the console
for idle when the process has used no time meanwhile. With thousands of keys those sleeps were half of what these tests
took, and what worked in another thread was not waited for. Here the end is known: nothing is ready to run in the loop,
no thread works for it, and nothing is due within a frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import pytest
from textual._context import active_app
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

FRAME = 1 / 60  # seconds: Textual paints that often, and what is due sooner belongs to what was asked for
_LOOK = 0.001  # seconds between two looks at threads
_THREAD = 10.0  # seconds
_in_threads: WeakSet[asyncio.Future[Any]] = WeakSet()


async def settled(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Return when nothing is going on; in place of Textual's wait_for_idle.

    What keeps painting, such as a countdown, is given `max_sleep` seconds, a thread `_THREAD` more.
    """
    loop: Any = asyncio.get_running_loop()
    end = loop.time() + max_sleep
    while True:
        await asyncio.sleep(0)
        working = any(future.get_loop() is loop for future in _in_threads)
        if working and loop.time() < end + _THREAD:
            await asyncio.sleep(_LOOK)
        elif loop.time() > end:
            return
        elif loop._ready:
            continue
        elif _unpainted():
            await asyncio.sleep(_LOOK)
        elif (due := _next(loop)) <= loop.time() + FRAME:
            await asyncio.sleep(max(0, due - loop.time()))
        else:
            return


def _unpainted() -> bool:
    """The screen is to be laid out or painted by the timer that does it."""
    app = active_app.get(None)
    screen: Any = app.screen_stack[-1] if app is not None and app.is_running and app.screen_stack else None
    return screen is not None and bool(
        screen._layout_required or screen._scroll_required or screen._repaint_required or screen._dirty_widgets
    )


def _next(loop: Any) -> float:
    """When the next timer is due, in the loop's time."""
    return min((timer.when() for timer in loop._scheduled if not timer.cancelled()), default=float("inf"))


@contextmanager
def quick_pilots() -> Iterator[None]:
    """Keys and pauses of a pilot end when the console has settled, and a style sheet is parsed once, not by each of
    some four hundred consoles."""
    in_thread, parse = asyncio.BaseEventLoop.run_in_executor, Stylesheet._parse_rules
    parsed: dict[object, list[RuleSet]] = {}

    def noted(self: Any, executor: Any, function: Any, *args: Any) -> asyncio.Future[Any]:
        future = in_thread(self, executor, function, *args)
        _in_threads.add(future)
        future.add_done_callback(_in_threads.discard)
        return future

    def parsed_once(self: Stylesheet, *args: Any, **named: Any) -> list[RuleSet]:
        key = (frozenset(self._variables.items()), args, frozenset(named.items()))
        if key not in parsed:
            parsed[key] = parse(self, *args, **named)
        return parsed[key]

    async def screen_settled(self: Any, timeout: float = 30) -> bool:
        await settled()
        return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.BaseEventLoop, "run_in_executor", noted)
        patch.setattr(Stylesheet, "_parse_rules", parsed_once)
        patch.setattr("textual.pilot.Pilot._wait_for_screen", screen_settled)
        patch.setattr("textual.pilot.wait_for_idle", settled)
        patch.setattr("textual.app.wait_for_idle", settled)
        patch.setattr("textual.screen.UPDATE_PERIOD", 1 / 500)
        yield
