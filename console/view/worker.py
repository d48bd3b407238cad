"""Pure: everything about one worker, as sections of lines."""

from __future__ import annotations

from console.errors import Problem
from console.fleet.model import Owner, TreeProcess, UnitDetail, UnitFile, WorkerState
from console.text import ago, duration, pad, size
from console.view.cells import Part, Tone, columns, fit_parts, safe, safe_block, wrap
from console.view.glyphs import Glyphs, word
from console.view.listing import Look
from console.view.log import log_parts
from console.view.rows import STATE_TONES, rate_text
from console.view.sections import Section
from console.view.workers import Item, owner_text

Parts = tuple[Part, ...]
_LABEL_AT_MOST = 24
_WIDEST = 160


def worker_title(item: Item, glyphs: Glyphs, gone_since: str = "") -> Parts:
    """ "mail @1  ● ok", and when it is gone since when."""
    worker = item.worker
    state: WorkerState = worker.state
    name: Parts = ((safe(worker.role, 24), "head"), (f" {safe(worker.name, 24)}", "head"))
    if gone_since:
        return (*name, (f"  {glyphs.off} gone since {gone_since}", "warn"))
    return (*name, (f"  {glyphs.state(state)} {word(state)}", STATE_TONES[state]))


def worker_sections(
    item: Item, detail: UnitDetail | None, problem: Problem | None, asking: bool, width: int, look: Look
) -> tuple[Section, ...]:
    """The sections; what must be asked for is "asking" or the reason why it is not there."""
    width = max(1, min(_WIDEST, width))
    sections = [Section("WORKER", _worker_lines(item, width, look))]
    waiting = _waiting(problem, asking, width, look.glyphs)
    if item.worker.unit is not None:
        if detail is None:
            sections += [Section(name, waiting) for name in ("PROPERTIES", "UNIT FILE")]
        else:
            sections.append(Section("PROPERTIES", pairs(_told(detail), width) or _none("none were told", width)))
            sections.append(Section("UNIT FILE", _file_lines(detail.files, width)))
    tree = detail.tree if detail is not None else ()
    own = tuple(
        TreeProcess(
            ident=process.ident,
            user=process.user,
            name=process.name,
            command=process.command,
            state=process.state,
            rss=process.rss,
            cpu_seconds=process.cpu_seconds,
            started=process.started,
            owner=process.owner,
        )
        for process in item.worker.processes
    )
    sections.append(Section("PROCESSES", tree_lines(tree or own, width, look) or _none("no process runs", width)))
    sections.append(Section("OWNER", owner_lines(item.worker.owner, width, look.glyphs)))
    if item.worker.unit is not None:
        lines = waiting if detail is None else _log_lines(detail, width, look.glyphs)
        sections.append(Section("JOURNAL", lines))
    return tuple(sections)


def _told(detail: UnitDetail) -> tuple[tuple[str, str], ...]:
    """The properties that are set."""
    return tuple((name, value) for name, value in detail.properties if value)


def _none(text: str, width: int) -> tuple[Parts, ...]:
    return tuple(wrap(((text, "dim"),), width))


def _waiting(problem: Problem | None, asking: bool, width: int, glyphs: Glyphs) -> tuple[Parts, ...]:
    if asking:
        return _none("asking…" if glyphs.unicode else "asking...", width)
    if problem is None:
        return _none("not asked yet; ctrl+r asks", width)
    lines = wrap(((f"{glyphs.bad} {safe(problem.what)}: {safe(problem.why)}", "bad"),), width, 2)
    lines += wrap(((f"{safe(problem.do) + '; ' if problem.do else ''}ctrl+r asks again", "note"),), width)
    return tuple(lines)


def pairs(values: tuple[tuple[str, str], ...], width: int) -> tuple[Parts, ...]:
    """Names and values in two columns."""
    names = [safe(name, _LABEL_AT_MOST) for name, _ in values]
    wide = min(max((columns(name) for name in names), default=0), max(1, width // 2))
    lines: list[Parts] = []
    for name, (_, value) in zip(names, values, strict=True):
        lines += wrap(((f"{pad(name, wide)}  ", "dim"), (safe_block(value), "")), width, wide + 2)
    return tuple(lines)


def _worker_lines(item: Item, width: int, look: Look) -> tuple[Parts, ...]:
    worker, unit = item.worker, item.worker.unit
    values: list[tuple[str, str]] = [("state", word(worker.state) + (f": {worker.why}" if worker.why else ""))]
    if unit is not None:
        values.append(("unit", f"{unit.name}  {unit.active} ({unit.sub}), result {unit.result}"))
        rate = "" if unit.restarts_per_minute is None else f", {rate_text(unit.restarts_per_minute)} a minute"
        values.append(("restarts", f"{unit.restarts}{rate}"))
    if item.pid is not None:
        values.append(("pid", str(item.pid)))
    if item.started is not None:
        what = "running" if item.pid is not None else "so"
        values.append(("since", f"{what} for {ago(max(0.0, round(look.now - item.started)))}"))
    limit = "no limit" if worker.memory_max is None else f"limit {size(worker.memory_max)}"
    if unit is not None and unit.memory_enforced is False and worker.memory_max is not None:
        limit += " (not enforced by the kernel)"
    peak = f", peak {size(worker.memory_peak)}" if worker.memory_peak is not None else ""
    values.append(("memory", f"{size(worker.memory)}{peak}, {limit}"))
    if worker.cpu is not None:
        values.append(("CPU", f"{worker.cpu * 100:.0f} % of one core"))
    for claim in item.claims:
        held = duration(claim.job.running_for)
        stuck = ", STUCK" if claim.stuck else ""
        values.append(("job", f"{claim.job.id} {claim.job.type}, for {held}, holder {claim.verdict}{stuck}"))
    if not item.claims:
        values += [("job", job) for job in worker.jobs] or [("job", "none")]
    return pairs(tuple(values), width)


def _file_lines(files: tuple[UnitFile, ...], width: int) -> tuple[Parts, ...]:
    lines: list[Parts] = []
    for file in files:
        if lines:
            lines.append(())
        lines += wrap((("# " + safe(file.path), "key"),), width)
        if file.problem:
            lines += wrap(((safe(file.problem), "bad"),), width)
        for text in safe_block(file.text).rstrip("\n").split("\n") if file.text else []:
            lines += wrap(((text, _file_tone(text)),), width, 4) or [()]
    return tuple(lines) or _none("it has no file", width)


def _file_tone(line: str) -> Tone:
    if line.startswith(("#", ";")):
        return "dim"
    return "strong" if line.startswith("[") else ""


def tree_lines(tree: tuple[TreeProcess, ...], width: int, look: Look) -> tuple[Parts, ...]:
    """Processes as an indented tree: pid, memory, age, command."""
    pids = max((columns(str(process.ident.pid)) for process in tree), default=1)
    lines: list[Parts] = []
    for process in tree:
        age = "" if process.started is None else ago(max(0.0, round(look.now - process.started)))
        command = safe(" ".join(process.command) or f"[{process.name}]", 400)
        state = f" {safe(process.state, 2)}" if process.state in ("D", "T", "Z") else ""
        indent = "  " * min(process.depth, 20)
        lines.append(
            fit_parts(
                (
                    (f"{process.ident.pid:>{pids}} ", "key"),
                    (f"{size(process.rss):>5} {pad(age, 6, True)}{state}  ", "dim"),
                    (f"{indent}{command}", ""),
                ),
                width,
            )
        )
    return tuple(lines)


def owner_lines(owner: Owner, width: int, glyphs: Glyphs) -> tuple[Parts, ...]:
    """Who would start it again, and what proves it."""
    lines = wrap(((safe(owner_text(owner)), "strong"), (f"  {safe(owner.detail)}", "")), width)
    for sentence in owner.evidence:
        lines += wrap(((f"{glyphs.bullet} ", "dim"), (safe_block(sentence), "")), width, 2)
    if not owner.evidence:
        lines += wrap((("no evidence", "dim"),), width)
    return tuple(lines)


def _log_lines(detail: UnitDetail, width: int, glyphs: Glyphs) -> tuple[Parts, ...]:
    lines = [log_parts(line, width, glyphs, 0) for line in detail.log]
    if detail.log_problem:
        lines += wrap(((f"{glyphs.warning} {safe(detail.log_problem)}", "warn"),), width)
    return tuple(lines) or _none("nothing was logged", width)
