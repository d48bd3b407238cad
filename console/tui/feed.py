"""What the console needs from the layers below it: a fleet, and a word when there is a new one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Literal, Protocol

from console.errors import Problem
from console.fleet.diagnosis.model import Diagnosis
from console.fleet.model import Claim, Fleet, HostDetail, Ident, Job, JobPage, JobQuery, LogLine, UnitDetail, Verdict
from console.fleet.plan import (
    AuditEntry,
    Consent,
    JobVerb,
    LineVerb,
    Outcome,
    Plan,
    Progress,
    Question,
    RowRef,
    Unfinished,
    UnitVerb,
    Verb,
)
from console.schedules.inventory import Inventory, Translated

if TYPE_CHECKING:
    from console.tui.books import Books


class Feed(Protocol):
    """A source of fleets. All of it is used on the event loop; none of it may block.

    `start` and `refresh` may raise WorktopError: it is shown, and the console goes on with what it has.
    """

    @property
    def fleet(self) -> Fleet | None:
        """The newest fleet; None until the first one is there."""
        ...

    @property
    def actions(self) -> Acting | None:
        """What can change the world; None where nothing can."""
        ...

    @property
    def playbooks(self) -> Books | None:
        """Playbooks, and runs of them; None where nothing can be changed."""
        ...

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the event loop whenever there is a new fleet."""
        ...

    async def start(self) -> None:
        """Start the sources; may return before they have said anything."""
        ...

    async def stop(self) -> None:
        """End the sources; the console does not wait for it longer than half a second."""
        ...

    def rest(self, resting: bool) -> None:
        """Nobody has touched the console for a while, or somebody does again: read less often, or as usual."""
        ...

    async def refresh(self) -> None:
        """Ask every source again now."""
        ...

    # What a person looks at more closely is asked for when they do. Each raises WorktopError within a few seconds.

    async def unit_detail(self, name: str) -> UnitDetail:
        """Properties, files, process tree and last journal lines of a unit."""
        ...

    async def host_detail(self) -> HostDetail:
        """The process trees of the host, under their owners."""
        ...

    async def schedules(self, anew: bool = False) -> Inventory:
        """What starts something on the host; `anew`: read also what has not changed."""
        ...

    async def translate(self, names: tuple[str, ...], prove: bool = True) -> tuple[Translated, ...]:
        """The units that these entries would become, and what was proved of them."""
        ...

    async def follow_log(
        self, units: tuple[str, ...], on_lines: Callable[[tuple[LogLine, ...]], None], mentions: str = ""
    ) -> LogFollow:
        """The journal of these units, history first; `on_lines` is called on the event loop until `stop`. With
        `mentions` only lines in which this word stands."""
        ...

    async def read_log(
        self, units: tuple[str, ...], since: float, until: float
    ) -> tuple[tuple[LogLine, ...], Problem | None]:
        """What these units wrote in that time (epoch seconds), and why that is nothing, or not all."""
        ...

    async def jobs(self, query: JobQuery) -> JobPage:
        """A page of jobs."""
        ...

    async def job(self, job_id: str) -> tuple[Job | None, Claim | None]:
        """One job with its payload, and the verdict on its holder when it is running."""
        ...

    # A diagnosis reads journals and asks a health check: it may take twenty seconds. It changes nothing.

    async def diagnose(self, role: str, key: str = "") -> tuple[Diagnosis, ...]:
        """One worker; without a key the role as a whole, and after it each of its workers."""
        ...

    async def diagnose_job(self, job_id: str) -> tuple[Diagnosis, ...]:
        """The worker that holds the job, or the job's role."""
        ...


class Acting(Protocol):
    """What changes the world: `console.actions.desk.Actions`. A plan is made, shown, agreed to and applied.

    Making a plan changes nothing and raises WorktopError within some seconds. `apply` raises WorktopError only when it
    has done nothing; everything else is in the outcome.
    """

    async def allowed(self) -> Mapping[Verb, Consent]:
        """Which verbs can be planned at all: "refused" with the reason and what would allow it."""
        ...

    async def plan_jobs(
        self,
        verb: JobVerb,
        *,
        role: str = "",
        rows: tuple[RowRef, ...] = (),
        verdicts: tuple[Verdict, ...] = (),
        priority: int | None = None,
        why: str = "",
    ) -> Plan:
        """A plan for these rows, or for all of a role."""
        ...

    async def plan_queue(self, verb: Literal["pause", "resume"], role: str, why: str = "") -> Plan:
        """A plan that makes a role's queues give out nothing, or jobs again."""
        ...

    async def plan_units(
        self, verb: UnitVerb, *, units: tuple[str, ...] = (), role: str = "", signal: str = "KILL", why: str = ""
    ) -> Plan:
        """A plan that does the verb to these units, or to all of a role; a restart of several goes one by one."""
        ...

    async def plan_drain(
        self, *, units: tuple[str, ...] = (), processes: tuple[Ident, ...] = (), role: str = "", why: str = ""
    ) -> Plan:
        """A plan that asks workers to stop and waits for the jobs they hold."""
        ...

    async def plan_scale(self, role: str, count: int, *, why: str = "") -> Plan:
        """A plan after which a role has so many workers."""
        ...

    async def plan_limits(self, role: str, settings: Mapping[str, str] | None = None, *, why: str = "") -> Plan:
        """A plan that sets limits of a role's units; without settings those that are proposed."""
        ...

    async def plan_crontab(
        self, verb: LineVerb, *, path: str, line: int, raw: bytes | None = None, why: str = ""
    ) -> Plan:
        """A plan that switches a line of a crontab off, or on again."""
        ...

    async def plan_undo(self, plan_id: str, why: str = "") -> Plan:
        """A plan that restores what an applied plan has changed."""
        ...

    async def plan_continue(self, plan_id: str, why: str = "") -> Plan:
        """A plan of what is left of one that was cut off."""
        ...

    def unfinished(self) -> tuple[Unfinished, ...]:
        """Plans that were cut off, or that somebody applies now; reads files."""
        ...

    def abandon(self, plan_id: str, why: str = "") -> AuditEntry:
        """Give up what is left of a plan that was cut off; writes files."""
        ...

    async def apply(
        self,
        plan: Plan,
        *,
        typed: str = "",
        why: str = "",
        on_progress: Callable[[Progress], None] | None = None,
        on_question: Callable[[Question], Awaitable[bool]] | None = None,
        stop: asyncio.Event | None = None,
    ) -> Outcome:
        """Do what the plan says; `on_progress` is called on the loop, `on_question` is awaited where something is to
        be decided on the way, `stop` ends it between batches and steps."""
        ...

    def audit(self, limit: int = 200) -> tuple[AuditEntry, ...]:
        """What was applied, newest first; reads files."""
        ...


class LogFollow(Protocol):
    """A journal that is being followed."""

    @property
    def problem(self) -> Problem | None:
        """Why nothing comes, if nothing can."""
        ...

    async def stop(self) -> None:
        """End it; no line is told after that."""
        ...
