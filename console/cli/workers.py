"""`worktop workers`: the workers of every role, desired ones that are missing and strays included."""

from __future__ import annotations

import click

from console.cli.options import configuration, fleet_once, json_option, narrowed, print_json, role_option, width
from console.cli.table import table
from console.fleet.model import Fleet, Worker
from console.fleet.workers import owner_word
from console.text import ago, size

HEADS = ("ROLE", "WORKER", "STATE", "PID", "OWNER", "AGE", "RESTARTS", "MEMORY", "CPU", "JOBS", "WHY")
RIGHT = frozenset({"PID", "AGE", "RESTARTS", "CPU"})


@click.command("workers", epilog="Example: worktop workers --role mail")
@role_option
@json_option
@click.pass_context
def command(ctx: click.Context, role: str | None, as_json: bool) -> None:
    """List the workers of every role: desired instances, missing ones and strays.

    Exit codes: 0 listed, 1 failed, 2 wrong configuration.
    """
    fleet = narrowed(fleet_once(configuration(ctx, role)), role)
    if as_json:
        print_json([worker for status in fleet.roles for worker in status.workers])
        return
    rows = [_row(worker, fleet) for status in fleet.roles for worker in status.workers]
    if not rows:
        click.echo("no workers: no role is configured and no template unit has an instance")
        return
    click.echo(table(HEADS, rows, width(), RIGHT))


def _row(worker: Worker, fleet: Fleet) -> tuple[object, ...]:
    unit = worker.unit
    pid = unit.main_pid if unit and unit.main_pid else worker.processes[0].ident.pid if worker.processes else ""
    limit = f"/{size(worker.memory_max)}" if worker.memory_max is not None else ""
    return (
        worker.role,
        worker.name,
        worker.state,
        pid,
        worker.owner.detail or owner_word(worker.owner),
        ago(fleet.now - worker.since) if worker.since else "",
        unit.restarts if unit else "",
        f"{size(worker.memory)}{limit}" if worker.memory is not None or limit else "",
        f"{worker.cpu:.0%}" if worker.cpu is not None else "",
        ",".join(worker.jobs),
        worker.why,
    )
