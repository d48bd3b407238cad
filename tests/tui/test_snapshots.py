"""Every screen at 80x24 and 120x40: empty, loading, in error and full; and full in ASCII.

Starting a console costs more than showing a screen, so one console walks over all screens of a state, and each test
compares one of them. See tests/tui/snapshots.py for the form.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC
from typing import Literal, NamedTuple, get_args

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from console.errors import ConfigError, HostError, RefusedError
from console.fleet.model import Claim, Fleet, HostDetail, Job, JobQuery, SourceStatus, UnitDetail
from console.fleet.plan import Consent
from console.playbook import model as playbook
from console.playbook.model import Telling
from console.schedules.inventory import Inventory, Translated
from console.tui.acting import Result
from console.tui.app import ConsoleApp
from console.tui.asked import Asked
from console.tui.screens import job
from console.tui.screens.audit import AuditScreen
from console.tui.screens.detail import DetailScreen
from console.tui.screens.evidence import EvidenceScreen
from console.tui.screens.host import HostScreen
from console.tui.screens.job import JobScreen
from console.tui.screens.jobs import JobsScreen
from console.tui.screens.log import LogScreen
from console.tui.screens.plan import PlanScreen
from console.tui.screens.playbooks import PlaybooksScreen
from console.tui.screens.result import ResultScreen
from console.tui.screens.schedule import ScheduleScreen
from console.tui.screens.schedules import SchedulesScreen
from console.tui.screens.wizard import WizardScreen
from console.tui.screens.worker import WorkerScreen
from console.view.findings import entries
from console.view.jobs import JobRow
from console.view.offers import Request
from console.view.workers import worker_items
from tests.examples import NOW, example_fleet
from tests.schedules import examples as schedules
from tests.tui.pilots import Driven
from tests.tui.queue_feeds import REFUSED, TableFeed, made_job, with_accounts, with_trends
from tests.tui.snapshots import ScreenExtension, snapshot_of
from tests.tui.still_actions import StillActions, audit_entry, blocked_outcome, reclaim_plan
from tests.tui.still_playbooks import StillBooks, book, run_status, step_view

State = Literal["empty", "loading", "error", "full", "ascii"]
Step = Callable[[Driven], Awaitable[None]]
SIZES = ((80, 24), (120, 40))
TYPED = Consent(kind="typed", word="thumbnails", why=("whether pid 4410 lives is not known",))
NEVER = {
    ("evidence", "loading"),  # there is no finding before there is a fleet
    ("audit", "loading"),  # it is read from a file
    ("plan", "empty"),
    ("playbooks", "loading"),  # files, too
    *(("waiting", state) for state in ("empty", "loading", "error")),
    *(("result", state) for state in ("empty", "loading", "error")),
}


# --- the screens ---------------------------------------------------------------------------------------------------


def keys(*pressed: str) -> Step:
    """Press these."""

    async def press(driven: Driven) -> None:
        await driven.press(*pressed)

    return press


async def open_stuck(driven: Driven) -> None:
    await driven.press("3")
    screen = driven.app.screen
    assert isinstance(screen, JobsScreen)
    screen.show_state("stuck")


# What a person had opened before the sources went away, or before a row was gone.


async def open_worker(driven: Driven) -> None:
    item = next(item for item in worker_items(full_fleet()) if item.key == "thumbnails/thumbnails-worker@1.service")
    await driven.app.push_screen(WorkerScreen(item))


async def open_job(driven: Driven) -> None:
    query = JobQuery(state="running")
    await driven.app.push_screen(JobScreen(JobRow(job=made_job(3, query), role="mail", now=NOW)))


async def open_evidence(driven: Driven) -> None:
    await driven.app.push_screen(EvidenceScreen(entries(full_fleet())[0], None))


async def open_schedule(driven: Driven) -> None:
    listed = schedules.launcher()
    await driven.app.push_screen(ScheduleScreen(listed, lambda name: listed))


async def open_plan(driven: Driven) -> None:
    request = Request(verb="reclaim", title="reclaim 2 jobs of thumbnails", role="thumbnails")
    await driven.app.push_screen(PlanScreen(request))


async def open_result(driven: Driven) -> None:
    plan = reclaim_plan()
    await driven.app.push_screen(ResultScreen(Result(plan, blocked_outcome(plan))))


async def open_playbook(driven: Driven) -> None:
    driven.app.playbooks.show_book(book(), {"role": "reports"})


async def open_wizard(driven: Driven) -> None:
    driven.app.playbooks.resume(run_status())
    for _ in range(500):
        await driven.pilot.pause(0.01)
        if isinstance(driven.app.screen, WizardScreen):
            return
    raise AssertionError("no wizard came")


async def open_wait(driven: Driven) -> None:
    assert driven.feed.playbooks is not None
    run = driven.feed.playbooks.run
    run.view = step_view(shown=None)
    await open_wizard(driven)
    await settled(driven, "full")
    await driven.press("enter")
    while run.tell is None:
        await driven.pilot.pause(0.01)
    run.tell(Telling(number=3, text="cron has started nothing so far", remaining=42.0))


class Shown(NamedTuple):
    """How to come to a screen from the fleet, and back."""

    there: Step
    back: tuple[str, ...] = ("1",)


SCREENS: dict[str, Shown] = {
    "fleet": Shown(keys("1")),
    "workers": Shown(keys("2")),
    "jobs": Shown(keys("3")),
    "stuck": Shown(open_stuck),
    "queue": Shown(keys("4")),
    "log": Shown(keys("5")),
    "schedules": Shown(keys("6")),
    "schedule": Shown(open_schedule, ("escape",)),
    "host": Shown(keys("7")),
    "audit": Shown(keys("9")),
    "plan": Shown(open_plan, ("escape",)),
    "result": Shown(open_result, ("escape",)),
    "worker": Shown(open_worker, ("escape",)),
    "job": Shown(open_job, ("escape",)),
    "evidence": Shown(open_evidence, ("escape",)),
    "help": Shown(keys("question_mark"), ("escape",)),
    "palette": Shown(keys("colon"), ("escape",)),
    "menu": Shown(keys("1", "down", "down", "x"), ("escape", "home")),
    "playbooks": Shown(keys("8")),
    "playbook": Shown(open_playbook, ("escape",)),
    "wizard": Shown(open_wizard),
    "waiting": Shown(open_wait),  # the last: the head of every other screen would tell of it
}


# --- the states ----------------------------------------------------------------------------------------------------


def full_fleet() -> Fleet:
    job = made_job(3, JobQuery(state="stuck"))
    dead = Claim(job=job, role="mail", verdict="DEAD", evidence=("pid 812 is another process now",), stuck=True)
    fleet = with_accounts(with_trends(example_fleet()))
    return msgspec.structs.replace(fleet, claims=(*fleet.claims, dead))


def full_job() -> Job:
    return msgspec.structs.replace(
        made_job(3, JobQuery(state="running")), payload='{"to": "ada@example.org", "password": "••••"}', payload_size=44
    )


def feed_of(state: State) -> TableFeed:
    """What the sources and the actions say in this state."""
    actions = StillActions()
    actions.plan = {"loading": None, "error": REFUSED}.get(state, reclaim_plan(TYPED))
    actions.entries = {"empty": (), "error": ConfigError("audit", "permission denied")}.get(state, (audit_entry(),))
    if state == "loading":
        feed = TableFeed(None, 0)
        feed.unit_answer = feed.host_answer = feed.job_answer = feed.log_answer = None
        feed.schedules_answer = feed.translated_answer = None
        feed.hold = asyncio.Event()
    elif state == "empty":
        fleet = full_fleet()
        feed = TableFeed(msgspec.structs.replace(fleet, roles=(), findings=(), claims=()), 0)
        feed.unit_answer = UnitDetail(name="thumbnails-worker@1.service")
        feed.host_answer, feed.log_answer = HostDetail(), ()
        feed.schedules_answer, feed.translated_answer = Inventory(), (Translated(listed=schedules.launcher()),)
        feed.change = lambda job: None
    elif state == "error":
        fleet = full_fleet()
        names = tuple(source.name for source in fleet.sources)
        refused = HostError("ask the agent", "connection closed", "is the agent running?")
        down = tuple(
            SourceStatus(name=n, state="down", age=42.0, problem=(REFUSED if n == "queue" else refused).problem)
            for n in names
        )
        feed = TableFeed(msgspec.structs.replace(fleet, sources=down), 0)
        feed.unit_answer = feed.host_answer = feed.log_answer = refused
        feed.schedules_answer = feed.translated_answer = refused
        feed.job_answer = feed.error = REFUSED
    else:
        feed = TableFeed(full_fleet(), 412)
        feed.job_answer = (full_job(), None)
    feed.actions = actions
    feed.playbooks = books_of(state)
    return feed


def books_of(state: State) -> StillBooks:
    """What the playbooks say in this state."""
    books = StillBooks()
    if state == "empty":
        books.shelved = ()
        books.run.view = step_view(shown=playbook.Shown(nothing="the line is switched off already"), before=())
    elif state == "loading":
        books.hold = asyncio.Event()
    elif state == "error":
        books.shelved = ConfigError("playbook /etc/worktop/playbooks/own.md", "permission denied")
        books.refused = RefusedError("playbook x of reports", "ada runs it now on wrk01", "worktop playbook status")
    else:
        books.known = (run_status(), run_status(9, "done", run="20251128T090000Z-11aa22", at=NOW - 90000))
    return books


async def settled(driven: Driven, state: State) -> None:
    """Every answer that will come is there, and shown."""
    for _ in range(500):
        screen = driven.app.screen
        await driven.shown()
        asked: Asked[object] | None = None
        if isinstance(screen, DetailScreen):
            asked = screen.asked
        elif isinstance(screen, HostScreen):
            asked = screen.detail
        elif isinstance(screen, AuditScreen | PlanScreen | PlaybooksScreen | SchedulesScreen):
            asked = screen.asked
        wizard = driven.app.playbooks.wizard
        waits = (
            (isinstance(screen, WizardScreen) and wizard is not None and wizard.busy and wizard.doing is None)
            or (asked is not None and asked.asking)
            or (isinstance(screen, JobsScreen) and screen.loader is not None and screen.loader.busy)
            or (isinstance(screen, LogScreen) and (screen._starting or screen._showing is not None))
        )
        if not waits or state == "loading":
            return
        await driven.pilot.pause(0.01)
    raise AssertionError("no answer came")


async def walk(state: State) -> dict[tuple[str, tuple[int, int]], str]:
    """Every screen in this state, at every size."""
    seen: dict[tuple[str, tuple[int, int]], str] = {}
    feed = feed_of(state)
    app = ConsoleApp(feed, clock=lambda: NOW, zone=UTC, unicode=state != "ascii")
    size = SIZES[0]
    async with app.run_test(size=size, notifications=True) as pilot:
        driven = Driven(app, feed, pilot)
        await driven.shown()
        with contextlib.suppress(ConfigError):
            await app.playbooks.read()  # before the console does so by itself, at a moment of its own
        for name, shown in SCREENS.items():
            if (name, state) in NEVER:
                continue
            await shown.there(driven)
            # There at the size of the screen before, then at the other one: a resize a screen, in both directions.
            for wanted in (size, SIZES[1 - SIZES.index(size)]):
                if wanted != size:
                    await pilot.resize_terminal(*wanted)
                    size = wanted
                await settled(driven, state)
                seen[name, size] = snapshot_of(app)
            await driven.press(*shown.back)
    if app.fault is not None:
        raise app.fault
    return seen


@pytest.fixture(scope="module")
def walks() -> dict[State, dict[tuple[str, tuple[int, int]], str]]:
    return {}


@pytest.fixture
def snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(ScreenExtension)


@pytest.mark.parametrize(
    ("screen", "size", "state"),
    [
        pytest.param(
            *(screen, size, state),
            id=f"{screen}-{size[0]}x{size[1]}-{state}",
            marks=pytest.mark.xdist_group(f"snapshots-{state}"),  # one walk, in one process
        )
        for state in get_args(State)
        for screen in SCREENS
        for size in SIZES
        if (screen, state) not in NEVER
    ],
)
def test_screen(
    screen: str,
    size: tuple[int, int],
    state: State,
    walks: dict[State, dict[tuple[str, tuple[int, int]], str]],
    snapshot: SnapshotAssertion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if state not in walks:
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLORTERM", "truecolor")
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setattr(job, "_REFRESH_EVERY", float("inf"))
        walks[state] = asyncio.run(walk(state))
    shown = walks[state][screen, size]
    assert state != "ascii" or shown.partition("─")[0].isascii()
    assert shown == snapshot
