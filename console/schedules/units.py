"""The unit files an entry becomes: a template for workers, a service and a timer for what ends by itself. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from console.schedules import marks
from console.schedules.commands import SHELLS, program
from console.schedules.unittext import (
    environment_assignment,
    environment_file_line,
    exec_argument,
    exec_literal,
    input_text,
    quoted,
    setting,
    shell_text,
)
from console.text import mask

# Five starts of which each lasts up to RestartSec and a moment: 5 x (10 + 0.2) s = 51 s, well within 300 s, so that a
# worker that dies at once is given up; one that runs for a minute never is.
RESTART_SECONDS = 10
START_LIMIT = (5, 300)


class Output(NamedTuple):
    """Where the output goes: append:PATH, truncate:PATH, null; `errors` the same for standard error, "" as output."""

    target: str = ""
    errors: str = ""


class WorkerUnit(NamedTuple):
    """What a template unit says."""

    name: str
    words: str
    argv: tuple[str, ...]  # marked, the program absolute
    user: str
    group: str = ""
    folder: str = ""  # "": not set
    environment: tuple[tuple[str, str], ...] = ()  # marked values
    output: Output = Output()
    restart: str = "always"
    settings: tuple[tuple[str, str], ...] = ()
    conditions: tuple[tuple[str, str], ...] = ()  # further lines of [Unit]
    memory: int = 0  # MemoryMax in bytes; 0: not set
    names: tuple[str, ...] = ()  # of the instances
    variables: tuple[tuple[str, tuple[str, ...]], ...] = ()  # what differs beside the name: a value for each instance


class JobUnit(NamedTuple):
    """What a oneshot service and its timer say."""

    name: str
    words: str
    argv: tuple[str, ...]
    user: str
    folder: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    output: Output = Output()
    settings: tuple[tuple[str, str], ...] = ()
    calendar: tuple[str, ...] = ()
    persistent: bool = False
    at_boot: bool = False
    stdin: str = ""


class Files(NamedTuple):
    units: tuple[tuple[str, str], ...]
    extras: tuple[tuple[str, str, int], ...]  # path, text, mode


NO_FILES = Files((), ())


def worker_files(unit: WorkerUnit) -> Files:
    """ROLE@.service, and what goes beside it: the hardening step, and a file of secrets that only root reads."""
    around, secrets = _around(unit)
    lines = [
        "[Unit]",
        f"Description={setting(unit.words)} %i",
        "Wants=network-online.target",
        "After=network-online.target",
    ]
    lines += [f"StartLimitIntervalSec={START_LIMIT[1]}", f"StartLimitBurst={START_LIMIT[0]}"]
    lines += [f"{key}={value}" for key, value in unit.conditions]
    lines += ["", "[Service]", "Type=exec", f"User={setting(unit.user)}"]
    lines += around
    if unit.variables:
        lines.append(f"EnvironmentFile=/etc/{unit.name}-%i.env")
    settings = dict(unit.settings)
    lines += [
        f"ExecStart={exec_line(unit.argv)}",
        f"Restart={unit.restart}",
        f"RestartSec={RESTART_SECONDS}s",
        "KillMode=mixed",
        f"TimeoutStopSec={settings.pop('TimeoutStopSec', '30s')}",
    ]
    lines += _output_lines(unit.output)
    lines += [f"{key}={value}" for key, value in settings.items()]
    if unit.group:
        lines.append(f"Group={setting(unit.group)}")
    if unit.memory:
        lines.append(f"MemoryMax={_amount(unit.memory)}")
    lines += ["", "[Install]", "WantedBy=multi-user.target", ""]
    name = f"{unit.name}@.service"
    extras = [(f"{name}.d/10-hardening.conf", HARDENING, 0o644)]
    extras += secrets
    for place, instance in enumerate(unit.names if unit.variables else ()):
        own = "".join(environment_file_line(key, values[place]) for key, values in unit.variables)
        extras.append((f"/etc/{unit.name}-{instance}.env", own, 0o644))
    return Files(((name, "\n".join(lines)),), tuple(extras))


# The step that does not take a worker anything it uses: no new privileges, no device nodes but the harmless ones, no
# kernel settings. `systemd-analyze security` (252) rates a plain service with User= 9.2 and one with this 6.7.
HARDENING = """\
[Service]
NoNewPrivileges=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
LockPersonality=yes
"""


def job_files(unit: JobUnit) -> Files:
    """NAME.service and NAME.timer."""
    around, secrets = _around(unit)
    lines = [
        "[Unit]",
        f"Description={setting(unit.words)}",
        "",
        "[Service]",
        "Type=oneshot",
        f"User={setting(unit.user)}",
    ]
    lines += around
    lines.append(f"ExecStart={exec_line(unit.argv)}")
    lines += [f"StandardInputText={input_text(unit.stdin)}"] if unit.stdin else []
    lines += [f"{key}={value}" for key, value in unit.settings]
    lines += [*_output_lines(unit.output), ""]
    service = (f"{unit.name}.service", "\n".join(lines))
    if unit.at_boot:
        service = (service[0], f"{service[1]}\n[Install]\nWantedBy=multi-user.target\n")
    if not unit.calendar:
        return Files((service,), tuple(secrets))
    timer = ["[Unit]", f"Description={setting(unit.words)} (timer)", "", "[Timer]"]
    timer += [f"OnCalendar={line}" for line in unit.calendar]
    timer += ["AccuracySec=1s"]
    if unit.persistent:
        timer.append("Persistent=true")
    timer += ["", "[Install]", "WantedBy=timers.target", ""]
    return Files((service, (f"{unit.name}.timer", "\n".join(timer))), tuple(secrets))


def _around(unit: WorkerUnit | JobUnit) -> tuple[list[str], list[tuple[str, str, int]]]:
    """The lines for folder and environment, and the file of what is secret, which only root reads."""
    plain, secret = divide(unit.environment)
    lines = [f"WorkingDirectory={path_text(unit.folder)}"] if unit.folder else []
    lines += [f"Environment={assignment(name, value)}" for name, value in plain]
    if not secret:
        return lines, []
    file = f"/etc/{unit.name}.env"
    text = "".join(environment_file_line(name, marks.concrete(value)) for name, value in secret)
    return [*lines, f"EnvironmentFile={file}"], [(file, text, 0o600)]


def exec_line(argv: Iterable[str]) -> str:
    """ExecStart's value: each word as the process shall receive it; loop variables become %i, references ${NAME}."""
    words = tuple(argv)
    if len(words) == 3 and words[1] == "-c" and program(words) in SHELLS and not marks.has_marks(words[2]):
        return " ".join((*map(_argument, words[:2]), shell_text(words[2])))
    return " ".join(map(_argument, words))


def _argument(word: str) -> str:
    if not marks.has_marks(word):
        return exec_argument(word)
    text = marks.render(word, exec_literal, "%i", lambda name: f"${{{name}}}")
    return quoted(text, marks.render(word, lambda plain: plain.replace("%", "x"), "i", lambda _name: "x"))


def assignment(name: str, value: str) -> str:
    """Environment='s value; a loop variable becomes %i."""
    if not marks.has_marks(value):
        return environment_assignment(name, value)
    turn = "\ue010"
    text = environment_assignment(name, marks.render(value, str, turn, lambda key: f"${key}"))
    return text.replace(turn, "%i")


def path_text(path: str) -> str:
    return "~" if path.startswith("~") else marks.render(path, setting, "%i", lambda name: f"${name}")


def _output_lines(output: Output) -> list[str]:
    lines = []
    if output.target:
        lines.append(f"StandardOutput={path_text(output.target)}")
    if output.errors:
        lines.append(f"StandardError={path_text(output.errors)}")
    return lines


def divide(environment: Iterable[tuple[str, str]]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """What may stand in a unit everybody reads, and what is secret by its name or its value."""
    plain: list[tuple[str, str]] = []
    secret: list[tuple[str, str]] = []
    for name, value in environment:
        text = f"{name}={marks.concrete(value)}"
        (plain if mask(text) == text else secret).append((name, value))
    return plain, secret


def _amount(bytes_: int) -> str:
    """As a person writes it: "64M" (systemd.exec: base 1024); bytes where it is not a whole number of them."""
    whole, rest = divmod(bytes_, 1024 * 1024)
    return str(bytes_) if rest else f"{whole}M"


def memory_limit(peak: int, instances: int, host: int) -> int:
    """MemoryMax from the measured peak: half as much again, rounded up to 16 MiB; 0 when they would not all fit."""
    step = 16 * 1024 * 1024
    limit = -(-peak * 3 // 2 // step) * step
    return 0 if not peak or (host and limit * max(instances, 1) > host) else limit
