"""The demo host really is what it says: asked with systemctl, ps, psql and journalctl, as a person would."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.conftest import DemoHost

pytestmark = pytest.mark.host


def until(true: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.2)


def unit(host: DemoHost, name: str) -> dict[str, str]:
    shown = host.run(["systemctl", "show", name]).stdout
    return dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)


def workers(host: DemoHost, role: str) -> dict[int, str]:
    """pid -> systemd cgroup of every process whose command line has the role."""
    script = (
        f"for pid in $(pgrep -f -- 'worktop worker --role {role}'); do"
        " printf '%s ' $pid; grep -E '^0::|name=systemd' /proc/$pid/cgroup | head -n1; done"
    )
    found = {}
    for line in host.run(["sh", "-c", f"{script}; true"]).stdout.splitlines():
        pid, _, cgroup = line.partition(" ")
        if "/system.slice/" in cgroup:  # not the shell that asks
            found[int(pid)] = cgroup.rsplit(":", 1)[1]
    return found


def test_a_real_systemd_runs_and_only_the_faults_have_failed(demo_host: DemoHost) -> None:
    assert demo_host.run(["cat", "/proc/1/comm"]).stdout.strip() == "systemd"
    assert demo_host.run(["hostname"]).stdout.strip() == "wrk01"
    until(
        lambda: demo_host.run(["systemctl", "is-system-running"], check=False).stdout.strip() != "starting",
        30,
        "booted",
    )
    failed = demo_host.run(["systemctl", "list-units", "--failed", "--plain", "--no-legend"]).stdout
    assert {line.split()[0] for line in failed.splitlines()} == {
        "thumbnails-worker@2.service",
        "thumbnails-worker@3.service",
    }


def test_nothing_of_the_outer_system_is_started(demo_host: DemoHost) -> None:
    names = demo_host.run(["ps", "-e", "--no-headers", "-o", "comm"]).stdout.split()
    expected = {"systemd", "systemd-journal", "systemd-logind", "dbus-daemon", "dbus-broker", "dbus-broker-lau", "cron"}
    expected |= {
        "postgres",
        "psql",
        "worktop",
        "python",
        "python3",
        "(sd-pam)",
        "sh",
        "ps",
        "pgrep",
        "start.sh",
        "nohup",
        "polkitd",  # the bus starts it when somebody is not permitted at once
    }
    assert {name for name in names if name not in expected} == set()
    assert demo_host.run(["ls", "/etc/cron.d", "/etc/cron.daily"]).stdout.split() == [
        "/etc/cron.d:",
        "/etc/cron.daily:",
    ]
    assert demo_host.run(["systemctl", "list-timers", "--no-legend"]).stdout == ""


def test_there_are_at_most_about_sixty_processes(demo_host: DemoHost) -> None:
    assert len(demo_host.run(["ps", "-e", "--no-headers"]).stdout.splitlines()) <= 65


def test_memory_limits_are_enforced(demo_host: DemoHost) -> None:
    allocate = ["python3", "-c", "print(len(b'x' * 200 * 1024 * 1024))"]
    within = demo_host.run(["systemd-run", "--wait", "--quiet", "-p", "MemoryMax=400M", *allocate], check=False)
    beyond = ["systemd-run", "--wait", "--quiet", "-p", "MemoryMax=60M", "-p", "MemorySwapMax=0", *allocate]
    assert within.returncode == 0
    assert demo_host.run(beyond, check=False).returncode != 0
    assert int(unit(demo_host, "mail-worker@1.service")["MemoryCurrent"]) > 10 * 1024 * 1024
    assert int(unit(demo_host, "mail-worker@1.service")["TasksCurrent"]) >= 1


def test_mail_is_healthy(demo_host: DemoHost) -> None:
    for number in (1, 2, 3):
        shown = unit(demo_host, f"mail-worker@{number}.service")
        assert (shown["ActiveState"], shown["NRestarts"], shown["WatchdogUSec"]) == ("active", "0", "30s")
        assert "done" in shown["StatusText"]
    finished = "SELECT count(*) FROM worktop_jobs WHERE queue = 'mail' AND status = 'done'"
    before = int(demo_host.psql(finished))
    until(lambda: int(demo_host.psql(finished)) > before + 2, 20, "mail finishes jobs")


def test_thumbnails_has_one_healthy_worker_and_three_faults(demo_host: DemoHost) -> None:
    until(lambda: unit(demo_host, "thumbnails-worker@1.service")["SubState"] == "running", 20, "@1 is back")
    given_up = unit(demo_host, "thumbnails-worker@2.service")
    assert (given_up["ActiveState"], given_up["StartLimitBurst"]) == ("failed", "3")
    log = demo_host.run(["journalctl", "-u", "thumbnails-worker@2", "-o", "cat"], user="deploy").stdout
    assert "Start request repeated too quickly" in log
    assert "ValueError: invalid literal for int()" in log
    killed = unit(demo_host, "thumbnails-worker@3.service")
    assert (killed["ActiveState"], killed["ExecMainStatus"]) == ("failed", "9")
    assert killed["Result"] in ("oom-kill", "signal")  # cgroup v1 does not say why
    assert killed["MemoryMax"] == str(96 * 1024 * 1024)


def test_reports_has_two_owners(demo_host: DemoHost) -> None:
    owners = {cgroup.rsplit("/", 1)[1] for cgroup in workers(demo_host, "reports").values()}
    assert owners == {"cron.service", "reports-worker@1.service"}


def test_the_crontab_of_deploy(demo_host: DemoHost) -> None:
    lines = demo_host.run(["crontab", "-l"], user="deploy").stdout.splitlines()
    assert "* * * * * /srv/reports/start.sh" in lines
    assert "30 2 * * * /srv/backup/nightly.sh" in lines
    assert any(line.startswith("@reboot ") for line in lines)
    assert any("pgrep -x webhooks-worker" in line for line in lines)
    assert any('pgrep -f "worker --role digests"' in line for line in lines)
    started = demo_host.run(["ls", "-d", "/tmp/thumbnails-cache"]).stdout
    assert started.strip() == "/tmp/thumbnails-cache"  # the @reboot line has run


def test_exports_is_alive_and_hung(demo_host: DemoHost) -> None:
    (pid,) = workers(demo_host, "exports")

    def ticks() -> int:
        return sum(map(int, demo_host.run(["cut", "-d ", "-f14,15", f"/proc/{pid}/stat"]).stdout.split()))

    before = ticks()
    held = "SELECT lease_pid, lease_expires < now(), heartbeat_at < lease_expires FROM worktop_jobs"
    row = demo_host.psql(f"{held} WHERE queue = 'exports' AND status = 'running'").strip()
    assert row == f"{pid}|t|t"
    assert int(demo_host.psql("SELECT count(*) FROM worktop_jobs WHERE queue = 'exports' AND status = 'waiting'")) >= 10
    idle = "SELECT now() - max(finished_at) > interval '9 minutes' FROM worktop_jobs WHERE queue = 'exports'"
    assert demo_host.psql(idle).strip() == "t"
    assert ticks() == before
    assert unit(demo_host, "exports-worker@1.service")["ActiveState"] == "active"


def test_the_report_worker_is_slow_but_alive_past_its_lease(demo_host: DemoHost) -> None:
    pid = unit(demo_host, "reports-worker@1.service")["MainPID"]
    row = demo_host.psql(
        f"SELECT lease_expires < now() FROM worktop_jobs WHERE status = 'running' AND lease_pid = {pid}"
    )
    assert row.strip() == "t"

    def ticks() -> int:
        return sum(map(int, demo_host.run(["cut", "-d ", "-f14,15", f"/proc/{pid}/stat"]).stdout.split()))

    before = ticks()
    until(lambda: ticks() > before, 20, "it uses CPU")


def test_workers_were_killed_in_the_middle_of_their_jobs(demo_host: DemoHost) -> None:
    query = "SELECT queue, lease_pid, lease_start FROM worktop_jobs WHERE status = 'running' AND payload ? 'accident'"
    rows = [line.split("|") for line in demo_host.psql(query).splitlines()]
    assert sorted(queue for queue, _, _ in rows) == ["thumbnails", "thumbnails", "webhooks"]
    for _, pid, start in rows:
        stat = demo_host.run(["cat", f"/proc/{pid}/stat"], check=False).stdout
        assert not stat or stat.rpartition(")")[2].split()[19] != start
    log = demo_host.run(["journalctl", "-u", "thumbnails-worker@1", "-o", "cat"]).stdout
    assert "code=killed, status=9/KILL" in log


def test_the_history(demo_host: DemoHost) -> None:
    assert int(demo_host.psql("SELECT count(*) FROM worktop_jobs WHERE status = 'done'")) >= 200_000
    assert 2_000 < int(demo_host.psql("SELECT count(*) FROM worktop_jobs WHERE status = 'waiting'")) < 9_000
    oldest = "SELECT now() - min(run_after) > interval '41 minutes' FROM worktop_jobs WHERE queue = 'digests'"
    assert demo_host.psql(f"{oldest} AND status = 'waiting'").strip() == "t"
    assert (
        int(demo_host.psql("SELECT max(length(payload::text)) FROM worktop_jobs WHERE status = 'failed'")) > 1_000_000
    )
    errors = demo_host.psql("SELECT string_agg(last_error, ' ') FROM worktop_jobs WHERE status = 'failed'")
    for hostile in ("\x1b[31m", "\x1b]52;c;", "[/red]", "\x07", "\u202e", "api_token="):
        assert hostile in errors
    assert demo_host.psql("SELECT count(*) FROM worktop_jobs WHERE payload ? 'api_token'").strip() == "1"


def test_deploy_is_an_ordinary_user_that_can_run_worktop(demo_host: DemoHost) -> None:
    assert demo_host.run(["id", "-un"], user="deploy").stdout.strip() == "deploy"
    assert demo_host.run(["cat", "/etc/shadow"], user="deploy", check=False).returncode != 0
    assert demo_host.run(["ls", "/root"], user="deploy", check=False).returncode != 0
    assert demo_host.run([demo_host.worktop, "--version"], user="deploy").stdout.startswith("worktop")
    assert demo_host.run(["touch", demo_host.worktop], user="deploy", check=False).returncode != 0


# Last, because they need time to have gone by since the boot.


def test_the_crash_loop_goes_on_without_reaching_its_start_limit(demo_host: DemoHost) -> None:
    name = "thumbnails-worker@4.service"
    until(lambda: int(unit(demo_host, name)["NRestarts"]) >= 6, 60, "six restarts, one more than its limit allows")
    assert unit(demo_host, name)["ActiveState"] == "activating"
    log = demo_host.run(["journalctl", "-u", name, "-o", "cat"], user="deploy").stdout
    assert "Traceback (most recent call last)" in log
    assert "KeyError: 'BUCKET'" in log
    assert "repeated too quickly" not in log


def test_every_minute_cron_adds_reports_and_webhooks_workers_but_never_one_for_digests(demo_host: DemoHost) -> None:
    def generations(role: str) -> set[str]:
        """The audit sessions of the role's workers: cron opens one for each run of a line."""
        pids = [pid for pid, cgroup in workers(demo_host, role).items() if cgroup.endswith("/cron.service")]
        sessions = [demo_host.run(["cat", f"/proc/{pid}/sessionid"], check=False).stdout for pid in pids]
        return {session for session in sessions if session}

    if not demo_host.run(["cat", "/proc/self/sessionid"], check=False).stdout:
        pytest.skip("this kernel keeps no audit sessions")
    until(lambda: len(generations("reports")) >= 2, 75, "the launcher ran again")
    until(lambda: len(generations("webhooks")) >= 2, 75, "the guard never matches")
    assert workers(demo_host, "digests") == {}
    assert demo_host.psql("SELECT count(*) FROM worktop_jobs WHERE queue = 'digests' AND status = 'running'") == "0\n"
