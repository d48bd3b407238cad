"""Commands that run inside the demo host, seen from outside (as root)."""

from __future__ import annotations

import os
from collections.abc import Sequence

DEPLOY = "deploy"
DEPLOY_UID = 1500
OPERATORS = "worktop"  # the group that may start and stop the fleet's units, by a polkit rule
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WORKTOP = "/usr/local/bin/worktop"  # the script inside; runs this checkout with this interpreter

# What a login takes over from the terminal it comes from.
_TERMINAL = ("TERM", "COLORTERM", "NO_COLOR", "LANG", "LC_ALL", "LC_CTYPE", "TEXTUAL_COLOR_SYSTEM")


def namespaces(leader: int) -> list[str]:
    """nsenter into everything that is the demo host's own."""
    return ["nsenter", f"--target={leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--"]


def exec_argv(leader: int, argv: Sequence[str], user: str = "root") -> list[str]:
    """The full command that runs `argv` inside as `user`, in its home folder, with a login's environment."""
    home = "/root" if user == "root" else f"/home/{user}"
    terminal = [f"{name}={os.environ[name]}" for name in _TERMINAL if name in os.environ]
    if not any(setting.startswith(("LANG=", "LC_ALL=")) for setting in terminal):
        terminal.append("LANG=C.UTF-8")
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--"] if user != "root" else []
    login = [f"HOME={home}", f"USER={user}", f"LOGNAME={user}", "SHELL=/bin/bash", f"PATH={PATH}"]
    return [*namespaces(leader), *become, "env", "--ignore-environment", f"--chdir={home}", *login, *terminal, *argv]


def login_argv(leader: int, command: str, user: str = DEPLOY) -> list[str]:
    """The full command that logs `user` in and runs a shell command, on the terminal it is started from.

    The terminal is handed through, not copied: size changes, signals and colours are those of the real one. `su` opens
    a session with the host's logind, so that what is started belongs to a login session as after SSH.
    """
    names = [name for name in _TERMINAL if name in os.environ and name != "TERM"]
    settings = [f"{name}={os.environ[name]}" for name in ("TERM", *names) if name in os.environ]
    if not any(name in ("LANG", "LC_ALL") for name in names):
        names.append("LANG")
        settings.append("LANG=C.UTF-8")
    # not --command: that makes a session of its own, without the terminal
    su = ["su", f"--whitelist-environment={','.join(names)}", f"--session-command={command}", "--login", user]
    return [*namespaces(leader), "env", "--ignore-environment", f"PATH={PATH}", *settings, *su]
