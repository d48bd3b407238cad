"""`worktop doctor`: each source, reachable or not, as whom, with what rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from console.cli.options import configuration, json_option, print_json, run, width
from console.config import Config
from console.errors import EXIT_FAILED, HostError
from console.fleet.model import Check, Reading
from console.host.polkit import GROUP
from console.text import clean, fit

if TYPE_CHECKING:
    from console.wiring import Sources

_SIGNS = {"ok": "ok     ", "warning": "WARNING", "failed": "FAILED "}


@click.command("doctor", epilog="Example: worktop doctor --json")
@click.option(
    "--grants", is_flag=True, help="Print the polkit rule and the GRANTs that acting takes, and nothing else."
)
@click.option("--group", default=GROUP, show_default=True, help="With --grants: the group of the operators.")
@json_option
@click.pass_context
def command(ctx: click.Context, grants: bool, group: str, as_json: bool) -> int:
    """Check each source: reachable, as whom, with what rights, versions, clock skew, missing indexes.

    Exit codes: 0 nothing failed, 1 at least one check failed, 2 wrong configuration.
    """
    config = configuration(ctx)
    if grants:
        return _print_grants(config, group, as_json)
    checks = run(_checks(config))
    if as_json:
        print_json(checks)
    else:
        for check in checks:
            click.echo(fit(f"{_SIGNS[check.state]}  {clean(check.name)}: {clean(check.text)}", max(width(), 80)))
            if check.remedy:
                click.echo(f"         → {clean(check.remedy)}")
    return EXIT_FAILED if any(check.state == "failed" for check in checks) else 0


def _print_grants(config: Config, group: str, as_json: bool) -> int:
    from console.cli.grants import grants_of, lines_of

    found = run(grants_of(config, group))
    if as_json:
        print_json(found)
    else:
        for line in lines_of(found):
            click.echo(clean(line))
    return EXIT_FAILED if found.problem else 0


async def _checks(config: Config) -> tuple[Check, ...]:
    from console.wiring import Sources

    sources = Sources(config)
    try:
        await sources.host.ready(15.0)
        found = [
            Check(name="configuration", state="ok", text=config.path or "no worktop.toml: every template unit is shown")
        ]
        found += _host_checks(sources)
        found += await _rights(sources)
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
            found += await _queue_rights(config)
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


async def _rights(sources: Sources) -> list[Check]:
    """What may be done to the roles' units."""
    from console.cli.grants import told

    if sources.host.facts.hello is None or sources.host.facts.units.problem is not None:
        return []  # said already
    try:
        rights = await sources.host.rights()
    except HostError as error:
        return [Check(name="rights on units", state="warning", text=error.problem.line(), remedy=error.problem.do)]
    if not rights.units and not rights.read_only:
        return []
    may, may_not = told(rights)
    remedy = "start it without" if rights.read_only else "worktop doctor --grants prints the polkit rule that allows it"
    if may_not:
        return [Check(name="rights on units", state="warning", text=may_not, remedy=remedy)]
    return [Check(name="rights on units", state="ok", text=may)]


async def _queue_rights(config: Config) -> list[Check]:
    """What may be done to the rows; a database that does not answer has been told of already."""
    from console.cli.grants import grants_of

    grants = await grants_of(config, GROUP)
    if grants.problem:
        return []
    if not grants.sql:
        return [Check(name="rights on the job table", state="ok", text=f"{grants.database_user} may act on it")]
    text = f"{grants.database_user} lacks {len(grants.sql)} GRANTs to act on it"
    return [
        Check(name="rights on the job table", state="warning", text=text, remedy="worktop doctor --grants prints them")
    ]


def _of(name: str, reading: Reading[Any], text: str) -> Check:
    if reading.problem is None:
        return Check(name=name, state="ok", text=text)
    return Check(
        name=name,
        state="warning" if reading.value is not None else "failed",
        text=reading.problem.line(),
        remedy=reading.problem.do,
    )
