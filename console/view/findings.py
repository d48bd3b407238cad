"""Pure: the findings of a fleet as a table, a title and the evidence behind one of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from console.fleet.model import Finding, Fleet, Severity
from console.view.cells import Cells, Column, Grid, Part, Row, Tone, cell, columns, part_columns, safe, safe_block, wrap
from console.view.glyphs import Glyphs
from console.view.rows import unique

TONES: dict[Severity, Tone] = {"error": "bad", "warning": "warn", "note": "note"}
_RANK: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}
_WORDS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "note"}
_WITHOUT_NEXT = 56  # narrower than this there is no room for the next step
_WITH_EVIDENCE = 32  # so many columns must be left for a piece of the evidence


class Entry(msgspec.Struct, frozen=True):
    """A finding and the key of its row."""

    key: str
    finding: Finding


def entries(fleet: Fleet, role: str | None = None) -> tuple[Entry, ...]:
    """The findings (of one role, or all), worst first, in the fleet's order within a severity."""
    ranked = sorted(fleet.findings, key=lambda finding: _RANK[finding.severity])
    keyed = zip(unique([finding.key for finding in ranked]), ranked, strict=True)
    return tuple(Entry(key, finding) for key, finding in keyed if role is None or finding.role == role)


def title_parts(shown: Sequence[Entry], role: str | None, width: int, hidden: int, glyphs: Glyphs) -> tuple[Part, ...]:
    """ "FINDINGS  3 errors  3 warnings", whose they are, and at the right how many lie below the last line shown."""
    parts: list[Part] = [("FINDINGS", "head")]
    if role is not None:
        parts.append((f" of {safe(role, 24)}", "head"))
    for severity in ("error", "warning", "note"):
        number = sum(entry.finding.severity == severity for entry in shown)
        if number:
            parts.append((f"  {number} {_WORDS[severity]}{'s' if number > 1 else ''}", TONES[severity]))
    if not shown:
        parts.append(("  none", "ok"))
    if role is not None:
        parts.append(("  esc shows all", "dim"))
    if hidden > 0:
        more = f"{glyphs.down} {hidden} more"
        room = width - part_columns(tuple(parts)) - columns(more)
        if room > 1:
            parts.append((" " * room + more, "dim"))
    return cell(tuple(parts), width).parts


_cell = Cells()


def finding_grid(shown: Sequence[Entry], width: int, glyphs: Glyphs) -> Grid:
    """One line per finding: sign, role, what is the case, and at the right the next step."""
    if width < 1 or not shown:
        return Grid()
    names = [safe(entry.finding.role or "host", 16) for entry in shown]
    steps = [f"{glyphs.enter} {safe(entry.finding.next, 24)}" if entry.finding.next else "" for entry in shown]
    widths = [2, max(columns(name) for name in names) + 1, 0, max(columns(step) for step in steps)]
    if width < _WITHOUT_NEXT or widths[3] > width // 3:
        widths[3] = 0
    if width < 24:
        widths[1] = 0
    widths[0] = min(widths[0], width)
    widths[2] = max(0, width - widths[0] - widths[1] - widths[3] - (1 if widths[3] else 0))
    keys = ("sign", "role", "what", "next")
    rows = []
    _cell.begin()
    for entry, name, step in zip(shown, names, steps, strict=True):
        finding = entry.finding
        parts_of: tuple[tuple[Part, ...], ...] = (
            ((glyphs.severity(finding.severity), TONES[finding.severity]),),
            ((name, "strong"),),
            _what(finding, widths[2]),
            ((step, "key"),),
        )
        gaps = (0, 0, 1 if widths[3] else 0, 0)
        made = (_cell(parts, wide, gap=gap) for parts, wide, gap in zip(parts_of, widths, gaps, strict=True))
        rows.append(Row(entry.key, tuple(c for c, wide in zip(made, widths, strict=True) if wide)))
    wide = [(key, w + (1 if key == "what" and widths[3] else 0)) for key, w in zip(keys, widths, strict=True) if w]
    return Grid(columns=tuple(Column(key, " " * w, w) for key, w in wide), rows=tuple(rows))


def _what(finding: Finding, width: int) -> tuple[Part, ...]:
    what = safe(finding.what, max(0, width))
    room = width - columns(what) - 2
    if room < _WITH_EVIDENCE or not finding.evidence:
        return ((what, ""),)
    return ((what, ""), ("  ", ""), (safe(finding.evidence[0], room), "dim"))


def evidence_lines(finding: Finding, width: int, glyphs: Glyphs) -> tuple[tuple[Part, ...], ...]:
    """Everything about a finding as lines of at most `width` columns; an empty line is ()."""
    tone = TONES[finding.severity]
    lines: list[tuple[Part, ...]] = []

    def add(*parts: Part, indent: int = 0) -> None:
        lines.extend(wrap(parts, width, indent))

    add((f"{glyphs.severity(finding.severity)} {_WORDS[finding.severity]}", tone), (f"  {safe(finding.code)}", "dim"))
    add((safe_block(finding.what), "strong"))
    lines.append(())
    if finding.evidence:
        add(("EVIDENCE", "head"))
        for sentence in finding.evidence:
            add((f"{glyphs.bullet} ", "dim"), (safe_block(sentence), ""), indent=2)
        lines.append(())
    if finding.remedy:
        add(("WHAT MENDS IT", "head"))
        add((safe_block(finding.remedy), ""))
        lines.append(())
    if finding.next:
        add(("Next step: ", "dim"), (safe(finding.next), "key"))
    return tuple(lines)


@lru_cache(maxsize=16)
def detail_lines(finding: Finding, width: int, room: int, glyphs: Glyphs) -> tuple[tuple[Part, ...], ...]:
    """A finding in at most `room` lines, for the place below the list: the whole sentence, evidence, what mends it."""
    lines = wrap(((safe(finding.what), "strong"),), width)
    for sentence in finding.evidence:
        lines += wrap(((f"{glyphs.bullet} ", "dim"), (safe(sentence), "")), width, 2)
    if finding.remedy:
        lines += wrap((("mend: ", "dim"), (safe(finding.remedy), "")), width, 6)
    if len(lines) > room > 0:
        more = len(lines) - room + 1
        lines[room - 1 :] = [((f"{glyphs.down} {more} more lines: {glyphs.enter}", "dim"),)]
    return tuple(cell(line, width).parts for line in lines[:room])
