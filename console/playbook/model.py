"""The values of playbooks: what a file says, what a step would do here, how far a run has come. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from console.fleet.model import Value
from console.fleet.plan import Actor, Plan

Setting = str | int | float | bool | tuple[str, ...]
Settings = dict[str, Setting]
Reversible = Literal["yes", "partly", "no"]


# --- what a file says ------------------------------------------------------------------------------------------------


class Condition(Value, frozen=True, kw_only=True):
    """A check that must hold before or after a step."""

    check: str
    inputs: Settings = msgspec.field(default_factory=dict)


class Inverse(Value, frozen=True, kw_only=True):
    """How a step is taken back: by undoing its plans, by another action, or not at all, and why."""

    kind: Literal["undo", "action", "none"] = "undo"
    action: str = ""
    inputs: Settings = msgspec.field(default_factory=dict)
    reason: str = ""  # kind none


class PlaybookStep(Value, frozen=True, kw_only=True):
    """One section of the file. Either `action` or `check` is set."""

    number: int  # from 1
    title: str
    prose: str = ""  # Markdown, without the block
    stop: str = ""  # what is the case when a person stops here, Markdown
    action: str = ""
    check: str = ""
    inputs: Settings = msgspec.field(default_factory=dict)
    before: tuple[Condition, ...] = ()
    after: tuple[Condition, ...] = ()
    inverse: Inverse = Inverse()
    skippable: bool = False
    line: int = 0  # of its heading in the file


class Playbook(Value, frozen=True, kw_only=True):
    """A file that was read and is without fault."""

    name: str
    title: str
    findings: tuple[str, ...] = ()  # codes of the findings it mends
    needs: tuple[tuple[str, str], ...] = ()  # name of a value it must be given, and what that is
    defaults: Settings = msgspec.field(default_factory=dict)  # values that need not be given
    reversible: Reversible = "yes"
    about: str = ""  # Markdown before the first step
    steps: tuple[PlaybookStep, ...] = ()
    path: str = ""
    text: str = ""  # the whole file, as it was read


class Flaw(Value, frozen=True, kw_only=True):
    """Something wrong in a file."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


class Shelved(Value, frozen=True, kw_only=True):
    """A playbook file that was found; without `playbook` it has flaws."""

    name: str
    path: str
    playbook: Playbook | None = None
    flaws: tuple[Flaw, ...] = ()


# --- what a step would do here ---------------------------------------------------------------------------------------


class Draft(Value, frozen=True, kw_only=True):
    """A file that a step installs, which a person may edit before."""

    path: str
    text: str
    mode: int = 0o644


class Shown(Value, frozen=True, kw_only=True):
    """What an action makes of this host's facts. Nothing has been changed."""

    facts: tuple[str, ...] = ()  # sentences
    plan: Plan | None = None  # what will be applied when a person agrees
    nothing: str = ""  # why nothing is to be done, a clause: the step counts as done
    refused: tuple[str, ...] = ()  # why it cannot be done; the plan's consent may say so, too
    evidence: tuple[str, ...] = ()
    found: Settings = msgspec.field(default_factory=dict)  # values for the steps after it
    more: bool = False  # when the plan is applied the action is asked for the next one, until it says `nothing`
    drafts: tuple[Draft, ...] = ()
    seconds: float | None = None  # how long it takes at least


CheckState = Literal["holds", "not", "unknown"]


class Seen(Value, frozen=True, kw_only=True):
    """What a check saw."""

    state: CheckState
    text: str  # a sentence
    evidence: tuple[str, ...] = ()


class Begun(Value, frozen=True, kw_only=True):
    """What a check starts from; it is in the journal, so that a wait goes on after a crash."""

    seconds: float = 0.0  # it must hold for so long; 0: once
    memory: Settings = msgspec.field(default_factory=dict)


class Checked(Value, frozen=True, kw_only=True):
    """A check and what it saw."""

    check: str
    seen: Seen


class StepView(Value, frozen=True, kw_only=True):
    """A step as it is shown before it is done."""

    step: PlaybookStep  # prose and inputs filled with the values of the run
    shown: Shown | None = None  # of an action; None: it could not be planned
    problem: str = ""  # why not, or why the step cannot be done now
    before: tuple[Checked, ...] = ()
    waits: float | None = None  # seconds of a wait that was begun, and goes on
    standing: tuple[str, ...] = ()  # how the role stands now, sentences
    back: str = ""  # how to go back from here, a sentence

    @property
    def may_go(self) -> bool:
        plan = self.shown.plan if self.shown is not None else None
        return not self.problem and (plan is None or plan.consent.kind != "refused")


class BackView(Value, frozen=True, kw_only=True):
    """What takes the last step that was done back."""

    step: PlaybookStep
    plans: tuple[Plan, ...] = ()  # in order
    more: bool = False  # when they are applied it is asked for the next one
    nothing: str = ""  # why nothing is to be done
    problem: str = ""  # why it cannot be taken back
    standing: tuple[str, ...] = ()


class StepEnd(Value, frozen=True, kw_only=True):
    """What came of a step."""

    number: int
    state: Literal["done", "failed", "left", "skipped", "undone"]
    text: str
    evidence: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()
    next: tuple[str, ...] = ()  # what to do now, commands or sentences


class Telling(Value, frozen=True, kw_only=True):
    """How far a step has come."""

    number: int
    text: str
    remaining: float | None = None  # seconds
    plan: Plan | None = None  # its apply begins now: the Progress that follows is of this plan


class Snapshot(Value, frozen=True, kw_only=True):
    """How a role stood at one moment."""

    at: float  # epoch seconds
    owners: tuple[tuple[str, int], ...] = ()  # "crontab of deploy, line 4" or a unit's template, and its workers
    workers: tuple[str, ...] = ()  # each as a sentence
    memory: int | None = None  # bytes
    waiting: int | None = None
    running: int | None = None
    stuck: int | None = None
    failed: int | None = None
    done_per_minute: float | None = None


# --- how far a run has come ------------------------------------------------------------------------------------------

StepState = Literal["open", "now", "waits", "done", "skipped", "failed", "undone"]
RunState = Literal["open", "done", "rolled-back", "abandoned"]


class StepStatus(Value, frozen=True, kw_only=True):
    number: int
    title: str
    state: StepState
    text: str = ""  # what came of it
    evidence: tuple[str, ...] = ()
    plans: tuple[str, ...] = ()  # ids of the plans it has applied, in order
    at: float | None = None  # when it ended


class RunStatus(Value, frozen=True, kw_only=True):
    run: str  # id
    playbook: str
    title: str
    role: str = ""
    values: Settings = msgspec.field(default_factory=dict)
    state: RunState = "open"
    steps: tuple[StepStatus, ...] = ()
    at: float = 0.0  # when it was begun
    who: Actor = Actor()
    host: str = ""
    held: str = ""  # who is running it at this moment; "": nobody
    waits_until: float | None = None  # epoch seconds, of a wait that was begun
    report: str = ""  # path of the report, when there is one

    @property
    def number(self) -> int:
        """Of the step that comes next; one more than there are when all are done."""
        return next(
            (each.number for each in self.steps if each.state in ("open", "now", "waits", "failed", "undone")),
            len(self.steps) + 1,
        )
