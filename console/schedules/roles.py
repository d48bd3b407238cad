"""From the starts of a line to roles and the units they become. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from console.schedules import marks, naming, programs, units
from console.schedules.carriers import LIMITS
from console.schedules.carrying import name_of
from console.schedules.commands import words
from console.schedules.decide import aimed_at, hosts, looks
from console.schedules.instances import Instances, Turn, instances
from console.schedules.limits import limit_settings
from console.schedules.live import live_of
from console.schedules.losses import losses
from console.schedules.model import Account, Entry, FoundRole, Limit, ScriptText, Surroundings
from console.schedules.outputs import output_of
from console.schedules.paths import resolve, search, usual
from console.schedules.shell.interpret import default_home
from console.schedules.starts import Start

Read = Callable[[str], ScriptText | None]
_NOT_OF_A_WORKER = words(
    "HOME LOGNAME USER SHELL MAILTO MAILFROM CRON_TZ TZ_CRON RANDOM_DELAY BASH_ENV PWD OLDPWD SHLVL _ TERM PATH "
    "VIRTUAL_ENV CONTENT_TYPE CONTENT_TRANSFER_ENCODING START_HOURS_RANGE LS_COLORS PS1 IFS XDG_RUNTIME_DIR OPTIND "
    "OPTARG"
)
_SYSTEMD_PATH = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
_SYSTEM_TOOLS = words("php node nodejs ruby perl java dotnet bash sh mono lua nice docker")
_RUBY_TOOLS = words("bundle ruby rake rails gem sidekiq puma unicorn resque")


class Group(msgspec.Struct):
    """Starts that are one role: the same words but for the instance."""

    starts: list[Start]

    @property
    def first(self) -> Start:
        return self.starts[0]


def grouped(starts: list[Start]) -> list[Group]:
    """Starts with equal words, user and folder belong together."""
    found: dict[object, Group] = {}
    for start in starts:
        key = (
            tuple(map(marks.shown, start.argv)),
            start.command.around.user,
            marks.shown(start.command.folder),
            start.name,
        )
        if key in found:
            found[key].starts.append(start)
        else:
            found[key] = Group([start])
    return list(found.values())


def user_of(start: Start, entry: Entry) -> str:
    return start.user or marks.concrete(start.command.around.user) or entry.user


def home_of(user: str, host: Surroundings) -> str:
    if not _HOMES or _HOMES[0][0] is not host.accounts:
        _HOMES[:] = [(host.accounts, {account.name: account.home for account in host.accounts})]
    return _HOMES[0][1].get(user) or default_home(user)


def started_in(start: Start, entry: Entry, host: Surroundings) -> str:
    """The home its relative paths are below: where cron starts, which HOME in a crontab may set (crontab(5)), or the
    user's own behind a login."""
    if (start.folder or start.command.folder) not in ("", "?"):
        return home_of(user_of(start, entry), host)
    return dict(entry.environment).get("HOME") or home_of(entry.user, host)


_HOMES: list[tuple[tuple[Account, ...], dict[str, str]]] = []  # of the accounts that were asked for last


def count_of(group: Group) -> int | None:
    """How many workers are meant: what a condition on their number aims at, else how many a run starts."""
    total = 0
    for start in group.starts:
        times = start.command.around.times
        if start.count is None or times is None:
            aimed = aimed_at(group.first)
            return aimed or None
        total += start.count * times
    aimed = aimed_at(group.first)
    return max(total, aimed) if aimed else total


def environment_of(start: Start) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """What the worker gets from crontab and scripts, and what a unit adds to it or says otherwise."""
    command = start.command
    source: Mapping[str, str] = start.environment if start.environment is not None else command.environment
    found = [
        (name, value)
        for name, value in source.items()
        if name not in _NOT_OF_A_WORKER and not name.startswith("BASH_FUNC")
    ]
    unit = list(found)
    path, venv = source.get("PATH", ""), source.get("VIRTUAL_ENV", "")
    program = programs.program_of(tuple(map(marks.concrete, start.argv)))
    if any(carrier.terminal for carrier in command.around.carriers) and program.language == "python":
        unit.append(("PYTHONUNBUFFERED", "1"))
    if venv:
        if program.language != "python":
            unit += [("VIRTUAL_ENV", venv), ("PATH", path)]
    elif path and set(path.split(":")) != _SYSTEMD_PATH:
        found.append(("PATH", path))
        unit.append(("PATH", path))
    unit += [_assigned(value) for key, value in start.settings if key == "Environment"]
    return tuple(found), tuple(unit)


def _assigned(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def absolute(start: Start, argv: tuple[str, ...], read: Read, home: str) -> tuple[tuple[str, ...], str]:
    """The words with the program's full path, and a remark where that had to be assumed."""
    name = argv[0]
    plain = marks.concrete(name)
    command = start.command
    folder = start.folder or command.folder
    if "/" in plain:
        path = resolve(name, folder, home)
        return (path, *argv[1:]), ""
    venv = marks.concrete(command.environment.get("VIRTUAL_ENV", ""))
    if venv and plain not in _SYSTEM_TOOLS:
        return (f"{venv}/bin/{plain}", *argv[1:]), ""
    path_value = marks.concrete(command.environment.get("PATH", "/usr/bin:/bin"))
    found = search(plain, path_value, read)
    if found is not None:
        return (found.path, *argv[1:]), ""
    if command.around.login and plain in _RUBY_TOOLS:
        assumed = f"{home}/.rbenv/shims/{plain}"
        return (
            assumed,
            *argv[1:],
        ), f"{plain} is found through the login shell's profile, which was not read: it is taken to be {assumed}"
    assumed = usual(plain)
    return (assumed, *argv[1:]), f"{plain} was not found in {path_value}: it is taken to be {assumed}"


def folder_lines(start: Start, entry: Entry) -> tuple[str | None, str]:
    """The folder as it is told (None: where cron starts it), and WorkingDirectory ("": not set)."""
    folder = start.folder or start.command.folder
    own_home = dict(entry.environment).get("HOME", "")
    if folder == "?":
        return None, ""
    if not folder or folder == "~":
        return (own_home or None), own_home or "~"
    return folder, folder


def guard_words(start: Start) -> str:
    """What keeps it from being started twice, as written."""
    for carrier in start.carriers:
        if name_of(carrier.words) in (
            "flock",
            "run-one",
            "run-this-one",
            "setlock",
            "solo",
            "keep-one-running",
            "run-one-constantly",
        ):
            return " ".join(map(marks.shown, carrier.words))
    for gate in start.command.gates:
        if looks(gate):
            return " | ".join(" ".join(map(marks.shown, command)) for command in gate.commands if command != ("!",))
    if start.command.locks:
        return f"flock on {start.command.locks[0]}"
    return ""


def limits_of(start: Start) -> tuple[Limit, ...]:
    found = [
        Limit(tool=name_of(carrier.words), text=" ".join(map(marks.shown, carrier.words)))
        for carrier in start.carriers if name_of(carrier.words) in LIMITS
    ]  # fmt: skip
    found += [Limit(tool="nice", text=f"nice -n {carrier.nice}") for carrier in start.carriers if carrier.nice]
    return (*found, *(Limit(tool=text.partition(" ")[0], text=text) for text in start.command.limits))


def locks_of(start: Start) -> tuple[str, ...]:
    return tuple(marks.concrete(carrier.lock) for carrier in start.carriers if carrier.lock) + start.command.locks


def given_name(start: Start) -> str:
    """What a supervisor or a session calls it."""
    if start.name:
        return start.name
    return next(
        (
            marks.concrete(carrier.name)
            for carrier in start.carriers
            if carrier.name and not marks.has_marks(carrier.name)
        ),
        "",
    )


class Built(msgspec.Struct):
    """A role with its unit."""

    role: FoundRole
    files: units.Files
    questions: list[str]
    remarks: list[str] = []
    truncated: bool = False


def built(
    group: Group,
    entry: Entry,
    read: Read,
    host: Surroundings,
    works: bool | None,
    made: tuple[str, ...],
    translate: bool = True,
) -> Built:
    """The role of a group and its template unit. `made`: folders below /run that the line makes."""
    start = group.first
    count = count_of(group)
    differing = group.starts if all(each.count == 1 for each in group.starts) else [start]
    turns = [Turn(each.run, environment_of(each)[1], folder_lines(each, entry)[1]) for each in differing]
    template = instances(turns, count)
    role = _role(start, entry, count, template, works)
    if not start.units:
        return Built(role, units.NO_FILES, list(start.notes))
    argv, remark = absolute(start, template.turn.argv, read, started_in(start, entry, host))
    remarks = [*([remark] if remark else []), *losses(start, argv)]
    questions = [*start.notes, *_unseen(template, role)]
    if not start.sure:
        flag = next((word for word in start.argv if word not in start.run), "")
        questions.append(f"does {_program(argv)} stay in the foreground without {flag}?")
    output, truncated = output_of(start)
    if not translate:
        return Built(role, units.NO_FILES, questions, remarks, truncated)
    host_only = hosts(start)
    files = units.worker_files(
        units.WorkerUnit(
            name=role.name,
            words=_words(start, role, argv),
            argv=argv,
            user=role.user,
            group=role.group,
            folder=template.turn.folder,
            environment=template.turn.environment,
            output=output,
            restart=_restart(start),
            settings=_settings(start, argv, made),
            memory=_memory(group, role.user, count, host),
            conditions=(("ConditionHost", host_only),) if host_only else (),
            names=role.names,
            variables=template.variables,
        )
    )
    return Built(role, files, questions, remarks, truncated)


def _role(start: Start, entry: Entry, count: int | None, template: Instances, works: bool | None) -> FoundRole:
    user = user_of(start, entry)
    folder, _ = folder_lines(start, entry)
    name = naming.worker_name(start.argv, folder or "", user, given_name(start))
    if start.shape in ("container_bootstrap", "unit_start") and not start.name:
        name = _common(tuple(map(marks.concrete, start.argv)), naming.app_of(folder or "", (), "") or name)
    role = found_role(start, name, user, folder, output_of(start)[0], works)
    return msgspec.structs.replace(role, instances=count, names=start.names or template.names, guard=guard_words(start))


def found_role(
    start: Start, name: str, user: str, folder: str | None, output: units.Output, works: bool | None
) -> FoundRole:
    """A role as it is told."""
    return FoundRole(
        name=name,
        argv=tuple(map(marks.shown, start.argv)),
        user=user,
        group=marks.concrete(start.command.around.group),
        workdir=marks.shown(folder) if folder is not None else None,
        environment=tuple((key, marks.concrete(value)) for key, value in environment_of(start)[0]),
        output=marks.shown(output.target.partition(":")[2]),
        limits=limits_of(start),
        locks=locks_of(start),
        guard_works=works,
    )


def _program(argv: tuple[str, ...]) -> str:
    return programs.program_of(tuple(map(marks.concrete, argv))).name


def _words(start: Start, role: FoundRole, argv: tuple[str, ...]) -> str:
    app = naming.app_of(role.workdir or "", (marks.concrete(argv[0]),), role.user)
    return naming.split_app(naming.worker_words(start.argv, role.name, given_name(start)), app)


def _settings(start: Start, argv: tuple[str, ...], made: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Further lines of [Service]."""
    found = [(key, value) for key, value in start.settings if key != "Environment"]
    if _program(argv) == "sidekiq":
        found.append(("TimeoutStopSec", "60s"))  # it waits 25 s for its jobs itself
    found += limit_settings(limits_of(start), "RuntimeMaxSec")
    if made:
        found += [("RuntimeDirectory", " ".join(made)), ("RuntimeDirectoryPreserve", "yes")]
    return tuple(found)


def _memory(group: Group, user: str, count: int | None, host: Surroundings) -> int:
    """MemoryMax from the highest peak of the live ones; 0 when nothing was measured."""
    found = live_of(group.first.argv, user, host)
    peak = max((process.peak for process in found), default=0)
    return units.memory_limit(peak, count or len(found), host.memory)


def _restart(start: Start) -> str:
    if start.restart != "always":
        return start.restart
    around = start.command.around
    return "on-failure" if around.endless == "until" and around.condition else "always"


def _unseen(template: Instances, role: FoundRole) -> list[str]:
    """Questions about what only running the scripts would tell."""
    turn = template.turn
    found = [f"what is {marks.unknown_source(word)} in the command?" for word in turn.argv if marks.is_unknown(word)]
    found += [
        f"what is the value of {name} ({marks.unknown_source(value)})?"
        for name, value in turn.environment
        if marks.is_unknown(value)
    ]
    if marks.is_unknown(turn.folder):
        found.append(f"which folder is {marks.unknown_source(turn.folder)}?")
    if template.unnamed_folder:
        found.append(
            f"each instance has a folder of its own that its name does not tell: {marks.shown(template.unnamed_folder)}"
        )
    if role.instances is None:
        found.append(f"how many of {' '.join(role.argv)} should there be?")
    return found


def _common(plain: tuple[str, ...], otherwise: str) -> str:
    """What is common to the names of containers or units: queue of queue1 and queue2, worker of worker@1."""
    if "--name" in plain[:-1]:
        return naming.safe(plain[plain.index("--name") + 1])
    names = [re.sub(r"@.*|\.(service|target)$", "", word) for word in plain[2:] if not word.startswith("-")]
    if not names or plain[1] not in ("start", "restart"):
        return naming.safe(otherwise)
    prefix = names[0]
    for other in names[1:]:
        while prefix and not other.startswith(prefix):
            prefix = prefix[:-1]
    return naming.safe(re.sub(r"[-_.\d]+$", "", prefix) or names[0])
