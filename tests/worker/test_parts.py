"""The parts of the worker: handlers, holder, sd_notify, log."""

from __future__ import annotations

import io
import os
import socket
from pathlib import Path

import pytest

from console.errors import ConfigError
from console.worker.handlers import load_handlers
from console.worker.holder import start_ticks, this_process, unit_of
from console.worker.log import Log
from console.worker.notify import Notifier

SAMPLES = "tests.worker.sample_handlers"


def test_handlers_are_found_by_reference() -> None:
    assert "record" in load_handlers(f"{SAMPLES}:HANDLERS")


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("no-colon", "not of the form module:object; for example --handlers app.jobs:HANDLERS"),
        ("absent_module:X", "no module absent_module; set PYTHONPATH"),
        (f"{SAMPLES}:ABSENT", f"{SAMPLES} has no ABSENT; name a mapping"),
        (f"{SAMPLES}:EMPTY", "is an empty mapping; expected a mapping from job type to function"),
        (f"{SAMPLES}:NOT_CALLABLE", "'x' -> a int; expected text -> function(job)"),
        (f"{SAMPLES}:record", "is a function; expected a mapping"),
        ("broken_handlers:X", "importing broken_handlers failed: ZeroDivisionError: division by zero"),
        ("needy_handlers:X", "it imports absent_library, which is not there"),
    ],
)
def test_a_bad_reference_says_which_part_is_wrong(
    reference: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_handlers.py").write_text("X = 1 / 0")
    (tmp_path / "needy_handlers.py").write_text("import absent_library")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError) as caught:
        load_handlers(reference)
    assert str(caught.value).startswith(f"--handlers {reference}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("cgroup", "unit"),
    [
        ("0::/system.slice/system-mail.slice/mail-worker@1.service\n", "mail-worker@1.service"),
        ("12:pids:/x\n1:name=systemd:/system.slice/a.service\n0::/system.slice/a.service\n", "a.service"),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/b.service\n", "b.service"),
        ("0::/user.slice/user-1000.slice/session-3.scope\n", "session-3.scope"),
        ("0::/\n", ""),
        ("", ""),
    ],
)
def test_the_unit_is_the_innermost_of_the_cgroup(cgroup: str, unit: str) -> None:
    assert unit_of(cgroup) == unit


def test_this_process_is_told_from_a_reused_pid() -> None:
    holder = this_process()
    stat = Path(f"/proc/{os.getpid()}/stat").read_text()
    assert (holder.pid, holder.start) == (os.getpid(), start_ticks(stat))
    assert holder.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert start_ticks("7 (a) b) S " + " ".join(map(str, range(4, 60)))) == 22


@pytest.mark.parametrize("abstract", [False, True])
def test_notifications_reach_the_socket(abstract: bool, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.settimeout(5)
        address = f"@worktop-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
        listener.bind("\0" + address[1:] if abstract else address)
        notifier = Notifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "30000000"})
        assert notifier.watchdog == 30
        assert notifier.send("READY=1", "STATUS=a\nb")
        assert listener.recv(4096) == b"READY=1\nSTATUS=a b"


def test_without_a_service_manager_nothing_is_said() -> None:
    assert not Notifier({}).send("READY=1")
    assert not Notifier({"NOTIFY_SOCKET": "/nowhere/at/all"}).send("READY=1")
    assert Notifier({"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}).watchdog is None


def test_the_log_is_one_safe_line_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    stream = io.StringIO()
    Log("w", stream)("password=hunter2 \x1b[31mred\nline", "warning")
    (line,) = stream.getvalue().splitlines()
    assert "hunter2" not in line
    assert "\x1b" not in line
    assert " w: warning: password=" in line
    monkeypatch.setenv("JOURNAL_STREAM", "8:1")
    stream = io.StringIO()
    Log("w", stream)("text", "error")
    assert stream.getvalue() == "<3>w: error: text\n"
