"""worktop demo: boot a disposable demo host and open the console in it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import click
import msgspec

from console.demo.state import DEFAULT_NAME, State, read, running
from console.demo.terminal import foreground
from console.errors import EXIT_OK, DemoError

_EXIT_CODES = "Exit codes: 0 done, 1 no demo host could be started, entered or found, 2 wrong usage, 130 interrupted."


@click.group("demo", invoke_without_command=True, epilog=_EXIT_CODES)
@click.option("--keep", is_flag=True, help="Leave the demo host running when the console is left.")
@click.option("--small", is_flag=True, help="Run the smaller demo that needs no root: PostgreSQL and a few workers.")
@click.option("--json", "as_json", is_flag=True, help="Without a terminal: print `worktop status --json`.")
@click.option("--name", default=DEFAULT_NAME, hidden=True, help="Its name, to have more than one; for tests.")
@click.pass_context
def command(ctx: click.Context, keep: bool, small: bool, as_json: bool, name: str) -> int:
    """Boot a disposable demo host and open the console in it, as if by SSH.

    The demo host is a real systemd with cron, PostgreSQL and a fleet of workers that shows every fault worktop knows.
    It lives in memory; leaving the console shuts it down and leaves nothing behind. Without a terminal it prints
    `worktop status` of the demo host once. Needs root and systemd-nspawn; where no host can be booted it says why and
    runs a smaller demo.

    Example: worktop demo --keep; worktop demo shell; worktop demo stop
    """
    ctx.obj = {**(ctx.obj or {}), "demo": name}
    if ctx.invoked_subcommand is not None:
        return EXIT_OK
    from console.demo import host
    from console.demo import small as smaller

    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if small:
        return smaller.run(terminal=terminal, as_json=as_json, say=_say)
    found = read(name)
    if found and found.supervisor.alive():
        if not (found.kept and found.ready):
            raise DemoError(
                "demo host", "another worktop demo is running it", "worktop demo shell, or worktop demo stop"
            )
        _say("joining the demo host that was left running")
        return _use(found, terminal, as_json)
    started = time.monotonic()
    try:
        booted = host.boot(name, keep=keep, progress=lambda step: _say(step, time.monotonic() - started))
    except host.CannotBoot as error:
        _say(f"{error}. Running the smaller demo instead.")
        return smaller.run(terminal=terminal, as_json=as_json, say=_say)
    try:
        _say("the demo host is up", time.monotonic() - started)
        return _use(booted.host, terminal, as_json)
    finally:
        if keep:
            _say("the demo host goes on; end it with: worktop demo stop")
        else:
            _say("shutting the demo host down")
            booted.close()


@command.command("shell", epilog=_EXIT_CODES)
@click.option("--root", is_flag=True, help="As root instead of deploy.")
@click.pass_obj
def shell(options: dict[str, str], root: bool) -> int:
    """Open a shell in the demo host that is running.

    Example: worktop demo shell --root
    """
    from console.demo.enter import DEPLOY, login_argv

    found = _running(options["demo"])
    return foreground(login_argv(found.leader_pid, "exec bash -l", "root" if root else DEPLOY))


@command.command("stop", epilog=_EXIT_CODES)
@click.option("--json", "as_json", is_flag=True, help="Say what was done as JSON.")
@click.pass_obj
def stop(options: dict[str, str], as_json: bool) -> int:
    """Shut the demo host down and remove what any earlier one left behind.

    Example: worktop demo stop
    """
    from console.demo import host

    _need_root()
    stopped = host.stop(options["demo"])
    if as_json:
        click.echo(msgspec.json.encode({"stopped": stopped}))
    else:
        click.echo("The demo host is down." if stopped else "No demo host was running.")
    return EXIT_OK


@command.command("status", epilog=_EXIT_CODES)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def status(options: dict[str, str], as_json: bool) -> int:
    """Say whether a demo host is running, and how to enter it.

    Example: worktop demo status --json
    """
    found = read(options["demo"])
    alive = found is not None and found.supervisor.alive()
    if as_json:
        known = (
            {"kept": found.kept, "ready": found.ready, "leader_pid": found.leader and found.leader.pid} if found else {}
        )
        click.echo(msgspec.json.encode({"running": alive, **(known if alive else {})}))
    elif found is None:
        click.echo("No demo host is running.")
    elif not alive:
        click.echo("A demo host was killed and has left something behind: worktop demo stop removes it.")
    else:
        how = "kept running" if found.kept else "ends with its console"
        stage = "up" if found.ready else "starting"
        click.echo(f"The demo host is {stage} ({how}). Enter it: worktop demo shell")
    return EXIT_OK


def _running(name: str) -> State:
    _need_root()
    found = running(name)
    if found is None:
        raise DemoError("demo host", "none is running", "start one: worktop demo --keep")
    return found


def _need_root() -> None:
    if os.geteuid() != 0:
        raise DemoError("demo host", "only root can enter or stop it", "use sudo")


def _use(found: State, terminal: bool, as_json: bool) -> int:
    """Open the console inside, or print its status once where there is no terminal."""
    from console.demo import fleet
    from console.demo.enter import WORKTOP, exec_argv, login_argv

    if terminal:
        return foreground(login_argv(found.leader_pid, f"exec {WORKTOP}"))
    _say("waiting until leases run out")
    fleet.wait_for_stuck_jobs(found.leader_pid)
    wanted = [WORKTOP, "status", *(["--json"] if as_json else [])]
    return subprocess.run(exec_argv(found.leader_pid, wanted, "deploy"), stdin=subprocess.DEVNULL).returncode


def _say(step: str, seconds: float | None = None) -> None:
    """A line of progress on stderr: standard output is the console's or the status's."""
    when = "" if seconds is None else f"{seconds:5.1f} s  "
    click.echo(f"worktop demo: {when}{step}", err=True)
