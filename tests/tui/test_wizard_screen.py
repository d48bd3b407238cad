"""Playbooks in the console, in a pilot: the list, what begins one, its steps, waits, and the way back."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.screen import Screen

from console.errors import ConfigError, RefusedError
from console.fleet.plan import Consent, Progress, Question
from console.playbook.model import Draft, Shown, Telling
from console.tui import editing
from console.tui.screens.evidence import EvidenceScreen
from console.tui.screens.need import NeedScreen
from console.tui.screens.playbook import FaultyScreen, PlaybookScreen, RunScreen
from console.tui.screens.playbooks import PlaybooksScreen
from console.tui.screens.progress import LeaveScreen
from console.tui.screens.question import QuestionScreen
from console.tui.screens.step import AgreeScreen, BackScreen, StepScreen
from console.tui.screens.wizard import WizardScreen
from tests.tui.action_feeds import ActingFeed, Desk, desk, judged, stuck
from tests.tui.queue_feeds import console_on
from tests.tui.still_playbooks import (
    RUN,
    StillBooks,
    StillRun,
    drafted,
    line_plan,
    playbook_step,
    run_status,
    step_end,
    step_view,
)

Before = Callable[[StillBooks], None]


class Follower(Desk):
    """The console with playbooks."""

    @property
    def books(self) -> StillBooks:
        assert self.feed.playbooks is not None
        return self.feed.playbooks

    @property
    def run(self) -> StillRun:
        return self.books.run

    def shows(self, kind: type[Screen[Any]]) -> bool:
        return isinstance(self.screen, kind)

    async def finish(self) -> None:
        """The step ends."""
        self.run.ended.set()
        await self.press()


def shown_with(**changes: object) -> Shown:
    shown = step_view().shown
    assert shown is not None
    return msgspec.structs.replace(shown, **changes)


@asynccontextmanager
async def following(
    *keys: str, before: Before = lambda books: None, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[Follower]:
    """The console with one unfinished run; `before` sets up what the playbooks say."""
    feed = ActingFeed(judged(), 3, stuck)
    assert feed.playbooks is not None
    feed.playbooks.known = (run_status(),)
    before(feed.playbooks)
    async with console_on(feed, size) as driven:
        made = Follower(driven, feed)
        for key in keys:
            await made.press(key)
        yield made


# --- the list, and what begins one -------------------------------------------------------------------------------


async def test_the_list_leads_to_runs_playbooks_and_what_is_wrong_with_a_file() -> None:
    async with following("8", size=(120, 40)) as at:
        assert at.shows(PlaybooksScreen)
        assert "1 unfinished  2 playbooks  1 faulty" in at.text() and "next: Retire the line" in at.text()
        await at.press("d")
        assert at.shows(RunScreen) and "Unit was seen" in at.text()
        await at.press("escape", "down", "enter")
        assert at.shows(PlaybookScreen)
        assert "From a launcher in a crontab" in at.text() and "asked for: the crontab line" in at.text()
        await at.press("escape", "down", "enter")
        assert at.shows(FaultyScreen) and "no action frobnicate" in at.text()
        assert at.books.begun == [] and at.books.resumed == []


async def test_it_is_begun_with_what_is_chosen_and_typed() -> None:
    async with following("8", "down", "enter", "enter") as at:
        assert at.shows(NeedScreen) and "mail" in at.text()
        await at.press(*"rep", "enter")
        assert at.shows(NeedScreen) and "deploy:4" in at.text(), "the lines of that role"
        await at.press("enter")
        assert at.books.begun == [("cron-launcher-to-systemd", {"role": "reports", "entry": "deploy:4"})]
        assert at.shows(WizardScreen) and at.driven.app.current_mode == "playbooks"
        await at.press("q")
        assert at.shows(PlaybooksScreen) and at.run.closed
        await at.press("enter")
        await at.press("q", "down", "enter", "enter", "escape")
        assert at.shows(PlaybookScreen), "no answer begins nothing"
        assert len(at.books.begun) == 1


async def test_it_is_begun_from_a_finding_and_from_a_line_of_a_crontab() -> None:
    def before(books: StillBooks) -> None:
        books.known = ()

    async with following("tab", "enter", before=before) as at:
        assert "P mend" in at.text().splitlines()[-1]
        await at.press("P")
        assert at.shows(PlaybookScreen)
        assert "role         reports" in at.text() and "⏎ begins it" in at.text()
        await at.press("escape")
        assert "Playbook:  P Cron launcher → systemd" in at.text()
        await at.press("x")
        assert "playbook: Cron launcher → systemd" in at.text()
        await at.press("escape", "1", "n", "6", "down", "P")
        assert at.shows(PlaybookScreen)
        assert "entry        deploy:4" in at.text() and "asked for" not in at.text()
        await at.press("enter")
        assert at.books.begun[0][1] == {"entry": "deploy:4", "role": "reports"}


async def test_an_unfinished_run_is_taken_up_from_a_finding() -> None:
    async with following("tab", "enter", "P") as at:
        assert "⏎ takes up the unfinished run: it stands at step 3 of 8" in at.text()
        assert "entry        deploy:4" in at.text() and "asked for" not in at.text()
        await at.press("enter")
        assert at.shows(WizardScreen) and at.books.resumed == [RUN] and at.books.begun == []
        await at.press("q", "1")
        assert at.shows(EvidenceScreen), "the finding, not the page that has begun the run"


async def test_the_palette_knows_the_screen() -> None:
    async with following("colon", *"playbook", "enter") as at:
        assert at.shows(PlaybooksScreen)


async def test_an_unfinished_run_is_told_of_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.tui.acting._FIRST_LOOK", 0.01)
    async with following() as at:
        await at.driven.say(judged())
        for _ in range(50):
            if "unfinished: Cron" in at.text():
                break
            await at.driven.pilot.pause(0.02)
        assert "unfinished: Cron" in at.text() and "8 shows it" in at.text()


# --- steps ---------------------------------------------------------------------------------------------------------


async def test_a_step_is_agreed_to_done_and_followed_by_the_next() -> None:
    async with following("8", "enter") as at:
        assert at.books.resumed == [RUN]
        assert "step 3 of 8 · all can be taken back" in at.text()
        at.run.after = run_status(4)
        await at.press("enter")
        assert at.shows(StepScreen) and "Switch off line 4" in at.text() and at.run.gone == []
        await at.press("enter")
        assert at.shows(WizardScreen) and at.run.gone == [], "Enter is Cancel at first"
        await at.press("enter", "A")
        assert at.run.gone == [("go 3", "", "")]
        assert "↻ applying 0:00 · 1 of 3" in at.text() and "runs" in at.text()
        assert at.run.tell is not None
        at.run.tell(Progress(step=1, text="wakes them", remaining=20.0))
        await at.press()
        assert "2 of 3 · at most 0:20 more" in at.text()
        await at.press("1")
        assert "Cron launcher → systemd of reports, step 3: ↻ applying" in at.text(), "other screens tell of it"
        await at.press("8")
        at.run.view = step_view(4)
        await at.finish()
        assert "● done; ⏎ goes on" in at.text() and "cron has started nothing for 60 s" in at.text()
        await at.press("enter")
        assert "Step 4 of 8. Canary" in at.text()


async def test_what_has_come_about_meanwhile_is_not_agreed_to() -> None:
    async with following("8", "enter", "enter") as at:
        assert at.shows(StepScreen) and "A apply" in at.text().splitlines()[-1]
        shown = shown_with(plan=None, nothing="it is off")
        at.run.view = step_view(shown=shown)
        await at.press("ctrl+r")
        assert at.shows(WizardScreen) and "nothing to do: it is off" in at.text()
        assert "nothing is left to be agreed to" in at.text()


async def test_a_word_is_typed_where_the_plan_asks_for_it() -> None:
    consent = Consent(kind="typed", word="reports", why=("whether pid 4410 lives is not known",))
    shown = shown_with(plan=line_plan(consent))

    def before(books: StillBooks) -> None:
        books.run.view = step_view(shown=shown)

    async with following("8", "enter", "enter", "A", before=before) as at:
        assert at.run.gone == [] and "this has to be typed first" in at.text()
        await at.press(*"reports", "escape", "A")
        assert at.run.gone == [("go 3", "reports", "")]


async def test_the_footer_has_the_keys_of_what_can_be_done_with_the_step() -> None:
    def skips(books: StillBooks) -> None:
        books.run.view = step_view(step=playbook_step(4, "Canary"), shown=None)

    async with following("8", "enter", before=skips) as at:
        assert "s skip" in at.text() and "e edit" not in at.text()

    def has_drafts(books: StillBooks) -> None:
        books.run.view = step_view(shown=shown_with(drafts=(Draft(path="/etc/a.service", text="[Unit]\n"),)))

    async with following("8", "enter", before=has_drafts) as at:
        assert "s skip" not in at.text() and "e edit" in at.text()
        await at.press("enter", "A")
        assert "e edit" not in at.text(), "it is being done"


async def test_what_may_not_be_done_says_why() -> None:
    refused = Consent(kind="refused", why=("no rights to write it",))
    shown = shown_with(plan=line_plan(refused))

    def before(books: StillBooks) -> None:
        books.run.view = step_view(shown=shown, problem="no rights to write it")

    async with following("8", "enter", "enter", before=before) as at:
        assert at.shows(WizardScreen) and "× no rights to write it" in at.text() and at.run.gone == []
        at.run.view = ConfigError("step 3", "the entry is gone", "look at the crontab")
        await at.press("ctrl+r")
        assert "the entry is gone" in at.text() and "ctrl+r looks again" in at.text()


async def test_a_wait_counts_down_and_is_left_at_once() -> None:
    def before(books: StillBooks) -> None:
        books.run.view = step_view(shown=None)

    async with following("8", "enter", "enter", before=before) as at:
        assert at.run.tell is not None
        at.run.tell(Telling(number=3, text="cron has started nothing so far", remaining=42.0))
        await at.press()
        assert "waits, 0:42 more: cron has started nothing so far" in at.text()
        assert "step 3 waits, and goes on waiting when you leave" in at.text()
        await at.press("enter")
        assert len(at.run.gone) == 1, "it is not done twice"
        await at.press("q")
        assert at.shows(PlaybooksScreen)
        assert at.run.closed and at.run.stop is not None and at.run.stop.is_set()
        assert "left at step 3 of 8" in at.text()


async def test_whoever_is_back_before_what_goes_on_has_ended_keeps_the_run() -> None:
    def before(books: StillBooks) -> None:
        books.run.lingers = True

    async with following("8", "enter", "enter", "A", "q", "up", "enter", before=before) as at:
        assert at.shows(PlaybooksScreen) and not at.run.closed, "its step has not ended yet"
        await at.press("enter")
        assert at.shows(WizardScreen)
        await at.finish()
        assert "left here" in at.text() and not at.run.closed
        await at.press("enter")
        assert at.shows(WizardScreen) and "step 3" in at.text() and not at.run.closed


async def test_whoever_is_back_in_the_moment_in_which_it_ends_keeps_the_run() -> None:
    def before(books: StillBooks) -> None:
        books.run.lingers = True

    async with following("8", "enter", "enter", "A", "q", "up", "enter", before=before) as at:
        assert isinstance(at.screen, PlaybooksScreen) and not at.run.closed
        at.screen.open((at.screen.items(None) or ())[0])
        await at.finish()  # before its screen is there
        assert at.shows(WizardScreen) and "left here" in at.text() and not at.run.closed
        at.run.ended.clear()
        await at.press("enter", "enter", "A")
        assert [what for what, *_ in at.run.gone] == ["go 3", "go 3"]


async def test_what_was_let_go_of_is_taken_up_again_before_anything_is_done() -> None:
    async with following("8", "enter") as at:
        assert at.shows(WizardScreen)
        wizard = at.driven.app.playbooks.wizard
        assert wizard is not None
        wizard.leave()
        assert at.run.closed
        await at.press("enter")
        assert at.books.resumed == [RUN, RUN] and not at.run.closed and at.run.gone == []
        await at.press("enter", "A")
        assert at.run.gone == [("go 3", "", "")]
        await at.finish()
        wizard.leave()
        await at.press("b")
        assert at.shows(WizardScreen) and "take back: it was left; Enter takes it up again" in at.text()


async def test_whoever_leaves_while_a_plan_is_applied_is_asked() -> None:
    async with following("8", "enter", "enter", "A", "q") as at:
        assert at.shows(LeaveScreen)
        await at.press("down", "enter")
        assert at.driven.app.current_mode == "fleet" and not at.run.closed, "it goes on"
        await at.press("q")
        assert at.shows(LeaveScreen), "the console itself asks too"
        await at.press("escape", "8", "q", "up", "enter")
        assert at.shows(PlaybooksScreen) and at.run.closed


async def test_questions_and_other_plans_in_the_middle_are_answered() -> None:
    async with following("8", "enter", "enter", "A") as at:
        assert at.run.ask is not None and at.run.agree is not None
        asked = asyncio.create_task(_ask(at.run))
        await at.press()
        assert at.shows(QuestionScreen) and "Kill pid 812?" in at.text()
        await at.press("down", "enter")
        assert await asked
        agreed = asyncio.ensure_future(at.run.agree(line_plan(title="Drain another")))
        await at.press()
        assert at.shows(AgreeScreen) and "Drain another" in at.text()
        await at.press("A")
        assert await agreed == (True, "")
        agreed = asyncio.ensure_future(at.run.agree(line_plan(title="And another")))
        await at.press()
        await at.press("escape")
        assert await agreed == (False, "") and at.shows(WizardScreen)


async def _ask(run: StillRun) -> bool:
    assert run.ask is not None
    return await run.ask(Question(kind="kill", step=0, title="Kill pid 812?", text=("it ignores SIGTERM",)))


async def test_the_last_step_is_taken_back() -> None:
    async with following("8", "enter", "b") as at:
        assert at.shows(BackScreen) and "Take back step 2. Unit" in at.text()
        at.run.end, at.run.after = step_end(2, state="undone", text="taken back"), run_status(2, here="undone")
        await at.press("A")
        assert at.run.gone == [("back 2", "", "")] and "taking back" in at.text()
        await at.finish()
        assert "undone  taken back" in at.text() and "step 2 of 8" in at.text()
        at.run.back_view = ConfigError("run", "nothing has been done that could be taken back")
        await at.press("b")
        assert at.shows(WizardScreen) and "nothing has been done" in at.text()


async def test_what_changed_nothing_is_taken_back_at_once_and_what_cannot_be_says_why() -> None:
    async with following("8", "enter") as at:
        back = at.run.back_view
        assert not isinstance(back, Exception)
        at.run.back_view = msgspec.structs.replace(back, plans=(), problem="somebody has edited the file since")
        await at.press("b")
        assert "somebody has edited the file since" in at.text() and at.run.gone == []
        at.run.back_view = msgspec.structs.replace(back, plans=(), nothing="it has changed nothing")
        await at.press("b")
        assert at.run.gone == [("back 2", "", "")]


async def test_a_step_is_skipped_only_where_it_may_be() -> None:
    async with following("8", "enter", "s") as at:
        assert at.run.gone == [] and "may not be skipped" in at.text()
        at.run.view = step_view(4)
        await at.press("ctrl+r", "s")
        assert at.run.gone == [("skip 4", "", "")]


async def test_a_failed_step_can_be_tried_again_and_a_defect_is_told() -> None:
    async with following("8", "enter") as at:
        at.run.end, at.run.after = step_end(state="failed", text="the line is back"), run_status(3, here="failed")
        await at.press("enter", "A")
        await at.finish()
        assert "× failed: ⏎ looks again, b takes it back" in at.text() and "the line is back" in at.text()
        at.run.ended.clear()
        at.run.end = KeyError("x")
        await at.press("enter")
        await at.press("enter", "A")
        await at.finish()
        assert "a defect of worktop stopped it" in at.text()


async def test_a_run_is_given_up_and_one_that_is_over_shows_its_report(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    report.write_text("# What was changed\n")
    async with following("8", "enter", "x", "up", "enter", size=(120, 40)) as at:
        assert "given up: what was done stays" in at.text()
        await at.press("enter")
        assert at.shows(PlaybooksScreen)
        at.run.status = run_status(9, "done", report=str(report))
        await at.press("enter")
        assert "# What was changed" in at.text() and "b takes the last step back" in at.text()


async def test_who_runs_it_now_is_told() -> None:
    def before(books: StillBooks) -> None:
        books.refused = RefusedError("playbook x of reports", "ada on wrk01 runs it now", "worktop playbook status")

    async with following("8", "enter", before=before) as at:
        assert "ada on wrk01 runs it now" in at.text()
        at.books.refused = None
        await at.press("enter")
        assert "Step 3 of 8" in at.text()


async def test_where_it_is_narrow_the_steps_are_behind_a_key() -> None:
    async with following("8", "enter", size=(40, 15)) as at:
        assert "3 Retire the line" in at.text() and "7 Verify" not in at.text()
        await at.press("tab")
        assert "7 Verify" in at.text()
        await at.press("tab", "end", "l")
        assert at.feed.follows, "the log of the role"


# --- editing -------------------------------------------------------------------------------------------------------


def script(folder: Path, text: str) -> dict[str, str]:
    """An environment whose editor is this script."""
    path = folder / "editor"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {**os.environ, "EDITOR": str(path), "VISUAL": ""}


def test_a_text_is_what_the_editor_leaves_of_it(tmp_path: Path) -> None:
    append = script(tmp_path, 'test "$(basename "$1")" = "a@.service" && echo "# mine" >> "$1"')
    assert editing.edited("[Service]\n", "/etc/systemd/system/a@.service", append) == "[Service]\n# mine\n"
    with pytest.raises(ConfigError, match="ended with status 3"):
        editing.edited("x", "x", script(tmp_path, "echo gone > $1; exit 3"))
    with pytest.raises(ConfigError, match="No such file"):
        editing.edited("x", "x", {"EDITOR": "/no/such/editor"})
    with pytest.raises(ConfigError, match="no editor was found"):
        editing.editor({"PATH": str(tmp_path / "none")})


async def test_a_draft_is_edited_and_the_step_shown_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def before(books: StillBooks) -> None:
        books.run.view = drafted()

    monkeypatch.setattr("console.tui.screens.wizard.edited_in", lambda app, text, name: f"{text}# mine\n")
    async with following("8", "enter", "e", before=before) as at:
        ((path, text),) = at.run.edits
        assert path.endswith("reports-worker@.service") and text.endswith("worker\n# mine\n")
        at.run.view = step_view()
        await at.press("ctrl+r", "e")
        assert "no draft to edit" in at.text()


async def test_other_screens_are_left_as_they_were() -> None:
    async with desk("3", "tab", "tab", "R") as at:
        await at.press("A")
        await at.press("8")
        assert "PLAYBOOKS" in at.text() and "applying" in at.text()
