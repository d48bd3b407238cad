"""What a crontab line is, with evidence: launcher, short cycle, periodic, nothing, or invalid. Pure.

Three witnesses are heard: the line, the scripts it runs, and the live processes. Where they do not agree, or do not
suffice, the person is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import msgspec

from console.schedules import marks
from console.schedules.decide import DAY, Rhythm, Verdict, candidates, verdict
from console.schedules.expression import parse
from console.schedules.hazards import Scene, guard_works, hazards_of, launcher_pattern, run_folders
from console.schedules.jobs import job
from console.schedules.model import Confidence, Entry, Evidence, Explained, Scheduled, ScriptText, Surroundings
from console.schedules.roles import Built, built, grouped, home_of, user_of
from console.schedules.shell.interpret import interpret
from console.schedules.shell.values import Reading
from console.schedules.starts import Start
from console.schedules.supervisors import supervised
from console.schedules.witnesses import agreed

Read = Callable[[str], ScriptText | None]
_PERIODS = {"hourly": 3600.0, "daily": DAY, "weekly": 7 * DAY, "monthly": 30 * DAY}


def explain(
    entry: Entry, read: Read, host: Surroundings, scheduled: Scheduled | None = None, *, translate: bool = True
) -> Explained:
    """The class of an entry, what it starts, and the units it would become. Never raises, executes nothing.

    `read` gives the text of a file, None when it is absent. `scheduled`: when it runs; its OnCalendar lines go into
    the timer. Without `translate` no unit text is made, which a long list does not need.
    """
    if entry.problems:
        return Explained(
            entry=entry,
            kind="invalid",
            pattern="not_run",
            confidence="high",
            scheduled=scheduled,
            evidence=tuple(Evidence(source="line", text=problem) for problem in entry.problems),
            warnings=entry.problems,
        )
    if not entry.active:
        return Explained(
            entry=entry, kind="none", pattern="comment_only", confidence="high", hazards=("commented_jobs",),
            evidence=(Evidence(source="line", text="the line is a comment: cron runs nothing"),),
        )  # fmt: skip
    if not entry.command.strip():
        return Explained(
            entry=entry, kind="none", pattern="no_command", confidence="high", scheduled=scheduled,
            evidence=(Evidence(source="line", text="the line has no command: cron runs nothing"),),
        )  # fmt: skip
    rhythm = rhythm_of(entry)
    reading = read_line(entry, read, host)
    starts, verdicts = _judged(reading, rhythm, entry, read, host)
    scene = Scene(entry, reading, rhythm, read, host, starts, verdicts, translate)
    workers = [start for start, found in zip(starts, verdicts, strict=True) if found.worker]
    if workers:
        return _launcher(scene, workers, scheduled)
    return _job(scene, scheduled)


def rhythm_of(entry: Entry) -> Rhythm:
    """How often an entry runs."""
    kind = entry.source.kind
    if kind in ("rc.local", "unit", "supervisord", "pm2") or entry.expression == "@reboot":
        return Rhythm(True, 0.0)
    if kind == "anacron" or entry.label:
        days = {"@daily": 1, "@weekly": 7, "@monthly": 30, "@yearly": 365, "@annually": 365}.get(entry.expression)
        return Rhythm(False, DAY * (days or (int(entry.expression) if entry.expression.isdecimal() else 1)))
    if kind in _PERIODS and not entry.expression:
        return Rhythm(False, _PERIODS[kind])
    return Rhythm(False, _period(entry.expression) if entry.expression else 0.0)


@lru_cache(maxsize=4096)
def _period(expression: str) -> float:
    """Seconds between two runs, near enough to tell minutes from days; 0 when it never fires."""
    try:
        parsed = parse(expression)
    except ValueError:
        return 0.0
    if not parsed.fires:
        return 0.0
    of_month, of_week = len(parsed.days) / 30.4, len(parsed.weekdays) / 7
    days = min(1.0, of_month) * of_week if parsed.both else min(1.0, of_month + of_week)
    runs = len(parsed.minutes) * len(parsed.hours) * days * len(parsed.months) / 12
    return DAY / runs if runs else 0.0


def read_line(entry: Entry, read: Read, host: Surroundings) -> Reading:
    """Everything the line runs, followed through its scripts."""
    home = home_of(entry.user, host)
    environment = {"HOME": home, "LOGNAME": entry.user, "SHELL": "/bin/sh", **dict(entry.environment)}
    return interpret(
        entry.command.rstrip("\r"), environment=environment, home=environment["HOME"], user=entry.user, read=read,
        stdin=entry.stdin, home_of=lambda user: home_of(user, host),
    )  # fmt: skip


def _judged(
    reading: Reading, rhythm: Rhythm, entry: Entry, read: Read, host: Surroundings
) -> tuple[list[Start], list[Verdict]]:
    starts: list[Start] = []
    for start in candidates(reading):
        home = home_of(user_of(start, entry), host)
        starts += supervised(start.command, read, home) or [start]
    verdicts = [verdict(start, reading, rhythm) for start in starts]
    _only_the_last(starts, verdicts, rhythm)
    return starts, verdicts


def _only_the_last(starts: list[Start], verdicts: list[Verdict], rhythm: Rhythm) -> None:
    """In the foreground, what comes before a worker has ended: of unknown programs one after the other only the last
    goes on, and none does where a known worker follows."""
    unsure = [
        place for place, (start, found) in enumerate(zip(starts, verdicts, strict=True))
        if found.worker and not start.shape and not start.command.around.background and start.judged.life == "unknown"
        and not start.command.around.endless
    ]  # fmt: skip
    known = [place for place, found in enumerate(verdicts) if found.worker and place not in unsure]
    keep = {unsure[-1]} if unsure and not known else set()
    for place in unsure:
        if place not in keep and (known or not _alike(starts[place], starts[unsure[-1]])):
            verdicts[place] = verdicts[place]._replace(worker=False, why="what comes after it is the worker")


def _alike(one: Start, other: Start) -> bool:
    return tuple(map(marks.shown, one.argv)) == tuple(map(marks.shown, other.argv))


# --- launchers ------------------------------------------------------------------------------------------------------


def _launcher(scene: Scene, workers: list[Start], scheduled: Scheduled | None) -> Explained:
    entry = scene.entry
    workers, whole = scene.whole_script(workers)
    groups = grouped(workers)
    made = run_folders(scene.reading)
    found: list[Built] = []
    for group in groups:
        works = guard_works(scene, group)
        found.append(built(group, entry, scene.read, scene.host, works, made, scene.translate))
    _distinct(found)
    pattern = launcher_pattern(scene, groups, found, whole)
    hazards = hazards_of(scene, groups, found, whole)
    evidence, questions, sure = agreed(scene, groups, found)
    questions += [question for each in found for question in each.questions]
    remarks = dict.fromkeys(remark for each in found for remark in each.remarks)
    confidence = "high" if whole and sure else _confidence(scene, workers, pattern, sure)
    return Explained(
        entry=entry, kind="launcher", pattern=pattern, confidence=confidence, roles=tuple(each.role for each in found),
        scheduled=scheduled, evidence=evidence, warnings=(*scene.warnings(hazards, scheduled), *remarks),
        hazards=hazards,
        units=tuple(unit for each in found for unit in each.files.units),
        extras=tuple(extra for each in found for extra in each.files.extras),
        questions=tuple(dict.fromkeys(questions)),
    )  # fmt: skip


def _distinct(found: list[Built]) -> None:
    """Two roles of a line never share a name."""
    seen: dict[str, int] = {}
    for each in found:
        name = each.role.name
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            new = f"{name}-{seen[name]}"
            each.role = msgspec.structs.replace(each.role, name=new)
            renamed = tuple((file.replace(name, new, 1), text) for file, text in each.files.units)
            each.files = each.files._replace(units=renamed)


def _confidence(scene: Scene, workers: list[Start], pattern: str, sure: bool) -> Confidence:
    if any(found.worker and not found.sure for found in scene.verdicts) or not sure:
        unsure = all(start.judged.life == "unknown" for start in workers)
        return "low" if unsure and not any(start.shape for start in workers) and not sure else "medium"
    if pattern in ("broken_guard", "container_bootstrap", "anacron_launcher") or not scene.reading.complete:
        return "medium"
    return "high"


# --- what ends by itself --------------------------------------------------------------------------------------------


def _job(scene: Scene, scheduled: Scheduled | None) -> Explained:
    found = job(scene, scheduled)
    hazards = found.hazards
    evidence, questions, sure = agreed(scene, [], [])
    confidence: Confidence = found.confidence if sure else "medium"
    return Explained(
        entry=scene.entry,
        kind=found.kind,
        pattern=found.pattern,
        confidence=confidence,
        roles=(found.role,) if found.role is not None else (),
        scheduled=scheduled,
        evidence=evidence,
        warnings=(*scene.warnings(hazards, scheduled), *found.remarks),
        hazards=hazards,
        units=found.files.units,
        extras=found.files.extras,
        questions=tuple(dict.fromkeys((*found.questions, *questions))),
    )
