"""One playbook before it is begun: what it is for, what it needs, and its steps."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from console.fleet.model import Fleet
from console.playbook.model import Playbook, RunStatus, Settings, Shelved
from console.tui.commands import Scope, bindings
from console.tui.screens.base import Doing
from console.tui.screens.detail import DETAIL_BINDINGS, DETAIL_SCOPES, DetailScreen
from console.view.cells import Part, safe
from console.view.playbooks import book_sections, flaw_lines, open_run, run_sections
from console.view.sections import Section


class PlaybookScreen(DetailScreen):
    """Enter begins it."""

    SCOPES: ClassVar[tuple[Scope, ...]] = (*DETAIL_SCOPES, "playbook")
    BINDINGS: ClassVar[list[BindingType]] = [*DETAIL_BINDINGS, *bindings("playbook")]

    def __init__(self, book: Playbook, values: Settings) -> None:
        """`values`: what is known already of what it needs."""
        super().__init__()
        self._book = book
        self._values = values

    def subject(self) -> tuple[Part, ...]:
        return (("PLAYBOOK  ", "head"), (safe(self._book.title), "strong"))

    def sections(self, fleet: Fleet | None, width: int) -> tuple[Section, ...]:
        return book_sections(self._book, self._values, width, self.console_app.glyphs, self._open_run)

    @property
    def _open_run(self) -> RunStatus | None:
        return open_run(self.console_app.playbooks.runs, self._book, self._values)

    def action_begin(self) -> None:
        """Ask for what it needs, and show its first step; or take up the run that is unfinished."""
        playbooks, run = self.console_app.playbooks, self._open_run
        if run is not None:
            playbooks.resume(run)
        else:
            playbooks.begin(self._book, self._values)

    def doings(self) -> tuple[Doing, ...]:
        if self._open_run is not None:
            return (Doing("take it up", "screen.begin", "", "the unfinished run, where it stands"),)
        return (Doing("begin it", "screen.begin", "", "shows its first step; nothing is changed by that"),)

    def selection_text(self) -> str:
        return safe(self._book.title, 60)

    def role_in_hand(self) -> str | None:
        return str(self._values.get("role", "")) or None


class FaultyScreen(DetailScreen):
    """What is wrong with the file of a playbook."""

    def __init__(self, shelved: Shelved) -> None:
        super().__init__()
        self._shelved = shelved

    def subject(self) -> tuple[Part, ...]:
        return ((f"{self.console_app.glyphs.bad} ", "bad"), (safe(self._shelved.path), "strong"))

    def sections(self, fleet: Fleet | None, width: int) -> tuple[Section, ...]:
        return (Section("WHAT IS WRONG", flaw_lines(self._shelved, width, self.console_app.glyphs)),)


class RunScreen(DetailScreen):
    """A run as its journal tells it: every step, and what came of it."""

    def __init__(self, run: RunStatus) -> None:
        super().__init__()
        self._run = run

    def subject(self) -> tuple[Part, ...]:
        return (("RUN  ", "head"), (safe(self._run.title), "strong"))

    def sections(self, fleet: Fleet | None, width: int) -> tuple[Section, ...]:
        app = self.console_app
        return run_sections(self._run, app.clock(), width, app.glyphs)

    def role_in_hand(self) -> str | None:
        return self._run.role or None
