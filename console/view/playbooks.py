"""Pure: playbooks and their runs as a list, and which playbook is for what a person looks at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from console.fleet.model import Finding, Value
from console.playbook.model import Playbook, RunStatus, Settings, Shelved
from console.schedules.inventory import Listed, short_name
from console.text import ago
from console.view.cells import Part, Tone, safe, wrap
from console.view.glyphs import Glyphs
from console.view.listing import LUXURY, ListColumn, Look
from console.view.page import Lines, Page
from console.view.playbook import book_lines, run_lines, setting_text
from console.view.sections import Section

Parts = tuple[Part, ...]
ROLE, ENTRY = "role", "entry"  # needs that are filled in from what a person looks at

_FINISHED_AT_MOST = 20
_KINDS: dict[str, tuple[str, Tone]] = {
    "open": ("unfinished", "warn"),
    "done": ("done", "ok"),
    "rolled-back": ("taken back", "dim"),
    "abandoned": ("given up", "dim"),
    "playbook": ("playbook", "key"),
    "faulty": ("faulty file", "bad"),
}
_REVERSIBLE = {"yes": "all of it", "partly": "in part", "no": "no"}
_CRONTABS = frozenset({"user", "system", "cron.d"})


class Row(Value, frozen=True, kw_only=True):
    """A playbook, or a run of one."""

    shelved: Shelved | None = None
    run: RunStatus | None = None
    mends: int = 0  # findings of now that it is for

    @property
    def key(self) -> str:
        return self.run.run if self.run is not None else f"book {self.shelved.name if self.shelved else ''}"

    @property
    def kind(self) -> Literal["open", "done", "rolled-back", "abandoned", "playbook", "faulty"]:
        if self.run is not None:
            return self.run.state
        return "playbook" if self.shelved is not None and self.shelved.playbook is not None else "faulty"


class Begin(Value, frozen=True, kw_only=True):
    """A playbook that can be begun for what a person looks at, with the values known from there."""

    book: Playbook
    label: str  # safe
    help: str  # safe
    values: Settings


def rows(shelf: Iterable[Shelved], runs: Iterable[RunStatus], findings: Sequence[Finding]) -> tuple[Row, ...]:
    """Unfinished runs first, then the playbooks, those that mend something now before others, then what is over."""
    known = tuple(runs)
    books = [Row(shelved=each, mends=_mends(each.playbook, findings)) for each in shelf]
    over = [Row(run=run) for run in known if run.state != "open"]
    return (
        *(Row(run=run) for run in known if run.state == "open"),
        *sorted(books, key=lambda row: -row.mends),
        *over[:_FINISHED_AT_MOST],
    )


def _mends(book: Playbook | None, findings: Sequence[Finding]) -> int:
    return sum(finding.code in book.findings for finding in findings) if book is not None else 0


# --- the list --------------------------------------------------------------------------------------------------------


def _kind(row: Row, look: Look) -> Parts:
    word, tone = _KINDS[row.kind]
    sign = {"open": look.glyphs.changing, "faulty": look.glyphs.bad, "done": look.glyphs.good}.get(row.kind, " ")
    return ((f"{sign} {word}", tone),)


def _name(row: Row, look: Look) -> Parts:
    name = row.run.playbook if row.run is not None else row.shelved.name if row.shelved is not None else ""
    return ((safe(name, 40), "strong"),)


def _role(row: Row, look: Look) -> Parts:
    return ((safe(row.run.role, 24), ""),) if row.run is not None else (("", ""),)


def _place(row: Row, look: Look) -> Parts:
    if row.run is not None:
        count = len(row.run.steps)
        return ((f"{min(row.run.number, count)} of {count}" if row.run.state == "open" else f"{count} of {count}", ""),)
    book = row.shelved.playbook if row.shelved is not None else None
    return ((f"{len(book.steps)}" if book is not None else "", "dim"),)


def _when(row: Row, look: Look) -> Parts:
    return ((f"{ago(max(0.0, look.now - row.run.at))} ago", "dim"),) if row.run is not None else (("", ""),)


def _back(row: Row, look: Look) -> Parts:
    book = row.shelved.playbook if row.shelved is not None else None
    return ((_REVERSIBLE[book.reversible], "dim"),) if book is not None else (("", ""),)


def _what(row: Row, look: Look) -> Parts:
    if row.run is not None:
        return run_parts(row.run)
    if row.shelved is None:
        return ()
    book = row.shelved.playbook
    if book is None:
        flaw = next(iter(row.shelved.flaws), None)
        return ((safe(f"line {flaw.line}: {flaw.text}") if flaw is not None else "it cannot be read", "bad"),)
    mends: Parts = ((f"mends {row.mends} now: ", "warn"),) if row.mends else ()
    return (*mends, (safe(book.title), ""))


def run_parts(run: RunStatus) -> Parts:
    """Where a run stands, a clause."""
    held: Parts = ((f"{safe(run.held, 40)} runs it now  ", "note"),) if run.held else ()
    if run.state != "open":
        return (*held, (safe(run.title), "dim"))
    step = next((step for step in run.steps if step.number == run.number), None)
    if step is None:
        return (*held, ("all steps are done", ""))
    word = {"waits": "waits: ", "failed": "failed: ", "undone": "taken back to: "}.get(step.state, "next: ")
    return (*held, (word, "warn" if step.state in ("waits", "failed") else "dim"), (safe(step.title), ""))


COLUMNS: tuple[ListColumn[Row], ...] = (
    ListColumn(key="kind", label="WHAT", parts=_kind, sort=lambda row: list(_KINDS).index(row.kind), least=12),
    ListColumn(key="name", label="PLAYBOOK", parts=_name, sort=lambda row: _name_of(row).casefold(), least=12),
    ListColumn(key="role", label="ROLE", parts=_role, sort=lambda row: _role_of(row), leave=2, least=6),
    ListColumn(key="step", label="STEP", parts=_place, leave=3, least=6),
    ListColumn(
        key="begun", label="BEGUN", parts=_when, sort=lambda row: row.run.at if row.run is not None else None,
        descends=True, leave=LUXURY, least=8,
    ),
    ListColumn(key="back", label="TAKES BACK", parts=_back, leave=LUXURY + 1, least=9),
    ListColumn(key="about", label="STANDS AT, OR IS FOR", parts=_what, leave=1, fill=True, least=20, wish=56),
)  # fmt: skip


def _name_of(row: Row) -> str:
    return row.run.playbook if row.run is not None else row.shelved.name if row.shelved is not None else ""


def _role_of(row: Row) -> str | None:
    return (row.run.role or None) if row.run is not None else None


def summary_parts(shown: Sequence[Row]) -> Parts:
    """How many of what."""
    unfinished = sum(row.kind == "open" for row in shown)
    faulty = sum(row.kind == "faulty" for row in shown)
    books = sum(row.kind == "playbook" for row in shown)
    return (
        *(((f"{unfinished} unfinished", "warn"),) if unfinished else ()),
        (f"{books} playbook{'' if books == 1 else 's'}", "dim"),
        *(((f"{faulty} faulty", "bad"),) if faulty else ()),
    )


def notice(runs: Iterable[RunStatus]) -> str:
    """What is said of unfinished runs when the console starts; "" when there are none, or somebody runs them now."""
    found = [run for run in runs if run.state == "open" and not run.held]
    if not found:
        return ""
    first = found[0]
    of = f" of {safe(first.role, 24)}" if first.role else ""
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return f"unfinished: {safe(first.title, 60)}{of}, step {first.number} of {len(first.steps)}{more}; 8 shows it"


# --- what a person looks at ------------------------------------------------------------------------------------------


def for_findings(shelf: Iterable[Shelved], findings: Sequence[Finding]) -> tuple[Begin, ...]:
    """The playbooks that mend these findings, with the role filled in; each once."""
    found: list[Begin] = []
    books = [each.playbook for each in shelf if each.playbook is not None]
    for finding in findings:
        for book in books:
            values = _known(book, {ROLE: finding.role})
            if finding.code in book.findings and all((begin.book, begin.values) != (book, values) for begin in found):
                found.append(_begin(book, values, f"mends: {safe(finding.what, 120)}"))
    return tuple(found)


def for_entry(shelf: Iterable[Shelved], listed: Listed | None) -> tuple[Begin, ...]:
    """The playbooks that are about a line of a crontab, with the line filled in, and the role where it is known."""
    if listed is None or listed.entry.source.kind not in _CRONTABS:
        return ()
    books = [each.playbook for each in shelf if each.playbook is not None and takes(each.playbook, ENTRY)]
    return tuple(
        _begin(book, _known(book, {ENTRY: short_name(listed.name), ROLE: listed.role}), f"for {safe(listed.name, 60)}")
        for book in books
    )


def mending_lines(begins: Sequence[Begin], width: int) -> Lines:
    """Below the evidence of a finding: the playbooks that mend it."""
    lines: list[Parts] = []
    for place, begin in enumerate(begins):
        key = "P" if not place else "x"
        lines += wrap((("Playbook:  ", "dim"), (f"{key} ", "key"), (safe(begin.book.title, 80), "")), width, 11)
    return tuple(lines)


def takes(book: Playbook, name: str) -> bool:
    """The playbook needs such a value, or has a default for it."""
    return name in book.defaults or any(need == name for need, _ in book.needs)


def missing(book: Playbook, values: Settings) -> tuple[tuple[str, str], ...]:
    """What a run needs and is not known yet."""
    return tuple((name, about) for name, about in book.needs if not values.get(name) and name not in book.defaults)


def _known(book: Playbook, values: Settings) -> Settings:
    return {name: value for name, value in values.items() if value and takes(book, name)}


def _begin(book: Playbook, values: Settings, help: str) -> Begin:
    return Begin(book=book, label=f"playbook: {safe(book.title, 50)}", help=help, values=values)


# --- one playbook ----------------------------------------------------------------------------------------------------


def open_run(runs: Iterable[RunStatus], book: Playbook, values: Settings) -> RunStatus | None:
    """The unfinished run of the playbook for the same role: that is taken up, no other is begun."""
    role = str(values.get(ROLE, ""))
    same = (run for run in runs if run.state == "open" and (run.playbook, run.role) == (book.name, role))
    return next(same, None)


def book_sections(
    book: Playbook, values: Settings, width: int, glyphs: Glyphs, run: RunStatus | None = None
) -> tuple[Section, ...]:
    """What a run would be given and is asked for, then the whole playbook. `run` is unfinished, and is taken up."""
    page = Page(width, glyphs)
    if run is not None:
        values = {name: value for name, value in run.values.items() if book.defaults.get(name) != value}
        at = f"step {run.number} of {len(run.steps)}"
        page.add((f"{glyphs.enter} takes up the unfinished run", "key"), (f": it stands at {at}", ""), indent=2)
    else:
        page.add((f"{glyphs.enter} begins it", "key"), (": its first step is shown, nothing is changed by that", ""))
    for name, value in values.items():
        page.field(name, setting_text(value), "strong")
    for name, about in missing(book, values):
        page.add((f"{safe(name, 12):<13}", "dim"), ("asked for: ", "note"), (safe(about), ""), indent=13)
    return (
        Section("BEGIN", tuple(page.lines)),
        Section("PLAYBOOK", book_lines(book, width, glyphs)),
    )


def flaw_lines(shelved: Shelved, width: int, glyphs: Glyphs) -> Lines:
    """What is wrong with a file, a line each."""
    page = Page(width, glyphs)
    for flaw in shelved.flaws:
        page.add((f"{flaw.line:>5}  ", "dim"), (safe(flaw.text), "bad"), indent=7)
    page.break_()
    page.add(("worktop playbook check FILE tells the same; ctrl+r on the list reads it again", "note"))
    return tuple(page.lines)


def run_sections(run: RunStatus, now: float, width: int, glyphs: Glyphs) -> tuple[Section, ...]:
    """How far it has come, and what was seen at each step."""
    seen = Page(width, glyphs)
    for step in run.steps:
        if step.evidence or step.plans:
            seen.add((f"{step.number:>2} ", "key"), (safe(step.title), "strong"), indent=3)
        for sentence in step.evidence:
            seen.text(sentence, 3)
        for plan in step.plans:
            seen.add(("   plan ", "dim"), (safe(plan, 40), ""), ("  9 Audit has it", "dim"), indent=8)
    told = (Section("RUN", run_lines(run, now, width, glyphs)),)
    return (*told, Section("WHAT WAS SEEN", tuple(seen.lines))) if seen.lines else told
