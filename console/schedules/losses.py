"""What a unit does not take over from a line, said in a sentence each. Pure."""

from __future__ import annotations

from console.schedules import marks
from console.schedules.carriers import options_of
from console.schedules.carrying import Carrier, name_of
from console.schedules.starts import Start
from console.text import mask_arguments

# They set up surroundings that are known only when they run, or that a unit has settings of its own for.
_SETS_UP = {
    "envdir": "the environment that it reads from that folder: EnvironmentFile=, readable by root alone",
    "envuidgid": "the variables UID and GID",
    "chroot": "another root: RootDirectory=",
    "firejail": "its sandbox: ProtectSystem=, PrivateTmp= and the like",
    "numactl": "the binding to nodes: NUMAPolicy=, NUMAMask=, CPUAffinity=",
    "cgexec": "the control group: Slice=",
    "proxychains4": "the proxy",
    "torsocks": "the proxy",
    "xvfb-run": "a screen: run its words before the command in ExecStart=",
    "dbus-run-session": "a bus: run it before the command in ExecStart=",
    "ssh-agent": "an agent: run it before the command in ExecStart=",
}


def losses(start: Start, argv: tuple[str, ...]) -> list[str]:
    """One sentence for each wrapper that is taken off and sets something up, and for a secret in the command line."""
    found = [
        f"the unit does without `{' '.join(map(marks.shown, carrier.words))}`, which gives it {what}"
        for carrier in start.carriers
        if (what := _set_up(carrier))
    ]
    plain = tuple(map(marks.concrete, argv))
    if mask_arguments(plain) != plain:
        found.append(
            "everybody on the host can read the password or token of its command line, in ps and in the unit's file: "
            "let the program read it from a file instead"
        )
    return found


def _set_up(carrier: Carrier) -> str:
    name = name_of(carrier.words)
    if name != "chpst":
        return _SETS_UP.get(name, "")
    options = options_of(carrier)
    told = ((_SETS_UP["envdir"], "-e"), (_SETS_UP["chroot"], "-/"))
    return " and ".join(what for what, option in told if option in options)
