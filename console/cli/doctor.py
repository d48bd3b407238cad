"""`worktop doctor`: each source, reachable or not, as whom, with what rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from console.cli.options import configuration, json_option, print_json, run, width
from console.config import Config
from console.errors import EXIT_FAILED
from console.fleet.model import Check, Reading
from console.text import clean, fit

if TYPE_CHECKING:
    from console.wiring import Sources

_SIGNS = {"ok": "ok     ", "warning": "WARNING", "failed": "FAILED "}


@click.command("doctor", epilog="Example: worktop doctor --json")
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> int:
    """Check each source: reachable, as whom, with what rights, versions, clock skew, missing indexes.

    Exit codes: 0 nothing failed, 1 at least one check failed, 2 wrong configuration.
    """
    config = configuration(ctx)
    checks = run(_checks(config))
    if as_json:
        print_json(checks)
    else:
        for check in checks:
            click.echo(fit(f"{_SIGNS[check.state]}  {clean(check.name)}: {clean(check.text)}", max(width(), 80)))
            if check.remedy:
                click.echo(f"         → {clean(check.remedy)}")
    return EXIT_FAILED if any(check.state == "failed" for check in checks) else 0


async def _checks(config: Config) -> tuple[Check, ...]:
    from console.wiring import Sources

    sources = Sources(config)
    try:
        await sources.host.ready(15.0)
        found = [
            Check(name="configuration", state="ok", text=config.path or "no worktop.toml: every template unit is shown")
        ]
        found += _host_checks(sources)
        if sources.queue is None:
            found.append(
                Check(
                    name="queue",
                    state="warning",
                    text="no database is configured",
                    remedy="set [database] dsn or service in worktop.toml, or PGHOST, PGSERVICE, … in the environment",
                )
            )
        else:
            found += await sources.queue.checks()
        return tuple(found)
    finally:
        await sources.stop()


def _host_checks(sources: Sources) -> list[Check]:
    facts = sources.host.facts
    hello = facts.hello
    if hello is None:
        return [_of("host agent", facts.agent, "")]
    who = f"worktop {hello.version} on {hello.host} as {hello.user} (uid {hello.uid})"
    found = [_of("host agent", facts.agent, who)]
    manager = f"{hello.manager} manager, systemd {hello.systemd}" if hello.systemd else "no systemd here"
    found.append(_of("systemd", facts.units, f"{manager}; {len(facts.units.value or ())} units watched"))
    denied = sorted({reason for process in facts.processes.value or () for reason in process.denied})
    seen = f"{len(facts.processes.value or ())} processes of roles"
    processes = _of("processes", facts.processes, seen)
    if denied and processes.state == "ok":
        processes = Check(
            name="processes",
            state="warning",
            text=f"{seen}; in part not readable: {'; '.join(denied[:3])}",
            remedy='run the agent with more rights: [host] agent = ["sudo", "-n", "worktop", "agent"]',
        )
    found.append(processes)
    found.append(_of("host", facts.host, f"{facts.host.value.processes} processes in all" if facts.host.value else ""))
    found.append(_of("crontabs", facts.schedules, f"{len(facts.schedules.value or ())} active lines"))
    return found


def _of(name: str, reading: Reading[Any], text: str) -> Check:
    if reading.problem is None:
        return Check(name=name, state="ok", text=text)
    return Check(
        name=name,
        state="warning" if reading.value is not None else "failed",
        text=reading.problem.line(),
        remedy=reading.problem.do,
    )
