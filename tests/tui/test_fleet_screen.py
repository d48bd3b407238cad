"""The first screen in a pilot: what it shows at which size, and what the keys do."""

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest

from console.errors import HostError
from console.fleet.model import Fleet, SourceStatus
from console.tui.app import ConsoleApp
from console.tui.screens.evidence import EvidenceScreen
from console.tui.screens.fleet import FleetScreen, split_height
from tests.examples import NOW, counts, example_fleet, with_role
from tests.tui.feeds import StillFeed
from tests.tui.hostile import HOSTILE, harmless, hostile_fleet
from tests.tui.pilots import Driven, console

GOLDEN_40 = """\
worktop · wrk01 · deploy · 16:42:07 UTC
▲ crontabs 42 s old: not permitted
ROLE       WORKERS STATES WAITING STUCK
mail           3/3 ●●● ok     412     0
reports        7/3 1● 6◇    1 204     2
thumbnails     1/4 ●↻××       310     4
webhooks       0/1 ○           88     1
exports        1/1 ◐ hung      12     1▆
FINDINGS  3 errors  3 warnings  1 note
× reports    two owners: crontab of de…
× webhooks   nothing runs; its watchdo…
× exports    alive but no job finished…
▲ thumbnails @3 start limit hit 12 min…▃
▲ thumbnails 4 jobs held by dead worke…
q quit  ? help  ⏎ open  d diagnose"""


async def test_40_by_15() -> None:
    async with console(example_fleet(), (40, 15)) as driven:
        assert driven.text() == GOLDEN_40
        await driven.press("tab", *["down"] * 6)
        assert driven.lines()[-2].startswith("· host       crontabs cannot be read")


async def test_room_is_used() -> None:
    async with console(example_fleet(), (200, 60)) as driven:
        text = driven.text()
        assert "FAILED" in text
        assert "1 start-limit 1 oom" in text
        assert "mend: Decide for the unit and retire the launcher" in text
        assert len(driven.lines()) == 60
        assert "LAST END" in text


async def test_down_to_one_cell_and_back() -> None:
    async with console(example_fleet(), (1, 1)) as driven:
        await driven.press("tab", "enter", "escape", "question_mark", "escape", "down")
        for size in ((2, 2), (5, 3), (20, 4), (1, 24), (80, 1), (80, 24)):
            await driven.pilot.resize_terminal(*size)
            await driven.pilot.pause()
        await driven.shown()
        assert "FINDINGS  3 errors" in driven.text()
        assert "mail        3/3 ≤8" in driven.text()


async def test_keys_move_within_and_between_the_tables() -> None:
    async with console(example_fleet()) as driven:
        assert driven.app.focused is driven.roles
        await driven.press("j", "down")
        assert driven.roles.cursor_key == "thumbnails"
        await driven.press("k")
        assert driven.roles.cursor_key == "reports"
        await driven.press("G")
        assert driven.roles.cursor_key == "digest"
        await driven.press("j")
        assert driven.app.focused is driven.findings
        await driven.press("k")
        assert driven.app.focused is driven.roles
        await driven.press("tab")
        assert driven.app.focused is driven.findings
        await driven.press("tab", "g", "k")
        assert driven.app.focused is driven.roles


async def test_enter_on_a_finding_shows_its_evidence_and_escape_goes_back() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("tab", "enter")
        assert isinstance(driven.app.screen, EvidenceScreen)
        text = driven.text()
        assert "× reports  finding 1 of 7" in text
        assert "• reports-worker@1.service runs pid 431" in text
        assert "WHAT MENDS IT" in text
        await driven.press("n")
        assert "× webhooks  finding 2 of 7" in driven.text()
        await driven.press("p", "p")
        assert "finding 1 of 7" in driven.text()
        await driven.press("escape")
        assert isinstance(driven.app.screen, FleetScreen)
        await driven.press("escape", "escape")
        assert isinstance(driven.app.screen, FleetScreen)


async def test_f_on_a_role_shows_its_findings() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("down", "down", "f")
        assert "FINDINGS of thumbnails  2 warnings  esc shows all" in driven.text()
        assert "retire the launcher" not in driven.text()
        assert driven.app.focused is driven.findings
        await driven.press("escape")
        assert "FINDINGS  3 errors" in driven.text()
        assert driven.app.focused is driven.roles
        assert driven.roles.cursor_key == "thumbnails"


async def test_f_on_a_role_without_findings() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("G", "f")
        assert "FINDINGS of digest  none  esc shows all" in driven.text()
        assert driven.app.focused is driven.roles
        await driven.press("escape")
        assert "FINDINGS  3 errors" in driven.text()


async def test_a_finding_that_ends_while_it_is_read() -> None:
    fleet = example_fleet()
    async with console(fleet) as driven:
        await driven.press("tab", "enter")
        await driven.say(msgspec.structs.replace(fleet, findings=fleet.findings[2:]))
        assert "× reports  no longer the case since 16:42:07 UTC" in driven.text()
        assert "• reports-worker@1.service runs pid 431" in driven.text()
        await driven.say(fleet)
        assert "finding 1 of 7" in driven.text()


async def test_a_long_evidence_scrolls() -> None:
    fleet = example_fleet()
    long = msgspec.structs.replace(fleet.findings[1], evidence=tuple(f"sentence {n}" for n in range(200)))
    async with console(msgspec.structs.replace(fleet, findings=(long,))) as driven:
        await driven.press("tab", "enter", "G")
        assert "Next step: retire the launcher" in driven.text()
        await driven.say(fleet)
        await driven.press("g")
        assert "EVIDENCE" in driven.text()


async def test_help_is_made_from_the_table_of_commands() -> None:
    async with console(example_fleet(), (100, 76)) as driven:
        await driven.press("question_mark", "question_mark")
        text = driven.text()
        assert "? f1            Show the keys and the signs." in text
        for sign in ("● ok", "↻ looping", "× start-limit", "× oom", "○ missing", "◐ hung", "◇ stray"):
            assert sign in text
        await driven.press("escape")
        assert isinstance(driven.app.screen, FleetScreen)


async def test_the_cursor_stays_on_its_role_and_its_finding() -> None:
    fleet = example_fleet()
    async with console(fleet) as driven:
        await driven.press("down", "down", "down", "tab", "down", "down")
        finding = driven.findings.cursor_key
        assert finding is not None and finding.startswith("exports/")
        await driven.say(
            msgspec.structs.replace(
                fleet, roles=tuple(reversed(fleet.roles[1:])), findings=tuple(reversed(fleet.findings))
            )
        )
        assert driven.roles.cursor_key == "webhooks"
        assert driven.findings.cursor_key == finding
        assert driven.app.focused is driven.findings


def with_findings(fleet: Fleet, *codes: str) -> Fleet:
    """The fleet with the findings of these codes only."""
    return msgspec.structs.replace(fleet, findings=tuple(f for f in fleet.findings if f.code in codes))


async def test_the_worst_finding_is_in_sight_until_a_person_moves() -> None:
    fleet = example_fleet()
    async with console(with_findings(fleet, "source-down", "start-limit-never"), (80, 14)) as driven:
        await driven.say(with_findings(fleet, "source-down", "start-limit-never", "stuck-jobs"))
        await driven.press("tab")
        await driven.say(fleet)
        assert driven.findings.cursor_row == 0
        assert driven.findings.scroll_y == 0
        assert "× reports    two owners" in driven.text()
        await driven.press("down", "down")
        await driven.say(with_findings(fleet, "no-progress", "source-down"))
        assert (driven.findings.cursor_key or "").startswith("exports/")
        await driven.say(fleet)
        assert (driven.findings.cursor_key or "").startswith("exports/")
        await driven.press("g")
        await driven.say(with_findings(fleet, "source-down"))
        await driven.say(fleet)
        assert driven.findings.cursor_row == 0


async def test_copying_roles_and_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    async with console(example_fleet()) as driven:
        copied: list[str] = []
        monkeypatch.setattr(driven.app, "copy_to_clipboard", copied.append)
        await driven.press("y", "tab", "y", "enter", "y")
        assert copied[0].splitlines()[0].startswith("ROLE       WORKERS STATES")
        assert copied[1] == copied[2]
        assert "WHAT MENDS IT" in copied[1]


async def test_only_the_changed_row_is_painted() -> None:
    fleet = example_fleet()
    async with console(fleet) as driven:
        await driven.say(with_role(fleet, "mail", queue=counts("mail", 413, 42.0, 3, 2, 118.0)))
        assert driven.roles.repainted == ["mail"]
        assert driven.findings.repainted == []
        assert "mail        3/3 ≤8 ●●● ok     systemd     413   0:42" in driven.text()


async def test_a_talkative_feed_is_shown_ten_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = example_fleet()
    shown = 0
    original = FleetScreen.show_body

    def show_body(self: FleetScreen, fleet: Fleet | None) -> None:
        nonlocal shown
        shown += 1
        original(self, fleet)

    async with console(fleet) as driven:
        monkeypatch.setattr(FleetScreen, "show_body", show_body)
        began = time.monotonic()
        for number in range(300):
            driven.feed.say(with_role(fleet, "mail", queue=counts("mail", number, 42.0, 3, 2, 118.0)))
            await asyncio.sleep(0.001)
        await driven.shown()
        assert shown <= 2 + 10 * (time.monotonic() - began)
        assert "    299   0:42" in driven.text()


async def test_loading_then_loaded() -> None:
    async with console(None) as driven:
        assert "asking systemd… asking the queue…" in driven.text()
        await driven.press("tab", "enter", "d", "down")
        await driven.say(example_fleet())
        text = driven.text()
        assert "asking" not in text
        assert "mail        3/3 ≤8" in text and "FINDINGS  3 errors" in text


async def test_no_roles() -> None:
    fleet = msgspec.structs.replace(example_fleet(), roles=(), findings=())
    async with console(fleet) as driven:
        assert "no roles: no worktop.toml names one" in driven.text()
        assert "FINDINGS  none" in driven.text()


async def test_a_failing_source_is_seen_at_once() -> None:
    fleet = example_fleet()
    down = SourceStatus(name="queue", state="down", age=42.0)
    async with console(fleet) as driven:
        await driven.say(msgspec.structs.replace(fleet, sources=(*fleet.sources[:2], down)))
        assert "× queue 42 s old" in driven.text()


async def test_refresh_asks_the_feed_and_an_error_is_a_line() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("ctrl+r")
        assert driven.feed.refreshed == 1

        async def fail() -> None:
            raise HostError("ask the agent", "it is [/gone]\x1b[31m", "wait")

        driven.feed.refresh = fail  # type: ignore[method-assign]
        await driven.press("ctrl+r")
        await driven.pilot.pause(0.3)
        assert "it is [/gone]␛[31m" in driven.text().replace("\n", " ")


async def test_hostile_texts_are_shown_and_not_obeyed() -> None:
    async with console(example_fleet(), (160, 30)) as driven:
        for text in (*HOSTILE, "".join(HOSTILE)):
            await driven.say(hostile_fleet((text,)))
            assert all(harmless(line) for line in driven.lines()), text
            await driven.press("tab", "enter")
            assert all(harmless(line) for line in driven.lines()), text
            if text == "[/red][bold][link=javascript:x]y[/":
                assert text in driven.text()
            await driven.press("escape", "tab")
        await driven.press("tab", "enter", "n", "escape", "tab", "enter")
        assert all(harmless(line) for line in driven.lines())


async def test_without_colour_no_colour_is_sent() -> None:
    async with console(example_fleet(), no_color=True) as driven:
        styles = {
            segment.style
            for strip in driven.app.screen._compositor.render_strips()
            for segment in strip
            if segment.style is not None
        }
        for style in styles:
            assert style.color is None or style.color.is_default
            assert style.bgcolor is None or style.bgcolor.is_default
        assert any(style.reverse for style in styles)
        assert any(style.bold for style in styles)


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_keys_that_leave(key: str) -> None:
    async with console(example_fleet()) as driven:
        await driven.pilot.press("tab", "enter", key)
    assert driven.app.return_code == 0
    assert driven.feed.stopped == 1


async def test_a_notice_is_wrapped_where_it_is_narrow() -> None:
    fleet = msgspec.structs.replace(example_fleet(), sources=(SourceStatus(name="queue", state="absent"),), queue=None)
    async with console(fleet, (40, 15)) as driven:
        assert "no database: workers only; name one in" in driven.text()
        assert "worktop doctor" in driven.text()
        assert "WAITING" not in driven.text()


async def test_a_click_goes_to_a_finding_and_a_second_one_opens_it() -> None:
    async with console(example_fleet()) as driven:
        await driven.pilot.click("#findings", offset=(5, 2))
        await driven.pilot.pause()
        assert (driven.app.focused, driven.findings.cursor_row) == (driven.findings, 2)
        await driven.pilot.click("#findings", offset=(5, 2))
        await driven.pilot.pause()
        assert "× exports  finding 3 of 7" in driven.text()


async def test_themes_go_round() -> None:
    async with console(example_fleet()) as driven:
        seen = [driven.app.theme]
        for _ in range(3):
            await driven.press("t")
            seen.append(driven.app.theme)
        assert seen == ["worktop-dark", "worktop-light", "worktop-safe", "worktop-dark"]


async def test_the_feed_is_started_and_stopped_and_a_hanging_stop_is_left() -> None:
    class Hanging(StillFeed):
        async def stop(self) -> None:
            self.stopped += 1
            await asyncio.sleep(60)

    feed = Hanging(example_fleet())
    app = ConsoleApp(feed, clock=lambda: NOW)
    async with app.run_test(notifications=True) as pilot:
        await pilot.pause()
        await pilot.press("q")
        began = time.monotonic()
    assert time.monotonic() - began < 2
    assert (feed.started, feed.stopped, app.return_code) == (1, 1, 0)


@pytest.mark.parametrize(("roles", "findings"), [(0, 0), (6, 10), (1, 0), (200, 3), (3, 200), (100, 100)])
def test_heights_never_exceed_the_screen(roles: int, findings: int) -> None:
    for height in range(60):
        first, second = split_height(height, roles, findings)
        assert 0 <= first <= roles + 1 and 0 <= second <= findings
        assert first + second <= height
        if first < roles + 1 and second < findings:
            assert first + second == height


# --- filter and order ------------------------------------------------------------------------------------------------


def role_keys(driven: Driven) -> list[str]:
    return [row.key for row in driven.roles.grid.rows]


async def test_a_filter_narrows_roles_and_findings_and_stays_until_escape() -> None:
    async with console(example_fleet()) as driven:
        before = driven.text()
        await driven.press("slash", *"THUMB")
        assert "/THUMB" in driven.text() and "1 of 6 roles, 2 of 7 findings" in driven.text()
        assert role_keys(driven) == ["thumbnails"]
        assert "retire the launcher" not in driven.text()
        await driven.press("enter")
        assert driven.app.focused is driven.roles
        assert "1 of 6 roles" in driven.text()
        await driven.say(example_fleet())
        assert role_keys(driven) == ["thumbnails"]
        await driven.press("slash", *"xyz")
        assert "0 of 6 roles, 0 of 7 findings" in driven.text()
        await driven.press("escape")
        assert driven.text() == before
        assert driven.app.focused is driven.roles
        # A word of the states or of the evidence is enough; without a role that matches the findings have the focus.
        await driven.press("slash", *"hung", "enter")
        assert role_keys(driven) == ["exports"]
        await driven.press("escape", "slash", *"permission", "enter")
        assert role_keys(driven) == [] and driven.app.focused is driven.findings
        await driven.press("escape")
        assert driven.text() == before


async def test_roles_are_sorted_by_the_next_column_and_the_cursor_stays() -> None:
    async with console(example_fleet(), no_color=True) as driven:
        own = role_keys(driven)
        await driven.press("down", "s")
        assert role_keys(driven) == sorted(own)
        assert driven.roles.cursor_key == "reports"
        strip = driven.app.screen._compositor.render_strips()[2]
        assert [s.text for s in strip if s.style is not None and s.style.reverse] == ["ROLE↑"]
        await driven.press("i")
        assert role_keys(driven) == sorted(own, reverse=True)
        for _ in range(4):
            await driven.press("s")
        assert role_keys(driven)[:3] == ["reports", "mail", "thumbnails"]  # most waiting first
        for _ in range(6):
            await driven.press("s")
        assert role_keys(driven) == own
        await driven.pilot.click("#roles", offset=(40, 0))  # the head of WAITING
        await driven.pilot.pause()
        assert role_keys(driven)[0] == "reports"


async def test_findings_are_sorted_by_role() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("tab", "s")
        assert "by role↑" in driven.text()
        assert [key.partition("/")[0] for key in (row.key for row in driven.findings.grid.rows)][1:] == [
            "exports",
            "mail",
            "reports",
            "thumbnails",
            "thumbnails",
            "webhooks",
        ]
        await driven.press("s", "i")
        assert "worst last" in driven.text()
        await driven.press("i")
        assert driven.findings.cursor_row == 0
        assert "× reports    two owners" in driven.text()


async def test_an_untouched_console_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    async with console(example_fleet()) as driven:
        monkeypatch.setattr("console.tui.app.RESTS_AFTER", 0.0)
        driven.app._tick()
        assert driven.feed.rested == [True]
        monkeypatch.setattr("console.tui.app.RESTS_AFTER", 60.0)
        await driven.press("j")
        assert driven.feed.rested == [True, False]
