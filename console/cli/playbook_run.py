"""Following a run on the terminal, or without one: show, ask, do, tell; back the same way."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from typing import Literal

import click

from console.cli.act import Agreement
from console.cli.options import print_json, width
from console.cli.terminal import ask_line, glyphs, is_terminal, overwrite, say, stopping
from console.errors import EXIT_FAILED, EXIT_LEFT, EXIT_NOTHING, EXIT_OK, EXIT_USAGE, ConfigError
from console.fleet.model import Value
from console.fleet.plan import Plan, Progress, Question
from console.playbook.engine import Run
from console.playbook.model import BackView, RunStatus, StepEnd, StepView, Telling
from console.text import clean
from console.view.cells import plain
from console.view.plan import lines_text, plan_text, progress_parts
from console.view.playbook import back_lines, end_lines, run_lines, step_lines, telling_text

Choice = Literal["go", "skip", "back", "leave", "again"]
_KEYS: dict[str, Choice] = {"s": "skip", "b": "back", "q": "leave", "r": "again"}


class Answer(Value, frozen=True, kw_only=True):
    """What is printed as JSON."""

    status: RunStatus
    steps: tuple[StepEnd, ...] = ()
    next: StepView | None = None  # with --dry-run


async def follow(run: Run, agreement: Agreement, kills: bool) -> int:
    """Every step from here to the end, or to where it is left; the exit code."""
    try:
        return await _Following(run, agreement, kills).forward()
    finally:
        run.close()


async def take_back(run: Run, to: int, agreement: Agreement, kills: bool) -> int:
    """The steps behind `to`, the last first; the exit code."""
    try:
        return await _Following(run, agreement, kills).back_to(to)
    finally:
        run.close()


class _Following:
    def __init__(self, run: Run, agreement: Agreement, kills: bool) -> None:
        self._run = run
        self._agreement = agreement
        self._kills = kills
        self._asks = is_terminal() and not agreement.as_json and not agreement.yes
        self._stop = asyncio.Event()
        self._plan: Plan | None = None  # that is being applied
        self._ends: list[StepEnd] = []

    async def forward(self) -> int:
        if self._agreement.dry_run:
            return await self._only_shown()
        while self._run.step is not None:
            view = await self._run.show()
            self._say(lines_text(step_lines(view, width(), glyphs(), len(self._run.book.steps))))
            choice, typed = await self._chosen(view)
            if choice == "again":
                continue
            if choice == "leave":
                return self._left(view)
            if choice == "back":
                await self._one_back()
                continue
            end = await self._go(view, typed) if choice == "go" else await self._run.skip(view, self._agreement.why)
            self._ended(end)
            if end.state == "left":
                return self._over(EXIT_LEFT)
            if end.state == "failed" and not self._asks:
                return self._over(EXIT_FAILED)
        return self._over(EXIT_OK)

    async def back_to(self, to: int) -> int:
        for step in reversed(self._run.book.steps):
            if step.number <= to:
                break
            try:
                view = await self._run.show_back()
            except ConfigError as error:
                click.echo(f"worktop: {clean(error.problem.why)}", err=True)
                return self._over(EXIT_OK if self._ends else EXIT_NOTHING)
            if view.step.number <= to:
                break
            self._say(lines_text(back_lines(view, width(), glyphs())))
            if self._agreement.dry_run:
                return self._over(EXIT_OK)
            if view.problem:
                return self._over(EXIT_USAGE)
            if view.plans and self._asks and (await ask_line("\nTake it back? [y/N] ")).lower() not in ("y", "yes"):
                return self._over(EXIT_LEFT)
            if view.plans and not self._asks and not self._agreement.yes:
                click.echo("worktop: nobody can be asked here; --yes agrees to the plans", err=True)
                return self._over(EXIT_USAGE)
            end = await self._back(view)
            self._ended(end)
            if end.state in ("failed", "left"):
                return self._over(EXIT_FAILED if end.state == "failed" else EXIT_LEFT)
        return self._over(EXIT_OK if self._ends else EXIT_NOTHING)

    # -----------------------------------------------------------------------------------------------------------------

    async def _only_shown(self) -> int:
        if self._run.step is None:
            return self._over(EXIT_NOTHING)
        view = await self._run.show()
        self._say(lines_text(step_lines(view, width(), glyphs(), len(self._run.book.steps))))
        return self._over(EXIT_OK, view)

    async def _chosen(self, view: StepView) -> tuple[Choice, str]:
        """What is to be done with the step that is shown, and the word that was typed."""
        plan = view.shown.plan if view.shown is not None else None
        word = plan.consent.word if plan is not None and plan.consent.kind == "typed" else ""
        typed = self._agreement.typed
        if not self._asks:
            agreed = self._agreement.yes and (not word or typed == word)
            if view.may_go and not agreed:
                lacking = (
                    f"it asks for --type {word}" if word else "nobody can be asked here; --yes agrees to each step"
                )
                click.echo(f"worktop: step {view.step.number} was not done: {lacking}", err=True)
            return ("go" if view.may_go and agreed else "leave"), typed
        keys = ["b back", "s skip"] if view.step.skippable else ["b back"]
        first = "r look again" if not view.may_go else f"type {word} to do it" if word else "Enter do it"
        answer = await ask_line(f"\n[{first}, {', '.join(keys)}, q leave] ")
        if answer.lower() in _KEYS:
            choice = _KEYS[answer.lower()]
            return ("again" if choice == "skip" and not view.step.skippable else choice), ""
        agrees = answer == word if word else answer.lower() in ("", "y", "yes")
        return ("go" if view.may_go and agrees else "again"), answer if word else ""

    async def _go(self, view: StepView, typed: str) -> StepEnd:
        with self._busy():
            return await self._run.go(
                view, typed=typed, why=self._agreement.why, on_progress=self._progress, on_question=self._question,
                on_agree=self._another if self._asks else None, stop=self._stop,
            )  # fmt: skip

    async def _one_back(self) -> None:
        try:
            view = await self._run.show_back()
        except ConfigError as error:
            click.echo(f"worktop: {clean(error.problem.why)}", err=True)
            return
        self._say(lines_text(back_lines(view, width(), glyphs())))
        if not view.problem and (await ask_line("\nTake it back? [y/N] ")).lower() in ("y", "yes"):
            self._ended(await self._back(view))

    async def _back(self, view: BackView) -> StepEnd:
        with self._busy():
            return await self._run.back(
                view, why=self._agreement.why, on_progress=self._progress, on_question=self._question, stop=self._stop
            )

    def _busy(self) -> contextlib.AbstractContextManager[None]:
        return stopping(self._stop, "leaving after what is being done")

    async def _another(self, plan: Plan) -> tuple[bool, str]:
        """A further round of a step that asks for more than the first did."""
        self._say(plan_text(plan, width(), glyphs()))
        if plan.consent.kind == "typed":
            word = await ask_line(f"\nType {plan.consent.word} to apply this: ")
            return word == plan.consent.word, word
        return (await ask_line("\nApply this? [y/N] ")).lower() in ("y", "yes"), ""

    async def _question(self, question: Question) -> bool:
        if self._kills or not self._asks:
            return self._kills
        overwrite("\n".join(clean(line) for line in (question.title, *question.text)) + "\n")
        return (await ask_line("Kill it? [y/N] ")).lower() in ("y", "yes")

    def _progress(self, now: Telling | Progress) -> None:
        if isinstance(now, Telling) and now.plan is not None:
            self._plan = now.plan
        if not sys.stderr.isatty() or self._agreement.as_json:
            return
        if isinstance(now, Telling):
            overwrite(telling_text(now, width() - 1))
        elif self._plan is not None:
            overwrite(plain(progress_parts(self._plan, now, width() - 1)))

    def _left(self, view: StepView) -> int:
        if not view.may_go and not self._asks:
            return self._over(EXIT_FAILED)
        again = f"worktop playbook resume {self._run.status.run}"
        self._say(f"left before step {view.step.number}; {again} takes it up again")
        return self._over(EXIT_LEFT if self._asks else EXIT_USAGE)

    def _ended(self, end: StepEnd) -> None:
        self._ends.append(end)
        if sys.stderr.isatty() and not self._agreement.as_json:
            overwrite("")
        self._say("\n" + lines_text(end_lines(end, width(), glyphs())) + "\n")

    def _over(self, code: int, shown: StepView | None = None) -> int:
        status = self._run.status
        if self._agreement.as_json:
            print_json(Answer(status=status, steps=tuple(self._ends), next=shown))
        elif status.state != "open":
            self._say(lines_text(run_lines(status, time.time(), width(), glyphs())))
        return code

    def _say(self, text: str) -> None:
        if not self._agreement.as_json:
            say(text)
