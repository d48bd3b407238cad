"""What is asked in the middle of an action, and of plans that were cut off; no is what Enter and Esc mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from console.fleet.plan import Question, Unfinished
from console.text import ago
from console.tui.screens.choice import ChoiceScreen, Entry
from console.view.cells import safe

YES, NO = "yes", "no"


class QuestionScreen(ChoiceScreen):
    """Dismissed with YES or NO."""

    HELP_LINES: ClassVar[int] = 12

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question

    def heading(self) -> str:
        return safe(self.question.title, 100)

    def entries(self) -> tuple[Entry, ...]:
        told = safe("; ".join(self.question.text), 800)
        held = f"; it holds {', '.join(safe(job, 24) for job in self.question.jobs[:4])}" if self.question.jobs else ""
        return (
            Entry("no", "", told, NO),
            Entry("kill it", "", f"SIGKILL: it can clean up nothing{held}", YES),
        )

    def nothing(self) -> str:
        return ""


class UnfinishedScreen(ChoiceScreen):
    """Plans that were cut off: dismissed with "continue ID", "abandon ID", or "" to decide later."""

    def __init__(self, plans: Sequence[Unfinished], now: float) -> None:
        super().__init__()
        self._plans = tuple(plans)
        self._now = now

    def heading(self) -> str:
        many = f"{len(self._plans)} ACTIONS WERE CUT OFF"
        return many if len(self._plans) > 1 else "AN ACTION WAS CUT OFF"

    def entries(self) -> tuple[Entry, ...]:
        found = [Entry("decide later", "", "worktop continue and worktop abandon know them too", "")]
        for plan in self._plans:
            title = safe(plan.title, 40)
            done = f"{plan.done} of {plan.steps} steps done {ago(max(0.0, self._now - plan.at))} ago"
            by = f" by {safe(plan.who.name, 24)}" if plan.who.name else ""
            found += [
                Entry(f"continue: {title}", "", f"{done}{by}; next: {safe(plan.next, 80)}", f"continue {plan.plan}"),
                Entry(f"abandon: {title}", "", "what is done stays, the rest is never done", f"abandon {plan.plan}"),
            ]
        return tuple(found)

    def nothing(self) -> str:
        return ""
