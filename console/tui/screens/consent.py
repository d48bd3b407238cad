"""A plan that asks for consent: all that would be done and why, and the choice: Cancel, the default, or Apply."""

from __future__ import annotations

from typing import ClassVar, Literal

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType

from console.fleet.model import Fleet
from console.fleet.plan import Plan
from console.text import duration
from console.tui.asked import Asked
from console.tui.commands import Scope, bindings
from console.tui.screens.base import ConsoleScreen
from console.tui.widgets.field import Field
from console.tui.widgets.line import Line
from console.tui.widgets.pager import Pager
from console.view.cells import Part, cell, part_columns, safe, wrap
from console.view.page import Lines
from console.view.plan import consent_lines, plan_lines, plan_text

OLD_AFTER = 60.0  # seconds; an older plan is made anew before it is applied

Stop = Literal["typed", "why", "cancel", "apply"]
_STOPS: tuple[Stop, ...] = ("typed", "why", "cancel", "apply")
_ROOM_FOR_WHY = 12  # lines of the terminal from which on there is one for the reason


class ConsentScreen(ConsoleScreen):
    """Asks for a plan, shows it, and says so when the person agrees. Derive from it, and say

    plan_anew()  the plan; asked for when the screen is opened, on ctrl+r, and when the one agreed to is too old
    agreed()     the person agreed to this plan
    unready()    why nothing can be applied just now; "" when it can
    plan_lines() the lines of a plan
    """

    SCOPES: ClassVar[tuple[Scope, ...]] = ("console", "plan", "pager")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("plan")]

    def __init__(self, title: str) -> None:
        """`title`: until the plan has one of its own; safe."""
        super().__init__()
        self._title = title
        self.asked: Asked[Plan] | None = None
        self._agreed: Plan | None = None  # to this plan the person agreed, but it was old: a new one is being made
        self._stop: Stop = "cancel"
        self._told = ""  # beside the choice
        self._made: tuple[object, Lines] = (None, ())
        self._spans: dict[Stop, range] = {}
        self.title_line = Line(id="title")
        self.pager = Pager(id="body")
        self.typed_field = Field(id="typed")
        self.why_field = Field(id="why")
        self.choice_line = Line(id="choice")

    def compose(self) -> ComposeResult:
        yield self.head_line
        yield self.title_line
        yield self.pager
        yield self.typed_field
        yield self.why_field
        yield self.choice_line
        yield self.foot_line

    def on_mount(self) -> None:
        self.asked = Asked(self.console_app, self._answered)
        self.set_focus(self.pager)
        self._ask()
        self.watch(self.pager, "scroll_y", self._tick, init=False)
        self.set_interval(1.0, self._tick)

    def on_unmount(self) -> None:
        if self.asked is not None:
            self.asked.stop()

    async def plan_anew(self, why: str) -> Plan:
        """The plan; changes nothing. WorktopError."""
        raise NotImplementedError

    def agreed(self, plan: Plan, typed: str, why: str) -> None:
        """The person agreed: what was typed is the word that was asked for."""
        raise NotImplementedError

    def unready(self) -> str:
        return ""

    def plan_lines(self, plan: Plan, width: int) -> Lines:
        return plan_lines(plan, width, self.console_app.glyphs, "apart")

    # --- the plan ----------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        why = self.why_field.text
        if self.asked is not None:
            self.asked.ask(lambda: self.plan_anew(why))

    def asked_again(self) -> None:
        self._agreed = None
        self._ask()

    def _answered(self) -> None:
        """Asked, answered or refused."""
        asked = self.asked
        if asked is not None and not asked.asking and self._agreed is not None:
            agreed, self._agreed = self._agreed, None
            if asked.problem is None and asked.value is not None:
                if same_deed(agreed, asked.value):
                    self._start(asked.value)
                    return
                self._choose("cancel")
                self._told = "it was old and is another one now: look again"
                self.pager.scroll_home(animate=False)
        self.show()

    @property
    def plan(self) -> Plan | None:
        """The plan that is shown; None while it is made, or when it could not be."""
        asked = self.asked
        return asked.value if asked is not None and asked.problem is None and not asked.asking else None

    @property
    def _age(self) -> float:
        asked = self.asked
        return self.console_app.clock() - asked.taken if asked is not None and asked.taken is not None else 0.0

    def _tick(self) -> None:
        if self._ready:
            self._show_title()

    # --- showing -----------------------------------------------------------------------------------------------

    def show_body(self, fleet: Fleet | None) -> None:
        app, plan = self.console_app, self.plan
        self.pager.show(self._lines(max(1, self.size.width - 1)), app.tones)
        if plan is not None and plan.consent.kind == "typed":
            word = safe(plan.consent.word, 40)
            self.typed_field.label((("type ", ""), (word, "strong"), (" to apply: ", "")), app.tones)
        else:
            self.typed_field.display = False
        if plan is not None and plan.consent.kind != "refused" and self.size.height >= _ROOM_FOR_WHY:
            self.why_field.label((("why, for the audit: ", "dim"),), app.tones)
        else:
            self.why_field.display = False
        self._show_choice()
        self._show_title()
        self.call_after_refresh(self._show_title)  # only then is it known how much lies below

    def _lines(self, width: int) -> Lines:
        app, asked, plan = self.console_app, self.asked, self.plan
        key = (plan, asked.problem if asked is not None else None, width, app.glyphs)
        if key != self._made[0]:
            self._made = (key, self._new_lines(width))
        return self._made[1]

    def _new_lines(self, width: int) -> Lines:
        glyphs, asked, plan = self.console_app.glyphs, self.asked, self.plan
        if plan is not None:
            consent = consent_lines(plan.consent, width, glyphs) if plan.consent.kind != "confirm" else ()
            return (*consent, *(((),) if consent else ()), *self.plan_lines(plan, width))
        title = wrap(((self._title, "strong"),), width)
        if asked is None or asked.asking or asked.problem is None:
            dots = "…" if glyphs.unicode else "..."
            return (*title, (), *wrap(((f"planning{dots}", "note"), ("  nothing is changed by that", "dim")), width))
        told = wrap(((f"{glyphs.bad} ", "bad"), (safe(asked.problem.line()), "bad")), width, 2)
        return (*title, (), *told, (), *wrap((("ctrl+r plans again, Esc goes back", "note"),), width))

    def _show_title(self) -> None:
        app, asked, plan = self.console_app, self.asked, self.plan
        left: list[Part] = [("PLAN", "head")]
        if asked is None or asked.asking:
            left.append((f"  planning{'…' if app.glyphs.unicode else '...'}", "note"))
        elif plan is not None and self._age > OLD_AFTER:
            left.append((f"  {duration(self._age)} old: made anew before it is applied", "warn"))
        elif plan is not None:
            left.append(("  nothing is changed yet", "dim"))
        below = self.pager.max_scroll_y - int(self.pager.scroll_y)
        right: tuple[Part, ...] = ((f"{app.glyphs.down} {below} more lines", "key"),) if below > 0 else ()
        room = max(0, self.size.width - part_columns(right))
        self.title_line.show((cell((*cell(tuple(left), room).parts, *right), self.size.width).parts,), app.tones)

    def _show_choice(self) -> None:
        app, plan = self.console_app, self.plan
        refused = plan is None or plan.consent.kind == "refused"
        parts: list[Part] = [(" ", "")]
        self._spans = {}
        for stop in self._stops():
            if stop in ("cancel", "apply"):
                text = f"[ {'Back' if refused else stop.capitalize()} ]"
                at = part_columns(tuple(parts))
                self._spans[stop] = range(at, at + len(text))
                parts += [(text, "sorted" if stop == self._stop else "key"), ("  ", "")]
        if self._told:
            parts.append((self._told, "warn"))
        elif plan is not None and refused:
            parts.append((f"{app.glyphs.bad} refused: the reason is at the top", "bad"))
        self.choice_line.show((cell(tuple(parts), self.size.width).parts,), app.tones)

    def copied(self) -> str:
        return plan_text(self.plan, glyphs=self.console_app.glyphs) if self.plan is not None else ""

    # --- choosing ----------------------------------------------------------------------------------------------

    def _stops(self) -> tuple[Stop, ...]:
        """Where Tab goes."""
        plan = self.plan
        if plan is None or plan.consent.kind == "refused":
            return ("cancel",)
        shown = {"typed": self.typed_field.display, "why": self.why_field.display}
        return tuple(stop for stop in _STOPS if shown.get(stop, True))

    def _choose(self, stop: Stop) -> None:
        self._stop = stop if stop in self._stops() else "cancel"
        fields = {"typed": self.typed_field.input, "why": self.why_field.input}
        self.set_focus(fields.get(self._stop, self.pager))
        self._told = ""
        self._show_choice()

    def action_stop(self, by: int) -> None:
        """Go to the next field or choice, or the one before."""
        stops = self._stops()
        place = stops.index(self._stop) if self._stop in stops else 0
        self._choose(stops[(place + by) % len(stops)])

    def action_why(self) -> None:
        """Write what it is for."""
        self._choose("why")

    def action_leave_field(self) -> None:
        """Back to the plan, with Cancel chosen."""
        self._choose("cancel")

    def action_take(self) -> None:
        """Take what is chosen."""
        if self._stop == "apply":
            self.action_apply()
        else:
            self.console_app.action_go_back()

    def action_apply(self) -> None:
        """Apply the plan that is shown; one that is too old is made anew first."""
        plan = self.plan
        if plan is None or plan.consent.kind == "refused":
            return
        if plan.consent.kind == "typed" and self.typed_field.text != plan.consent.word:
            self._choose("typed")
            self._told = "this has to be typed first"
            self._show_choice()
        elif unready := self.unready():
            self._told = unready
            self._show_choice()
        elif self._age > OLD_AFTER:
            self._agreed = plan
            self._ask()
        else:
            self._start(plan)

    def _start(self, plan: Plan) -> None:
        self.agreed(plan, self.typed_field.text, self.why_field.text)

    def on_click(self, event: events.Click) -> None:
        if event.widget is self.choice_line:
            taken = next((stop for stop, span in self._spans.items() if event.x in span), None)
            if taken is not None:
                self._choose(taken)
                self.action_take()


def same_deed(one: Plan, other: Plan) -> bool:
    """Both plans do the same to the same, and ask the same of the person."""
    return (one.steps, one.selection, one.rows, one.consent) == (
        other.steps,
        other.selection,
        other.rows,
        other.consent,
    )
