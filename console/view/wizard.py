"""Pure: a playbook that is followed: its steps at the side, the step in hand, and in words where things stand."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from console.errors import Problem
from console.fleet.model import Fleet, Value
from console.fleet.plan import Plan, Progress
from console.playbook.model import PlaybookStep, RunStatus, StepEnd, StepStatus, StepView, Telling
from console.playbook.settings import filled_text, unknown_left_out
from console.playbook.standing import sentences, snapshot
from console.text import columns, duration
from console.view.cells import Part, cell, fit_parts, part_columns, safe, wrap
from console.view.glyphs import Glyphs
from console.view.page import Lines, Page
from console.view.plan import risk_parts
from console.view.playbook import RUN_WORDS, end_lines, run_lines, step_lines, step_mark
from console.view.progress import Run, amount_text, progress_lines

Parts = tuple[Part, ...]

_SIDE_FROM = 76  # columns of the terminal from which on the steps stand beside the text
_TITLE_AT_LEAST = 8


class Doing(Value, frozen=True, kw_only=True):
    """A step that is being done, or taken back. Times are of one clock, epoch seconds."""

    number: int
    began: float
    back: bool = False
    run: Run | None = None  # of the plan that is applied
    telling: Telling | None = None  # of the check that waits
    heard: float = 0.0  # when that was told
    stopping: bool = False

    @property
    def applying(self) -> bool:
        """A plan is being applied; otherwise it only looks and waits."""
        return self.telling is None and self.run is not None

    def told(self, news: Telling | Progress, now: float) -> Doing:
        """The same with one more word of it."""
        if isinstance(news, Telling) and news.plan is not None:
            return msgspec.structs.replace(self, run=Run(plan=news.plan, began=now), telling=None)
        if isinstance(news, Telling):
            return msgspec.structs.replace(self, telling=news, heard=now)
        if self.run is None:
            return self
        return msgspec.structs.replace(self, run=self.run.heard(news, now), telling=None)


class Moment(Value, frozen=True, kw_only=True):
    """All that is known of a run at one moment."""

    title: str
    role: str = ""
    status: RunStatus | None = None  # None: it is being begun, or taken up
    steps: tuple[PlaybookStep, ...] = ()  # as the file says them
    view: StepView | None = None  # of the step that comes next
    doing: Doing | None = None
    end: StepEnd | None = None  # what came of the last one
    problem: Problem | None = None  # why nothing can be shown
    asking: bool = False
    standing: tuple[str, ...] = ()  # how the role stands at this moment; (): as the view or the end says it
    report: str = ""  # the text of the report, when it is over

    @property
    def over(self) -> bool:
        return self.status is not None and (self.status.state != "open" or self.status.number > len(self.status.steps))


# --- the title and the steps -----------------------------------------------------------------------------------------


def title_parts(moment: Moment, width: int, glyphs: Glyphs) -> Parts:
    """ "Cron launcher → systemd · reports        step 3 of 8 · all of it can be taken back"."""
    role = f" {glyphs.dot} {safe(moment.role, 30)}" if moment.role else ""
    left: Parts = ((safe(moment.title), "strong"), (role, "strong"))
    right = _place(moment, glyphs)
    if part_columns(right) + _TITLE_AT_LEAST > width:
        right = right[:1]
    room = max(0, width - part_columns(right) - 1)
    return cell((*cell(left, room, gap=1).parts, *right), width).parts


def _place(moment: Moment, glyphs: Glyphs) -> Parts:
    status = moment.status
    if status is None:
        return ()
    if moment.over:
        word = "done" if status.state == "open" else RUN_WORDS[status.state]
        return ((word, "ok" if word == "done" else "note"),)
    place: Part = (f"step {status.number} of {len(status.steps)}", "note")
    if moment.asking:
        return (place, (" looking" + ("…" if glyphs.unicode else "..."), "note"))
    return (place, (f" {glyphs.dot} {_what_goes_back(moment)}", "dim"))


def _what_goes_back(moment: Moment) -> str:
    """In few words: the title of the playbook and its role stand beside them in 80 columns."""
    steps = moment.status.steps if moment.status is not None else ()
    changed = {step.number for step in steps if step.plans}
    if not changed:
        return "nothing is changed yet"
    if any(step.inverse.kind == "none" for step in moment.steps if step.number in changed):
        return "part can be taken back"
    return "all can be taken back"


def _state(moment: Moment, number: int) -> str:
    steps = moment.status.steps if moment.status is not None else ()
    return next((step.state for step in steps if step.number == number), "open")


def has_side(width: int) -> bool:
    """There is room for the steps beside the text."""
    return width >= _SIDE_FROM


def side_width(moment: Moment, width: int) -> int:
    """Columns of the steps beside the text."""
    steps = moment.status.steps if moment.status is not None else ()
    wish = max((columns(_step_title(step)) + 16 for step in steps), default=24)
    return max(20, min(wish, 28 if width < 100 else 40))


def step_list(moment: Moment, width: int, glyphs: Glyphs, most: int | None = None) -> Lines:
    """The steps, a line each: sign, number, title, and its state as a word; `most` lines around the one in hand."""
    status = moment.status
    if status is None:
        return ()
    lines = tuple(_step_line(moment, step, width, glyphs) for step in status.steps)
    if most is None or len(lines) <= most:
        return lines
    start = max(0, min(status.number - 1 - most // 2, len(lines) - most))
    return lines[start : start + max(0, most)]


def _step_line(moment: Moment, step: StepStatus, width: int, glyphs: Glyphs) -> Parts:
    state, word = _now(moment, step)
    sign, tone = step_mark(state, glyphs)
    start: Parts = ((f"{sign} ", tone), (f"{step.number:>2} ", "dim"))
    room = max(1, width - part_columns(start) - (columns(word) + 1 if word else 0))
    title = cell(((_step_title(step), "strong" if state in ("now", "waits", "failed") else ""),), room).parts
    end: Parts = ((f" {word}", tone),) if word else ()
    return fit_parts((*start, *title, *end), width)


def _now(moment: Moment, step: StepStatus) -> tuple[str, str]:
    """Its state, and the word for that; a step that is being done is more than its journal says."""
    doing = moment.doing
    if doing is None or doing.number != step.number:
        return step.state, "" if step.state == "open" else step.state
    if doing.applying or doing.back:
        return "waits", "goes back" if doing.back else "runs"
    return "waits", "waits"


def _step_title(step: StepStatus) -> str:
    return safe(unknown_left_out(step.title), 60)


def steps_collapsed(moment: Moment, width: int, glyphs: Glyphs) -> Parts:
    """The step in hand in one line, where there is no room for all: "> 3 Retire the line  now · Tab: all steps"."""
    status = moment.status
    if status is None or not status.steps:
        return ()
    here = status.steps[min(status.number, len(status.steps)) - 1]
    tail: Parts = ((f"  Tab: all {len(status.steps)}", "dim"),)
    room = max(1, width - part_columns(tail))
    return fit_parts((*_step_line(moment, here, room, glyphs), *tail), width)


# --- the step in hand ------------------------------------------------------------------------------------------------


def body_lines(moment: Moment, now: float, width: int, glyphs: Glyphs) -> Lines:
    """The step: what it would do, how far it is, or what came of it; at the end the whole run."""
    dots = "…" if glyphs.unicode else "..."
    if moment.doing is not None:
        return _doing_lines(moment, moment.doing, now, width, glyphs)
    if moment.problem is not None:
        told = wrap(((f"{glyphs.bad} ", "bad"), (safe(moment.problem.line()), "bad")), width, 2)
        return (*told, (), *wrap((("ctrl+r looks again, q leaves", "note"),), width))
    if moment.end is not None:
        return _end_lines(moment, moment.end, now, width, glyphs)
    if moment.over:
        return _over_lines(moment, now, width, glyphs)
    if moment.view is not None:
        return step_lines(moment.view, width, glyphs, len(moment.steps))
    begins = "taking the run up" if moment.status is None else "looking at the step"
    return tuple(wrap(((f"{begins}{dots}", "note"), ("  nothing is changed by that", "dim")), width))


def _doing_lines(moment: Moment, doing: Doing, now: float, width: int, glyphs: Glyphs) -> Lines:
    page = Page(width, glyphs)
    title = next((_step_title(step) for step in _steps(moment) if step.number == doing.number), "")
    page.add((f"{'Take back step' if doing.back else 'Step'} {doing.number}. ", "dim"), (title, "strong"))
    page.break_()
    if doing.run is not None and doing.telling is None:
        page.lines += progress_lines(doing.run, now, width, glyphs)
    elif doing.run is not None:
        page.add((f"{glyphs.good} ", "ok"), (f"{safe(doing.run.plan.title)}: applied", ""), indent=2)
    if doing.telling is not None:
        page.break_()
        page.add((f"{glyphs.changing} ", "note"), (safe(doing.telling.text), ""), indent=2)
        left = _left(doing, now)
        if left:
            page.add((f"  {left}", "note"), indent=2)
    elif doing.run is None:
        page.add((f"{glyphs.changing} looking{'…' if glyphs.unicode else '...'}", "note"))
    if doing.stopping:
        page.add(("it ends after what it is in; what is done stays done, the rest can be taken up again", "warn"))
    return tuple(page.lines)


def _left(doing: Doing, now: float) -> str:
    telling = doing.telling
    if telling is None or telling.remaining is None:
        return ""
    return f"{duration(max(0.0, telling.remaining - (now - doing.heard)))} more"


def _end_lines(moment: Moment, end: StepEnd, now: float, width: int, glyphs: Glyphs) -> Lines:
    page = Page(width, glyphs)
    title = next((step.title for step in _steps(moment) if step.number == end.number), "")
    page.add((f"Step {end.number}. ", "dim"), (safe(title), "strong"))
    page.break_()
    page.lines += end_lines(end, width, glyphs)
    if moment.over:
        page.break_()
        page.lines += _over_lines(moment, now, width, glyphs)
    return tuple(page.lines)


def _over_lines(moment: Moment, now: float, width: int, glyphs: Glyphs) -> Lines:
    status = moment.status
    if status is None:
        return ()
    page = Page(width, glyphs)
    page.lines += run_lines(status, now, width, glyphs)
    if moment.report:
        page.break_()
        page.block(moment.report, 0, "")
    return tuple(page.lines)


def _steps(moment: Moment) -> Sequence[StepStatus]:
    return moment.status.steps if moment.status is not None else ()


def standing_of(fleet: Fleet | None, role: str) -> tuple[str, ...]:
    """How the role stands in what is on the screens now; () where that does not say."""
    found = next((status for status in fleet.roles if status.role.name == role), None) if fleet is not None else None
    return sentences(role, snapshot(found, fleet.now)) if found is not None and fleet is not None else ()


# --- where things stand ----------------------------------------------------------------------------------------------


def stand_lines(moment: Moment, now: float, width: int, most: int, glyphs: Glyphs) -> Lines:
    """In at most `most` lines: what is awaited, who runs the role, what is the case when a person stops now, jobs."""
    if moment.status is None or most < 1:
        return ()
    page = Page(width, glyphs)
    page.add(*_awaited(moment, now, glyphs), indent=2)
    who, *others = moment.standing or _standing(moment) or ("",)
    page.field("now", who)
    if moment.doing is not None or not moment.over:
        page.field("stopped here", _stopped_here(moment))
    for sentence in others:
        page.field("now", sentence)
    lines = page.lines
    if len(lines) > most:
        more = f" {glyphs.down} {len(lines) - most} more"
        cut = fit_parts(lines[most - 1], max(0, width - columns(more)))
        lines = [*lines[: most - 1], (*cut, (more, "key"))]
    return tuple(lines)


def _awaited(moment: Moment, now: float, glyphs: Glyphs) -> Parts:
    doing, view, enter = moment.doing, moment.view, glyphs.enter
    if doing is not None:
        return _goes_on(doing, now, glyphs)
    if moment.problem is not None:
        return ((f"{glyphs.bad} ", "bad"), (safe(moment.problem.line()), "bad"))
    if moment.end is not None and moment.end.state == "failed":
        return ((f"{glyphs.bad} failed: {enter} looks again, b takes it back", "bad"),)
    if moment.over:
        return ((f"{glyphs.good} {_over_text(moment)}", "ok"),)
    if moment.end is not None:
        return ((f"{glyphs.good} {moment.end.state}", "ok"), (f"; {enter} goes on", "key"))
    if view is None or moment.asking:
        return (("looking" + ("…" if glyphs.unicode else "..."), "note"),)
    if not view.may_go:
        return ((f"{glyphs.bad} ", "bad"), (safe(view.problem or "it is refused"), "bad"))
    waits = moment.status.waits_until if moment.status is not None else None
    if view.waits is not None and waits is not None:
        left = duration(max(0.0, waits - now))
        return ((f"{glyphs.changing} waits, {left} more", "warn"), (f"; {enter} watches it", "key"))
    plan = view.shown.plan if view.shown is not None else None
    if plan is None:
        return (
            ("> ", "key"),
            (f"{enter} {'does' if view.step.action else 'looks at'} it; no file, unit or row is changed", "key"),
        )
    return (("> ", "key"), (f"{enter} shows what is to be agreed to: ", "key"), *risk_parts(plan, glyphs))


def _goes_on(doing: Doing, now: float, glyphs: Glyphs) -> Parts:
    if doing.stopping:
        return ((f"{glyphs.changing} stopping after what it is in", "warn"),)
    if doing.applying and doing.run is not None:
        heard = doing.run.steps.get(doing.run.at)
        amount = amount_text(heard.progress, now - heard.heard) if heard is not None else ""
        steps = len(doing.run.plan.steps)
        return (
            (f"{glyphs.changing} {'taking back' if doing.back else 'applying'} {duration(now - doing.began)}", "note"),
            (f" {glyphs.dot} {min(doing.run.at + 1, steps)} of {steps}", "dim"),
            (f" {glyphs.dot} {amount}" if amount else "", "note"),
        )
    left = _left(doing, now)
    told = f": {safe(doing.telling.text, 200)}" if doing.telling is not None else ""
    return ((f"{glyphs.changing} {f'waits, {left}' if left else 'looks'}{told}", "note"), ("; q leaves it", "key"))


def _over_text(moment: Moment) -> str:
    state = moment.status.state if moment.status is not None else "open"
    return {
        "done": "done to the end; b takes the last step back",
        "rolled-back": "taken back: everything is as it was before",
        "abandoned": "given up: what was done stays",
    }.get(state, "all steps are done")


def _standing(moment: Moment) -> tuple[str, ...]:
    if moment.end is not None:
        return moment.end.standing
    return moment.view.standing if moment.view is not None else ()


def _stopped_here(moment: Moment) -> str:
    """What the last step that was done says of stopping after it."""
    status = moment.status
    if status is None:
        return ""
    if moment.doing is not None:
        return _in_the_middle(moment.doing)
    reached = [step for step in moment.steps if _state(moment, step.number) not in ("open", "now", "undone")]
    last = reached[-1] if reached else None
    if last is None:
        return "nothing has been changed"
    state = _state(moment, last.number)
    if state in ("failed", "waits"):
        return f"step {last.number} is not done: it can be taken up again, or back"
    told = next((step.stop for step in reversed(reached) if step.stop and _state(moment, step.number) == "done"), "")
    return _bare(filled_text(told, status.values)) if told else "nothing has been changed"


def _in_the_middle(doing: Doing) -> str:
    step = f"step {doing.number}"
    if doing.back:
        return f"{step} is being taken back; what is left of it can be taken back later"
    if doing.applying:
        return f"{step} is under way: what is done of it stays done, the rest can be done later"
    return f"{step} waits, and goes on waiting when you leave"


def _bare(stop: str) -> str:
    """Without the words that a paragraph about stopping begins with, and without its line breaks."""
    return " ".join(stop.split()).removeprefix("If you stop here").lstrip(" ,:")


def work_line(moment: Moment, now: float, width: int, glyphs: Glyphs) -> Parts:
    """One line for the head of the other screens while a step is being done."""
    doing = moment.doing
    if doing is None:
        return ()
    tail: Part = (f" {glyphs.dot} 8 shows it", "note")
    title = f"{safe(moment.title, 40)}{f' of {safe(moment.role, 24)}' if moment.role else ''}, step {doing.number}: "
    parts: Parts = ((title, "strong"), *_goes_on(doing, now, glyphs))
    return cell((*fit_parts(parts, max(0, width - part_columns((tail,)))), tail), width).parts


def begun(number: int, now: float, plan: Plan | None = None, back: bool = False) -> Doing:
    """A step that begins now."""
    run = Run(plan=plan, began=now) if plan is not None else None
    return Doing(number=number, began=now, back=back, run=run)
