"""What came of an action: each step, what was verified, the rows that could not be moved, how to undo it."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from console.fleet.model import Fleet
from console.tui.acting import Result
from console.tui.commands import Scope, bindings
from console.tui.screens.detail import DETAIL_BINDINGS, DETAIL_SCOPES, DetailScreen
from console.view.audit import STATE_TONES, result_sections
from console.view.cells import Part, safe
from console.view.offers import Offer, choice_offer, undo_offer
from console.view.sections import Section
from console.view.unit_offers import suggestion_offer


class ResultScreen(DetailScreen):
    """The result of one action; x holds the undo, and the choices for rows that could not be moved."""

    SCOPES: ClassVar[tuple[Scope, ...]] = (*DETAIL_SCOPES, "result")
    BINDINGS: ClassVar[list[BindingType]] = [*DETAIL_BINDINGS, *bindings("result")]

    def __init__(self, result: Result) -> None:
        super().__init__()
        self._result = result

    def subject(self) -> tuple[Part, ...]:
        outcome = self._result.outcome
        state = outcome.state if outcome is not None else "cut off" if self._result.defect else "refused"
        return ((f"{state}  ", STATE_TONES.get(state, "bad")), (safe(self._result.plan.title), "strong"))

    def sections(self, fleet: Fleet | None, width: int) -> tuple[Section, ...]:
        result = self._result
        glyphs = self.console_app.glyphs
        return result_sections(result.plan, result.outcome, result.problem, width, glyphs, result.defect)

    def offers(self) -> tuple[Offer, ...]:
        outcome = self._result.outcome
        if outcome is None:
            return ()
        commands = dict.fromkeys(choice for blocked in outcome.blocked for choice in blocked.choices)
        choices = tuple(offer for command in commands if (offer := choice_offer(command)) is not None)
        undo = (undo_offer(outcome.plan, self._result.plan.title),) if outcome.undo else ()
        return (*self._suggested(), *undo, *choices)

    def _suggested(self) -> tuple[Offer, ...]:
        outcome = self._result.outcome
        suggestions = outcome.next if outcome is not None else ()
        return tuple(suggestion_offer(number, suggestion) for number, suggestion in enumerate(suggestions, 1))

    def action_next_step(self) -> None:
        """The plan of what is proposed to be done next."""
        if suggested := self._suggested():
            self.console_app.desk.open(suggested[0])

    def selection_text(self) -> str:
        return safe(self._result.plan.title, 60)

    def role_in_hand(self) -> str | None:
        return self._result.plan.role or None
