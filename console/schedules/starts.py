"""The commands of a line that may be workers, in the form a unit would run them. Pure.

Programs that start others themselves (celery multi, forever, delayed_job) are told as what they start; flags that send
a program into the background are taken off, because a unit keeps it in the foreground.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from console.schedules import marks, programs
from console.schedules.carrying import Carrier, name_of
from console.schedules.commands import words
from console.schedules.shell.values import Command, Read

_DAEMON_FLAGS: dict[str, tuple[frozenset[str], frozenset[str]]] = {  # program: plain flags, flags with a value
    "autossh": (words("-f"), words("")),
    "ssh": (words("-f"), words("")),
    "gunicorn": (words("-D --daemon"), words("-p --pid")),
    "unicorn": (words("-D --daemonize"), words("")),
    "puma": (words("-d --daemon"), words("")),
    "sidekiq": (words("-d --daemon"), words("-P --pidfile -L --logfile")),
    "celery": (words("-D --detach"), words("--pidfile")),
    "uwsgi": (words(""), words("--daemonize -d --daemonize2 --pidfile")),
    "redis-server": (words(""), words("--daemonize")),
    "memcached": (words("-d"), words("-P")),
    "gearmand": (words("-d --daemon"), words("-P --pid-file")),
    "mosquitto": (words("-d --daemon"), words("")),
    "openvpn": (words("--daemon"), words("--writepid")),
    "frpc": (words(""), words("")),
}
_GENERIC_FLAGS = words("--daemon --daemonize --daemonise --detach --detached --background --bg --fork")
_PORT = re.compile(
    r"--(?:port|listen|bind|http-port|addr|address|http)(?:=(?:\S*:)?\d{2,5})?|0\.0\.0\.0:\d+|127\.0\.0\.1:\d+|\[?::\]?:\d+|-[RL]\S*"
)


class Start(msgspec.Struct):
    """One command that may be a worker."""

    argv: tuple[str, ...]  # as written, marked
    run: tuple[str, ...]  # as a unit runs it, marked
    command: Command
    judged: programs.Judged
    shape: str = ""  # of programs that start others
    name: str = ""  # that its supervisor or session gives it
    count: int | None = 1
    names: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()  # further lines of [Service]
    hazards: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None  # instead of the command's
    folder: str | None = None
    output: str | None = None  # path of an appended log; "": none
    user: str = ""
    restart: str = "always"
    units: bool = True  # False: nothing systemd should run
    sure: bool = True  # False: the flag that was taken off is not a documented one
    notes: tuple[str, ...] = ()

    @property
    def carriers(self) -> tuple[Carrier, ...]:
        return self.command.around.carriers


def start_of(command: Command) -> Start:
    """A command as it may be run by a unit."""
    argv = command.inner
    plain = tuple(map(marks.concrete, argv))
    name = programs.program_of(plain).name
    special = _SPECIAL.get(name, _systemctl if "/init.d/" in plain[0] else None)
    found = special(command, plain) if special is not None else None
    if found is None:
        found = Start(argv, argv, command, programs.judge(plain, command.script))
        _without_daemon_flags(found, plain, name)
    if any(_leaves_it_to_the_program(carrier.words) for carrier in command.around.carriers) and not found.shape:
        found.hazards += ("self_daemonizing",)
        found.notes += (f"{name} goes into the background by itself: which option keeps it in the foreground?",)
    return found


def _leaves_it_to_the_program(carrier: tuple[str, ...]) -> bool:
    """start-stop-daemon without --background: what it starts is a daemon."""
    plain = tuple(map(marks.concrete, carrier))
    return name_of(plain) == "start-stop-daemon" and not any(
        word == "--background" or re.fullmatch(r"-[A-Za-z]*b[A-Za-z]*", word) for word in plain
    )


def holds_a_port(argv: tuple[str, ...]) -> bool:
    """An option gives it a fixed port of its own; not one that differs by instance."""
    return any(
        _PORT.fullmatch(marks.shown(word)) and not any(marks.turns(each) for each in argv[at : at + 2])
        for at, word in enumerate(argv)
        if at
    )


def _without_daemon_flags(start: Start, plain: tuple[str, ...], name: str) -> None:
    if name not in _DAEMON_FLAGS and _GENERIC_FLAGS.isdisjoint(plain):
        return
    flags, valued = _DAEMON_FLAGS.get(name, (frozenset[str](), frozenset[str]()))
    kept: list[str] = []
    dropped = False
    place = 0
    program_at = next((at for at, word in enumerate(plain) if word.rpartition("/")[2] == name), 0)
    while place < len(plain):
        word, key = plain[place], plain[place].partition("=")[0]
        if place <= program_at:
            kept.append(start.argv[place])
        elif word in flags:
            dropped = True
        elif key in valued:
            dropped |= "daemon" in key
            place += "=" not in word
        elif name in ("ssh", "autossh") and re.fullmatch(r"-[fNTnqCv]*f[fNTnqCv]*", word):
            dropped = True
            kept.append("-" + word[1:].replace("f", ""))
        else:
            kept.append(start.argv[place])
        place += 1
    if dropped:
        start.argv = start.run = tuple(kept)
        start.hazards += ("self_daemonizing",)
        start.shape = "self_daemonizing"
        start.judged = programs.Judged("long", f"{name} goes into the background by itself")
        return
    if any(word in _GENERIC_FLAGS for word in plain[1:]):
        start.run = tuple(word for word, text in zip(start.argv, plain, strict=True) if text not in _GENERIC_FLAGS)
        start.hazards += ("self_daemonizing",)
        start.shape, start.sure = "self_daemonizing", False
        start.judged = programs.Judged("long", f"{name} goes into the background by itself")


# --- programs that start others -------------------------------------------------------------------------------------


def _celery(command: Command, plain: tuple[str, ...]) -> Start | None:
    """celery worker, and celery multi start N|NAMES OPTIONS as one `celery worker -n …` for each instance."""
    program_at = next(at for at, word in enumerate(plain) if word.rpartition("/")[2] == "celery" or word == "celery")
    rest = plain[program_at + 1 :]
    before = command.inner[: program_at + 1]
    if "multi" not in rest[:3]:
        found = Start(command.inner, command.inner, command, programs.judge(plain, None))
        _without_daemon_flags(found, plain, "celery")
        if "worker" in rest:
            found.settings = (("TimeoutStopSec", "15min"),)
        return found
    at = rest.index("multi")
    if rest[at + 1 : at + 2] not in (("start",), ("restart",), ("startverify",)):
        return Start(command.inner, command.inner, command, programs.Judged("short", "celery multi ends at once"))
    nodes: list[str] = []
    options: list[str] = []
    app: list[str] = list(command.inner[program_at + 1 : program_at + 1 + at])
    words_left = list(command.inner[program_at + 1 + at + 2 :])
    valued = words("-A --app -l --loglevel -c --concurrency -Q --queues -P --pool -E -b --broker --workdir -n -O -B")
    while words_left and not words_left[0].startswith("-"):
        nodes.append(words_left.pop(0))
    while words_left:
        word = words_left.pop(0)
        key = word.partition("=")[0]
        target = app if key in ("-A", "--app", "-b", "--broker", "--workdir") else options
        if key.partition(":")[0] in ("--pidfile", "--logfile") or key in ("--verbose", "--nosplash", "--quiet"):
            if "=" not in word and words_left and not words_left[0].startswith("-"):
                words_left.pop(0)
            continue
        target.append(word)
        if key.partition(":")[0] in valued and "=" not in word and words_left and not words_left[0].startswith("-"):
            target.append(words_left.pop(0))
    count = int(nodes[0]) if len(nodes) == 1 and nodes[0].isdigit() else len(nodes)
    numbered = len(nodes) == 1 and nodes[0].isdigit()
    argv = (*before, *app, "worker", *options)
    node = ("w" if numbered else "") + marks.loop("n", nodes[0] if nodes else "") + "@%h"
    return Start(
        argv,
        (*argv, "-n", node),
        command,
        programs.Judged("long", "celery multi leaves its workers in the background"),
        shape="celery_multi",
        count=count or None,
        names=() if numbered else tuple(map(marks.concrete, nodes)),
        settings=(("TimeoutStopSec", "15min"),),
        hazards=("self_daemonizing",),
        notes=tuple(
            f"{word} is for one node only: it stands in the unit as it is"
            for word in options
            if re.match(r"--?\w+:", word)
        ),
    )


def _delayed_job(command: Command, plain: tuple[str, ...]) -> Start | None:
    """delayed_job -n 4 start: four processes in the background; run is one in the foreground."""
    if not {"start", "restart"} & set(plain):
        return None
    at = next(place for place, word in enumerate(plain) if "delayed_job" in word)
    kept: list[str] = list(command.inner[: at + 1])
    count = 1
    rest = iter(zip(command.inner[at + 1 :], plain[at + 1 :], strict=True))
    for marked, word in rest:
        key, _, value = word.partition("=")
        if key in ("-n", "--number_of_workers", "--number-of-workers"):
            number = value or next(rest, ("", ""))[1]
            count = int(number) if number.isdigit() else 1
        elif key in ("--pid-dir", "--log-dir", "--daemon-options"):
            if not value:
                next(rest, None)
        elif word in ("start", "restart"):
            kept.append("run")
        elif word not in ("-m", "--monitor"):
            kept.append(marked)
    return Start(
        tuple(kept),
        tuple(kept),
        command,
        programs.Judged("long", "delayed_job start leaves its workers in the background"),
        shape="self_daemonizing",
        count=count,
        hazards=("self_daemonizing",),
    )


def _container(command: Command, plain: tuple[str, ...]) -> Start | None:
    """docker start NAMES, docker run -d, compose up -d: the container runtime owns what runs."""
    verbs = [word for word in plain[1:] if not word.startswith("-")]
    compose = plain[0].rpartition("/")[2] in ("docker-compose", "podman-compose") or verbs[:1] == ["compose"]
    verb = verbs[1] if verbs[:1] in (["compose"], ["container"]) and len(verbs) > 1 else verbs[0] if verbs else ""
    if compose and "up" in verbs:
        return _owned(command, "compose up starts containers", None)
    if verb in ("start", "restart"):
        names = verbs[verbs.index(verb) + 1 :]
        return _owned(command, f"{name_of(command.inner)} starts containers", len(names) or None)
    if (verb == "run" and {"-d", "--detach"} & set(plain)) or (
        verb == "run" and any(re.match(r"-\w*d", word) for word in plain)
    ):
        return _owned(command, f"{name_of(command.inner)} run starts a container in the background", 1)
    return None


def _owned(command: Command, why: str, count: int | None) -> Start:
    return Start(
        command.inner, command.inner, command, programs.Judged("long", why), shape="container_bootstrap", count=count,
        hazards=("owned_by_container_runtime",), units=False,
    )  # fmt: skip


def _systemctl(command: Command, plain: tuple[str, ...]) -> Start | None:
    """systemctl start UNIT, service NAME start, /etc/init.d/NAME start, supervisorctl start NAME: it has an owner.

    A restart counts where a condition stands before it: without one it only renews what runs.
    """
    verbs = [word for word in plain[1:] if not word.startswith("-")]
    if name_of(plain) in ("service", "invoke-rc.d"):
        verbs = [*verbs[1:2], *verbs[:1]]
    elif "/init.d/" in plain[0]:
        verbs = [*verbs[:1], name_of(plain)]
    looked = any(words[0].rpartition("/")[2] not in ("test", "[") for gate in command.gates for words in gate.commands)
    if not (verbs[:1] == ["start"] or (verbs[:1] == ["restart"] and looked)):
        return None
    return Start(
        command.inner, command.inner, command, programs.Judged("long", "the units exist already"), shape="unit_start",
        name="" if len(verbs) != 2 or verbs[1] == "all" else re.sub(r"@.*|\.(service|target)$|:.*", "", verbs[1]),
        count=None if verbs[1:] == ["all"] else len(verbs) - 1, units=False,
    )  # fmt: skip


_SPECIAL: dict[str, Callable[[Command, tuple[str, ...]], Start | None]] = {
    "celery": _celery,
    "delayed_job": _delayed_job,
    "docker": _container,
    "podman": _container,
    "nerdctl": _container,
    "docker-compose": _container,
    "podman-compose": _container,
    "systemctl": _systemctl,
    "service": _systemctl,
    "invoke-rc.d": _systemctl,
    "supervisorctl": _systemctl,
}
__all__ = ["Read", "Start", "start_of"]
