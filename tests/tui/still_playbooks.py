"""Playbooks that answer what they are told to, and playbooks, steps and ends that are made up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from console.errors import RefusedError, WorktopError
from console.fleet.plan import Actor, Consent, Plan
from console.playbook.model import (
    BackView,
    Checked,
    Draft,
    Flaw,
    Inverse,
    Playbook,
    PlaybookStep,
    RunState,
    RunStatus,
    Seen,
    Settings,
    Shelved,
    Shown,
    StepEnd,
    StepState,
    StepStatus,
    StepView,
)
from console.tui.books import OnAgree, OnQuestion, OnTelling
from tests.examples import NOW
from tests.tui.still_actions import CONFIRM, reclaim_plan

RUN = "20251129T163901Z-77aa01"
STEPS = ("Survey", "Unit", "Retire the line", "Canary", "Swap", "Ramp", "Verify", "Report")
STANDING = (
    "reports has 7 workers: 6 by crontab of deploy, line 4, 1 by reports-worker@.service (2 owners)",
    "of its jobs 1 204 wait, 7 run, 2 are stuck",
)


def playbook_step(number: int, title: str, **changes: Any) -> PlaybookStep:
    values: dict[str, Any] = {
        "number": number,
        "title": title,
        "prose": f"The step {title.lower()} of {{role}}, in a sentence that is long enough to need a second line.",
        "stop": f"If you stop here, {title.lower()} is done and nobody replaces\nthe workers that end.",
        "action": "line" if number > 1 else "note",
        "skippable": number == 4,
    }
    return PlaybookStep(**(values | changes))


def book(**changes: Any) -> Playbook:
    values: dict[str, Any] = {
        "name": "cron-launcher-to-systemd",
        "title": "Cron launcher → systemd",
        "findings": ("two-owners",),
        "needs": (("role", "the role whose launcher goes"), ("entry", "the crontab line")),
        "defaults": {"watch": "20s"},
        "about": "From a launcher in a crontab to units of systemd.",
        "steps": tuple(playbook_step(number, title) for number, title in enumerate(STEPS, 1)),
        "path": "/usr/share/worktop/cron-launcher-to-systemd.md",
    }
    return Playbook(**(values | changes))


def shelf() -> tuple[Shelved, ...]:
    flaw = Flaw(path="/etc/worktop/playbooks/own.md", line=7, text="there is no action frobnicate")
    other = book(name="stuck-jobs-after-a-crash", title="Stuck jobs after a crash", findings=("stuck-dead",), needs=())
    return (
        Shelved(name="cron-launcher-to-systemd", path=book().path, playbook=book()),
        Shelved(name="own", path=flaw.path, flaws=(flaw,)),
        Shelved(name=other.name, path="/usr/share/worktop/stuck.md", playbook=other),
    )


def run_status(following: int = 3, state: RunState = "open", here: StepState = "now", **changes: Any) -> RunStatus:
    """`following`: the step that comes next."""
    steps = tuple(
        StepStatus(
            number=number,
            title=title,
            state="done" if number < following else here if number == following and state == "open" else "open",
            text=f"{title.lower()} is done" if number < following else "",
            evidence=(f"{title} was seen",) if number < following else (),
            plans=(f"2025-{number}",) if 1 < number < following else (),
        )
        for number, title in enumerate(STEPS, 1)
    )
    values: dict[str, Any] = {
        "run": RUN,
        "playbook": "cron-launcher-to-systemd",
        "title": "Cron launcher → systemd",
        "role": "reports",
        "values": {"role": "reports", "entry": "deploy:4", "watch": "20s"},
        "state": state,
        "steps": steps,
        "at": NOW - 900,
        "who": Actor(login="deploy", user="deploy"),
        "host": "wrk01",
    }
    return RunStatus(**(values | changes))


def line_plan(consent: Consent = CONFIRM, **changes: Any) -> Plan:
    values: dict[str, Any] = {
        "verb": "disable-line",
        "title": "Switch off line 4 of the crontab of deploy",
        "role": "reports",
        "rows": None,
        "claims": (),
        "samples": (),
        "reasons": ("the launcher starts 3 workers every minute",),
        "command": "worktop schedules disable deploy:4",
    }
    return reclaim_plan(consent, **(values | changes))


def step_view(number: int = 3, **changes: Any) -> StepView:
    step = playbook_step(number, STEPS[number - 1])
    values: dict[str, Any] = {
        "step": msgspec.structs.replace(step, prose=step.prose.replace("{role}", "reports")),
        "shown": Shown(
            facts=("The line starts 3 workers each minute.",),
            plan=line_plan(),
            evidence=("crontab of deploy, line 4: * * * * * /srv/reports/start.sh",),
        ),
        "before": (Checked(check="unit-installed", seen=Seen(state="holds", text="reports-worker@ is installed")),),
        "standing": STANDING,
        "back": "what it changes goes back to what it was",
    }
    return StepView(**(values | changes))


def drafted() -> StepView:
    """A step with a file that may be edited."""
    draft = Draft(path="/etc/systemd/system/reports-worker@.service", text="[Service]\nExecStart=/srv/reports/worker\n")
    shown = step_view(2).shown
    assert shown is not None
    return step_view(2, shown=msgspec.structs.replace(shown, drafts=(draft,)))


def step_end(number: int = 3, **changes: Any) -> StepEnd:
    values: dict[str, Any] = {
        "number": number,
        "state": "done",
        "text": "the line is switched off",
        "evidence": ("cron has started nothing for 60 s",),
        "standing": STANDING,
    }
    return StepEnd(**(values | changes))


class StillRun:
    """A run that changes nothing. `view`, `end` and `back_view` are what is answered; None: no answer ever comes."""

    def __init__(self) -> None:
        self.book = book()
        self.status = run_status()
        self.view: StepView | WorktopError | None = step_view()
        self.end: StepEnd | WorktopError | Exception = step_end()
        self.after: RunStatus | None = None  # the status once a step has ended
        self.back_view: BackView | WorktopError = BackView(
            step=playbook_step(2, "Unit", inverse=Inverse()), plans=(line_plan(title="Undo: install the unit"),)
        )
        self.gone: list[tuple[str, str, str]] = []  # what was done with which step, what was typed, why
        self.edits: list[tuple[str, str]] = []
        self.closed = False
        self.ended = asyncio.Event()  # the step answers then
        self.lingers = False  # a step that is to stop goes on until it has ended
        self.tell: OnTelling | None = None
        self.ask: OnQuestion | None = None
        self.agree: OnAgree | None = None
        self.stop: asyncio.Event | None = None

    async def show(self) -> StepView:
        self._must_be_held()
        await asyncio.sleep(0)
        if self.view is None:
            await asyncio.Event().wait()
        if isinstance(self.view, WorktopError):
            raise self.view
        assert self.view is not None
        return self.view

    async def go(
        self,
        view: StepView,
        *,
        typed: str = "",
        why: str = "",
        on_progress: OnTelling | None = None,
        on_question: OnQuestion | None = None,
        on_agree: OnAgree | None = None,
        stop: asyncio.Event | None = None,
    ) -> StepEnd:
        self.tell, self.ask, self.agree, self.stop = on_progress, on_question, on_agree, stop
        return await self._done(f"go {view.step.number}", typed, why)

    async def skip(self, view: StepView, why: str = "") -> StepEnd:
        self.ended.set()
        return await self._done(f"skip {view.step.number}", "", why)

    async def show_back(self) -> BackView:
        self._must_be_held()
        await asyncio.sleep(0)
        if isinstance(self.back_view, WorktopError):
            raise self.back_view
        return self.back_view

    async def back(
        self,
        view: BackView,
        *,
        typed: str = "",
        why: str = "",
        on_progress: OnTelling | None = None,
        on_question: OnQuestion | None = None,
        stop: asyncio.Event | None = None,
    ) -> StepEnd:
        self.tell, self.ask, self.stop = on_progress, on_question, stop
        return await self._done(f"back {view.step.number}", typed, why)

    async def _done(self, what: str, typed: str, why: str) -> StepEnd:
        self._must_be_held()
        self.gone.append((what, typed, why))
        assert self.stop is not None or what.startswith("skip")
        watched = self.stop if not self.lingers else None
        stopped = asyncio.ensure_future(watched.wait()) if watched is not None else None
        ended = asyncio.ensure_future(self.ended.wait())
        try:
            await asyncio.wait([task for task in (stopped, ended) if task], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (stopped, ended):
                if task is not None:
                    task.cancel()
        if self.stop is not None and self.stop.is_set():
            return step_end(state="left", text="left here; what waits goes on")
        if isinstance(self.end, Exception):
            raise self.end
        self.status = self.after or self.status
        return self.end

    async def edit(self, path: str, text: str) -> None:
        self._must_be_held()
        self.edits.append((path, text))

    def abandon(self, why: str = "") -> RunStatus:
        self._must_be_held()
        self.status = msgspec.structs.replace(self.status, state="abandoned")
        return self.status

    def close(self) -> None:
        self.closed = True

    def _must_be_held(self) -> None:
        assert not self.closed, "the run was let go of"


class StillBooks:
    """What there is, and the one run that is begun or taken up."""

    def __init__(self, made: Callable[[], StillRun] = StillRun) -> None:
        self.shelved: tuple[Shelved, ...] | WorktopError | None = shelf()
        self.known: tuple[RunStatus, ...] = ()
        self.run = made()
        self.begun: list[tuple[str, Settings]] = []
        self.resumed: list[str] = []
        self.refused: RefusedError | None = None
        self.hold: asyncio.Event | None = None  # beginning and taking up wait for it

    def shelf(self) -> tuple[Shelved, ...]:
        if isinstance(self.shelved, WorktopError):
            raise self.shelved
        return self.shelved or ()

    def runs(self) -> tuple[RunStatus, ...]:
        return self.known

    async def start(self, name: str, given: Settings) -> StillRun:
        self.begun.append((name, given))
        return await self._run()

    async def resume(self, name: str, role: str = "") -> StillRun:
        self.resumed.append(name)
        return await self._run()

    async def _run(self) -> StillRun:
        if self.hold is not None:
            await self.hold.wait()
        if self.refused is not None:
            raise self.refused
        self.run.closed = False
        return self.run
