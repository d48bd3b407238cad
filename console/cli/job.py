"""`worktop job ID`: one job with its holder and the evidence."""

from __future__ import annotations

import click
import msgspec

from console.cli.jobs import database_configuration, lease, local
from console.cli.options import json_option, print_json, run
from console.config import Config
from console.errors import QueueError
from console.fleet.model import Claim, Job
from console.text import ago, clean, clean_block, grouped
from console.view.jobs import holder_text


class _Answer(msgspec.Struct, frozen=True):
    job: Job
    claim: Claim | None = None


@click.command("job", epilog="Example: worktop job 918233")
@click.argument("job_id", metavar="ID")
@json_option
@click.pass_context
def command(ctx: click.Context, job_id: str, as_json: bool) -> None:
    """Show one job: timings, holder and whether it lives, error, payload (secrets masked).

    Exit codes: 0 shown, 1 no such job or failed, 2 wrong configuration.
    """
    config = database_configuration(ctx)
    job, claim = run(_ask(config, job_id))
    if as_json:
        print_json(_Answer(job, claim))
        return
    click.echo(_text(job, claim))


async def _ask(config: Config, job_id: str) -> tuple[Job, Claim | None]:
    from console.wiring import Sources

    sources = Sources(config)
    assert sources.queue is not None
    try:
        job = await sources.queue.job(job_id)
        if job is None:
            raise QueueError(f"job {job_id}", "there is no such job", "list some with worktop jobs")
        if job.state != "running":
            return job, None
        await sources.host.ready(10.0)
        found, claim = await sources.job(job_id)
        return found or job, claim
    finally:
        await sources.stop()


def _text(job: Job, claim: Claim | None) -> str:
    attempts = f"{job.attempts} of {job.max_attempts}" if job.max_attempts else str(job.attempts)
    fields = [
        ("job", job.id),
        ("state", f"{job.state} (stuck)" if claim is not None and claim.stuck else job.state),
        ("queue", job.queue),
        ("type", job.type),
        ("attempts", attempts),
        ("priority", job.priority),
        ("created", local(job.created)),
        ("run after", local(job.run_after)),
        ("started", local(job.started)),
        ("finished", local(job.finished)),
    ]
    if job.state == "running":
        fields += [
            ("holder", holder_text(job.holder)),
            ("heartbeat", f"{ago(job.heartbeat_age)} ago" if job.heartbeat_age is not None else ""),
            ("lease", lease(job)),
        ]
    lines = [f"{name:<10} {clean(value)}" for name, value in fields if value not in ("", None)]
    if claim is not None:
        lines += [f"verdict    {claim.verdict}", *(f"           {clean(sentence)}" for sentence in claim.evidence)]
    if job.error:
        lines += ["", "error", *(f"  {line}" for line in clean_block(job.error).splitlines())]
    if job.payload:
        cut = f" (the first {grouped(len(job.payload))} characters of {grouped(job.payload_size)} bytes)"
        lines += ["", "payload" + (cut if len(job.payload.encode()) < job.payload_size else "")]
        lines += [f"  {line}" for line in clean_block(pretty(job.payload)).splitlines()]
    return "\n".join(lines)


def pretty(payload: str) -> str:
    """JSON indented; anything else as it is."""
    try:
        return msgspec.json.format(payload.encode(), indent=2).decode()
    except (msgspec.DecodeError, UnicodeError):
        return payload
