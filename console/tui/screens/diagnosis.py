"""A diagnosis: the verdict on a worker, a role or the holder of a job, the next step, and what it rests on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from console.fleet.diagnosis.model import Diagnosis
from console.fleet.model import Claim, Fleet
from console.tui.asked import Asked
from console.tui.commands import Scope, bindings
from console.tui.screens.detail import DETAIL_BINDINGS, DETAIL_SCOPES, DetailScreen
from console.view.cells import Part, safe, wrap
from console.view.diagnosis import diagnosis_sections, title_parts
from console.view.offers import Offer, find_role, worker_offers
from console.view.sections import Section
from console.view.unit_offers import command_offer, role_unit_offers, unit_offers

if TYPE_CHECKING:
    from console.tui.feed import Feed

Question = Callable[["Feed"], Awaitable[tuple[Diagnosis, ...]]]


class DiagnosisScreen(DetailScreen):
    """Asked when it is opened and with ctrl+r; it stays as it was answered, a diagnosis does not flicker."""

    SCOPES: ClassVar[tuple[Scope, ...]] = (*DETAIL_SCOPES, "diagnosis", "acts", "units")
    BINDINGS: ClassVar[list[BindingType]] = [*DETAIL_BINDINGS, *bindings("diagnosis", "acts", "units")]

    def __init__(self, subject: str, question: Question, role: str | None, key: str = "") -> None:
        """`subject`: safe words for the title until there is an answer; `role` and `key` are whose it is."""
        super().__init__()
        self._subject = subject
        self._question = question
        self._role = role
        self._key = key
        self._found: Asked[tuple[Diagnosis, ...]] | None = None

    def on_mount(self) -> None:
        self._found = self.asked = Asked(self.console_app, self.show)
        self.asked_again()

    def asked_again(self) -> None:
        app = self.console_app
        if self._found is not None:
            self._found.ask(lambda: self._question(app.feed))

    @property
    def _diagnoses(self) -> tuple[Diagnosis, ...]:
        return (self._found.value if self._found is not None else None) or ()

    def subject(self) -> tuple[Part, ...]:
        if not self._diagnoses:
            return ((self._subject, "head"),)
        return title_parts(self._diagnoses[0], self.console_app.glyphs)

    def sections(self, fleet: Fleet | None, width: int) -> tuple[Section, ...]:
        app, found = self.console_app, self._found
        sections = diagnosis_sections(self._diagnoses, width, app.glyphs)
        if found is not None and found.problem is not None:
            told = wrap(((f"{app.glyphs.bad} {safe(found.problem.line(), 400)}", "bad"),), width, 2)
            return (Section("COULD NOT BE EXAMINED", tuple(told)), *sections)
        if not sections:
            dots = "…" if app.glyphs.unicode else "..."
            told = wrap(
                ((f"examining it{dots} its journal is read, its health check asked; nothing is changed", "note"),),
                width,
            )
            return (Section("VERDICT", tuple(told)),)
        return sections

    def selection_text(self) -> str:
        return self._subject

    def role_in_hand(self) -> str | None:
        return self._role

    def offers(self) -> tuple[Offer, ...]:
        fleet = self.console_app.fleet
        status = find_role(fleet, self._role)
        workers = [worker for worker in status.workers if worker.key == self._key] if status is not None else []
        of_units = unit_offers(workers, status) if workers else role_unit_offers(status)
        return (*of_units, *worker_offers(self._claims(fleet), status))

    def action_next_step(self) -> None:
        """The plan of the next step, where worktop can take it."""
        commands = self._diagnoses[0].commands if self._diagnoses else ()
        found = (command_offer(command, self._role or "") for command in commands)
        offer = next((offer for offer in found if offer is not None), None)
        if offer is not None:
            self.console_app.desk.open(offer)
        else:
            self.notify("the next step is yours: worktop has no action for it", markup=False, timeout=3)

    def _claims(self, fleet: Fleet | None) -> list[Claim]:
        claims = fleet.claims if fleet is not None else ()
        return [claim for claim in claims if claim.role == self._role and (not self._key or claim.worker == self._key)]

    def action_log(self) -> None:
        """The log of the worker, or of the role."""
        if self._role is not None:
            self.console_app.show_log_of(self._role, self._key if "@" in self._key else None)


def of_role(role: str) -> DiagnosisScreen:
    """The screen that diagnoses a role as a whole, and each of its workers."""
    return DiagnosisScreen(safe(role, 60), lambda feed: feed.diagnose(role), role)


def of_worker(role: str, key: str, name: str) -> DiagnosisScreen:
    """The screen that diagnoses one worker."""
    return DiagnosisScreen(safe(f"{role} {name}", 60), lambda feed: feed.diagnose(role, key), role, key)


def of_job(job_id: str, role: str | None) -> DiagnosisScreen:
    """The screen that diagnoses the holder of a job."""
    return DiagnosisScreen(safe(f"the holder of job {job_id}", 60), lambda feed: feed.diagnose_job(job_id), role)
