"""The journal of a run: whatever was cut off, what it says has happened."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from console.errors import ConfigError, RefusedError
from console.fleet.plan import Actor
from console.playbook import journal
from console.playbook.clock import Clock, Moment
from console.playbook.journal import Applied, Ended, Found, Head, Lapsed, Line, Planned, Record, RunJournal, Waiting
from console.state import StateDirectory

RUN = "20261129T203107Z-3f2a91"
HEAD = Head(
    run=RUN, playbook="x", title="X", path="x.md", text="é", values={"role": "mail"}, who=Actor(user="deploy"),
    host="wrk01", at=1.0,
)  # fmt: skip
UNTIL = Moment(wall=10.0, boot=5.0, boot_id="b")
LINES: tuple[Line, ...] = (
    Found({"line_number": 4, "line_raw": "caf\xe9"}),
    Waiting(step=1, slot="after:0", memory={"known": ("a",)}, until=UNTIL, lasts=True),
    Planned(1, "20261129T203108Z-3f2a92", "Disable line 4"),
    Applied(1, "20261129T203108Z-3f2a92", "done", "disabled"),
    Lapsed(1, "after:0"),
    Ended(step=1, state="failed", text="it started again", at=2.0),
    Planned(1, "20261129T203109Z-3f2a93", "Disable line 4"),
    Applied(1, "20261129T203109Z-3f2a93", "refused", "not agreed"),
    Planned(1, "20261129T203110Z-3f2a94", "Restore line 4", back=True),
    Applied(1, "20261129T203110Z-3f2a94", "done", "restored", back=True),
    Ended(step=1, state="undone", text="as before", at=3.0),
)


def write(state: StateDirectory, *lines: Line, at: journal.At = lambda point: None) -> Path:
    written = RunJournal.begin(state, HEAD, at)
    for line in lines:
        written.write(line)
    written.close()
    return written.path


def test_what_it_says(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    path = write(state, *LINES[:4])
    record = journal.read(state, RUN)
    assert record.values == {"role": "mail", "line_number": 4, "line_raw": "caf\xe9"}
    assert record.waiting[1, "after:0"].until == UNTIL
    assert record.plans_of(1) == ("20261129T203108Z-3f2a92",) and record.unsettled(1) is None
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    write(state, *LINES[:9])
    record = journal.read(state, RUN)
    assert not record.waiting and record.steps[1].state == "failed"
    assert record.plans_of(1) == ("20261129T203108Z-3f2a92",), "what was refused has done nothing"
    assert record.unsettled(1) == LINES[8]
    path.unlink()
    write(state, *LINES)
    record = journal.read(state, RUN)
    assert record.plans_of(1) == () and record.steps[1].state == "undone"


def summary(record: Record) -> tuple[object, ...]:
    return (record.values, record.waiting, record.plans, record.applied, record.steps, record.end)


def test_cut_off_at_every_byte_it_says_what_was_written_before(tmp_path: Path) -> None:
    """A line counts when all of it is there; and what is written after the cut stands on a line of its own."""
    state = StateDirectory(tmp_path)
    path = write(state, *LINES)
    whole = path.read_bytes()
    ends = [place for place, byte in enumerate(whole) if byte == 10]
    wanted = []
    for end in ends:
        path.write_bytes(whole[: end + 1])
        wanted.append(summary(journal.read(state, RUN)))
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        lines = sum(end <= cut for end in ends)  # its last byte, the line end, is not needed
        if not lines:
            with pytest.raises(ConfigError, match="does not begin with a run"):
                journal.read(state, RUN)
            continue
        assert summary(journal.read(state, RUN)) == wanted[lines - 1], cut
        if cut % 29 == 0:
            again = RunJournal.take_up(state, RUN, lambda point: None)
            again.write(Found({"after": True}))
            again.close()
            record = journal.read(state, RUN)
            assert record.values["after"] is True and record.steps == wanted[lines - 1][4]


def test_one_at_a_time_and_every_write_is_told(tmp_path: Path) -> None:
    state, points = StateDirectory(tmp_path), list[str]()
    written = RunJournal.begin(state, HEAD, points.append)
    with pytest.raises(RefusedError, match="another worktop runs it now"):
        RunJournal.take_up(state, RUN, points.append)
    assert journal.held(journal.read(state, RUN))
    written.write(LINES[0])
    written.close()
    assert points == ["before head", "after head", "before found", "after found"]
    assert not journal.held(journal.read(state, RUN))
    with pytest.raises(ConfigError, match="there is no journal"):
        journal.read(state, "../../etc/passwd")


def test_a_full_disk_is_told_and_what_it_left_spoils_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = StateDirectory(tmp_path)
    written = RunJournal.begin(state, HEAD, lambda point: None)

    def full(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "write_all", full)
        with pytest.raises(RefusedError, match="No space left on device"):
            written.write(LINES[2])
    written.write(LINES[0])
    written.close()
    record = journal.read(state, RUN)
    assert record.values["line_number"] == 4 and not record.plans


def test_a_deadline_goes_by_the_clock_that_nobody_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    until = clock.now().after(100)
    monkeypatch.setattr("time.time", lambda: 0.0)  # somebody has set the clock
    assert 95 < clock.until(until) <= 100
    rebooted = Moment(wall=30.0, boot=7.0, boot_id="another")
    assert clock.until(rebooted) == 30.0, "after a reboot the clock on the wall must do"
    assert clock.until(Moment(wall=-1.0, boot=7.0, boot_id="another")) == 0.0


def test_one_that_was_let_go_of_is_not_written_whatever_has_its_number_now(tmp_path: Path) -> None:
    written = RunJournal.begin(StateDirectory(tmp_path), HEAD, lambda point: None)
    written.close()
    with (tmp_path / "other").open("wb") as other:  # has the number of the descriptor that was closed
        with pytest.raises(RefusedError, match="let go of"):
            written.write(LINES[0])
        other.flush()
        assert os.fstat(other.fileno()).st_size == 0
    written.close()
