"""What the journal of a plan holds: its lines, and what they come to when they are read again."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from console.fleet.plan import Actor, FileChange, Plan, RowChange, UnitChange

VERSION = 1


class PlanLine(msgspec.Struct, frozen=True, tag="plan", tag_field="line"):
    version: int
    plan: Plan
    identity: str
    who: Actor
    host: str
    at: float


class BatchLine(msgspec.Struct, frozen=True, tag="batch", tag_field="line"):
    number: int
    rows: int
    columns: tuple[str, ...]
    changes: msgspec.Raw  # of RowChange; decoded when they are needed


class CommittedLine(msgspec.Struct, frozen=True, tag="committed", tag_field="line"):
    number: int


class UnitLine(msgspec.Struct, frozen=True, tag="unit", tag_field="line"):
    change: UnitChange


class FileLine(msgspec.Struct, frozen=True, tag="file", tag_field="line"):
    change: FileChange


class StepLine(msgspec.Struct, frozen=True, tag="step", tag_field="line"):
    index: int
    state: str  # of its StepOutcome


class EndLine(msgspec.Struct, frozen=True, tag="end", tag_field="line"):
    state: str
    rows: int
    at: float
    open: bool = False  # the host was lost on the way: what is left waits to be continued or given up


class UndoneLine(msgspec.Struct, frozen=True, tag="undone", tag_field="line"):
    by: str  # id of the plan that restored them
    rows: int
    refused: int
    at: float


class ClosedLine(msgspec.Struct, frozen=True, tag="closed", tag_field="line"):
    by: str  # id of the plan that goes on with it; "": it is given up
    at: float


Line = PlanLine | BatchLine | CommittedLine | UnitLine | FileLine | StepLine | EndLine | UndoneLine | ClosedLine
_decoder = msgspec.json.Decoder(Line)
_changes = msgspec.json.Decoder(tuple[RowChange, ...])


class Images(msgspec.Struct, frozen=True):
    """Changed rows of equal columns."""

    columns: tuple[str, ...]
    changes: tuple[RowChange, ...]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a journal says."""

    plan: Plan
    identity: str
    who: Actor
    host: str
    at: float
    batches: tuple[BatchLine, ...] = ()
    committed: frozenset[int] = frozenset()
    units: tuple[UnitChange, ...] = ()  # the first of each unit: as it was before the plan
    files: tuple[FileChange, ...] = ()  # the first `before` and the last `after` of each file
    steps: frozenset[int] = frozenset()  # those that are done, or were found to be needless
    end: str = ""  # state of the outcome; "" when worktop did not get that far
    open: bool = False  # it ended because the host was lost
    undone: bool = False
    closed: str | None = None  # by which plan it is continued; "": it is given up

    @property
    def cut_off(self) -> bool:
        """Something is left of it that nobody has decided on (or it is being applied now)."""
        return (not self.end or self.open) and not self.undone and self.closed is None

    @property
    def changes_something(self) -> bool:
        return bool(self.batches or self.units or self.files)

    @property
    def rows(self) -> int:
        """Rows of committed batches."""
        return sum(batch.rows for batch in self.batches if batch.number in self.committed)

    @property
    def state(self) -> Literal["whole", "unsure", "undone"]:
        if self.undone:
            return "undone"
        whole = self.end and not self.open and len(self.committed) == len(self.batches)
        return "whole" if whole else "unsure"

    def images(self) -> tuple[Images, ...]:
        """Every row that was or may have been changed, the last change first, each row once."""
        seen: set[str] = set()
        found: list[Images] = []
        for batch in reversed(self.batches):
            fresh = [change for change in _changes.decode(batch.changes) if change.id not in seen]
            seen.update(change.id for change in fresh)
            if fresh:
                found.append(Images(batch.columns, tuple(fresh)))
        return tuple(found)


def _at_boot(change: UnitChange, plan: Plan) -> UnitChange:
    """One that the plan has enabled, and that was not loaded before, was not started at boot: else it were loaded."""
    enables = (step for step in plan.steps if step.verb == "enable")
    if change.enabled or not any(change.unit in (*step.units, step.unit) for step in enables):
        return change
    return msgspec.structs.replace(change, enabled="disabled")


def read_record(path: Path) -> Record | None:
    """The journal in this file; None: it does not begin with a plan. OSError."""
    head: PlanLine | None = None
    batches: list[BatchLine] = []
    units: dict[str, UnitChange] = {}
    files: dict[str, FileChange] = {}
    committed: set[int] = set()
    steps: set[int] = set()
    end: EndLine | None = None
    undone, closed = False, None
    with path.open("rb") as file:
        for text in file:
            try:
                line = _decoder.decode(text)
            except (msgspec.DecodeError, msgspec.ValidationError):
                continue  # torn off by a crash: what it was to announce was never done
            match line:
                case PlanLine():
                    head = line
                case BatchLine():
                    batches.append(line)
                case CommittedLine():
                    committed.add(line.number)
                case UnitLine():
                    first_seen = units.get(line.change.unit, line.change)
                    enabled = first_seen.enabled or line.change.enabled  # one that was not loaded yet said nothing
                    units[line.change.unit] = msgspec.structs.replace(first_seen, enabled=enabled)
                case FileLine():
                    first = files.get(line.change.path, line.change)
                    files[line.change.path] = msgspec.structs.replace(first, after=line.change.after)
                case StepLine():
                    if line.state in ("done", "skipped"):
                        steps.add(line.index)
                case EndLine():
                    end = line
                case UndoneLine():
                    undone = True
                case ClosedLine():
                    closed = line.by
    if head is None:
        return None
    return Record(
        plan=head.plan,
        identity=head.identity,
        who=head.who,
        host=head.host,
        at=head.at,
        batches=tuple(batches),
        committed=frozenset(committed),
        units=tuple(_at_boot(change, head.plan) for change in units.values()),
        files=tuple(files.values()),
        steps=frozenset(steps),
        end=end.state if end is not None else "",
        open=end is not None and end.open,
        undone=undone,
        closed=closed,
    )
