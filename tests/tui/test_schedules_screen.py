"""Schedules: the list, one entry with its units, and the plans of a line."""

from __future__ import annotations

import msgspec

from console.errors import HostError
from console.schedules.inventory import Inventory
from console.tui.screens import schedules as screen_module
from console.tui.screens.plan import PlanScreen
from console.tui.screens.schedule import ScheduleScreen
from console.tui.screens.schedules import SchedulesScreen
from tests.examples import example_fleet
from tests.schedules import examples
from tests.tui.action_feeds import ActingFeed
from tests.tui.feeds import StillFeed
from tests.tui.hostile import HOSTILE, harmless, spoil
from tests.tui.pilots import Driven
from tests.tui.queue_feeds import console_on


def screen_of(driven: Driven) -> SchedulesScreen:
    screen = driven.app.screen
    assert isinstance(screen, SchedulesScreen)
    return screen


async def test_what_needs_a_look_comes_first() -> None:
    async with console_on(StillFeed(example_fleet()), (120, 40), "6") as driven:
        await driven.pilot.pause(0.05)
        lines = driven.lines()
        title = next(line for line in lines if line.startswith("SCHEDULES"))
        assert "1 pile grows" in title and "1 unread" in title and "2 launchers" in title
        first = next(number for number, line in enumerate(lines) if "CLASS" in line)
        kinds = [line.split()[1] for line in lines[first + 1 : first + 8]]
        assert kinds == ["unread", "launcher", "invalid", "launcher", "periodic", "periodic", "none"]
        reports = next(line for line in lines if "deploy:4" in line)
        assert "9 +3" in reports and "every minute" in reports and "in 20 s" in reports
        assert "not permitted" in next(line for line in lines if "unread" in line and "backup" in line)
        assert "its name has other characters" in next(line for line in lines if "images.old" in line)


async def test_one_entry_with_evidence_runs_and_units() -> None:
    feed = StillFeed(example_fleet())
    async with console_on(feed, (110, 70), "6") as driven:
        await driven.pilot.pause(0.05)
        await driven.press("down", "enter")
        assert isinstance(driven.app.screen, ScheduleScreen)
        await driven.pilot.pause(0.05)
        text = driven.text()
        assert "crontab:deploy:4  ▲ launcher" in text
        assert "9 alive of 3 runs; each run adds 3 more" in text and "3 were alive 2 min ago" in text
        assert "its script: /srv/reports/start.sh starts the worker three times" in text
        assert "hunter2" not in text
        assert "systemd-analyze verify accepts reports@.service" in text
        assert "ExecStart=/srv/reports/worker --queue reports" in text


async def test_translate_goes_to_the_units() -> None:
    async with console_on(StillFeed(example_fleet()), (80, 24), "6") as driven:
        await driven.pilot.pause(0.05)
        await driven.press("down", "T")
        await driven.pilot.pause(0.05)
        text = driven.text()
        assert "UNITS\n" in text and "ExecStart=/srv/reports/worker" in text and "WHAT IT IS\n" not in text


async def test_a_line_is_switched_off_by_a_plan() -> None:
    feed = ActingFeed(example_fleet())
    async with console_on(feed, (100, 30), "6") as driven:
        await driven.pilot.pause(0.05)
        await driven.press("down", "D")
        assert isinstance(driven.app.screen, PlanScreen)
        (asked,) = feed.actions.asked
        assert asked.verb == "disable-line"
        assert (asked.options["path"], asked.options["line"]) == ("/var/spool/cron/crontabs/deploy", 4)
        assert asked.options["raw"] == b"* * * * * /srv/reports/start.sh"


async def test_what_is_off_can_only_be_switched_on() -> None:
    feed = ActingFeed(example_fleet())
    async with console_on(feed, (120, 30), "6") as driven:
        await driven.pilot.pause(0.05)
        assert "deploy:8" in driven.text() and "switched off by worktop: " in driven.text()
        await driven.press("end", "D")
        assert isinstance(driven.app.screen, SchedulesScreen) and not feed.actions.asked
        await driven.press("E")
        assert isinstance(driven.app.screen, PlanScreen)
        assert feed.actions.asked[0].verb == "restore-line"


async def test_read_anew_on_request_and_not_while_another_screen_is_shown() -> None:
    feed = StillFeed(example_fleet())
    async with console_on(feed, (80, 24), "6") as driven:
        await driven.pilot.pause(0.05)
        assert feed.looked == [False]
        await driven.press("ctrl+r")
        await driven.pilot.pause(0.05)
        assert feed.looked == [False, True]
        screen = screen_of(driven)
        screen._tick()
        await driven.pilot.pause(0.05)
        assert feed.looked == [False, True, False]
        await driven.press("1")
        screen._tick()
        await driven.pilot.pause(0.05)
        assert feed.looked == [False, True, False]
        assert screen_module._EVERY >= 5.0


async def test_what_was_heard_stays_when_the_agent_fails() -> None:
    feed = StillFeed(example_fleet())
    async with console_on(feed, (100, 24), "6") as driven:
        await driven.pilot.pause(0.05)
        feed.schedules_answer = HostError("ask the agent", "it is not running")
        await driven.press("ctrl+r")
        await driven.pilot.pause(0.05)
        assert "× ask the agent: it is not running" in driven.text()
        assert "deploy:4" in driven.text()


async def test_hostile_texts_and_any_size() -> None:
    feed = StillFeed(example_fleet())
    hostile: Inventory = spoil(examples.inventory(), "".join(HOSTILE))
    feed.schedules_answer = hostile
    feed.translated_answer = spoil(examples.translated(), "".join(HOSTILE))
    async with console_on(feed, (80, 24), "6") as driven:
        await driven.pilot.pause(0.05)
        assert harmless(driven.text().replace("\n", ""))
        for size in ((1, 1), (4, 3), (20, 8), (200, 60), (80, 24)):
            await driven.pilot.resize_terminal(*size)
            await driven.pilot.pause()
        await driven.press("down", "enter")
        await driven.pilot.pause(0.05)
        assert harmless(driven.text().replace("\n", ""))


async def test_an_entry_that_changes_keeps_the_cursor() -> None:
    feed = StillFeed(example_fleet())
    async with console_on(feed, (100, 24), "6") as driven:
        await driven.pilot.pause(0.05)
        await driven.press("down", "down")
        kept = screen_of(driven).table.cursor_key
        known = examples.inventory()
        calm = msgspec.structs.replace(known.entries[0], alive=None)
        feed.schedules_answer = msgspec.structs.replace(known, entries=(calm, *known.entries[1:]))
        await driven.press("ctrl+r")
        await driven.pilot.pause(0.05)
        assert screen_of(driven).table.cursor_key == kept
