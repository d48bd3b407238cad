"""The journal of a run: what is about to be done stands on the disk before it is done, and what came of it after.

One file per run in STATE/playbooks, mode 0600. JSON lines, each fsynced before anything that follows from it is done:

    run      the playbook's whole text, the values it was given, who, where, when
    found    values that a step found out
    draft    a file that a person has edited before it is installed
    before   how the role stood when the run began
    begun    a check has begun: what it remembers, and until when it must hold
    lapsed   a check that had begun must begin anew
    plan     a plan of a step is about to be applied; `back`: it takes the step back
    applied  what came of that plan, as far as worktop lived to see it
    step     the step is over, and how
    end      the run is over, and how

A crash between any two leaves a file that `read` understands. A plan without "applied" may have been applied, in part
or in whole: the journal of that plan (console/actions/journal.py) tells. Whoever runs it holds a lock (flock) on the
file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from console.errors import ConfigError, RefusedError
from console.fleet.plan import Actor
from console.playbook.clock import Moment
from console.playbook.model import Draft, RunState, Setting, Settings, Snapshot
from console.state import StateDirectory, append_only, is_held, write_all

FOLDER = "playbooks"
_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}")
_VERSION = 1
At = Callable[[str], None]
NOTHING_DONE = ("refused", "cancelled", "undone")  # states of a plan of which nothing is there


class Head(msgspec.Struct, frozen=True, kw_only=True, tag="run", tag_field="line"):
    version: int = _VERSION
    run: str
    playbook: str
    title: str
    path: str
    text: str
    values: Settings
    who: Actor
    host: str
    at: float


class Found(msgspec.Struct, frozen=True, tag="found", tag_field="line"):
    values: Settings


class Edited(msgspec.Struct, frozen=True, tag="draft", tag_field="line"):
    draft: Draft


class Before(msgspec.Struct, frozen=True, tag="before", tag_field="line"):
    snapshot: Snapshot


class Waiting(msgspec.Struct, frozen=True, kw_only=True, tag="begun", tag_field="line"):
    step: int
    slot: str  # "step", "before:0", "after:1"
    memory: Settings
    until: Moment
    lasts: bool  # it must hold until then; otherwise it must only come to hold


class Lapsed(msgspec.Struct, frozen=True, tag="lapsed", tag_field="line"):
    step: int
    slot: str


class Planned(msgspec.Struct, frozen=True, tag="plan", tag_field="line"):
    step: int
    plan: str
    title: str
    back: bool = False
    more: bool = False  # the action is asked for another one after it


class Applied(msgspec.Struct, frozen=True, tag="applied", tag_field="line"):
    step: int
    plan: str
    state: str  # of its outcome; "refused": nothing was done
    text: str
    back: bool = False


StepResult = Literal["done", "skipped", "failed", "undone"]


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag="step", tag_field="line"):
    step: int
    state: StepResult
    text: str
    evidence: tuple[str, ...] = ()
    at: float


class End(msgspec.Struct, frozen=True, kw_only=True, tag="end", tag_field="line"):
    state: RunState
    at: float
    report: str = ""


Line = Head | Found | Edited | Before | Waiting | Lapsed | Planned | Applied | Ended | End
_decoder = msgspec.json.Decoder(Line)


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a journal says."""

    head: Head
    path: Path
    values: Settings  # given and found
    drafts: dict[str, Draft]
    before: Snapshot | None
    waiting: dict[tuple[int, str], Waiting]
    plans: tuple[Planned, ...]
    applied: dict[str, Applied]  # by plan
    steps: dict[int, Ended]  # the last word on each
    end: End | None

    def plans_of(self, step: int) -> tuple[str, ...]:
        """Ids of the plans that did something for the step, or may have, in order; since it was last taken back."""
        return tuple(each.plan for each in self._standing(step) if self._may_have(each))

    def unsettled(self, step: int) -> Planned | None:
        """The last plan of the step of which worktop did not live to see what came."""
        last = next((each for each in reversed(self.plans) if each.step == step), None)
        return last if last is not None and last.plan not in self.applied else None

    def _standing(self, step: int) -> tuple[Planned, ...]:
        return tuple(each for each in self.plans if each.step == step and not each.back)

    def _may_have(self, planned: Planned) -> bool:
        applied = self.applied.get(planned.plan)
        return applied is None or applied.state not in NOTHING_DONE


class RunJournal:
    """The journal of a run that somebody is about to do something with."""

    def __init__(self, descriptor: int, path: Path, at: At) -> None:
        self._descriptor: int | None = descriptor  # None once it is closed: its number may be another file's then
        self._at = at
        self._torn = False
        self.path = path

    @classmethod
    def begin(cls, state: StateDirectory, head: Head, at: At) -> RunJournal:
        """RefusedError, ConfigError: it cannot be written, and nothing may be done."""
        return cls._open(state.folder(FOLDER) / f"{head.run}.jsonl", at, new=True, first=head)

    @classmethod
    def take_up(cls, state: StateDirectory, run: str, at: At) -> RunJournal:
        """RefusedError: somebody runs it now. ConfigError: there is no such run."""
        path = _path(state, run)
        if not path.exists():
            raise unknown(run)
        return cls._open(path, at, new=False)

    @classmethod
    def _open(cls, path: Path, at: At, *, new: bool, first: Head | None = None) -> RunJournal:
        try:
            descriptor = append_only(path, new=new)
        except OSError as error:
            raise _unwritable(path, error) from None
        journal = cls(descriptor, path, at)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            journal.close()
            raise RefusedError(f"run {path.stem}", "another worktop runs it now", "wait until it has ended") from None
        if first is not None:
            journal.write(first)
        return journal

    def write(self, line: Line) -> None:
        """Put a line on the disk. RefusedError: it is not there, and nothing may be done that it was to announce."""
        if self._descriptor is None:
            raise RefusedError(f"run {self.path.stem}", "it was let go of", "take it up again first")
        name = type(line).__name__.lower()
        self._at(f"before {name}")
        close = b"\n" if self._torn else b""  # what a full disk has left of a line is no part of this one
        self._torn = True
        try:
            write_all(self._descriptor, close + msgspec.json.encode(line) + b"\n")
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise _unwritable(self.path, error) from None
        self._torn = False
        self._at(f"after {name}")

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def read(state: StateDirectory, run: str) -> Record:
    """ConfigError: there is no such run, or its journal cannot be read."""
    path = _path(state, run)
    try:
        found = _read(path)
    except FileNotFoundError:
        raise unknown(run) from None
    except OSError as error:
        raise ConfigError(f"journal {path}", error.strerror or str(error)) from None
    if found is None:
        raise ConfigError(f"journal {path}", "it does not begin with a run", "nothing was done for it")
    return found


def every(state: StateDirectory) -> tuple[Record, ...]:
    """All runs, newest first."""
    found: list[Record] = []
    for path in (state.path / FOLDER).glob("*.jsonl"):
        with contextlib.suppress(OSError):
            record = _read(path)
            found += [record] if record is not None else []
    return tuple(sorted(found, key=lambda record: record.head.at, reverse=True))


def held(record: Record) -> bool:
    """Whether somebody runs it at this moment."""
    return is_held(record.path)


def _read(path: Path) -> Record | None:
    head: Head | None = None
    values: dict[str, Setting] = {}
    drafts: dict[str, Draft] = {}
    before: Snapshot | None = None
    waiting: dict[tuple[int, str], Waiting] = {}
    plans: list[Planned] = []
    applied: dict[str, Applied] = {}
    steps: dict[int, Ended] = {}
    end: End | None = None
    with path.open("rb") as file:
        for text in file:
            try:
                line = _decoder.decode(text)
            except (msgspec.DecodeError, msgspec.ValidationError):
                continue  # torn off by a crash: what it was to announce was never done
            match line:
                case Head():
                    head = line
                    values.update(line.values)
                case Found():
                    values.update(line.values)
                case Edited():
                    drafts[line.draft.path] = line.draft
                case Before():
                    before = line.snapshot
                case Waiting():
                    waiting[line.step, line.slot] = line
                case Lapsed():
                    waiting.pop((line.step, line.slot), None)
                case Planned():
                    plans.append(line)
                    if line.back:
                        end = None  # it is taken up again
                        steps[line.step] = _half_back(line.step)
                case Applied():
                    applied[line.plan] = line
                case Ended():
                    steps[line.step] = line
                    end = None
                    if line.state == "undone":
                        plans = [each for each in plans if each.step != line.step]
                    waiting = {key: each for key, each in waiting.items() if key[0] != line.step}
                case End():
                    end = line
    if head is None:
        return None
    return Record(
        head=head, path=path, values=values, drafts=drafts, before=before, waiting=waiting, plans=tuple(plans),
        applied=applied, steps=steps, end=end,
    )  # fmt: skip


def _half_back(step: int) -> Ended:
    """A step that somebody has begun to take back: done again or taken back, it comes next."""
    return Ended(step=step, state="failed", text="it is not taken back in full", at=0.0)


def _path(state: StateDirectory, run: str) -> Path:
    if not _ID.fullmatch(run):
        raise unknown(run)
    return state.path / FOLDER / f"{run}.jsonl"


def unknown(run: str) -> ConfigError:
    return ConfigError(f"run {run}", "there is no journal of it here", "worktop playbook status lists them")


def _unwritable(path: Path, error: OSError) -> RefusedError:
    return RefusedError(
        f"journal {path}",
        f"cannot be written ({error.strerror or error}), and without it the run could not be taken up again",
        "make room, or name another folder with WORKTOP_STATE",
    )
