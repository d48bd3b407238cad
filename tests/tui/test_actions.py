"""The menu, the plan, its application and its result, in a pilot; what the actions answer is made up."""

from __future__ import annotations

import msgspec

from console.errors import QueueError, RefusedError
from console.fleet.model import Count, Job, JobQuery
from console.fleet.plan import Consent, Progress, RowRef
from console.tui.screens.evidence import EvidenceScreen
from console.tui.screens.fleet import FleetScreen
from console.tui.screens.job import JobScreen
from console.tui.screens.jobs import JobsScreen
from console.tui.screens.menu import MenuScreen
from console.tui.screens.plan import PlanScreen, RefusedScreen
from console.tui.screens.progress import LeaveScreen, ProgressScreen
from console.tui.screens.result import ResultScreen
from console.view.glyphs import UNICODE
from console.view.jobs import JobRow, job_grid
from console.view.listing import Look
from tests.examples import NOW
from tests.tui.action_feeds import desk, judged, stuck
from tests.tui.feeds import StillFeed
from tests.tui.hostile import HOSTILE, harmless, spoil
from tests.tui.queue_feeds import console_on
from tests.tui.still_actions import VERBS, blocked_outcome, dead_claim, reclaim_plan

TYPED = Consent(kind="typed", word="thumbnails", why=("whether pid 4410 lives is not known",))
REFUSED = Consent(
    kind="refused",
    why=("permission denied for table worktop_jobs",),
    allow=("GRANT UPDATE ON public.worktop_jobs TO app;",),
)


STUCK = ("3", "tab", "tab")


# --- the list --------------------------------------------------------------------------------------------------


def test_stuck_jobs_at_80_columns_keep_what_decides() -> None:
    claim = dead_claim()
    rows = [JobRow(job=claim.job, role="thumbnails", now=NOW, claim=claim)]
    at = {
        width: job_grid(rows, JobQuery(state="stuck", sort="overdue"), width, Look(glyphs=UNICODE), marked=()).text()
        for width in (40, 80, 120)
    }
    assert at[80].split("\n")[0].split() == ["JOB", "ROLE", "OVERDUE↑", "HOLDER", "VERDICT", "WHY"]
    assert "918233 thumbnails    31:02 @3 pid 812 DEAD" in at[80]
    assert at[120].split("\n")[0].split()[6:8] == ["RECLAIMS", "WHY"]
    assert at[40].split("\n")[0].split() == ["JOB", "OVERDUE↑", "HOLDER", "VERDICT"] or "DEAD" in at[40]


# --- the menu --------------------------------------------------------------------------------------------------


async def test_the_menu_holds_what_can_be_done_with_the_marked_rows() -> None:
    async with desk(*STUCK, "space", "space", "x") as at:
        assert isinstance(at.screen, MenuScreen)
        assert "ACTIONS  2 marked" in at.text()
        assert "reclaim 2 jobs of thumbnails" in at.text()
        await at.press("enter")
        assert isinstance(at.screen, PlanScreen)
        assert at.actions.asked[-1].verb == "reclaim"
        assert at.actions.asked[-1].options["rows"] == (RowRef("918233", "t-1"), RowRef("918240", "t-2"))
        assert at.actions.asked[-1].options["role"] == ""


async def test_what_the_menu_meant_stays_when_the_rows_change_under_it() -> None:
    async with desk(*STUCK, "x") as at:
        assert "ACTIONS  918233" in at.text()
        at.feed.change = lambda job: None if job.state == "running" and job.id == "3" else stuck(job)
        jobs = at.driven.app.front
        assert isinstance(jobs, JobsScreen) and jobs.loader is not None
        jobs.asked_again()
        await at.driven.pilot.pause(0.1)
        jobs.show()
        assert jobs.table.cursor_key == "918240"
        await at.press("enter")
        assert at.actions.asked[-1].options["rows"] == (RowRef("918233", "t-1"),)


async def test_what_is_not_allowed_is_there_with_the_reason_and_what_would_allow_it() -> None:
    async with desk() as at:
        at.actions.consents = {verb: REFUSED if verb == "reclaim" else Consent() for verb in VERBS}
        await at.press("ctrl+r", *STUCK, "x")
        assert "not allowed: permission denied" in at.text(), "its line holds the beginning"
        assert "table worktop_jobs" in at.text(), "and the whole stands below"
        assert "read-only" not in at.text(), "other verbs are allowed"
        await at.press("enter")
        assert isinstance(at.screen, RefusedScreen)
        assert "GRANT UPDATE ON public.worktop_jobs TO app;" in at.text()
        assert at.actions.asked == []
        await at.press("escape", "R")
        assert isinstance(at.screen, RefusedScreen)


async def test_the_mark_read_only_is_true() -> None:
    async with desk(size=(120, 40)) as at:
        await at.press("ctrl+r")
        assert "read-only" not in at.text()
        at.actions.consents = dict.fromkeys(VERBS, REFUSED)
        await at.press("ctrl+r")
        assert "16:42:07 UTC · read-only" in at.text()
    feed = StillFeed(judged())
    feed.actions = None
    async with console_on(feed, (80, 24), "2", "ctrl+r") as driven:
        assert "16:42:07 UTC · read-only" in driven.text(), "also where it is narrow"
        await driven.press("x")
        assert "not allowed: this console was opened" in driven.text()
        await driven.press("enter")
        assert isinstance(driven.app.screen, RefusedScreen)


async def test_rights_that_cannot_be_asked_for_hide_nothing() -> None:
    async with desk() as at:
        at.actions.consents = QueueError("rights", "connection refused")
        await at.press("ctrl+r", *STUCK, "R")
        assert isinstance(at.screen, PlanScreen)


async def test_fleet_acts_on_the_role_and_evidence_on_that_of_its_finding() -> None:
    async with desk("down", "down", "x") as at:
        text = at.text()
        assert "ACTIONS  thumbnails" in text
        for label in ("reclaim all dead of thumbnails", "retry all failed of thumbnails", "pause thumbnails", "resume"):
            assert label in text
        await at.press("down", "down", "enter")
        assert at.actions.asked[-1].verb == "pause"
        assert at.actions.asked[-1].options["role"] == "thumbnails"
        await at.press("escape", "T")
        assert at.actions.asked[-1].verb == "retry"
        assert at.actions.asked[-1].options["role"] == "thumbnails"
        await at.press("escape", "tab", "enter")
        assert isinstance(at.screen, EvidenceScreen)
        await at.press("R")
        assert at.actions.asked[-1].verb == "reclaim"
        assert at.actions.asked[-1].options["verdicts"] == ("DEAD",)


async def test_where_there_is_nothing_to_do_that_is_said() -> None:
    async with desk("R") as at:
        assert isinstance(at.screen, FleetScreen)
        assert "no job is stuck of mail" in at.text()
        await at.press("D")
        assert "no discard here; x has retry, pause, resume" in at.text()
        await at.press("0")
        assert "no action has been applied" in at.text()
        await at.press("3", "x")
        assert "run job 1 of reports now" in at.text()
        assert at.actions.asked == []


async def test_workers_act_on_the_jobs_they_hold() -> None:
    claim = msgspec.structs.replace(dead_claim(), worker="thumbnails-worker@1.service")
    async with desk("2", *["down"] * 10, fleet=msgspec.structs.replace(judged(), claims=(claim,))) as at:
        await at.press("R")
        assert at.actions.asked[-1].options["rows"] == (RowRef("918233", "t-1"),)
        await at.press("escape", "enter", "x")
        assert "reclaim job 918233 of thumbnails" in at.text()


async def test_a_job_acts_on_itself() -> None:
    async with desk("3", "tab", "tab", "tab", "enter") as at:
        assert isinstance(at.screen, JobScreen)
        at.feed.job_answer = (Job(id="3", queue="reports", state="failed", token="t3"), None)
        await at.press("ctrl+r", "x")
        assert "retry job 3 of reports" in at.text()
        await at.press("escape", "T")
        assert at.actions.asked[-1].options["rows"] == (RowRef("3", "t3"),)


async def test_a_priority_is_asked_for() -> None:
    async with desk("3", "x", "down", "enter") as at:
        assert "PRIORITY  priority of job 1 of reports" in at.text()
        await at.press("enter")
        assert "type a whole number" in at.text()
        await at.press(*"9999999", "enter")
        assert "no number a queue can hold" in at.text()
        await at.press(*["backspace"] * 9, *"-12", "enter")
        assert isinstance(at.screen, PlanScreen)
        assert at.actions.asked[-1].options["priority"] == -12


async def test_actions_are_found_in_the_palette() -> None:
    async with desk(*STUCK, "colon", *"quarantine", "enter") as at:
        assert at.actions.asked[-1].verb == "quarantine"


# --- the plan --------------------------------------------------------------------------------------------------

PLAN_80 = """\
PLAN  nothing is changed yet                                     ↓ 23 more lines
Reclaim 2 jobs of thumbnails                          risk: low · can be undone
both holders are dead
a late finish would be rejected: the lease token changes

HOLDERS 2
  DEAD    thumbnails-worker@3 pid 812  job 918233"""


async def test_a_plan_can_be_read_whole_in_any_size() -> None:
    async with desk(*STUCK, "R") as at:
        assert "\n".join(at.driven.lines()[2:9]) == PLAN_80
        assert at.driven.lines()[-2].startswith(" [ Cancel ]  [ Apply ]")
        await at.press("y")
        assert "sent to the terminal" in at.text()
        for size in ((80, 24), (40, 15), (20, 8)):
            await at.driven.pilot.resize_terminal(*size)
            await at.press("g", "pagedown")
            assert all(len(line) <= size[0] for line in at.driven.lines())
            await at.press("G")
            assert "COMMIT" in at.text()
            assert "more lines" not in at.text()


async def test_cancel_is_the_default_and_enter_takes_it() -> None:
    async with desk(*STUCK, "R", "enter") as at:
        assert isinstance(at.screen, JobsScreen)
        await at.press("R", "escape")
        assert isinstance(at.screen, JobsScreen)
        assert at.actions.applied == []
        await at.press("R")
        await at.driven.pilot.click("#choice", offset=(14, 0))
        assert len(at.actions.applied) == 1, "a click on Apply is deliberate"


async def test_apply_needs_a_deliberate_key_and_keeps_the_reason() -> None:
    async with desk(*STUCK) as at:
        at.actions.ended.set()
        for keys in (("A",), ("tab", "enter"), ("right", "enter"), ("shift+tab", "tab", "tab", "enter")):
            await at.press("R", *keys)
            assert isinstance(at.screen, ResultScreen), keys
            await at.press("escape")
        assert [(plan.id, typed, why) for plan, typed, why in at.actions.applied] == [(reclaim_plan().id, "", "")] * 4
        await at.press("R", "w", *"OPS-12 q", "escape")
        assert isinstance(at.screen, PlanScreen)
        await at.press("A")
        assert at.actions.applied[-1][2] == "OPS-12 q"


async def test_the_name_of_the_role_is_typed_where_that_is_asked() -> None:
    async with desk(*STUCK) as at:
        at.actions.plan = reclaim_plan(TYPED)
        await at.press("R")
        assert "whether pid 4410 lives is not known" in at.text()
        await at.press("A")
        assert "this has to be typed first" in at.text()
        await at.press(*"thumb", "enter", "enter", "tab", "enter")
        assert at.actions.applied == []
        await at.press(*"nails", "enter", "enter", "right", "enter")
        assert [typed for _, typed, _ in at.actions.applied] == ["thumbnails"]


async def test_a_refused_plan_cannot_be_applied() -> None:
    async with desk(*STUCK) as at:
        at.actions.plan = reclaim_plan(REFUSED)
        await at.press("R")
        assert "× refused" in at.text() and "GRANT UPDATE" in at.text()
        assert "Apply" not in at.driven.lines()[-2]
        await at.press("A", "tab", "A")
        assert at.actions.applied == []
        await at.press("enter")
        assert isinstance(at.screen, JobsScreen)


async def test_while_it_is_planned_escape_gives_up() -> None:
    async with desk(*STUCK) as at:
        at.actions.plan = None
        await at.press("R")
        assert "planning…" in at.text()
        await at.press("A")
        assert isinstance(at.screen, PlanScreen) and at.actions.applied == []
        await at.press("escape")
        assert isinstance(at.screen, JobsScreen)


async def test_what_cannot_be_planned_says_why_and_can_be_tried_again() -> None:
    async with desk(*STUCK) as at:
        at.actions.plan = QueueError("reclaim", "[/x] connection refused\x1b[2J", "is PostgreSQL running?")
        await at.press("R")
        assert "connection refused␛[2J; is PostgreSQL running?" in at.text()
        at.actions.plan = reclaim_plan()
        await at.press("ctrl+r")
        assert "HOLDERS 2" in at.text()


async def test_an_old_plan_is_made_anew_and_shown_again_when_it_is_another() -> None:
    now = [NOW]
    async with desk(*STUCK, "R", clock=lambda: now[0]) as at:
        now[0] += 61
        at.actions.plan = reclaim_plan(rows=Count(5), reasons=("five now",))
        await at.press("A")
        assert at.actions.applied == []
        assert "it was old and is another one now: look again" in at.text()
        assert "five now" in at.text()
        now[0] += 61
        at.actions.plan = msgspec.structs.replace(at.actions.plan, id="newer", reasons=("said otherwise",))
        await at.press("A")
        assert [plan.id for plan, _, _ in at.actions.applied] == ["newer"], "the same deed, made anew"


async def test_hostile_plans_are_text() -> None:
    bad = spoil(reclaim_plan(TYPED), "".join(HOSTILE))
    async with desk(*STUCK, size=(120, 120)) as at:
        at.actions.plan = bad
        await at.press("R")
        assert "type thumbnails␛[31mred" in at.text()
        assert all(harmless(line) for line in at.driven.lines())
        at.actions.plan = spoil(reclaim_plan(), "".join(HOSTILE))
        await at.press("ctrl+r", "A")
        at.actions.say(Progress(step=0, text="".join(HOSTILE), done=1))
        await at.press()
        assert all(harmless(line) for line in at.driven.lines())
        at.actions.outcome = spoil(blocked_outcome(reclaim_plan()), "".join(HOSTILE))
        await at.end()
        assert isinstance(at.screen, ResultScreen)
        assert "COULD NOT BE MOVED" in at.text()
        assert all(harmless(line) for line in at.driven.lines())


# --- while it is applied -----------------------------------------------------------------------------------------


async def test_progress_and_what_came_of_it() -> None:
    async with desk(*STUCK, "R", "A") as at:
        at.actions.say(Progress(step=0, done=1200, total=Count(12000), per_second=3400.0))
        await at.press()
        assert "1 200 of 12 000 rows · 3 400 a second" in at.text()
        at.actions.say(Progress(step=1))
        await at.press()
        assert "●  1 return 2 jobs to waiting" in at.text()
        refreshed = at.feed.refreshed
        await at.end()
        assert isinstance(at.screen, ResultScreen)
        assert "done  2 jobs wait again" in at.text()
        assert "a late finish of pid 812 would be rejected" in at.text()
        assert at.feed.refreshed == refreshed + 1, "the rows are asked for again"
        await at.press("escape")
        assert isinstance(at.screen, JobsScreen)
        await at.press("0")
        assert isinstance(at.screen, ResultScreen)


async def test_it_is_stopped_between_batches() -> None:
    async with desk(*STUCK, "R", "A", "S") as at:
        assert at.actions.stop is not None and at.actions.stop.is_set()
        assert "what is done stays done" in at.text()


async def test_it_goes_on_while_the_person_looks_at_something_else() -> None:
    async with desk(*STUCK, "R", "A", "escape") as at:
        assert isinstance(at.screen, LeaveScreen)
        await at.press("enter")
        assert isinstance(at.screen, ProgressScreen), "to stay is the default"
        await at.press("escape", "down", "enter")
        assert isinstance(at.screen, JobsScreen)
        at.actions.say(Progress(step=0, done=1200, total=Count(12000)))
        await at.press("1")
        assert "↻ applying 1/3 Reclaim 2 jobs of thumbnails" in at.text()
        await at.press("0")
        assert isinstance(at.screen, ProgressScreen)
        await at.press("3", "R")
        await at.press("A")
        assert "another action runs: 0 shows it" in at.text()
        await at.press("escape")
        await at.end()
        assert "applying" not in "\n".join(at.driven.lines()[:3])
        assert "2 jobs wait again; 0 shows it" in at.text()
        await at.press("1")
        assert isinstance(at.screen, ResultScreen), "its progress was open there"


async def test_leaving_the_console_meanwhile_is_asked_about() -> None:
    async with desk(*STUCK, "R", "A", "q") as at:
        assert isinstance(at.screen, LeaveScreen)
        await at.press("q", "enter")
        assert isinstance(at.screen, ProgressScreen)
        await at.press("q", "down", "enter")
        assert at.actions.stop is not None and at.actions.stop.is_set()
        at.actions.ended.set()
        for _ in range(50):
            await at.driven.pilot.pause(0.01)
            if not at.driven.app.is_running or at.driven.app._exit:
                break
        assert at.driven.app._exit, "it leaves when the action has ended"


async def test_what_is_refused_when_it_is_applied_and_what_meets_a_defect() -> None:
    async with desk(*STUCK) as at:
        at.actions.ended.set()
        at.actions.outcome = RefusedError("reclaim", "another console is acting on thumbnails")
        await at.press("R", "A")
        assert isinstance(at.screen, ResultScreen)
        assert "NOTHING WAS DONE" in at.text() and "another console is acting" in at.text()
        await at.press("u")
        assert "no undo here" in at.text()
        at.actions.outcome = KeyError("boom")
        await at.press("escape", "R", "A")
        assert "CUT OFF" in at.text()


async def test_rows_that_could_not_be_moved_have_choices_and_the_rest_an_undo() -> None:
    async with desk(*STUCK, "R", "A") as at:
        at.actions.outcome = blocked_outcome(reclaim_plan())
        await at.end()
        assert "COULD NOT BE MOVED 1" in at.text()
        await at.press("x")
        assert "discard job 918240" in at.text()
        await at.press("down", "enter")
        assert at.actions.asked[-1].verb == "discard"
        assert at.actions.asked[-1].options["rows"] == (RowRef("918240"),)
        await at.press("escape", "u")
        assert isinstance(at.screen, PlanScreen)
        assert at.actions.asked[-1].verb == "undo"
        assert at.actions.asked[-1].options["plan"] == reclaim_plan().id
