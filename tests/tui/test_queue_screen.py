"""Plots of a role's queue, and the numbers of now."""

from __future__ import annotations

import msgspec

from console.errors import Problem
from console.fleet.model import Fleet, SourceStatus
from console.tui.screens.jobs import JobsScreen
from console.tui.screens.queue import QueueScreen
from tests.examples import NOW, example_fleet
from tests.tui.hostile import HOSTILE, harmless, hostile_fleet
from tests.tui.queue_feeds import TableFeed, console_on, with_trends


async def test_40_by_15_shows_one_plot() -> None:
    async with console_on(TableFeed(with_trends(example_fleet()), 0), (40, 15), "4") as driven:
        text = driven.text()
        assert "waiting  336" in text and "per minute" not in text
        assert "mail                   412   0:41     0" in text
        await driven.press("m", "m", "m")
        assert "done per minute  115" in driven.text()


async def test_one_plot_large_and_back() -> None:
    async with console_on(TableFeed(with_trends(example_fleet()), 0), (80, 24), "4") as driven:
        await driven.press("m", "m")
        assert "oldest waiting  1:23" in driven.text()
        assert "waiting  336" not in driven.text()
        assert "Esc shows all plots" in driven.text()
        await driven.press("escape")
        assert "waiting  336" in driven.text()


async def test_the_role_under_the_cursor_is_plotted() -> None:
    async with console_on(TableFeed(with_trends(example_fleet()), 0), (80, 24), "4") as driven:
        await driven.press("down")
        assert "TREND of reports" in driven.text()
        await driven.press("right_square_bracket", "tab")
        assert "TREND of webhooks" in driven.text()
        await driven.press("left_square_bracket")
        assert "TREND of thumbnails" in driven.text()
        await driven.press("enter")
        assert isinstance(driven.app.screen, JobsScreen)
        assert driven.app.screen.role == "thumbnails"
        await driven.press("escape")
        assert isinstance(driven.app.screen, JobsScreen)  # first to all roles
        await driven.press("escape")
        assert isinstance(driven.app.screen, QueueScreen)


async def test_nothing_known_is_no_zero() -> None:
    async with console_on(TableFeed(with_trends(example_fleet()), 0), (80, 24), "4") as driven:
        await driven.press("G")
        text = driven.text()
        assert "TREND of digest  not read yet" in text
        assert "waiting  ?  nothing known" in text


async def test_a_plot_is_drawn_once_for_the_same_minutes() -> None:
    fleet = with_trends(example_fleet())
    async with console_on(TableFeed(fleet, 0), (80, 24), "4") as driven:
        screen = driven.app.screen
        assert isinstance(screen, QueueScreen)
        drawn = [plot.drawn for plot in screen.plots.values()]
        for _ in range(5):
            await driven.say(msgspec.structs.replace(fleet, now=fleet.now + 1))
        assert [plot.drawn for plot in screen.plots.values()] == drawn


async def test_why_there_is_nothing() -> None:
    refused = Problem("read the queue", "connection refused")
    async with console_on(TableFeed(None, 0), (80, 24), "4") as driven:
        for source, said in (
            (SourceStatus(name="queue", state="waiting"), "asking the queue"),
            (SourceStatus(name="queue", state="absent"), "no database: name one in worktop.toml"),
            (
                SourceStatus(name="queue", state="down", problem=refused),
                "the queue could not be read: connection refused; ctrl+r asks again",
            ),
        ):
            await driven.say(Fleet(now=NOW, sources=(source,)))
            assert said in driven.text()


async def test_stale_numbers_are_marked_and_the_plots_stay() -> None:
    fleet = with_trends(example_fleet())
    down = msgspec.structs.replace(fleet.sources[2], state="down", age=42.0)
    fleet = msgspec.structs.replace(fleet, sources=(*fleet.sources[:2], down))
    async with console_on(TableFeed(fleet, 0), (80, 24), "4") as driven:
        assert "× queue 42 s old" in driven.text()
        assert "waiting  336" in driven.text()


async def test_hostile_names_and_any_size() -> None:
    async with console_on(TableFeed(with_trends(hostile_fleet(HOSTILE)), 0), (80, 24), "4") as driven:
        assert harmless(driven.text().replace("\n", ""))
        for size in ((1, 1), (4, 3), (20, 8), (60, 10), (200, 60), (80, 24)):
            await driven.pilot.resize_terminal(*size)
            await driven.pilot.pause()
        assert "TREND of" in driven.text()
