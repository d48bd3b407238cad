"""The host: accounts against their limits, and trees by owner."""

from __future__ import annotations

import msgspec

from console.errors import HostError
from console.fleet.model import HostDetail
from console.tui.screens.host import HostScreen
from tests.examples import example_fleet, host_detail
from tests.tui.feeds import StillFeed
from tests.tui.hostile import HOSTILE, harmless, hostile_fleet, spoil
from tests.tui.pilots import Driven
from tests.tui.queue_feeds import console_on, with_accounts


def host_of(driven: Driven) -> HostScreen:
    assert isinstance(driven.app.screen, HostScreen)
    return driven.app.screen


async def test_40_by_15() -> None:
    async with console_on(StillFeed(with_accounts(example_fleet())), (40, 15), "7") as driven:
        text = driven.text()
        assert "MEMORY 3G of 8G, 5G free" in text
        assert "deploy" in text and "900/1 000" in text
        assert "▾ systemd mail-worker@1" in text


async def test_trees_that_come_and_are_refused() -> None:
    feed = StillFeed(with_accounts(example_fleet()))
    feed.host_answer = None
    async with console_on(feed, (80, 24), "7") as driven:
        assert "TREES  asking…" in driven.text()
        assert "900/1 000" in driven.text()
        feed.host_answer = HostDetail()
        await driven.press("ctrl+r")
        await driven.pilot.pause(0.05)
        assert "no process can be seen; ctrl+r reads them again" in driven.text()
        feed.host_answer = HostError("ask the agent", "it is not running")
        await driven.press("ctrl+r")
        await driven.pilot.pause(0.05)
        assert "× ask the agent: it is not running" in driven.text()


async def test_owners_collapse_and_the_cursor_stays_on_them() -> None:
    async with console_on(StillFeed(with_accounts(example_fleet())), (80, 24), "7") as driven:
        await driven.press("down", "enter")
        text = driven.text()
        assert "▸ systemd mail-worker@1.service" in text and "convert" not in text
        assert host_of(driven).table.cursor_row == 0
        await driven.press("enter")
        assert "convert" in driven.text()
        await driven.press("c")
        assert driven.text().count("▸") == 2
        await driven.press("c")
        assert "▸" not in driven.text()


async def test_a_filter_counts_its_matches() -> None:
    async with console_on(StillFeed(with_accounts(example_fleet())), (80, 24), "7") as driven:
        await driven.press("slash", *"convert")
        text = driven.text()
        assert "1 of 3" in text
        assert "--role reports" not in text
        await driven.press("enter", "escape")
        assert "cron deploy" in driven.text()


async def test_enter_on_an_account_filters_by_it() -> None:
    async with console_on(StillFeed(with_accounts(example_fleet())), (80, 24), "7") as driven:
        await driven.press("tab", "enter")
        assert host_of(driven).filter_bar.text == "deploy"
        assert "3 of 3" in driven.text()


async def test_trees_are_read_when_asked_and_the_selection_stays() -> None:
    feed = StillFeed(with_accounts(example_fleet()))
    async with console_on(feed, (80, 24), "7") as driven:
        await driven.press("down", "down")
        kept = host_of(driven).table.cursor_key
        assert isinstance(feed.host_answer, HostDetail)
        feed.host_answer = msgspec.structs.replace(feed.host_answer, trees=tuple(reversed(feed.host_answer.trees)))
        await driven.say(with_accounts(example_fleet()))
        assert "3 processes" in driven.text()
        feed.host_answer = HostDetail(trees=host_detail().trees[::-1][:1] + host_detail().trees[:2])
        await driven.press("ctrl+r")
        await driven.pilot.pause(0.05)
        assert host_of(driven).table.cursor_key == kept
        assert driven.text().index("cron deploy") < driven.text().index("systemd mail-worker")


async def test_hostile_texts_and_any_size() -> None:
    feed = StillFeed(hostile_fleet())
    feed.host_answer = spoil(host_detail(), "".join(HOSTILE))
    async with console_on(feed, (80, 24), "7") as driven:
        assert harmless(driven.text().replace("\n", ""))
        for size in ((1, 1), (4, 3), (20, 8), (200, 60), (80, 24)):
            await driven.pilot.resize_terminal(*size)
            await driven.pilot.pause()
        assert "TREES" in driven.text()
