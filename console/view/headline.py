"""Pure: the head of the screen: whose host this is, what time it is, and how old each source's facts are."""

from __future__ import annotations

from datetime import UTC, datetime

from console.fleet.model import Fleet, SourceName, SourceStatus
from console.text import ago, fit
from console.view.cells import Part, Tone, cell, columns, part_columns, safe
from console.view.glyphs import Glyphs

LABELS: dict[SourceName, str] = {
    "agent": "agent",
    "units": "units",
    "processes": "processes",
    "host": "host",
    "schedules": "crontabs",
    "queue": "queue",
}
# A source that calls itself live but has not been heard of for so long is old all the same (seconds).
_OLD_AFTER: dict[SourceName, float] = {"schedules": 300.0}
_OLD_AFTER_ELSE = 30.0
_NOW = 5.0  # younger than this is now: ages that flicker between 1 and 2 tell nobody anything
_GAP = "  "


def clock_text(at: float) -> str:
    """16:42:07 UTC; ? for a time that no calendar has."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "? UTC"


def identity(fleet: Fleet | None, now: float, width: int, glyphs: Glyphs, read_only: bool) -> tuple[Part, ...]:
    """ "worktop · wrk01 · system · deploy · app@127.0.0.1:5432/app · 16:42:07 UTC", filled with blanks to `width`.

    Where it is too narrow the middle leaves first.
    """
    return cell(_identity(fleet, now, width, glyphs, read_only), width).parts


def _identity(fleet: Fleet | None, now: float, width: int, glyphs: Glyphs, read_only: bool) -> tuple[Part, ...]:
    clock = clock_text(now)
    named: list[tuple[str, int]] = []  # text, and how early it leaves
    if fleet is not None and fleet.hello is not None:
        named.append((safe(fleet.hello.host, 32), 1))
        if fleet.hello.manager != "none":
            named.append((fleet.hello.manager, 6))
        named.append((safe(fleet.hello.user, 24), 4))
    if fleet is not None and fleet.queue is not None:
        queue = fleet.queue
        named.append((safe(f"{queue.user}@{queue.address}/{queue.database}", 48), 5))
        if queue.preset != "worktop":  # "procrastinate 3.x", "18/18 columns matched"
            title, _, matched = queue.recognised.partition(", ")
            named += [(safe(text, 48), leaves) for text, leaves in ((title, 7), (matched, 8)) if text]
    named.append((clock, 2))
    if read_only:
        named.append(("read-only", 3))
    by = f" {glyphs.dot} "
    title = "worktop"
    while named and columns(title + by + by.join(text for text, _ in named)) > width:
        if len(named) == 1:
            title = ""
            break
        named.remove(max(named, key=lambda item: item[1]))
    texts = [text for text, _ in named]
    if not title:
        return ((by.join(texts), "strong"),)
    return ((title, "strong"), (by + by.join(texts), ""))


def source_part(source: SourceStatus, glyphs: Glyphs, passed: float = 0.0) -> Part:
    """One source: "● units now", "● queue 4 s", "▲ queue 42 s old: connection refused", "▲ crontabs not permitted".

    `passed` is how many seconds ago the fleet was made.
    """
    label = LABELS[source.name]
    age = None if source.age is None else source.age + max(0.0, passed)
    why = safe(source.problem.why, 120) if source.problem is not None else ""
    if source.state == "absent":
        missing = {"queue": "database", "units": "systemd"}.get(source.name, label)
        return f"{glyphs.off} no {missing}", "dim"
    if source.state == "waiting":
        return f"{glyphs.half} {label} not heard yet", "dim"
    if source.state == "denied":
        tail = "not permitted" if not why or "permi" not in why.lower() else why
        old = f" {ago(age)} old:" if age is not None and age >= _NOW else ""
        return f"{glyphs.warning} {label}{old} {tail}", "warn"
    if source.state == "down":
        old = f" {ago(age)} old" if age is not None else " down"
        return f"{glyphs.bad} {label}{old}{': ' + why if why else ''}", "bad"
    if age is not None and age > _OLD_AFTER.get(source.name, _OLD_AFTER_ELSE):
        return f"{glyphs.warning} {label} {ago(age)} old", "warn"
    return f"{glyphs.good} {label} {'now' if age is None or age < _NOW else ago(age)}", "ok"


def sources(fleet: Fleet | None, now: float, width: int, glyphs: Glyphs) -> tuple[Part, ...]:
    """The sources in at most `width` columns: healthy ones are counted when it is narrow, failing ones named."""
    if width < 1:
        return ()
    if fleet is None:  # the notice says what is being asked
        return ()
    made = [source_part(source, glyphs, now - fleet.now) for source in fleet.sources]
    line = _joined(made)
    if part_columns(line) <= width:
        return line
    line = _joined([*_grouped(fleet, made, glyphs), *(part for part in made if part[1] != "ok")])
    if part_columns(line) <= width:
        return line
    fine = [part for part in made if part[1] == "ok"]
    other = [part for part in made if part[1] not in ("ok", "dim")] + [part for part in made if part[1] == "dim"]
    summary: list[Part] = [(f"{glyphs.good} {len(fine)} ok", "ok")] if fine else []
    line = _joined([*other, *summary])
    if part_columns(line) <= width:
        return line
    if not other:
        return ((fit(summary[0][0], width), "ok"),)
    # Cut the reasons, longest first, until all fit; with no room for reasons, count.
    shortest = [text.partition(":")[0] for text, _ in other]
    room = width - sum(columns(text) for text in shortest) - len(_GAP) * (len(other) - 1)
    if room < 0:
        tone: Tone = "bad" if any(part[1] == "bad" for part in other) else "warn"
        return ((fit(f"{glyphs.warning} {len(other)} of {len(made)} sources failing", width), tone),)
    cut: list[Part] = []
    for index, ((text, tone), short) in enumerate(zip(other, shortest, strict=True)):
        share = room // (len(other) - index)
        kept = fit(text, columns(short) + share) if share > 3 else short
        room -= columns(kept) - columns(short)
        cut.append((kept, tone))
    return _joined(cut)


def head_lines(
    fleet: Fleet | None, now: float, width: int, glyphs: Glyphs, read_only: bool = False, most: int = 2
) -> tuple[tuple[Part, ...], ...]:
    """The head in one line where both halves fit side by side, else in at most `most` lines."""
    if width < 1 or most < 1:
        return ()
    right = sources(fleet, now, width, glyphs)
    full = _identity(fleet, now, 400, glyphs, read_only)
    left_width = part_columns(full)
    if left_width + 3 + part_columns(right) <= width:
        left = cell(full, width - part_columns(right)).parts
        return ((*left, *right),)
    if most == 1:
        failing = [part for part in right if part[1] in ("bad", "warn")]
        return (cell(tuple(failing), width).parts,) if failing else (identity(fleet, now, width, glyphs, read_only),)
    return (identity(fleet, now, width, glyphs, read_only), cell(right, width).parts)


def notices(fleet: Fleet | None, glyphs: Glyphs) -> tuple[str, ...]:
    """Why the screen is empty or not what one would expect, and what to do: one sentence each, at most two."""
    dots = _ellipsis(glyphs)
    if fleet is None:
        return (f"asking systemd{dots} asking the queue{dots}   q quits, ? help",)
    out: list[str] = []
    state = {source.name: source.state for source in fleet.sources}
    if not fleet.roles:
        asking = [LABELS[source.name] for source in fleet.sources if source.state == "waiting"]
        if asking:
            names = {"units": "systemd", "queue": "the queue", "processes": "/proc"}
            asked = [
                names[source.name] for source in fleet.sources if source.state == "waiting" and source.name in names
            ]
            out.append(f"{f'{dots} '.join(f'asking {name}' for name in asked or asking)}{dots}")
        elif state.get("units") == "absent":
            out.append("no roles: there is no systemd here and no worktop.toml names one; worktop doctor looks closer")
        elif state.get("units") in ("down", "denied") or state.get("agent") in ("down", "absent"):
            out.append("no roles: systemd could not be asked; worktop doctor says why, ctrl+r asks again")
        else:
            out.append("no roles: no worktop.toml names one and there is no template unit; ctrl+r asks again")
    elif not any(status.role.configured for status in fleet.roles):
        out.append("no worktop.toml: showing every template unit; ? help says where to write one")
    if state.get("queue") == "absent":
        out.append("no database: workers only; name one in worktop.toml or PGHOST, worktop doctor tries it")
    return tuple(out)


def _grouped(fleet: Fleet, made: list[Part], glyphs: Glyphs) -> list[Part]:
    """The healthy sources by age: "● agent, units, host now"."""
    names: dict[str, list[str]] = {}
    for source, (text, tone) in zip(fleet.sources, made, strict=True):
        if tone == "ok":
            label = LABELS[source.name]
            names.setdefault(text.partition(f" {label} ")[2], []).append(label)
    return [(f"{glyphs.good} {', '.join(labels)} {age}", "ok") for age, labels in names.items()]


def _joined(parts: list[Part]) -> tuple[Part, ...]:
    out: list[Part] = []
    for part in parts:
        if out:
            out[-1] = (out[-1][0] + _GAP, out[-1][1])
        out.append(part)
    return tuple(out)


def _ellipsis(glyphs: Glyphs) -> str:
    return "…" if glyphs.unicode else "..."
