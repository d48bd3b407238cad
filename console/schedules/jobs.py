"""Commands that end by themselves: short cycles and periodic jobs, and the service and timer they become. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from console.schedules import marks, programs, units
from console.schedules.carriers import tool_of
from console.schedules.decide import bounded, is_wait, keeps_one
from console.schedules.hazards import Scene, dash_braces, of_the_line
from console.schedules.jobunits import PREPARES, role_and_files
from console.schedules.model import Confidence, FoundRole, Kind, Scheduled
from console.schedules.shell.values import BUILTINS, Command
from console.schedules.starts import Start, start_of

_MAINTENANCE = re.compile(
    r"clean|purge|prune|vacuum|rotate|tmp|expire|gc$|optimi|reindex|delete|sweep|trim", re.IGNORECASE
)
_REPORTS = re.compile(
    r"report|mail|invoice|digest|newsletter|close|stat(s|istics)?\b|summary|export|bill", re.IGNORECASE
)
_PACKAGES = re.compile(
    r"certbot|php|sysstat|popularity-contest|e2scrub_all|mdadm|anacron|apt|dpkg|man-db|logrotate|zfsutils-linux|awstats|"
    r"ntpsec|sa-update|spamassassin|amavis\w*|mailman|munin\w*|roundcube|debsums|aide|chkrootkit|rkhunter|raid-check|"
    r"0hourly|0yum\w*"
)


class Job(NamedTuple):
    kind: Kind
    pattern: str
    confidence: Confidence
    role: FoundRole | None
    hazards: tuple[str, ...]
    files: units.Files
    questions: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def job(scene: Scene, scheduled: Scheduled | None) -> Job:
    """What a line without workers is."""
    often = 0 < scene.rhythm.period < 3600 and not _of_a_package(scene)
    kind: Kind = "short_cycle" if often else "periodic"
    mains = _mains(scene)
    if not mains:
        return Job(kind, "nothing_lasting", "medium", None, (), units.NO_FILES, ())
    main = next((start for start in scene.starts if start.command is mains[0]), None) or start_of(mains[0])
    pattern, confidence = _pattern(scene, main, kind)
    hazards = _hazards(scene, main, kind, pattern)
    role, files, remarks = role_and_files(scene, main, mains, kind, pattern, scheduled)
    questions = _not_seen(scene, main, kind)
    if scene.reading.notes and kind == "short_cycle":
        confidence = "medium"
    if questions:
        confidence = "low" if kind == "short_cycle" else "medium"
    unsure = [start for start, found in zip(scene.starts, scene.verdicts, strict=True) if not found.sure]
    if unsure and pattern not in ("backgrounded_periodic",):
        words = " ".join(map(marks.shown, unsure[0].argv))
        questions.append(f"does {words} end by itself, or does it go on until it is stopped?")
        confidence = "low" if confidence == "low" else "medium"
    return Job(kind, pattern, confidence, role, hazards, files, tuple(questions), tuple(remarks))


def _not_seen(scene: Scene, main: Start, kind: Kind) -> list[str]:
    """Questions about a script whose text is not known, when its name tells nothing either."""
    plain = tuple(map(marks.concrete, main.argv))
    path = programs.program_of(plain).path or plain[0]
    script = main.command.script
    if script is not None and programs.leaves_behind(script):
        return [f"{path} starts processes itself and is not followed: do they go on after it has ended?"]
    if (
        not path.startswith("/")
        or main.judged.life != "unknown"
        or any(path == each.followed for each in scene.scripts())
    ):
        return []
    found = scene.read(path)
    if found is not None and not found.problem:
        return []
    if found is not None and found.problem.startswith("binary"):
        return [] if kind == "periodic" else [f"{path} is no text: does it end by itself?"]
    why = "is not there" if found is None else f"could not be read ({found.problem})"
    return [f"{path} {why}: does it end by itself, or does it leave workers behind?"]


def _of_a_package(scene: Scene) -> bool:
    source = scene.entry.source
    return source.kind == "cron.d" and _PACKAGES.fullmatch(source.path.rpartition("/")[2]) is not None


def _mains(scene: Scene) -> list[Command]:
    """The commands of the line itself that do its work; a script stands for what it runs."""
    found: list[Command] = []
    other: list[Command] = []
    for command in scene.reading.commands:
        if command.around.where or not command.inner or command.around.substitution or command.around.condition:
            continue
        name = tool_of(command.inner)
        if name in PREPARES or (name in BUILTINS and name not in ("eval",)):
            continue
        if is_wait(command.plain):
            continue
        (other if name in programs.HELPERS else found).append(command)
    return found or other


def _pattern(scene: Scene, main: Start, kind: Kind) -> tuple[str, Confidence]:
    plain = tuple(map(marks.concrete, main.argv))
    program = programs.program_of(plain)
    commands = [command.plain for command in scene.reading.commands if command.inner]
    text = " ".join(plain)
    if programs.is_tick(plain):
        return "framework_tick", "high"
    if _of_a_package(scene):
        return "distro_package", "high"
    if program.name in ("curl", "wget", "http") and kind == "short_cycle":
        return "http_ping", "high"
    if program.name in ("pkill", "killall", "kill") or (
        program.name in ("systemctl", "service", "supervisorctl", "pm2") and "restart" in text
    ):
        return "recycler", "high"
    if program.name == "run-parts":
        return "run_parts", "high"
    if main.judged.life == "short" and programs.judge(plain[:-1] if len(plain) > 2 else plain, None).life == "long":
        return "bounded_worker", "high"
    if main.judged.life == "long" and bounded(main):
        return "bounded_worker", "high"
    if kind == "short_cycle":
        loops = any(command.around.times is None and command.around.where for command in scene.reading.commands)
        if loops and not keeps_one(main) and 0 < scene.rhythm.period <= 300:
            return "overlapping_cycle", "medium"
        return ("flocked_cycle" if keeps_one(main) else "poll_script"), "high"
    if main.command.around.background:
        return "backgrounded_periodic", "high"
    if keeps_one(main):
        return "flocked_periodic", "high"
    if any(programs.is_backup(command) for command in commands) or re.search(r"back-?up|dump", text):
        return "backup", "high"
    if program.name in ("logrotate", "find", "tmpreaper", "tmpwatch", "fstrim", "vacuumdb") or _MAINTENANCE.search(
        program.stem
    ):
        return "maintenance", "high"
    if _REPORTS.search(text):
        return "report", "high"
    if program.name in ("rsync", "rclone", "scp", "lftp"):
        return "mirror", "high"
    return ("at_boot" if scene.rhythm.at_boot else "scheduled_job"), "high"


def _hazards(scene: Scene, main: Start, kind: Kind, pattern: str) -> tuple[str, ...]:
    entry = scene.entry
    found: list[str] = []
    if pattern == "framework_tick":
        found.append("background_children_of_tick")
    if pattern == "overlapping_cycle":
        found.append("accidental_parallelism")
    fields = entry.expression.split()
    if kind == "periodic" and len(fields) == 5 and re.search(r"(?<!\d)0?2(?!\d)", fields[1]) and "/" not in fields[1]:
        found.append("dst_gap_02_hour")
    found += of_the_line(entry)
    if pattern == "distro_package":
        found.append("package_owned_file")
    if "/run/systemd/system" in entry.command:
        found.append("already_inactive_under_systemd")
    if main.command.around.background:
        found.append("background_ampersand")
    if entry.expression.lower() == "@weekly":
        found.append("weekly_shorthand_differs")
    if dash_braces(scene):
        found.append("bashism_in_sh")
    return tuple(found)
