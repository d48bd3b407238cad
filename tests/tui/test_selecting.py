"""Text is selected with the mouse, and copied by y or ctrl+c."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual import events
from textual.geometry import Offset

from console.tui.screens.fleet import FleetScreen
from console.tui.screens.jobs import JobsScreen
from console.tui.screens.log import LogScreen
from console.tui.screens.worker import WorkerScreen
from console.tui.screens.workers import WorkersScreen
from tests.examples import example_fleet
from tests.tui.pilots import Driven, console


@asynccontextmanager
async def copying(monkeypatch: pytest.MonkeyPatch, *keys: str) -> AsyncIterator[tuple[Driven, list[str]]]:
    """The console, and what it has copied."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    async with console(example_fleet()) as driven:
        copied: list[str] = []
        monkeypatch.setattr(driven.app, "copy_to_clipboard", copied.append)
        await driven.press(*keys)
        yield driven, copied


async def draw(driven: Driven, widget: str, start: tuple[int, int], end: tuple[int, int]) -> None:
    """Press the button at `start` of the widget, go to `end`, let go."""
    place = driven.app.screen.query_one(widget).region.offset
    await move(driven, place + Offset(*start), place + Offset(start[0] + 3, start[1]), place + Offset(*end))


async def move(driven: Driven, *places: Offset) -> None:
    """The mouse as the terminal tells of it: pilot would not make a click of going down and up in one widget."""
    kinds = (events.MouseDown, *(events.MouseMove for _ in places[1:]), events.MouseUp)
    for kind, (x, y) in zip(kinds, (*places, places[-1]), strict=True):
        driven.app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))
        await driven.pilot.pause()


def marked(driven: Driven) -> list[str]:
    """What is marked as selected in each line."""
    ground = driven.app.screen.get_component_rich_style("screen--selection").bgcolor
    strips = driven.app.screen._compositor.render_strips()
    return ["".join(s.text for s in strip if s.style and s.style.bgcolor == ground).rstrip() for strip in strips]


async def test_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    async with copying(monkeypatch, "2") as (driven, copied):
        cursor = driven.app.screen.query_one("#list").cursor_row  # type: ignore[attr-defined]
        await draw(driven, "#list", (16, 2), (29, 4))
        assert isinstance(driven.app.screen, WorkersScreen)  # no row was opened, and none chosen
        assert driven.app.screen.table.cursor_row == cursor
        expected = [
            "mail       @2       systemd         32M –",
            "  ● ok          mail       @3       systemd         32M –",
            "  ● ok          reports    @1"[:29],
        ]
        await driven.press("y")
        assert copied[-1].split("\n") == expected
        assert [line.strip() for line in marked(driven) if line] == [line.strip() for line in expected]
        # It stays while values change, goes with a click, and then y copies the row.
        await driven.say(example_fleet())
        await driven.press("ctrl+c")
        assert driven.app.is_running and copied[-1] == copied[0]
        place = driven.app.screen.table.region.offset + Offset(4, 6)
        await move(driven, place)
        await driven.press("y")
        assert copied[-1].startswith("◇ stray\treports")
        # A second click opens the row and selects nothing.
        await move(driven, place)
        assert isinstance(driven.app.screen, WorkerScreen)
        await driven.press("escape")
        assert not driven.app.screen.get_selected_text()


async def test_a_head_and_one_word(monkeypatch: pytest.MonkeyPatch) -> None:
    async with copying(monkeypatch) as (driven, copied):
        await draw(driven, "#roles", (0, 0), (10, 0))
        await driven.press("y")
        assert copied == ["ROLE"]
        assert isinstance(driven.app.screen, FleetScreen) and driven.app.screen._order.key == ""


async def test_what_moved_is_selected_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with copying(monkeypatch, "2") as (driven, _):
        await draw(driven, "#list", (2, 1), (20, 1))
        assert driven.app.screen.get_selected_text()
        await driven.press("s")
        assert not driven.app.screen.get_selected_text()


async def test_escape_lets_go_of_it_before_it_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async with copying(monkeypatch, "3") as (driven, _):
        jobs = driven.app.screen
        assert isinstance(jobs, JobsScreen)
        state = jobs.state
        await draw(driven, "#title", (0, 0), (40, 0))
        assert jobs.get_selected_text() and jobs.state == state  # no other state was chosen by it
        await driven.press("escape")
        assert driven.app.screen is jobs and not jobs.get_selected_text()
        await driven.press("escape")
        assert driven.app.screen is not jobs


async def test_the_log_also_beyond_the_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    async with copying(monkeypatch, "5") as (driven, copied):
        assert isinstance(driven.app.screen, LogScreen)
        await draw(driven, "#lines", (21, 4), (79, 5))
        await driven.press("y")
        assert copied[-1].split("\n") == [
            "job 918251 failed: KeyError: 'BUCKET'",
            "16:41:59 @1 · notice mail-worker@2.service: Scheduled restart job, restart counter is at 3.",
        ]
        await draw(driven, "#lines", (21, 1), (30, 1))
        await driven.press("y")
        assert copied[-1] == "job 918240"


async def test_over_several_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    async with copying(monkeypatch) as (driven, copied):
        roles = driven.roles.region.offset
        await move(driven, roles + Offset(0, 6), Offset(79, driven.findings.region.y))
        await driven.press("y")
        lines = copied[-1].split("\n")
        assert lines[0].startswith("digest      1/2")
        assert lines[1].startswith("FINDINGS  3 errors")
        assert lines[2].startswith("× reports    two owners")
