"""Fixtures that several folders of tests share."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import settings

from console.demo import enter, fleet, host, state

# Where a property does not say how many examples it wants: the suite has some two hundred of them and a time to keep.
settings.register_profile(
    "suite", parent=settings.get_profile("ci" if os.environ.get("CI") == "true" else "default"), max_examples=40
)
settings.load_profile("suite")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's job in the background; what tests start inherits it
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.set_threshold(100_000, 50, 1000)  # by default the collector takes a seventh of the time of consoles in a pilot

pytest_plugins = ["tests.postgres", "tests.library_databases"]


# Groups of tests that run one after the other, those that take longest first; every other test goes to whoever is free.
GROUPS = ("playbooks", "host", "boots", "playbook")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """For `pytest -n 3 --dist loadgroup --no-loadscope-reorder`: the playbooks, which have a demo host of their own,
    the tests that share one, and those that boot more of them, begin first."""
    for item in items:
        if "demo_host" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("host"))
        elif item.get_closest_marker("host"):
            item.add_marker(pytest.mark.xdist_group("boots"))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    group = item.get_closest_marker("xdist_group")
    name = group.args[0] if group else ""
    return GROUPS.index(name) if name in GROUPS else len(GROUPS)


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Says a number that a test has measured; all are printed at the end of the run, by whichever process it ran in."""
    return lambda text: record_property("figure", text)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    every = [one for some in terminalreporter.stats.values() for one in some]  # items that were not chosen, too
    called = [one for one in every if isinstance(one, pytest.TestReport) and one.when == "call"]
    figures = [value for one in called for name, value in one.user_properties if name == "figure"]
    if figures:
        terminalreporter.section("figures")
        for text in sorted(figures):
            terminalreporter.line(text)


class DemoHost:
    """A booted demo host, seen from outside as root."""

    def __init__(self, booted: state.State) -> None:
        self.state = booted
        self.leader_pid = booted.leader_pid
        self.bus_address = booted.bus_address
        self.worktop = enter.WORKTOP

    def exec_argv(self, argv: Sequence[str], user: str = "root") -> list[str]:
        """The full command that runs `argv` inside; for tmux, pexpect and the like."""
        return enter.exec_argv(self.leader_pid, argv, user)

    def run(
        self,
        argv: Sequence[str],
        user: str = "root",
        check: bool = True,
        input: str | None = None,
        timeout: float = 60.0,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside to its end; with `check` a failure shows what it wrote."""
        done = subprocess.run(
            self.exec_argv(argv, user), input=input, capture_output=True, text=True, errors="replace", timeout=timeout
        )
        if check and done.returncode:
            raise AssertionError(f"{list(argv)} as {user} exited {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def popen(self, argv: Sequence[str], user: str = "root", **options: Any) -> subprocess.Popen[Any]:
        """Start a command inside; options are those of subprocess.Popen."""
        return subprocess.Popen(self.exec_argv(argv, user), **options)

    def psql(self, query: str) -> str:
        """The result of a query on the job table, columns separated by |, as psql -At prints it."""
        return self.run(["psql", "--no-psqlrc", "-At", "-c", query, fleet.DSN], user="deploy").stdout

    def restart_service(self, name: str) -> None:
        self.run(["systemctl", "restart", name])


def need_root() -> None:
    """The tests of the demo host need root: without it they are skipped, or fail where everything must run."""
    if os.geteuid() == 0 and shutil.which("systemd-nspawn"):
        return
    reason = "booting the demo host needs root and systemd-nspawn"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def fresh_host(name: str) -> Iterator[DemoHost]:
    """A demo host of its own, whose workers have left their first stuck jobs."""
    booted = host.boot(f"{name}-{os.getpid()}")
    try:
        fleet.wait_for_stuck_jobs(booted.host.leader_pid)
        yield DemoHost(booted.host)
    finally:
        booted.close()


@pytest.fixture(scope="session")
def demo_host() -> Iterator[DemoHost]:
    """The demo host, booted once per run. WORKTOP_TEST_HOST=NAME uses one that `worktop demo --keep` left running."""
    need_root()
    kept = os.environ.get("WORKTOP_TEST_HOST")
    if kept:
        running = state.running(kept)
        assert running, f"no demo host {kept} is running"
        yield DemoHost(running)
        return
    with fresh_host("test") as booted:
        yield booted
