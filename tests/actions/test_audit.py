"""The state directory, the audit, the lock, and who is named: files and sockets only."""

from __future__ import annotations

import json
import os
import socket
import stat
from pathlib import Path

import pytest

from console.actions import audit
from console.actions.locks import locked
from console.actions.who import this_person
from console.errors import ConfigError, RefusedError
from console.fleet.model import Job
from console.fleet.plan import Actor, AuditEntry, Plan, Statement, Step
from console.state import StateDirectory

SECRET = "hunter2"


def entry(number: int, state: str = "done") -> AuditEntry:
    plan = Plan(
        id=f"20261129T20310{number}Z-3f2a91",
        made=1.0,
        verb="discard",
        title="Discard 1 job of letters",
        samples=(Job(id="7", payload=f'{{"password": "{SECRET}"}}', error=f"token={SECRET}"),),
        steps=(
            Step(
                kind="sql",
                title="delete 1 job",
                statement=Statement(
                    sql="SET lease_token = NULL", psql=SECRET, parameters=(("note", f"--token {SECRET}"),)
                ),
            ),
        ),
        command=f"worktop discard --id 7 --why 'api_key={SECRET}'",
    )
    return AuditEntry(
        at=float(number),
        plan=plan.id,
        verb=plan.verb,
        title=plan.title,
        who=Actor(login="deploy", user="root", uid=0),
        why=f"postgresql://app:{SECRET}@db/app",
        state=state,
        text=f"secret={SECRET}",
        rows=1,
        shown=audit.shown(plan),
    )


def test_lines_are_appended_masked_and_read_newest_first(state: StateDirectory) -> None:
    for number in range(3):
        audit.append(state, entry(number, audit.STARTED))
        audit.append(state, entry(number))
    audit.append(state, entry(3, audit.STARTED))
    path = state.path / audit.FILE
    assert SECRET not in path.read_text()
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(state.path.stat().st_mode)) == (0o600, 0o700)
    found = audit.entries(state)
    assert [(one.at, one.state) for one in found] == [(3, "started"), (2, "done"), (1, "done"), (0, "done")]
    assert [one.at for one in audit.entries(state, 2)] == [3, 2]
    assert found[1].shown is not None and found[1].shown.samples[0].payload == ""


def test_a_line_torn_off_by_a_crash_is_skipped(state: StateDirectory) -> None:
    audit.append(state, entry(1))
    path = state.path / audit.FILE
    whole = path.read_bytes()
    for cut in (1, len(whole) // 2, len(whole) - 2):
        path.write_bytes(whole + whole[:cut])
        audit.append(state, entry(2))
        assert [one.at for one in audit.entries(state)] == [2, 1]


def test_the_end_goes_to_the_system_journal(state: StateDirectory, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(str(tmp_path / "journal"))
        journal.settimeout(2)
        audit.append(state, entry(1, audit.STARTED), str(tmp_path / "journal"))
        audit.append(state, entry(2), str(tmp_path / "journal"))
        fields = dict(line.split("=", 1) for line in journal.recv(65536).decode().splitlines())
    assert fields["SYSLOG_IDENTIFIER"] == "worktop" and fields["WORKTOP_PLAN"].startswith("20261129T203102")
    assert fields["MESSAGE"].startswith("deploy as root: Discard 1 job of letters: ")
    assert SECRET not in "".join(fields.values())
    assert not audit.to_journal(entry(3), str(tmp_path / "nothing"))


def test_the_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    find = StateDirectory.find
    assert find({"WORKTOP_STATE": "/srv/state"}, 0).path == Path("/srv/state")
    assert find({"XDG_STATE_HOME": "/x"}, 0).path == Path("/var/lib/worktop")
    assert find({"XDG_STATE_HOME": "/x"}, 1000).path == Path("/x/worktop")
    assert find({}, 1000).path == Path("/home/ann/.local/state/worktop")
    with pytest.raises(ConfigError):
        find({"WORKTOP_STATE": "relative"}, 1000)
    (tmp_path / "open").mkdir(mode=0o755)
    assert stat.S_IMODE(StateDirectory(tmp_path / "open").folder().stat().st_mode) == 0o700
    (tmp_path / "link").symlink_to(tmp_path / "open")
    for path in (tmp_path / "link", Path("/proc/worktop")):
        with pytest.raises(ConfigError, match="WORKTOP_STATE"):
            StateDirectory(path).folder()


def test_two_consoles_do_not_act_on_one_role_at_once() -> None:
    name = f"test-{os.getpid()}"
    with locked(name, ["letters", "films"]):
        with locked(name, ["other"]), locked(f"{name}-2", ["letters"]):
            pass
        with pytest.raises(RefusedError, match=rf"role letters: the worktop of \w+ \(pid {os.getpid()}\)"):
            locked(name, ["letters"]).__enter__()
    with locked(name, ["letters"]):
        pass


def test_who_acts(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    login = tmp_path / "self/loginuid"
    login.write_text("4294967295")
    me = this_person({}, tmp_path)
    assert me.login == "" and me.name == me.user and me.uid == os.geteuid()
    login.write_text("0")
    assert this_person({"SUDO_USER": "ann"}, tmp_path).login == "root"
    assert (
        Actor(login="ann", user="root").name == "ann as root" and Actor(sudo="bob", user="root").name == "bob as root"
    )
    json.dumps(me.uid)
