"""What following a shell text finds: commands, and what stands around each. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from console.schedules.carrying import Carrier
from console.schedules.commands import words
from console.schedules.model import ScriptText
from console.schedules.shell.expand import Gate

Read = Callable[[str], ScriptText | None]
Redirections = tuple[tuple[str, str, str], ...]  # descriptor, operator, target

TURNS = 64  # of one loop that are walked one by one
STEPS = 4_000  # statements in all
DEEPEST = 8  # scripts, functions and shells within each other
BUILTINS = words(
    "cd pushd popd exit export set unset : true false test [ [[ echo printf read wait sleep return shift eval let "
    "local declare readonly typeset break continue trap umask ulimit alias hash type getopts times history enable "
    "shopt disown bg fg jobs logout !"
)


class Around(NamedTuple):
    """What stands around a command."""

    where: str = ""  # the script's path; "" on the line itself
    depth: int = 0
    background: bool = False
    endless: str = ""  # within "while", "until", "read": a loop without an end that can be seen
    times: int | None = 1  # turns of loops that were not walked one by one
    gates: tuple[Gate, ...] = ()
    carriers: tuple[Carrier, ...] = ()
    user: str = ""  # "": whom cron runs the line as
    group: str = ""
    login: bool = False
    uncertain: bool = False  # behind an open condition
    condition: bool = False  # is the condition itself
    substitution: bool = False
    piped: bool = False
    closes_lock: bool = False
    outputs: Redirections = ()


class Command(NamedTuple):
    """One command as it would be run."""

    words: tuple[str, ...]  # with its carriers
    inner: tuple[str, ...]  # without; () where a text or a script is followed instead
    around: Around
    folder: str
    environment: Mapping[str, str]
    locks: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    gates: tuple[Gate, ...] = ()
    script: ScriptText | None = None  # of the program, when it is a text that is no shell script
    followed: str = ""  # the path of the shell script it is
    plain: tuple[str, ...] = ()  # `inner` with the values of this turn


class Reading(NamedTuple):
    commands: tuple[Command, ...]
    notes: tuple[str, ...]  # what could not be read, as sentences
    complete: bool  # False: a part of the text is not understood


class Leave(Exception):
    """The control flow of the shell that is followed: exit, return, break, continue."""

    def __init__(self, how: str) -> None:
        self.how = how


def deeper(around: Around) -> Around:
    return around._replace(depth=around.depth + 1)


def above(descriptor: str) -> bool:
    return descriptor.isdigit() and int(descriptor) > 2


def interpreter_of(text: str) -> str:
    """The name behind #!, through env; "" without one."""
    found = re.match(r"#![ \t]*(\S+)(?:[ \t]+(?:-S[ \t]+)?(\S+))?", text)
    if not found:
        return ""
    name = found[1].rpartition("/")[2]
    return (found[2] or "").rpartition("/")[2] if name == "env" else name
