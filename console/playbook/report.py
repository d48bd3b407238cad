"""The report of a run: before and after, what was changed, how to go back. Markdown. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from console.playbook.model import Playbook, RunState, RunStatus, Snapshot
from console.playbook.standing import jobs
from console.text import clean, size

_STATE = {"done": "followed to its end", "rolled-back": "taken back", "abandoned": "given up", "open": "not over"}


def report(
    book: Playbook, status: RunStatus, state: RunState, before: Snapshot | None, after: Snapshot | None, now: float
) -> str:
    """Everything that came from outside passes the gate to the display."""
    title = clean(book.title) + (f": {clean(status.role)}" if status.role else "")
    parts = [
        f"# {title}",
        f"Playbook `{book.name}`, run `{status.run}`, {_STATE[state]}. "
        f"Begun {_when(status.at)} by {clean(status.who.name)} on {clean(status.host)}, ended {_when(now)}.",
        "## Before and after",
        _table(before, after),
    ]
    for name, seen in (("Before", before), ("After", after)):
        if seen is not None and seen.workers:
            parts += [f"### {name}", "\n".join(f"- {clean(line)}" for line in seen.workers)]
    parts += ["## What was done", "\n\n".join(_step(status, number) for number in range(len(status.steps)))]
    plans = [plan for step in status.steps for plan in step.plans]
    parts += ["## How to go back", _back(status, state, plans)]
    return "\n\n".join(parts)


def _table(before: Snapshot | None, after: Snapshot | None) -> str:
    def row(name: str, *cells: str) -> str:
        return f"| {name} | " + " | ".join(cells) + " |"

    pair = (before, after)
    return "\n".join(
        (
            row("", *(_when(seen.at) if seen is not None else "not known" for seen in pair)),
            "|---|---|---|",
            row("workers", *(str(sum(count for _, count in seen.owners)) if seen else "?" for seen in pair)),
            row("owners", *(_owners(seen) for seen in pair)),
            row("memory", *(size(seen.memory) if seen else "?" for seen in pair)),
            row("jobs", *(jobs(seen) if seen is not None and seen.waiting is not None else "?" for seen in pair)),
        )
    )


def _owners(seen: Snapshot | None) -> str:
    if seen is None:
        return "?"
    return ", ".join(f"{count} × {clean(owner)}".replace("|", "\\|") for owner, count in seen.owners) or "nobody"


def _step(status: RunStatus, place: int) -> str:
    step = status.steps[place]
    lines = [f"{step.number}. **{clean(step.title)}**: {step.state}" + (f", {clean(step.text)}" if step.text else "")]
    lines += [f"   - {clean(each)}" for each in step.evidence]
    lines += [f"   - plan `{plan}`" for plan in step.plans]
    return "\n".join(lines)


def _back(status: RunStatus, state: RunState, plans: list[str]) -> str:
    if state == "rolled-back":
        return "It is taken back already."
    lines = [f"    worktop playbook rollback {status.run}"]
    if plans:
        lines += ["", "Or each change by itself, in this order:", ""]
        lines += [f"    worktop undo {plan}" for plan in reversed(plans)]
    return "\n".join(lines)


def _when(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
