"""The audit as a list and in full, and what came of an action."""

from __future__ import annotations

from datetime import UTC

from console.errors import Problem
from console.fleet.plan import AuditEntry
from console.view.audit import audit_columns, entry_sections, result_sections, when
from console.view.cells import part_columns, plain
from console.view.glyphs import UNICODE
from console.view.listing import Look, list_grid
from console.view.sections import Section, section_lines
from tests.tui.hostile import HOSTILE, harmless, spoil
from tests.tui.still_actions import audit_entry, blocked_outcome, outcome_of, reclaim_plan


def text(sections: tuple[Section, ...]) -> str:
    return "\n".join(plain(line).rstrip() for line in section_lines(sections))


def test_the_list() -> None:
    entries = [audit_entry(), audit_entry(plan=reclaim_plan(id="other"), undo="", state="failed")]
    grid = list_grid(entries, ["1", "2"], audit_columns(UTC), 80, Look(glyphs=UNICODE))
    lines = grid.text().splitlines()
    assert lines[0].split() == ["WHEN", "STATE", "WHO", "ROWS", "UNDO", "WHAT"]
    assert lines[1].split()[:6] == ["11-29", "16:41", "UTC", "done", "deploy", "as"]
    assert lines[1].endswith("2 u    Reclaim 2 jobs of thumbnails")
    assert "–" in lines[2]
    narrow = list_grid(entries, ["1", "2"], audit_columns(UTC), 40, Look(glyphs=UNICODE)).text()
    assert narrow.splitlines()[0].split() == ["WHEN", "STATE", "WHAT"]


def test_one_entry_in_full() -> None:
    told = text(entry_sections(audit_entry(), 80, UNICODE, UTC))
    assert "why        OPS-12" in told
    assert "deploy as root, by sudo from deploy, uid 0" in told
    assert "u here, or worktop undo 20251129T164207Z-3f2a91" in told
    assert "WHAT CAME OF IT" in told and "a late finish of pid 812 would be rejected" in told
    assert "came of it 2 jobs wait again" in told and "ended      2025-11-29 16:41:07 UTC" in told
    assert "THE PLAN AS SHOWN" in told and "NOTIFY worktop_jobs" in told


def test_one_entry_of_which_little_was_written() -> None:
    told = text(entry_sections(AuditEntry(at=float("nan"), plan="p", verb="retry", title="Retry"), 40, UNICODE, UTC))
    assert "nothing can be undone" in told
    assert "ended      ?" in told
    assert when(1e30) == "?"


def test_a_result_says_what_to_do_next() -> None:
    plan = reclaim_plan()
    told = text(result_sections(plan, blocked_outcome(plan), None, 80, UNICODE))
    assert "COULD NOT BE MOVED 1" in told and "worktop discard --id 918240" in told
    assert "u undoes it" in told and "9 Audit" in told
    told = text(result_sections(plan, outcome_of(plan, undo=""), None, 80, UNICODE))
    assert "nothing can be undone" in told


def test_what_was_refused_did_nothing() -> None:
    told = text(result_sections(reclaim_plan(), None, Problem("reclaim", "another console is acting"), 80, UNICODE))
    assert told.startswith("NOTHING WAS DONE\n× reclaim: another console is acting")
    assert "nothing is known of it" in text(result_sections(reclaim_plan(), None, None, 80, UNICODE))


def test_nothing_hostile_comes_through() -> None:
    entry = spoil(audit_entry(), "".join(HOSTILE))
    for width in (20, 80):
        assert entry.shown is not None and entry.outcome is not None
        sections = (
            *entry_sections(entry, width, UNICODE, UTC),
            *result_sections(entry.shown, entry.outcome, None, width, UNICODE),
        )
        for line in section_lines(sections):
            assert harmless(plain(line))
            assert part_columns(line) <= width
    grid = list_grid([entry], ["1"], audit_columns(UTC), 80, Look(glyphs=UNICODE))
    assert harmless(grid.text().replace("\n", ""))
