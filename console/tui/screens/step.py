"""The consent to a step of a playbook, to what takes one back, and to a plan in the middle of one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from console.fleet.plan import Plan
from console.playbook.model import BackView, StepView
from console.tui.screens.consent import OLD_AFTER, ConsentScreen
from console.tui.wizard import Wizard
from console.view.cells import safe
from console.view.page import Lines
from console.view.playbook import back_lines

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp


class StepScreen(ConsentScreen):
    """The plan of a step; with consent the wizard does it."""

    def __init__(self, wizard: Wizard, view: StepView) -> None:
        super().__init__(f"step {view.step.number}: {safe(view.step.title, 60)}")
        self._wizard = wizard
        self._view = view
        self._shown = False

    async def plan_anew(self, why: str) -> Plan:
        old = self.console_app.clock() - self._wizard.shown_at > OLD_AFTER
        if self._shown or old:
            self._view = await self._wizard.look_anew()
            if self._view.may_go and self._view.shown is not None and self._view.shown.plan is None:
                self.call_later(self._nothing_left)
        self._shown = True
        return self._wizard.plan_of(self._view)

    def _nothing_left(self) -> None:
        """What was to be done has come about by itself: the step says so."""
        if self.is_current:
            self.notify("looked at anew: nothing is left to be agreed to", timeout=5)
            self.app.pop_screen()

    def agreed(self, plan: Plan, typed: str, why: str) -> None:
        self.app.pop_screen()
        self._wizard.go(self._view, typed, why)


class BackScreen(ConsentScreen):
    """What takes the last step back; with consent the wizard does it."""

    def __init__(self, wizard: Wizard, view: BackView) -> None:
        super().__init__(f"take back step {view.step.number}: {safe(view.step.title, 60)}")
        self._wizard = wizard
        self._view = view
        self._shown = False

    async def plan_anew(self, why: str) -> Plan:
        if self._shown:
            self._view = await self._wizard.look_back()
        self._shown = True
        return self._wizard.plan_of_back(self._view)

    def plan_lines(self, plan: Plan, width: int) -> Lines:
        return back_lines(self._view, width, self.console_app.glyphs)

    def agreed(self, plan: Plan, typed: str, why: str) -> None:
        self.app.pop_screen()
        self._wizard.go_back(self._view, typed, why)


class AgreeScreen(ConsentScreen):
    """A plan that is asked about while a step is being done."""

    def __init__(self, plan: Plan, answered: asyncio.Future[tuple[bool, str]]) -> None:
        super().__init__(safe(plan.title, 80))
        self._plan = plan
        self._given = answered

    @classmethod
    async def answer(cls, app: ConsoleApp, plan: Plan) -> tuple[bool, str]:
        """Whether the person agrees, and the word they typed."""
        answered: asyncio.Future[tuple[bool, str]] = asyncio.get_running_loop().create_future()
        await app.push_screen(cls(plan, answered))
        return await answered

    async def plan_anew(self, why: str) -> Plan:
        return self._plan

    def agreed(self, plan: Plan, typed: str, why: str) -> None:
        self._give(True, typed)
        self.app.pop_screen()

    def on_unmount(self) -> None:
        super().on_unmount()
        self._give(False, "")

    def _give(self, agreed: bool, typed: str) -> None:
        if not self._given.done():
            self._given.set_result((agreed, typed))
