"""`worktop reclaim`: return the jobs of dead workers to waiting."""

from __future__ import annotations

from typing import Any

import click

from console.cli.act import EXIT_CODES, Agreement, agreeing, job_plan, quarantine_option, selecting, verdict_option


@click.command("reclaim", epilog=f"{EXIT_CODES}\n\nExample: worktop reclaim thumbnails --dry-run")
@selecting
@verdict_option
@quarantine_option
@click.option("--leave-running", is_flag=True, help="Do not stop live holders; needs a queue that fences, and --type.")
@agreeing
@click.pass_context
def command(ctx: click.Context, /, agreement: Agreement, **options: Any) -> int:
    """Return running jobs whose holder is dead to waiting.

    Each holder is looked at: of ROLE (all roles without one) only the jobs of holders that are proved dead are taken,
    unless --verdict names others. With --id the holder may be anything that has lost its lease. A holder that lives is
    stopped first, by its unit or by a signal to exactly that process, and its jobs are taken when it is gone; with
    --leave-running it is not, if the queue rejects its late finish and you type the role's name. A holder that works
    within its lease keeps its jobs.
    """
    return job_plan(ctx, "reclaim", agreement, whole=True, **options)
