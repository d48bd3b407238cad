"""A question to the feed that takes a while: asked, answered, or refused with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from console.errors import Problem, WorktopError

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp
    from console.tui.screens.choice import ChoiceScreen

T = TypeVar("T")


class Asked(Generic[T]):
    """The last answer to a question; `changed` is called on the event loop when it is asked, answered or refused.

    An answer stays while it is asked again. What is no WorktopError is a fault of the console: it is told, kept in the
    crash log, and shown as the problem.
    """

    def __init__(self, app: ConsoleApp, changed: Callable[[], None]) -> None:
        self._app = app
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self.value: T | None = None
        self.problem: Problem | None = None
        self.taken: float | None = None  # when the value came

    @property
    def asking(self) -> bool:
        return self._task is not None and not self._task.done()

    def ask(self, question: Callable[[], Awaitable[T]]) -> None:
        """Ask; an older question that has no answer yet is given up."""
        self.stop()
        self._task = self._app.background(self._wait(question), "ask the sources")
        self._changed()

    def stop(self) -> None:
        """No answer is wanted any more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _wait(self, question: Callable[[], Awaitable[T]]) -> None:
        try:
            value = await question()
        except WorktopError as error:
            self.problem = error.problem
        except Exception as error:  # noqa: BLE001  shown, and kept in the crash log
            self.problem = Problem("ask", "something went wrong in the console", "ctrl+r asks again")
            self._app.tell_fault(error)
        else:
            self.value, self.problem, self.taken = value, None, self._app.clock()
        self._task = None
        self._changed()


async def answer_of(app: ConsoleApp, window: ChoiceScreen) -> str | None:
    """What a window is dismissed with; when nobody waits for the answer any more the window goes."""
    answered: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def take(answer: str | None) -> None:
        if not answered.done():
            answered.set_result(answer)

    await app.push_screen(window, take)
    try:
        return await answered
    finally:
        if window.is_current and answered.cancelled():
            window.dismiss(None)
