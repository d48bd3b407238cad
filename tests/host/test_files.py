"""Files that are replaced through the agent: whole, compared, kept, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.errors import HostError
from console.host import files
from console.host.files import digest, place_of, read_file, replace_file
from console.host.unit_check import verify

UNIT = b"[Unit]\nDescription=work\n[Service]\nExecStart=/bin/sleep 9\n"
LIMIT = b"[Service]\nMemoryMax=256M\n"


@pytest.fixture
def units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of units that stands for /etc/systemd/system, and a state directory."""
    folder = tmp_path / "system"
    folder.mkdir()
    monkeypatch.setattr(files, "UNITS", (str(folder),))
    monkeypatch.setenv("WORKTOP_STATE", str(tmp_path / "state"))
    return folder


@pytest.mark.parametrize(
    "path",
    [
        *("/etc/passwd", "/etc/systemd/system", "/etc/systemd/system/../../passwd", "etc/crontab", ""),
        *("/etc/systemd/system/a.service.d/../b", "/etc/systemd/system/a.service.d/b/c", "/etc/cron.d/.hidden"),
        *("/etc/systemd/system/.worktop-1.tmp", "/etc/cron.d/sub/file", "/lib/systemd/system/ssh.service"),
        *("/etc/systemd/system/a.wants/b.service", "/etc/systemd/system/a\nb.service", "/etc/crontab/x"),
    ],
)
def test_nothing_else_is_touched(path: str) -> None:
    with pytest.raises(HostError, match="edits no files there"):
        place_of(path)


@pytest.mark.parametrize(
    ("path", "drop_ins", "unit"),
    [
        ("/etc/systemd/system/mail-worker@.service", "", True),
        ("/etc/systemd/system/mail-worker@.service.d/50-worktop.conf", "mail-worker@.service.d", True),
        ("/etc/cron.d/reports", "", False),
        ("/etc/crontab", "", False),
        ("/var/spool/cron/crontabs/deploy", "", False),
    ],
)
def test_what_may_be_edited(path: str, drop_ins: str, unit: bool) -> None:
    place = place_of(path)
    assert (place.drop_ins, place.is_unit, f"{place.folder}/{place.name}") == (drop_ins, unit, path)


def test_a_drop_in_is_made_replaced_and_removed(units: Path) -> None:
    path = f"{units}/w@.service.d/50-worktop.conf"
    assert read_file(path).content is None
    made = replace_file(path, "", LIMIT)
    assert (made.backup, made.sha256) == ("", digest(LIMIT))
    found = read_file(path)
    assert (found.content, found.mode, found.sha256) == (LIMIT, 0o644, digest(LIMIT))
    os.chmod(path, 0o640)  # noqa: PTH101
    replaced = replace_file(path, found.sha256, LIMIT * 2)
    assert read_file(path).mode == 0o640
    kept = Path(replaced.backup)
    assert kept.read_bytes() == LIMIT
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    removed = replace_file(path, digest(LIMIT * 2), None)
    assert Path(removed.backup).read_bytes() == LIMIT * 2
    assert list(units.iterdir()) == []  # the folder was made for it


def test_what_somebody_else_changed_is_left_alone(units: Path) -> None:
    path = units / "w@.service"
    path.write_bytes(UNIT)
    seen = read_file(str(path)).sha256
    path.write_bytes(UNIT + b"# mine\n")
    for content in (LIMIT, None):
        with pytest.raises(HostError, match="changed: by somebody else"):
            replace_file(str(path), seen, content)
    with pytest.raises(HostError, match="is there: by somebody else"):
        replace_file(str(path), "", LIMIT)
    path.unlink()
    with pytest.raises(HostError, match="gone: by somebody else"):
        replace_file(str(path), seen, LIMIT)
    assert list(units.iterdir()) == []  # nothing half written stays


def test_a_change_while_it_is_written_is_seen(units: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = units / "w@.service"
    path.write_bytes(UNIT)
    synced = os.fsync

    def meanwhile(handle: int) -> None:
        synced(handle)
        path.write_bytes(b"theirs")

    seen = read_file(str(path)).sha256
    monkeypatch.setattr(os, "fsync", meanwhile)
    with pytest.raises(HostError, match="changed: by somebody else"):
        replace_file(str(path), seen, LIMIT, backup=False)
    assert path.read_bytes() == b"theirs"
    assert [entry.name for entry in units.iterdir()] == ["w@.service"]


def test_symbolic_links_are_not_followed(units: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "50-worktop.conf").write_bytes(b"victim")
    (units / "w@.service.d").symlink_to(target)
    (units / "x.service").symlink_to(target / "50-worktop.conf")
    (units / "masked.service").symlink_to("/dev/null")
    for path in (units / "w@.service.d/50-worktop.conf", units / "x.service", units / "masked.service"):
        assert "symbolic link" in read_file(str(path)).problem
        with pytest.raises(HostError, match="symbolic link"):
            replace_file(str(path), digest(b"victim"), LIMIT)
    assert (target / "50-worktop.conf").read_bytes() == b"victim"


def test_a_folder_or_a_pipe_is_no_file(units: Path) -> None:
    os.mkfifo(units / "p.service")
    assert read_file(f"{units}/p.service").problem == "it is no regular file"
    with pytest.raises(HostError, match="no regular file"):
        replace_file(f"{units}/p.service", "", LIMIT)


async def test_a_unit_is_checked_before_it_is_there(units: Path) -> None:
    (units / "w@.service").write_bytes(UNIT)
    place = place_of(f"{units}/w@.service.d/50-worktop.conf")
    await verify(place, LIMIT, False)
    for wrong in (
        b"[Service]\nMemoryMax=lots\n",
        b"[Service]\nMemroyMax=1G\n",
        b"[Service\n",
        b"[Unit]\nMemoryMax=1G\n",
    ):
        with pytest.raises(HostError, match=r"w@\.service\.d/50-worktop\.conf:\d: .*nothing was installed"):
            await verify(place, wrong, False)
    with pytest.raises(HostError, match="nothing was installed"):
        await verify(place_of(f"{units}/w@.service"), b"[Service]\nType=simple\n", False)


async def test_what_was_wrong_before_is_not_held_against_a_drop_in(units: Path) -> None:
    (units / "w@.service").write_bytes(b"[Service]\nExecStart=/no/such/command\n")
    await verify(place_of(f"{units}/w@.service.d/50-worktop.conf"), LIMIT, False)
