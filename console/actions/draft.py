"""A plan in the making: rows, what must happen before and after, what the person must agree to."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from console.actions import words
from console.actions.remarks import Remarks
from console.config import Config
from console.errors import ConfigError
from console.fleet.counts import summed
from console.fleet.model import Value, Verdict
from console.fleet.plan import JobVerb, Plan, RowRef, Selection, Statement, Step, Survey
from console.queue.writer import QueueWriter

BENEATH = "leave-running"  # Step.verb of rows whose holders may live: they are taken all the same


class Asked(Value, frozen=True, kw_only=True):
    """What a person asked for; see Actions.plan_jobs."""

    verb: JobVerb
    role: str = ""
    rows: tuple[RowRef, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    older_than: float | None = None
    priority: int | None = None
    quarantine_after: int | None = None
    batch: int = 1000
    why: str = ""
    leave_running: bool = False

    def command(self, **changes: object) -> str:
        """The same as a command, or with some of it changed."""
        asked: Asked = msgspec.structs.replace(self, **changes)
        return words.command(
            asked.verb,
            role="" if asked.rows else asked.role,
            ids=[row.id for row in asked.rows],
            verdicts=asked.verdicts,
            older_than=asked.older_than,
            priority=asked.priority,
            quarantine_after=asked.quarantine_after,
            batch=asked.batch,
            leave_running=asked.leave_running,
        )


class Part(msgspec.Struct, frozen=True):
    """Rows that one SQL step changes."""

    selection: Selection
    survey: Survey
    statements: tuple[Statement, ...]
    beneath: bool = False  # their holders live, or may live


class Draft(Remarks):
    """What the makers of plans fill in, and `plan` puts in order."""

    def __init__(self, asked: Asked, config: Config, queue: QueueWriter) -> None:
        super().__init__()
        self.asked = asked
        self._config = config
        self._queue = queue
        self.before: list[Step] = []
        self.after: list[Step] = []
        self.parts: list[Part] = []
        self.lasting: list[str] = []  # what undo cannot bring back
        self.instead: list[str] = []  # commands that do what this plan leaves out

    async def add(self, selection: Selection, *, beneath: bool = False) -> None:
        """Rows to change; nothing is added when none is found. QueueError."""
        survey = await self._queue.survey(selection)
        for why, spared in survey.spared:
            self.warnings.append(f"{words.jobs_word(spared)} left alone: {why}")
        self.warnings += survey.notes
        if not survey.rows.n:
            return
        lasting = self._queue.irreversible(selection)
        if lasting:
            self.lasting.append(lasting)
        self.parts.append(Part(selection, survey, self._queue.statements(selection, self.asked.batch), beneath))

    def plan(self, selection: Selection) -> Plan:
        """The plan. A plan that changes no row is refused with the reason."""
        asked, now = self.asked, time.time()
        rows = summed(part.survey.rows for part in self.parts)
        role = asked.role or self._role()
        steps: list[Step] = []
        scripts: list[Statement] = []
        empty = False
        if self.parts:
            steps += self.before
            for part in self.parts:
                scripts += part.statements
                steps.append(_sql_step(asked, part))
            steps += self.after
        elif not self.refused:
            empty = True
            self.refused.append(self._nothing())
            self.allow += self.instead
        consent = self.consent(role, empty=empty)
        ended = any(step.kind in ("unit", "signal") for step in self.before)
        taken = any("running" in part.selection.states for part in self.parts)
        return Plan(
            id=plan_id(now),
            made=now,
            verb=asked.verb,
            title=words.title(asked.verb, rows, role, asked.priority),
            role=role,
            risk="high" if self.typed else "medium" if ended or asked.verb == "discard" else "low",
            reversible="no" if self.lasting and not ended else "partly" if ended else "yes",
            selection=selection,
            batch=asked.batch,
            rows=rows,
            reasons=tuple(dict.fromkeys(self.reasons)),
            warnings=tuple(dict.fromkeys((*self.warnings, *(f"undo: {lasting}" for lasting in self.lasting)))),
            claims=tuple(self.claims),
            samples=tuple([job for part in self.parts for job in part.survey.samples][:5]),
            behind=tuple(sentence for part in self.parts for sentence in part.survey.behind),
            late_finish=self._queue.late_finish if taken else "",
            steps=tuple(steps),
            command=asked.command(),
            psql=words.by_hand(scripts),
            consent=consent,
            why=asked.why,
        )

    def _role(self) -> str:
        """The one role all rows are of, "" when they are of several."""
        queues = {queue for part in self.parts for queue, _ in part.survey.queues}
        queues |= {job.queue for part in self.parts for job in part.survey.samples}
        roles = {next((role.name for role in self._config.roles if queue in role.queues), queue) for queue in queues}
        roles |= {claim.role for claim in self.claims}
        return next(iter(roles)) if len(roles) == 1 else ""

    def _nothing(self) -> str:
        of = f" of {self.asked.role}" if self.asked.role else ""
        if self.asked.rows:
            return f"nothing to {self.asked.verb} among the named jobs"
        if self.asked.verb == "reclaim" and not self.asked.verdicts:
            return f"no running job{of} has a holder that is proved dead"
        return f"nothing to {self.asked.verb}{of}"


def rows_of(config: Config, role: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The queues and types of a role, of all roles for "". ConfigError names the roles there are."""
    if not config.roles:
        return ((role,) if role else ()), ()
    roles = config.only(role).roles if role else config.roles
    queues = tuple(dict.fromkeys(queue for one in roles for queue in one.queues))
    if not queues:
        raise ConfigError(f"role {role}", "it has no queue", "name the jobs of another role")
    return queues, roles[0].types if len(roles) == 1 else ()


def plan_id(now: float) -> str:
    """ "20261129T203107Z-3f2a91": sorts by time."""
    return f"{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


_DONE_TO: dict[JobVerb, str] = {
    "reclaim": "return {jobs} to waiting",
    "retry": "let {jobs} wait again",
    "discard": "delete {jobs}",
    "run-now": "make {jobs} due now",
    "priority": "set the priority of {jobs}",
    "quarantine": "put {jobs} with the failed ones",
}


def joined(made: Sequence[Statement]) -> Statement:
    """Statements that one step runs, as one."""
    parameters = tuple({name: value for statement in made for name, value in statement.parameters}.items())
    sql = "\n\n".join(statement.sql for statement in made)
    return Statement(sql=sql, parameters=parameters, psql=words.by_hand(made))


def _sql_step(asked: Asked, part: Part) -> Step:
    """Everything one transaction does: the rows, those that were reclaimed too often, the wake-up."""
    return Step(
        kind="sql",
        title=_DONE_TO[asked.verb].format(jobs=words.jobs_word(part.survey.rows)),
        statement=joined(part.statements),
        verb=BENEATH if part.beneath else "",
        rows=part.survey.rows,
        selection=part.selection,
        undo="worktop undo",
    )
