"""Opens a command that runs another: `nohup nice -n 5 flock -n FILE worker …` is nohup, nice, flock, worker. Pure.

What a carrier changes for the command it runs (user, folder, environment, limits, locks, a terminal of its own, life in
the background) is told, so that nothing of it is lost when the carrier is taken off.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from console.schedules.carrying import SETTING, Carrier, name_of, split
from console.schedules.commands import SHELLS, words
from console.schedules.marks import concrete
from console.schedules.sessions import screen, script, start_stop_daemon, tmux

# Options that take the next word as their value, and how many words stand before the command.
_RULES: dict[str, tuple[frozenset[str], int]] = {
    "nohup": (words(""), 0),
    "setsid": (words(""), 0),
    "exec": (words("-a"), 0),
    "command": (words(""), 0),
    "builtin": (words(""), 0),
    "time": (words("-f -o"), 0),
    "nice": (words("-n --adjustment"), 0),
    "ionice": (words("-c -n -p --class --classdata"), 0),
    "chrt": (words("-T -P -D"), 1),
    "taskset": (words(""), 1),
    "cpulimit": (words("-l -p -e -P --limit"), 0),
    "prlimit": (words(""), 0),
    "env": (words("-u -C --unset --chdir"), 0),
    "stdbuf": (words("-i -o -e"), 0),
    "timeout": (words("-k -s --kill-after --signal"), 1),
    "flock": (words("-w -E --timeout --wait --conflict-exit-code"), 1),
    "lockfile-progs": (words(""), 0),
    "sudo": (words("-u -g -C -h -p -r -t -T -U -D --user --group --chdir"), 0),
    "doas": (words("-u -C"), 0),
    "runuser": (words("-u -g -G -s --user --group --shell --supp-group"), 0),
    "setpriv": (words("--reuid --regid --groups"), 0),
    "run-one": (words(""), 0),
    "run-this-one": (words(""), 0),
    "run-one-constantly": (words(""), 0),
    "run-one-until-success": (words(""), 0),
    "run-one-until-failure": (words(""), 0),
    "keep-one-running": (words(""), 0),
    "chronic": (words(""), 0),
    "cronic": (words(""), 0),
    "cronlock": (words(""), 0),
    "setlock": (words(""), 1),
    "lckdo": (words("-W"), 1),
    "with-lock-ex": (words(""), 1),
    "withlock": (words("-w"), 1),
    "lockf": (words("-t"), 1),
    "lockrun": (words("--maxtime --lockfile"), 0),
    "runitor": (words("-uuid -slug -api-url -ping-key"), 0),
    "cronitor": (words(""), 2),
    "logsave": (words(""), 1),
    "proxychains4": (words("-f"), 0),
    "torsocks": (words(""), 0),
    "fakeroot": (words(""), 0),
    "firejail": (words(""), 0),
    "solo": (words(""), 0),
    "chpst": (words("-u -U -b -e -/ -n -l -L -m -d -o -p -f -c"), 0),
    "setuidgid": (words(""), 1),
    "s6-setuidgid": (words(""), 1),
    "gosu": (words(""), 1),
    "su-exec": (words(""), 1),
    "envdir": (words(""), 1),
    "softlimit": (words("-a -c -d -f -l -m -o -p -r -s -t"), 0),
    "daemonize": (words("-c -e -E -l -o -p -u"), 0),
    "daemon": (words("-n --name -u --user -D --chdir -o --output -l --errlog -F --pidfile -e --env"), 0),
    "dumb-init": (words(""), 0),
    "tini": (words("-p -e"), 0),
    "systemd-run": (words("-u -p --unit --property -E --setenv --uid --gid -M --slice"), 0),
    "systemd-cat": (words("-t -p --identifier --priority"), 0),
    "systemd-inhibit": (words(""), 0),
    "chroot": (words(""), 1),
    "unbuffer": (words(""), 0),
    "catchsegv": (words(""), 0),
    "busybox": (words(""), 0),
    "nocache": (words(""), 0),
    "cgexec": (words("-g"), 0),
    "numactl": (words(""), 0),
    "xvfb-run": (words("-n -e -f -l -p -s -w --server-args"), 0),
    "dbus-run-session": (words(""), 0),
    "ssh-agent": (words(""), 0),
}
_SYSTEM_FOLDERS = words("/bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin /command /usr/lib/systemd")
_SCRIPT_SHELLS = SHELLS - {"busybox", "fish"}

# These close the descriptors they were given, or start the command from another process: a lock is not inherited.
DROP_DESCRIPTORS = frozenset({"sudo", "start-stop-daemon", "tmux", "screen", "systemd-run", "at", "batch"})
KEEP_ONE = words(
    "run-one run-this-one run-one-constantly keep-one-running setlock solo cronlock lckdo with-lock-ex withlock "
    "lockf lockrun"
)
KEEP_RUNNING = words("run-one-constantly keep-one-running run-one-until-success")
LIMITS = words("nice ionice chrt taskset timeout softlimit cpulimit prlimit")


def tool_of(command: tuple[str, ...]) -> str:
    """The name of a program of the system: found by PATH, or in its folders. "" for any other path."""
    word = concrete(command[0]) if command else ""
    folder, slash, name = word.rpartition("/")
    return name if not slash or folder in _SYSTEM_FOLDERS else ""


def open_one(command: tuple[str, ...]) -> Carrier | None:
    """The outermost carrier of a command; None when the command is no carrier."""
    name = tool_of(command)
    if name == "command" and command[1:2] in (("-v",), ("-V",)):
        return None
    special = _SPECIAL.get(name)
    if special is not None:
        return special(command)
    if name in _SCRIPT_SHELLS or (name == "busybox" and name_of(command[1:]) in SHELLS):
        return _shell(command)
    if name not in _RULES:
        return None
    options, inner = split(command, *_RULES[name])
    return _with_options(name, Carrier(command[: len(command) - len(inner)], inner), options)


def options_of(carrier: Carrier) -> dict[str, str]:
    """The options of a plain carrier with their values."""
    return split((*carrier.words, "-"), *_RULES[name_of(carrier.words)])[0]


def _with_options(name: str, carrier: Carrier, options: dict[str, str]) -> Carrier:
    """What the options of a plain carrier say."""
    if name in ("sudo", "doas"):
        settings = tuple(_pair(word) for word in carrier.words[1:] if SETTING.match(word))
        login = "-i" in options or "--login" in options
        return carrier._replace(
            user=_first(options, "-u", "--user") or "root", group=_first(options, "-g", "--group"), login=login,
            environment=settings, folder="~" if login else (_first(options, "-D", "--chdir") or None),
            detached="-b" in options,
        )  # fmt: skip
    if name == "runuser":
        return carrier._replace(user=_first(options, "-u", "--user"), group=_first(options, "-g", "--group"))
    if name == "env":
        settings = tuple(_pair(word) for word in carrier.words[1:] if SETTING.match(word))
        return carrier._replace(environment=settings, folder=_first(options, "-C", "--chdir") or None)
    if name in ("setuidgid", "s6-setuidgid", "gosu", "su-exec"):
        user, _, group = carrier.words[-1].partition(":")
        return carrier._replace(user=user, group=group)
    if name == "chpst":
        user, _, group = options.get("-u", "").partition(":")
        return carrier._replace(user=user, group=group, folder=options.get("-C") or None)
    if name == "setpriv":
        return carrier._replace(user=options.get("--reuid", ""), group=options.get("--regid", ""))
    if name == "systemd-run":
        return carrier._replace(user=options.get("--uid", ""), detached="--scope" not in options)
    if name == "daemonize":
        return carrier._replace(
            user=options.get("-u", ""),
            folder=options.get("-c") or None,
            output=options.get("-o", ""),
            detached=True,
            environment=tuple(_pair(value) for key, value in options.items() if key == "-E"),
            lock=options.get("-l", ""),
        )
    if name == "daemon":
        return carrier._replace(
            user=_first(options, "-u", "--user").partition(":")[0], detached=True,
            folder=_first(options, "-D", "--chdir") or None, output=_first(options, "-o", "--output"),
            name=_first(options, "-n", "--name"),
        )  # fmt: skip
    if name in ("setlock", "lckdo", "with-lock-ex", "withlock", "lockf"):
        return carrier._replace(lock=carrier.words[-1])
    if name == "lockrun":
        return carrier._replace(lock=options.get("--lockfile", ""))
    if name == "setsid":
        return carrier._replace(detached=not {"-w", "--wait"} & options.keys())
    return carrier


def _first(options: dict[str, str], *names: str) -> str:
    return next((options[name] for name in names if options.get(name)), "")


def _pair(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name, value


# --- carriers with rules of their own -------------------------------------------------------------------------------


def _shell(command: tuple[str, ...]) -> Carrier | None:
    """sh -c TEXT, sh FILE; a shell without either is no carrier."""
    if name_of(command) == "busybox":
        command = command[1:]
    login = False
    rest = list(enumerate(command))[1:]
    for place, word in rest:
        if word == "-O" or word == "-o":
            continue
        if word in ("--login", "-l", "-"):
            login = True
        elif word.startswith("--rcfile") or word.startswith("--init-file") or word.startswith("--"):
            continue
        elif word.startswith(("-", "+")):
            login |= "l" in word[1:]
            if "c" in word[1:] and place + 1 < len(command):
                return Carrier(command[: place + 1], command[place + 2 :], command[place + 1], login=login)
            if "s" in word[1:]:
                return None
        elif command[place - 1] in ("-O", "-o", "--rcfile", "--init-file"):
            continue
        else:
            return Carrier(command[:place], command[place:], login=login)
    return None


def _source(command: tuple[str, ...]) -> Carrier | None:
    return Carrier(command[:1], command[1:]) if len(command) > 1 else None


def _su(command: tuple[str, ...]) -> Carrier | None:
    """su [-] [USER] -c TEXT, runuser the same way; with -s SHELL, and what follows the user goes to the shell."""
    if name_of(command) == "runuser" and any(re.match(r"-[A-Za-z]*u|--user", word) for word in command[1:]):
        options, inner = split(command, *_RULES["runuser"])
        return _with_options("runuser", Carrier(command[: len(command) - len(inner)], inner), options)
    user = group = ""
    text: str | None = None
    login = False
    place = 1
    while place < len(command):
        word = command[place]
        following = command[place + 1] if place + 1 < len(command) else ""
        if word in ("-", "-l", "--login"):
            login = True
        elif word in ("-c", "--command", "--session-command"):
            text, place = following, place + 1
        elif word.startswith(("--command=", "--session-command=")):
            text = word.partition("=")[2]
        elif word in ("-s", "--shell", "-w", "--whitelist-environment"):
            place += 1
        elif word in ("-g", "--group", "-G", "--supp-group"):
            group, place = following, place + 1
        elif word.startswith("-") and not word.startswith("--") and word != "-":
            login |= "l" in word
            if word.endswith("c"):
                text, place = following, place + 1
            elif word.endswith("s"):
                place += 1
        elif not word.startswith("-") and not user:
            user = word
        place += 1
    return Carrier(command, (), text, user or "root", group, login, "~" if login else None)


def _flock(command: tuple[str, ...]) -> Carrier | None:
    """flock [options] FILE COMMAND, flock FILE -c TEXT; `flock FD` is no carrier."""
    valued, _ = _RULES["flock"]
    _, inner = split(command, valued, 0)
    if len(inner) < 2:
        return None
    lock, inner = inner[0], inner[1:]
    while inner and inner[0].startswith("-") and len(inner) > 1:
        if inner[0] in ("-c", "--command"):
            own = command[: len(command) - len(inner)]
            return Carrier(own, (), inner[1], lock=lock)
        if inner[0] == "--":
            inner = inner[1:]
            break
        inner = inner[2:] if inner[0] in valued else inner[1:]
    return Carrier(command[: len(command) - len(inner)], inner, lock=lock)


_SPECIAL: dict[str, Callable[[tuple[str, ...]], Carrier | None]] = {
    "su": _su,
    "runuser": _su,
    "flock": _flock,
    "start-stop-daemon": start_stop_daemon,
    "tmux": tmux,
    "screen": screen,
    "script": script,
    "sg": _su,
    "source": _source,
    ".": _source,
}
