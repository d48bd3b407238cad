"""What the console needs of playbooks: console.playbook.desk.Playbooks and console.playbook.engine.Run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from console.fleet.plan import Plan, Progress, Question
from console.playbook.model import BackView, Playbook, RunStatus, Settings, Shelved, StepEnd, StepView, Telling

OnTelling = Callable[[Telling | Progress], None]
OnQuestion = Callable[[Question], Awaitable[bool]]
OnAgree = Callable[[Plan], Awaitable[tuple[bool, str]]]


class Books(Protocol):
    """Playbooks, and runs of them. `shelf` and `runs` read files."""

    def shelf(self) -> tuple[Shelved, ...]:
        """Every file that was found, those with flaws too."""
        ...

    def runs(self) -> tuple[RunStatus, ...]:
        """Newest first."""
        ...

    async def start(self, name: str, given: Settings) -> BookRun:
        """Begin a run, or take up the open one of the same playbook and role. WorktopError."""
        ...

    async def resume(self, name: str, role: str = "") -> BookRun:
        """Take up a run by its id. WorktopError."""
        ...


class BookRun(Protocol):
    """A run that this console holds. It is used from one task at a time."""

    book: Playbook

    @property
    def status(self) -> RunStatus:
        """How far it is."""
        ...

    async def show(self) -> StepView:
        """The next step with what it would do; changes nothing. WorktopError."""
        ...

    async def go(
        self,
        view: StepView,
        *,
        typed: str = "",
        why: str = "",
        on_progress: OnTelling | None = None,
        on_question: OnQuestion | None = None,
        on_agree: OnAgree | None = None,
        stop: asyncio.Event | None = None,
    ) -> StepEnd:
        """Do the step that was shown. WorktopError: nothing was done."""
        ...

    async def skip(self, view: StepView, why: str = "") -> StepEnd:
        """Pass over the step. WorktopError: it may not be skipped."""
        ...

    async def show_back(self) -> BackView:
        """What takes the last step back. WorktopError: there is none."""
        ...

    async def back(
        self,
        view: BackView,
        *,
        typed: str = "",
        why: str = "",
        on_progress: OnTelling | None = None,
        on_question: OnQuestion | None = None,
        stop: asyncio.Event | None = None,
    ) -> StepEnd:
        """Take back the step that was shown. WorktopError: nothing was done."""
        ...

    async def edit(self, path: str, text: str) -> None:
        """Another text for a file that the step installs. WorktopError."""
        ...

    def abandon(self, why: str = "") -> RunStatus:
        """Give it up: what was done stays. WorktopError."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...
