"""Actions on workers in a pilot: what is offered, what is asked first, the question in the middle, what comes next."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from console.errors import ConfigError
from console.fleet.model import LogLine
from console.fleet.plan import Consent, Plan, Progress, Question, Step, Suggestion, Unfinished
from console.tui.screens.ask import NumberScreen, SignalScreen
from console.tui.screens.diagnosis import DiagnosisScreen
from console.tui.screens.log import LogScreen
from console.tui.screens.plan import PlanScreen, RefusedScreen
from console.tui.screens.progress import ProgressScreen
from console.tui.screens.question import QuestionScreen, UnfinishedScreen
from console.tui.screens.result import ResultScreen
from tests.examples import NOW, diagnoses
from tests.tui.action_feeds import Desk, desk
from tests.tui.hostile import HOSTILE, harmless, spoil
from tests.tui.still_actions import outcome_of

FIRST = "mail-worker@1.service"
RULE = "polkit.addRule(function(action, subject) { … });"


def unit_plan(**changes: object) -> Plan:
    """A rolling restart of two workers."""
    steps = tuple(
        Step(
            kind="unit", title=f"restart mail-worker@{number}.service", unit=f"mail-worker@{number}.service",
            verb="restart", text="RestartUnit, then healthy within 40 s", undo="nothing: it runs as before",
        )
        for number in (1, 2)
    )  # fmt: skip
    plan = Plan(
        id="20251129T164207Z-3f2a91", made=NOW, verb="restart", title="Restart 2 workers of mail, rolling", role="mail",
        risk="medium", reversible="no", reasons=("one after another",), steps=steps, command="worktop restart mail",
    )  # fmt: skip
    return msgspec.structs.replace(plan, **changes)


async def first_look(at: Desk) -> None:
    """The console looks at what is allowed, and for plans that were cut off."""
    at.driven.app.desk._look_first()
    await at.driven.pilot.pause(0.1)
    await at.press()


# --- what is offered --------------------------------------------------------------------------------------------


async def test_a_worker_has_everything_a_unit_can() -> None:
    async with desk("2", "x", size=(100, 40)) as at:
        text = at.text()
        for label in ("restart mail-worker@1", "drain mail-worker@1", "stop mail-worker@1", "kill mail-worker@1"):
            assert label in text
        assert "scale mail" in text and "limits of mail" in text
        await at.press("enter")
        assert isinstance(at.screen, PlanScreen)
        assert (at.actions.asked[-1].verb, at.actions.asked[-1].options["units"]) == ("restart", (FIRST,))


async def test_marked_workers_are_meant_together() -> None:
    async with desk("2", "space", "space", "W") as at:
        asked = at.actions.asked[-1]
        assert asked.verb == "drain"
        assert asked.options["units"] == (FIRST, "mail-worker@2.service")
        assert asked.options["role"] == ""


async def test_the_role_is_meant_on_the_fleet() -> None:
    async with desk("B") as at:
        assert (at.actions.asked[-1].verb, at.actions.asked[-1].options["role"]) == ("restart", "mail")
        assert at.actions.asked[-1].options["units"] == ()
        await at.press("escape", "L")
        assert (at.actions.asked[-1].verb, at.actions.asked[-1].options["settings"]) == ("limits", None)
        await at.press("escape", *["down"] * 3, "B")
        assert not isinstance(at.screen, PlanScreen), "webhooks has no unit"


async def test_a_stray_is_drained_as_the_process_it_is() -> None:
    async with desk("down", "enter", "G", "W") as at:
        asked = at.actions.asked[-1]
        assert asked.verb == "drain"
        assert asked.options["units"] == ()
        assert [ident.pid for ident in asked.options["processes"]]


async def test_what_is_not_allowed_is_grey_with_the_reason_and_the_rule() -> None:
    async with desk("2") as at:
        refused = Consent(kind="refused", why=("deploy may not restart units of mail",), allow=(RULE,))
        at.actions.consents = {"restart": refused, "limits": refused}
        at.driven.app.desk.ask_rights()
        await at.press()
        await at.press("x")
        assert "not allowed: deploy may not restart" in at.text()
        await at.press("escape", "B")
        assert isinstance(at.screen, RefusedScreen)
        assert "polkit.addRule" in at.text()
        assert at.actions.asked == []


# --- what is asked first ----------------------------------------------------------------------------------------


async def test_the_number_of_a_scale_is_asked_for() -> None:
    async with desk("C") as at:
        assert isinstance(at.screen, NumberScreen)
        assert "3 run now, 3 desired, at most 8" in at.text()
        await at.press("minus", "1", "enter")
        assert "no number of workers" in at.text()
        await at.press("backspace", "backspace", "6", "enter")
        assert isinstance(at.screen, PlanScreen)
        assert at.actions.asked[-1].options == {"role": "mail", "count": 6, "why": ""}


async def test_the_signal_of_a_kill_is_chosen() -> None:
    async with desk("2", "K") as at:
        assert isinstance(at.screen, SignalScreen)
        await at.press("down", "down", "enter")
        assert (at.actions.asked[-1].verb, at.actions.asked[-1].options["signal"]) == ("kill", "HUP")


async def test_settings_are_typed_and_checked_before_a_plan_is_made() -> None:
    async with desk("x", size=(100, 40)) as at:
        place = next(number for number, line in enumerate(at.driven.lines()) if "set limits of mail" in line)
        first = next(number for number, line in enumerate(at.driven.lines()) if "reclaim all dead" in line)
        await at.press(*["down"] * (place - first), "enter")
        at.screen._input.value = "MemoryMax=lots"
        await at.press("enter")
        assert "expected an amount" in at.text()
        assert at.actions.asked == []
        at.screen._input.value = "MemoryMax=512M TimeoutStopSec=30s"
        await at.press("enter")
        assert at.actions.asked[-1].options["settings"] == {"MemoryMax": "512M", "TimeoutStopSec": "30s"}


# --- while it is applied, and after ------------------------------------------------------------------------------


QUESTION = Question(
    kind="kill", step=0, title="Kill mail-worker@1.service (pid 812)?",
    text=("it was asked to stop 90 s ago and still holds a job",), jobs=("918233",),
)  # fmt: skip


async def test_a_kill_in_the_middle_is_asked_and_no_is_the_default() -> None:
    async with desk("B") as at:
        at.actions.plan = unit_plan()
        await at.press("ctrl+r", "A")
        assert isinstance(at.screen, ProgressScreen)
        at.actions.say(Progress(step=0, text="mail-worker@1.service is deactivating", remaining=42.0))
        await at.press()
        assert "at most 0:42 more" in at.text()
        assert at.actions.asking is not None
        for keys, answer in ((("enter",), False), (("escape",), False), (("down", "enter"), True)):
            asked = asyncio.ensure_future(at.actions.asking(QUESTION))
            await at.press()
            assert isinstance(at.screen, QuestionScreen)
            assert "Kill mail-worker@1.service (pid 812)?" in at.text() and "still holds a job" in at.text()
            await at.press(*keys)
            assert await asked is answer
        given_up = asyncio.ensure_future(at.actions.asking(QUESTION))
        await at.press()
        given_up.cancel()
        await at.press()
        assert isinstance(at.screen, ProgressScreen)
        await at.press("S")
        assert at.actions.stop is not None and at.actions.stop.is_set()
        await at.end()


async def test_what_is_worth_doing_next_is_one_key_away() -> None:
    suggestion = Suggestion(
        title="Start mail-worker@3.service", command="worktop start mail-worker@3.service", verb="start", role="mail",
        units=("mail-worker@3.service",),
    )  # fmt: skip
    async with desk("B") as at:
        at.actions.plan = unit_plan()
        at.actions.outcome = outcome_of(unit_plan(), next=(suggestion,), undo="")
        at.actions.ended.set()
        await at.press("ctrl+r", "A")
        assert isinstance(at.screen, ResultScreen)
        assert "WORTH DOING NEXT" in at.text() and "worktop start mail-worker@3.service" in at.text()
        await at.press("x")
        assert "Start mail-worker@3.service" in at.text()
        await at.press("escape", "enter")
        assert isinstance(at.screen, PlanScreen)
        assert (at.actions.asked[-1].verb, at.actions.asked[-1].options["units"]) == (
            "start",
            ("mail-worker@3.service",),
        )


async def test_plans_that_were_cut_off_are_shown_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.tui.acting._FIRST_LOOK", 3600.0)  # only when the test says so
    cut_off = Unfinished(
        plan="20251129T160000Z-abcdef", at=NOW - 720, verb="restart", title="Restart mail, rolling", role="mail",
        done=3, steps=20, next="restart mail-worker@4.service",
    )  # fmt: skip
    async with desk() as at:
        at.actions.cut_off = (cut_off, msgspec.structs.replace(cut_off, running=True))
        await first_look(at)
        assert isinstance(at.screen, UnfinishedScreen)
        assert "3 of 20 steps done" in at.text() and "AN ACTION WAS CUT OFF" in at.text()
        await at.press("enter")
        assert at.actions.asked == [] and at.actions.abandoned == []
        await first_look(at)
        await at.press("down", "enter")
        assert (at.actions.asked[-1].verb, at.actions.asked[-1].options["plan"]) == ("continue", cut_off.plan)
        await at.press("escape")
        await first_look(at)
        await at.press("up", "enter")
        await at.driven.pilot.pause(0.1)
        assert at.actions.abandoned == [cut_off.plan]
        assert "given up" in at.text()
        at.actions.cut_off = ()
        await first_look(at)
        assert not isinstance(at.screen, UnfinishedScreen)


async def test_the_next_step_of_a_diagnosis_is_a_key_away() -> None:
    async with desk() as at:
        first = msgspec.structs.replace(
            diagnoses("mail")[0], commands=("journalctl -u mail-worker@2 -n 50", "worktop limits mail")
        )
        at.feed.diagnosis_answer = (first,)
        await at.press("d", "enter")
        assert isinstance(at.screen, PlanScreen)
        assert (at.actions.asked[-1].verb, at.actions.asked[-1].options["role"]) == ("limits", "mail")
        await at.press("escape")
        at.feed.diagnosis_answer = (msgspec.structs.replace(first, commands=("systemctl cat x.service",)),)
        await at.press("ctrl+r", "enter")
        assert isinstance(at.screen, DiagnosisScreen)
        assert "the next step is yours" in at.text()


# --- the log ----------------------------------------------------------------------------------------------------


async def export_to(at: Desk, path: Path) -> None:
    await at.press("w")
    assert at.screen._input.value.startswith("~/worktop-")
    at.screen._input.value = str(path)
    await at.press("enter")


def written(number: int) -> LogLine:
    return LogLine(at=NOW - 100 + number, unit=FIRST, text=f"line {number} token=hunter2hunter2", pid=812)


async def test_a_failed_job_leads_to_the_log_around_its_end(tmp_path: Path) -> None:
    async with desk("3", "tab", "tab", "tab", "enter") as at:
        failed = at.feed.page(at.feed.queries[-1]).jobs[0]
        ended = msgspec.structs.replace(failed, state="failed", finished=NOW - 50)
        at.feed.job_answer = (ended, None)
        at.feed.past = (tuple(written(number) for number in range(100)), None)
        await at.press("ctrl+r", "l")
        await at.driven.pilot.pause(0.15)
        assert isinstance(at.screen, LogScreen)
        assert at.feed.read[-1][1:] == (NOW - 110, NOW + 10)
        assert "around 16:41:17" in at.text() and "line 50 " in at.text() and "line 99 " not in at.text()
        assert at.feed.follows == []
        await export_to(at, tmp_path / "out.log")
        lines = (tmp_path / "out.log").read_text().splitlines()
        assert (tmp_path / "out.log").stat().st_mode & 0o777 == 0o600
        assert len(lines) == 100 and "hunter2" not in lines[0] and lines[0].startswith("2025-11-29T16:40:27")
        await export_to(at, tmp_path / "out.log")
        assert "there is such a file already" in at.text()
        await at.press("G")
        await at.driven.pilot.pause(0.1)
        assert len(at.feed.follows) == 1, "G follows"
        await at.press("escape", "m")
        await at.driven.pilot.pause(0.1)
        assert "everything that mentions" in at.text()
        assert "mail-worker@*.service" in at.feed.follows[-1].units


async def test_hostile_text_is_harmless() -> None:
    evil = "".join(HOSTILE)
    async with desk("B", size=(60, 20)) as at:
        at.actions.plan = spoil(unit_plan(), evil)
        suggestion = Suggestion(title=evil, command=evil, verb="start")
        at.actions.outcome = outcome_of(unit_plan(), next=(suggestion,), text=evil)
        await at.press("ctrl+r")
        assert all(harmless(line) for line in at.driven.lines())
        at.actions.plan = unit_plan()
        await at.press("ctrl+r", "A")
        assert at.actions.asking is not None
        asked = asyncio.ensure_future(at.actions.asking(spoil(QUESTION, evil)))
        await at.press()
        assert all(harmless(line) for line in at.driven.lines())
        await at.press("enter")
        await asked
        await at.end()
        await at.press("pagedown", "x")
        assert all(harmless(line) for line in at.driven.lines())


async def test_a_folder_of_plans_that_cannot_be_read_stops_nothing() -> None:
    async with desk() as at:

        def fails() -> tuple[Unfinished, ...]:
            raise ConfigError("state directory", "not permitted")

        at.actions.unfinished = fails  # type: ignore[method-assign]
        await first_look(at)
        assert "worktop" in at.text()
