"""The journal of one plan: every row it changes, as it was, on the disk before the change is committed.

One file per plan in STATE/plans, mode 0600 (it holds what the rows held, unmasked). JSON lines, in this order:

    plan        the plan, the identity of the database, who, where, when; before anything is done
    batch       the rows of one transaction, before and after; fsynced before its COMMIT
    committed   the transaction of the batch of that number is committed
    end         the apply has ended, and how
    undone      the rows were restored, and how many

A crash between any two leaves a file that `read` understands: a batch without "committed" may or may not be in the
database, which is no matter, because a row is restored only while it is exactly as the batch left it. A line torn off
by a crash belongs to a batch that was never committed.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from console.actions.state import StateDirectory, append_only, write_all
from console.errors import ConfigError, RefusedError
from console.fleet.plan import Actor, Plan, RowChange, Undoable

FOLDER = "plans"
KEPT_FOR = 30 * 86400.0  # seconds a journal is kept
_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}")
_VERSION = 1


class _Plan(msgspec.Struct, frozen=True, tag="plan", tag_field="line"):
    version: int
    plan: Plan
    identity: str
    who: Actor
    host: str
    at: float


class _Batch(msgspec.Struct, frozen=True, tag="batch", tag_field="line"):
    number: int
    rows: int
    columns: tuple[str, ...]
    changes: msgspec.Raw  # of RowChange; decoded when they are needed


class _Committed(msgspec.Struct, frozen=True, tag="committed", tag_field="line"):
    number: int


class _End(msgspec.Struct, frozen=True, tag="end", tag_field="line"):
    state: str
    rows: int
    at: float


class _Undone(msgspec.Struct, frozen=True, tag="undone", tag_field="line"):
    by: str  # id of the plan that restored them
    rows: int
    refused: int
    at: float


_Line = _Plan | _Batch | _Committed | _End | _Undone
_decoder = msgspec.json.Decoder(_Line)
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
    batches: tuple[_Batch, ...] = ()
    committed: frozenset[int] = frozenset()
    end: str = ""  # state of the outcome; "" when worktop did not get that far
    undone: bool = False

    @property
    def rows(self) -> int:
        """Rows of committed batches."""
        return sum(batch.rows for batch in self.batches if batch.number in self.committed)

    @property
    def state(self) -> Literal["whole", "unsure", "undone"]:
        if self.undone:
            return "undone"
        return "whole" if self.end and len(self.committed) == len(self.batches) else "unsure"

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


class Journal:
    """The journal of a plan that is being applied."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._number = 0
        self.path = path
        self.ids: list[str] = []  # of the first changed rows, to look at them afterwards

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
            journal._write(_Plan(_VERSION, bare, identity, who, host, time.time()), sync=True)
        except OSError as error:
            journal.close()
            raise _unwritable(path, error) from None
        return journal

    def before_commit(self, columns: tuple[str, ...], changes: Sequence[RowChange]) -> None:
        """Put the rows of a transaction on the disk; when this returns they may be committed. OSError."""
        self._number += 1
        encoded = msgspec.Raw(msgspec.json.encode(tuple(changes)))
        self._write(_Batch(self._number, len(changes), columns, encoded), sync=True)
        self.ids += [change.id for change in changes[: max(0, 20 - len(self.ids))]]

    def committed(self) -> None:
        """The last batch is committed. Not fsynced: without this line it only counts as unsure."""
        if self._number:
            with contextlib.suppress(OSError):
                self._write(_Committed(self._number), sync=False)

    def ended(self, state: str, rows: int) -> None:
        """The apply is over. When that cannot be written, it counts as cut off."""
        with contextlib.suppress(OSError):
            self._write(_End(state, rows, time.time()), sync=True)

    def close(self) -> None:
        os.close(self._descriptor)

    def _write(self, line: _Line, sync: bool) -> None:
        write_all(self._descriptor, msgspec.json.encode(line) + b"\n")
        if sync:
            os.fdatasync(self._descriptor)


def mark_undone(state: StateDirectory, plan_id: str, by: str, rows: int, refused: int) -> None:
    """Note in a journal that its rows were restored. OSError, ConfigError."""
    descriptor = append_only(state.folder(FOLDER) / f"{_checked(plan_id)}.jsonl")
    try:
        write_all(descriptor, msgspec.json.encode(_Undone(by, rows, refused, time.time())) + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(state: StateDirectory, plan_id: str) -> Record:
    """The journal of a plan. ConfigError: there is none, or it cannot be read."""
    path = state.path / FOLDER / f"{_checked(plan_id)}.jsonl"
    try:
        record = _read(path)
    except FileNotFoundError:
        raise _unknown(plan_id) from None
    except OSError as error:
        raise ConfigError(f"journal {path}", error.strerror or str(error)) from None
    if record is None:
        raise ConfigError(f"journal {path}", "it does not begin with a plan", "nothing was changed after it")
    return record


def undoable(state: StateDirectory) -> tuple[Undoable, ...]:
    """Plans with changed rows in their journal, newest first."""
    found = []
    for path in sorted((state.path / FOLDER).glob("*.jsonl"), reverse=True):
        try:
            record = _read(path)
        except OSError:
            continue
        if record is None or not record.batches or record.plan.verb == "undo":
            continue
        found.append(
            Undoable(
                plan=record.plan.id,
                at=record.at,
                verb=record.plan.verb,
                title=record.plan.title,
                role=record.plan.role,
                who=record.who,
                rows=record.rows,
                state=record.state,
            )
        )
    return tuple(found)


def _read(path: Path) -> Record | None:
    head: _Plan | None = None
    batches: list[_Batch] = []
    committed: set[int] = set()
    end, undone = "", False
    with path.open("rb") as file:
        for text in file:
            try:
                line = _decoder.decode(text)
            except (msgspec.DecodeError, msgspec.ValidationError):
                continue  # torn off by a crash, and so never committed
            if isinstance(line, _Plan):
                head = line
            elif isinstance(line, _Batch):
                batches.append(line)
            elif isinstance(line, _Committed):
                committed.add(line.number)
            elif isinstance(line, _End):
                end = line.state
            else:
                undone = True
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
        end=end,
        undone=undone,
    )


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
