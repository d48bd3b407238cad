"""Pure: the audit as a list, one entry of it as sections, and what came of an action."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, tzinfo

from console.errors import Problem
from console.fleet.plan import AuditEntry, Outcome, Plan
from console.text import grouped
from console.view.cells import Part, Tone, safe, wrap
from console.view.glyphs import Glyphs
from console.view.listing import ListColumn, Look, Parts
from console.view.plan import outcome_lines, plan_lines
from console.view.sections import Section

STATE_TONES: dict[str, Tone] = {"done": "ok", "partly": "warn", "failed": "bad", "stopped": "warn", "cancelled": "dim"}
_LABEL = 11


def when(at: float, zone: tzinfo | None = None, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """ "2026-11-29 16:42:07 UTC" in `zone` (None: this machine's); ? for a time that no calendar has."""
    try:
        local = datetime.fromtimestamp(at, zone) if zone is not None else datetime.fromtimestamp(at).astimezone()
    except (OverflowError, ValueError, OSError):
        return "?"
    return f"{local:{form}} {local.tzname() or ''}".rstrip()


def audit_columns(zone: tzinfo | None = None) -> tuple[ListColumn[AuditEntry], ...]:
    """The columns of the list; times in `zone`."""

    def at(entry: AuditEntry, look: Look) -> Part:
        return when(entry.at, zone, "%m-%d %H:%M"), ""  # year and second are in the entry

    return (
        _column("at", "WHEN", at, lambda entry: entry.at, descends=True),
        _column(
            "state",
            "STATE",
            lambda entry, look: (safe(entry.state, 12), STATE_TONES.get(entry.state, "")),
            lambda entry: entry.state,
        ),
        _column(
            "who", "WHO", lambda entry, look: (safe(entry.who.name, 24), ""), lambda entry: entry.who.name, leave=3
        ),
        _column(
            "rows", "ROWS", lambda entry, look: (grouped(entry.rows), ""), lambda entry: entry.rows, right=True, leave=4
        ),
        _column(
            "undo",
            "UNDO",
            lambda entry, look: ("u" if entry.undo else look.glyphs.none, "key" if entry.undo else "dim"),
            leave=5,
        ),
        _column("title", "WHAT", lambda entry, look: (safe(entry.title, 200), "strong"), fill=True, least=16),
    )


def entry_sections(entry: AuditEntry, width: int, glyphs: Glyphs, zone: tzinfo | None) -> tuple[Section, ...]:
    """Everything that was written of an action."""
    lines: list[tuple[Part, ...]] = []

    def field(label: str, text: str, tone: Tone = "") -> None:
        if text:
            lines.extend(wrap(((f"{label:<{_LABEL}}", "dim"), (safe(text), tone)), width, _LABEL))

    field("state", entry.state, STATE_TONES.get(entry.state, ""))
    field("came of it", entry.text)
    field("ended", when(entry.at, zone))
    field("took", f"{entry.outcome.took:.1f} s" if entry.outcome is not None else "")
    field("rows", grouped(entry.rows))
    field("who", _who(entry))
    field("on", entry.host)
    field("why", entry.why)
    field("command", entry.shown.command if entry.shown is not None else "", "key")
    field("undo", f"u here, or {entry.undo}" if entry.undo else "nothing can be undone", "key" if entry.undo else "dim")
    field("plan", entry.plan, "dim")
    sections = [Section("ACTION", tuple(lines))]
    if entry.shown is not None and entry.outcome is not None:
        sections.append(Section("WHAT CAME OF IT", outcome_lines(entry.shown, entry.outcome, width, glyphs)))
    if entry.shown is not None:
        sections.append(Section("THE PLAN AS SHOWN", plan_lines(entry.shown, width, glyphs)))
    return tuple(sections)


def result_sections(
    plan: Plan, outcome: Outcome | None, problem: Problem | None, width: int, glyphs: Glyphs, defect: bool = False
) -> tuple[Section, ...]:
    """What an apply came to; `problem` when it was refused before anything was done, or met a `defect`."""
    if outcome is None:
        told = problem.line() if problem is not None else "nothing is known of it"
        return (
            Section(
                "CUT OFF" if defect else "NOTHING WAS DONE",
                tuple(wrap(((f"{glyphs.bad} ", "bad"), (safe(told), "bad")), width, 2)),
            ),
            Section("THE PLAN", plan_lines(plan, width, glyphs, "brief")),
        )
    after: list[tuple[Part, ...]] = []
    if outcome.next:
        after += wrap(((f"{glyphs.enter} plans", "key"), (f": {safe(outcome.next[0].title)}", "")), width)
    if outcome.undo:
        after += wrap((("u undoes it", "key"), (f", or later: {safe(outcome.undo)}", "")), width)
    else:
        after += wrap((("nothing can be undone", "dim"),), width)
    after += wrap((("9 Audit", "key"), (f" has it as {safe(outcome.plan)}", "")), width)
    return (
        Section("RESULT", outcome_lines(plan, outcome, width, glyphs)),
        Section("AFTERWARDS", tuple(after)),
        Section("THE PLAN", plan_lines(plan, width, glyphs, "brief")),
    )


def _who(entry: AuditEntry) -> str:
    who = entry.who
    told = [who.name]
    if who.sudo:
        told.append(f"by sudo from {who.sudo}")
    if who.uid >= 0:
        told.append(f"uid {who.uid}")
    return ", ".join(text for text in told if text)


def _column(
    key: str,
    label: str,
    read: Callable[[AuditEntry, Look], Part],
    sort: Callable[[AuditEntry], object] | None = None,
    descends: bool = False,
    right: bool = False,
    leave: int = 0,
    fill: bool = False,
    least: int = 1,
) -> ListColumn[AuditEntry]:
    def parts(entry: AuditEntry, look: Look) -> Parts:
        return (read(entry, look),)

    return ListColumn(
        key=key,
        label=label,
        parts=parts,
        sort=sort,
        descends=descends,
        right=right,
        leave=leave,
        fill=fill,
        least=least,
    )
