"""What is known about a demo host from outside: its folder, its lock, its processes; and how to clean up after it.

    /run/worktop-demo/NAME.lock      held (flock) by the supervisor for as long as it lives
    /run/worktop-demo/NAME/          state.json, boot.log, base/ (mount point; the mounts live in the supervisor's
                                     own mount namespace and end with its processes)

Processes are named by (boot id, pid, start time), so that nothing but the demo host's own is ever killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from console.errors import DemoError
from console.fleet.model import Value

RUN = Path("/run/worktop-demo")
DEFAULT_NAME = "demo"


class Identity(Value, frozen=True, kw_only=True):
    """One process of one boot of the machine; `start` in clock ticks since boot (field 22 of /proc/PID/stat)."""

    boot_id: str
    pid: int
    start: int

    def alive(self) -> bool:
        """True while this very process runs (a zombie has ended)."""
        found = _stat(self.pid)
        return self.boot_id == boot_id() and found is not None and found[1] == self.start and found[0] not in "ZX"

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Signal this process and no other that got its number."""
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return
        try:
            if self.alive():
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


class State(Value, frozen=True, kw_only=True):
    """What the supervisor writes down, so that others can enter, stop and clean up the demo host."""

    name: str
    kept: bool = False  # goes on when the console is left
    ready: bool = False  # the fleet has been seeded and started
    supervisor: Identity
    nspawn: Identity | None = None
    leader: Identity | None = None  # its systemd: PID 1 inside
    cgroups: tuple[str, ...] = ()  # made for it; removed with it

    @property
    def bus_address(self) -> str:
        """Its system bus, reachable from outside as root."""
        return f"unix:path=/proc/{self.leader_pid}/root/run/dbus/system_bus_socket"

    @property
    def leader_pid(self) -> int:
        if self.leader is None:
            raise DemoError(f"demo host {self.name}", "not booted yet", "try again in a few seconds")
        return self.leader.pid


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> Identity | None:
    """The identity of a running process; None when there is none."""
    found = _stat(pid)
    return None if found is None else Identity(boot_id=boot_id(), pid=pid, start=found[1])


def _stat(pid: int) -> tuple[str, int] | None:
    """(state letter, start time); the command in parentheses may hold blanks and parentheses itself."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])


def machine(name: str) -> str:
    """What systemd-nspawn calls it."""
    return f"worktop-{name}"


def folder(name: str) -> Path:
    return RUN / name


def read(name: str) -> State | None:
    """The state of a demo host that was started and not cleaned up; None when there is none."""
    try:
        return msgspec.json.decode((folder(name) / "state.json").read_bytes(), type=State)
    except (OSError, msgspec.DecodeError):
        return None


def write(state: State) -> None:
    """Replace the state in one step: a reader sees the old one or the new one."""
    path = folder(state.name) / "state.json"
    fresh = path.with_suffix(".new")
    fresh.write_bytes(msgspec.json.encode(state))
    fresh.replace(path)


def running(name: str) -> State | None:
    """The state of a demo host whose systemd and supervisor are alive."""
    state = read(name)
    if state and state.supervisor.alive() and state.leader and state.leader.alive():
        return state
    return None


def try_lock(name: str) -> int | None:
    """Take the name for this process: a descriptor to keep open, or None when another has it."""
    RUN.mkdir(mode=0o755, parents=True, exist_ok=True)
    path = RUN / f"{name}.lock"
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return None
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(handle).st_ino:
                return handle
        os.close(handle)  # removed by the one who had it: take the new one


def release(name: str, lock: int) -> None:
    """Give the name back and leave no file."""
    (RUN / f"{name}.lock").unlink(missing_ok=True)
    os.close(lock)
    with contextlib.suppress(OSError):
        RUN.rmdir()  # only when no other demo host is there


def names() -> list[str]:
    """Every demo host that has left a trace, running or not."""
    if not RUN.is_dir():
        return []
    return sorted({path.name.removesuffix(".lock") for path in RUN.iterdir()})


def sweep() -> list[str]:
    """Clean up after demo hosts that nobody supervises any more; their names."""
    swept = []
    for name in names():
        lock = try_lock(name)
        if lock is None:
            continue
        clean_up(name)
        release(name, lock)
        swept.append(name)
    return swept


def clean_up(name: str, timeout: float = 20.0) -> None:
    """End what is left of a demo host and remove its files. The caller holds its lock.

    Killing its PID 1 ends every process inside (the kernel ends the PID namespace) and, with the last of them, the
    mount namespace with all its mounts.
    """
    state = read(name)
    if state:
        # systemd-nspawn ends by itself after its payload, and tidies up; before it has one it must be told
        for process, patience in ((state.leader, timeout), (state.nspawn, 5.0 if state.leader else 0.0)):
            if process is state.leader and process:
                process.kill()
            deadline = time.monotonic() + patience
            while process and process.alive() and time.monotonic() < deadline:
                time.sleep(0.02)
        if state.nspawn:
            state.nspawn.kill()
        for process in _inhabitants(name):  # what was started before it was written down
            process.kill()
        for path in state.cgroups:
            remove_cgroup(Path(path))
    for path in ("propagate", "unix-export"):
        for part in (f"{path}/{machine(name)}", path):  # systemd-nspawn made them; others' are not empty
            with contextlib.suppress(OSError):
                Path("/run/systemd/nspawn", part).rmdir()
    _remove_files(folder(name))


def _inhabitants(name: str) -> Iterator[Identity]:
    """The processes in the demo host's cgroups: its own, or the scope that the outer systemd made for it."""
    ours = {f"worktop-demo-{name}", f"{machine(name)}.scope", f"machine-{machine(name)}.scope"}
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        with contextlib.suppress(OSError):
            parts = {part for line in path.read_text().splitlines() for part in line.split("/")}
            process = identify(int(path.parent.name))
            if parts & ours and process and process.pid != os.getpid():
                yield process


def _remove_files(where: Path) -> None:
    """Never recursively: in the supervisor's mount namespace the running system lies below `base`."""
    base = where / "base"
    if base.is_mount():
        subprocess.run(["umount", "--lazy", str(base)], capture_output=True)
    with contextlib.suppress(FileNotFoundError):
        base.rmdir()
    if where.is_dir():
        for path in where.iterdir():
            path.unlink()
        where.rmdir()


def remove_cgroup(top: Path, timeout: float = 5.0) -> None:
    """Remove a cgroup and those below it; processes that are just ending hold it for a moment."""
    deadline = time.monotonic() + timeout
    while top.is_dir():
        for path in _deepest_first(top):
            with contextlib.suppress(OSError):
                path.rmdir()
        if not top.is_dir() or time.monotonic() > deadline:
            return
        time.sleep(0.05)


def _deepest_first(top: Path) -> Iterator[Path]:
    for where, _, _ in os.walk(top, topdown=False):
        yield Path(where)
