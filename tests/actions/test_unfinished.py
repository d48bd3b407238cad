"""Plans that were cut off: what their journals say, and what the commands make of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.actions import journal
from console.actions.journal import Journal
from console.actions.resuming import abandoned
from console.cli.main import run
from console.errors import RefusedError
from console.fleet.plan import Actor, FileChange, Plan, Step, StepOutcome, UnitChange
from console.state import StateDirectory

ID = "20261129T203107Z-3f2a91"
WHO = Actor(login="deploy", user="root", uid=0)
STEPS = tuple(Step(kind="unit", title=f"restart mail@{n}", unit=f"mail@{n}.service", verb="restart") for n in (1, 2, 3))
DONE = StepOutcome(state="done")


def begun(state: StateDirectory, id: str = ID) -> Journal:
    plan = Plan(id=id, made=1.0, verb="restart", title="Restart 3 workers of mail", role="mail", steps=STEPS)
    return Journal.begin(state, plan, "", WHO, "here")


def test_a_plan_that_was_cut_off_is_found_again(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    written = begun(state)
    written.unit_change(UnitChange(unit="mail@1.service", active=True, enabled="enabled"))
    written.step_ended(0, DONE)
    written.unit_change(UnitChange(unit="mail@2.service", active=True))
    written.unit_change(UnitChange(unit="mail@1.service", active=False))
    (now,) = journal.unfinished(state)
    assert (now.running, now.done, now.steps, now.next) == (True, 1, 3, "restart mail@2")
    with pytest.raises(RefusedError, match="deploy as root is applying it now"):
        abandoned(state, ID)
    written.close()
    (now,) = journal.unfinished(state)
    assert not now.running and now.who == WHO
    record = journal.read(state, ID)
    assert [(change.unit, change.active) for change in record.units] == [
        ("mail@1.service", True),
        ("mail@2.service", True),
    ], "as each was before the plan"
    assert (record.state, record.cut_off) == ("unsure", True)
    _, text = abandoned(state, ID)
    assert text.startswith("1 of 3 steps were done; given up: restart mail@2, restart mail@3; worktop undo")
    assert journal.unfinished(state) == ()
    with pytest.raises(RefusedError, match="it was given up"):
        abandoned(state, ID)


def test_an_end_is_an_end_unless_the_host_was_lost(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    for id, open in ((ID, False), ("20261129T203108Z-3f2a91", True)):
        written = begun(state, id)
        written.ended("partly", 0, open)
        written.close()
    assert [one.plan for one in journal.unfinished(state)] == ["20261129T203108Z-3f2a91"]
    journal.close(state, "20261129T203108Z-3f2a91", ID)
    assert journal.read(state, "20261129T203108Z-3f2a91").closed == ID and journal.unfinished(state) == ()


def test_a_unit_that_was_not_loaded_did_not_start_at_boot(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    units = ("mail@2.service", "mail@3.service")
    steps = (*STEPS, Step(kind="unit", title="enable", units=units, verb="enable"))
    plan = Plan(id=ID, made=1.0, verb="scale", title="Scale mail", role="mail", steps=steps)
    written = Journal.begin(state, plan, "", WHO, "here")
    for unit in ("mail@1.service", *units):
        written.unit_change(UnitChange(unit=unit, active=False))
    written.unit_change(UnitChange(unit=units[0], active=True, enabled="enabled-runtime"))
    written.close()
    assert [(change.active, change.enabled) for change in journal.read(state, ID).units] == [
        (False, ""),
        (False, "enabled-runtime"),
        (False, "disabled"),
    ], "what was started without being enabled, what told it before it was enabled, what told nothing"


def test_of_each_file_the_first_before_and_the_last_after_count(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    written = begun(state)
    path = "/etc/systemd/system/mail@.service.d/50.conf"
    written.file_change(FileChange(path=path, before=None, after=b"one"))
    written.file_change(FileChange(path=path, before=b"one", after=b"\xfftwo"))
    written.file_change(FileChange(path="/etc/crontab", before=b"# old\n", after=b"# new\n", mode=0o600))
    written.close()
    drop_in, crontab = journal.read(state, ID).files
    assert (drop_in.before, drop_in.after) == (None, b"\xfftwo")
    assert (crontab.before, crontab.after, crontab.mode) == (b"# old\n", b"# new\n", 0o600)
    (one,) = journal.undoable(state)
    assert (one.rows, one.units, one.files, one.state) == (0, 0, 2, "unsure")


def test_the_commands_say_what_was_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORKTOP_STATE", str(tmp_path))
    monkeypatch.setenv("WORKTOP_CONFIG", "")
    monkeypatch.chdir(tmp_path)
    state = StateDirectory(tmp_path)
    written = begun(state)
    written.unit_change(UnitChange(unit="mail@1.service", active=True))
    written.close()
    assert run(["audit"]) == 0
    said = capfd.readouterr().out
    assert (
        f"cut off after 0 of 3 steps: Restart 3 workers of mail; worktop continue {ID}, or worktop abandon {ID}" in said
    )
    assert run(["--read-only", "abandon", ID]) == 2
    assert run(["abandon", ID, "--why", "it is late"]) == 0
    assert "abandoned: 0 of 3 steps were done" in capfd.readouterr().out
    assert run(["audit"]) == 0
    said = capfd.readouterr().out
    assert "cut off" not in said and "stopped" in said
    assert run(["abandon", ID]) == 2 and run(["continue", "nonsense", "--yes"]) == 2
    assert "it was given up" in capfd.readouterr().err
