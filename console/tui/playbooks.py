"""What the console does with playbooks: which there are, the run that is followed, what is asked before one begins.

All else of playbooks is imported when it is first needed: the first screen need not wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from console.errors import WorktopError
from console.tui.asked import answer_of
from console.tui.screens.base import Doing
from console.view.cells import Part, safe

if TYPE_CHECKING:
    from console.fleet.model import Finding
    from console.playbook.model import Playbook, RunStatus, Settings, Shelved
    from console.schedules.inventory import Listed
    from console.tui.app import ConsoleApp
    from console.tui.books import BookRun, Books
    from console.tui.wizard import Wizard
    from console.view.playbooks import Begin

MODE = "playbooks"
Suggestion = tuple[str, str]  # a value, and what it is; raw


class PlaybookDesk:
    """The playbooks of one console. At most one run is followed at a time."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app
        self.wizard: Wizard | None = None
        self.shelf: tuple[Shelved, ...] = ()  # as it was read last
        self.runs: tuple[RunStatus, ...] = ()  # the same
        self._known = False  # it was read

    @property
    def books(self) -> Books | None:
        """The layer below; None where there is none."""
        return self._app.feed.playbooks if self._app.desk.acting is not None else None

    async def read(self) -> tuple[tuple[Shelved, ...], tuple[RunStatus, ...]]:
        """Read what there is, in a thread. WorktopError."""
        if self._app.desk.acting is None:
            return (), ()
        books = await asyncio.to_thread(lambda: self._app.feed.playbooks)  # its layer is imported with that
        if books is None:
            return (), ()
        self.shelf = await asyncio.to_thread(books.shelf)
        self.runs = await asyncio.to_thread(books.runs)
        self._known = True
        return self.shelf, self.runs

    async def tell_of_unfinished(self) -> None:
        """When the console starts: say so where a run waits to be taken up, unless the person has looked already.
        Raises nothing."""
        if self._known:
            return
        from console.view.playbooks import notice

        try:
            _, runs = await self.read()
        except WorktopError:
            return  # the screen of the playbooks says what is wrong
        told = notice(runs)
        if told:
            self._app.notify(told, markup=False, timeout=10)

    # --- what a person looks at --------------------------------------------------------------------------------------

    def mending(self, *findings: Finding) -> tuple[Begin, ...]:
        """The playbooks that are for these findings."""
        if not self.shelf:
            return ()
        from console.view.playbooks import for_findings

        return for_findings(self.shelf, findings)

    def about(self, listed: Listed | None) -> tuple[Begin, ...]:
        """The playbooks that are for a line of a crontab."""
        if not self.shelf:
            return ()
        from console.view.playbooks import for_entry

        return for_entry(self.shelf, listed)

    def doings(self, begins: tuple[Begin, ...]) -> tuple[Doing, ...]:
        """As entries of the menu."""
        return tuple(
            Doing(begin.label, f"screen.playbook({place})", "P" if not place else "", begin.help)
            for place, begin in enumerate(begins)
        )

    def show_begin(self, begins: Callable[[], tuple[Begin, ...]], place: int) -> None:
        """Show one of them, with the key that begins it."""
        self._app.background(self._show_begin(begins, place), "show a playbook")

    async def _show_begin(self, begins: Callable[[], tuple[Begin, ...]], place: int) -> None:
        await self.read()  # which runs are unfinished may have changed
        found = begins()
        if place < len(found):
            self.show_book(found[place].book, found[place].values)
        else:
            self._app.notify("no playbook is for this; 8 shows all", markup=False, timeout=3)

    def show_book(self, book: Playbook, values: Settings) -> None:
        """Show what a playbook is for and does."""
        from console.tui.screens.playbook import PlaybookScreen

        self._app.push_screen(PlaybookScreen(book, values))

    # --- runs --------------------------------------------------------------------------------------------------------

    def begin(self, book: Playbook, values: Settings) -> None:
        """Ask for what is not known yet, then begin a run and follow it."""
        self._app.background(self._begin(book, values), "begin a playbook")

    async def _begin(self, book: Playbook, values: Settings) -> None:
        from console.tui.screens.need import NeedScreen
        from console.view.playbooks import ROLE, missing

        values = dict(values)
        for name, about in missing(book, values):
            suggested = await self._suggested(name, values)
            answer = await answer_of(self._app, NeedScreen(book, name, about, suggested))
            if answer is None:
                return
            values[name] = answer
        books = self.books
        if books is not None:
            opening = partial(books.start, book.name, values)
            await self._follow(books, opening, book.title, str(values.get(ROLE, "")))

    def resume(self, run: RunStatus) -> None:
        """Take a run up where it stands."""
        books = self.books
        if books is not None:
            opening = partial(books.resume, run.run)
            self._app.background(self._follow(books, opening, run.title, run.role), "take up a playbook")

    async def _follow(self, books: Books, opening: Callable[[], Awaitable[BookRun]], title: str, role: str) -> None:
        from console.tui.screens.playbook import PlaybookScreen
        from console.tui.screens.wizard import WizardScreen
        from console.tui.wizard import Wizard

        app, running = self._app, self.wizard
        if running is not None and running.doing is not None:
            app.notify(safe(f"{running.moment.title} is being done: leave it first"), markup=False, timeout=5)
            await app.show_first(MODE)
            return
        if running is not None:
            running.leave()
        if isinstance(app.screen, PlaybookScreen):
            app.pop_screen()  # its run is what is looked at from now on
        self.wizard = Wizard(app, books, opening, title=title, role=role)
        await app.show_first(MODE)
        await app.push_screen(WizardScreen(self.wizard))

    async def _suggested(self, name: str, values: Settings) -> tuple[Suggestion, ...]:
        """Values to choose from; none where they are not known."""
        from console.schedules.inventory import short_name
        from console.view.playbooks import ENTRY, ROLE

        fleet = self._app.fleet
        if name == ROLE and fleet is not None:
            return tuple((status.role.name, "") for status in fleet.roles)
        if name != ENTRY:
            return ()
        try:
            known = await self._app.feed.schedules()
        except WorktopError:
            return ()
        entries = [each for each in known.entries if each.entry.active and each.explained.kind != "none"]
        own = [each for each in entries if each.role and each.role == values.get(ROLE)]
        return tuple(
            (short_name(each.name), each.entry.raw.decode("utf-8", "replace").strip()) for each in own or entries
        )

    # --- leaving -----------------------------------------------------------------------------------------------------

    def work_line(self, width: int) -> tuple[Part, ...]:
        """For the head of the other screens."""
        wizard = self.wizard
        if wizard is None or wizard.doing is None:
            return ()
        from console.view.wizard import work_line

        return work_line(wizard.moment, self._app.clock(), width, self._app.glyphs)

    def asks_before_leaving(self) -> bool:
        """While a plan of a step is applied: ask what is to become of it. A wait goes on by itself."""
        from console.tui.screens.progress import LeaveScreen

        wizard = self.wizard
        if wizard is None or wizard.doing is None or not wizard.doing.applying:
            return False
        if not isinstance(self._app.screen, LeaveScreen):
            self._app.push_screen(LeaveScreen(console=True), self._leave)
        return True

    def _leave(self, choice: str | None) -> None:
        if choice == "stop" and self.wizard is not None:
            self.wizard.leave(then=self._app.exit)
        elif choice == "leave":
            self._app.exit()
