"""Log: the journal of a role's instances in one stream, followed as `less +F` does."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.timer import Timer
from textual.widgets import Input

from console.errors import Problem, WorktopError
from console.fleet.model import Fleet, LogLine
from console.state import write_new
from console.text import grouped
from console.tui.commands import Scope, bindings
from console.tui.feed import LogFollow
from console.tui.screens.base import ConsoleScreen
from console.tui.widgets.filter import FilterBar
from console.tui.widgets.line import Line
from console.tui.widgets.logview import LogView
from console.view.cells import Part, cell, part_columns, safe, wrap
from console.view.headline import clock_text
from console.view.listing import words_of
from console.view.log import LogStore, instance_name, line_text, name_width, record_text

_SHOWN_EVERY = 0.1  # seconds; a role that logs much is drawn ten times a second
_LEFT_ALONE = 30.0  # seconds after which a log that nobody sees is followed no longer
_STEP_ASIDE = 16  # columns
_AROUND = 60.0  # seconds before and after a moment


def units_of(fleet: Fleet | None, role: str | None) -> tuple[str, ...]:
    """The units of a role: the desired ones and whatever else runs of its template."""
    status = next((status for status in fleet.roles if status.role.name == role), None) if fleet is not None else None
    if status is None:
        return ()
    names = [*status.role.desired_units(), *(w.unit.name for w in status.workers if w.unit is not None)]
    return tuple(dict.fromkeys(names))


def followed(fleet: Fleet | None, role: str | None) -> tuple[str, ...]:
    """What is followed for a role: every instance of its template, also those that are yet to come."""
    status = next((status for status in fleet.roles if status.role.name == role), None) if fleet is not None else None
    if status is None or not status.role.template:
        return units_of(fleet, role)
    return (status.role.unit_name("*"),)


class LogScreen(ConsoleScreen):
    """The log of `role`, at first only of `unit`; without a role of the one that was looked at last.

    `around`: what was written around that moment (epoch seconds), until the person follows again. `mentions`: what any
    role writes with this word in it.
    """

    SCOPES: ClassVar[tuple[Scope, ...]] = ("console", "common", "log")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("common", "log")]

    def __init__(
        self, role: str | None = None, unit: str | None = None, *, around: float | None = None, mentions: str = ""
    ) -> None:
        super().__init__()
        self._own_role = role is not None or bool(mentions)
        self._around = around
        self._mentions = mentions
        self._to_place = False  # the moment is to be brought into sight
        self._role = role
        self._only = unit or ""
        self._units: tuple[str, ...] = ()  # the instances one can go to
        self._followed: tuple[str, ...] = ()
        self._follow: LogFollow | None = None
        self._starting = False
        self._turn = 0  # a start that is not the newest is given up
        self._problem: Problem | None = None
        self._store = LogStore()
        self._gone = 0
        self._showing: Timer | None = None
        self._leaving: Timer | None = None
        self.title_line = Line(id="title")
        self.filter_bar = FilterBar()
        self.message = Line(id="message")
        self.view = LogView(id="lines")

    def compose(self) -> ComposeResult:
        yield self.head_line
        yield self.banner
        yield self.title_line
        yield self.filter_bar
        yield self.message
        yield self.view
        yield self.foot_line

    # --- following -------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.set_focus(self.view)

    def on_unmount(self) -> None:
        self._stop()

    def on_screen_suspend(self) -> None:
        self._leaving = self.set_timer(_LEFT_ALONE, self._stop)

    def on_screen_resume(self) -> None:
        if self._leaving is not None:
            self._leaving.stop()
            self._leaving = None
        chosen = self.console_app.chosen_role
        if not self._own_role and chosen is not None and chosen != self._role:
            self._choose(chosen)

    def _choose(self, role: str | None) -> None:
        """Show the log of another role."""
        self._stop()
        self._store.clear()
        self.paused, self._store.paused = None, False
        self._role, self._only, self._units = role, "", ()
        self._gone, self._problem = 0, None
        self._around, self._mentions = None, ""
        self.view.following, self.view.aside = True, 0
        self.show()

    def _start(self, units: tuple[str, ...]) -> None:
        self._stop()
        self._store.begin_again()
        self._followed, self._problem, self._starting = units, None, True
        self.console_app.background(self._begin(units, self._turn), "follow the log")

    async def _begin(self, units: tuple[str, ...], turn: int) -> None:
        def told(lines: tuple[LogLine, ...]) -> None:
            if turn == self._turn:
                self._told(lines)

        try:
            if self._around is not None:
                await self._read(units, self._around, turn)
                return
            follow = await self.console_app.feed.follow_log(units, told, self._mentions)
        except WorktopError as error:
            if turn == self._turn:
                self._starting, self._problem = False, error.problem
                self.show()
            return
        if turn != self._turn:
            await follow.stop()
            return
        self._starting, self._follow = False, follow
        self.show()

    async def _read(self, units: tuple[str, ...], around: float, turn: int) -> None:
        """What was written around the moment; nothing is followed."""
        lines, problem = await self.console_app.feed.read_log(units, around - _AROUND, around + _AROUND)
        if turn == self._turn:
            self._starting, self._problem = False, problem
            self.view.following, self._to_place = False, True
            self._told(lines)
            self.show()

    def _stop(self) -> None:
        self._turn += 1
        self._starting = False
        follow, self._follow, self._followed = self._follow, None, ()
        if follow is not None:
            self.console_app.background(follow.stop(), "end the log")

    def _told(self, lines: tuple[LogLine, ...]) -> None:
        self._gone += self._store.add(lines)
        if self._showing is None and self._ready:
            self._showing = self.set_timer(_SHOWN_EVERY, self._show_lines)

    def asked_again(self) -> None:
        self._followed = ()
        self._follow_units(self.console_app.fleet)

    def _follow_units(self, fleet: Fleet | None) -> None:
        if self._mentions:
            roles = fleet.roles if fleet is not None else ()
            wanted = tuple(unit for status in roles for unit in followed(fleet, status.role.name))
            if wanted and wanted != self._followed and self._leaving is None:
                self._start(wanted)
            return
        if self._role is None and fleet is not None and not self._own_role:
            known = [status.role.name for status in fleet.roles if units_of(fleet, status.role.name)]
            chosen = self.console_app.chosen_role
            self._role = chosen if chosen is not None else next(iter(known), None)
        units = units_of(fleet, self._role)
        if units:  # while systemd cannot be asked those known stay
            self._units = units
        wanted = followed(fleet, self._role)
        if wanted and wanted != self._followed and self._leaving is None:
            self._start(wanted)

    # --- showing ---------------------------------------------------------------------------------------------

    def show_body(self, fleet: Fleet | None) -> None:
        self._follow_units(self.console_app.fleet)
        self._show_lines()

    def _show_lines(self) -> None:
        self._showing = None
        if not self._ready:
            return
        app = self.console_app
        self._store.narrow(words_of(self.filter_bar.text), self._only)
        gone, self._gone = self._gone, 0
        names = name_width(self._units) if self.size.width >= 40 and not self._only else 0
        self.view.show(self._store.shown, app.tones, app.glyphs, names, gone, self._store.version)
        if self._to_place and self._around is not None and self._store.shown:
            self._to_place = False
            place = sum(line.at < self._around for line in self._store.shown)
            self.call_after_refresh(self.view.go_to, place)  # only then it is known how many lines there are
        self._show_title()
        self._show_message()
        self.filter_bar.count(len(self._store.shown), self._store.total, app.tones)
        if self.paused is not None:
            self.show_banner()

    def _show_title(self) -> None:
        app, glyphs = self.console_app, self.console_app.glyphs
        problem = self._problem or (self._follow.problem if self._follow is not None else None)
        right: list[Part] = []
        if problem is not None:
            right.append((f"{glyphs.bad} not followed", "bad"))
        elif self._starting:
            right.append(("asking…" if glyphs.unicode else "asking...", "note"))
        elif self._around is not None:
            right.append((f"around {clock_text(self._around)}: G follows", "warn"))
        elif self.view.following:
            right.append(("following", "ok"))
        else:
            right.append((f"{glyphs.down} {grouped(self.view.below)} below: G follows", "warn"))
        left: list[Part] = [("LOG", "head")]
        if self._mentions:
            left.append((f"  everything that mentions {safe(self._mentions, 40)}", "head"))
        if self._role is not None:
            left += [(f" of {safe(self._role, 24)}  ", "head"), ("all", "dim" if self._only else "sorted")]
            for unit in self._units:
                left += [(" ", ""), (safe(instance_name(unit), 12), "sorted" if unit == self._only else "dim")]
        width = self.size.width
        room = max(0, width - part_columns(tuple(right)) - 1)
        parts = (*cell(tuple(left), room, gap=1).parts, *right)
        self.title_line.show((cell(parts, width).parts,), app.tones)

    def _show_message(self) -> None:
        app = self.console_app
        problem = self._problem or (self._follow.problem if self._follow is not None else None)
        fleet = app.fleet
        text = ""
        if problem is not None:
            text = f"{app.glyphs.bad} {problem.line()}; ctrl+r asks again"
        elif self._store.shown or self._starting:
            text = ""
        elif fleet is None:
            text = "asking systemd" + ("…" if app.glyphs.unicode else "...")
        elif self._mentions and not len(self._store):
            text = f"no unit of a role has logged a line with {self._mentions}"
        elif self._role is None and not self._mentions:
            text = "no role has a unit, so there is no log to follow"
        elif not self._units and not self._mentions:
            text = f"{self._role} has no unit, so it has no log of its own; [ and ] go to other roles"
        elif len(self._store):
            text = "no line matches; Esc ends the filter, Tab goes to another instance"
        else:
            text = "nothing was logged yet"
        self.message.show(tuple(wrap(((safe(text), "note"),), self.size.width)) if text else (), app.tones)

    def pause_note(self) -> tuple[Part, ...]:
        lost = f", {grouped(self._store.lost)} let go" if self._store.lost else ""
        return ((f"  {grouped(self._store.waiting)} lines wait{lost}; p goes on", "warn"),)

    def copied(self) -> str:
        return "\n".join(line_text(line) for line in self._store.shown)

    def selection_text(self) -> str:
        return f"log of {safe(self._role, 24)}" if self._role is not None else ""

    def role_in_hand(self) -> str | None:
        return self._role

    # --- commands --------------------------------------------------------------------------------------------

    def action_pause(self) -> None:
        """Let new lines wait, or go on."""
        super().action_pause()
        if self.paused is not None:
            self._store.paused = True
        else:
            self._gone += self._store.go_on()
        self._show_lines()

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.view.move(lines)
        self._show_title()

    def action_page(self, pages: int) -> None:
        """Scroll by pages."""
        self.view.move(pages * max(1, self.view.size.height - 1))
        self._show_title()

    def action_first(self) -> None:
        """The first line that is kept."""
        self.view.move(-len(self._store) - 1)
        self._show_title()

    def action_follow(self) -> None:
        """The last line, and follow."""
        self.view.following = True
        if self._around is not None:
            self._around = None
            self._store.clear()
            self.asked_again()
        self._show_lines()

    def action_aside(self, by: int) -> None:
        """Read on in long lines, or back."""
        self.view.aside = max(0, self.view.aside + by * _STEP_ASIDE)
        self.view.refresh()

    def action_export(self) -> None:
        """Write the lines that are shown to a file of mode 0600; secrets are masked."""
        from console.tui.screens.ask import FileScreen

        lines = list(self._store.shown)
        name = re.sub(r"[^\w.-]", "-", self._mentions or self._only or self._role or "log")
        path = f"~/worktop-{name}-{datetime.fromtimestamp(self.console_app.clock(), UTC):%Y%m%dT%H%M%SZ}.log"

        def take(answer: str | None) -> None:
            if answer is not None:
                self._write(answer, lines)

        self.app.push_screen(FileScreen(f"{grouped(len(lines))} lines to a file, secrets masked", path), take)

    def _write(self, named: str, lines: list[LogLine]) -> None:
        try:
            path = Path(named).expanduser()
            write_new(path, "\n".join(map(record_text, lines)))
        except (OSError, RuntimeError) as error:
            why = "there is such a file already" if isinstance(error, FileExistsError) else str(error)
            self.console_app.tell(f"nothing was written to {named}: {why}")
            return
        self.notify(safe(f"{grouped(len(lines))} lines written to {path}", 200), markup=False, timeout=5)

    def action_instance(self, by: int) -> None:
        """Only the next or previous instance; all after the last."""
        choices = ["", *self._units]
        place = choices.index(self._only) if self._only in choices else 0
        self._only = choices[(place + by) % len(choices)]
        self._show_lines()

    def action_role(self, by: int) -> None:
        """The next or previous role that has units."""
        fleet = self.console_app.fleet
        roles = [s.role.name for s in fleet.roles if units_of(fleet, s.role.name)] if fleet is not None else []
        if roles:
            place = roles.index(self._role) if self._role in roles else -1 if by > 0 else 0
            self._choose(roles[(place + by) % len(roles)])
            self.console_app.chosen_role = self._role

    def action_filter(self) -> None:
        """Let the person type a filter."""
        self.filter_bar.open()
        self._show_lines()

    def action_filter_done(self) -> None:
        """Keep the filter, go to the lines."""
        if not self.filter_bar.text:
            self.filter_bar.close()
        self.set_focus(self.view)
        self._show_lines()

    def back(self) -> bool:
        if self.filter_bar.display:
            self.filter_bar.close()
            self.set_focus(self.view)
            self._show_lines()
            return True
        return False

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._show_lines()

    @on(LogView.Scrolled)
    def _scrolled(self) -> None:
        self._show_title()
