"""Workers and one worker in a pilot: what they show, and the habits every list has."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest

from console.errors import HostError
from console.fleet.model import Fleet
from console.tui.copying import TERMINAL_TAKES
from console.tui.screens.fleet import FleetScreen
from console.tui.screens.list import ListScreen
from console.tui.screens.worker import WorkerScreen
from console.tui.screens.workers import WorkersScreen
from tests.examples import example_fleet, with_role
from tests.tui.hostile import HOSTILE, harmless, hostile_fleet
from tests.tui.pilots import Driven, console

GOLDEN_DETAIL_80 = """\
thumbnails @1  ● ok
WORKER · PROPERTIES · UNIT FILE · PROCESSES · OWNER · JOURNAL
UNIT FILE
# /etc/systemd/system/thumbnails-worker@.service
[Unit]
Description=Thumbnails %i"""


def rows(driven: Driven) -> list[str]:
    """The keys of the rows, from the first."""
    return [row.key for row in listed(driven).table.grid.rows]


def listed(driven: Driven) -> ListScreen[Any]:
    screen = driven.app.screen
    assert isinstance(screen, ListScreen)
    return screen


def without(fleet: Fleet, role: str, *keys: str) -> Fleet:
    status = next(status for status in fleet.roles if status.role.name == role)
    return with_role(fleet, role, workers=tuple(worker for worker in status.workers if worker.key not in keys))


# --- what is shown -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(40, 15), (200, 60)])
async def test_room_is_used(size: tuple[int, int]) -> None:
    async with console(example_fleet(), size) as driven:
        await driven.press("2")
        text = driven.text()
        assert "× start-limit" in text if size[1] > 20 else "● ok" in text
        assert ("RST/MIN" in text) == (size[0] > 120)
        assert ("started by the crontab of deploy, line 4" in text) == (size[0] > 100)
        assert len(driven.lines()) == size[1]


async def test_enter_on_a_role_shows_its_workers_and_escape_goes_back() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("down", "enter")
        assert isinstance(driven.app.screen, WorkersScreen)
        assert "WORKERS of reports  ◇ 6 stray  ● 1 ok" in driven.text()
        assert len(rows(driven)) == 7
        await driven.press("escape")
        assert isinstance(driven.app.screen, FleetScreen)
        assert driven.roles.cursor_key == "reports"


async def test_digits_switch_and_keep_what_was_open() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("2", "down", "down", "enter")
        assert isinstance(driven.app.screen, WorkerScreen)
        await driven.press("1")
        assert isinstance(driven.app.screen, FleetScreen)
        await driven.press("2")
        assert isinstance(driven.app.screen, WorkerScreen)
        await driven.press("2")
        assert listed(driven).table.cursor_key == "mail/mail-worker@3.service"
        await driven.press("escape")
        assert isinstance(driven.app.screen, FleetScreen)


# --- one worker ----------------------------------------------------------------------------------------------------


async def test_a_worker_in_sections() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("2", *["down"] * 10, "enter")
        await driven.press("n", "n")
        assert driven.feed.asked == ["thumbnails-worker@1.service"]
        assert "\n".join(driven.lines()[2:8]) == GOLDEN_DETAIL_80
        await driven.press("right", "tab", "tab")
        assert "JOURNAL" in driven.text()
        await driven.press("left", "shift+tab")
        await driven.press("ctrl+r")
        assert len(driven.feed.asked) == 2


async def test_a_worker_is_asked_for_and_refused_and_asked_again() -> None:
    async with console(example_fleet(), (100, 40)) as driven:
        driven.feed.unit_answer = None
        await driven.press("2", "enter")
        assert driven.text().count("asking…") == 4
        driven.feed.unit_answer = HostError("detail of mail-worker@1", "[/no]\x1b answer", "look at the agent")
        await driven.press("ctrl+r")
        text = driven.text()
        assert "× could not be read" in text
        assert "× detail of mail-worker@1: [/no]␛ answer" in text
        assert "look at the agent; ctrl+r asks again" in text


async def test_a_worker_that_goes_is_kept_and_said_to_be_gone() -> None:
    fleet = example_fleet()
    async with console(fleet) as driven:
        await driven.press("2", "enter")
        await driven.say(without(fleet, "mail", "mail-worker@1.service"))
        assert "mail @1  ○ gone since 16:42:07 UTC" in driven.text()
        await driven.say(fleet)
        assert "mail @1  ● ok" in driven.text()


async def test_a_fault_in_the_background_is_told_and_the_console_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with console(example_fleet(), (100, 40)) as driven:

        async def fail(name: str) -> Any:
            raise KeyError(name)

        driven.feed.unit_detail = fail  # type: ignore[method-assign]
        await driven.press("2", "enter")
        await driven.pilot.pause(0.2)
        assert "something went wrong in the console" in driven.text()
        assert "something in the background failed" in driven.text()
        assert list((tmp_path / "worktop").glob("crash-*.log"))
        await driven.press("escape", "down")
        assert driven.app.is_running


# --- habits ----------------------------------------------------------------------------------------------------------


async def test_filter_stays_with_its_count_and_escape_ends_it() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("2", "slash", *"CRON", "space", *"4405")
        assert "/CRON 4405" in driven.text() and "1 of 18" in driven.text()
        await driven.press("enter")
        assert "1 of 18" in driven.text()
        assert rows(driven) == ["reports/4405:94405"]
        await driven.press("slash", "x")
        assert "no row matches the filter; Esc ends it" in driven.text()
        assert "0 of 18" in driven.text()
        await driven.press("escape")
        assert "of 18" not in driven.text()
        assert len(rows(driven)) == 18
        assert driven.app.focused is listed(driven).table


async def test_a_filter_takes_keys_that_are_commands_elsewhere() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("2", "slash", *"q1:x?pat")
        assert listed(driven).filter_bar.text == "q1:x?pat"


async def test_marks_follow_their_rows_and_those_that_vanish_are_counted() -> None:
    fleet = example_fleet()
    async with console(fleet) as driven:
        await driven.press("2", "space", "space", "space")
        assert "3 marked" in driven.text()
        changed = msgspec.structs.replace(fleet, roles=tuple(reversed(fleet.roles)))
        await driven.say(without(changed, "mail", "mail-worker@2.service"))
        assert "2 marked, 1 gone" in driven.text()
        assert listed(driven).marked == {"mail/mail-worker@1.service", "mail/mail-worker@3.service"}
        assert "▪ ● ok          mail       @1" in driven.text()
        await driven.press("slash", *"thumb", "enter")
        assert "2 marked (2 not shown), 1 gone" in driven.text()
        await driven.press("escape", "escape")
        assert "marked" not in driven.text()


async def test_a_marks_what_is_shown() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("2", "slash", *"thumb", "enter", "a")
        assert len(listed(driven).marked) == len(listed(driven).selection) == 4
        await driven.press("a")
        assert listed(driven).marked == set()


async def test_sorting_keeps_the_cursor_on_its_row() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("2", "down")
        before = listed(driven).table.cursor_key
        await driven.press("s")
        assert "STATE↑" in driven.text()
        assert rows(driven)[0] == "thumbnails/thumbnails-worker@3.service"
        assert listed(driven).table.cursor_key == before
        await driven.press("i")
        assert "STATE↓" in driven.text()
        assert rows(driven)[-1] == "thumbnails/thumbnails-worker@3.service"
        assert listed(driven).table.cursor_key == before


async def test_the_sorted_head_is_reversed_not_only_coloured() -> None:
    async with console(example_fleet(), no_color=True) as driven:
        await driven.press("2", "s")
        strip = driven.app.screen._compositor.render_strips()[3]
        assert [s.text for s in strip if s.style is not None and s.style.reverse] == ["STATE↑"]


async def test_pause_freezes_rows_and_head_goes_on() -> None:
    fleet = example_fleet()
    async with console(fleet) as driven:
        await driven.press("2", "p")
        assert "PAUSED since 16:42:07 UTC" in driven.text()
        await driven.say(without(fleet, "mail", "mail-worker@1.service"))
        assert len(rows(driven)) == 18
        await driven.press("s", "slash", *"mail", "enter")
        assert len(rows(driven)) == 3
        await driven.press("p")
        assert "PAUSED" not in driven.text()
        assert len(rows(driven)) == 2


async def test_fleet_can_be_paused_too() -> None:
    fleet = example_fleet()
    async with console(fleet) as driven:
        await driven.press("p")
        await driven.say(with_role(fleet, "mail", running=1))
        assert "3/3 ≤8" in driven.text()
        await driven.press("p")
        assert "1/3 ≤8" in driven.text()


async def test_copy_is_sent_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    async with console(example_fleet()) as driven:
        sent: list[str] = []
        monkeypatch.setattr(driven.app._driver, "write", sent.append)
        await driven.press("2", "space", "space", "y")
        await driven.pilot.pause(0.1)
        (code,) = [text for text in sent if text.startswith("\x1b]52;c;")]
        text = base64.b64decode(code[7:-1]).decode()
        assert [line.split("\t")[:3] for line in text.splitlines()] == [["● ok", "mail", "@1"], ["● ok", "mail", "@2"]]
        assert "2 lines sent to the terminal" in driven.text()


async def test_too_much_for_the_terminal_goes_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with console(example_fleet(), (100, 30)) as driven:
        sent: list[str] = []
        monkeypatch.setattr(driven.app._driver, "write", sent.append)
        monkeypatch.setattr(WorkersScreen, "copied", lambda self: "x" * (TERMINAL_TAKES + 1))
        await driven.press("2", "y")
        assert not list(tmp_path.iterdir())
        await driven.press("y")
        (copy,) = (tmp_path / "worktop" / "copies").iterdir()
        assert copy.stat().st_size == TERMINAL_TAKES + 2
        assert copy.stat().st_mode & 0o777 == 0o600
        assert not any("52;c" in text for text in sent)


async def test_the_menu_opens_and_closes() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("2", "x")
        assert "reclaim all dead of mail" in driven.text()
        await driven.press("escape")
        assert isinstance(driven.app.screen, WorkersScreen)


async def test_mouse() -> None:
    async with console(example_fleet()) as driven:
        await driven.pilot.click("#foot", offset=(9, 0))
        await driven.pilot.pause()
        assert isinstance(driven.app.screen, WorkersScreen)
        await driven.pilot.click("#list", offset=(4, 0))
        await driven.pilot.pause()
        assert "STATE↑" in driven.text()
        await driven.pilot.click("#list", offset=(4, 3))
        await driven.pilot.pause()
        assert listed(driven).table.cursor_row == 2
        await driven.pilot.click("#list", offset=(4, 3))
        await driven.pilot.pause()
        assert isinstance(driven.app.screen, WorkerScreen)


async def test_text_of_a_detail_can_be_selected_and_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    async with console(example_fleet()) as driven:
        await driven.press("2", "enter")
        copied: list[str] = []
        monkeypatch.setattr(driven.app, "copy_to_clipboard", copied.append)
        await driven.pilot.mouse_down("#lines", offset=(0, 1))
        await driven.pilot.hover("#lines", offset=(14, 2))
        await driven.pilot.mouse_up("#lines", offset=(14, 2))
        await driven.press("ctrl+c")
        assert driven.app.is_running
        assert copied and "state     ok" in copied[0]


async def test_hostile_texts_are_shown_and_not_obeyed() -> None:
    async with console(example_fleet(), (160, 30)) as driven:
        await driven.press("2")
        for text in (HOSTILE[0], HOSTILE[5], "".join(HOSTILE)):
            await driven.say(hostile_fleet((text,)))
            for keys in (("s", "space"), ("x",), ("escape",), ("y",), ("enter",), ("n", "n"), ("escape",)):
                await driven.press(*keys)
                assert all(harmless(line) for line in driven.lines()), (text, keys)


async def test_in_ascii_all_is_ascii_also_what_is_typed_and_opened() -> None:
    async with console(example_fleet(), (100, 30), unicode=False) as driven:
        for keys in (("2", "s", "space"), ("slash", "m"), ("enter", "colon"), ("escape", "enter"), ("n",)):
            await driven.press(*keys)
            assert driven.text().isascii()
        assert "PROPERTIES" in driven.text()


async def test_down_to_one_cell_and_back() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("2")
        before = driven.text()
        await driven.pilot.resize_terminal(1, 1)
        await driven.press("slash", "m", "enter", "colon", "escape")
        for size in ((2, 2), (5, 3), (20, 4), (1, 24), (80, 1), (80, 24)):
            await driven.pilot.resize_terminal(*size)
            await driven.pilot.pause()
        await driven.press("enter")
        assert "WORKER · PROPERTIES" in driven.text()
        await driven.press("escape", "escape")
        await driven.shown()
        assert driven.text() == before
