"""What every screen of the console has: a head, a footer, and the newest fleet shown when it is in front."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

from textual import events
from textual.actions import SkipAction
from textual.screen import Screen

from console.fleet.model import Fleet
from console.tui.commands import Scope
from console.tui.widgets.line import KeyLine, Line
from console.view.cells import Part, cell
from console.view.headline import clock_text, head_lines
from console.view.offers import Offer
from console.view.progress import work_line

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp
    from console.view.playbooks import Begin

_HEAD_IN_TWO = 12  # lines of the terminal from which on the head may take two of them
_ANY_FRAME = 4  # with fewer lines there is no head and no footer


class Paused(NamedTuple):
    """The fleet that is shown on, and since when."""

    since: float
    fleet: Fleet | None


class Doing(NamedTuple):
    """Something that can be done with the selection: an entry of the menu (x)."""

    label: str
    action: str  # of the screen; "" : it is the offer
    keys: str = ""
    help: str = ""  # why it cannot be done, when it cannot
    able: bool = True
    offer: Offer | None = None


class ConsoleScreen(Screen[None]):
    """A screen with a head and a footer. Subclasses compose `head_line`, their body and `foot_line`.

    Those that can be paused (scope "common") compose `banner` below the head.
    """

    SCOPES: ClassVar[tuple[Scope, ...]] = ("console",)
    TELLS_OF_WORK: ClassVar[bool] = True  # an action that runs has a line in the head

    def __init__(self) -> None:
        super().__init__()
        self.head_line = Line(id="head")
        self.banner = Line(id="banner")
        self.foot_line = KeyLine(id="foot")
        self.paused: Paused | None = None
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
        self.show_banner()
        self.show_body(self.shown_fleet)

    @property
    def shown_fleet(self) -> Fleet | None:
        """The newest fleet, or while the screen is paused that of the moment it was."""
        return self.paused.fleet if self.paused is not None else self.console_app.fleet

    def show_head(self) -> None:
        """The head alone: the clock and the ages go on when nothing else happens."""
        if not self._ready:
            return
        app = self.console_app
        width, height = self.size
        most = 0 if height < _ANY_FRAME else 1 if height < _HEAD_IN_TWO else 2
        lines = head_lines(app.fleet, app.clock(), width, app.glyphs, app.read_only, most)
        run = app.desk.run
        if self.TELLS_OF_WORK and most:
            work = work_line(run, app.clock(), width, app.glyphs) if run is not None else app.playbooks.work_line(width)
            lines = (*lines, work) if work else lines
        self.head_line.show(lines, app.tones)

    def show_foot(self) -> None:
        app = self.console_app
        width, unicode = self.size.width, app.glyphs.unicode
        self.foot_line.fill(self.SCOPES, width, unicode, app.tones, app.current_mode, self.idle_commands())
        self.foot_line.display = self.size.height >= _ANY_FRAME

    def idle_commands(self) -> frozenset[str]:
        """The commands that would do nothing now: the footer leaves them out."""
        return frozenset()

    def show_banner(self) -> None:
        """Say that the screen is paused."""
        app = self.console_app
        if self.paused is None:
            self.banner.show((), app.tones)
            return
        text = f" {app.glyphs.paused} PAUSED since {clock_text(self.paused.since)} "
        parts: tuple[Part, ...] = ((text, "sorted"), *self.pause_note())
        self.banner.show((cell(parts, self.size.width).parts,), app.tones)

    def pause_note(self) -> tuple[Part, ...]:
        """What follows in the banner."""
        return (("  rows stand still, collecting goes on; p goes on", "warn"),)

    def show_body(self, fleet: Fleet | None) -> None:
        """Show what is particular to the screen."""
        raise NotImplementedError

    def back(self) -> bool:
        """Go back one level inside the screen; False when there is none."""
        return False

    def asked_again(self) -> None:
        """The person wants everything asked again now (ctrl+r): ask again for what is the screen's own."""

    def offers(self) -> tuple[Offer, ...]:
        """What can be asked for with the selection."""
        return ()

    def begins(self) -> tuple[Begin, ...]:
        """Playbooks for the selection."""
        return ()

    def doings(self) -> tuple[Doing, ...]:
        """What can be done with the selection, for the menu."""
        app = self.console_app
        return (*app.playbooks.doings(self.begins()), *app.desk.doings(self.offers()))

    def selection_text(self) -> str:
        """What the menu is about, a few safe words."""
        return ""

    def role_in_hand(self) -> str | None:
        """The role a person looks at here: that whose log they mean when they go to the log."""
        return None

    def copied(self) -> str:
        """What `y` copies: safe text."""
        return ""

    @property
    def body_height(self) -> int:
        """Lines between head and footer."""
        taken = self.head_line.line_count + self.banner.line_count + (1 if self.foot_line.display else 0)
        return max(0, self.size.height - taken)

    # --- commands --------------------------------------------------------------------------------------------

    def action_act(self, id: str) -> None:
        """Ask for a plan of this action for the selection."""
        offers = self.offers()
        offer = next((offer for offer in offers if offer.id == id), None)
        if offer is not None:
            self.console_app.desk.open(offer)
        else:
            able = ", ".join(offer.id for offer in offers if not offer.lacking)
            self.notify(f"no {id} here" + (f"; x has {able}" if able else ""), markup=False, timeout=3)

    def action_playbook(self, place: int = 0) -> None:
        """Show a playbook for the selection."""
        self.console_app.playbooks.show_begin(self.begins, place)

    def _key_escape(self) -> None:
        # Textual lets go of selected text here, and then the key goes back a level, too: action_go_back does one.
        pass

    def action_pause(self) -> None:
        """Freeze the rows, or go on."""
        app = self.console_app
        self.paused = Paused(app.clock(), app.fleet) if self.paused is None else None
        self.show()

    def action_copy(self) -> None:
        """Copy what the mouse selected, or else what the screen offers."""
        self.console_app.copy(self.get_selected_text() or self.copied())

    def action_copy_text(self) -> None:
        """ctrl+c with a selection; without one it leaves the console."""
        selected = self.get_selected_text()
        if not selected:
            raise SkipAction
        self.console_app.copy(selected)

    # --- life ------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self._ready = True
        self.show()

    def on_unmount(self) -> None:
        self._ready = False

    def on_resize(self, event: events.Resize) -> None:
        # Textual paints only what it placed elsewhere: nothing, when several resizes that came at once end where they
        # began. But the terminal has cut off lines and columns in between.
        self.console_app.paint_anew()
        self.show()

    def on_screen_resume(self) -> None:
        self.show()
