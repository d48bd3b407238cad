"""Files below a root: what a link means there, no way out, and files that are none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.host.rooted import Root


def test_a_link_means_what_it_meant_there(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "etc/cron.d").mkdir(parents=True)
    (root / "srv").mkdir()
    (root / "srv/jobs").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    (root / "etc/cron.d/absolute").symlink_to("/srv/jobs")
    (root / "etc/cron.d/relative").symlink_to("../../srv/jobs")
    (root / "etc/cron.d/out").symlink_to("../../../../../../secret")
    (root / "etc/cron.d/host").symlink_to("/etc/hostname")
    (root / "etc/cron.d/loop").symlink_to("loop")
    (root / "folder").symlink_to("/etc")
    below = Root(str(root))
    assert below.read("/etc/cron.d/absolute", 100).data == b"inside"
    assert below.read("/folder/cron.d/relative", 100).data == b"inside"
    assert below.read("/etc/cron.d/out", 100).absent
    assert below.read("/etc/cron.d/host", 100).absent
    assert below.read("/../../../secret", 100).absent
    assert "symbolic links" in below.read("/etc/cron.d/loop", 100).problem
    assert below.link("/folder") == "/etc" and below.link("/srv") == ""
    assert below.names("/folder").names == ("cron.d",)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["..", ".", "a", "b", "/", "up", "abs", ""]), max_size=12).map("/".join))
def test_no_path_leads_out(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    if not root.exists():
        (root / "a/b").mkdir(parents=True)
        (root / "a/up").symlink_to("../../../../..")
        (root / "a/b/abs").symlink_to("/")
        (root / "up").symlink_to("..")
    below = Root(str(root))
    real = os.path.realpath(below._resolved("/" + path))
    assert real == str(root) or real.startswith(f"{root}/")


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    with (tmp_path / "gigantic").open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    below = Root(str(tmp_path))
    assert below.read("/fifo", 100).problem == "it is no regular file"
    assert below.read("/folder", 100).problem
    assert below.read("/gigantic", 1024).problem == "it has 104857600 bytes, at most 1024 are read"
    assert below.read("/nothing", 100).absent


def test_a_file_that_changes_is_not_half_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    path.write_text("one")
    real = os.read

    moments = iter(range(100))

    def written_meanwhile(handle: int, size: int) -> bytes:
        data = real(handle, size)
        os.utime(path, ns=(0, next(moments)))
        return data

    monkeypatch.setattr(os, "read", written_meanwhile)
    content = Root(str(tmp_path)).read("/log", 1 << 20)
    assert content.problem == "it changes while it is read" and content.data == b""


def test_what_was_looked_at_is_noticed_when_it_changes(tmp_path: Path) -> None:
    (tmp_path / "tab").write_text("one")
    below = Root(str(tmp_path))
    below.read("/tab", 100)
    below.read("/absent", 100)
    assert not below.changed()
    (tmp_path / "absent").write_text("now")
    assert below.changed()
    below.forget()
    below.names("/")
    assert not below.changed()
