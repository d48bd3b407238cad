"""`worktop priority`: change the priority of waiting jobs."""

from __future__ import annotations

from typing import Any

import click

from console.cli.act import EXIT_CODES, Agreement, agreeing, job_plan, selecting


@click.command("priority", epilog=f"{EXIT_CODES}\n\nExample: worktop priority --id 918233 --to 10")
@selecting
@click.option("--to", "priority", type=int, required=True, metavar="N", help="The new priority.")
@agreeing
@click.pass_context
def command(ctx: click.Context, /, agreement: Agreement, **options: Any) -> int:
    """Change the priority of waiting jobs of ROLE, or of the ones with these ids."""
    return job_plan(ctx, "priority", agreement, **options)
