"""Who owns a process: the mechanism that started it and would start it again, with the evidence as sentences.

Pure. The order is the one that held on a real systemd 252 with Debian's cron:

1. a live supervisor among the ancestors overrides everything: it will restart what is killed;
2. the cgroup decides: container, user unit, cron's unit, another system unit, login session;
3. the login uid (kept by the kernel, also for orphans) tells whose crontab or login it was;
4. the audit session and the process group are one generation of a launcher;
5. the environment is only the initial one and is inherited: a hint in the evidence, never a proof.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from console.fleet.model import CronLine, Owner, OwnerKind, Value

CRON_UNITS = frozenset({"cron.service", "crond.service", "cronie.service", "anacron.service", "fcron.service"})
CRON_NAMES = frozenset({"cron", "CRON", "crond", "CROND", "fcron", "anacron", "busybox-crond"})
_CRON_SERVICES = frozenset({"cron", "crond", "atd", "fcron", "cronie", "anacron"})  # PAM services in a logind session
_LOGIN_NAMES = frozenset({"sshd", "sshd-session", "login", "gdm-session-wor", "lightdm", "sddm-helper"})
_LOGIN_MARKS = frozenset({"SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT", "DISPLAY", "WAYLAND_DISPLAY"})
_HINTS = {
    "SUPERVISOR_ENABLED": "supervisord",
    "PM2_HOME": "pm2",
    "FOREVER_ROOT": "forever",
    "STY": "screen",
    "TMUX": "tmux",
    "INVOCATION_ID": "a systemd unit",
    "MANAGERPID": "a systemd user manager",
    "KUBERNETES_SERVICE_HOST": "Kubernetes",
}
_CONTAINER = re.compile(
    r"(?:^|/)(?:docker[-/]|libpod-|crio-|cri-containerd-|kubepods|lxc(?:\.payload)?[./]|buildkit|machine\.slice/)"
)


class AncestorFacts(Value, frozen=True, kw_only=True):
    """One living ancestor: parent first, up to pid 1."""

    pid: int
    name: str = ""  # /proc/PID/comm
    command: tuple[str, ...] = ()


class ProcessFacts(Value, frozen=True, kw_only=True):
    """What is known of a process whose owner is asked for."""

    pid: int
    ppid: int = 0
    uid: int = -1
    user: str = ""
    role: str = ""
    role_template: str = ""  # template unit of the role
    cgroup: str | None = None  # None: could not be read
    ancestors: tuple[AncestorFacts, ...] = ()
    session: int | None = None  # audit session id
    login_uid: int | None = None
    group: int = 0  # process group
    terminal: bool = False
    marks: tuple[str, ...] = ()
    session_service: str = ""  # logind: the PAM service that opened the session of its cgroup ("sshd", "cron", "su-l")


def units_in(cgroup: str) -> list[str]:
    """The units a cgroup path goes through, outermost first; slices are left out. Escapes stay as systemd has them."""
    parts = [part.removeprefix("_") if part.startswith("_") else part for part in cgroup.split("/")]
    return [part for part in parts if part.endswith((".service", ".scope", ".socket", ".mount"))]


def unit_of(cgroup: str) -> str:
    """The unit a cgroup belongs to: the innermost of a user manager, else the first of the system manager.

    A service with Delegate= may have groups below its own, and those may look like units.
    """
    units = units_in(cgroup)
    if not units:
        return ""
    if units[0].startswith("user@") and len(units) > 1:
        return units[1]
    return units[0]


def owner_of(
    process: ProcessFacts, crontab: tuple[CronLine, ...] = (), accounts: Mapping[int, str] | None = None
) -> Owner:
    """The owner of one process; never raises, and there is always at least one sentence of evidence.

    `crontab`: the lines that are known, with the roles each starts. `accounts`: names by uid.
    """
    accounts = accounts or {}
    evidence: list[str] = []
    supervisor = _supervisor(process)
    if supervisor is not None:
        kind, name, sentence = supervisor
        evidence.append(sentence)
        evidence.append(_cgroup_sentence(process))
        return Owner(kind=kind, name=name, evidence=(*evidence, *_hints(process, kind)))
    if process.cgroup is None:
        evidence.append("its cgroup could not be read")
        return _by_kernel_marks(process, crontab, accounts, evidence)
    cgroup = process.cgroup
    if _CONTAINER.search(cgroup):
        found = re.search(r"([0-9a-f]{12})[0-9a-f]{20,}", cgroup)
        name = found[1] if found else cgroup.rstrip("/").rpartition("/")[2]
        return Owner(
            kind="container",
            name=name,
            evidence=(f"its cgroup {cgroup} is a container's", *_hints(process, "container")),
        )
    unit = unit_of(cgroup)
    units = units_in(cgroup)
    if units and units[0].startswith("user@") and unit.endswith(".service") and len(units) > 1:
        return _user_unit(process, unit, units[0], accounts)
    if unit in CRON_UNITS:
        evidence.append(
            f"its cgroup belongs to {unit}: whatever cron started stays there, also after its shell has gone"
        )
        return _cron(process, crontab, accounts, evidence)
    if unit.startswith("session-") and unit.endswith(".scope"):
        return _session(process, unit, crontab, accounts)
    if unit and not unit.startswith("user@") and unit != "init.scope":
        return _system_unit(process, unit)
    evidence.append(f"its cgroup {cgroup or '/'} belongs to no unit that starts workers")
    return _by_kernel_marks(process, crontab, accounts, evidence)


# --- by the ancestors -----------------------------------------------------------------------------------------------


def _supervisor(process: ProcessFacts) -> tuple[OwnerKind, str, str] | None:
    """The nearest living ancestor that restarts what dies, with the sentence that says so."""
    for ancestor in process.ancestors:
        if ancestor.pid == process.pid:
            continue
        name = ancestor.name
        text = " ".join(ancestor.command)
        program = ancestor.command[0].rpartition("/")[2] if ancestor.command else ""
        second = ancestor.command[1].rpartition("/")[2] if len(ancestor.command) > 1 else ""
        at = f"pid {ancestor.pid}"
        if name == "supervisord" or program == "supervisord" or second == "supervisord":
            return "supervisord", "", f"supervisord ({at}) is its ancestor and restarts what dies"
        if text.startswith("PM2 ") and "God Daemon" in text:
            return "pm2", "", f"pm2's God Daemon ({at}) is its ancestor and restarts what dies"
        if re.search(r"forever(?:-monitor)?/bin/monitor", text):
            return "forever", "", f"forever's monitor ({at}) is its ancestor and restarts what dies"
        if name in ("runsv", "supervise", "s6-supervise"):
            service = ancestor.command[1] if len(ancestor.command) > 1 else ""
            return (
                "runit",
                service,
                f"{name} {service} ({at}) is its ancestor and restarts what dies".replace("  ", " "),
            )
        if name.startswith("tmux") or program == "tmux" or name.lower() == "screen" or program.lower() == "screen":
            which = "tmux" if "tmux" in (name[:4], program) else "screen"
            return "screen", which, f"it runs in a window of {which} ({at}), which outlives the login that started it"
        if name.startswith(("containerd-shim", "conmon")):
            return "container", "", f"{name} ({at}) is its ancestor"
    return None


def _cron_ancestor(process: ProcessFacts) -> AncestorFacts | None:
    return next((ancestor for ancestor in process.ancestors if ancestor.name in CRON_NAMES), None)


def _by_kernel_marks(
    process: ProcessFacts, crontab: tuple[CronLine, ...], accounts: Mapping[int, str], evidence: list[str]
) -> Owner:
    """No cgroup helps: a host without systemd, or a process outside every unit."""
    cron = _cron_ancestor(process)
    if cron is not None:
        return _cron(process, crontab, accounts, evidence)
    login = next((ancestor for ancestor in process.ancestors if ancestor.name in _LOGIN_NAMES), None)
    if login is not None:
        evidence.append(f"{login.name} (pid {login.pid}) is its ancestor: a login started it")
        return Owner(kind="session", name=process.user, evidence=(*evidence, *_hints(process, "session")))
    if process.terminal and process.ppid != 1:
        evidence.append("it has a terminal: a login session started it")
        return Owner(kind="session", name=process.user, evidence=(*evidence, *_hints(process, "session")))
    if process.login_uid is not None:
        evidence.append(f"its login uid is {_account(process.login_uid, accounts)}: a login or a crontab started it")
    if process.ppid == 1:
        evidence.append("its parent is pid 1: whoever started it is gone")
    if not evidence:
        evidence.append("nothing that is known of it tells who started it")
    return Owner(kind="unknown", evidence=(*evidence, *_hints(process, "unknown")))


# --- by the cgroup --------------------------------------------------------------------------------------------------


def _cgroup_sentence(process: ProcessFacts) -> str:
    if process.cgroup is None:
        return "its cgroup could not be read"
    return f"its cgroup is {process.cgroup or '/'}"


def _system_unit(process: ProcessFacts, unit: str) -> Owner:
    evidence = [f"its cgroup belongs to {unit}"]
    if process.role_template and _template(unit) != process.role_template:
        evidence.append(f"that is not a unit of the role ({process.role_template})")
    if unit.endswith(".scope"):
        evidence.append("a scope starts nothing again when it dies")
    cron = _cron_ancestor(process)
    if cron is not None:
        evidence.append(f"{cron.name} (pid {cron.pid}) is its ancestor all the same")
    return Owner(kind="systemd", name=unit, evidence=(*evidence, *_hints(process, "systemd")))


def _user_unit(process: ProcessFacts, unit: str, manager: str, accounts: Mapping[int, str]) -> Owner:
    uid = manager.removeprefix("user@").removesuffix(".service")
    who = accounts.get(int(uid), uid) if uid.isdecimal() and len(uid) < 11 else uid
    evidence = (f"its cgroup belongs to {unit} of the user manager of {who}", *_hints(process, "systemd-user"))
    return Owner(kind="systemd-user", name=unit, detail=f"user manager of {who}", evidence=evidence)


def _session(process: ProcessFacts, unit: str, crontab: tuple[CronLine, ...], accounts: Mapping[int, str]) -> Owner:
    number = unit.removeprefix("session-").removesuffix(".scope")
    evidence = [f"its cgroup is the login session {number}"]
    service = process.session_service
    if service in _CRON_SERVICES:
        evidence.append(f"that session was opened by {service}")
        return _cron(process, crontab, accounts, evidence)
    if _cron_ancestor(process) is not None:
        return _cron(process, crontab, accounts, evidence)
    from_login = sorted(_LOGIN_MARKS.intersection(process.marks))
    switched = process.login_uid is not None and process.login_uid != process.uid
    su = service.startswith(("su", "runuser")) or "XDG_SESSION_CLASS" in process.marks
    if switched and su and not from_login and not process.terminal and process.login_uid is not None:
        starter = accounts.get(process.login_uid, str(process.login_uid))
        if service:
            evidence.append(f"that session was opened by {service}, without a terminal")
        lines = _lines(process, crontab, starter)
        if lines:
            return _cron(process, crontab, accounts, evidence)
    if process.login_uid is not None:
        evidence.append(f"its login uid is {_account(process.login_uid, accounts)}")
    if from_login:
        evidence.append(f"it has the environment of a login ({', '.join(from_login)})")
    if process.ppid == 1:
        evidence.append("its parent is pid 1: the shell that started it has gone (nohup, & or disown)")
    evidence.append("nothing starts it again when it dies")
    return Owner(kind="session", name=process.user, detail=f"session {number}", evidence=tuple(evidence))


def _cron(
    process: ProcessFacts, crontab: tuple[CronLine, ...], accounts: Mapping[int, str], evidence: list[str]
) -> Owner:
    """Cron started it: whose crontab, and which line when one is known to start this role."""
    cron = _cron_ancestor(process)
    if cron is not None:
        evidence.append(f"{cron.name} (pid {cron.pid}) is its ancestor")
    elif process.ppid == 1:
        evidence.append("its parent is pid 1: the launcher's shell has gone")
    if process.login_uid is not None:
        whose = accounts.get(process.login_uid, str(process.login_uid))
        evidence.append(
            f"its login uid is {_account(process.login_uid, accounts)}: cron set it when it ran the crontab of {whose}"
        )
    else:
        whose = process.user
        evidence.append("it has no login uid; whose crontab is taken from the account it runs as")
    if process.session is not None:
        evidence.append(
            f"its audit session is {process.session}: one number for everything one run of the line started"
        )
    lines = _lines(process, crontab, whose)
    if len(lines) == 1:
        detail = _place(lines[0])
        evidence.append(f"{detail} starts this role")
    elif lines:
        detail = f"{_place(lines[0])} or {len(lines) - 1} more"
        evidence.append(
            f"{len(lines)} lines of {whose} start this role: {', '.join(_place(line) for line in lines[:4])}"
        )
    else:
        detail = f"crontab of {whose}" if whose else ""
        evidence.append("no line that was read is known to start this role" if process.role else "it matches no role")
    return Owner(kind="cron", name=whose, detail=detail, evidence=(*evidence, *_hints(process, "cron")))


def _lines(process: ProcessFacts, crontab: tuple[CronLine, ...], whose: str) -> list[CronLine]:
    return [line for line in crontab if process.role and process.role in line.roles and line.owner == whose]


def _place(line: CronLine) -> str:
    """ "crontab of deploy, line 4", or the file's name for /etc/crontab and /etc/cron.d."""
    spool = line.source.startswith("/var/spool/cron/") or not line.source.startswith("/")
    return f"{f'crontab of {line.owner}' if spool else line.source}, line {line.line}"


def _account(uid: int, accounts: Mapping[int, str]) -> str:
    return f"{accounts[uid]} ({uid})" if uid in accounts else str(uid)


def _template(unit: str) -> str:
    stem, _, suffix = unit.rpartition(".")
    prefix, at, instance = stem.partition("@")
    return f"{prefix}@.{suffix}" if at and instance else ""


def _hints(process: ProcessFacts, kind: OwnerKind) -> tuple[str, ...]:
    """What the environment suggests, where that is something else than what was decided."""
    expected: dict[OwnerKind, frozenset[str]] = {
        "systemd": frozenset({"INVOCATION_ID", "MANAGERPID"}),
        "systemd-user": frozenset({"INVOCATION_ID", "MANAGERPID"}),
        "cron": frozenset({"INVOCATION_ID"}),  # cron itself is a unit and may hand its own on
        "session": frozenset({"INVOCATION_ID", "MANAGERPID"}),
    }
    passed = expected.get(kind, frozenset())
    marks = [mark for mark in _HINTS if mark in process.marks and mark not in passed]
    return tuple(f"its environment has {mark}, inherited from {_HINTS[mark]}: a hint, no proof" for mark in marks[:3])
