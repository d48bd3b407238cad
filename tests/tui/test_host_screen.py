"""The host: accounts against their limits, and trees by owner."""

from __future__ import annotations

import msgspec

from console.errors import HostError
from console.fleet.model import Account, Fleet, HostDetail
from console.tui.screens.host import HostScreen
from tests.examples import M, example_fleet, host_detail
from tests.tui.feeds import StillFeed
from tests.tui.hostile import HOSTILE, harmless, hostile_fleet, spoil
from tests.tui.pilots import Driven
from tests.tui.queue_feeds import console_on


def with_accounts() -> Fleet:
    fleet = example_fleet()
    assert fleet.host is not None
    accounts = (
        Account(user="root", uid=0, processes=61, tasks=150, memory=300 * M),
        Account(
            user="deploy", uid=1000, processes=120, tasks=900, limit=1000, limit_source="RLIMIT_NPROC", memory=700 * M
        ),
    )
    return msgspec.structs.replace(fleet, host=msgspec.structs.replace(fleet.host, accounts=accounts))


def host_of(driven: Driven) -> HostScreen:
    assert isinstance(driven.app.screen, HostScreen)
    return driven.app.screen


GOLDEN_80 = """\
worktop · wrk01 · system · deploy · app@127.0.0.1:5432/app · 16:42:07 UTC
● units now  ● processes now  ● queue now  ▲ crontabs 42 s old: not permitted
MEMORY ████░░░░░░ 3G of 8G, 5G free
LOAD 0.40 0.50 0.60 on 4 CPUs   181 processes
ACCOUNT   PROCESSES     TASKS USED        MEMORY LIMIT BY
deploy          120 900/1 000 █████████░    700M RLIMIT_NPROC
root             61       150               300M no limit known
TREES  3 processes, 3 more left out  read at 16:42:07 UTC
  PROCESSES BY OWNER                        PID USER   S MEMORY CPU TIME     AGE
  ▾ systemd mail-worker@1.service        2 proc             64M     0:25
    python3 -m console worker --role ma…    431 deploy S    32M     0:12 2:00:00
      convert in.png out.png                440 deploy S    32M     0:12 2:00:00
  ▾ cron deploy                          1 proc             32M     0:12
    python3 -m console worker --role re…   4400 deploy S    32M     0:12 2:00:00









1Fleet 2Workers 3Jobs 4Queue 5Log 7Host  q quit  ? help  ⏎ open  d describe"""

GOLDEN_120 = """\
worktop · wrk01 · system · deploy · app@127.0.0.1:5432/app · 16:42:07 UTC · read-only
● units now  ● processes now  ● queue now  ▲ crontabs 42 s old: not permitted
MEMORY ████░░░░░░ 3G of 8G, 5G free   LOAD 0.40 0.50 0.60 on 4 CPUs   181 processes
ACCOUNT   PROCESSES     TASKS USED        MEMORY LIMIT BY
deploy          120 900/1 000 █████████░    700M RLIMIT_NPROC
root             61       150               300M no limit known
TREES  3 processes, 3 more left out  read at 16:42:07 UTC
  PROCESSES BY OWNER                                                        PID USER   S MEMORY CPU TIME     AGE ROLE
  ▾ systemd mail-worker@1.service                                        2 proc             64M     0:25
    python3 -m console worker --role mail                                   431 deploy S    32M     0:12 2:00:00 mail
      convert in.png out.png                                                440 deploy S    32M     0:12 2:00:00
  ▾ cron deploy                                                          1 proc             32M     0:12
    python3 -m console worker --role reports                               4400 deploy S    32M     0:12 2:00:00 reports


























1 Fleet  2 Workers  3 Jobs  4 Queue  5 Log  7 Host  q quit  ? help  ⏎ open  Tab accounts/trees  d describe  / filter"""


async def test_80_by_24() -> None:
    async with console_on(StillFeed(with_accounts()), (80, 24), "7") as driven:
        assert driven.text() == GOLDEN_80


async def test_120_by_40() -> None:
    async with console_on(StillFeed(with_accounts()), (120, 40), "7") as driven:
        assert driven.text() == GOLDEN_120


async def test_40_by_15() -> None:
    async with console_on(StillFeed(with_accounts()), (40, 15), "7") as driven:
        text = driven.text()
        assert "MEMORY 3G of 8G, 5G free" in text
        assert "deploy" in text and "900/1 000" in text
        assert "▾ systemd mail-worker@1" in text


async def test_loading_empty_and_error() -> None:
    feed = StillFeed(with_accounts())
    feed.host_answer = None
    async with console_on(feed, (80, 24), "7") as driven:
        assert "TREES  asking…" in driven.text()
        assert "900/1 000" in driven.text()
    feed = StillFeed(example_fleet())
    feed.host_answer = HostDetail()
    async with console_on(feed, (80, 24), "7") as driven:
        assert "no process can be seen; ctrl+r reads them again" in driven.text()
        feed.host_answer = HostError("ask the agent", "it is not running")
        await driven.press("ctrl+r")
        await driven.pilot.pause(0.05)
        assert "× ask the agent: it is not running" in driven.text()
    async with console_on(StillFeed(None), (80, 24), "7") as driven:
        assert "the host has not said anything yet" in driven.text()


async def test_owners_collapse_and_the_cursor_stays_on_them() -> None:
    async with console_on(StillFeed(with_accounts()), (80, 24), "7") as driven:
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
    async with console_on(StillFeed(with_accounts()), (80, 24), "7") as driven:
        await driven.press("slash", *"convert")
        text = driven.text()
        assert "1 of 3" in text
        assert "--role reports" not in text
        await driven.press("enter", "escape")
        assert "cron deploy" in driven.text()


async def test_enter_on_an_account_filters_by_it() -> None:
    async with console_on(StillFeed(with_accounts()), (80, 24), "7") as driven:
        await driven.press("tab", "enter")
        assert host_of(driven).filter_bar.text == "deploy"
        assert "3 of 3" in driven.text()


async def test_trees_are_read_when_asked_and_the_selection_stays() -> None:
    feed = StillFeed(with_accounts())
    async with console_on(feed, (80, 24), "7") as driven:
        await driven.press("down", "down")
        kept = host_of(driven).table.cursor_key
        assert isinstance(feed.host_answer, HostDetail)
        feed.host_answer = msgspec.structs.replace(feed.host_answer, trees=tuple(reversed(feed.host_answer.trees)))
        await driven.say(with_accounts())
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
