"""Opens a command that runs another: `nohup nice -n 5 flock -n FILE worker …` is nohup, nice, flock, worker. Pure."""

from __future__ import annotations

from typing import NamedTuple

# Options that take the next word as their value, and how many words stand before the command.
_CARRIERS: dict[str, tuple[frozenset[str], int]] = {
    "nohup": (frozenset(), 0),
    "setsid": (frozenset(), 0),
    "exec": (frozenset({"-a"}), 0),
    "command": (frozenset(), 0),
    "time": (frozenset({"-f", "-o"}), 0),
    "nice": (frozenset({"-n", "--adjustment"}), 0),
    "ionice": (frozenset({"-c", "-n", "-p"}), 0),
    "chrt": (frozenset({"-T", "-P", "-D"}), 1),
    "taskset": (frozenset(), 1),
    "env": (frozenset({"-u", "-C", "--unset", "--chdir"}), 0),
    "stdbuf": (frozenset({"-i", "-o", "-e"}), 0),
    "timeout": (frozenset({"-k", "-s", "--kill-after", "--signal"}), 1),
    "flock": (frozenset({"-w", "-E", "--timeout", "--conflict-exit-code"}), 1),
    "sudo": (frozenset({"-u", "-g", "-C", "-h", "-p", "-r", "-t", "-T", "-U", "-D", "--user", "--group"}), 0),
    "doas": (frozenset({"-u", "-C"}), 0),
    "runuser": (frozenset({"-u", "-g", "-G", "--user", "--group"}), 0),
    "setpriv": (frozenset(), 0),
    "run-one": (frozenset(), 0),
    "run-this-one": (frozenset(), 0),
    "run-one-constantly": (frozenset(), 0),
    "keep-one-running": (frozenset(), 0),
    "chronic": (frozenset(), 0),
    "setlock": (frozenset(), 1),
    "solo": (frozenset(), 0),
    "chpst": (frozenset({"-u", "-U", "-b", "-e", "-/", "-n", "-l", "-L", "-m", "-d", "-o", "-p", "-f", "-c"}), 0),
    "setuidgid": (frozenset(), 1),
    "softlimit": (frozenset({"-a", "-c", "-d", "-f", "-l", "-m", "-o", "-p", "-r", "-s", "-t"}), 0),
    "dumb-init": (frozenset(), 0),
    "tini": (frozenset(), 0),
    "systemd-run": (frozenset({"-u", "-p", "--unit", "--property", "-E", "--setenv", "--uid", "--gid", "-M"}), 0),
    "systemd-cat": (frozenset({"-t", "-p", "--identifier", "--priority"}), 0),
    "screen": (frozenset({"-S", "-c", "-t", "-e", "-h", "-L", "-s", "-p"}), 0),
    "chroot": (frozenset(), 1),
    "unbuffer": (frozenset(), 0),
}
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "source", "."})

# These close the descriptors they were given, or start the command from another process: a lock is not inherited.
DROP_DESCRIPTORS = frozenset({"sudo", "start-stop-daemon", "tmux", "screen", "systemd-run", "at", "batch"})


class Opened(NamedTuple):
    """`carriers`: each with its own words, outermost first; `words`: the command they run in the end."""

    carriers: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]


def name_of(words: tuple[str, ...]) -> str:
    return words[0].rpartition("/")[2] if words else ""


def open_carriers(words: tuple[str, ...]) -> Opened:
    """Carriers off the front, one by one; a shell that runs a script file is the script: `sh x.sh a` is `x.sh a`."""
    carriers: list[tuple[str, ...]] = []
    while words and len(carriers) < 16:
        name = name_of(words)
        if name == "start-stop-daemon":
            inner = _start_stop_daemon(words)
        elif name == "tmux":
            inner = _tmux(words)
        elif name in _CARRIERS:
            inner = _after_options(words, *_CARRIERS[name])
        elif name in _SHELLS:
            inner = _script_of(words)
            if inner == words or not inner:
                break
        else:
            break
        carriers.append(words[: len(words) - len(inner)] if inner == words[len(words) - len(inner) :] else words)
        words = inner
    return Opened(tuple(carriers), words)


def _after_options(words: tuple[str, ...], valued: frozenset[str], positional: int) -> tuple[str, ...]:
    place = 1
    while place < len(words):
        word = words[place]
        if word == "--":
            place += 1
            break
        if word in valued or (word[:1] == "-" and word[1:2] != "-" and len(word) > 2 and f"-{word[-1]}" in valued):
            place += 2
        elif (word.startswith("-") and len(word) > 1) or (
            "=" in word
            and words[0].rpartition("/")[2] in ("env", "sudo", "doas")
            and word.partition("=")[0].isidentifier()
        ):
            place += 1
        else:
            break
    # flock FILE -c TEXT, and options between the lock file and the command
    place += positional
    while positional and place < len(words) and words[place].startswith("-") and name_of(words) == "flock":
        if words[place] in ("-c", "--command"):
            return ()
        place += 1
    return words[place:]


def _script_of(words: tuple[str, ...]) -> tuple[str, ...]:
    for place, word in enumerate(words[1:], start=1):
        if word.startswith(("-", "+")):
            if not word.startswith("--") and "c" in word[1:]:
                return ()
            continue
        return words[place:]
    return ()


def _start_stop_daemon(words: tuple[str, ...]) -> tuple[str, ...]:
    """--exec P or --startas P, then what follows `--`."""
    program: tuple[str, ...] = ()
    for place, word in enumerate(words):
        if word in ("--exec", "-x", "--startas", "-a") and place + 1 < len(words):
            program = (words[place + 1],)
        elif word.startswith(("--exec=", "--startas=")):
            program = (word.partition("=")[2],)
        elif word == "--":
            return program + words[place + 1 :]
    return program


def _tmux(words: tuple[str, ...]) -> tuple[str, ...]:
    """tmux new-session -d -s NAME 'worker …': the last word is a command for a shell."""
    if not any(word in ("new", "new-session", "neww", "new-window") for word in words[1:3]):
        return ()
    return tuple(words[-1].split())
