"""The screen of a diagnosis: asked for with d, from the fleet, the workers, one worker, and the jobs."""

from __future__ import annotations

from console.errors import HostError
from console.tui.screens.diagnosis import DiagnosisScreen
from console.tui.screens.evidence import EvidenceScreen
from console.tui.screens.fleet import FleetScreen
from tests.examples import diagnoses, example_fleet
from tests.tui.hostile import HOSTILE, harmless, spoil
from tests.tui.pilots import console
from tests.tui.queue_feeds import TableFeed, console_on


async def test_a_role_from_the_fleet() -> None:
    async with console(example_fleet(), (100, 30)) as driven:
        await driven.press("down", "down", "d")
        assert driven.feed.diagnosed == ["thumbnails"]
        text = driven.text()
        assert "thumbnails  × crash loop" in text and "next step" in text and "restart?" in text
        await driven.press("n", "n")
        assert "Do its workers run?" in driven.text()
        await driven.press("ctrl+r")
        assert driven.feed.diagnosed == ["thumbnails"] * 2
        await driven.press("escape")
        assert isinstance(driven.app.screen, FleetScreen)


async def test_a_finding_is_diagnosed_by_its_role_and_shown_with_enter() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("tab", "enter")
        assert isinstance(driven.app.screen, EvidenceScreen)
        await driven.press("d")
        assert isinstance(driven.app.screen, DiagnosisScreen)
        await driven.press("escape", "escape", "d")
        assert isinstance(driven.app.screen, DiagnosisScreen)
        assert driven.feed.diagnosed == ["reports"] * 2


async def test_a_worker_from_the_list_and_from_its_screen() -> None:
    async with console(example_fleet()) as driven:
        await driven.press("2", "d")
        await driven.press("escape", "enter", "d")
        assert driven.feed.diagnosed == ["mail mail-worker@1.service"] * 2
        assert "x" not in driven.feed.asked


async def test_the_holder_of_a_job() -> None:
    async with console_on(TableFeed(example_fleet(), 5), (80, 24), "3") as driven:
        await driven.pilot.pause(0.1)
        await driven.press("d")
        assert driven.feed.diagnosed == ["job 1"]
        await driven.press("escape", "enter", "d")
        assert driven.feed.diagnosed == ["job 1"] * 2


async def test_while_it_is_asked_and_when_it_cannot_be() -> None:
    async with console(example_fleet()) as driven:
        driven.feed.diagnosis_answer = None
        await driven.press("d")
        assert "examining it" in driven.text() and "nothing is changed" in driven.text()
        driven.feed.diagnosis_answer = HostError("host agent", "connection refused", "doctor")
        await driven.press("ctrl+r")
        assert "COULD NOT BE EXAMINED" in driven.text() and "connection refused" in driven.text()
        driven.feed.diagnosis_answer = diagnoses("mail")
        await driven.press("ctrl+r")
        assert "COULD NOT BE EXAMINED" not in driven.text()


async def test_hostile_text_and_a_small_terminal() -> None:
    async with console(example_fleet(), (40, 15)) as driven:
        driven.feed.diagnosis_answer = spoil(diagnoses(), "".join(HOSTILE))
        await driven.press("d", "pagedown")
        assert all(harmless(line) for line in driven.lines())
        await driven.press("y", "end", "home")
