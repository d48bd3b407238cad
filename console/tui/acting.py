"""What the console does with actions: what is allowed, the plan that is asked for, the one that is applied.

Screens make offers (console/view/offers.py); the desk turns an offer into a plan on the screen, applies it beside the
screens when the person agrees, and keeps the last result. At most one action runs at a time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, get_args

import msgspec

from console.errors import Problem, WorktopError
from console.fleet.model import Fleet
from console.fleet.plan import Consent, JobVerb, Outcome, Plan, Progress, Question, UnitVerb, Verb
from console.tui.asked import answer_of
from console.tui.commands import COMMANDS
from console.tui.screens.base import Doing
from console.tui.unfinished import ask_about_unfinished
from console.view.cells import safe
from console.view.offers import NOTHING_HERE, Offer, Request, read_only_reason, refusal
from console.view.progress import Run

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp
    from console.tui.feed import Acting

_FIRST_LOOK = 1.0  # seconds after the first fleet: the layer of the actions is imported then
_RIGHTS_AGAIN = 60.0  # seconds after which rights are asked for again where there were none
_KEYS = {command.action: command for command in COMMANDS if command.scope in ("acts", "units") and command.keys}
_UNIT_VERBS = get_args(UnitVerb)


@dataclass(frozen=True)
class Result:
    """What an apply came to; `problem` when it was refused before anything was done, or met a `defect`."""

    plan: Plan
    outcome: Outcome | None = None
    problem: Problem | None = None
    defect: bool = False  # how far it came is not known


class Desk:
    """The actions of one console."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app
        self.consents: Mapping[Verb, Consent] | None = None  # None: not asked for yet, or no answer
        self.run: Run | None = None
        self.result: Result | None = None
        self._stop = asyncio.Event()
        self._asking: asyncio.Task[None] | None = None
        self._looks = False  # a first look is on its way, or was had
        self._asked_at: float | None = None
        self._asked_of = ""  # the state the queue was in then
        self._leave_after = False
        self._problem: Problem | None = None

    @property
    def acting(self) -> Acting | None:
        """The layer below; None where there is none."""
        if self._problem is None:
            try:
                return self._app.feed.actions
            except WorktopError as error:
                self._problem = error.problem
        return None

    # --- rights ------------------------------------------------------------------------------------------------

    @property
    def read_only(self) -> bool:
        """Nothing can be changed from here, as far as is known."""
        return self._asked_at is not None and (self.acting is None or bool(read_only_reason(self.consents)))

    def look(self) -> None:
        """There is a new fleet: ask once what is allowed, and again where nothing was."""
        fleet = self._app.fleet
        if fleet is None:
            return
        if not self._looks:
            self._looks = True
            self._app.set_timer(_FIRST_LOOK, self._look_first)
        elif self._asked_at is not None and self.acting is not None and (self.consents is None or self.read_only):
            later = time.monotonic() - self._asked_at >= _RIGHTS_AGAIN
            if later or self._asked_of != _queue_state(fleet):
                self.ask_rights()

    def _look_first(self) -> None:
        self.ask_rights()
        if self.acting is not None:
            self._app.background(self._look_for_unfinished(self.acting), "look for what was cut off")

    async def _look_for_unfinished(self, acting: Acting) -> None:
        await ask_about_unfinished(self._app, acting)
        await self._app.playbooks.tell_of_unfinished()

    def ask_rights(self) -> None:
        """Ask what is allowed, beside the screens."""
        acting = self.acting
        self._asked_at = time.monotonic()
        self._asked_of = _queue_state(self._app.fleet)
        if acting is None:
            self._app.fleet_changed()
            return
        if self._asking is not None and not self._asking.done():
            return
        self._asking = self._app.background(self._ask_rights(acting), "ask what is allowed")

    async def _ask_rights(self, acting: Acting) -> None:
        try:
            consents = await acting.allowed()
        except WorktopError:
            return  # the sources say what is wrong with them; the plan will say it again
        if consents != self.consents:
            self.consents = consents
            self._app.fleet_changed()

    def refusal(self, request: Request) -> Consent | None:
        """Why this cannot be asked for; None when it can, as far as is known."""
        if self.acting is None:
            return Consent(kind="refused", why=(self._problem.line() if self._problem else NOTHING_HERE,))
        return refusal(request, self.consents)

    # --- offers ------------------------------------------------------------------------------------------------

    def doings(self, offers: tuple[Offer, ...]) -> tuple[Doing, ...]:
        """The offers as entries of the menu."""
        return tuple(self._doing(offer) for offer in offers)

    def _doing(self, offer: Offer) -> Doing:
        refused = self.refusal(offer.request)
        command = _KEYS.get(f"screen.act({offer.id!r})")
        keys = command.shown_keys(self._app.glyphs.unicode) if command is not None else ""
        help = offer.lacking or offer.help
        if refused is not None:
            help = safe(f"not allowed: {'; '.join(refused.why)}", 200)
        return Doing(offer.label, "", keys, help, refused is None and not offer.lacking, offer)

    def open(self, offer: Offer) -> None:
        """Show the plan of the offer, or why there can be none."""
        from console.tui.screens.plan import RefusedScreen

        refused = self.refusal(offer.request)
        if refused is not None:
            self._app.push_screen(RefusedScreen(offer.request, refused))
        elif offer.lacking:
            self._app.notify(offer.lacking, markup=False, timeout=3)
        elif offer.request.asks:
            self._ask_first(offer.request)
        else:
            self.show_plan(offer.request)

    def show_plan(self, request: Request) -> None:
        """Ask for the plan, and show it."""
        from console.tui.screens.plan import PlanScreen

        self._app.push_screen(PlanScreen(request))

    def _ask_first(self, request: Request) -> None:
        from console.tui.screens.ask import asks_for

        window, fields = asks_for(request)

        def take(answer: str | None) -> None:
            if answer is not None:
                self._app.call_later(self.show_plan, msgspec.structs.replace(request, asks="", **fields(answer)))

        self._app.push_screen(window, take)

    async def make(self, request: Request, why: str) -> Plan:
        """The plan of a request; changes nothing. WorktopError."""
        acting = self.acting
        assert acting is not None  # RefusedScreen is shown where there is none
        if request.verb == "undo":
            return await acting.plan_undo(request.plan, why)
        if request.verb == "continue":
            return await acting.plan_continue(request.plan, why)
        if request.verb == "disable-line" or request.verb == "restore-line":
            return await acting.plan_crontab(
                request.verb, path=request.path, line=request.line, raw=request.raw, why=why
            )
        if request.verb in _UNIT_VERBS or request.verb in ("drain", "scale", "limits"):
            return await self._make_of_units(acting, request, why)
        if request.verb == "pause" or request.verb == "resume":
            return await acting.plan_queue(request.verb, request.role, why)
        return await acting.plan_jobs(
            cast("JobVerb", request.verb),
            role="" if request.rows else request.role,
            rows=request.rows,
            verdicts=request.verdicts,
            priority=request.priority,
            why=why,
        )

    async def _make_of_units(self, acting: Acting, request: Request, why: str) -> Plan:
        role = "" if request.units or request.processes else request.role
        if request.verb == "drain":
            return await acting.plan_drain(units=request.units, processes=request.processes, role=role, why=why)
        if request.verb == "scale":
            assert request.count is not None  # it was asked for
            return await acting.plan_scale(request.role, request.count, why=why)
        if request.verb == "limits":
            return await acting.plan_limits(request.role, dict(request.settings) or None, why=why)
        verb = cast("UnitVerb", request.verb)
        return await acting.plan_units(verb, units=request.units, role=role, signal=request.signal or "KILL", why=why)

    # --- applying ----------------------------------------------------------------------------------------------

    def start(self, plan: Plan, typed: str, why: str) -> bool:
        """Apply the plan beside the screens; False while another one is being applied."""
        acting = self.acting
        if acting is None or self.run is not None:
            return False
        self.run = Run(plan=plan, began=self._app.clock())
        self._stop = asyncio.Event()
        self._app.background(self._apply(acting, plan, typed, why), "apply")
        return True

    async def _apply(self, acting: Acting, plan: Plan, typed: str, why: str) -> None:
        result: Result | None = None
        try:
            outcome = await acting.apply(
                plan, typed=typed, why=why, on_progress=self._heard, on_question=self.answer, stop=self._stop
            )
            result = Result(plan, outcome)
        except WorktopError as error:
            result = Result(plan, problem=error.problem)
        except Exception as error:  # noqa: BLE001  shown, and kept in the crash log
            problem = Problem(
                "the action", "a defect of worktop stopped it", "9 Audit and the rows say how far it came"
            )
            result = Result(plan, problem=problem, defect=True)
            self._app.tell_fault(error)
        finally:
            self.run = None
        self.result = result
        self._ended(result)

    def _heard(self, progress: Progress) -> None:
        if self.run is not None:
            self.run = self.run.heard(progress, self._app.clock())
            self._app.fleet_changed()

    async def answer(self, question: Question) -> bool:
        """Ask the person in the middle of an action."""
        from console.tui.screens.question import YES, QuestionScreen

        return await answer_of(self._app, QuestionScreen(question)) == YES

    def _ended(self, result: Result) -> None:
        """Show what came of it, where the person is."""
        from console.tui.screens.progress import ProgressScreen

        app = self._app
        if self._leave_after:
            app.exit()
            return
        app.background(app.feed.refresh(), "refresh after an action")
        front = app.front
        if not isinstance(front, ProgressScreen):
            told = result.outcome.text if result.outcome is not None else ""
            if result.problem is not None:
                told = result.problem.line()
            fine = result.outcome is not None and result.outcome.state == "done"
            app.notify(safe(f"{told}; 0 shows it", 300), severity="information" if fine else "error", markup=False)
        if front is not None:
            front.asked_again()
            front.show()

    def stop(self) -> None:
        """Let the action end after the batch or the step it is in."""
        if self.run is not None:
            self._stop.set()
            self.run = msgspec.structs.replace(self.run, stopping=True)
            self._app.fleet_changed()

    def show_work(self) -> None:
        """Show the action that runs, or the result of the last one."""
        from console.tui.screens.progress import ProgressScreen
        from console.tui.screens.result import ResultScreen

        front = self._app.front
        if self.run is not None:
            if not isinstance(front, ProgressScreen):
                self._app.push_screen(ProgressScreen())
        elif self.result is None:
            self._app.notify("no action has been applied; x has what can be done", markup=False, timeout=3)
        elif not isinstance(front, ResultScreen):
            self._app.push_screen(ResultScreen(self.result))

    def asks_before_leaving(self) -> bool:
        """While an action runs: ask what is to become of it. False when none does."""
        from console.tui.screens.progress import LeaveScreen

        if self.run is None:
            return False
        if not isinstance(self._app.screen, LeaveScreen):
            self._app.push_screen(LeaveScreen(console=True), self._leave)
        return True

    def _leave(self, choice: str | None) -> None:
        if choice == "stop" and self.run is not None:
            self._leave_after = True
            self.stop()
        elif choice in ("stop", "leave"):
            self._app.exit()


def _queue_state(fleet: Fleet | None) -> str:
    """How the queue was reached last."""
    sources = fleet.sources if fleet is not None else ()
    return next((source.state for source in sources if source.name == "queue"), "")
