"""Rules about the sources themselves: what cannot be seen is said, never shown as zero."""

from __future__ import annotations

from collections.abc import Iterator

from console.fleet.model import Finding, Fleet, SourceName
from console.fleet.sources import LABELS
from console.text import ago

_SEES: dict[SourceName, str] = {
    "agent": "nothing of the host is fresh",
    "units": "the state of the units is not known",
    "processes": "strays and owners are not known",
    "host": "memory and process budgets are not known",
    "schedules": "launchers of other accounts may be unseen",
    "queue": "backlog and stuck jobs are not known",
}


def down(fleet: Fleet) -> Iterator[Finding]:
    for source in fleet.sources:
        if source.state not in ("down", "denied") or source.problem is None:
            continue
        if source.name not in ("agent", "queue") and _agent_down(fleet):
            continue  # one finding says it
        label = LABELS[source.name]
        old = f"last good value {ago(source.age)} ago" if source.age is not None else "never read"
        yield Finding(
            code="source-denied" if source.state == "denied" else "source-down",
            severity="note" if source.state == "denied" else "error",
            what=f"{label}: {source.problem.why}"
            if source.state == "down"
            else source.problem.line().partition(";")[0],
            evidence=(source.problem.line(), old, _SEES[source.name]),
            remedy=source.problem.do or "It is tried again by itself; the last values stay and grow old.",
            next="check with worktop doctor" if source.state == "down" else "",
        )


def _agent_down(fleet: Fleet) -> bool:
    return any(source.name == "agent" and source.state == "down" for source in fleet.sources)
