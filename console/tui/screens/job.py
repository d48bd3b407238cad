"""One job: its timings, its holder and the verdict on it, its error, its payload."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from console.fleet.model import Claim, Fleet, Job
from console.tui.asked import Asked
from console.tui.commands import Scope, bindings
from console.tui.screens.base import ConsoleScreen
from console.tui.screens.detail import DetailScreen
from console.view.cells import Part, safe, wrap
from console.view.job import folds, job_sections, title_parts
from console.view.jobs import JobRow, role_name
from console.view.offers import Held, Offer, job_offers
from console.view.sections import Section

if TYPE_CHECKING:
    from console.tui.screens.jobs import JobsScreen

_REFRESH_EVERY = 2.0  # seconds, while the job runs or waits


class JobScreen(DetailScreen, inherit_bindings=False):
    """A job of the list; until its whole row is there, what the list knows of it."""

    SCOPES: ClassVar[tuple[Scope, ...]] = ("console", "job", "pager", "acts")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("job", "acts")]

    def __init__(self, row: JobRow, jobs: JobsScreen | None = None) -> None:
        super().__init__()
        self._jobs = jobs
        self._row = row
        self._folded = True
        self._asked_at = 0.0
        self._answer: Asked[tuple[Job | None, Claim | None]] | None = None

    def on_mount(self) -> None:
        self._ask()

    def _ask(self) -> None:
        app = self.console_app
        if self._answer is None:
            self.asked = self._answer = Asked(app, self.show)
        job_id = self._row.job.id
        self._asked_at = time.monotonic()
        self._answer.ask(lambda: app.feed.job(job_id))

    def asked_again(self) -> None:
        self._ask()

    # --- what is shown -----------------------------------------------------------------------------------------

    @property
    def _found(self) -> tuple[Job, Claim | None]:
        """The job as it was read last."""
        value = self._answer.value if self._answer is not None else None
        if value is None or value[0] is None or value[0].id != self._row.job.id:
            return self._row.job, self._row.claim
        return value[0], value[1]

    @property
    def _gone(self) -> bool:
        value = self._answer.value if self._answer is not None else None
        return value is not None and value[0] is None

    def subject(self) -> tuple[Part, ...]:
        job, claim = self._found
        parts = title_parts(job, claim, self._jobs.place_of(job.id) if self._jobs is not None else "", self.size.width)
        return (*parts, ("  no longer in the table", "warn")) if self._gone else parts

    def sections(self, fleet: Fleet | None, width: int) -> tuple[Section, ...]:
        app = self.console_app
        job, claim = self._found
        roles = tuple(status.role for status in fleet.roles) if fleet is not None else ()
        skew = fleet.queue.skew if fleet is not None and fleet.queue is not None else None
        taken = self._answer.taken if self._answer is not None else None
        now = self._row.now if taken is None else taken + (skew or 0.0)
        made = job_sections(
            job, claim, role_name(job, roles), width, app.glyphs, now, self.console_app.zone, self._folded
        )
        problem = self._answer.problem if self._answer is not None else None
        if problem is not None:
            told = wrap(((safe(problem.line()), "bad"),), width)
            return (Section("COULD NOT BE READ", tuple(told)), *made)
        return made

    def show_body(self, fleet: Fleet | None) -> None:
        super().show_body(fleet)
        answer, (job, _) = self._answer, self._found
        alive = job.state in ("running", "waiting") and not self._gone
        due = time.monotonic() - self._asked_at >= _REFRESH_EVERY
        if due and answer is not None and not answer.asking and (alive or answer.problem is not None):
            self._ask()

    # --- commands ------------------------------------------------------------------------------------------------

    def action_fold(self) -> None:
        """Show the whole payload, or its first lines."""
        if folds(self._found[0]):
            self._folded = not self._folded
            self.show()

    def action_step(self, by: int) -> None:
        """The next job of the list, or the one before."""
        row = self._jobs.step(self._row.job.id, by) if self._jobs is not None else None
        if row is None:
            return
        self._row, self._folded = row, True
        if self._answer is not None:
            self._answer.value = self._answer.problem = None
            self._answer.taken = None
        self.pager.scroll_home(animate=False)
        self._ask()

    def action_diagnose(self) -> None:
        """What is wrong with its holder."""
        from console.tui.screens.diagnosis import of_job

        job, claim = self._found
        fleet = self.console_app.fleet
        roles = tuple(status.role for status in fleet.roles) if fleet is not None else ()
        role = claim.role if claim is not None else role_name(job, roles)
        self.app.push_screen(of_job(job.id, role or None))

    def action_log(self) -> None:
        """The log of the unit that holds the job."""
        job, claim = self._found
        show_log_of(self, job, claim)

    def action_mentions(self) -> None:
        """Every line that mentions the job, of all roles."""
        self.console_app.show_log_of(None, mentions=self._row.job.id)

    def selection_text(self) -> str:
        return safe(f"job {self._row.job.id}", 60)

    def offers(self) -> tuple[Offer, ...]:
        fleet, (job, claim) = self.console_app.fleet, self._found
        roles = tuple(status.role for status in fleet.roles) if fleet is not None else ()
        return () if self._gone else job_offers([Held(job=job, role=role_name(job, roles), claim=claim)])


def show_log_of(screen: ConsoleScreen, job: Job, claim: Claim | None) -> None:
    """The log of the unit that holds the job; where none does, of its role, and of one that ended, from that time."""
    fleet = screen.console_app.fleet
    roles = tuple(status.role for status in fleet.roles) if fleet is not None else ()
    unit = job.holder.unit if job.holder is not None else ""
    around = job.finished if job.state in ("failed", "done") else None
    screen.console_app.show_log_of(
        claim.role if claim is not None else role_name(job, roles), unit or None, around=around
    )
