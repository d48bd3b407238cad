"""`worktop retry`: let failed jobs wait again."""

from __future__ import annotations

from typing import Any

import click

from console.cli.act import EXIT_CODES, Agreement, agreeing, job_plan, selecting


@click.command("retry", epilog=f"{EXIT_CODES}\n\nExample: worktop retry webhooks --older-than 1h --yes")
@selecting
@agreeing
@click.pass_context
def command(ctx: click.Context, /, agreement: Agreement, **options: Any) -> int:
    """Let failed jobs of ROLE, or the ones with these ids, wait again."""
    return job_plan(ctx, "retry", agreement, **options)
