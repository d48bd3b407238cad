"""An action while it is applied, step by step; and what is asked of a person who goes away meanwhile."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from console.fleet.model import Fleet
from console.tui.commands import Scope, bindings
from console.tui.screens.base import ConsoleScreen
from console.tui.screens.choice import ChoiceScreen, Entry
from console.tui.widgets.line import Line
from console.tui.widgets.pager import Pager
from console.view.cells import plain
from console.view.progress import progress_lines, progress_title

_EVERY = 0.5  # seconds: the countdowns go on when nothing is heard


class ProgressScreen(ConsoleScreen):
    """Follows the action that runs; when it has ended the result takes its place."""

    SCOPES: ClassVar[tuple[Scope, ...]] = ("console", "progress", "pager")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("progress")]
    TELLS_OF_WORK: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self._ended = False
        self.title_line = Line(id="title")
        self.pager = Pager(id="body")

    def compose(self) -> ComposeResult:
        yield self.head_line
        yield self.title_line
        yield self.pager
        yield self.foot_line

    def on_mount(self) -> None:
        self.set_focus(self.pager)
        self.set_interval(_EVERY, self._tick)

    def _tick(self) -> None:
        if self.is_current:
            self.show()

    def show_body(self, fleet: Fleet | None) -> None:
        app = self.console_app
        run, now = app.desk.run, app.clock()
        if run is None:
            self._leave_for_result()
            return
        self.title_line.show((progress_title(run, now, self.size.width, app.glyphs),), app.tones)
        self.pager.show(progress_lines(run, now, max(1, self.size.width - 1), app.glyphs), app.tones)

    def _leave_for_result(self) -> None:
        from console.tui.screens.result import ResultScreen

        app = self.console_app
        if self._ended or not self.is_current or app.desk.result is None:
            return
        self._ended = True
        app.call_later(app.switch_screen, ResultScreen(app.desk.result))

    def copied(self) -> str:
        app = self.console_app
        run = app.desk.run
        return "\n".join(plain(line) for line in progress_lines(run, app.clock(), 120, app.glyphs)) if run else ""

    def action_stop_work(self) -> None:
        """Let it end after the batch or the step it is in."""
        self.console_app.desk.stop()

    def back(self) -> bool:
        if self.console_app.desk.run is None:
            return False
        self.app.push_screen(LeaveScreen(), self._left)
        return True

    def _left(self, choice: str | None) -> None:
        if choice == "stop":
            self.action_stop_work()
        elif choice == "leave" and self.is_current:
            self.app.pop_screen()


class LeaveScreen(ChoiceScreen):
    """What is to become of an action that runs: dismissed with "stop", "leave", or "" to stay."""

    def __init__(self, *, console: bool = False) -> None:
        """`console`: the person leaves worktop itself."""
        super().__init__()
        self._of_console = console

    def heading(self) -> str:
        return "AN ACTION STILL RUNS"

    def entries(self) -> tuple[Entry, ...]:
        if self._of_console:
            return (
                Entry("stay", "", "and see how it goes on", ""),
                Entry(
                    "stop it, then leave", "", "after the batch or the step it is in; what is done stays done", "stop"
                ),
                Entry(
                    "leave at once", "", "the batch in hand is taken back or kept whole, the rest is not done", "leave"
                ),
            )
        return (
            Entry("stay", "", "and see how it goes on", ""),
            Entry(
                "look at something else", "", "it goes on; the head of each screen says how far, 0 comes back", "leave"
            ),
            Entry("stop it", "", "after the batch or the step it is in; what is done stays done", "stop"),
        )

    def nothing(self) -> str:
        return ""
