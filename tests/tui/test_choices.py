"""The palette: every command by a few letters."""

from __future__ import annotations

from console.tui.app import ConsoleApp
from console.tui.commands import COMMANDS, SCREENS, of
from console.tui.screens.base import Doing
from console.tui.screens.fleet import FleetScreen
from console.tui.screens.help import HelpScreen
from console.tui.screens.list import LIST_SCOPES
from console.tui.screens.log import LogScreen
from console.tui.screens.palette import palette_entries
from console.tui.screens.workers import WorkersScreen
from tests.examples import example_fleet
from tests.tui.pilots import console


def test_a_few_letters_are_enough() -> None:
    for typed, first in (("wo", "Workers"), ("hos", "Host"), ("thm", "theme"), ("invert", "invert"), ("ctrl", "quit")):
        found = palette_entries(LIST_SCOPES, typed, True)
        assert first in [entry.label for entry in found][:3], typed
    assert palette_entries(LIST_SCOPES, "zzzz", True) == ()
    assert len(palette_entries(LIST_SCOPES, "", True)) == len(of(*LIST_SCOPES)) - 2


def test_one_registry() -> None:
    """Each screen has a mode, a command and a digit."""
    for screen in SCREENS:
        assert screen.name in ConsoleApp.MODES
        assert any(command.action == f"app.show({screen.name!r})" for command in COMMANDS)
    assert [screen.key for screen in SCREENS] == list("123456789")


async def test_it_goes_to_screens_and_runs_what_the_screen_and_the_table_can() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("colon", *"log", "enter")
        assert isinstance(driven.app.screen, LogScreen)
        await driven.press("ctrl+p", *"workers", "enter")
        screen = driven.app.screen
        assert isinstance(screen, WorkersScreen)
        await driven.press("colon", *"mark all", "enter")
        await driven.pilot.pause()
        assert len(screen.marked) == 18
        await driven.press("colon", *"last", "enter")
        await driven.pilot.pause()
        assert screen.table.cursor_row == 17
        await driven.press("colon", *"help", "enter")
        await driven.pilot.pause()
        assert isinstance(driven.app.screen, HelpScreen)


async def test_arrows_choose_and_escape_closes() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("colon", "down", "down", "up", "enter")
        assert isinstance(driven.app.screen, WorkersScreen)
        await driven.press("colon", *"zzz")
        assert "no command fits" in driven.text()
        await driven.press("enter", "colon", "escape", "escape")
        assert isinstance(driven.app.screen, FleetScreen)


async def test_a_click_takes_an_entry() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("colon")
        await driven.pilot.click("#entries", offset=(4, 4))
        await driven.pilot.pause()
        assert isinstance(driven.app.screen, LogScreen)


async def test_the_screen_goes_on_behind_the_palette() -> None:
    async with console(None) as driven:
        await driven.press("colon")
        await driven.say(example_fleet())
        await driven.press("escape")
        assert "FINDINGS  3 errors" in driven.text()


async def test_the_menu_runs_what_it_is_given() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("2")
        screen = driven.app.screen
        assert isinstance(screen, WorkersScreen)
        screen.doings = lambda: (Doing("mark everything", "screen.mark_all"),)  # type: ignore[method-assign]
        await driven.press("x")
        assert "mark everything" in driven.text()
        await driven.press("enter")
        await driven.pilot.pause()
        assert len(screen.marked) == 18
