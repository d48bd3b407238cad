"""A playbook that is followed: steps at the left, the step in hand at the right, and below where things stand."""

from __future__ import annotations

from typing import ClassVar

import msgspec
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal

from console.errors import Problem, WorktopError
from console.fleet.model import Fleet
from console.fleet.plan import Plan
from console.playbook.model import BackView, Draft, StepView
from console.tui.asked import Asked
from console.tui.commands import Scope, bindings
from console.tui.editing import edited_in
from console.tui.screens.base import ConsoleScreen, Doing
from console.tui.screens.choice import ChoiceScreen, Entry
from console.tui.screens.progress import LeaveScreen
from console.tui.screens.step import AgreeScreen, BackScreen, StepScreen
from console.tui.widgets.line import Line
from console.tui.widgets.pager import Pager
from console.tui.wizard import Wizard
from console.view.cells import Part, fit_parts, plain, safe
from console.view.wizard import (
    body_lines,
    has_side,
    side_width,
    stand_lines,
    standing_of,
    step_list,
    steps_collapsed,
    title_parts,
)

_EVERY = 0.5  # seconds: the countdowns go on when nothing is heard
_STANDS = 4  # parts of the screen's height, of which where things stand may take one
_STANDS_AT_LEAST = 3  # lines
_RULE_FROM = 17  # lines of the terminal from which on there is one for a rule
_GAP = 2  # columns between the steps and the text


class WizardScreen(ConsoleScreen):
    """Shows a wizard and gives it the keys."""

    SCOPES: ClassVar[tuple[Scope, ...]] = ("console", "wizard")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("wizard")]
    TELLS_OF_WORK: ClassVar[bool] = False
    CSS = """
    WizardScreen #middle { height: 1fr; }
    WizardScreen #side { margin-right: 2; }
    """

    def __init__(self, wizard: Wizard) -> None:
        super().__init__()
        self._wizard = wizard
        self._all_steps = False  # where there is no room beside the text: the steps in its place
        self._back: Asked[BackView] | None = None
        self._shown_of: object = None  # the text is read from its beginning when it is about something else
        self.title_line = Line(id="title")
        self.steps_line = Line(id="steps")
        self.side = Line(id="side")
        self.pager = Pager(id="body")
        self.pager.can_focus = False  # its keys are the wizard's: b is not a page up here
        self.rule = Line(id="rule")
        self.stand_lines = Line(id="stands")

    def compose(self) -> ComposeResult:
        yield self.head_line
        yield self.title_line
        yield self.steps_line
        with Horizontal(id="middle"):
            yield self.side
            yield self.pager
        yield self.rule
        yield self.stand_lines
        yield self.foot_line

    def on_mount(self) -> None:
        self._back = Asked(self.console_app, self._heard_of_back)
        self._wizard.agreeing = self._agree
        self._wizard.stay()
        self.set_interval(_EVERY, self._tick)
        for part in ("scroll_y", "virtual_size", "container_size"):  # how much lies below: known after a layout only
            self.watch(self.pager, part, self._show_rule, init=False)
        if self._wizard.moment.status is None:
            self._wizard.look()

    def on_unmount(self) -> None:
        if self._back is not None:
            self._back.stop()

    def _tick(self) -> None:
        if self.is_current:
            self.show()

    # --- showing -----------------------------------------------------------------------------------------------------

    def show_body(self, fleet: Fleet | None) -> None:
        app, moment = self.console_app, self._wizard.moment
        moment = msgspec.structs.replace(moment, standing=standing_of(fleet, moment.role))
        width, height = self.size
        now, tones, glyphs = app.clock(), app.tones, app.glyphs
        self.title_line.show((title_parts(moment, width, glyphs),), tones)
        wide = has_side(width)
        side = side_width(moment, width) if wide else 0
        self.side.styles.width = side
        stands = stand_lines(moment, now, width, max(_STANDS_AT_LEAST, height // _STANDS), glyphs)
        rule = 1 if height >= _RULE_FROM else 0
        tall = max(1, self.body_height - self.title_line.line_count - len(stands) - rule)
        self.side.show(step_list(moment, side, glyphs, tall) if wide else (), tones)
        collapsed = steps_collapsed(moment, width, glyphs) if not wide else ()
        self.steps_line.show((collapsed,) if collapsed else (), tones)
        room = max(1, width - (side + _GAP if self.side.display else 0) - 1)  # the scroll bar
        if self._all_steps and not wide:
            self.pager.show(step_list(moment, room, glyphs), tones)
        else:
            self.pager.show(body_lines(moment, now, room, glyphs), tones)
        about = (moment.end, moment.view.step if moment.view is not None else None, moment.problem)
        if about != self._shown_of:
            self._shown_of = about
            self.pager.scroll_home(animate=False)
        self.stand_lines.show(stands, tones)
        self._show_rule()

    def _show_rule(self) -> None:
        app, width = self.console_app, self.size.width
        if not self._ready:
            return
        below = self.pager.max_scroll_y - int(self.pager.scroll_y)
        more = f" {app.glyphs.down} {below} more lines" if below > 0 else ""
        line = "─" if app.glyphs.unicode else "-"
        parts: tuple[Part, ...] = ((line * max(0, width - len(more)), "dim"), (more, "key"))
        self.rule.show((fit_parts(parts, width),) if self.size.height >= _RULE_FROM else (), app.tones)

    def copied(self) -> str:
        app, moment = self.console_app, self._wizard.moment
        now, glyphs = app.clock(), app.glyphs
        lines = (
            title_parts(moment, 120, glyphs),
            *step_list(moment, 120, glyphs),
            (),
            *body_lines(moment, now, 120, glyphs),
            (),
            *stand_lines(moment, now, 120, 100, glyphs),
        )
        return "\n".join(plain(line).rstrip() for line in lines)

    def selection_text(self) -> str:
        return safe(self._wizard.moment.title, 50)

    def role_in_hand(self) -> str | None:
        return self._wizard.moment.role or None

    def asked_again(self) -> None:
        if self.is_current:
            self._wizard.look()

    # --- forward -----------------------------------------------------------------------------------------------------

    @property
    def _view(self) -> StepView | None:
        """The step that waits for the person."""
        wizard = self._wizard
        return wizard.moment.view if not wizard.busy and wizard.moment.problem is None else None

    @property
    def _drafts(self) -> tuple[Draft, ...]:
        """The files that it would install."""
        view = self._view
        return view.shown.drafts if view is not None and view.shown is not None else ()

    def action_next(self) -> None:
        """Do the step, or look at the next one."""
        wizard, view = self._wizard, self._view
        if wizard.busy:
            self.notify("it goes on; q leaves it", timeout=2)
        elif view is None and wizard.moment.over and wizard.moment.end is None:
            self.action_leave()
        elif view is None:
            wizard.look()
        elif not view.may_go:
            self.notify(safe(view.problem or "it is refused"), markup=False, timeout=5)
        elif self.console_app.desk.run is not None:
            self.notify("another action runs: 0 shows it", timeout=3)
        elif view.shown is not None and view.shown.plan is not None:
            self.app.push_screen(StepScreen(wizard, view))
        else:
            wizard.go(view)

    def idle_commands(self) -> frozenset[str]:
        view = self._view
        able = {"wizard-skip": view is not None and view.step.skippable, "wizard-edit": bool(self._drafts)}
        return frozenset(name for name, can in able.items() if not can)

    async def _agree(self, plan: Plan) -> tuple[bool, str]:
        """Ask for another plan of the step that is being done."""
        return await AgreeScreen.answer(self.console_app, plan)

    def action_skip(self) -> None:
        """Pass over the step, where it may be."""
        view = self._view
        if view is not None and view.step.skippable:
            self._wizard.skip(view)
        else:
            self.notify("this step may not be skipped" if view is not None else "there is no step to skip", timeout=3)

    def action_edit(self) -> None:
        """Edit a file that the step would install."""
        drafts = self._drafts
        if not drafts:
            self.notify("this step has no draft to edit", timeout=3)
        elif len(drafts) == 1:
            self._edit(drafts[0])
        else:
            self.app.push_screen(DraftsScreen(drafts), lambda place: self._edit_at(drafts, place))

    def _edit_at(self, drafts: tuple[Draft, ...], place: str | None) -> None:
        if place is not None:
            self.call_later(self._edit, drafts[int(place)])

    def _edit(self, draft: Draft) -> None:
        try:
            text = edited_in(self.console_app, draft.text, draft.path)
        except WorktopError as error:
            self.console_app.tell(str(error))
            return
        if text != draft.text:
            self._wizard.edit(draft.path, text)
        else:
            self.notify("nothing was changed", timeout=2)

    # --- back --------------------------------------------------------------------------------------------------------

    def action_take_back(self) -> None:
        """Ask what takes the last step back."""
        if self._wizard.busy:
            self.notify("it goes on; q leaves it", timeout=2)
        elif self._back is not None and not self._back.asking:
            self._back.ask(self._wizard.look_back)

    def _heard_of_back(self) -> None:
        back = self._back
        if back is None or back.asking or not self.is_current:
            return
        if back.problem is not None:
            self.notify(safe(back.problem.line()), markup=False, timeout=5)
            back.problem = None
        elif back.value is not None:
            view, back.value = back.value, None
            self._take_back(view)

    def _take_back(self, view: BackView) -> None:
        if view.problem:
            self._wizard.tell(Problem(f"take back step {view.step.number}", view.problem))
        elif view.plans:
            self.app.push_screen(BackScreen(self._wizard, view))
        else:
            self._wizard.go_back(view)

    # --- leaving -----------------------------------------------------------------------------------------------------

    def action_leave(self) -> None:
        """Let go of the run; it can be taken up again."""
        self.back()

    def back(self) -> bool:
        doing = self._wizard.doing
        if self._all_steps and not has_side(self.size.width):
            self.action_steps()
        elif doing is not None and doing.applying:
            self.app.push_screen(LeaveScreen(), self._left)
        else:
            self._go()
        return True

    def _left(self, choice: str | None) -> None:
        if choice == "stop":
            self._go()
        elif choice == "leave":
            self.console_app.call_later(self.console_app.action_show, "fleet")

    def _go(self) -> None:
        app, wizard = self.console_app, self._wizard
        if self.is_current:
            app.pop_screen()
        wizard.leave(then=lambda: self._told(wizard))

    def _told(self, wizard: Wizard) -> None:
        moment, front = wizard.moment, self.console_app.front
        status = moment.status
        if status is not None and not moment.over:
            told = f"left at step {status.number} of {len(status.steps)}: Enter on it takes it up again"
            self.console_app.notify(told, markup=False, timeout=5)
        if front is not None:
            front.asked_again()

    def action_abandon(self) -> None:
        """Give the run up; what was done stays."""
        self._wizard.abandon()

    # --- the rest ----------------------------------------------------------------------------------------------------

    def action_log(self) -> None:
        """The log of the role."""
        if role := self.role_in_hand():
            self.console_app.show_log_of(role)
        else:
            self.notify("it is of no role: 5 shows the log", timeout=3)

    def action_steps(self) -> None:
        """All steps in place of the text, or the text again, where both do not fit."""
        self._all_steps = not self._all_steps
        self.show()

    def action_scroll(self, by: int) -> None:
        """By lines."""
        self.pager.scroll_relative(y=by, animate=False)

    def action_page(self, by: int) -> None:
        """By pages."""
        self.pager.scroll_relative(y=by * max(1, self.pager.size.height - 1), animate=False)

    def action_end(self, last: bool) -> None:
        """The first lines, or the last ones."""
        if last:
            self.pager.scroll_end(animate=False)
        else:
            self.pager.scroll_home(animate=False)

    def doings(self) -> tuple[Doing, ...]:
        view, moment, drafts = self._view, self._wizard.moment, self._drafts
        ready = not self._wizard.busy
        return (
            Doing("take the last step back", "screen.take_back", "b", "shows what that does first", ready),
            Doing(
                "skip the step", "screen.skip", "s", "it is passed over, and can be taken back",
                view is not None and view.step.skippable,
            ),
            Doing("edit a draft", "screen.edit", "e", "a file that the step installs, in $EDITOR", bool(drafts)),
            Doing(
                "give the run up", "screen.abandon", "", "what was done stays done; nothing is taken back",
                ready and not moment.over,
            ),
        )  # fmt: skip


class DraftsScreen(ChoiceScreen):
    """Which of several files: dismissed with its place."""

    def __init__(self, drafts: tuple[Draft, ...]) -> None:
        super().__init__()
        self._drafts = drafts

    def heading(self) -> str:
        return "EDIT"

    def entries(self) -> tuple[Entry, ...]:
        return tuple(
            Entry(safe(draft.path, 60), "", f"{draft.text.count(chr(10))} lines", str(place))
            for place, draft in enumerate(self._drafts)
        )

    def nothing(self) -> str:
        return ""
