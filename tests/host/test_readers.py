"""The pure readers: properties, /proc files, journal and kernel lines, crontab files."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.fleet.model import Role, Unit
from console.host import procfs
from console.host.bus import Properties, reason
from console.host.cgroups import Hierarchy, Usage
from console.host.crontabs import IGNORED, Crontabs
from console.host.holders import look_up
from console.host.journal import read_entries
from console.host.kernel_log import memory_kill
from console.host.processes import Scanner
from console.host.units import NOT_SET, Restarts, keep, prevents_restart, unit_from, would_be_restarted

PROPERTIES: Properties = {
    b"LoadState": b"loaded",
    b"ActiveState": b"activating",
    b"SubState": b"auto-restart",
    b"Result": b"exit-code",
    b"ExecMainCode": 1,
    b"ExecMainStatus": 3,
    b"ExecMainStartTimestamp": 1_800_000_000_500_000,
    b"StateChangeTimestamp": 0,
    b"InvocationID": list(range(16)),
    b"MemoryMax": NOT_SET,
    b"TasksMax": 64,
    b"RestartUSec": 3_000_000,
    b"StartLimitIntervalUSec": NOT_SET,
    b"WatchdogUSec": 0,
    b"NRestarts": 12,
    b"DropInPaths": [],
    b"StatusText": b"ok \x1b[31m",
    b"Environment": [b"TOKEN=secret"],
}


@pytest.mark.parametrize(
    ("since", "main_pid", "state"),
    [
        (0, 77, ("activating", "start")),  # never ran since the boot
        (1_800_000_000_400_000, 77, ("activating", "start")),
        (1_800_000_000_600_000, 77, ("failed", "failed")),  # left behind when the unit was stopped: KillMode=none
        (1_800_000_000_400_000, 0, ("failed", "failed")),
    ],
)
def test_a_main_process_younger_than_the_state_is_a_start(since: int, main_pid: int, state: tuple[str, str]) -> None:
    failed = {b"ActiveState": b"failed", b"SubState": b"failed", b"StateChangeTimestamp": since, b"MainPID": main_pid}
    unit = unit_from("w@1.service", PROPERTIES | failed)
    assert (unit.active, unit.sub) == state


def test_properties_as_a_unit() -> None:
    assert b"Environment" not in keep(PROPERTIES)
    unit = unit_from("w@1.service", keep(PROPERTIES))
    assert (unit.active, unit.sub, unit.result, unit.restarts) == ("activating", "auto-restart", "exit-code", 12)
    assert (unit.exit_code, unit.exit_status) == ("exited", 3)
    assert unit.started == 1_800_000_000.5 and unit.since is None and unit.exited is None
    assert unit.invocation == "000102030405060708090a0b0c0d0e0f"
    assert unit.memory_max is None and unit.tasks_max == 64 and unit.watchdog_sec is None
    assert unit.restart_sec == 3.0 and unit.start_limit_interval > 10**12
    assert unit.status_text == "ok \x1b[31m", "values stay raw"


@given(
    st.dictionaries(
        st.sampled_from(sorted(PROPERTIES)),
        st.one_of(st.none(), st.integers(), st.binary(), st.lists(st.integers(0, 255)), st.just(([], []))),
    )
)
def test_no_property_breaks_a_unit(properties: Properties) -> None:
    unit_from("w@1.service", keep(properties))
    prevents_restart(properties)


@pytest.mark.parametrize(
    ("restart", "result", "again"),
    [
        ("no", "exit-code", False),
        ("always", "success", True),
        ("always", "oom-kill", True),
        ("on-success", "success", True),
        ("on-success", "exit-code", False),
        ("on-failure", "exit-code", True),
        ("on-failure", "success", False),
        ("on-abnormal", "exit-code", False),
        ("on-abnormal", "signal", True),
        ("on-abort", "timeout", False),
        ("on-watchdog", "watchdog", True),
    ],
)
def test_what_restart_covers(restart: str, result: str, again: bool) -> None:
    assert would_be_restarted(Unit(name="x", restart=restart, result=result)) is again


def test_restart_can_be_prevented_by_status_or_signal() -> None:
    prevents: Properties = {b"RestartPreventExitStatus": ([78], [15]), b"ExecMainCode": 1, b"ExecMainStatus": 78}
    assert prevents_restart(prevents)
    assert not prevents_restart(prevents | {b"ExecMainStatus": 15})
    assert prevents_restart(prevents | {b"ExecMainCode": 2, b"ExecMainStatus": 15})


def test_restarts_by_systemd_and_by_hand() -> None:
    restarts = Restarts(0.0)
    restarts.saw(5, "a", 0.0)
    assert restarts.per_minute(1.0) is None, "not watched long enough"
    restarts.saw(6, "a", 10.0)  # NRestarts rises first, then the new invocation comes: one restart
    restarts.saw(6, "b", 10.1)
    assert restarts.per_minute(30.0) == 2.0
    restarts.saw(0, "c", 31.0)  # by hand: the count falls back
    assert restarts.per_minute(60.0) == 2.0
    restarts.saw(0, "", 61.0)
    assert restarts.per_minute(300.0) == 0.4
    assert restarts.per_minute(400.0) == 0.0


@given(st.binary(max_size=64))
def test_any_process_name_is_read(name: bytes) -> None:
    fields = b"S 1 42 43 0 -1 0 0 0 0 0 7 3 0 0 20 0 5 0 991 1000 25 0"
    stat = procfs.parse_stat(b"77 (" + name + b") " + fields)
    assert stat is not None and (stat.pid, stat.state, stat.ppid, stat.group, stat.session) == (77, "S", 1, 42, 43)
    assert (stat.ticks, stat.threads, stat.start, stat.rss) == (10, 5, 991, 25 * procfs.PAGE)
    assert stat.name == name.decode("utf-8", "replace")


@given(st.binary(max_size=80))
def test_no_bytes_break_the_readers(data: bytes) -> None:
    procfs.parse_stat(data)
    procfs.parse_command(data)
    procfs.parse_cgroup(data.decode("utf-8", "replace"))


def test_arguments_keep_their_blanks_and_their_empty_ones() -> None:
    assert procfs.parse_command(b"a b\0\0c\0") == ("a b", "", "c")
    assert procfs.parse_command(b"nginx: worker\0\0\0\0") == ("nginx: worker",)
    assert procfs.parse_command(b"") == ()


def test_the_group_systemd_uses() -> None:
    assert procfs.parse_cgroup("0::/system.slice/a.service\n") == "/system.slice/a.service"
    hybrid = "9:memory:/x\n1:name=systemd:/system.slice/a.service\n0::/system.slice/a.service\n"
    assert procfs.parse_cgroup(hybrid) == "/system.slice/a.service"
    assert procfs.parse_cgroup("3:cpu:/x\n") == ""


def test_this_process_is_itself() -> None:
    stat = procfs.stat(os.getpid())
    assert stat is not None and stat.ppid == os.getppid() and procfs.user_id(os.getpid()) == os.geteuid()
    assert stat.start == int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    states, hidden = look_up([os.getpid(), 4_100_000])
    assert hidden == 0 and [state.start for state in states] == [stat.start, None]


def test_the_agent_and_its_ancestors_are_no_workers() -> None:
    scanner = Scanner()
    scanner.look_for([Role(name="all", match=(".",))])
    pids = {process.ident.pid for process in scanner.scan().workers.values()}
    assert os.getpid() not in pids and os.getppid() not in pids


def test_scripts_that_run_a_worker_are_not_the_worker(tmp_path: Path) -> None:
    mark = f"chain-{os.getpid()}"
    (tmp_path / "outer.sh").write_text(f"sh {tmp_path}/inner.sh {mark}\nexit\n")
    (tmp_path / "inner.sh").write_text("sleep 600 & echo $!; wait\n")
    (tmp_path / "real.sh").write_text(f"python3 -c 'import time; time.sleep(600)' {mark} & echo $!; wait\n")
    scanner = Scanner()
    scanner.look_for([Role(name="chain", match=(mark,))])
    for script, ends in (("outer.sh", "inner.sh"), ("real.sh", mark)):
        command = ["sh", str(tmp_path / script), mark]
        with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as child:
            assert child.stdout is not None
            child.stdout.readline()
            deadline = time.monotonic() + 10
            while True:
                found = [each.command for each in scanner.scan().workers.values()]
                if len(found) == 1 and found[0][-1 if ends == mark else 1].endswith(ends):
                    break
                assert time.monotonic() < deadline, found
                time.sleep(0.05)
            os.killpg(child.pid, signal.SIGKILL)


def test_groups_of_both_kinds(tmp_path: Path) -> None:
    second = tmp_path / "v2"
    (second / "a.service").mkdir(parents=True)
    (second / "cgroup.controllers").write_text("memory pids\n")
    for name, value in {"memory.current": "10", "memory.peak": "20", "memory.max": "max", "pids.current": "3"}.items():
        (second / "a.service" / name).write_text(value + "\n")
    assert Hierarchy(second).usage("/a.service") == Usage(10, 20, None, 3, None)
    first = tmp_path / "v1"
    for controller, files in {
        "memory": {"usage_in_bytes": "5", "max_usage_in_bytes": "6", "limit_in_bytes": str(2**63 - 4096)},
        "pids": {"current": "1", "max": "17"},
    }.items():
        (first / controller / "a.service").mkdir(parents=True)
        for name, value in files.items():
            (first / controller / "a.service" / f"{controller}.{name}").write_text(value)
    assert Hierarchy(first).usage("/a.service") == Usage(5, 6, None, 1, 17)
    assert Hierarchy(first).usage("/gone.service") == Usage()
    assert Hierarchy(first).usage("/../../etc") == Usage()


def test_the_last_lines_of_a_unit() -> None:
    def entry(second: int, message: str, by: str = "init.scope") -> str:
        return f'{{"__REALTIME_TIMESTAMP":"{second}000000","MESSAGE":{message},"_SYSTEMD_UNIT":"{by}"}}'

    lines = [
        entry(1, '"w@1.service: Start request repeated too quickly."'),
        entry(2, '"Started w@1.service - Worker 1."'),
        entry(3, '"boom"', "w@1.service"),
        entry(4, "[98,97,255]", "w@1.service"),
        entry(5, "null", "w@1.service"),
        "{broken",
        entry(6, '"w@1.service: Failed with result"'),
    ]
    told = read_entries("\n".join(lines).encode(), "w@1.service", 2.0)
    assert told.readable and not told.start_limit, "the limit was hit before it was started again"
    assert told.lines[-3:] == ("boom", "ba\ufffd", "w@1.service: Failed with result")
    again = "\n".join([*lines, entry(7, '"w@1.service: Start request repeated too quickly."')])
    assert read_entries(again.encode(), "w@1.service", 2.0).start_limit
    assert not read_entries(b"", "w@1.service", None).readable


def test_the_kernels_word_about_a_memory_limit() -> None:
    group = "/x/system.slice/system-w.slice/w@3.service"
    log = (
        f"<6>[  127.066569] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,"
        f"oom_memcg={group},task_memcg={group},task=worker,pid=167,uid=1500\n"
        "<3>[  127.066612] Memory cgroup out of memory: Killed process 167 (worker) total-vm:280612kB\n"
    )
    assert memory_kill(log, "w@3.service", 1127.5, 1000.0) == (
        "kernel: Memory cgroup out of memory: Killed process 167 (worker) total-vm:280612kB"
    )
    assert memory_kill(log, "w@2.service", 1127.5, 1000.0) == ""
    assert memory_kill(log, "w@3.service", 1300.0, 1000.0) == "", "an earlier death"


def test_errors_of_the_bus_lose_their_wrapping() -> None:
    class Raised(Exception):
        errno, err_message = -2, "b'Unit x\\'y not found.'"

    assert reason(Raised()) == "Unit x'y not found."
    assert reason(ValueError("plain")) == "plain"


# --- crontab files ------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("etc/cron.d", "var/spool/cron/crontabs", "srv"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "etc/debian_version").write_text("12\n")
    (tmp_path / "etc/crontab").write_bytes(b"17 * * * * root run-parts /etc/cron.hourly\n")
    return tmp_path


REPORTS = Role(name="reports", template="reports@.service", match=("worker --role reports",))


async def test_crontabs_are_read_with_the_scripts_they_run(root: Path) -> None:
    (root / "srv/start.sh").write_text("#!/bin/sh\nfor i in 1 2 3; do\n  nohup worker --role reports $i &\ndone\n")
    (root / "var/spool/cron/crontabs/deploy").write_bytes(b"# mine\n\n* * * * * /srv/start.sh\n")
    (root / "etc/cron.d/nightly").write_bytes(b"30 2 * * * backup pg_dump app\n")
    (root / "etc/cron.d/left.over").write_bytes(b"* * * * * root /srv/start.sh\n")
    (root / "etc/cron.d/open").write_bytes(b"* * * * * root /srv/start.sh\n")
    (root / "etc/cron.d/open").chmod(0o666)
    crontabs = Crontabs(str(root))
    crontabs.look_for([REPORTS])
    await crontabs.refresh()
    assert crontabs.problem is None
    found = {(line.source, line.line): line for line in crontabs.lines}
    assert ("/etc/cron.d/left.over", 1) not in found, "Debian's cron passes over names with a dot"
    line = found["/var/spool/cron/crontabs/deploy", 3]
    assert (line.owner, line.roles, line.kind, line.workers_per_tick) == ("deploy", ("reports",), "launcher", 3)
    assert found["/etc/cron.d/nightly", 1].owner == "backup" and found["/etc/cron.d/nightly", 1].kind == "periodic"
    assert IGNORED in found["/etc/cron.d/open", 1].faults


async def test_the_header_of_crontab_is_not_counted(root: Path) -> None:
    header = (
        b"# DO NOT EDIT THIS FILE - edit the master and reinstall.\n"
        b"# (/tmp/tab installed on Sun Nov 29 18:00:00 2026)\n"
        b"# (Cron version -- $Id: crontab.c,v 2.13 1994/01/17 03:20:37 vixie Exp $)\n"
    )
    spool = root / "var/spool/cron/crontabs"
    (spool / "deploy").write_bytes(header + b"# mine\n@yearly /bin/true\n")
    (spool / "other").write_bytes(b"# one\n# two\n# three\n@yearly /bin/true\n5/15 * * * * /bin/false\n")
    crontabs = Crontabs(str(root))
    await crontabs.refresh()
    found = {line.owner: line for line in crontabs.lines}
    assert found["deploy"].line == 2
    assert found["other"].line == 4, "comments that a person wrote are lines as any other"
    assert any("line 5 is wrong" in sentence for sentence in found["other"].evidence)


async def test_only_what_changed_is_read_again(root: Path) -> None:
    script = root / "srv/start.sh"
    script.write_text("#!/bin/sh\nworker --role reports\n")
    (root / "var/spool/cron/crontabs/deploy").write_bytes(b"* * * * * /srv/start.sh\n")
    crontabs = Crontabs(str(root))
    crontabs.look_for([REPORTS])
    await crontabs.refresh()
    before = crontabs.lines
    await crontabs.refresh()
    assert crontabs.lines is before
    script.write_text("#!/bin/sh\nexit 0  # retired\n")
    await crontabs.refresh()
    assert [line.roles for line in crontabs.lines if line.owner == "deploy"] == [()]
    (root / "var/spool/cron/crontabs/other").write_bytes(b"@reboot worker --role reports\n")
    await crontabs.refresh()
    assert [line.kind for line in crontabs.lines if line.owner == "other"] == ["at-boot"]


async def test_one_wrong_line_disables_the_whole_file_on_debian(root: Path) -> None:
    (root / "var/spool/cron/crontabs/deploy").write_bytes(b"* * * * * /bin/true\n5/15 * * * * /bin/false\n")
    crontabs = Crontabs(str(root))
    await crontabs.refresh()
    line = next(line for line in crontabs.lines if line.owner == "deploy")
    assert IGNORED in line.faults
    assert any("line 2 is wrong" in sentence for sentence in line.evidence)


async def test_a_script_that_is_a_program_or_a_fifo_is_not_read(root: Path) -> None:
    (root / "srv/binary").write_bytes(b"\x7fELF\0worker --role reports")
    os.mkfifo(root / "srv/fifo")
    (root / "srv/py").write_text("#!/usr/bin/python3\n# worker --role reports\n")
    (root / "var/spool/cron/crontabs/deploy").write_bytes(b"* * * * * /srv/binary; /srv/fifo; /srv/py; /srv/none\n")
    crontabs = Crontabs(str(root))
    crontabs.look_for([REPORTS])
    await crontabs.refresh()
    assert [line.roles for line in crontabs.lines if line.owner == "deploy"] == [()]
