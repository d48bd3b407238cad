"""Pure: a plan, how far it has come and what came of it, as lines: dialog, --dry-run and audit show the same ones."""

from __future__ import annotations

from typing import Literal

from console.fleet.model import Claim, Job
from console.fleet.plan import Blocked, Consent, Outcome, Plan, Progress, Step, StepOutcome
from console.text import duration, grouped, pad
from console.view.cells import Part, Tone, part_columns, plain, safe
from console.view.glyphs import UNICODE, Glyphs
from console.view.jobs import VERDICT_TONES, holder_text, lasted, verdict_word
from console.view.page import Lines, Page
from console.view.rows import count_text

_RISK_TONES: dict[str, Tone] = {"low": "ok", "medium": "warn", "high": "bad"}
_UNDO_WORDS = {"yes": "can be undone", "partly": "can be undone in part", "no": "cannot be undone"}
_STEP_TONES: dict[str, Tone] = {"done": "ok", "skipped": "dim", "failed": "bad", "stopped": "warn"}
_OUTCOME_TONES: dict[str, Tone] = {
    "done": "ok",
    "partly": "warn",
    "failed": "bad",
    "stopped": "warn",
    "cancelled": "dim",
}
_INDENT = 4
_VERDICT = 8  # columns
_HOLDERS_AT_MOST = 12
_BLOCKED_AT_MOST = 20

Detail = Literal["brief", "full", "apart"]


def plan_lines(plan: Plan, width: int, glyphs: Glyphs = UNICODE, detail: Detail = "full") -> Lines:
    """The plan in lines of at most `width` columns; "brief" leaves out the SQL below the steps and psql.

    "apart" has the SQL at the end, so that what decides can be read at once.
    """
    page = _Page(width, glyphs)
    page.title(plan)
    for reason in plan.reasons:
        page.text(reason)
    for warning in plan.warnings:
        page.add((f"{glyphs.warning} ", "warn"), (safe(warning), "warn"), indent=2)
    if plan.claims:
        page.head(f"HOLDERS {len(plan.claims)}" if len(plan.claims) > 1 else "HOLDER")
        for claim in plan.claims[:_HOLDERS_AT_MOST]:
            page.claim(claim)
        if len(plan.claims) > _HOLDERS_AT_MOST:
            page.add((f"  … {len(plan.claims) - _HOLDERS_AT_MOST} more", "dim"))
    if plan.steps:
        page.head("STEPS")
        for number, step in enumerate(plan.steps, 1):
            page.step(number, step, detail)
    if plan.samples:
        known = plan.rows is not None and plan.rows.n > len(plan.samples)
        page.head(f"JOBS {len(plan.samples)} of {count_text(plan.rows)}" if known and plan.rows else "JOBS")
        for job in plan.samples:
            page.add(("  ", ""), *_job(job), indent=_INDENT)
    page.break_()
    for sentence in plan.behind:
        page.field("behind them", sentence)
    if plan.late_finish == "rejected":
        page.field("late finish", "rejected: a former holder that ends its job after all changes nothing")
    elif plan.late_finish == "accepted":
        page.field("late finish", "accepted: a former holder that ends its job after all ends it for everyone", "warn")
    if plan.why:
        page.field("why", plan.why)
    if plan.command:
        page.field("command", plan.command, "key")
    if detail == "apart" and any(step.text or step.statement is not None for step in plan.steps):
        page.head("EXACTLY")
        for number, step in enumerate(plan.steps, 1):
            page.exactly(number, step)
    if plan.psql and detail != "brief":
        page.head("BY HAND, IN PSQL")
        page.block(plan.psql, 2, own=True)
    return tuple(page.lines)


def consent_lines(consent: Consent, width: int, glyphs: Glyphs = UNICODE) -> Lines:
    """What is asked of the person, or why it is refused and what would allow it; nothing for a plain confirmation."""
    page = _Page(width, glyphs)
    if consent.kind == "refused":
        page.add((f"{glyphs.bad} refused", "bad"))
        for reason in consent.why:
            page.text(reason, 2)
        if consent.allow:
            page.add(("  allowed by", "dim"))
        for line in consent.allow:
            page.block(line, 4)
    elif consent.kind == "typed":
        for reason in consent.why:
            page.add((f"{glyphs.warning} ", "warn"), (safe(reason), "warn"), indent=2)
        page.add(("type ", ""), (safe(consent.word), "strong"), (" to go on", ""))
    return tuple(page.lines)


def progress_parts(plan: Plan, progress: Progress, width: int) -> tuple[Part, ...]:
    """ "2/4 return 412 jobs to waiting  120 of 412  850/s"; one line."""
    number = min(progress.step, max(0, len(plan.steps) - 1))
    parts: list[Part] = [(f"{number + 1}/{len(plan.steps)} ", "dim")]
    title = progress.text or (plan.steps[number].title if plan.steps else "")
    tail: list[str] = []
    if progress.done or progress.total is not None:
        total = f" of {count_text(progress.total)}" if progress.total is not None else ""
        tail.append(f"{grouped(progress.done)}{total}")
    if progress.per_second is not None:
        tail.append(f"{grouped(round(progress.per_second))}/s")
    if progress.remaining is not None:
        tail.append(f"at most {duration(progress.remaining)} more")
    ending = "  " + "  ".join(tail) if tail else ""
    parts.append((safe(title, max(8, width - len(parts[0][0]) - len(ending))), ""))
    parts.append((ending, "note"))
    return tuple(part for part in parts if part[0])


def outcome_lines(plan: Plan, outcome: Outcome, width: int, glyphs: Glyphs = UNICODE) -> Lines:
    """What came of a plan: each step, the rows that could not move, what was verified, how to undo it."""
    page = _Page(width, glyphs)
    page.add((f"{outcome.state}  ", _OUTCOME_TONES[outcome.state]), (safe(outcome.text), "strong"), indent=2)
    for number, step in enumerate(outcome.steps, 1):
        title = plan.steps[number - 1].title if number <= len(plan.steps) else ""
        page.step_outcome(number, title, step)
    if outcome.blocked:
        page.head(f"COULD NOT BE MOVED {len(outcome.blocked)}")
        for blocked in outcome.blocked[:_BLOCKED_AT_MOST]:
            page.blocked(blocked)
        if len(outcome.blocked) > _BLOCKED_AT_MOST:
            page.add((f"  … {len(outcome.blocked) - _BLOCKED_AT_MOST} more", "dim"))
    if outcome.verified or outcome.not_verified:
        page.head("LOOKED AT AFTERWARDS")
        for sentence in outcome.verified:
            page.add((f"  {glyphs.good} ", "ok"), (safe(sentence), ""), indent=4)
        for sentence in outcome.not_verified:
            page.add((f"  {glyphs.unknown} ", "warn"), (safe(sentence), ""), indent=4)
    if outcome.next:
        page.head("WORTH DOING NEXT")
        for suggestion in outcome.next:
            page.add(("  ", ""), (safe(suggestion.title), ""), indent=4)
            page.add(("    ", ""), (safe(suggestion.command), "key"), indent=6)
    if outcome.undo:
        page.break_()
        page.field("undo", outcome.undo, "key")
    return tuple(page.lines)


def lines_text(lines: Lines) -> str:
    """The lines as plain text."""
    return "\n".join(plain(line).rstrip() for line in lines)


def plan_text(plan: Plan, width: int = 120, glyphs: Glyphs = UNICODE) -> str:
    """The whole plan with what is asked of the person, as plain text."""
    asked = consent_lines(plan.consent, width, glyphs)
    return lines_text((*plan_lines(plan, width, glyphs), *(((), *asked) if asked else ())))


def risk_parts(plan: Plan, glyphs: Glyphs) -> tuple[Part, ...]:
    """ "risk: low · can be undone"."""
    return (
        ("risk: ", "dim"),
        (plan.risk, _RISK_TONES[plan.risk]),
        (f" {glyphs.dot} {_UNDO_WORDS[plan.reversible]}", "warn" if plan.reversible == "no" else "dim"),
    )


class _Page(Page):
    """The parts of a plan."""

    def title(self, plan: Plan) -> None:
        risk = risk_parts(plan, self._glyphs)
        title = safe(plan.title)
        gap = self._width - part_columns(((title, ""),)) - part_columns(risk)
        if gap >= 2:
            self.lines.append(((title, "strong"), (" " * gap, ""), *risk))
        else:
            self.add((title, "strong"))
            self.add(*risk)

    def claim(self, claim: Claim) -> None:
        job = claim.job
        word = pad(verdict_word(claim.verdict), _VERDICT)
        who = safe(holder_text(job.holder), 60)
        self.add(
            (f"  {word}", VERDICT_TONES[claim.verdict]),
            (who, ""),
            (f"  job {safe(job.id, 40)}", "dim"),
            indent=_VERDICT + 2,
        )
        for sentence in claim.evidence:
            self.add((" " * (_VERDICT + 2), ""), (safe(sentence), "dim"), indent=_VERDICT + 4)

    def step(self, number: int, step: Step, detail: Detail) -> None:
        rows = f"  {count_text(step.rows)} row{'' if step.rows.n == 1 else 's'}" if step.rows is not None else ""
        self.add((f" {number:>2} ", "key"), (safe(step.title), ""), (rows, "note"), indent=_INDENT)
        if detail == "full":
            self.text_of(step)
        if step.undo:
            self.add((" " * _INDENT + f"  undone by: {safe(step.undo)}", "dim"), indent=_INDENT + 4)

    def text_of(self, step: Step) -> None:
        """Exactly what the step does."""
        statement = step.statement
        text = step.text or (statement.sql if statement is not None else "")
        if text:
            self.block(text, _INDENT + 2, own=statement is not None)
        if statement is not None and statement.parameters:
            given = "  ".join(f"{name} = {value}" for name, value in statement.parameters)
            self.block(given, _INDENT + 2, own=True)

    def exactly(self, number: int, step: Step) -> None:
        """The same under the number of the step."""
        if step.text or step.statement is not None:
            self.add((f" {number:>2} ", "key"), (safe(step.title), "dim"), indent=_INDENT)
            self.text_of(step)

    def step_outcome(self, number: int, title: str, step: StepOutcome) -> None:
        took = f"  {step.took:.1f} s" if step.took >= 0.05 else ""
        self.add(
            (f" {number:>2} ", "key"),
            (pad(step.state, 8), _STEP_TONES[step.state]),
            (safe(step.text or title), ""),
            (took, "dim"),
            indent=_INDENT + 8,
        )
        if step.problem is not None:
            self.add((" " * (_INDENT + 8), ""), (safe(step.problem.line()), "bad"), indent=_INDENT + 8)

    def blocked(self, blocked: Blocked) -> None:
        by = f"  (job {safe(blocked.by, 40)})" if blocked.by else ""
        self.add((f"  {safe(blocked.id, 40)}  ", "strong"), (safe(blocked.why), ""), (by, "dim"), indent=4)
        for choice in blocked.choices:
            self.add(("    ", ""), (safe(choice), "key"), indent=6)


def _job(job: Job) -> tuple[Part, ...]:
    """ "918233  resize  attempt 3 of 3  running 12:40  in thumbnails"."""
    of = f" of {job.max_attempts}" if job.max_attempts is not None else ""
    parts: list[Part] = [(safe(job.id, 40), "strong"), (f"  {safe(job.type, 40)}" if job.type else "", "")]
    parts.append((f"  {job.attempts}{of} tries", "dim"))
    if job.state == "running" and job.running_for is not None:
        parts.append((f"  runs {lasted(job.running_for)}", "dim"))
    elif job.state == "waiting" and job.waiting_for is not None:
        waits = f"waits {lasted(job.waiting_for)}" if job.waiting_for >= 0 else f"due in {lasted(job.waiting_for)}"
        parts.append((f"  {waits}", "dim"))
    error = next((line for line in reversed(job.error[-2000:].splitlines()) if line.strip()), "")
    if error:
        parts.append((f"  {safe(error.strip(), 120)}", "dim"))
    return tuple(part for part in parts if part[0])
