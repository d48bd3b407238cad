"""How a process ended, in words: the exit codes of systemd.exec(5) and the usual ones of programs; signals by name.

The codes from 200 on are systemd's own: it could not set up the process, and the program was never run.
"""

from __future__ import annotations

import signal
from typing import NamedTuple

from console.fleet.model import Unit


class ExitWord(NamedTuple):
    name: str
    what: str  # a clause: what has happened
    mend: str  # an imperative clause


# systemd.exec(5), "Process Exit Codes"
BY_SYSTEMD: dict[int, ExitWord] = {
    200: ExitWord("CHDIR", "its WorkingDirectory= could not be entered", "create that folder, or correct the path"),
    201: ExitWord("NICE", "its Nice= could not be set", "correct Nice="),
    202: ExitWord(
        "FDS", "its file descriptors could not be passed on", "look at its sockets and FileDescriptorStoreMax="
    ),
    203: ExitWord(
        "EXEC",
        "its program could not be executed: it is not there, not executable, or its interpreter is missing",
        "correct ExecStart=, or the file and its rights",
    ),
    204: ExitWord("MEMORY", "there was no memory to start it", "free memory first"),
    205: ExitWord("LIMITS", "its resource limits could not be set", "correct the Limit…= settings"),
    206: ExitWord("OOM_ADJUST", "its OOMScoreAdjust= could not be set", "correct OOMScoreAdjust="),
    207: ExitWord("SIGNAL_MASK", "its signal mask could not be set", "look at the journal"),
    208: ExitWord("STDIN", "its standard input could not be set up", "correct StandardInput="),
    209: ExitWord(
        "STDOUT", "its standard output could not be set up", "correct StandardOutput=, or the folder of its log"
    ),
    210: ExitWord("CHROOT", "its RootDirectory= could not be entered", "correct RootDirectory="),
    211: ExitWord("IOPRIO", "its I/O priority could not be set", "correct IOScheduling…="),
    212: ExitWord("TIMERSLACK", "its TimerSlackNSec= could not be set", "correct TimerSlackNSec="),
    213: ExitWord("SECUREBITS", "its SecureBits= could not be set", "correct SecureBits="),
    214: ExitWord("SETSCHEDULER", "its CPU scheduling could not be set", "correct CPUScheduling…="),
    215: ExitWord("CPUAFFINITY", "its CPUAffinity= could not be set", "correct CPUAffinity="),
    216: ExitWord("GROUP", "its Group= does not exist or could not be taken", "create the group, or correct Group="),
    217: ExitWord("USER", "its User= does not exist or could not be taken", "create the account, or correct User="),
    218: ExitWord("CAPABILITIES", "its capabilities could not be set", "correct CapabilityBoundingSet= and its like"),
    219: ExitWord("CGROUP", "its control group could not be set up", "look at the journal and at the host's cgroups"),
    220: ExitWord("SETSID", "no session of its own could be made for it", "look at the journal"),
    221: ExitWord("CONFIRM", "its start was refused at the console", "look at systemd.confirm_spawn="),
    222: ExitWord("STDERR", "its standard error could not be set up", "correct StandardError="),
    224: ExitWord("PAM", "its PAM session could not be opened", "correct PAMName=, or the PAM configuration"),
    225: ExitWord("NETWORK", "its network namespace could not be set up", "correct PrivateNetwork= and its like"),
    226: ExitWord(
        "NAMESPACE",
        "its mount namespace could not be set up: a path of ReadWritePaths=, BindPaths= or their like is not there",
        "create that path, or correct the setting; a leading - lets it be missing",
    ),
    227: ExitWord("NO_NEW_PRIVILEGES", "NoNewPrivileges= could not be set", "correct NoNewPrivileges="),
    228: ExitWord("SECCOMP", "its system call filter could not be set", "correct SystemCallFilter="),
    229: ExitWord("SELINUX_CONTEXT", "its SELinux context could not be set", "correct SELinuxContext="),
    230: ExitWord("PERSONALITY", "its Personality= could not be set", "correct Personality="),
    231: ExitWord("APPARMOR", "its AppArmor profile could not be set", "correct AppArmorProfile="),
    232: ExitWord(
        "ADDRESS_FAMILIES", "its address families could not be restricted", "correct RestrictAddressFamilies="
    ),
    233: ExitWord("RUNTIME_DIRECTORY", "its RuntimeDirectory= could not be made", "look at /run and RuntimeDirectory="),
    235: ExitWord("CHOWN", "the owner of a socket could not be set", "correct SocketUser= and SocketGroup="),
    236: ExitWord("SMACK_PROCESS_LABEL", "its SMACK label could not be set", "correct SmackProcessLabel="),
    237: ExitWord("KEYRING", "its kernel keyring could not be set up", "look at KeyringMode="),
    238: ExitWord("STATE_DIRECTORY", "its StateDirectory= could not be made", "look at /var/lib and StateDirectory="),
    239: ExitWord("CACHE_DIRECTORY", "its CacheDirectory= could not be made", "look at /var/cache and CacheDirectory="),
    240: ExitWord("LOGS_DIRECTORY", "its LogsDirectory= could not be made", "look at /var/log and LogsDirectory="),
    241: ExitWord(
        "CONFIGURATION_DIRECTORY", "its ConfigurationDirectory= could not be made", "look at ConfigurationDirectory="
    ),
    242: ExitWord("NUMA_POLICY", "its NUMA policy could not be set", "correct NUMAPolicy="),
    243: ExitWord("CREDENTIALS", "its credentials could not be loaded", "look at LoadCredential= and SetCredential="),
    245: ExitWord("BPF", "its BPF restriction could not be set", "correct RestrictFileSystems= and its like"),
}

# LSB 1-7 (in systemd's words), sysexits.h 64-78, and those of shells
BY_PROGRAMS: dict[int, str] = {
    2: "wrong arguments (INVALIDARGUMENT), or what the program means by 2",
    4: "not permitted (NOPERMISSION), or what the program means by 4",
    5: "not installed (NOTINSTALLED), or what the program means by 5",
    6: "not configured (NOTCONFIGURED), or what the program means by 6",
    64: "wrong usage (EX_USAGE)",
    65: "wrong input data (EX_DATAERR)",
    66: "an input cannot be opened (EX_NOINPUT)",
    67: "an address is not known (EX_NOUSER)",
    68: "a host is not known (EX_NOHOST)",
    69: "a service it needs is not available (EX_UNAVAILABLE)",
    70: "a fault in the program (EX_SOFTWARE)",
    71: "an error of the operating system (EX_OSERR)",
    72: "a system file is missing (EX_OSFILE)",
    73: "an output cannot be made (EX_CANTCREAT)",
    74: "an input or output error (EX_IOERR)",
    75: "a failure that may pass, try again (EX_TEMPFAIL)",
    76: "a protocol error (EX_PROTOCOL)",
    77: "permission denied (EX_NOPERM)",
    78: "wrong configuration (EX_CONFIG)",
    126: "a shell found the program, but could not execute it",
    127: "a shell did not find the program",
}

_SIGNALS: dict[str, str] = {
    "SIGKILL": "nothing can catch it: somebody sent it, or the kernel was out of memory",
    "SIGSEGV": "it touched memory that is not its own: a fault in the program or in a library",
    "SIGABRT": "it gave itself up (an assertion, or a watchdog)",
    "SIGBUS": "a file it had mapped was cut short, or the disk is full",
    "SIGILL": "an instruction this processor does not know",
    "SIGFPE": "a division by zero or the like",
    "SIGTERM": "it was asked to end and did not handle that",
    "SIGINT": "it was interrupted as from a keyboard",
    "SIGHUP": "its terminal or session went away",
    "SIGPIPE": "it wrote to something that was closed",
    "SIGXCPU": "it reached its limit of CPU time (LimitCPU=)",
    "SIGXFSZ": "it reached its limit of file size (LimitFSIZE=)",
    "SIGSYS": "it made a system call that SystemCallFilter= forbids",
}

# Result= of systemd.service(5): one clause each
RESULTS: dict[str, str] = {
    "success": "no failure is on record",
    "protocol": "it did not keep to the protocol of its Type=",
    "timeout": "a start, stop or run timed out and systemd ended it",
    "exit-code": "its process ended with an exit status that counts as failure",
    "signal": "its process was killed by a signal",
    "core-dump": "its process was killed by a signal and dumped core",
    "watchdog": "its watchdog heard nothing in time and systemd killed it",
    "start-limit-hit": "its start limit is reached: systemd does not start it any more",
    "oom-kill": "the kernel killed a process of it because its memory limit, or all memory, was used up",
    "resources": "systemd lacked a resource to start it: a file of it, memory, or another unit's state",
    "exec-condition": "its ExecCondition= said no",
}


def signal_name(number: int) -> str:
    """ "SIGKILL"; "signal 99" for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return (
            f"SIGRTMIN+{number - signal.SIGRTMIN}"
            if signal.SIGRTMIN <= number <= signal.SIGRTMAX
            else f"signal {number}"
        )


def signal_words(number: int) -> str:
    """ "SIGSEGV: it touched memory that is not its own…"."""
    name = signal_name(number)
    words = _SIGNALS.get(name, "")
    return f"{name}: {words}" if words else name


def status_words(status: int) -> str:
    """ "203 EXEC: its program could not be executed…", "1", "143: 128 + SIGTERM"."""
    if status in BY_SYSTEMD:
        word = BY_SYSTEMD[status]
        return f"{status} {word.name}: {word.what}"
    if status in BY_PROGRAMS:
        return f"{status}: {BY_PROGRAMS[status]}"
    if 128 < status < 128 + 65:
        return f"{status}: 128 + {signal_words(status - 128)}"
    return str(status)


def exec_failure(unit: Unit) -> ExitWord | None:
    """What systemd could not set up, when that is how the main process ended last."""
    return BY_SYSTEMD.get(unit.exit_status) if unit.exit_code == "exited" else None


def ended_words(unit: Unit) -> str:
    """How the main process ended last, a clause; "" when it never did."""
    if unit.exit_code == "exited":
        return f"exit status {status_words(unit.exit_status)}"
    if unit.exit_code in ("killed", "dumped"):
        core = ", with a core dump" if unit.exit_code == "dumped" else ""
        return f"killed by {signal_words(unit.exit_status)}{core}"
    return ""
