"""Carriers that start their command in a session or as a daemon of its own: start-stop-daemon, tmux, screen. Pure."""

from __future__ import annotations

import re

from console.schedules.carrying import Carrier, split
from console.schedules.commands import words

SCREEN = words("-S -c -t -e -h -s -p -T")


def start_stop_daemon(command: tuple[str, ...]) -> Carrier | None:
    """--exec P or --startas P, then what follows `--`."""
    long = {
        "-x": "--exec", "-a": "--startas", "-c": "--chuid", "-d": "--chdir", "-p": "--pidfile", "-b": "--background",
        "-S": "--start", "-K": "--stop", "-g": "--group", "-N": "--nicelevel", "-n": "--name", "-u": "--user",
        "-O": "--output", "-m": "--make-pidfile",
    }  # fmt: skip
    plain = words("--background --start --stop --make-pidfile --status")
    options: dict[str, str] = {}
    arguments: tuple[str, ...] = ()
    place = 1
    while place < len(command):
        word = command[place]
        if word == "--":
            arguments = command[place + 1 :]
            break
        shorts = word[1:] if re.fullmatch(r"-[A-Za-z]+", word) else ""
        key, equals, value = word.partition("=")
        for name in [f"-{letter}" for letter in shorts] or [key]:
            name = long.get(name, name)
            options[name] = value
            if name in long.values() and name not in plain and not equals:
                options[name] = command[place + 1] if place + 1 < len(command) else ""
                place += 1
        place += 1
    program = options.get("--startas") or options.get("--exec", "")
    if "--stop" in options or "--status" in options or not program:
        return Carrier(command)
    user, _, group = options.get("--chuid", "").partition(":")
    return Carrier(
        command, (program, *arguments), None, user, group or options.get("--group", ""),
        folder=options.get("--chdir") or None, lock=options.get("--pidfile", ""), detached=True,
        output=options.get("--output", ""), nice=options.get("--nicelevel", ""),
    )  # fmt: skip


def tmux(command: tuple[str, ...]) -> Carrier | None:
    """tmux new-session -d -s NAME 'worker …', tmux send-keys -t NAME 'worker …' Enter: text for a shell."""
    at = next((place for place, word in enumerate(command) if place and not word.startswith("-")), 0)
    while at and command[at - 1] in ("-L", "-S", "-f", "-c"):
        at = next((place for place in range(at + 1, len(command)) if not command[place].startswith("-")), 0)
    verb = command[at] if at else ""
    if verb in ("send-keys", "send"):
        keys = [word for word in command[at + 1 :] if word not in ("C-m", "Enter", "ENTER", "KPEnter")]
        text = keys[-1] if keys else ""
        return Carrier(command, (), text, detached=True, terminal=True)
    if verb not in ("new", "new-session", "neww", "new-window", "respawn-pane", "split-window"):
        return Carrier(command, terminal=True)
    options, inner = split(command[at:], words("-s -t -n -c -x -y -F -e"), 0)
    own = command[: len(command) - len(inner)]
    end = inner.index(";") if ";" in inner else len(inner)
    inner, further = inner[:end], inner[end + 1 :]
    text = " ".join(inner)
    if further:  # tmux itself takes the next command behind a ;
        text = f"({text}); tmux {' '.join(map(_requoted, further))}"
    return Carrier(
        own, tuple(text.split()), text or None, detached=True, terminal=True,
        folder=options.get("-c") or None, name=options.get("-s") or options.get("-n", ""),
    )  # fmt: skip


def _requoted(word: str) -> str:
    return word if re.fullmatch(r"[\w./:@%+=,-]+", word) else "'" + word.replace("'", "'\\''") + "'"


def screen(command: tuple[str, ...]) -> Carrier | None:
    """screen -dmS NAME COMMAND, screen -S NAME -X stuff 'worker …^M'."""
    if "-X" in command:
        at = command.index("-X")
        text = command[at + 2] if command[at + 1 : at + 2] == ("stuff",) and len(command) > at + 2 else None
        text = re.sub(r"(\\n|\\r|\^M|\n|\r)+$", "", text) if text else None
        return Carrier(command, (), text, detached=True, terminal=True)
    options, inner = split(command, SCREEN, 0)
    return Carrier(
        command[: len(command) - len(inner)], inner, detached="-d" in options or "-D" in options, terminal=True,
        name=options.get("-S", ""),
    )  # fmt: skip


def script(command: tuple[str, ...]) -> Carrier | None:
    """script -qc TEXT FILE: a terminal around a text."""
    for place, word in enumerate(command[1:], start=1):
        if re.fullmatch(r"-[A-Za-z]*c|--command", word) and place + 1 < len(command):
            return Carrier(command, (), command[place + 1], terminal=True)
    return None
