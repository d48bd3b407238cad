"""What other supervisors (supervisord, pm2, forever) would start, from their own files. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from console.schedules import marks, naming, programs
from console.schedules.commands import words
from console.schedules.paths import resolve
from console.schedules.shell.values import Command, Read
from console.schedules.starts import Start
from console.schedules.supervisor_files import Pm2App, assignments, pm2_apps, supervisord_programs

_UNREADABLE = words("svscan svscanboot runsvdir runsvdir-start s6-svscan circusd monit god eye immortaldir perpd")
_OF_PM2 = re.compile(r"PM2_|pm_|npm_|PATH$|HOME$|PWD$|USER$|SHLVL$|LOGNAME$|SHELL$|_$")
_OTHER = "other_supervisor_restarts_killed_processes"
_LONG = programs.Judged("long", "another supervisor keeps it running")


def supervised(command: Command, read: Read, home: str) -> list[Start] | None:
    """The programs a supervisor is started for; None when the command is no supervisor's."""
    plain = command.plain
    program = programs.program_of(plain)
    name = program.name
    if name in ("supervisord", "supervisor.supervisord"):
        return _supervisord(command, program.arguments, read, home)
    if name in ("pm2", "pm2-runtime"):
        return _pm2(command, program.arguments, read, home)
    if name in ("foreman", "honcho", "overmind", "hivemind") and "start" in program.arguments[:2]:
        return _procfile(command, program.arguments, read, home)
    if name in _UNREADABLE:
        return [unread(command, f"what {name} starts stands in its own files, which are not read")]
    if name == "forever" and "start" in program.arguments[:2]:
        return [_forever(command, program.arguments)]
    return None


def unread(command: Command, what: str) -> Start:
    """A supervisor whose roles cannot be seen."""
    return Start(
        command.inner, command.inner, command, programs.Judged("long", "it starts another supervisor"),
        shape="supervisor_bootstrap", count=None, hazards=(_OTHER,), units=False, notes=(what,),
    )  # fmt: skip


# --- supervisord ----------------------------------------------------------------------------------------------------


def _supervisord(command: Command, arguments: tuple[str, ...], read: Read, home: str) -> list[Start]:
    path = ""
    for place, word in enumerate(arguments):
        if word in ("-c", "--configuration") and place + 1 < len(arguments):
            path = arguments[place + 1]
        elif word.startswith("--configuration="):
            path = word.partition("=")[2]
    usual = ("supervisord.conf", "etc/supervisord.conf", "/etc/supervisord.conf", "/etc/supervisor/supervisord.conf")
    for candidate in (path,) if path else usual:
        found = read(resolve(candidate, command.folder, home))
        if found is not None and not found.problem:
            starts = programs_of(found.text, resolve(candidate, command.folder, home), command)
            return starts or [unread(command, f"{found.path} names no program of its own")]
    return [unread(command, f"{path or 'supervisord.conf'} could not be read: its programs are not known")]


def programs_of(text: str, path: str, command: Command) -> list[Start]:
    """Every [program:x] of a supervisord configuration that starts with it."""
    try:
        found, included = supervisord_programs(text)
    except ValueError:
        return []
    starts = [_program(program.name, program.values, path, command) for program in found if program.starts]
    return [*starts, *([unread(command, f"{included} is included and was not read")] if included else [])]


def _program(name: str, values: Mapping[str, str], path: str, command: Command) -> Start:
    here = path.rpartition("/")[0]
    number = re.sub(r"\D.*", "", values.get("numprocs", "1")) or "1"
    first = int(re.sub(r"\D.*", "", values.get("numprocs_start", "0")) or "0")
    count = int(number)
    form = ""

    def filled(text: str) -> str:
        def one(found: re.Match[str]) -> str:
            nonlocal form
            key, kind = found[1], found[2]
            if key == "process_num":
                form = f"%{kind}"
                return marks.loop(found[0], f"%{kind}" % first)
            known = {"program_name": name, "group_name": name, "here": here, "host_node_name": "%H"}
            if key.startswith("ENV_"):
                return str(command.environment.get(key[4:], found[0]))
            return known.get(key, found[0])

        pieces = re.split(r"(%%)", text)
        return "".join("%" if piece == "%%" else re.sub(r"%\((\w+)\)(0?\d*[sd])", one, piece) for piece in pieces)

    try:
        words = tuple(shlex.split(filled(values["command"]).replace("\n", " ")))
    except ValueError:
        words = tuple(filled(values["command"]).split())
    environment = {key: marks.concrete(filled(value)) for key, value in assignments(values.get("environment", ""))}
    settings: list[tuple[str, str]] = []
    if wait := re.match(r"\d+", values.get("stopwaitsecs", "")):
        settings.append(("TimeoutStopSec", f"{wait[0]}s"))
    signal = values.get("stopsignal", "").strip().upper().removeprefix("SIG")
    if signal not in ("", "TERM"):
        settings.append(("KillSignal", f"SIG{signal}"))
    log = filled(values.get("stdout_logfile", ""))
    plain_log = log if log.startswith("/") and not log.startswith("/dev/") and not marks.has_marks(log) else ""
    hazards = [_OTHER]
    if any("%%" in value for value in values.values()):
        hazards.append("percent_escaping")
    restarts = values.get("autorestart", "unexpected").lower()
    names = tuple(form % turn for turn in range(first, first + count)) if form else ()
    return Start(
        words, words, command, _LONG, shape="supervisor_bootstrap", name=name, count=count, names=names,
        settings=tuple(settings), hazards=tuple(hazards), environment=environment,
        folder=values.get("directory", "").strip() and filled(values["directory"].strip()), output=plain_log,
        user=values.get("user", "").strip(), restart="no" if restarts in ("false", "no", "0") else "always",
    )  # fmt: skip


# --- pm2 and forever ------------------------------------------------------------------------------------------------


def _pm2(command: Command, arguments: tuple[str, ...], read: Read, home: str) -> list[Start] | None:
    verb = next((word for word in arguments if not word.startswith("-")), "")
    if verb == "resurrect":
        folder = command.environment.get("PM2_HOME") or f"{home}/.pm2"
        found = read(f"{marks.concrete(folder)}/dump.pm2")
        if found is None or found.problem:
            return [
                unread(command, f"{marks.concrete(folder)}/dump.pm2 could not be read: its processes are not known")
            ]
        try:
            return _apps(pm2_apps(found.text), command)
        except ValueError:
            return [unread(command, f"{found.path} is not what pm2 writes: its processes are not known")]
    if verb not in ("start", "restart", "startOrRestart", "startOrReload", "reload"):
        return None if verb else []
    at = arguments.index(verb)
    rest = list(arguments[at + 1 :])
    target = next((word for word in rest if not word.startswith("-")), "")
    if target.endswith(".json"):
        found = read(resolve(target, command.folder, home))
        if found is not None and not found.problem:
            try:
                return _apps(pm2_apps(found.text), command)
            except ValueError:
                return [unread(command, f"{found.path} is not what pm2 reads: its processes are not known")]
    if re.search(r"(ecosystem|config).*\.(js|cjs|json|ya?ml)$", target):
        return [unread(command, f"{target} is a program of its own and is not run: what it starts is not known")]
    return [_pm2_start(command, rest, home)]


def _pm2_start(command: Command, rest: list[str], home: str) -> Start:
    """pm2 start app.js --name jobs -i 4 -- arguments."""
    after = rest[rest.index("--") + 1 :] if "--" in rest else []
    rest = rest[: rest.index("--")] if "--" in rest else rest
    valued = {
        "--name": "name", "-n": "name", "-i": "instances", "--instances": "instances", "--interpreter": "interpreter",
        "--node-args": "node_args", "--cwd": "cwd", "-l": "log", "--log": "log", "-o": "log", "--output": "log",
        "-e": "", "--error": "", "--max-memory-restart": "", "-p": "", "--pid": "", "--time": "", "--env": "",
    }  # fmt: skip
    found: dict[str, str] = {}
    plain: list[str] = []
    while rest:
        word = rest.pop(0)
        key, equals, value = word.partition("=")
        if key in valued and key != "--time":
            found[valued[key]] = value if equals else rest.pop(0) if rest else ""
        elif not word.startswith("-"):
            plain.append(word)
    instances = found.get("instances", "1")
    app = Pm2App(
        name=found.get("name", ""), script=plain[0] if plain else "", args=[*plain[1:], *after],
        node_args=found.get("node_args", ""), interpreter=found.get("interpreter", ""), cwd=found.get("cwd", ""),
        instances=int(instances) if instances.isdigit() else instances, pm_out_log_path=found.get("log", ""),
    )  # fmt: skip
    return _apps([app], command)[0]


def _apps(apps: list[Pm2App], command: Command) -> list[Start]:
    found: dict[str, Start] = {}
    for app in apps:
        argv = app.argv
        name = app.name or programs.program_of(argv).stem
        if name in found:
            before = found[name].count
            found[name].count = None if before is None else before + 1
            continue
        environment = {
            key: str(value)
            for key, value in app.env.items()
            if isinstance(value, str | int | float) and not _OF_PM2.match(key)
        }
        of_node = argv[0].rpartition("/")[2] == "node"
        given = () if "NODE_ENV" in environment or not of_node else (("Environment", "NODE_ENV=production"),)
        found[name] = Start(
            argv,
            argv,
            command,
            _LONG,
            shape="supervisor_bootstrap",
            name=name,
            count=app.count,
            hazards=(_OTHER,),
            environment=environment,
            folder=app.pm_cwd or app.cwd or None,
            settings=given,
            output="",
        )
    return list(found.values()) or [unread(command, "pm2's dump is empty: it starts nothing")]


def _forever(command: Command, arguments: tuple[str, ...]) -> Start:
    """forever start [options] SCRIPT arguments."""
    at = arguments.index("start")
    rest = list(arguments[:at]) + list(arguments[at + 1 :])
    valued = {
        "--uid": "uid",
        "-l": "log",
        "--log": "log",
        "-o": "out",
        "-e": "err",
        "--sourceDir": "source",
        "--workingDir": "folder",
        "-c": "interpreter",
        "--command": "interpreter",
        "--minUptime": "",
        "--spinSleepTime": "",
        "--pidFile": "",
        "-m": "",
        "-p": "",
        "--path": "",
        "--killSignal": "signal",
        "--watchDirectory": "",
        "--id": "uid",
    }
    found: dict[str, str] = {}
    append = False
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        key, equals, value = word.partition("=")
        if key in valued:
            found[valued[key]] = value if equals else rest.pop(0) if rest else ""
        append |= word in ("-a", "--append")
    argv = (*(found.get("interpreter") or "node").split(), *rest)
    uid = found.get("uid", "").strip('"')
    log = found.get("log") or found.get("out") or ""
    stem = programs.program_of(argv).stem
    settings = (("KillSignal", found["signal"]),) if found.get("signal") else ()
    return Start(
        argv, argv, command, _LONG, shape="supervisor_bootstrap",
        name=f"{uid}-{stem}" if uid and not stem.startswith(uid) else uid, hazards=(_OTHER,),
        folder=found.get("folder") or found.get("source") or None, output=log if append and log.startswith("/") else "",
        settings=settings,
    )  # fmt: skip


# --- Procfiles ------------------------------------------------------------------------------------------------------

_PROCFILE_OPTIONS = {
    "-f": "file", "--procfile": "file", "-d": "folder", "--root": "folder", "--app-root": "folder", "-m": "counts",
    "--formation": "counts", "-c": "counts", "--concurrency": "counts", "-e": "env", "--env": "env",
}  # fmt: skip


def _procfile(command: Command, arguments: tuple[str, ...], read: Read, home: str) -> list[Start]:
    """foreman, honcho and the like: `name: command` in a Procfile, -m name=2 for how many."""
    found: dict[str, str] = {}
    for word, value in zip(arguments, (*arguments[1:], ""), strict=True):
        key, equals, inline = word.partition("=")
        if key in _PROCFILE_OPTIONS:
            found[_PROCFILE_OPTIONS[key]] = inline if equals else value
    folder = resolve(found.get("folder") or ".", command.folder, home)
    path = resolve(found.get("file") or "Procfile", folder, home)
    text, settings = read(path), read(resolve(found.get("env") or ".env", folder, home))
    if text is None or text.problem:
        return [unread(command, f"{path} could not be read: its programs are not known")]
    shared = dict(re.findall(r"^(?:export )?(\w+)=[\"']?(.*?)[\"']?$", settings.text, re.M)) if settings else {}
    counts = dict(part.split("=", 1) for part in found.get("counts", "").split(",") if "=" in part)
    lines = re.findall(r"^([\w-]+):[ \t]*(\S.*)$", text.text, re.M)
    wanted = {name for name, _ in lines} & set(arguments)
    starts = []
    for name, line in lines:
        number = counts.get(name, counts.get("all", "1"))
        if number != "0" and (not wanted or name in wanted):
            argv, own = _assigned(line)
            environment = {**command.environment, **shared, **own}
            argv = tuple(_referring(word, environment) for word in argv)
            starts.append(_of_procfile(command, name, argv, environment, folder, number))
    return starts or [unread(command, f"{path} names no program")]


def _assigned(line: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """`NAME=value command`: the command, and what is set before it."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    own: dict[str, str] = {}
    while words and re.match(r"[A-Za-z_]\w*=", words[0]):
        key, _, value = words.pop(0).partition("=")
        own[key] = value
    return tuple(words[1:] if words[:1] == ["exec"] else words), own


def _referring(word: str, environment: Mapping[str, str]) -> str:
    """$NAME of a command is read from the environment; PORT and the like, which the supervisor sets, are not known."""

    def one(found: re.Match[str]) -> str:
        value = environment.get(found[1])
        return marks.unknown(found[0]) if value is None else marks.reference(found[1], value)

    return re.sub(r"\$\{?([A-Za-z_]\w*)\}?", one, word)


def _of_procfile(
    command: Command, name: str, argv: tuple[str, ...], environment: Mapping[str, str], folder: str, number: str
) -> Start:
    app = naming.app_of(folder, (), "")
    return Start(
        argv,
        argv,
        command,
        _LONG,
        shape="supervisor_bootstrap",
        name=f"{app}-{name}" if app else name,
        hazards=(_OTHER,),
        count=int(number) if number.isdigit() else None,
        environment=environment,
        folder=folder,
    )
