"""Pure: playbooks, their steps and how far a run has come, as lines; the commands and the console show the same."""

from __future__ import annotations

from collections.abc import Sequence

from console.playbook.model import (
    BackView,
    Checked,
    Playbook,
    RunState,
    RunStatus,
    Setting,
    Shelved,
    StepEnd,
    StepView,
    Telling,
)
from console.text import clean, duration
from console.view.cells import Part, Tone, plain, safe
from console.view.glyphs import UNICODE, Glyphs
from console.view.page import Lines, Page
from console.view.plan import consent_lines, plan_lines

_STEP_TONES: dict[str, Tone] = {
    "done": "ok",
    "skipped": "dim",
    "failed": "bad",
    "now": "strong",
    "waits": "warn",
    "undone": "dim",
    "open": "dim",
}
_END_TONES: dict[str, Tone] = {"done": "ok", "failed": "bad", "left": "warn", "skipped": "dim", "undone": "ok"}
_SEEN_TONES: dict[str, Tone] = {"holds": "ok", "not": "bad", "unknown": "warn"}
RUN_WORDS: dict[RunState, str] = {
    "open": "unfinished",
    "done": "done",
    "rolled-back": "taken back",
    "abandoned": "given up",
}
_REVERSIBLE = {"yes": "can be taken back", "partly": "can be taken back in part", "no": "cannot be taken back"}


def step_mark(state: str, glyphs: Glyphs) -> Part:
    """The sign before a step."""
    signs = {"done": glyphs.good, "failed": glyphs.bad}
    signs |= {"now": ">", "waits": glyphs.changing, "skipped": "-", "undone": "-"}
    return signs.get(state, " "), _STEP_TONES.get(state, "")


def shelf_lines(shelf: Sequence[Shelved], width: int, glyphs: Glyphs = UNICODE) -> Lines:
    """One playbook each; what is wrong with a file."""
    page = Page(width, glyphs)
    longest = max((len(each.name) for each in shelf), default=0)
    for each in shelf:
        book = each.playbook
        if book is None:
            page.add(
                (f"{safe(each.name, 60):<{longest}}  ", "bad"), (safe(str(each.flaws[0])), "bad"), indent=longest + 2
            )
            continue
        page.add((f"{book.name:<{longest}}  ", "strong"), (safe(book.title), ""), indent=longest + 2)
        more = f"{len(book.steps)} steps, {_REVERSIBLE[book.reversible]}"
        if book.needs:
            more += f"; needs {', '.join(name for name, _ in book.needs)}"
        page.add((" " * (longest + 2), ""), (more, "dim"), indent=longest + 2)
    return tuple(page.lines)


def book_lines(book: Playbook, width: int, glyphs: Glyphs = UNICODE) -> Lines:
    """What a playbook is for, needs, and its steps."""
    page = Page(width, glyphs)
    page.add((safe(book.title), "strong"))
    page.field("name", book.name)
    page.field("file", book.path)
    if book.findings:
        page.field("for", ", ".join(book.findings))
    page.field("back", _REVERSIBLE[book.reversible])
    for name, about in book.needs:
        page.field("needs", f"{name}: {about}")
    for name, value in book.defaults.items():
        page.field("default", f"{name} = {setting_text(value)}")
    _prose(page, book.about)
    for step in book.steps:
        page.head(f"{step.number}. {safe(step.title)}")
        _prose(page, step.prose)
        page.field(*(("action", step.action) if step.action else ("check", step.check)))
        if step.stop:
            _prose(page, step.stop)
    return tuple(page.lines)


def step_lines(view: StepView, width: int, glyphs: Glyphs = UNICODE, count: int = 0) -> Lines:
    """A step before it is done: prose, what it would do here, how the role stands, what stopping here means."""
    page = Page(width, glyphs)
    step, shown = view.step, view.shown
    of = f" of {count}" if count else ""
    page.add((f"Step {step.number}{of}. ", "dim"), (safe(step.title), "strong"))
    _prose(page, step.prose)
    for checked in view.before:
        _checked(page, checked)
    if shown is not None:
        if shown.facts:
            page.break_()
        for fact in shown.facts:
            page.text(fact)
        if shown.plan is not None:
            page.break_()
            page.lines += plan_lines(shown.plan, width, glyphs)
            page.lines += consent_lines(shown.plan.consent, width, glyphs)
        if shown.nothing:
            page.break_()
            page.add((f"{glyphs.good} nothing to do: ", "ok"), (safe(shown.nothing), ""), indent=2)
        if shown.evidence:
            page.head("EVIDENCE")
        for each in shown.evidence:
            page.text(each, 2)
    if view.waits is not None:
        page.field("waits", f"{duration(view.waits)} more")
    if view.problem:
        page.break_()
        page.add((f"{glyphs.bad} ", "bad"), (safe(view.problem), "bad"), indent=2)
    page.break_()
    for sentence in view.standing:
        page.field("now", sentence)
    page.field("back", view.back)
    if step.stop:
        _prose(page, step.stop)
    return tuple(page.lines)


def back_lines(view: BackView, width: int, glyphs: Glyphs = UNICODE) -> Lines:
    """What takes a step back."""
    page = Page(width, glyphs)
    page.add(("Take back step ", "dim"), (f"{view.step.number}. {safe(view.step.title)}", "strong"))
    for plan in view.plans:
        page.break_()
        page.lines += plan_lines(plan, width, glyphs)
    if view.nothing:
        page.add((f"{glyphs.good} nothing to do: ", "ok"), (safe(view.nothing), ""), indent=2)
    if view.problem:
        page.add((f"{glyphs.bad} ", "bad"), (safe(view.problem), "bad"), indent=2)
    page.break_()
    for sentence in view.standing:
        page.field("now", sentence)
    return tuple(page.lines)


def end_lines(end: StepEnd, width: int, glyphs: Glyphs = UNICODE) -> Lines:
    """What came of a step, and how things stand."""
    page = Page(width, glyphs)
    page.add((f"{end.state}  ", _END_TONES[end.state]), (safe(end.text), "strong"), indent=2)
    for each in end.evidence:
        if each != end.text:
            page.text(each, 2)
    for sentence in end.standing:
        page.field("now", sentence)
    for each in end.next:
        page.field("next", each, "key")
    return tuple(page.lines)


def run_lines(status: RunStatus, now: float, width: int, glyphs: Glyphs = UNICODE) -> Lines:
    """How far a run has come."""
    page = Page(width, glyphs)
    role = f" {glyphs.dot} {safe(status.role)}" if status.role else ""
    page.add((f"{safe(status.title)}{role}", "strong"), (f"  {RUN_WORDS[status.state]}", "note"))
    page.field("run", f"{status.run}, begun {duration(now - status.at)} ago by {status.who.name} on {status.host}")
    if status.held:
        page.field("run by", f"{status.held}, at this moment")
    if status.waits_until is not None:
        page.field("waits", f"{duration(max(0.0, status.waits_until - now))} more")
    for step in status.steps:
        mark, tone = step_mark(step.state, glyphs)
        text = f"  {safe(step.text)}" if step.text else ""
        page.add((f" {mark} {step.number:>2} ", tone), (safe(step.title), ""), (text, "dim"), indent=6)
    if status.report:
        page.field("report", status.report)
    return tuple(page.lines)


def telling_text(telling: Telling, width: int) -> str:
    """One line."""
    tail = f"  {duration(telling.remaining)} more" if telling.remaining is not None else ""
    return plain(((safe(telling.text, max(8, width - len(tail))), ""), (tail, "note")))


def setting_text(value: Setting) -> str:
    """As it is written in a playbook."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _prose(page: Page, markdown: str) -> None:
    """Markdown as it was written: it is made to be read so."""
    if not markdown:
        return
    page.break_()
    for paragraph in _paragraphs(markdown):
        page.add((clean(paragraph), ""), indent=len(paragraph) - len(paragraph.lstrip()))
    page.break_()


def _paragraphs(markdown: str) -> list[str]:
    """Lines that belong together joined, so that they are wrapped anew; code, lists and quotes keep theirs."""
    found: list[str] = []
    joins = fenced = False
    for line in markdown.split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            joins = False
            continue
        keeps = fenced or line[:1] in (" ", "-", "*", "|", ">", "#") or line[:2].rstrip(".").isdigit()
        if joins and line and not keeps:
            found[-1] += f" {line.strip()}"
        else:
            found.append(f"    {line}" if fenced else line)
        joins = bool(line) and not fenced
    return found


def _checked(page: Page, checked: Checked) -> None:
    seen = checked.seen
    page.add((f"{seen.state:<8}", _SEEN_TONES[seen.state]), (safe(seen.text), ""), indent=8)
    for each in seen.evidence:
        page.text(each, 8)
