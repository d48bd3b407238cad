"""Calling a handler: async ones as a task of the event loop, all others in a thread of their own."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import traceback
from typing import Any

from console.worker.handlers import ClaimedJob, Handler

ERROR_KEPT = 4096  # characters of a traceback; its end says most


class HandlerLeft(Exception):
    """The handler called sys.exit() or the like: that ends its job, not the worker."""


def call(handler: Handler, job: ClaimedJob) -> asyncio.Future[Any]:
    """The running handler; a Task when it is async. Its exceptions are Exceptions, whatever it raises."""
    if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__):
        return asyncio.ensure_future(_in_loop(handler, job))
    return _in_thread(handler, job)


def told(error: BaseException) -> str:
    """The error with the handler's own frames, the end of it."""
    cause = error.__cause__ if isinstance(error, HandlerLeft) and error.__cause__ else error
    frames = cause.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename in _OWN_FILES:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(cause), cause, frames))[-ERROR_KEPT:]


_OWN_FILES = {__file__, __file__.replace("calls.py", "worker.py")}


async def _in_loop(handler: Handler, job: ClaimedJob) -> Any:
    try:
        return await handler(job)
    except (SystemExit, KeyboardInterrupt) as error:
        raise HandlerLeft(repr(error)) from error


def _in_thread(handler: Handler, job: ClaimedJob) -> asyncio.Future[Any]:
    """Run it in a daemon thread: a handler that never returns cannot keep the process from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: Exception | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def work() -> None:
        result: Any = None
        failure: Exception | None = None
        try:
            result = handler(job)
        except BaseException as error:  # noqa: BLE001 - also SystemExit, and StopIteration that no future takes
            failure = error if isinstance(error, Exception) and not isinstance(error, StopIteration) else _left(error)
        with contextlib.suppress(RuntimeError):  # the loop has ended: the job was left to its lease
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=work, name=f"job {job.id}", daemon=True).start()
    return future


def _left(error: BaseException) -> HandlerLeft:
    left = HandlerLeft(repr(error))
    left.__cause__ = error
    return left
