"""The values of an action: what is selected, the plan that is shown and applied, what came of it, what can be undone.

A plan is made from facts, shown as it is (dialog, --dry-run, audit), and nothing is applied that was not shown. Text in
these values is raw where it came from outside; secrets are masked where a plan is made.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from console.errors import Problem
from console.fleet.model import Claim, Count, Holder, Ident, Job, Value

JobVerb = Literal["reclaim", "retry", "discard", "run-now", "priority", "quarantine"]
QueueVerb = Literal["pause", "resume"]
UnitVerb = Literal["start", "stop", "restart", "reset-failed", "kill", "enable", "disable"]
LineVerb = Literal["disable-line", "restore-line"]  # of a crontab
Verb = JobVerb | QueueVerb | UnitVerb | LineVerb | Literal["undo", "continue", "drain", "scale", "limits", "install"]


# --- which rows ------------------------------------------------------------------------------------------------------


class RowRef(msgspec.Struct, frozen=True, order=True):
    """A row as it was seen: it is changed only while its fencing token is still that one ("" : the queue has none)."""

    id: str
    token: str = ""


class Selection(Value, frozen=True, kw_only=True):
    """Which rows an action means. One predicate is made of it, which counts, samples and acts.

    With `rows`, those rows and no others (each with the token that was seen); without, every row that matches the
    rest. `holders` restricts running rows to those that one of these has claimed, compared by every part that is set:
    a row that somebody else claims meanwhile no longer matches.
    """

    verb: JobVerb
    role: str = ""
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    states: tuple[str, ...] = ()  # of the preset: "running", "waiting", "failed"
    rows: tuple[RowRef, ...] = ()
    holders: tuple[Holder, ...] = ()
    overdue_only: bool = False  # running rows: only those whose lease has run out by the database's clock
    older_than: float | None = None  # seconds: overdue (running), due (waiting) or failed for longer than this
    priority: int | None = None  # verb priority: the new one
    quarantine_after: int | None = None  # reclaim: rows taken from their holder this often already go to failed
    note: str = ""  # stored with the row where the queue has room for it (last_error, output)


class HolderRows(Value, frozen=True, kw_only=True):
    """The running rows of one holder within a selection."""

    holder: Holder | None
    rows: Count
    longest: Job  # the row whose lease ran out first: what the verdict on the holder is asked with
    reclaims: int | None = None  # most reclaims among them; None: the queue does not count them


class Survey(Value, frozen=True, kw_only=True):
    """What the predicate of a selection finds now."""

    rows: Count = Count(0)
    samples: tuple[Job, ...] = ()  # five at most
    queues: tuple[tuple[str, Count], ...] = ()  # rows by queue
    behind: tuple[str, ...] = ()  # sentences: jobs that wait for a lock or a named queue these rows hold
    poisoned: Count = Count(0)  # of a reclaim: rows that were reclaimed too often and go to failed
    spared: tuple[tuple[str, Count], ...] = ()  # why rows that match are left alone, and how many
    notes: tuple[str, ...] = ()  # sentences of the queue about the action, and what may be hidden


class Statement(Value, frozen=True, kw_only=True):
    """The exact SQL of one step with its parameters: the one that is run is made of the same value that is shown."""

    sql: str  # with %(name)s placeholders, as psycopg takes it
    parameters: tuple[tuple[str, str], ...] = ()  # name, the literal as psql would take it
    psql: str = ""  # the same with the literals in place: can be pasted into psql


class Watch(Value, frozen=True, kw_only=True):
    """What is looked at after a unit was started, before the plan goes on."""

    kind: Literal["healthy", "growth"]  # growth: of a scale; it must be worth it, too
    seconds: float  # healthy: at most so long; growth: for so long
    lived: float = 0.0  # seconds it must have run without a restart: past its RestartSec=
    jobs: bool = False  # where jobs wait it must have claimed or finished one


# --- the plan --------------------------------------------------------------------------------------------------------


class FileEdit(Value, frozen=True, kw_only=True):
    """What a file is to hold. It is changed only while it still is what was read for the plan."""

    path: str
    expected: str = ""  # sha256 of what was read; "": there was no file
    content: bytes | None = None  # None: the file is removed
    mode: int | None = None  # None: as it is
    check: Literal["", "unit", "crontab"] = ""  # what must accept it before it is installed


class Step(Value, frozen=True, kw_only=True):
    """One change of the world, or one wait between two."""

    # reload: systemd reads its unit files again; program: another supervisor (verb) stops the process `ident`
    kind: Literal["sql", "notify", "unit", "signal", "wait", "file", "reload", "program", "check"]
    title: str  # "stop thumbnails-worker@3.service", "return 4 jobs to waiting"
    text: str = ""  # exactly what is done: the SQL, the call, the edit
    statement: Statement | None = None
    unit: str = ""  # kind unit: its name, and
    units: tuple[str, ...] = ()  # or, of enable and disable, all their names: systemd reads its files once for them
    verb: str = ""  # start, stop, ...
    drains: bool = False  # kind unit, verb stop: its main process is asked to end; nobody is killed without a question
    watch: Watch | None = None  # kind unit: what must be seen afterwards before the next step
    alone: bool = False  # that it fails does not keep the steps after it from being done
    file: FileEdit | None = None  # kind file
    ident: Ident | None = None  # kind signal: the process
    signal: str = ""  # "TERM"
    timeout: float | None = None  # seconds this may take before it counts as failed
    rows: Count | None = None
    selection: Selection | None = None  # kind sql: the rows it changes; its statement is made of it
    queues: tuple[str, ...] = ()  # kind sql of pause and resume: the queues that are switched
    undo: str = ""  # what undoes it, a clause; "" : nothing does


class Consent(Value, frozen=True, kw_only=True):
    """What the person must do before the plan is applied."""

    kind: Literal["confirm", "typed", "refused"] = "confirm"
    word: str = ""  # typed: exactly this, the name of the role
    empty: bool = False  # refused because there is nothing to do
    why: tuple[str, ...] = ()  # why typing is asked for, or why it is refused; what is not known
    allow: tuple[str, ...] = ()  # refused: the GRANT, the polkit rule or the command that would allow it


class Plan(Value, frozen=True, kw_only=True):
    """Everything an action will do, in order, with its reasons; the same text in the dialog, --dry-run and audit."""

    id: str  # "20261129T203107Z-3f2a91": sorts by time, names the journal
    made: float  # epoch seconds
    verb: Verb
    title: str  # "Reclaim 2 jobs of thumbnails"
    role: str = ""
    risk: Literal["low", "medium", "high"] = "low"
    reversible: Literal["yes", "partly", "no"] = "yes"
    selection: Selection | None = None
    batch: int = 1000  # rows of one transaction
    undoes: str = ""  # verb undo: the id of the plan whose rows are restored
    continues: str = ""  # the id of the plan that was cut off, whose remaining steps these are
    rows: Count | None = None
    reasons: tuple[str, ...] = ()  # evidence, and why it is safe
    warnings: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()  # the holders' verdicts, one row of each
    samples: tuple[Job, ...] = ()
    behind: tuple[str, ...] = ()
    late_finish: Literal["rejected", "accepted", ""] = ""  # what becomes of the former holder's end; "": no holder
    steps: tuple[Step, ...] = ()
    command: str = ""  # "worktop reclaim --id 918233,918240"
    psql: str = ""  # the same by hand
    consent: Consent = Consent()
    why: str = ""  # what the person said it is for


# --- what came of it -------------------------------------------------------------------------------------------------


class RowChange(msgspec.Struct, frozen=True):
    """A changed row's columns before and after, as text in the order of the journal's `columns`; None is NULL.

    `after` empty: the row was deleted, and `before` is the whole row as JSON.
    """

    id: str
    before: tuple[str | None, ...]
    after: tuple[str | None, ...] = ()


class UnitChange(Value, frozen=True, kw_only=True):
    """How a unit was before a step changed it."""

    unit: str
    active: bool  # it ran, or was to run: active, activating, reloading
    enabled: str = ""  # UnitFileState; "" not known


class FileChange(Value, frozen=True, kw_only=True):
    """A file before and after a step; None: there is none."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: int = 0o644
    uid: int = 0
    gid: int = 0


class Question(Value, frozen=True, kw_only=True):
    """What is asked in the middle of an apply; no answer is a no."""

    kind: Literal["kill"]
    step: int  # index into Plan.steps
    title: str  # "Kill mail-worker@3.service (pid 812)?"
    text: tuple[str, ...] = ()  # what is the case, and what becomes of it, as sentences
    unit: str = ""
    ident: Ident | None = None
    jobs: tuple[str, ...] = ()  # ids of what it still holds


class Suggestion(Value, frozen=True, kw_only=True):
    """What is worth doing after an apply: a command, and what a plan of it is made from."""

    title: str  # "Reclaim 1 job that mail-worker@3.service held"
    command: str
    verb: Verb
    role: str = ""
    rows: tuple[RowRef, ...] = ()
    units: tuple[str, ...] = ()
    plan: str = ""  # verb undo, continue: the id


class Blocked(Value, frozen=True, kw_only=True):
    """A row that could not be moved, and what is in its way."""

    id: str
    why: str  # "another job with the queueing_lock 'report-7' is waiting"
    by: str = ""  # id of that job
    choices: tuple[str, ...] = ()  # commands: "worktop discard --id 12"


class Applied(Value, frozen=True, kw_only=True):
    """What a selection that was applied did, batch by batch."""

    rows: int = 0
    blocked: tuple[Blocked, ...] = ()
    stopped: bool = False  # before the end: asked to, or because of the problem
    batches: int = 0
    took: float = 0.0
    reclaimed: int = 0
    quarantined: int = 0
    skipped: int = 0  # of the rows that were named: those that were no longer as they were seen
    unsure: int = 0  # rows of a batch whose COMMIT was never answered: they are in the journal, perhaps not changed
    problem: Problem | None = None


class Restored(Value, frozen=True, kw_only=True):
    """What an undo brought back."""

    rows: int = 0
    refused: tuple[tuple[str, str], ...] = ()  # id, why: "claimed again since by pid 812", "no longer there"


class Progress(Value, frozen=True, kw_only=True):
    """How far an apply has come; sent after each batch and while a step waits."""

    step: int  # index into Plan.steps
    text: str = ""
    done: int = 0  # rows
    total: Count | None = None
    per_second: float | None = None
    remaining: float | None = None  # seconds a wait may still last


class StepOutcome(Value, frozen=True, kw_only=True):
    state: Literal["done", "skipped", "failed", "stopped"]
    text: str = ""
    rows: int = 0
    took: float = 0.0
    problem: Problem | None = None


class Outcome(Value, frozen=True, kw_only=True):
    """What an applied plan did."""

    plan: str  # id
    state: Literal["done", "partly", "failed", "stopped", "cancelled"]
    text: str  # one sentence
    steps: tuple[StepOutcome, ...] = ()
    rows: int = 0
    blocked: tuple[Blocked, ...] = ()
    verified: tuple[str, ...] = ()  # what was looked at afterwards, as sentences
    not_verified: tuple[str, ...] = ()
    undo: str = ""  # "worktop undo 20261129T203107Z-3f2a91"; "" when nothing can be undone
    took: float = 0.0
    units: int = 0  # that were changed
    files: int = 0
    next: tuple[Suggestion, ...] = ()


class Actor(Value, frozen=True, kw_only=True):
    """Who acts, as far as the kernel and sudo tell."""

    login: str = ""  # the account that logged in (audit login uid), "" when nobody did: cron, a container
    sudo: str = ""  # SUDO_USER; what the environment says, and so only a hint
    user: str = ""  # the effective account
    uid: int = -1

    @property
    def name(self) -> str:
        """ "deploy", "deploy as root", "root"."""
        first = self.login or self.sudo or self.user
        return first if first == self.user else f"{first} as {self.user}"


class AuditEntry(Value, frozen=True, kw_only=True):
    """One line of the audit: an apply that ended, however it did. Secrets are masked before it is written."""

    at: float  # when it ended, epoch seconds
    plan: str  # id of the plan
    verb: str
    title: str
    role: str = ""
    who: Actor = Actor()
    host: str = ""  # the machine worktop ran on
    why: str = ""
    state: str = ""  # of the outcome: done, partly, failed, stopped, cancelled
    text: str = ""  # of the outcome
    rows: int = 0
    undo: str = ""  # the command that undoes it, "" when nothing can
    shown: Plan | None = None  # the plan as it was shown, without payloads
    outcome: Outcome | None = None


class Undoable(Value, frozen=True, kw_only=True):
    """An applied plan whose rows, units and files are in the journal as they were."""

    plan: str  # id
    at: float
    verb: str
    title: str
    role: str = ""
    who: Actor = Actor()
    rows: int = 0
    state: Literal["whole", "unsure", "undone"] = "whole"  # unsure: it was cut off, the last batch may not be committed
    units: int = 0
    files: int = 0


class Unfinished(Value, frozen=True, kw_only=True):
    """A plan that was cut off: worktop, its agent or the way to the host was lost before its last step."""

    plan: str  # id
    at: float  # when it was begun
    verb: str
    title: str
    role: str = ""
    who: Actor = Actor()
    done: int = 0  # steps
    steps: int = 0
    next: str = ""  # title of the first step that is not known to be done
    running: bool = False  # somebody is applying it now
