"""The application: one feed, one stack of screens, and an end that leaves the terminal whole."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import ClassVar

from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.binding import BindingType
from textual.color import Color
from textual.filter import LineFilter, NoColor
from textual.screen import Screen
from textual.timer import Timer

from console.errors import WorktopError
from console.fleet.model import Fleet
from console.tui.commands import bindings
from console.tui.feed import Feed
from console.tui.screens.base import ConsoleScreen
from console.tui.screens.fleet import FleetScreen
from console.tui.screens.help import HelpScreen
from console.tui.theme import MONO, PALETTES, palette
from console.view.cells import Tone, safe
from console.view.glyphs import ASCII, UNICODE, to_ascii

SHOWN_AT_MOST = 10  # times a second, however often the feed speaks
_CLOCK_MAY_STAND = 0.9  # seconds
STOP_WITHIN = 0.5  # seconds the feed has to end


class AsciiOnly(LineFilter):
    """The last gate of a terminal that is not UTF-8: whatever a widget draws leaves in ASCII."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(to_ascii(text), style, control) for text, style, control in segments]


class ConsoleApp(App[None]):
    """Shows what the feed says. `fault` is the exception that ended it, if one did."""

    TITLE = "worktop"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("console")]
    CSS = """
    Screen { background: $background; color: $foreground; layout: vertical; }
    .title.airy { margin-top: 1; }
    #foot { dock: bottom; }
    Toast { max-width: 90%; }
    """

    def __init__(
        self,
        feed: Feed,
        *,
        read_only: bool = True,
        unicode: bool = True,
        no_color: bool = False,
        theme: str = "worktop-dark",
        clock: Callable[[], float] = time.time,
        on_end: Callable[[int], None] | None = None,
    ) -> None:
        """`on_end` is called with the exit status as soon as the end has begun, before anything is torn down."""
        super().__init__(ansi_color=True if no_color else None)
        self.feed = feed
        self.read_only = read_only
        self.glyphs = UNICODE if unicode else ASCII
        self.no_color = no_color
        self.clock = clock
        self.fault: BaseException | None = None
        self._on_end = on_end
        self._pending: Timer | None = None
        self._last_shown = 0.0
        self._filters_after: list[LineFilter] = [] if unicode else [AsciiOnly()]
        for known in PALETTES:
            self.register_theme(known.theme())
        self.theme = theme
        self.tones: dict[Tone, Style] = {}
        self._starting: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._take_tones()

    @property
    def fleet(self) -> Fleet | None:
        """The newest fleet."""
        return self.feed.fleet

    def get_line_filters(self) -> Sequence[LineFilter]:
        # Textual's own NO_COLOR filter makes greys that cannot be read.
        own: list[LineFilter] = [NoColor()] if self.no_color else list(super().get_line_filters())
        return [*own, *self._filters_after]

    # --- life ------------------------------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[None]:
        return FleetScreen()

    def on_mount(self) -> None:
        self.feed.subscribe(self.fleet_changed)
        # Back from a suspension Textual paints only what changes next, on a screen that is blank.
        self.app_resume_signal.subscribe(self, lambda _: self.screen.refresh())
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
        screen = self.screen
        if isinstance(screen, ConsoleScreen):
            screen.show()

    def _tick(self) -> None:
        if time.monotonic() - self._last_shown < _CLOCK_MAY_STAND:
            return  # a fleet that was just shown brought the clock with it
        screen = self.screen
        if isinstance(screen, ConsoleScreen):
            screen.show_head()

    def _take_tones(self) -> None:
        self.tones = MONO if self.no_color else palette(self.theme).styles()

    # --- commands --------------------------------------------------------------------------------------------

    def action_leave(self) -> None:
        """Leave the console."""
        self.exit()

    def action_help(self) -> None:
        """Show the help, once."""
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen())

    def action_go_back(self) -> None:
        """Go back one level; on the first screen there is none."""
        screen = self.screen
        if isinstance(screen, ConsoleScreen) and screen.back():
            return
        if len(self.screen_stack) > 1:
            self.pop_screen()

    async def action_refresh_now(self) -> None:
        """Ask every source again."""
        self._refreshing = asyncio.create_task(self._guarded(self.feed.refresh()))

    def action_next_theme(self) -> None:
        """Change to the next theme."""
        names = [known.name for known in PALETTES]
        self.theme = names[(names.index(self.theme) + 1) % len(names)]
        self._take_tones()
        self._show()
        self.notify("no theme has colours: NO_COLOR is set" if self.no_color else palette(self.theme).title, timeout=2)
