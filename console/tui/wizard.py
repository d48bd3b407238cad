"""A run of a playbook in the console: one step after another is shown, done, or taken back, beside the screens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from console.errors import ConfigError, Problem, RefusedError, WorktopError
from console.fleet.plan import Plan, Progress
from console.playbook.model import BackView, StepEnd, StepView, Telling
from console.tui.books import BookRun, Books, OnAgree
from console.view.wizard import Doing, Moment, begun

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

_REPORT_AT_MOST = 200_000  # bytes that are shown
_DEFECT = Problem("the step", "a defect of worktop stopped it", "ctrl+r shows how far it came")
_LEFT = Problem("the run", "it was left", "Enter takes it up again")


class Wizard:
    """One run. At most one task uses it at a time: while it is `busy`, nothing else is begun."""

    def __init__(
        self, app: ConsoleApp, books: Books, opening: Callable[[], Awaitable[BookRun]], *, title: str, role: str = ""
    ) -> None:
        """`opening` begins the run or takes it up."""
        self._app = app
        self._books = books
        self._opening = opening
        self._run: BookRun | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._closes = False  # as soon as what goes on has ended
        self._on_close: Callable[[], None] = lambda: None
        self.moment = Moment(title=title, role=role)
        self.shown_at = 0.0  # when the step was looked at
        self.agreeing: OnAgree | None = None  # asks the person in the middle of a step

    @property
    def busy(self) -> bool:
        """Something goes on with it."""
        return self._task is not None and not self._task.done()

    @property
    def doing(self) -> Doing | None:
        return self.moment.doing

    def follows(self, run: str) -> bool:
        """It holds the run with this id."""
        return self._run is not None and self._run.status.run == run

    # --- looking -----------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Look at the next step, or at how it ended; a run that is not there yet is begun or taken up first."""
        if not self.busy:
            self._begin(self._look(), "look at a step")

    async def look_anew(self) -> StepView:
        """The next step as it is now. WorktopError."""
        run = self._run
        if run is None or self.doing is not None:
            raise RefusedError("the step", "it is being done now", "Esc goes back")
        view = await run.show()
        self.shown_at = self._app.clock()
        self._become(view=view, end=None, status=run.status)
        return view

    async def _look(self) -> None:
        self._become(asking=True, problem=None)
        try:
            if self._run is None:
                self._run = await self._opening()
                self._opening = partial(self._books.resume, self._run.status.run)
            run = self._run
            status = run.status
            self._become(title=run.book.title, role=status.role, status=status, steps=run.book.steps)
            if self.moment.over:
                self._become(view=None, end=None, report=await asyncio.to_thread(_read, status.report))
            else:
                await self.look_anew()
        except WorktopError as error:
            self._become(problem=error.problem)
        finally:
            self._become(asking=False)

    # --- doing -------------------------------------------------------------------------------------------------------

    def go(self, view: StepView, typed: str = "", why: str = "") -> None:
        """Do the step that was shown."""
        plan = view.shown.plan if view.shown is not None else None

        async def done(run: BookRun) -> StepEnd:
            return await run.go(
                view, typed=typed, why=why, on_progress=self._heard, on_question=self._app.desk.answer,
                on_agree=self.agreeing, stop=self._stop,
            )  # fmt: skip

        self._do(begun(view.step.number, self._app.clock(), plan), done)

    def skip(self, view: StepView) -> None:
        """Pass over the step."""
        self._do(begun(view.step.number, self._app.clock()), lambda run: run.skip(view))

    async def look_back(self) -> BackView:
        """What takes the last step back. WorktopError."""
        if self._run is None:
            raise RefusedError("take back", _LEFT.why, _LEFT.do)
        if self.busy:
            raise RefusedError("take back", "something goes on with the run", "wait until it has ended")
        return await self._run.show_back()

    def go_back(self, view: BackView, typed: str = "", why: str = "") -> None:
        """Take back the step that was shown."""
        plan = view.plans[0] if view.plans else None

        async def done(run: BookRun) -> StepEnd:
            return await run.back(
                view, typed=typed, why=why, on_progress=self._heard, on_question=self._app.desk.answer, stop=self._stop
            )

        self._do(begun(view.step.number, self._app.clock(), plan, back=True), done)

    def edit(self, path: str, text: str) -> None:
        """Another text for a file that the step installs; the step is shown anew."""
        run = self._run
        if run is None or self.busy:
            return

        async def work() -> None:
            try:
                await run.edit(path, text)
            except WorktopError as error:
                self._become(problem=error.problem)
                return
            await self._look()

        self._begin(work(), "edit a draft")

    def _do(self, doing: Doing, work: Callable[[BookRun], Awaitable[StepEnd]]) -> None:
        if self._run is None or self.busy:
            return
        self._stop = asyncio.Event()
        self._become(doing=doing, problem=None)
        self._begin(self._done(self._run, work), "a step of a playbook")

    async def _done(self, run: BookRun, work: Callable[[BookRun], Awaitable[StepEnd]]) -> None:
        try:
            end = await work(run)
            status = run.status
            report = await asyncio.to_thread(_read, status.report) if status.report else ""
            self._become(end=end, view=None, status=status, report=report)
        except WorktopError as error:
            self._become(problem=error.problem, view=None)
        except Exception as error:  # noqa: BLE001  shown, and kept in the crash log
            self._become(problem=_DEFECT, view=None)
            self._app.tell_fault(error)
        finally:
            self._become(doing=None)
            if self._closes:
                self._close()
        self._app.background(self._app.feed.refresh(), "refresh after a step")

    def _heard(self, news: Telling | Progress) -> None:
        if self.doing is not None:
            self._become(doing=self.doing.told(news, self._app.clock()))

    # --- its end -----------------------------------------------------------------------------------------------------

    def abandon(self) -> None:
        """Give the run up; what was done stays."""
        run = self._run
        if run is None or self.busy:
            return
        try:
            self._become(status=run.abandon(), view=None, end=None)
        except WorktopError as error:
            self._become(problem=error.problem)

    def stop(self) -> None:
        """Let what goes on end after what it is in."""
        self._stop.set()
        if self.doing is not None:
            self._become(doing=msgspec.structs.replace(self.doing, stopping=True))

    def leave(self, then: Callable[[], None] = lambda: None) -> None:
        """Let go of the run, which can be taken up again; `then` is called when that is so."""
        self._on_close = then
        if self.doing is not None:
            self._closes = True
            self.stop()
            return
        if self._task is not None:
            self._task.cancel()
        self._close()

    def stay(self) -> None:
        """The person is back before what goes on has ended: the run is kept. To be said before anything is awaited
        once it is known that the run is held still."""
        self._closes = False

    def _close(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.close()
            self._become(view=None, problem=_LEFT)
        self._on_close()

    # -----------------------------------------------------------------------------------------------------------------

    def plan_of(self, view: StepView) -> Plan:
        """RefusedError: the step has none any more."""
        plan = view.shown.plan if view.shown is not None else None
        if plan is None:
            why = view.problem or (view.shown.nothing if view.shown is not None else "") or "nothing is to be agreed to"
            raise RefusedError(f"step {view.step.number}", why, "Esc goes back")
        return plan

    def plan_of_back(self, view: BackView) -> Plan:
        """Of several the one that asks for most. RefusedError: there is none any more."""
        if not view.plans:
            why = view.problem or view.nothing
            raise RefusedError(f"take back step {view.step.number}", why, "Esc goes back")
        return max(view.plans, key=lambda plan: ("confirm", "typed", "refused").index(plan.consent.kind))

    def tell(self, problem: Problem) -> None:
        """Show it in place of the step, until it is looked at again."""
        self._become(problem=problem, end=None)

    def _begin(self, work: Awaitable[None], name: str) -> None:
        async def run() -> None:
            await work

        self._task = self._app.background(run(), name)
        self._app.fleet_changed()

    def _become(self, **changes: object) -> None:
        self.moment = msgspec.structs.replace(self.moment, **changes)
        self._app.fleet_changed()


def _read(path: str) -> str:
    """The text of a report; "" where there is none."""
    if not path:
        return ""
    try:
        with Path(path).open("rb") as file:
            return file.read(_REPORT_AT_MOST).decode(errors="replace")
    except OSError as error:
        raise ConfigError(f"report {path}", (error.strerror or str(error)).lower()) from None
