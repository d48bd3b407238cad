"""Pure: an action while it is applied: its steps, what is done of each, how long it may last; and one line of it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from console.fleet.model import Value
from console.fleet.plan import Plan, Progress, Step
from console.text import duration, grouped
from console.view.cells import Part, cell, part_columns, safe, wrap
from console.view.glyphs import Glyphs
from console.view.rows import count_text

Lines = tuple[tuple[Part, ...], ...]


class StepRun(Value, frozen=True, kw_only=True):
    """What was heard of a step: the newest progress, when it was the first time spoken of, and when last."""

    progress: Progress
    began: float
    heard: float


class Run(Value, frozen=True, kw_only=True):
    """An apply that goes on. Times are of one clock, epoch seconds."""

    plan: Plan
    began: float
    steps: Mapping[int, StepRun] = {}
    stopping: bool = False  # the person wants it to end after the batch or step it is in

    @property
    def at(self) -> int:
        """The step it is in."""
        return max(self.steps, default=0)

    def heard(self, progress: Progress, now: float) -> Run:
        """The same with one more word of it."""
        known = self.steps.get(progress.step)
        step = StepRun(progress=progress, began=known.began if known is not None else now, heard=now)
        return msgspec.structs.replace(self, steps={**self.steps, progress.step: step})


def amount_text(progress: Progress, passed: float) -> str:
    """ "1 200 of 12 000 · 3 400 a second · at most 0:12 more"; `passed` seconds ago that was so."""
    out: list[str] = []
    if progress.done or progress.total is not None:
        total = f" of {count_text(progress.total)}" if progress.total is not None else ""
        out.append(f"{grouped(progress.done)}{total} rows")
    if progress.per_second is not None:
        out.append(f"{grouped(round(progress.per_second))} a second")
        left = progress.total.n - progress.done if progress.total is not None else 0
        if left > 0 and progress.per_second > 0:
            out.append(f"about {duration(left / progress.per_second)} left")
    if progress.remaining is not None:
        out.append(f"at most {duration(max(0.0, progress.remaining - passed))} more")
    return " · ".join(out)


def progress_title(run: Run, now: float, width: int, glyphs: Glyphs) -> tuple[Part, ...]:
    """ "↻ applying 0:04 · step 2 of 4"."""
    word = "stopping" if run.stopping else "applying"
    number = min(run.at + 1, max(1, len(run.plan.steps)))
    parts: tuple[Part, ...] = (
        (f"{glyphs.changing} {word} {duration(now - run.began)}", "warn" if run.stopping else "note"),
        (f" {glyphs.dot} step {number} of {len(run.plan.steps)}", "dim"),
    )
    return cell(parts, width).parts


def progress_lines(run: Run, now: float, width: int, glyphs: Glyphs) -> Lines:
    """Every step with what is done of it, in lines of at most `width` columns."""
    lines: list[tuple[Part, ...]] = [*wrap(((safe(run.plan.title), "strong"),), width), ()]
    for number, step in enumerate(run.plan.steps):
        lines += _step(run, number, step, now, width, glyphs)
    if run.stopping:
        lines += [
            (),
            *wrap((("it ends after the batch or the step it is in; what is done stays done", "warn"),), width),
        ]
    return tuple(lines)


def work_line(run: Run, now: float, width: int, glyphs: Glyphs) -> tuple[Part, ...]:
    """One line for the head of the other screens: what is applied, how far it is, and how to see it."""
    heard = run.steps.get(run.at)
    amount = amount_text(heard.progress, now - heard.heard) if heard is not None else ""
    tail = f" {glyphs.dot} 0 shows it"
    start: tuple[Part, ...] = (
        (f"{glyphs.changing} {'stopping' if run.stopping else 'applying'} ", "note"),
        (f"{run.at + 1}/{len(run.plan.steps)} ", "dim"),
    )
    if amount and part_columns(start) + len(amount) + len(tail) + 24 <= width:
        tail = f" {glyphs.dot} {amount}{tail}"
    title = safe(run.plan.title, max(1, width - part_columns(start) - len(tail)))
    return cell((*start, (title, "strong"), (tail, "note")), width).parts


def _step(run: Run, number: int, step: Step, now: float, width: int, glyphs: Glyphs) -> Lines:
    heard = run.steps.get(number)
    label = f" {number + 1:>2} "
    title = safe(step.title)
    if number < run.at:
        sign: Part = (f"{glyphs.good}{label}", "ok")
        took = f"  {duration(_until(run, number) - heard.began)}" if heard is not None else ""
        return tuple(wrap((sign, (title, ""), (took, "dim")), width, 5))
    if number > run.at:
        return tuple(wrap(((f"{glyphs.off}{label}", "dim"), (title, "dim")), width, 5))
    lines = wrap(((f"{glyphs.changing}{label}", "note"), (title, "strong")), width, 5)
    if heard is not None:
        if heard.progress.text and heard.progress.text != step.title:
            lines += wrap((("     ", ""), (safe(heard.progress.text), "")), width, 5)
        amount = amount_text(heard.progress, now - heard.heard)
        if amount:
            lines += wrap((("     ", ""), (amount, "note")), width, 5)
    return tuple(lines)


def _until(run: Run, number: int) -> float:
    """When a step that is done had ended: when the next one was spoken of."""
    later = [step.began for at, step in run.steps.items() if at > number]
    return min(later, default=run.began)
