"""The journal of one plan: every row, unit and file it changes, as it was, on the disk before it is changed.

One file per plan in STATE/plans, mode 0600 (it holds what the rows held, unmasked). JSON lines, in this order:

    plan        the plan, the identity of the database, who, where, when; before anything is done
    batch       the rows of one transaction, before and after; fsynced before its COMMIT
    committed   the transaction of the batch of that number is committed
    unit        a unit as it was; fsynced before anything is done to it
    file        a file as it was and as it is to be; fsynced before it is written
    step        the step of that index is over, and how
    end         the apply has ended, and how
    undone      the plan was undone, and how much of it
    closed      what was left of a plan that was cut off is continued by another, or given up

A crash between any two leaves a file that `read` understands: a batch without "committed" may or may not be in the
database, which is no matter, because a row is restored only while it is exactly as the batch left it. A line torn off
by a crash belongs to a batch that was never committed. Whoever applies the plan holds a lock (flock) on the file: a
journal without "end" that nobody holds is of a plan that was cut off.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

import msgspec

from console.actions.records import (
    VERSION,
    BatchLine,
    ClosedLine,
    CommittedLine,
    EndLine,
    FileLine,
    Line,
    PlanLine,
    Record,
    StepLine,
    UndoneLine,
    UnitLine,
    read_record,
)
from console.errors import ConfigError, RefusedError
from console.fleet.plan import Actor, FileChange, Plan, RowChange, StepOutcome, Undoable, Unfinished, UnitChange
from console.state import StateDirectory, append_only, is_held, write_all

FOLDER = "plans"
KEPT_FOR = 30 * 86400.0  # seconds a journal is kept
_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}")
_CLOSED = -1  # no descriptor: the number of one that is closed may be another file's


class _Heading(TypedDict):
    plan: str
    at: float
    verb: str
    title: str
    role: str
    who: Actor


class Journal:
    """The journal of a plan that is being applied."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._number = 0
        self.path = path
        self.ids: list[str] = []  # of the first changed rows, to look at them afterwards
        self.units: set[str] = set()
        self.files: set[str] = set()

    @classmethod
    def begin(cls, state: StateDirectory, plan: Plan, identity: str, who: Actor, host: str) -> Journal:
        """Make the file, with the plan in it. RefusedError, ConfigError: it cannot be; then nothing may be done."""
        folder = state.folder(FOLDER)
        _forget_old(folder, time.time())
        path = folder / f"{plan.id}.jsonl"
        try:
            journal = cls(append_only(path, new=True), path)
        except FileExistsError:
            raise RefusedError(f"plan {plan.id}", "it has been applied already", "make a new one") from None
        except OSError as error:
            raise _unwritable(path, error) from None
        bare = msgspec.structs.replace(plan, samples=(), claims=())  # what they held is in the rows
        try:
            fcntl.flock(journal._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            journal._write(PlanLine(VERSION, bare, identity, who, host, time.time()), sync=True)
        except OSError as error:
            journal.close()
            raise _unwritable(path, error) from None
        return journal

    def before_commit(self, columns: tuple[str, ...], changes: Sequence[RowChange]) -> None:
        """Put the rows of a transaction on the disk; when this returns they may be committed. OSError."""
        self._number += 1
        encoded = msgspec.Raw(msgspec.json.encode(tuple(changes)))
        self._write(BatchLine(self._number, len(changes), columns, encoded), sync=True)
        self.ids += [change.id for change in changes[: max(0, 20 - len(self.ids))]]

    def committed(self) -> None:
        """The last batch is committed. Not fsynced: without this line it only counts as unsure."""
        if self._number:
            with contextlib.suppress(OSError):
                self._write(CommittedLine(self._number), sync=False)

    def unit_change(self, change: UnitChange) -> None:
        """How the unit is now; when this returns something may be done to it. RefusedError."""
        self._must(UnitLine(change))
        self.units.add(change.unit)

    def file_change(self, change: FileChange) -> None:
        """How the file is now and what it is to be; when this returns it may be written. RefusedError."""
        self._must(FileLine(change))
        self.files.add(change.path)

    def step_ended(self, index: int, outcome: StepOutcome) -> None:
        """A step is over. When that cannot be written, it counts as not known to be done."""
        with contextlib.suppress(OSError):
            self._write(StepLine(index, outcome.state), sync=False)

    def ended(self, state: str, rows: int, open: bool = False) -> None:
        """The apply is over. When that cannot be written, it counts as cut off."""
        with contextlib.suppress(OSError):
            self._write(EndLine(state, rows, time.time(), open), sync=True)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, _CLOSED
        if descriptor != _CLOSED:
            os.close(descriptor)

    def _must(self, line: Line) -> None:
        try:
            self._write(line, sync=True)
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def _write(self, line: Line, sync: bool) -> None:
        write_all(self._descriptor, msgspec.json.encode(line) + b"\n")
        if sync:
            os.fdatasync(self._descriptor)


def mark_undone(state: StateDirectory, plan_id: str, by: str, rows: int, refused: int) -> None:
    """Note in a journal that its plan was undone. OSError, ConfigError."""
    _append(state, plan_id, UndoneLine(by, rows, refused, time.time()))


def close(state: StateDirectory, plan_id: str, by: str = "") -> None:
    """Note that the plan `by` goes on with what is left of this one, or that it is given up. OSError, ConfigError."""
    _append(state, plan_id, ClosedLine(by, time.time()))


def _append(state: StateDirectory, plan_id: str, line: Line) -> None:
    descriptor = append_only(state.folder(FOLDER) / f"{_checked(plan_id)}.jsonl")
    try:
        write_all(descriptor, msgspec.json.encode(line) + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def being_applied(state: StateDirectory, plan_id: str) -> bool:
    """Whether somebody applies the plan at this moment. ConfigError: there is no such journal."""
    return is_held(state.path / FOLDER / f"{_checked(plan_id)}.jsonl")


def find(state: StateDirectory, plan_id: str) -> Record | None:
    """The journal of a plan; None: there is none, or not even the plan is in it, and nothing was done. ConfigError: it
    cannot be read."""
    path = state.path / FOLDER / f"{_checked(plan_id)}.jsonl"
    try:
        return read_record(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"journal {path}", error.strerror or str(error)) from None


def read(state: StateDirectory, plan_id: str) -> Record:
    """The journal of a plan. ConfigError: there is none, or it cannot be read."""
    path = state.path / FOLDER / f"{_checked(plan_id)}.jsonl"
    try:
        record = read_record(path)
    except FileNotFoundError:
        raise _unknown(plan_id) from None
    except OSError as error:
        raise ConfigError(f"journal {path}", error.strerror or str(error)) from None
    if record is None:
        raise ConfigError(f"journal {path}", "it does not begin with a plan", "nothing was changed after it")
    return record


def undoable(state: StateDirectory) -> tuple[Undoable, ...]:
    """Plans that have changed something, newest first."""
    found = []
    for _, record in _records(state):
        if not record.changes_something or record.plan.verb == "undo":
            continue
        if record.plan.reversible == "no" and not record.batches:
            continue  # a restart: there is nothing to put back
        found.append(
            Undoable(
                **_heading(record),
                rows=record.rows,
                state=record.state,
                units=len(record.units),
                files=len(record.files),
            )
        )
    return tuple(found)


def unfinished(state: StateDirectory) -> tuple[Unfinished, ...]:
    """Plans that were cut off or are being applied, newest first."""
    found = []
    for path, record in _records(state):
        if not record.cut_off:
            continue
        steps = record.plan.steps
        left = [step.title for number, step in enumerate(steps) if number not in record.steps]
        running = is_held(path)
        if not left and not running:
            continue  # all was done; only the end could not be written any more
        found.append(
            Unfinished(
                **_heading(record),
                done=len(record.steps),
                steps=len(steps),
                next=left[0] if left else "",
                running=running,
            )
        )
    return tuple(found)


def _heading(record: Record) -> _Heading:
    plan = record.plan
    return _Heading(plan=plan.id, at=record.at, verb=plan.verb, title=plan.title, role=plan.role, who=record.who)


def _records(state: StateDirectory) -> Iterator[tuple[Path, Record]]:
    for path in sorted((state.path / FOLDER).glob("*.jsonl"), reverse=True):
        with contextlib.suppress(OSError):
            record = read_record(path)
            if record is not None:
                yield path, record


def _checked(plan_id: str) -> str:
    if not _ID.fullmatch(plan_id):
        raise _unknown(plan_id)
    return plan_id


def _unknown(plan_id: str) -> ConfigError:
    return ConfigError(f"plan {plan_id}", "there is no journal of it here", "worktop undo --list shows what there is")


def _unwritable(path: Path, error: OSError) -> RefusedError:
    return RefusedError(
        f"journal {path}",
        f"cannot be written ({error.strerror or error}), and without it nothing could be undone",
        "make room, or name another folder with WORKTOP_STATE",
    )


def _forget_old(folder: Path, now: float) -> None:
    for path in folder.glob("*.jsonl"):
        with contextlib.suppress(OSError):
            if now - path.stat().st_mtime > KEPT_FOR:
                path.unlink()
