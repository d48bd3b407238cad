"""Audit: the actions that were applied, one in full, and its undo."""

from __future__ import annotations

from datetime import UTC

from console.errors import ConfigError
from console.fleet.plan import AuditEntry
from console.tui.screens.audit import AuditScreen, EntryScreen
from console.tui.screens.plan import PlanScreen
from tests.examples import NOW, example_fleet
from tests.tui.action_feeds import ActingFeed
from tests.tui.feeds import StillFeed
from tests.tui.hostile import HOSTILE, harmless, spoil
from tests.tui.pilots import Driven
from tests.tui.queue_feeds import console_on
from tests.tui.still_actions import audit_entry, outcome_of, reclaim_plan

AUDIT_80 = """\
AUDIT
  WHEN            STATE  WHO             ROWS UNDO WHAT
  11-29 16:41 UTC done   deploy as root     2 u    Reclaim 2 jobs of thumbnails
  11-29 16:32 UTC failed deploy as root     0 –    Undo: Retry 1 failed job of …"""


def feed(*entries: AuditEntry) -> ActingFeed:
    made = ActingFeed(example_fleet())
    made.actions.entries = entries or (
        audit_entry(),
        audit_entry(
            reclaim_plan(id="older", verb="undo", title="Undo: Retry 1 failed job of thumbnails"),
            outcome_of(reclaim_plan(), state="failed", rows=0, undo=""),
            at=NOW - 600,
        ),
    )
    return made


async def answered(driven: Driven) -> None:
    """What was asked of a thread is there."""
    for _ in range(200):
        await driven.pilot.pause(0.01)
        if not any(task.get_name() == "ask the sources" for task in driven.app._background):
            break
    await driven.shown()


async def test_newest_first() -> None:
    async with console_on(feed(), (80, 24), "9", zone=UTC) as driven:
        await answered(driven)
        assert isinstance(driven.app.screen, AuditScreen)
        assert "\n".join(driven.lines()[2:6]) == AUDIT_80


async def test_one_in_full_and_its_undo() -> None:
    acting = feed()
    async with console_on(acting, (100, 60), "9", zone=UTC) as driven:
        await answered(driven)
        await driven.press("enter")
        assert isinstance(driven.app.screen, EntryScreen)
        assert "why        OPS-12" in driven.text()
        assert "THE PLAN AS SHOWN" in driven.text()
        await driven.press("u")
        assert isinstance(driven.app.screen, PlanScreen)
        assert acting.actions.asked[-1].options["plan"] == reclaim_plan().id
        await driven.press("escape", "escape", "down", "u")
        assert "no undo here" in driven.text()
        await driven.press("up", "x")
        assert "undo: Reclaim 2 jobs of thumbnails" in driven.text()


async def test_it_is_read_again_when_it_is_shown_again() -> None:
    acting = feed()
    async with console_on(acting, (80, 24), "9", zone=UTC) as driven:
        await answered(driven)
        acting.actions.entries = (audit_entry(reclaim_plan(id="new", title="Pause mail")),)
        await driven.press("1", "9")
        await answered(driven)
        assert "Pause mail" in driven.text()
        assert "Undo: Retry" not in driven.text()


async def test_empty_refused_and_without_actions() -> None:
    acting = ActingFeed(example_fleet())
    async with console_on(acting, (80, 24), "9") as driven:
        await answered(driven)
        assert "no action has been applied yet" in driven.text()
        acting.actions.entries = ConfigError("audit", "permission denied")
        await driven.press("ctrl+r")
        await answered(driven)
        assert "audit: permission denied" in driven.text()
    still = StillFeed(example_fleet())
    still.actions = None
    async with console_on(still, (80, 24), "9") as driven:
        assert "no action has been applied yet" in driven.text()


async def test_hostile_entries_are_text() -> None:
    async with console_on(feed(spoil(audit_entry(), "".join(HOSTILE))), (100, 100), "9", zone=UTC) as driven:
        await answered(driven)
        assert all(harmless(line) for line in driven.lines())
        await driven.press("enter")
        assert "THE PLAN AS SHOWN" in driven.text()
        assert all(harmless(line) for line in driven.lines())
