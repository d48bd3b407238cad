"""Which command lines are workers of a role, and which only carry the text of one. Pure.

A role's regular expression is searched in the arguments joined by single blanks. That text also stands in the command
line of whatever starts, guards or looks for the worker, so:

- a program that searches or shows text (pgrep, grep, ps, an editor, a pager, journalctl, ...) is never a worker;
- a shell with -c and a program that runs another (flock, su, sudo, timeout, cron, ...) is never one: what it runs is;
- a shell with a script file is a worker, unless a descendant of it matches the same role: then that one is;
- the agent and its own ancestors are never workers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from console.fleet.model import Role


def words(text: str) -> frozenset[str]:
    """Names separated by blanks, as a set."""
    return frozenset(text.split())


SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "busybox"})
_CARRIERS = words(
    "cron CRON crond CROND flock su sudo doas runuser setpriv timeout nice ionice chrt taskset nohup setsid env "
    "stdbuf time run-one run-this-one run-one-constantly keep-one-running start-stop-daemon systemd-run "
    "systemd-inhibit chpst setuidgid softlimit envdir envuidgid setlock tini dumb-init script watch xargs parallel "
    "chronic ts unbuffer unshare nsenter chroot ssh sshd screen SCREEN tmux entr"
)
_LOOKERS = words(
    "pgrep pkill pidof killall grep egrep fgrep rg ag ack ps awk gawk mawk sed cat tac tail head less more most vi "
    "vim nvim nano emacs ed view man strace ltrace gdb lsof top htop journalctl systemctl crontab tee logger find "
    "locate wc diff cp mv rm ls scp rsync git"
)


def program(command: Sequence[str]) -> str:
    """The name of what runs: "python3" for /usr/bin/python3, "bash" for the login shell -bash."""
    return command[0].rpartition("/")[2].lstrip("-") if command else ""


def is_shell_text(command: Sequence[str]) -> bool:
    """A shell that was given its commands as text (-c): sh -c '…', bash -lc '…'."""
    if program(command) not in SHELLS:
        return False
    for argument in command[1:]:
        if argument == "--" or not argument.startswith(("-", "+")):
            return program(command) == "busybox" and argument in SHELLS and "-c" in command[2:3]
        if not argument.startswith("--") and "c" in argument[1:]:
            return True
    return False


def is_script_shell(command: Sequence[str]) -> bool:
    return program(command) in SHELLS and not is_shell_text(command)


def carries_only(command: Sequence[str]) -> bool:
    """The command line may hold a worker's text, the process is none."""
    name = program(command)
    return name in _CARRIERS or name in _LOOKERS or is_shell_text(command)


class Matcher:
    """The regular expressions of the roles, compiled once. The first role in order that matches is the one."""

    def __init__(self, roles: Sequence[Role]) -> None:
        self._patterns = [(role.name, re.compile(pattern)) for role in roles for pattern in role.match]

    def role_of(self, command: Sequence[str]) -> str:
        """The role whose worker this command line is; "" for none."""
        if not command or not self._patterns or carries_only(command):
            return ""
        text = " ".join(command)
        return next((name for name, pattern in self._patterns if pattern.search(text)), "")
