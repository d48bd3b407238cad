"""What every screen of the console has: a head, a footer, and the newest fleet shown when it is in front."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.screen import Screen

from console.fleet.model import Fleet
from console.tui.commands import Scope
from console.tui.widgets.line import KeyLine, Line
from console.view.headline import head_lines

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

_HEAD_IN_TWO = 12  # lines of the terminal from which on the head may take two of them
_ANY_FRAME = 4  # with fewer lines there is no head and no footer


class ConsoleScreen(Screen[None]):
    """A screen with a head and a footer. Subclasses compose `head_line`, their body and `foot_line`."""

    SCOPES: ClassVar[tuple[Scope, ...]] = ("console",)

    def __init__(self) -> None:
        super().__init__()
        self.head_line = Line(id="head")
        self.foot_line = KeyLine(id="foot")
        self._ready = False  # there are widgets to show something in

    @property
    def console_app(self) -> ConsoleApp:
        return cast("ConsoleApp", self.app)

    def show(self) -> None:
        """Show the newest fleet in the present size; nothing that is the same is painted again."""
        if not self._ready:
            return
        self.show_head()
        self.show_foot()
        self.show_body(self.console_app.fleet)

    def show_head(self) -> None:
        """The head alone: the clock and the ages go on when nothing else happens."""
        if not self._ready:
            return
        app = self.console_app
        width, height = self.size
        most = 0 if height < _ANY_FRAME else 1 if height < _HEAD_IN_TWO else 2
        lines = head_lines(app.fleet, app.clock(), width, app.glyphs, app.read_only, most)
        self.head_line.show(lines, app.tones)

    def show_foot(self) -> None:
        app = self.console_app
        self.foot_line.fill(self.SCOPES, self.size.width, app.glyphs.unicode, app.tones)
        self.foot_line.display = self.size.height >= _ANY_FRAME

    def show_body(self, fleet: Fleet | None) -> None:
        """Show what is particular to the screen."""
        raise NotImplementedError

    def back(self) -> bool:
        """Go back one level inside the screen; False when there is none."""
        return False

    @property
    def body_height(self) -> int:
        """Lines between head and footer."""
        taken = self.head_line.line_count + (1 if self.foot_line.display else 0)
        return max(0, self.size.height - taken)

    def on_mount(self) -> None:
        self._ready = True
        self.show()

    def on_unmount(self) -> None:
        self._ready = False

    def on_resize(self, event: events.Resize) -> None:
        self.show()

    def on_screen_resume(self) -> None:
        self.show()
