"""Shipped playbooks followed to their end and taken back on the demo host. `python -m tests.bench.playbooks` does the
others, and the faults of a migration."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from console.demo import fleet
from console.playbook.library import Library, shipped
from console.playbook.registry import REGISTRY
from tests.bench.ledger import begin_ledger, crontab, rows
from tests.bench.playbook_faults import every_minute, no_more_every_minute
from tests.conftest import DemoHost

CONFIG = "/etc/worktop/worktop.toml"
OWN_CONFIG = "/root/playbooks.toml"
QUICK = ("--set", "watch=1s", "--set", "tick_at_most=2s")


@pytest.fixture
def config(demo_host: DemoHost) -> str:
    """What a person adds to worktop.toml when a role gets its first unit."""
    added = '[roles.digests]\nunit = "digests-worker@.service"\n'
    text = demo_host.run(["cat", CONFIG]).stdout.replace("[roles.digests]\n", added)
    demo_host.run(["tee", OWN_CONFIG], input=text)
    return OWN_CONFIG


@pytest.fixture
def old_worker(demo_host: DemoHost) -> Iterator[subprocess.Popen[bytes]]:
    """One that no unit runs, as a launcher would have left it behind."""
    argv = [demo_host.worktop, "worker", "--role", "digests", "--handlers", "console.demo.handlers:HANDLERS"]
    started = demo_host.popen(argv, user="deploy", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield started
    started.kill()
    started.wait()


def playbook(host: DemoHost, *arguments: str, config: str = CONFIG) -> subprocess.CompletedProcess[str]:
    return host.run([host.worktop, "--config", config, "playbook", *arguments, "--yes"], check=False, timeout=300)


def test_every_shipped_playbook_is_without_a_flaw() -> None:
    shelf = Library(REGISTRY, [shipped()]).shelf()
    assert [str(flaw) for each in shelf for flaw in each.flaws] == []
    assert sorted(each.name for each in shelf) == [
        "crash-loop", "cron-launcher-to-systemd", "frequent-cron-to-worker-or-timer", "hung-worker", "memory-budget",
        "scale-up-safely", "stuck-jobs-after-a-crash", "supervisord-program-to-systemd", "two-owners-of-one-role",
        "watchdog-line-to-systemd",
    ]  # fmt: skip


def test_a_line_becomes_units_and_a_line_again(
    demo_host: DemoHost, config: str, old_worker: subprocess.Popen[bytes]
) -> None:
    """Jobs of digests take a second or two; those of reports, in the bench, half a minute."""
    before = crontab(demo_host)
    begin_ledger(demo_host)
    values = ("--role", "digests", "--entry", "deploy:7", "--set", "count=2", *QUICK)
    done = playbook(demo_host, "run", "cron-launcher-to-systemd", *values, config=config)
    try:
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr
        listed = demo_host.run(["systemctl", "list-units", "--no-legend", "digests-worker@*"]).stdout
        assert listed.count("running") == 2
        assert "disabled by worktop" in crontab(demo_host)
        assert "digests has one owner: digests-worker@.service" in done.stdout
        assert old_worker.wait(10) == 0  # drained: it has finished what it held
    finally:
        back = playbook(demo_host, "rollback", "digests", config=config)
    assert back.returncode == 0, back.stdout[-3000:] + back.stderr
    assert crontab(demo_host) == before
    assert demo_host.run(["systemctl", "cat", "digests-worker@1"], check=False).returncode != 0
    counted = rows(demo_host, "digests")
    assert counted.there == counted.before and counted.twice == 0 and counted.stuck == 0


def test_a_line_becomes_a_timer_and_is_taken_back_from_every_step(demo_host: DemoHost) -> None:
    """All but the last two, which wait for the timer. `python -m tests.bench.playbooks --each-step` does them all, of
    every playbook."""
    every_minute(demo_host)
    follow = [f"/{fleet.TOOLS}/python", "-m", "tests.bench.playbook_driver", "each", "frequent-cron-to-worker-or-timer"]
    try:
        done = demo_host.run([*follow, "entry=deploy:8", "--to", "3"], check=False, timeout=120)
    finally:
        no_more_every_minute(demo_host)
    told = [line.rpartition(",")[0] for line in done.stdout.splitlines() if line.startswith("each ")]
    came = "ahead 0, back 0, rolled-back, files the same"
    assert told == [f"each {number} of 5: {came}" for number in (1, 2, 3)], done.stdout + done.stderr


def test_limits_are_set_from_what_was_measured_and_taken_back(demo_host: DemoHost) -> None:
    done = playbook(demo_host, "run", "memory-budget", "--role", "mail", "--set", "watch=1s")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    back = playbook(demo_host, "rollback", "mail")
    assert back.returncode == 0, back.stdout[-3000:] + back.stderr
    assert demo_host.run(["sh", "-c", "ls /etc/systemd/system/mail-worker@.service.d || true"]).stdout == ""
