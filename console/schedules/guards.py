r"""Guards of a launcher: does `pgrep` really find what the line starts? Pure.

Rules (procps pgrep(1), proc(5), seen on Debian 12):
- `pgrep -f PATTERN` on the crontab line itself always finds cron's own `sh -c LINE`, whose command line holds the
  pattern; the [x] bracket trick helps only where the line does not name the program plainly as well;
- without -f the pattern is compared with the process's name: the basename of the file that was executed, cut to 15
  characters. A script that an interpreter is called with has the interpreter's name;
- -x wants the whole name (or with -f the whole command line);
- within a script file nothing of this holds for `pgrep -f`: the shell's command line is the script's path.
"""

from __future__ import annotations

import re
import warnings
from typing import NamedTuple

from console.schedules.carrying import name_of
from console.schedules.commands import words

NAME_LENGTH = 15  # TASK_COMM_LEN less the NUL

_VALUED = words(
    "-d -P -g -s -t -u -U -G -J -F -r -O --delimiter --parent --pgroup --session --terminal --euid --uid --group "
    "--pidfile --runstates --older --ns --nslist --cgroup --env"
)


class Lookup(NamedTuple):
    """One pgrep or pidof."""

    program: str
    pattern: str
    full: bool  # -f: the command line, not the name
    exact: bool  # -x
    ignore_case: bool


def lookup_of(words: tuple[str, ...]) -> Lookup | None:
    """The pgrep or pidof a command is; None for anything else, and for one without a pattern."""
    name = name_of(words)
    if name not in ("pgrep", "pidof"):
        return None
    full = exact = ignore_case = False
    pattern = ""
    rest = iter(words[1:])
    for word in rest:
        if word in _VALUED and name == "pgrep":
            next(rest, None)
        elif word.startswith("--"):
            full |= word == "--full"
            exact |= word == "--exact"
            ignore_case |= word == "--ignore-case"
        elif word.startswith("-") and len(word) > 1:
            letters = word[1:]
            full |= "f" in letters and name == "pgrep"
            exact |= "x" in letters and name == "pgrep"
            ignore_case |= "i" in letters and name == "pgrep"
            if name == "pgrep" and f"-{letters[-1]}" in _VALUED:
                next(rest, None)
        else:
            pattern = word
    return Lookup(name, pattern, full, exact, ignore_case) if pattern else None


def process_name(words: tuple[str, ...]) -> str:
    """The name (/proc/PID/comm) of what these words start, as long as it does not rename itself."""
    return name_of(words)[:NAME_LENGTH]


def finds_text(lookup: Lookup, text: str) -> bool | None:
    """The pattern finds a process with this name or command line; None: the pattern cannot be judged."""
    if "$" in lookup.pattern.replace("$$", "") and not lookup.pattern.endswith("$"):
        return None  # a variable that is not known
    if lookup.program == "pidof":
        return lookup.pattern.rpartition("/")[2] == text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # "[a--]": sets as a later Python may read them
            pattern = re.compile(_extended(lookup.pattern), re.IGNORECASE if lookup.ignore_case else 0)
    except re.error:
        return None
    return bool(pattern.fullmatch(text) if lookup.exact else pattern.search(text))


def finds_itself(lookup: Lookup, shell_line: str) -> bool:
    """Used on the crontab line itself: `shell_line` is the command line of cron's shell, `/bin/sh -c LINE`."""
    return lookup.full and finds_text(lookup, shell_line) is True


def misses(lookup: Lookup, started: tuple[str, ...]) -> str:
    """Why the lookup never finds what is started, as a clause; "" when it may find it."""
    if not started or any("$" in word for word in started[:1]):
        return ""
    name, line = process_name(started), " ".join(started)
    if lookup.full:
        if finds_text(lookup, line) is False:
            return f"pgrep -f {lookup.pattern!r} does not match the command line it starts"
        return ""
    tool = lookup.program
    if finds_text(lookup, name) is False:
        longer = f", and names are cut to {NAME_LENGTH} characters" if len(lookup.pattern) > NAME_LENGTH else ""
        return f"{tool} {lookup.pattern!r} looks at process names, and what it starts is called {name!r}{longer}"
    return ""


def _extended(pattern: str) -> str:
    """POSIX extended as Python: only the character classes differ in what crontabs hold."""
    classes = {"space": r"\s", "digit": r"\d", "alpha": "a-zA-Z", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z"}
    return re.sub(r"\[:(\w+):\]", lambda found: classes.get(found[1], found[0]), pattern)
