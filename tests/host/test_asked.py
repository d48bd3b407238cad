"""What is asked for, without a host: entries of the journal, batches of a follow, secrets, states before details."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.errors import HostError, Problem
from console.fleet.model import Hello, LogLine, Role, TreeProcess, Unit
from console.host import logs
from console.host.facts import Keeper
from console.host.follow import LogFollow
from console.host.journal import LONGEST_TEXT, line_of, problem_of
from console.host.logs import BATCH_LINES, KEPT_LINES, LogFollows
from console.host.processes import Scanner
from console.host.protocol import (
    PROTOCOL,
    FollowLog,
    HostUpdate,
    LogUpdate,
    ProcessesUpdate,
    SchedulesUpdate,
    UnitsUpdate,
    decode,
    encode,
)
from console.host.secrets import masked_command, masked_file
from console.host.trees import AT_MOST, tree_of_group, trees_of_host
from tests.host.live import until

HELLO = Hello(protocol=PROTOCOL, version="0", host="h", boot_id="b", user="root", uid=0, manager="system")


def _entry(**fields: object) -> bytes:
    return json.dumps({"__REALTIME_TIMESTAMP": "1500000", "__CURSOR": "c1", "MESSAGE": "hello", **fields}).encode()


# --- entries ----------------------------------------------------------------------------------------------------


def test_who_wrote_an_entry() -> None:
    own = line_of(_entry(_SYSTEMD_UNIT="w@1.service", _PID="77", PRIORITY="3"))
    assert own == LogLine(at=1.5, unit="w@1.service", priority=3, text="hello", pid=77, cursor="c1")
    about = line_of(_entry(_SYSTEMD_UNIT="init.scope", _PID="1", UNIT="w@1.service"))
    assert about and (about.unit, about.by_manager) == ("w@1.service", True)
    forged = line_of(_entry(_SYSTEMD_UNIT="evil.service", _PID="77", UNIT="w@1.service"))
    assert forged and (forged.unit, forged.by_manager) == ("evil.service", False), "anybody can write UNIT="
    user = line_of(_entry(_SYSTEMD_UNIT="user@1.service", _SYSTEMD_USER_UNIT="own@1.service", _PID="9"))
    assert user and (user.unit, user.by_manager) == ("own@1.service", False)
    by_user_manager = line_of(_entry(_SYSTEMD_USER_UNIT="init.scope", USER_UNIT="own@1.service", _PID="9"))
    assert by_user_manager and (by_user_manager.unit, by_user_manager.by_manager) == ("own@1.service", True)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ([104, 105, 255, 10], "hi\ufffd\n"),
        (None, "(a message longer than journalctl tells)"),
        (["one", "two"], "one two"),
        ([[104, 105], None, "x"], "hi x"),
        ("x" * 5000, "x" * LONGEST_TEXT + "…"),
        ("a\x1b[31m\u202eb", "a\x1b[31m\u202eb"),
    ],
)
def test_every_form_of_a_message(message: object, text: str) -> None:
    line = line_of(_entry(MESSAGE=message))
    assert line and line.text == text


def test_what_is_no_entry_is_passed_over() -> None:
    for data in (b"", b"-- No entries --", b"{broken", b"[1]", b'{"__REALTIME_TIMESTAMP":"x"}', b"{" * 100_000):
        assert line_of(data) is None


@given(
    st.dictionaries(
        st.sampled_from(["MESSAGE", "PRIORITY", "_PID", "UNIT", "_SYSTEMD_UNIT", "__CURSOR", "__REALTIME_TIMESTAMP"]),
        st.recursive(st.none() | st.text() | st.integers() | st.booleans(), st.lists, max_leaves=5),
    )
)
def test_no_entry_breaks_the_reader(fields: dict[str, object]) -> None:
    line = line_of(_entry(**fields))
    if line is not None:
        assert 0 <= line.priority <= 7
        assert decode(encode(LogUpdate(1, (line,))).rstrip()) == LogUpdate(1, (line,))


def test_what_journalctl_says_of_itself() -> None:
    assert problem_of("") is None
    denied = problem_of("No journal files were opened due to insufficient permissions.\n")
    assert denied and denied.why == "not permitted" and "systemd-journal" in denied.do
    hint = "Hint: You are currently not seeing messages from other users and the system.\n  Users in groups"
    partly = problem_of(hint)
    assert partly and "other accounts: not permitted" in partly.why
    other = problem_of("Failed to search journal: Bad message\n")
    assert other and other.why == "Failed to search journal: Bad message"


# --- follows ----------------------------------------------------------------------------------------------------


@pytest.fixture
def journalctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journalctl of the test's own, before the real one: what `script` prints is the journal."""
    program = tmp_path / "journalctl"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return program


def _write(program: Path, history: str, live: str) -> None:
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {program}.calls\ncase "$*" in *--follow*) {live};; *) {history};; esac\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def _calls(program: Path) -> list[str]:
    """The arguments of each call so far."""
    calls = Path(f"{program}.calls")
    return calls.read_text().splitlines() if calls.exists() else []


def _lines(first: int, last: int) -> str:
    entry = '{"__REALTIME_TIMESTAMP":"%s000000","__CURSOR":"c%s","MESSAGE":"n%s","_SYSTEMD_UNIT":"w@1.service"}'
    return f"seq {first} {last} | sed 's/.*/{entry.replace('%s', '&')}/'"


async def test_the_follow_begins_where_the_history_ends(journalctl: Path) -> None:
    _write(journalctl, _lines(1, 3), f"{_lines(4, 5)}; exec sleep 60")
    told: list[LogUpdate] = []
    follows = LogFollows(told.append, lambda: False, list, user_manager=False)
    follows.start(7, FollowLog(units=("w@1.service",), lines=3))
    await until(lambda: sum(len(update.lines) for update in told) == 5)
    await follows.stop(7)
    assert [line.text for update in told for line in update.lines] == ["n1", "n2", "n3", "n4", "n5"]
    calls = _calls(journalctl)
    assert "--lines=3" in calls[0] and "--after-cursor=c3" in calls[1] and "--unit=w@1.service" in calls[1]


async def test_a_child_that_ends_is_said_and_started_again_after_its_last_entry(
    journalctl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_RETRY", (0.1,))
    _write(journalctl, "true", f"{_lines(1, 2)}; echo the disk is gone >&2; exit 1")
    told: list[LogUpdate] = []
    follows = LogFollows(told.append, lambda: False, list, user_manager=True)
    follows.start(1, FollowLog(units=("w@1.service",)))
    await until(lambda: len(_calls(journalctl)) > 3)
    await follows.close()
    calls = _calls(journalctl)
    assert "--since=@" in calls[1] and "--after-cursor=c2" in calls[2] and "--user-unit=w@1.service" in calls[1]
    assert any(update.problem and update.problem.why == "the disk is gone" for update in told)


async def test_a_console_that_does_not_read_loses_the_oldest_and_is_told(journalctl: Path) -> None:
    total = KEPT_LINES + 1500
    _write(journalctl, "true", f"{_lines(1, total)}; exec sleep 60")
    told: list[LogUpdate] = []
    busy = [True]
    follows = LogFollows(told.append, lambda: busy[0], list, user_manager=False)
    follows.start(1, FollowLog(units=("w@1.service",), lines=0))
    follow = follows._follows[1]
    await until(lambda: follow._cursor == f"c{total}")
    assert told == []
    busy[0] = False
    await until(lambda: bool(told) and told[-1].lines[-1:] != () and told[-1].lines[-1].text == f"n{total}")
    await follows.close()
    lines = [line for update in told for line in update.lines]
    assert lines[0].text == "… 1500 lines left out" and lines[0].cursor == ""
    assert [line.text for line in lines[1:]] == [f"n{number}" for number in range(1501, total + 1)]
    assert max(len(update.lines) for update in told) <= BATCH_LINES


async def test_an_entry_without_an_end_is_passed_over(journalctl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LONGEST_ENTRY", 100_000)
    huge = """printf '{"__REALTIME_TIMESTAMP":"1","MESSAGE":"'; head -c 400000 /dev/zero | tr '\\0' x; echo '"}'"""
    _write(journalctl, "true", f"{_lines(1, 1)}; {huge}; {_lines(2, 2)}; exec sleep 60")
    told: list[LogUpdate] = []
    follows = LogFollows(told.append, lambda: False, list, user_manager=False)
    follows.start(1, FollowLog(units=("w@1.service",), lines=0))
    await until(lambda: any(line.text == "n2" for update in told for line in update.lines))
    await follows.close()
    assert [line.text for update in told for line in update.lines if line.cursor] == ["n1", "n2"]


async def test_globs_stand_for_the_units_that_are_known(journalctl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_NEW_UNITS_SECONDS", 0.05)
    _write(journalctl, "true", "exec sleep 60")
    known = ["w@1.service", "other@1.service"]
    follows = LogFollows(lambda _: None, lambda: False, lambda: known, user_manager=False)
    follows.start(1, FollowLog(units=("w@*.service", "none@*.service")))
    await until(lambda: any("--follow" in call for call in _calls(journalctl)))
    assert _calls(journalctl)[-1].endswith("--unit=w@1.service --unit=none@*.service")
    known.append("w@2.service")
    follows.units_appeared()
    await until(lambda: "--unit=w@2.service" in _calls(journalctl)[-1])
    await follows.close()


async def test_a_stopped_follow_leaves_no_child(journalctl: Path) -> None:
    _write(journalctl, "true", f"echo $$ > {journalctl}.pid; exec sleep 60")
    follows = LogFollows(lambda _: None, lambda: False, list, user_manager=False)
    follows.start(1, FollowLog(units=("w@1.service",)))
    pid = Path(f"{journalctl}.pid")
    await until(lambda: pid.exists() and pid.read_text().strip())
    child = Path(f"/proc/{pid.read_text().strip()}")
    assert child.exists()
    await follows.stop(1)
    assert not child.exists()
    await follows.stop(1)


async def test_a_host_without_journalctl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    told: list[LogUpdate] = []
    follows = LogFollows(told.append, lambda: False, list, user_manager=False)
    follows.start(1, FollowLog(units=("w@1.service",)))
    await until(lambda: told)
    await follows.close()
    assert told[0].problem and told[0].problem.why == "journalctl: No such file or directory"


@pytest.mark.parametrize("units", [(), ("",), ("a/b",), ("x" * 300,), ("a\0b",)])
async def test_what_is_no_unit_is_refused(units: tuple[str, ...]) -> None:
    follows = LogFollows(lambda _: None, lambda: False, list, user_manager=False)
    with pytest.raises(HostError):
        follows.start(1, FollowLog(units=units))


async def test_a_follow_asks_again_after_its_last_line() -> None:
    heard: list[tuple[LogLine, ...]] = []
    stopped: list[LogFollow] = []

    async def stop(follow: LogFollow) -> None:
        stopped.append(follow)

    follow = LogFollow(("w@1.service",), heard.append, 50, stop)
    assert follow.request() == FollowLog(units=("w@1.service",), lines=50)
    marker = LogLine(at=1, text="… 3 lines left out")
    follow.update(LogUpdate(1, (LogLine(at=1, cursor="c1"), LogLine(at=2, cursor="c2"), marker)))
    assert follow.request().after == "c2"
    follow.failed(Problem("host agent", "was killed"))
    assert follow.problem and follow.number is None
    follow.update(LogUpdate(2))
    assert follow.problem is None
    await follow.stop()
    await follow.stop()
    follow.update(LogUpdate(2, (marker,)))
    assert stopped == [follow] and len(heard) == 1


# --- secrets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('Environment="DB_PASSWORD=two words" MODE=fast', 'Environment="DB_PASSWORD=••••" MODE=fast'),
        ("Environment=API_TOKEN=abc 'PGPASSWORD=x y'", "Environment=API_TOKEN=•••• 'PGPASSWORD=••••'"),
        ("Environment=URL=postgres://app:pw@db/app", "Environment=URL=postgres://app:••••@db/app"),
        ("ExecStart=/bin/run --token abc --fast", "ExecStart=/bin/run --token •••• --fast"),
        ("Environment=MODE=fast\nRestart=always", "Environment=MODE=fast\nRestart=always"),
        ('Environment="A_SECRET=x \\\n  y" B=1', 'Environment="A_SECRET=••••" B=1'),
    ],
)
def test_unit_files_keep_no_secret(line: str, shown: str) -> None:
    assert masked_file(line) == shown
    assert masked_file(shown) == shown


def test_commands_keep_no_secret() -> None:
    command = ("worker", "--token", "abc", "--password=x", "--url", "redis://u:pw@h", "-v", "PGPASSWORD=y z")
    assert masked_command(command) == (
        *("worker", "--token", "••••", "--password=••••", "--url", "redis://u:••••@h", "-v", "PGPASSWORD=••••"),
    )
    assert masked_command(("sleep", "1")) == ("sleep", "1")
    assert masked_command(()) == ()
    assert sum(map(len, masked_command(("x" * 9000, "y")))) < 4100


@given(st.lists(st.text(max_size=30), max_size=6))
def test_any_command_can_be_masked(command: list[str]) -> None:
    assert len(masked_command(tuple(command))) == len(command)


# --- trees ------------------------------------------------------------------------------------------------------


async def test_the_trees_of_this_machine() -> None:
    scanner = Scanner()
    detail = await trees_of_host(scanner)
    assert 0 < len(detail.trees) <= AT_MOST
    assert os.getpid() in {row.ident.pid for row in detail.trees} or detail.cut
    depths = [row.depth for row in detail.trees]
    assert depths[0] == 0 and all(deeper <= depth + 1 for depth, deeper in pairwise(depths))
    assert all(row.owner.evidence for row in detail.trees if row.depth == 0)
    assert not any(row.owner.evidence for row in detail.trees if row.depth)
    assert msgspec.json.decode(msgspec.json.encode(detail.trees), type=tuple[TreeProcess, ...]) == detail.trees
    assert await tree_of_group(scanner, "") == () == await tree_of_group(scanner, "/no/such.service")


async def test_a_long_pass_lets_others_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.host.processes.SLICE_SECONDS", 0.0)
    scanner = Scanner()
    assert sum(1 for _ in scanner.steps()) > 0
    monkeypatch.setattr("console.host.trees._FRESH", -1.0)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    await trees_of_host(scanner)
    counting.cancel()
    assert turns > 0


def test_a_process_at_rest_is_told_as_resting_and_not_made_again() -> None:
    busy = "import sys, time\nwhile time.process_time() < 0.3: pass\nprint('rests', flush=True); time.sleep(60)"
    scanner = Scanner()
    mark = f"rests-{os.getpid()}"
    scanner.look_for([Role(name="rests", match=(mark,))])
    with subprocess.Popen([sys.executable, "-c", busy, mark], stdout=subprocess.PIPE) as child:
        try:
            scanner.scan()
            assert child.stdout is not None
            child.stdout.readline()
            (worked,) = scanner.scan().workers.values()
            assert worked.cpu and worked.cpu > 0
            (rests,) = scanner.scan().workers.values()
            (again,) = scanner.scan().workers.values()
            assert rests.cpu == 0 == again.cpu
            assert again is rests, "the same object: nothing of it is another"
        finally:
            child.kill()


# --- states before details --------------------------------------------------------------------------------------


def test_states_alone_are_not_complete_and_forget_nothing() -> None:
    keeper = Keeper()
    keeper.greeted(HELLO, 0.1)
    for update in (ProcessesUpdate(taken=1.0), HostUpdate(taken=1.0), SchedulesUpdate(taken=1.0)):
        keeper.update(update)
    keeper.update(UnitsUpdate(taken=1.0, full=True, partial=True, items=(Unit(name="w@1.service", active="active"),)))
    assert keeper.facts.units.value and not keeper.complete
    full = Unit(name="w@1.service", active="active", main_pid=7, restarts=3)
    keeper.update(UnitsUpdate(taken=2.0, full=True, items=(full, Unit(name="w@2.service"))))
    assert keeper.complete
    keeper.update(UnitsUpdate(taken=3.0, full=True, partial=True, items=(Unit(name="w@1.service", active="failed"),)))
    assert keeper.facts.units.value == (msgspec.structs.replace(full, active="failed"),)
    assert not keeper.complete
