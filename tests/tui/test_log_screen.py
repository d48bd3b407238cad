"""The log in a pilot."""

from __future__ import annotations

import msgspec
import pytest

from console.errors import HostError, Problem
from console.fleet.model import LogLine
from console.tui.screens.log import LogScreen
from tests.examples import NOW, example_fleet
from tests.tui.hostile import HOSTILE, harmless
from tests.tui.pilots import Driven, console

GOLDEN_80 = """\
worktop · wrk01 · system · deploy · app@127.0.0.1:5432/app · 16:42:07 UTC
● units now  ● processes now  ● queue now  ▲ crontabs 42 s old: not permitted
LOG of mail  all @1 @2 @3                                              following
16:41:07 @1   info   job 918233 done in 0.4 s
16:41:08 @2   info   job 918240 done in 1.2 s
16:41:09 @3   info   waiting for work
16:41:57 @1 ▲ warn   heartbeat took 4.2 s: the database is slow
16:41:58 @2 × error  job 918251 failed: KeyError: 'BUCKET'
16:41:59 @1 · notice mail-worker@2.service: Scheduled restart job, restart coun…"""


def lines(number: int, text: str = "line", instance: int = 1) -> tuple[LogLine, ...]:
    return tuple(
        LogLine(at=NOW, unit=f"mail-worker@{instance}.service", text=f"{text} {index}") for index in range(number)
    )


async def told(driven: Driven, *new: LogLine) -> None:
    """These lines come, and are shown."""
    driven.feed.follows[-1].say(*new)
    await driven.pilot.pause(0.15)


def log(driven: Driven) -> LogScreen:
    screen = driven.app.screen
    assert isinstance(screen, LogScreen)
    return screen


async def test_80_by_24() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("5")
        assert driven.text().startswith(GOLDEN_80)
        assert driven.feed.follows[0].units == ("mail-worker@*.service",)


async def test_40_by_15() -> None:
    async with console(example_fleet(), (40, 15)) as driven:
        await driven.press("5")
        assert "× error  job 918251" not in driven.text()
        assert "@2 × " in driven.text()


async def test_the_role_in_hand_is_followed_and_l_opens_one_instance() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("down", "down", "5")
        assert "LOG of thumbnails  all @1 @2 @3 @4" in driven.text()
        await driven.press("1", "up", "5")
        assert "LOG of reports" in driven.text()
        assert [follow.stopped for follow in driven.feed.follows] == [True, False]
        await driven.press("2", "l")
        assert log(driven)._only == "mail-worker@1.service"
        assert "job 918240" not in driven.text()
        await driven.press("escape", "escape", "escape")
        assert "FINDINGS" in driven.text()
        await driven.pilot.pause(0.1)
        assert driven.feed.follows[-1].stopped


async def test_instances_and_roles_are_gone_through() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("5", "tab", "tab")
        assert log(driven)._only == "mail-worker@2.service"
        assert "job 918240" in driven.text() and "job 918233" not in driven.text()
        await driven.press("shift+tab", "shift+tab")
        assert log(driven)._only == ""
        await driven.press("right_square_bracket")
        assert "LOG of reports" in driven.text()
        await driven.press("left_square_bracket", "left_square_bracket")
        assert "LOG of digest" in driven.text()


async def test_it_follows_until_one_scrolls_up_and_again_from_the_end() -> None:
    async with console(example_fleet()) as driven:
        driven.feed.log_answer = lines(100)
        await driven.press("5")
        assert "line 99" in driven.text()
        await told(driven, *lines(1, "newest"))
        assert "newest 0" in driven.text()
        await driven.press("k")
        assert "↓ 1 below: G follows" in driven.text()
        top = driven.lines()[3]
        await told(driven, *lines(30, "later"))
        assert driven.lines()[3] == top
        assert "↓ 31 below" in driven.text()
        await driven.press("G")
        assert "later 29" in driven.text() and "following" in driven.text()
        await driven.press("g")
        assert driven.lines()[3].endswith("line 0")
        await driven.press("pagedown", "b", "F")
        await told(driven, *lines(1, "last"))
        assert "last 0" in driven.text()


async def test_memory_is_bounded_and_what_is_read_stays() -> None:
    async with console(example_fleet()) as driven:
        driven.feed.log_answer = lines(3_000)
        await driven.press("5", "k", "k")
        top = driven.lines()[3]
        await told(driven, *lines(500, "later"))
        assert len(log(driven)._store) == 3_000
        assert driven.lines()[3] == top


async def test_filter_pause_and_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with console(example_fleet()) as driven:
        copied: list[str] = []
        monkeypatch.setattr(driven.app, "copy_to_clipboard", copied.append)
        await driven.press("5", "slash", *"DONE", "enter")
        assert "/DONE" in driven.text() and "2 of 6" in driven.text()
        await driven.press("y")
        assert copied == ["16:41:07 @1 info job 918233 done in 0.4 s\n16:41:08 @2 info job 918240 done in 1.2 s"]
        await driven.press("p")
        await told(driven, *lines(3, "done"))
        assert "3 lines wait; p goes on" in driven.text()
        assert "done 2" not in driven.text()
        await driven.press("p")
        assert "done 2" in driven.text() and "5 of 9" in driven.text()
        await driven.press("escape")
        assert "of 9" not in driven.text()
        await driven.press("escape")
        assert "FINDINGS" in driven.text()


async def test_long_lines_are_read_sideways() -> None:
    async with console(example_fleet(), (60, 15)) as driven:
        driven.feed.log_answer = (LogLine(at=NOW, unit="mail-worker@1.service", text="x" * 60 + "the end"),)
        await driven.press("5")
        assert "the end" not in driven.text()
        await driven.press("right", "right")
        assert "the end" in driven.text()


async def test_loading_empty_refused_and_broken() -> None:
    async with console(None) as driven:
        driven.feed.log_answer = None
        await driven.press("5")
        assert "asking systemd…" in driven.text()
        await driven.say(example_fleet())
        assert "asking…" in driven.text()
        driven.feed.log_answer = HostError("journal", "not permitted\x1b[2J", "add the user to systemd-journal")
        await driven.press("ctrl+r")
        text = driven.text().replace("\n", " ")
        assert "× not followed" in text
        assert "journal: not permitted␛[2J; add the user to systemd-journal; ctrl+r asks again" in text
        driven.feed.log_answer = ()
        await driven.press("ctrl+r")
        assert "nothing was logged yet" in driven.text()
        driven.feed.follows[-1].problem = Problem("host agent", "it ended")
        await driven.say(example_fleet())
        assert "host agent: it ended; ctrl+r asks again" in driven.text()


async def test_no_roles() -> None:
    async with console(msgspec.structs.replace(example_fleet(), roles=())) as driven:
        await driven.press("5", "right_square_bracket", "tab")
        assert "no role has a unit, so there is no log to follow" in driven.text()


async def test_hostile_lines_are_shown_and_not_obeyed() -> None:
    async with console(example_fleet()) as driven:
        driven.feed.log_answer = tuple(
            LogLine(at=NOW, unit=f"mail-worker@{text}.service", text=text) for text in HOSTILE
        )
        await driven.press("5")
        assert all(harmless(line) for line in driven.lines())
        assert HOSTILE[5] in driven.text()
