"""What starts something beside crontabs: anacron, run-parts folders, rc.local, timers, supervisord, pm2, units. Pure.

Each reader takes the text of a file and gives entries as a crontab would have them. None raises: what is not
understood is an entry with a problem, or nothing where the file is none of theirs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

import msgspec

from console.schedules import units
from console.schedules.model import Entry, Evidence, Explained, FoundRole, Source
from console.schedules.supervisor_files import assignments, pm2_apps, supervisord_programs

_ANACRON_PERIODS = {"@daily": 1, "@weekly": 7, "@monthly": 30, "@yearly": 365, "@annually": 365}
_ANACRON_SETTING = re.compile(r"[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*=(.*)\Z")
_TRIGGERS = ("OnCalendar", "OnBootSec", "OnStartupSec", "OnActiveSec", "OnUnitActiveSec", "OnUnitInactiveSec")
_STARTS = ("ExecStart", "ExecStartPre", "ExecStartPost")
_SPECIFIERS = re.compile(r"%(?:\((\w+)\)[0-9]*[sd]|%)")


# --- anacron ---------------------------------------------------------------------------------------------------------


def anacrontab(data: bytes, source: Source) -> tuple[Entry, ...]:
    """anacrontab(5): `period delay identifier command`; a setting holds for the lines below it."""
    entries: list[Entry] = []
    environment: dict[str, str] = {}
    for number, raw in enumerate(data.split(b"\n"), start=1):
        text = raw.decode("utf-8", "replace").strip()
        if not text or text.startswith("#"):
            continue
        setting = _ANACRON_SETTING.match(text)
        if setting:
            environment[setting[1]] = setting[2].strip(" \t")
            continue
        words = text.split(None, 3)
        period = words[0].lower()
        problem = ""
        if not (period in _ANACRON_PERIODS or (period.isdecimal() and period.isascii())):
            problem = f"{words[0]} is no period anacron knows"
        elif len(words) < 4:
            problem = "anacron wants period, delay, identifier and command"
        elif not (words[1].isdecimal() and words[1].isascii()):
            problem = f"{words[1]} is no number of minutes"
        entries.append(
            Entry(
                source=source,
                line=number,
                raw=raw,
                expression=period,
                user="root",
                command=words[3] if len(words) > 3 else "",
                environment=tuple(environment.items()),
                problems=(problem,) if problem else (),
                label=words[2] if len(words) > 2 else "",
            )
        )
    return tuple(entries)


def anacron_days(period: str) -> int | None:
    """The period in days; None when anacron would not understand it."""
    return _ANACRON_PERIODS.get(period) or (int(period) if period.isdecimal() and period.isascii() else None)


# --- files that are run as they are ----------------------------------------------------------------------------------


def whole_file(source: Source, expression: str) -> Entry:
    """A script that is run as it is: of a run-parts folder, or rc.local."""
    return Entry(source=source, line=0, expression=expression, user="root", command=shlex.quote(source.path))


def parts_line(entries: tuple[Entry, ...], folder: str) -> Entry | None:
    """The active line that runs this folder's scripts: `run-parts /etc/cron.daily`. anacron's wins over cron's, whose
    line then only tests for it."""
    wanted = re.compile(rf"\brun-parts\b.*{re.escape(folder)}(?![\w./-])")
    found = [entry for entry in entries if entry.active and not entry.problems and wanted.search(entry.command)]
    return next((entry for entry in found if entry.source.kind == "anacron"), found[0] if found else None)


# --- systemd ---------------------------------------------------------------------------------------------------------


class UnitText(msgspec.Struct, frozen=True):
    """The assignments of a unit file with its drop-ins, in order: section, key, value, line (0 in a drop-in)."""

    assignments: tuple[tuple[str, str, str, int], ...] = ()

    def values(self, key: str) -> tuple[str, ...]:
        """Of a list: an empty value forgets those before."""
        found: list[str] = []
        for _, name, value, _ in self.assignments:
            if name == key:
                found = [*found, value] if value else []
        return tuple(found)

    def last(self, key: str) -> str:
        return next((value for _, name, value, _ in reversed(self.assignments) if name == key), "")

    def line_of(self, *keys: str) -> int:
        """Where the first of these is set in the file itself; 0: nowhere."""
        return next((line for _, name, _, line in self.assignments if name in keys and line), 0)


def unit_text(texts: tuple[str, ...]) -> UnitText:
    """A unit file and its drop-ins, read as systemd.syntax(7) says: continued lines are joined with a blank."""
    found: list[tuple[str, str, str, int]] = []
    for part, text in enumerate(texts):
        section, waiting, begun = "", "", 0
        for number, line in enumerate(text.split("\n"), start=1):
            stripped = line.strip()
            if stripped.startswith(("#", ";")):
                continue
            begun = begun or number
            if stripped.endswith("\\"):
                waiting += stripped[:-1] + " "
                continue
            whole, at = (waiting + stripped).strip(), begun
            waiting, begun = "", 0
            if whole.startswith("[") and whole.endswith("]"):
                section = whole[1:-1]
                continue
            name, equals, value = whole.partition("=")
            if equals:
                found.append((section, name.strip(), value.strip(), 0 if part else at))
    return UnitText(tuple(found))


def started_unit(timer: UnitText, name: str) -> str:
    """The unit a timer starts."""
    return timer.last("Unit") or f"{name.removesuffix('.timer')}.service"


def timer_expression(timer: UnitText) -> str:
    """What triggers it: "OnCalendar=daily", several joined by "; "."""
    return "; ".join(f"{key}={value}" for key in _TRIGGERS for value in timer.values(key))


def timer_entry(source: Source, timer: UnitText, service: UnitText) -> Entry:
    """A timer as an entry; its command is the first of the service it starts."""
    entry = service_entry(source, service)
    return msgspec.structs.replace(entry, line=timer.line_of(*_TRIGGERS), expression=timer_expression(timer))


def service_entry(source: Source, service: UnitText) -> Entry:
    """A service as an entry: `@reboot`, since a boot or a person starts it."""
    commands = [value.lstrip("-@:+!|") for value in service.values("ExecStart")]
    return Entry(
        source=source,
        line=service.line_of(*_STARTS),
        expression="@reboot",
        user=service.last("User") or source.user or "root",
        command=commands[0] if commands else "",
        environment=_settings(" ".join(service.values("Environment"))),
    )


# --- supervisord and pm2 ---------------------------------------------------------------------------------------------


def supervisord(text: str, source: Source) -> tuple[Explained, ...]:
    """The [program:x] sections of a configuration of supervisord."""
    try:
        programs, _ = supervisord_programs(text)
    except ValueError as error:
        entry = Entry(source=source, line=0, user="root", problems=(f"supervisord would not understand it: {error}",))
        return (Explained(entry=entry, kind="invalid", pattern="supervisord_program", confidence="high"),)
    found: list[Explained] = []
    for program in programs:
        values = program.values
        user = values.get("user", "root")
        count = values.get("numprocs", "1")
        environment = assignments(values.get("environment", ""))
        entry = Entry(
            source=source,
            line=program.line,
            raw=f"[program:{program.name}]".encode(),
            user=user,
            command=_SPECIFIERS.sub(lambda hit: f"<{hit[1]}>" if hit[1] else "%", values["command"]),
            environment=environment,
            active=program.starts,
            label=program.name,
        )
        role = FoundRole(
            name=program.name,
            argv=tuple(words(entry.command)),
            instances=int(count) if count.isdecimal() and len(count) < 6 else None,
            user=user,
            workdir=values.get("directory") or None,
            environment=environment,
        )
        found.append(kept_alive(entry, role, "supervisord", _unit_of(role, values)))
    return tuple(found)


def pm2(data: bytes, source: Source) -> tuple[Explained, ...]:
    """What `pm2 resurrect` starts: ~/.pm2/dump.pm2."""
    try:
        apps = pm2_apps(data)
    except ValueError as error:
        entry = Entry(source=source, line=0, user=source.user, problems=(f"pm2 would not understand it: {error}",))
        return (Explained(entry=entry, kind="invalid", pattern="pm2_program", confidence="high"),)
    found: list[Explained] = []
    for app in apps:
        entry = Entry(source=source, line=0, user=source.user, command=shlex.join(app.argv), label=app.name)
        role = FoundRole(
            name=app.name, argv=app.argv, instances=app.count, user=source.user, workdir=app.pm_cwd or app.cwd or None
        )
        found.append(kept_alive(entry, role, "pm2", _unit_of(role, {})))
    return tuple(found)


_RESTART = {"true": "always", "unexpected": "on-failure", "false": "no"}  # autorestart= of supervisord


def _unit_of(role: FoundRole, values: Mapping[str, str]) -> units.Files:
    """The template unit that does what the supervisor does. None where instances differ, or it runs a shell's words."""
    if not role.argv or not role.argv[0].startswith("/") or any("<" in word for word in role.argv):
        return units.NO_FILES
    settings = [("TimeoutStopSec", f"{values['stopwaitsecs']}s")] if values.get("stopwaitsecs", "").isdecimal() else []
    settings += [("KillSignal", f"SIG{values['stopsignal']}")] if values.get("stopsignal", "TERM") != "TERM" else []
    return units.worker_files(
        units.WorkerUnit(
            name=role.name,
            words=role.name,
            argv=role.argv,
            user=role.user,
            folder=role.workdir or "",
            environment=role.environment,
            restart=_RESTART.get(values.get("autorestart", "true"), "always"),
            settings=tuple(settings),
        )
    )


def kept_alive(entry: Entry, role: FoundRole, by: str, files: units.Files = units.NO_FILES) -> Explained:
    """A program that another supervisor starts and starts again, and the unit that would."""
    return Explained(
        entry=entry,
        kind="launcher",
        pattern=f"{by}_program",
        confidence="high",
        roles=(role,),
        evidence=(Evidence(source="line", text=f"{by} starts it, and again when it ends"),),
        warnings=(f"{by} starts again whatever is killed: stop it there, not by a signal",),
        hazards=("other_supervisor_restarts_killed_processes",),
        units=files.units,
        extras=files.extras,
    )


def kept_by_systemd(entry: Entry, unit: str, service: str) -> Explained:
    """A service, or the timer that starts it."""
    by_timer = unit != service
    role = FoundRole(
        name=service.partition(".")[0].rstrip("@"),
        argv=tuple(words(entry.command)),
        user=entry.user,
        environment=entry.environment,
    )
    told = f"systemd starts {service}" + (f" by {unit}" if by_timer else "")
    return Explained(
        entry=entry,
        kind="none" if not entry.active else "periodic" if by_timer else "launcher",
        pattern="systemd_timer" if by_timer else "systemd_unit",
        confidence="high",
        roles=(role,) if role.argv else (),
        evidence=(Evidence(source="line", text=told if entry.active else f"{unit} is not enabled"),),
    )


# --- words -----------------------------------------------------------------------------------------------------------


def words(command: str) -> list[str]:
    """The arguments of a command, cut as a shell does that expands nothing; at blanks where quotes do not match."""
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _settings(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, equals, value in (word.partition("=") for word in words(text)) if equals)
