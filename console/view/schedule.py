"""Pure: everything about one entry of the schedules, as sections of lines: for the screen and for the command."""

from __future__ import annotations

from console.errors import Problem
from console.schedules.inventory import Alive, Listed, Translated
from console.schedules.model import FoundRole
from console.text import ago
from console.view.cells import Part, safe, safe_block, wrap
from console.view.glyphs import Glyphs
from console.view.listing import Look
from console.view.schedules import alive_text, class_sign, runs_text, said
from console.view.sections import Section
from console.view.worker import pairs

Parts = tuple[Part, ...]
_WIDEST = 160
UNITS = "UNITS"
_WITNESSES = {"line": "the line", "script": "its script", "processes": "what runs"}


def schedule_title(listed: Listed, glyphs: Glyphs) -> Parts:
    """ "crontab:deploy:4  ▲ launcher"."""
    alive = listed.alive
    growing = bool(alive and alive.growing and listed.explained.kind == "launcher")
    return ((safe(listed.name, 60), "head"), ("  ", ""), *class_sign(listed.explained.kind, growing, glyphs))


def schedule_sections(
    listed: Listed,
    translated: Translated | None,
    problem: Problem | None,
    asking: bool,
    width: int,
    look: Look,
    unit_width: int = 0,
) -> tuple[Section, ...]:
    """`translated`: with unit text, which is asked for; until then it is said why there is none. `unit_width`: of that
    text, where it is another."""
    width = max(1, min(_WIDEST, width))
    told = said(listed)
    sections = [Section("WHAT IT IS", _what(listed, width))]
    if told:
        lines = [line for text in told for line in wrap(((f"{look.glyphs.bullet} {safe(text)}", "warn"),), width, 2)]
        sections.append(Section("WARNINGS", tuple(lines)))
    asked = [line for text in listed.explained.questions for line in wrap(((safe(text), "key"),), width, 2)]
    if asked:
        sections.append(Section("QUESTIONS", tuple(asked)))
    evidence = [
        line
        for each in listed.explained.evidence
        for line in wrap(
            ((f"{_WITNESSES.get(each.source) or safe(each.source)}: ", "dim"), (safe(each.text), "")), width, 2
        )
    ]
    if evidence:
        sections.append(Section("EVIDENCE", tuple(evidence)))
    for role in listed.explained.roles:
        sections.append(Section("STARTS", pairs(_role(role), width)))
    if listed.alive is not None:
        sections.append(Section("ALIVE", _alive(listed.alive, width, look)))
    sections.append(Section("THE LINE", _line(listed, width)))
    sections += _units(translated, problem, asking, width, unit_width or width, look.glyphs)
    return tuple(sections)


def schedule_text(sections: tuple[Section, ...]) -> tuple[Parts, ...]:
    """The sections that a command prints."""
    lines: list[Parts] = []
    for section in sections:
        lines += [((section.name, "head"),), *section.lines, ()]
    return tuple(lines[:-1])


def _what(listed: Listed, width: int) -> tuple[Parts, ...]:
    explained, entry = listed.explained, listed.entry
    scheduled = explained.scheduled
    values = [
        ("class", f"{explained.kind}, {explained.pattern}" if explained.pattern else explained.kind),
        ("confidence", explained.confidence),
        ("role", listed.role or "none that is configured"),
        ("runs as", entry.user),
        ("in", f"{entry.source.path}, line {entry.line}" if entry.line else entry.source.path),
    ]
    if scheduled is not None:
        values.append(("when", f"{scheduled.words}  ({scheduled.expression})"))
        values += [
            ("next" if not place else "", runs_text(at, scheduled.zone)) for place, at in enumerate(scheduled.next_runs)
        ]
        values += [("OnCalendar", line) for line in scheduled.on_calendar]
    values += [("hazard", each) for each in explained.hazards]
    return pairs(tuple(values), width)


def _role(role: FoundRole) -> tuple[tuple[str, str], ...]:
    guard = {True: "works", False: "does not work", None: "not judged"}[role.guard_works]
    instances = "not known" if role.instances is None else str(role.instances)
    names = f" ({', '.join(role.names)})" if role.names else ""
    values = [
        ("role", role.name),
        ("command", " ".join(role.argv)),
        ("instances", f"{instances}{names} each run"),
        ("account", role.user + (f", group {role.group}" if role.group else "")),
        ("folder", role.workdir or "where it is started"),
        *(("variable", f"{name}={value}") for name, value in role.environment),
        ("output", role.output),
        *(("limit", f"{limit.tool}: {limit.text}") for limit in role.limits),
        *(("lock", lock) for lock in role.locks),
        ("guard", f"{role.guard}: {guard}" if role.guard else ""),
    ]
    return tuple((name, value) for name, value in values if value)


def _alive(alive: Alive, width: int, look: Look) -> tuple[Parts, ...]:
    if not alive.count:
        return tuple(wrap((("nothing that came from it runs now", "dim"),), width))
    growing = alive.growing and len(alive.runs) > 1
    lines = wrap(((alive_text(alive, long=True), "bad" if growing else ""),), width)
    if alive.before is not None and alive.before[1] != alive.count:
        lines += wrap(((f"{alive.before[1]} were alive {ago(alive.before[0])} ago", "warn"),), width)
    if alive.evidence:
        lines += wrap(((safe(alive.evidence), "dim"),), width)
    for run in reversed(alive.runs):
        pids = " ".join(str(pid) for pid in run.pids)
        lines += wrap(((f"{ago(round(max(0.0, look.now - run.started)))} ago: pid {pids}", ""),), width, 2)
    return tuple(lines)


def _line(listed: Listed, width: int) -> tuple[Parts, ...]:
    entry = listed.entry
    text = entry.raw.decode("utf-8", "replace") or entry.command
    lines = wrap(((safe(text), "" if entry.active else "dim"),), width, 4)
    if entry.stdin:
        lines += wrap((("on stdin: ", "dim"), (safe(entry.stdin), "")), width, 4)
    for name, value in entry.environment:
        lines += wrap((("with ", "dim"), (safe(f"{name}={value}"), "")), width, 4)
    return tuple(lines)


def _units(
    translated: Translated | None, problem: Problem | None, asking: bool, width: int, unit_width: int, glyphs: Glyphs
) -> list[Section]:
    if translated is None:
        dots = "…" if glyphs.unicode else "..."
        text = (
            problem.line() if problem is not None else f"asking{dots}" if asking else "not asked for yet; ctrl+r asks"
        )
        return [Section(UNITS, tuple(wrap(((safe(text), "bad" if problem is not None else "dim"),), width)))]
    explained = translated.listed.explained
    lines: list[Parts] = []
    for text in translated.held:
        lines += wrap(((f"{glyphs.good} ", "ok"), (safe(text), "")), width, 2)
    for text in translated.failed:
        lines += wrap(((f"{glyphs.bad} ", "bad"), (safe(text), "bad")), width, 2)
    for text in translated.lost:
        lines += wrap(((f"{glyphs.warning} ", "warn"), (safe(text), "")), width, 2)
    if not explained.units:
        lines += wrap((("it is not offered as a unit", "dim"),), width)
    sections = [Section(UNITS, tuple(lines))] if lines else []
    files = (*explained.units, *((path, text) for path, text, _ in explained.extras))
    for name, text in files:
        body = [
            line for each in safe_block(text).rstrip("\n").split("\n") for line in wrap(((each, ""),), unit_width, 4)
        ]
        sections.append(Section(safe(name, 60), tuple(body)))
    return sections
