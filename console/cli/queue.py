"""worktop queue: install worktop's own job table."""

from __future__ import annotations

import click
import msgspec

from console.config import load


@click.group("queue")
def command() -> None:
    """worktop's own job table.

    Example: worktop queue install --dry-run | less
    """


@command.command("install")
@click.option("--dry-run", is_flag=True, help="Print the SQL and change nothing; needs no connection.")
@click.option("--json", "as_json", is_flag=True, help="Say what was done as JSON.")
@click.pass_context
def install_command(ctx: click.Context, dry_run: bool, as_json: bool) -> None:
    """Create or upgrade the job table in the database and schema of worktop.toml or PG*.

    One transaction: either all of it is there or nothing has changed. Safe to repeat.

    Exit codes: 0 installed or already there, 1 failed, 2 wrong configuration.

    Example: worktop queue install --dry-run
    """
    from console.queue.install import install, script

    database = load(ctx.obj["config"]).database
    if dry_run:
        click.echo(msgspec.json.encode({"sql": script(database)}) if as_json else script(database), nl=as_json)
        return
    done = install(database)
    if as_json:
        click.echo(
            msgspec.json.encode(
                {"database": done.database, "schema": done.db_schema, "before": done.before, "version": done.version}
            )
        )
        return
    found = {None: "installed", done.version: "was there already"}.get(
        done.before, f"upgraded from version {done.before}"
    )
    click.echo(f"worktop_jobs, version {done.version}, in schema {done.db_schema} of database {done.database}: {found}")
