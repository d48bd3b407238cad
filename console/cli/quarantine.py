"""`worktop quarantine`: put jobs that kill their workers with the failed ones."""

from __future__ import annotations

from typing import Any

import click

from console.cli.act import EXIT_CODES, Agreement, agreeing, job_plan, quarantine_option, selecting


@click.command("quarantine", epilog=f"{EXIT_CODES}\n\nExample: worktop quarantine mail --quarantine-after 3")
@selecting
@quarantine_option
@agreeing
@click.pass_context
def command(ctx: click.Context, /, agreement: Agreement, **options: Any) -> int:
    """Put jobs that kill their workers with the failed ones, where nobody claims them.

    Waiting jobs of ROLE that were taken from a holder N times already, or the ones with these ids. A running one is
    taken from its holder first, as worktop reclaim does.
    """
    return job_plan(ctx, "quarantine", agreement, **options)
