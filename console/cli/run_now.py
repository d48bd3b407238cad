"""`worktop run-now`: make waiting jobs due now."""

from __future__ import annotations

from typing import Any

import click

from console.cli.act import EXIT_CODES, Agreement, agreeing, job_plan, selecting


@click.command("run-now", epilog=f"{EXIT_CODES}\n\nExample: worktop run-now --id 918233")
@selecting
@agreeing
@click.pass_context
def command(ctx: click.Context, /, agreement: Agreement, **options: Any) -> int:
    """Make waiting jobs that are due later, of ROLE or with these ids, due now."""
    return job_plan(ctx, "run-now", agreement, **options)
