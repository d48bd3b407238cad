"""The application: one feed, one stack of screens, and an end that leaves the terminal whole."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from datetime import tzinfo
from importlib import import_module
from typing import ClassVar, cast

from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import App
from textual.binding import BindingType
from textual.color import Color
from textual.filter import LineFilter, NoColor
from textual.screen import Screen
from textual.timer import Timer

from console.errors import WorktopError
from console.fleet.model import Fleet
from console.text import size
from console.tui import caches
from console.tui.acting import Desk
from console.tui.commands import bindings
from console.tui.copying import TERMINAL_TAKES, write_copy
from console.tui.feed import Feed
from console.tui.painting import Shown
from console.tui.playbooks import PlaybookDesk
from console.tui.screens.base import ConsoleScreen
from console.tui.screens.fleet import FleetScreen
from console.tui.theme import MONO, PALETTES, palette, sixteen
from console.view.cells import Tone, safe
from console.view.glyphs import ASCII, UNICODE, to_ascii

SHOWN_AT_MOST = 10  # times a second, however often the feed speaks
_KEY_WAITS = 1.0  # seconds for the one before, should that be lost on its way
_CLOCK_MAY_STAND = 0.9  # seconds
RESTS_AFTER = 60.0  # seconds without a key or the mouse
STOP_WITHIN = 0.5  # seconds the feed has to end


def _later(module: str, name: str) -> Callable[[], Screen[None]]:
    """A screen whose module is imported when it is first shown: the first screen need not wait for the others."""

    def make() -> Screen[None]:
        kind = cast("type[Screen[None]]", getattr(import_module(f"console.tui.screens.{module}"), name))
        return kind()

    return make


class AsciiOnly(LineFilter):
    """The last gate of a terminal that is not UTF-8: whatever a widget draws leaves in ASCII."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(to_ascii(text), style, control) for text, style, control in segments]


class ConsoleApp(App[None]):
    """Shows what the feed says. `fault` is the exception that ended it, if one did."""

    TITLE = "worktop"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("console")]
    # Each keeps its own stack: what was open in one is open when it is shown again.
    DEFAULT_MODE = "fleet"
    MODES: ClassVar[dict[str, str | Callable[[], Screen[None]]]] = {
        "fleet": FleetScreen,
        "workers": _later("workers", "WorkersScreen"),
        "jobs": _later("jobs", "JobsScreen"),
        "queue": _later("queue", "QueueScreen"),
        "log": _later("log", "LogScreen"),
        "host": _later("host", "HostScreen"),
        "schedules": _later("schedules", "SchedulesScreen"),
        "playbooks": _later("playbooks", "PlaybooksScreen"),
        "audit": _later("audit", "AuditScreen"),
    }
    CSS = """
    Screen { background: $background; color: $foreground; layout: vertical; }
    .title.airy { margin-top: 1; }
    #foot { dock: bottom; }
    ListScreen #list { height: 1fr; }
    .-sixteen Table:focus > .datatable--cursor { background: $background; text-style: reverse; }
    ChoiceScreen { background: $background 50%; align: center top; }
    Toast { max-width: 90%; }
    """

    def __init__(
        self,
        feed: Feed,
        *,
        unicode: bool = True,
        no_color: bool = False,
        theme: str = "worktop-dark",
        clock: Callable[[], float] = time.time,
        zone: tzinfo | None = None,
        on_end: Callable[[int], None] | None = None,
    ) -> None:
        """`zone` is that of times beside the clock (None: this machine's). `on_end` is called with the exit status as
        soon as the end has begun, before anything is torn down.
        """
        super().__init__(ansi_color=True if no_color else None)
        self.feed = feed
        self.desk = Desk(self)
        self.playbooks = PlaybookDesk(self)
        self.glyphs = UNICODE if unicode else ASCII
        self.no_color = no_color
        self.clock = clock
        self.zone = zone
        self.fault: BaseException | None = None
        self._on_end = on_end
        self._shown = Shown()
        self._pending: Timer | None = None
        self._last_shown = 0.0
        self._touched = self._emptied = time.monotonic()
        self._resting = False
        self._filters_after: list[LineFilter] = [] if unicode else [AsciiOnly()]
        for known in PALETTES:
            self.register_theme(known.theme())
        self.theme = theme
        self.tones: dict[Tone, Style] = {}
        self._starting: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._key: events.Key | None = None  # that is being handled
        self._keys: deque[events.Key] = deque()  # that wait for it
        self._too_much = ""  # what the terminal would not take: y again writes it to a file
        self.chosen_role: str | None = None  # the role looked at last: whose log is shown when nobody says
        self._take_tones()

    @property
    def fleet(self) -> Fleet | None:
        """The newest fleet."""
        return self.feed.fleet

    @property
    def resting(self) -> bool:
        """Nobody has touched the console for a while."""
        return self._resting

    @property
    def read_only(self) -> bool:
        """Nothing can be changed from here, as far as is known."""
        return self.desk.read_only

    def get_line_filters(self) -> Sequence[LineFilter]:
        # Textual's own NO_COLOR filter makes greys that cannot be read.
        own: list[LineFilter] = [NoColor()] if self.no_color else list(super().get_line_filters())
        return [*own, *self._filters_after]

    # --- life ------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.feed.subscribe(self.fleet_changed)
        # Back from a suspension Textual paints only what changes next, on a screen that is blank.
        self.app_resume_signal.subscribe(self, lambda _: self.paint_anew())
        self.set_interval(1.0, self._tick)
        self._starting = asyncio.create_task(self._guarded(self.feed.start()))

    async def on_unmount(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
        stopping = asyncio.create_task(self.feed.stop())
        await asyncio.wait({stopping}, timeout=STOP_WITHIN)
        if stopping.done() and not stopping.cancelled():
            stopping.exception()  # looked at, so that nobody complains of it: it is too late for anybody to care

    async def _guarded(self, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        except WorktopError as error:
            self.tell(str(error))
        except Exception as error:  # noqa: BLE001  whatever the feed does wrong ends in the crash log
            self._handle_exception(error)

    def background(self, work: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        """Run something beside the screens; if it fails that is told, and the console goes on."""
        task = asyncio.create_task(work, name=name)
        self._background.add(task)  # the loop itself holds tasks only weakly
        task.add_done_callback(self._background_ended)
        return task

    def _background_ended(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, WorktopError):
            self.tell(str(error))
        else:
            self.tell_fault(error)

    def tell_fault(self, error: BaseException) -> None:
        """A part of the console failed and the rest goes on: say so, and keep the traceback in the crash log."""
        from console.tui.crash import crash_line

        if self.is_running:
            self.tell(crash_line(error, os.environ, what="something in the background failed"))

    def tell(self, problem: str) -> None:
        """Show a problem for a while, as one safe line."""
        self.notify(safe(problem), severity="error", markup=False, timeout=8)

    def exit(self, result: None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        if self._on_end is not None:
            self._on_end(return_code)
        super().exit(result, return_code, message)

    # Textual prints the locals of every frame of an unhandled exception and has no public way to say no. These three
    # keep the exception for the crash log instead and let the application end.

    def _handle_exception(self, error: Exception) -> None:
        self._ended_by(error)
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        self._close_messages_no_wait()

    def panic(self, *renderables: RenderableType) -> None:
        self._ended_by(sys.exc_info()[1] or RuntimeError("the terminal's input could not be read"))
        self._return_code = 1
        self._close_messages_no_wait()

    def _ended_by(self, error: BaseException) -> None:
        if self.fault is None:
            self.fault = error
        if self._on_end is not None:
            self._on_end(1)

    # --- showing ---------------------------------------------------------------------------------------------

    def fleet_changed(self) -> None:
        """The feed has a new fleet: show it, at most SHOWN_AT_MOST times a second."""
        if self._pending is not None or not self.is_running:
            return
        wait = self._last_shown + 1 / SHOWN_AT_MOST - time.monotonic()
        if wait <= 0:
            self._show()
        else:
            self._pending = self.set_timer(wait, self._show)

    def _show(self) -> None:
        self._pending = None
        self._last_shown = time.monotonic()
        self.desk.look()
        screen = self.front
        if screen is not None:
            screen.show()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        # Textual has no public place between what it has painted and the terminal.
        super()._display(screen, cast("RenderableType | None", self._shown.sparing(renderable, self.size)))

    def paint_anew(self) -> None:
        """Write the whole screen, whatever is believed to be shown."""
        self._shown.forget()
        self.screen.refresh()

    def _tick(self) -> None:
        if not self._resting and time.monotonic() - self._touched > RESTS_AFTER:
            self._resting = True
            self.feed.rest(True)
        if time.monotonic() - self._emptied > caches.EVERY:
            self._emptied = time.monotonic()
            caches.empty_large_ones()
        if time.monotonic() - self._last_shown < _CLOCK_MAY_STAND:
            return  # a fleet that was just shown brought the clock with it
        screen = self.front
        if screen is not None:
            screen.show_head()

    @property
    def front(self) -> ConsoleScreen | None:
        """The screen in front; below a window that is open, the one under it."""
        return next((screen for screen in reversed(self.screen_stack) if isinstance(screen, ConsoleScreen)), None)

    def _take_tones(self) -> None:
        chosen = palette(self.theme)
        if self.no_color:
            self.tones = MONO
        elif self.console.color_system == "standard":
            self.add_class("-sixteen")
            self.tones = sixteen(chosen.dark)
        else:
            self.tones = chosen.styles()

    # --- keys ------------------------------------------------------------------------------------------------

    # Textual sends a key to the widget that has the focus when it comes, and acts on it only when it has gone up from
    # there: keys that come in one go would all go to the same widget, text meant for a filter to the table before it,
    # commands after it into the filter. So each key waits for the end of the one before.

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.MouseEvent | events.Paste | events.Resize):
            self._touched = time.monotonic()
            if self._resting:
                self._resting = False
                self.feed.rest(False)
        if not isinstance(event, events.Key) or event.is_forwarded:
            await super().on_event(event)
        elif self._key is not None:
            self._keys.append(event)
        else:
            await self._take_key(event)

    async def _take_key(self, event: events.Key) -> None:
        self._key = event
        target = self.focused or self.screen
        await super().on_event(event)
        if not event.is_forwarded or not target.call_later(self._key_seen, event):
            self._next_key(event)
        else:
            self.set_timer(_KEY_WAITS, lambda: self._next_key(event))

    def _key_seen(self, event: events.Key) -> None:
        """The widget has seen it. When it did not keep it, `_on_key` comes next."""
        if event._stop_propagation:
            self._next_key(event)

    async def _on_key(self, event: events.Key) -> None:
        event.prevent_default()
        try:
            await super()._on_key(event)
        finally:
            self._next_key(event)

    def _next_key(self, event: events.Key) -> None:
        """This key is done with."""
        if self._key is not event:
            return
        self._key = self._keys.popleft() if self._keys else None
        if self._key is not None:
            self.call_next(self._take_key, self._key)

    # --- commands --------------------------------------------------------------------------------------------

    def action_leave(self) -> None:
        """Leave the console; while an action runs, ask first."""
        if not (self.desk.asks_before_leaving() or self.playbooks.asks_before_leaving()):
            self.exit()

    def action_help(self) -> None:
        """Show the help, once."""
        from console.tui.screens.help import HelpScreen

        front = self.screen
        if isinstance(front, ConsoleScreen) and not isinstance(front, HelpScreen):
            self.push_screen(HelpScreen(front.SCOPES))

    async def action_show(self, name: str) -> None:
        """Show a screen; when it is shown already, its first level."""
        if not isinstance(self.screen, ConsoleScreen):
            return
        if name == self.current_mode:
            await self.show_first(name)
            return
        self.chosen_role = self.screen.role_in_hand() or self.chosen_role
        await self.switch_mode(name)

    async def show_first(self, name: str) -> None:
        """Show the first level of a screen."""
        if name != self.current_mode:
            await self.switch_mode(name)
        while len(self.screen_stack) > 1:
            await self.pop_screen()

    def show_log_of(
        self, role: str | None, unit: str | None = None, *, around: float | None = None, mentions: str = ""
    ) -> None:
        """Show the log of a role over the screen, at first only that of one of its units; as it was around a moment
        (epoch seconds), or every line of any role that mentions a word."""
        from console.tui.screens.log import LogScreen

        self.push_screen(LogScreen(role, unit, around=around, mentions=mentions))

    async def action_palette(self) -> None:
        """Any screen or command by name."""
        from console.tui.screens.palette import PaletteScreen

        if isinstance(self.screen, ConsoleScreen):
            await self.push_screen(PaletteScreen(self.screen.SCOPES), self._run)

    def action_menu(self) -> None:
        """What can be done with the selection."""
        from console.tui.screens.menu import MenuScreen

        front = self.screen
        if not isinstance(front, ConsoleScreen):
            return
        self.desk.ask_rights()
        doings = front.doings()

        def take(number: str | None) -> None:
            doing = doings[int(number)] if number is not None else None
            if doing is not None and doing.offer is not None:
                self.call_later(self.desk.open, doing.offer)
            elif doing is not None:
                self._run(doing.action)

        self.push_screen(MenuScreen(front.selection_text(), doings), take)

    def action_show_work(self) -> None:
        """The action that runs, or the result of the last one."""
        self.desk.show_work()

    def _run(self, action: str | None) -> None:
        if action is not None:
            # When the window is gone: the action is of the screen below it, or of what has the focus there.
            self.call_later(self._run_here, action)

    async def _run_here(self, action: str) -> None:
        await self.run_action(action, self.screen.focused or self.screen)

    def action_go_back(self) -> None:
        """Let go of selected text; else go back one level, from the first level of a screen to the fleet."""
        screen = self.screen
        if screen.get_selected_text():
            screen.clear_selection()
            return
        if isinstance(screen, ConsoleScreen) and screen.back():
            return
        if len(self.screen_stack) > 1:
            if isinstance(screen, ConsoleScreen):
                self.pop_screen()
            else:
                screen.dismiss(None)
        elif self.current_mode != self.DEFAULT_MODE:
            self.switch_mode(self.DEFAULT_MODE)

    def copy(self, text: str) -> None:
        """Send text to the clipboard by the terminal; where it is too much, offer a file."""
        if not text:
            self.notify("nothing to copy", timeout=2)
            return
        amount = len(text.encode(errors="replace"))
        if amount <= TERMINAL_TAKES:
            self.copy_to_clipboard(text.encode(errors="replace").decode())
            lines = text.count("\n") + 1
            what = f"{lines} lines" if lines > 1 else f"{len(text)} characters"
            self.notify(f"{what} sent to the terminal", timeout=3)
        elif text != self._too_much:
            self._too_much = text
            self.notify(f"{size(amount)} are too much for the terminal: y again writes a file", timeout=8)
        else:
            self._too_much = ""
            try:
                self.notify(safe(f"written to {write_copy(text, os.environ)}"), markup=False, timeout=8)
            except (OSError, RuntimeError) as error:
                self.tell(f"no file could be written: {error}")

    async def action_refresh_now(self) -> None:
        """Ask every source again."""
        self._refreshing = asyncio.create_task(self._guarded(self.feed.refresh()))
        self.desk.ask_rights()
        if self.front is not None:
            self.front.asked_again()

    def action_next_theme(self) -> None:
        """Change to the next theme."""
        names = [known.name for known in PALETTES]
        self.theme = names[(names.index(self.theme) + 1) % len(names)]
        self._take_tones()
        self._show()
        self.notify("no theme has colours: NO_COLOR is set" if self.no_color else palette(self.theme).title, timeout=2)
