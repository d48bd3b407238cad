"""The service and the timer of a command that ends by itself. Pure."""

from __future__ import annotations

import re

from console.schedules import marks, naming, programs, units
from console.schedules.carriers import tool_of
from console.schedules.decide import DAY, keeps_one, looks
from console.schedules.hazards import Scene
from console.schedules.limits import limit_settings
from console.schedules.losses import losses
from console.schedules.model import FoundRole, Kind, Scheduled
from console.schedules.outputs import redirected
from console.schedules.paths import resolve
from console.schedules.roles import (
    absolute,
    environment_of,
    folder_lines,
    found_role,
    home_of,
    started_in,
    user_of,
)  # fmt: skip
from console.schedules.shell.expand import Gate
from console.schedules.shell.values import Command
from console.schedules.starts import Start

# They prepare what follows: a command behind them needs no shell.
PREPARES = frozenset(
    {"test", "[", "[[", "cd", "sleep", "export", "umask", "ulimit", "set", ":", "true", "exec", "!", "command", "which"}
)

_TESTS = frozenset({"test", "[", "[["})


def role_and_files(
    scene: Scene, main: Start, mains: list[Command], kind: Kind, pattern: str, scheduled: Scheduled | None
) -> tuple[FoundRole, units.Files, list[str]]:
    """What the line runs, the files it becomes, and remarks. `mains`: the commands of the line that do its work."""
    entry = scene.entry
    user = user_of(main, entry)
    home = home_of(user, scene.host)
    folder, unit_folder = folder_lines(main, entry)
    direct = _is_direct(mains, scene)
    if folder is None:
        below_home = user != "root" and any(word.startswith(f"{home}/") for word in map(marks.concrete, main.argv))
        folder = home if below_home else None
        unit_folder = "~" if below_home or not direct else ""
    label = entry.source.path.rpartition("/")[2] if entry.source.kind == "cron.d" else ""
    name, words = naming.job_name(main.argv, folder or "", user, label)
    works = True if keeps_one(main) else None
    role = found_role(main, name, user, folder, _output(main), works)
    if not scene.translate:
        return role, units.NO_FILES, []
    argv, remark = absolute(main, main.run, scene.read, started_in(main, entry, scene.host))
    if not direct:
        text, first_folder = _without_cd(entry.command.rstrip("\r"), home)
        unit_folder = first_folder or unit_folder
        argv, remark = (dict(entry.environment).get("SHELL", "/bin/sh"), "-c", text), ""
    unit = units.JobUnit(
        name=name,
        words=_worded(words, main, scene, pattern),
        argv=argv,
        user=user,
        folder=unit_folder,
        environment=environment_of(main)[1],
        output=_output(main) if direct else units.Output(),
        settings=(
            *((("KillMode", "process"),) if pattern == "framework_tick" else ()),
            *(limit_settings(role.limits, "TimeoutStartSec") if direct else ()),
        ),
        calendar=_later(scheduled.on_calendar if scheduled is not None else (), _delay(scene) if direct else 0),
        persistent=_is_persistent(scene, kind, pattern),
        at_boot=scene.rhythm.at_boot,
        stdin=entry.stdin,
    )
    lost = losses(main, argv) if direct else []  # a shell runs the line as it stands
    return role, units.job_files(unit), [*([remark] if remark else []), *lost]


def _delay(scene: Scene) -> int:
    """Seconds the line sleeps before it does anything: a start within the minute; 0: none, or not known."""
    first = scene.reading.commands[0] if scene.reading.commands else None
    plain = tuple(map(marks.concrete, first.words)) if first is not None else ()
    found = re.fullmatch(r"(\d+)s?", plain[1]) if len(plain) == 2 and tool_of(plain) == "sleep" else None
    return int(found[1]) if found and int(found[1]) < 60 else 0


def _later(calendar: tuple[str, ...], seconds: int) -> tuple[str, ...]:
    """The same moments, so many seconds into their minute."""
    return tuple(re.sub(r":00( UTC)?$", rf":{seconds:02d}\1", line) for line in calendar) if seconds else calendar


def _is_direct(mains: list[Command], scene: Scene) -> bool:
    """One command that needs no shell around it."""
    if len(mains) != 1:
        return False
    command = mains[0]
    if scene.entry.stdin and command.around.depth:
        return False
    if not all(map(_drops, command.gates)):
        return False
    if command.around.piped or command.around.times != 1 or command.around.endless:
        return False
    after = False
    for other in scene.reading.commands:
        if (
            after
            and not other.around.where
            and other.around.depth == command.around.depth
            and tool_of(other.inner or other.words) not in PREPARES
        ):
            return False
        after |= other is command
    return not any(marks.has_marks(word) for word in command.inner) and not any(
        marks.is_unknown(target) or sign == "<" for _, sign, target in command.around.outputs
    )


def _drops(gate: Gate) -> bool:
    """A condition a unit does not need: whether the program is there, systemd is not, or it runs already."""
    return bool(looks(gate)) or all(
        {"-x", "/run/systemd/system"} & set(plain)
        if tool_of(plain) in _TESTS
        else tool_of(plain) in PREPARES | {"perl"}
        for plain in (tuple(map(marks.concrete, command)) for command in gate.commands)
    )


def _without_cd(text: str, home: str) -> tuple[str, str]:
    """`cd X && rest`: the rest and X."""
    found = re.match(r"""\s*cd\s+([^\s;&|'"$`]+)\s*(?:&&|;)\s*(.+)""", text, re.DOTALL)
    if not found:
        return text.strip(), ""
    return found[2].strip(), resolve(found[1], "", home)


def _output(main: Start) -> units.Output:
    """As the line has it: a file is opened the way it is, /dev/null is null."""
    found = redirected(main)
    output = _opened(found.target, found.mode)
    if not found.both:
        # by itself standard error would follow the output: into nothing, or between the data
        apart = "journal" if output == "null" or output.startswith("truncate:") else ""
        errors = _opened(found.errors, found.errors_mode) or apart
        return units.Output(output, errors)
    if output == "null":
        return units.Output("null", "null" if found.mode != ">>" else "")
    return units.Output(output, "inherit" if output else "")


def _opened(target: str, mode: str) -> str:
    """A redirection as StandardOutput= says it; "" where there is none."""
    if target == "/dev/null":
        return "null"
    if not target or target.startswith("/dev/"):
        return ""
    return f"{'append' if mode == '>>' else 'truncate'}:{target}"


def _is_persistent(scene: Scene, kind: Kind, pattern: str) -> bool:
    """A run that was missed is made up for where a day or more would be lost; not for cleaning up."""
    return kind == "periodic" and scene.rhythm.period >= DAY and pattern not in ("maintenance", "recycler")


def _worded(words: str, main: Start, scene: Scene, pattern: str) -> str:
    """The description: a backup says how often it is made, a job of an application what it works on."""
    period = scene.rhythm.period
    if pattern in ("backup", "backgrounded_periodic") and period:
        hours = scene.entry.expression.split()[1:2]
        night = bool(hours) and hours[0].isdigit() and (int(hours[0]) < 6 or int(hours[0]) >= 22)
        often = (
            "weekly"
            if 6 * DAY < period < 8 * DAY
            else "monthly"
            if 25 * DAY < period < 35 * DAY
            else "nightly"
            if period < 2 * DAY and night
            else "daily"
            if period < 2 * DAY
            else ""
        )
        if (programs.is_backup(tuple(map(marks.concrete, main.argv))) or "backup" in words) and often:
            return words if words.startswith(often) else f"{often} {words}"
    program = programs.program_of(tuple(map(marks.concrete, main.argv)))
    first, _, verb = words.partition(" ")
    if verb == program.stem and verb in ("pull", "push", "sync", "fetch", "load", "import", "export"):
        inside = [
            command
            for command in scene.reading.commands
            if command.around.where and command.inner and command.around.substitution
        ]
        if inside and len(inside[0].inner) == 2 and re.fullmatch(r"[a-z][a-z-]+", marks.concrete(inside[0].inner[1])):
            return f"{marks.concrete(inside[0].inner[1])} {first}"
    return words
