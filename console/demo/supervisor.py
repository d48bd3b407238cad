"""The demo host's supervisor: a process of its own that mounts, boots, watches, and tears everything down.

    unshare --mount python -m console.demo.supervisor NAME [--keep]

It says what it does as JSON lines on standard output: {"step": ...}, then {"state": ...} or {"problem": ...}.
Its standard input is the life line: when that closes (the console ended, however it ended) the host is torn down;
with --keep it goes on until SIGTERM. The mounts are made in its own mount namespace, so they cannot be left behind.
When the supervisor itself is killed with -9 the kernel sends SIGTERM to systemd-nspawn, which powers the host off;
the files are then removed by the next run.

`systemctl reboot` inside is a reboot: the host comes up again on the same files, with another boot id and an empty
/run and /tmp; what was started from outside ends.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from console.demo import fleet, overlay, reach, state
from console.demo.enter import exec_argv, namespaces
from console.errors import DemoError, Problem

BOOT_TIMEOUT = 60.0
_GOING_DOWN = "systemd-shutdow"  # what PID 1 is called then
_REBOOTED = 133  # how systemd-nspawn ends with --keep-unit when its payload has asked for a reboot


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line to the one who waits."""

    step: str = ""
    state: state.State | None = None
    problem: Problem | None = None


def say(report: Report) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody waits any more: the life line says so too
        sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
        sys.stdout.buffer.flush()


class _Stop(Exception):
    """SIGTERM, SIGINT, SIGHUP, or the life line was closed."""


def main(name: str, keep: bool) -> int:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _raise_stop)
    os.umask(0o022)  # what is written is a host's, not the caller's
    lock = state.try_lock(name)
    if lock is None:
        say(Report(problem=Problem(f"demo host {name}", "is running already", "worktop demo stop")))
        return 1
    try:
        state.clean_up(name)
        _serve(name, keep)
        return 0
    except _Stop:
        return 0
    except DemoError as error:
        say(Report(problem=error.problem))
        return 1
    except OSError as error:
        say(
            Report(
                problem=Problem("no demo host", f"{error.strerror}: {error.filename}", "is the disk or memory full?")
            )
        )
        return 1
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        state.clean_up(name)
        state.release(name, lock)


def _raise_stop(number: int, frame: object) -> None:
    raise _Stop


def _serve(name: str, keep: bool) -> None:
    where = state.folder(name)
    where.mkdir(mode=0o755, parents=True)
    me = state.identify(os.getpid())
    assert me is not None
    now = state.State(name=name, kept=keep, supervisor=me)
    state.write(now)

    say(Report(step="mounting an overlay of the running system"))
    root = overlay.mount(where / "base")
    overlay.stage(root)
    fleet.stage(root)

    say(Report(step="booting systemd"))
    cgroups = _cgroups(name)
    now = msgspec.structs.replace(now, cgroups=tuple(str(path) for path in cgroups))
    state.write(now)  # before they are made, so that none can be forgotten
    command = _nspawn(name, root, reach.binds(where / "base", root))
    nspawn, now = _boot(now, command, cgroups)
    leader = now.leader_pid
    for step in fleet.start(leader):
        if step:
            say(Report(step=step))
        _check_life_line(keep, 0)
    now = msgspec.structs.replace(now, ready=True)
    state.write(now)
    say(Report(state=now))
    while True:
        now = _follow(now, nspawn)
        if nspawn.returncode != _REBOOTED:
            return
        for path in cgroups:
            state.remove_cgroup(path)  # what the last boot has left in them
        nspawn, now = _boot(now, command, cgroups)


def _boot(now: state.State, command: list[str], cgroups: list[Path]) -> tuple[subprocess.Popen[bytes], state.State]:
    """systemd comes up on the files as they are."""
    log_path = state.folder(now.name) / "boot.log"
    for path in cgroups:
        _make_cgroup(path)
    with log_path.open("wb") as log:
        nspawn = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=os.environ | {"SYSTEMD_LOG_LEVEL": "notice", "SYSTEMD_NSPAWN_LOCK": "0"},
            preexec_fn=lambda: _join(cgroups),
        )
    now = msgspec.structs.replace(now, nspawn=state.identify(nspawn.pid), leader=None)
    state.write(now)
    leader = _wait_for_leader(nspawn, log_path, now.kept)
    now = msgspec.structs.replace(now, leader=state.identify(leader))
    state.write(now)
    _wait_for_boot(nspawn, leader, log_path, now.kept)
    return nspawn, now


def _follow(now: state.State, nspawn: subprocess.Popen[bytes]) -> state.State:
    """Until systemd-nspawn ends. Where it has a scope of its own it boots the host again by itself."""
    while nspawn.poll() is None:
        _check_life_line(now.kept, 1.0)
        _let_go(now.leader_pid)
        if now.leader is not None and not now.leader.alive() and (leader := _leader(nspawn.pid)):
            now = msgspec.structs.replace(now, leader=state.identify(leader))
            state.write(now)
    return now


def _let_go(leader: int) -> None:
    """A host that goes down stops all processes before it kills them, and nsenter stops itself with its child: it must
    go on to take the child's end, which the kernel waits for."""
    try:
        if Path(f"/proc/{leader}/comm").read_text().strip() != _GOING_DOWN:
            return
    except OSError:
        return
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().startswith(b"\0".join(word.encode() for word in namespaces(leader)[:2]) + b"\0"):
                os.kill(int(path.parent.name), signal.SIGCONT)


def _check_life_line(keep: bool, seconds: float) -> None:
    """Wait up to `seconds`; _Stop when nobody holds the other end any more."""
    if keep:
        time.sleep(seconds)
    elif select.select([0], [], [], seconds)[0] and not os.read(0, 4096):
        raise _Stop


def _nspawn(name: str, root: Path, binds: list[tuple[Path, Path]]) -> list[str]:
    own_scope = Path("/run/systemd/system").is_dir()  # the outer systemd makes a scope with delegated controllers
    command = ["setpriv", "--pdeathsig=TERM", "--", "systemd-nspawn", "--quiet", "--register=no"]
    if not own_scope:
        command.append("--keep-unit")
    command += ["--private-network", "--kill-signal=SIGRTMIN+3", "--resolv-conf=off", "--timezone=off"]
    command += ["--link-journal=no", "--console=pipe", "--tmpfs=/tmp:mode=1777"]
    command += [f"--machine={state.machine(name)}", f"--hostname={overlay.HOSTNAME}", f"--directory={root}"]
    command += [f"--bind-ro={_escaped(what)}:{_escaped(target)}" for what, target in binds]
    return [*command, overlay.INIT_PATH]


def _escaped(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace(":", "\\:")


def _cgroups(name: str) -> list[Path]:
    """Where to make cgroups of its own, one in every hierarchy: limits and counts of two hosts must not meet, and
    what is left of one can be found. Where an outer systemd makes a scope none are needed."""
    if Path("/run/systemd/system").is_dir():
        return []
    wanted = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            tops = [Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")]
            path = "/"  # a cgroup v2 that has processes cannot pass controllers on to its children
        else:
            tops = [Path("/sys/fs/cgroup") / controllers.removeprefix("name=")]
        for top in tops:
            if (top / "cgroup.procs").is_file():
                wanted.append(top / path.lstrip("/") / f"worktop-demo-{name}")
                break
    return wanted


def _make_cgroup(path: Path) -> None:
    with contextlib.suppress(OSError):  # cgroup v2; refused where it does not have the controllers
        (path.parent / "cgroup.subtree_control").write_text("+cpu +memory +pids")
    path.mkdir(exist_ok=True)
    for file in ("cpuset.cpus", "cpuset.mems"):
        # on cgroup v1 a fresh one has none, and takes no process; on v2 it inherits
        if (path / "tasks").exists() and (path / file).exists():
            (path / file).write_text((path.parent / file).read_text())


def _join(cgroups: list[Path]) -> None:
    for path in cgroups:
        (path / "cgroup.procs").write_text("0")


def _wait_for_leader(nspawn: subprocess.Popen[bytes], log: Path, keep: bool) -> int:
    deadline = time.monotonic() + BOOT_TIMEOUT
    while True:
        leader = _leader(nspawn.pid)
        if leader:
            return leader
        _check_boot(nspawn, log, deadline, "systemd-nspawn started no system")
        _check_life_line(keep, 0.05)


def _leader(nspawn: int) -> int | None:
    """The container's PID 1: nspawn's descendant that is number 1 of a PID namespace below, and is systemd by now."""
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in path.read_text().splitlines() if ":\t" in line)
        except OSError:
            continue
        if fields["PPid"] == str(nspawn) and fields["NSpid"].split()[1:] == ["1"] and fields["Name"] == "systemd":
            return int(fields["Pid"])
    return None


def _wait_for_boot(nspawn: subprocess.Popen[bytes], leader: int, log: Path, keep: bool) -> None:
    """Until its system bus answers: from then on systemctl works inside."""
    deadline = time.monotonic() + BOOT_TIMEOUT
    bus = Path(f"/proc/{leader}/root/run/dbus/system_bus_socket")
    while not (bus.exists() and _answers(leader)):
        _check_boot(nspawn, log, deadline, "its systemd did not come up")
        _check_life_line(keep, 0.1)


def _answers(leader: int) -> bool:
    asked = subprocess.run(exec_argv(leader, ["systemctl", "is-system-running"]), capture_output=True, text=True)
    return asked.stdout.strip() in ("starting", "running", "degraded")


def _check_boot(nspawn: subprocess.Popen[bytes], log: Path, deadline: float, what: str) -> None:
    if nspawn.poll() is None and time.monotonic() < deadline:
        return
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    raise DemoError(what, lines[-1] if lines else "it said nothing", "systemd-nspawn must be allowed to boot here")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--keep" in sys.argv[2:]))
