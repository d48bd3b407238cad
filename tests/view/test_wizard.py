"""A playbook that is followed, as lines: at any width, in ASCII, and with hostile text."""

from __future__ import annotations

import msgspec
import pytest

from console.errors import Problem
from console.fleet.model import Finding
from console.fleet.plan import Consent, Progress
from console.playbook.model import Inverse, Shown, Telling
from console.view.cells import part_columns, plain
from console.view.glyphs import ASCII, UNICODE, to_ascii
from console.view.listing import Look, list_grid
from console.view.page import Lines
from console.view.playbooks import (
    COLUMNS,
    Row,
    book_sections,
    for_entry,
    for_findings,
    missing,
    notice,
    open_run,
    rows,
    run_sections,
)
from console.view.wizard import (
    Moment,
    begun,
    body_lines,
    stand_lines,
    standing_of,
    step_list,
    steps_collapsed,
    title_parts,
    work_line,
)
from tests.examples import NOW, example_fleet
from tests.schedules import examples as schedules
from tests.tui.hostile import HOSTILE, harmless, spoil
from tests.tui.still_playbooks import book, line_plan, run_status, shelf, step_end, step_view

WIDTHS = (20, 50, 120)


SHOWN = step_view().shown or Shown()


def moment(**changes: object) -> Moment:
    known = Moment(
        title="Cron launcher → systemd", role="reports", status=run_status(), steps=book().steps, view=step_view()
    )
    return msgspec.structs.replace(known, **changes)


APPLYING = begun(3, NOW - 4, line_plan()).told(Progress(step=1, text="wakes them", remaining=20.0), NOW - 1)
WAITING = begun(3, NOW - 4).told(Telling(number=3, text="cron has started nothing so far", remaining=42.0), NOW - 2)
MOMENTS = {
    "opening": moment(status=None, view=None),
    "looking": moment(view=None, asking=True),
    "ready": moment(),
    "refused": moment(view=step_view(shown=None, problem="no rights to write the crontab of deploy")),
    "nothing": moment(view=step_view(shown=msgspec.structs.replace(SHOWN, plan=None, nothing="it is off"))),
    "applying": moment(doing=APPLYING),
    "waiting": moment(doing=WAITING),
    "stopping": moment(doing=msgspec.structs.replace(WAITING, stopping=True)),
    "going back": moment(doing=msgspec.structs.replace(APPLYING, back=True)),
    "ended": moment(view=None, status=run_status(4), end=step_end()),
    "failed": moment(view=None, status=run_status(3, here="failed"), end=step_end(state="failed", text="it is back")),
    "problem": moment(view=None, problem=Problem("run x", "another worktop runs it now", "wait")),
    "over": moment(view=None, status=run_status(9, "done", report="/x/report.md"), report="# Report\n\n| a | b |\n"),
    "given up": moment(view=None, status=run_status(3, "abandoned")),
}


def everything(shown: Moment, width: int, glyphs: object = UNICODE) -> Lines:
    assert glyphs is UNICODE or glyphs is ASCII
    signs = UNICODE if glyphs is UNICODE else ASCII
    return (
        title_parts(shown, width, signs),
        *step_list(shown, width, signs),
        steps_collapsed(shown, width, signs),
        *body_lines(shown, NOW, width, signs),
        *stand_lines(shown, NOW, width, 100, signs),
        work_line(shown, NOW, width, signs),
    )


def text_of(lines: Lines) -> str:
    return "\n".join(plain(line) for line in lines)


def stands(shown: Moment, most: int = 100) -> str:
    return " ".join(text_of(stand_lines(shown, NOW, 110, most, UNICODE)).split())


@pytest.mark.parametrize("name", MOMENTS)
def test_it_fits_any_width_and_harms_no_terminal(name: str) -> None:
    spoilt = spoil(MOMENTS[name], "".join(HOSTILE))
    for width in WIDTHS:
        for shown in (MOMENTS[name], spoilt):
            for line in everything(shown, width):
                assert part_columns(line) <= width, plain(line)
                assert harmless(plain(line))
    ascii_text = text_of(everything(MOMENTS[name], 80, ASCII))
    assert to_ascii(ascii_text).isascii() and "hunter" not in ascii_text


def test_each_step_has_a_sign_and_a_word() -> None:
    lines = [plain(line).split() for line in step_list(moment(), 30, UNICODE)]
    assert lines[0] == ["●", "1", "Survey", "done"]
    assert lines[2] == [">", "3", "Retire", "the", "line", "now"]
    assert lines[3] == ["4", "Canary"]
    assert plain(step_list(MOMENTS["failed"], 30, UNICODE)[2]).split()[::5] == ["×", "failed"]
    assert plain(step_list(MOMENTS["applying"], 30, UNICODE)[2]).endswith("runs")
    assert plain(step_list(MOMENTS["waiting"], 30, UNICODE)[2]).endswith("waits")
    skipped = moment(status=run_status(3, here="skipped"))
    assert plain(step_list(skipped, 30, ASCII)[2]).split()[::5] == ["-", "skipped"]
    assert plain(steps_collapsed(moment(), 40, UNICODE)) == ">  3 Retire the line     now  Tab: all 8"


def test_where_things_stand_is_said_in_words() -> None:
    assert "stopped here unit is done and nobody replaces the workers that end." in stands(moment())
    assert "6 by crontab of deploy, line 4, 1 by reports-worker@.service" in stands(moment())
    first = moment(status=run_status(1), view=step_view(1))
    assert "stopped here nothing has been changed" in stands(first)
    assert "nothing is changed yet" in plain(title_parts(first, 100, UNICODE))
    assert "nothing is changed yet" in plain(title_parts(moment(status=run_status(2)), 100, UNICODE)), "a survey"
    assert "all can be taken back" in plain(title_parts(moment(), 100, UNICODE))
    final = tuple(msgspec.structs.replace(step, inverse=Inverse(kind="none")) for step in book().steps)
    assert "part can be taken back" in plain(title_parts(moment(steps=final), 100, UNICODE))
    assert "step 3 is under way: what is done of it stays done" in stands(MOMENTS["applying"])
    assert "step 3 waits, and goes on waiting when you leave" in stands(MOMENTS["waiting"])
    assert "step 3 is not done: it can be taken up again, or back" in stands(MOMENTS["failed"])
    assert "given up: what was done stays" in stands(MOMENTS["given up"])
    assert "stopped here" not in stands(MOMENTS["given up"]), "nothing is stopped any more"
    assert plain(title_parts(MOMENTS["given up"], 80, UNICODE)).endswith(" given up")
    assert "↓" in stands(moment(), 2) and len(stand_lines(moment(), NOW, 40, 3, UNICODE)) == 3


def test_who_runs_it_now_is_what_the_console_sees_now() -> None:
    fleet = example_fleet()
    told = standing_of(fleet, "reports")
    assert told[0].startswith("reports has ") and "(2 owners)" in told[0]
    assert standing_of(fleet, "no such role") == () and standing_of(None, "reports") == ()
    live = stands(moment(standing=("reports has 3 workers: 3 by reports-worker@.service",)))
    assert "now reports has 3 workers" in live and "7 workers" not in live


def test_what_an_earlier_step_finds_out_is_no_brace() -> None:
    steps = tuple(msgspec.structs.replace(step, title="Room for {instances}") for step in run_status().steps)
    shown = moment(status=run_status(steps=steps))
    assert plain(step_list(shown, 40, UNICODE)[4]).split() == ["5", "Room", "for", "…"]
    assert "{" not in text_of(body_lines(msgspec.structs.replace(shown, doing=WAITING), NOW, 80, UNICODE))


def test_a_check_after_a_plan_has_the_only_countdown() -> None:
    checked = APPLYING.told(Telling(number=3, text="it has not finished a job yet", remaining=60.0), NOW)
    told = text_of(body_lines(moment(doing=checked), NOW, 80, UNICODE))
    assert "Switch off line 4 of the crontab of deploy: applied" in told
    assert "1:00 more" in told and told.count(" more") == 1


def test_what_is_awaited_comes_first() -> None:
    assert stands(moment(), 1).startswith("> ⏎ shows what is to be agreed to: risk: low")
    assert stands(MOMENTS["refused"], 1).startswith("× no rights to write the crontab")
    assert stands(MOMENTS["nothing"], 1).startswith("> ⏎ does it; no file, unit or row is changed")
    assert stands(MOMENTS["ended"], 1).startswith("● done; ⏎ goes on")
    assert stands(MOMENTS["failed"], 1).startswith("× failed: ⏎ looks again, b takes it back")
    assert stands(MOMENTS["applying"], 1).startswith("↻ applying 0:04 · 2 of 3 · at most 0:19 more")
    typed = step_view(shown=msgspec.structs.replace(SHOWN, plan=line_plan(Consent(kind="refused"))))
    assert stands(moment(view=typed), 1).startswith("× it is refused")


def test_a_wait_counts_down_also_where_it_was_left() -> None:
    assert "waits, 0:40 more: cron has started nothing so far" in stands(MOMENTS["waiting"])
    assert "0:40 more" in text_of(body_lines(MOMENTS["waiting"], NOW, 80, UNICODE))
    left = moment(status=run_status(waits_until=NOW + 12), view=step_view(waits=20.0))
    assert "waits, 0:12 more; ⏎ watches it" in stands(left)
    line = plain(work_line(MOMENTS["waiting"], NOW, 110, UNICODE))
    assert "Cron launcher → systemd of reports, step 3: " in line and "8 shows it" in line


def test_a_round_has_the_steps_of_its_own_plan() -> None:
    again = APPLYING.told(Telling(number=3, text="Drain pid 812", plan=line_plan(title="Drain pid 812")), NOW)
    assert again.applying and again.run is not None and again.run.at == 0
    assert "Drain pid 812" in text_of(body_lines(moment(doing=again), NOW, 80, UNICODE))
    assert begun(3, NOW).told(Progress(step=1), NOW).run is None


def test_where_the_steps_are_too_many_those_around_the_one_in_hand_are_shown() -> None:
    shown = [plain(line).split()[0:2] for line in step_list(moment(status=run_status(6)), 30, UNICODE, 3)]
    assert shown == [["●", "5"], [">", "6"], ["7", "Verify"]]


def test_the_report_is_shown_when_it_is_over() -> None:
    told = text_of(body_lines(MOMENTS["over"], NOW, 100, UNICODE))
    assert "/x/report.md" in told and "| a | b |" in told
    assert "done to the end; b takes the last step back" in stands(MOMENTS["over"])


# --- the list --------------------------------------------------------------------------------------------------------


def test_unfinished_runs_come_first_then_what_mends_something_now() -> None:
    finding = Finding(code="stuck-dead", severity="warning", role="mail", what="4 jobs held by dead workers")
    runs = (run_status(), run_status(run="b", state="done"), run_status(run="c", state="rolled-back"))
    made = rows(shelf(), runs, (finding,))
    assert [row.kind for row in made] == ["open", "playbook", "playbook", "faulty", "done", "rolled-back"]
    assert made[1].key == "book stuck-jobs-after-a-crash"
    grid = list_grid(made, [row.key for row in made], COLUMNS, 160, Look(glyphs=UNICODE, now=NOW)).text()
    assert "next: Retire the line" in grid and "mends 1 now: Stuck jobs" in grid and "15 min ago" in grid
    assert "line 7: there is no action frobnicate" in grid


def test_what_is_hostile_in_a_file_or_a_journal_stays_text() -> None:
    made = tuple(spoil(row, "".join(HOSTILE)) for row in rows(shelf(), (run_status(),), ()))
    for width in (40, 80):
        grid = list_grid(made, [row.key for row in made], COLUMNS, width, Look(glyphs=UNICODE, now=NOW))
        assert grid.width <= width and harmless(grid.text().replace("\n", ""))
    for row in made:
        if row.run is not None:
            sections = run_sections(row.run, NOW, 60, UNICODE)
            assert all(harmless(plain(line)) for section in sections for line in section.lines)


def test_the_notice_at_the_start() -> None:
    assert notice((run_status(),)) == "unfinished: Cron launcher → systemd of reports, step 3 of 8; 8 shows it"
    assert notice((run_status(held="deploy on wrk01"), run_status(state="done"))) == ""
    assert "and 1 more" in notice((run_status(), run_status(run="b")))


def test_a_finding_names_its_playbook_with_the_role_filled_in() -> None:
    two = Finding(code="two-owners", severity="error", role="reports", what="two owners")
    (found,) = for_findings(shelf(), (two, two))
    assert found.book.name == "cron-launcher-to-systemd" and found.values == {"role": "reports"}
    assert missing(found.book, found.values) == (("entry", "the crontab line"),)
    other = Finding(code="failing", severity="warning", role="reports", what="more fail than succeed")
    assert for_findings(shelf(), (other,)) == ()


def test_a_line_of_a_crontab_fills_in_itself_and_its_role() -> None:
    (found,) = for_entry(shelf(), schedules.launcher())
    assert found.values == {"entry": "deploy:4", "role": "reports"}
    assert missing(found.book, found.values) == ()
    timer = next(each for each in schedules.inventory().entries if each.entry.source.kind == "timer")
    assert for_entry(shelf(), timer) == () and for_entry(shelf(), None) == ()


def test_an_unfinished_run_is_taken_up_in_place_of_another() -> None:
    runs = (run_status(state="done"), run_status(run="b", values={"role": "reports", "watch": "20s", "fast": True}))
    run = open_run(runs, book(), {"role": "reports"})
    assert run is not None and run.run == "b" and open_run(runs, book(), {"role": "mail"}) is None
    begin = text_of(book_sections(book(), {}, 80, UNICODE, run)[0].lines)
    assert "takes up the unfinished run: it stands at step 3 of 8" in begin
    assert "fast         true" in begin and "watch" not in begin, "what is as always is not said"


def test_rows_have_keys_of_their_own() -> None:
    made = rows(shelf(), (run_status(),), ())
    assert len({row.key for row in made}) == len(made)
    assert Row().kind == "faulty"
