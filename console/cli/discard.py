"""`worktop discard`: delete waiting and failed jobs."""

from __future__ import annotations

from typing import Any

import click

from console.cli.act import EXIT_CODES, Agreement, agreeing, job_plan, selecting


@click.command("discard", epilog=f"{EXIT_CODES}\n\nExample: worktop discard --id 918233")
@selecting
@agreeing
@click.pass_context
def command(ctx: click.Context, /, agreement: Agreement, **options: Any) -> int:
    """Delete waiting and failed jobs of ROLE, or the ones with these ids, as the queue's preset says.

    What was deleted is in the journal, and worktop undo inserts it again.
    """
    return job_plan(ctx, "discard", agreement, **options)
