"""Limits around a command (nice, ionice, ulimit, umask, timeout, taskset) as settings of a service. Pure.

systemd.exec(5), systemd.service(5), bash(1) for the units of ulimit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from console.schedules.model import Limit

_CLASSES = {"1": "realtime", "2": "best-effort", "3": "idle"}
_ULIMITS = {  # setting, bytes or whatever one of its numbers stands for
    "c": ("LimitCORE", 1024), "d": ("LimitDATA", 1024), "f": ("LimitFSIZE", 1024), "l": ("LimitMEMLOCK", 1024),
    "n": ("LimitNOFILE", 1), "s": ("LimitSTACK", 1024), "t": ("LimitCPU", 1), "u": ("LimitNPROC", 1),
    "v": ("LimitAS", 1024),
}  # fmt: skip


def limit_settings(limits: Iterable[Limit], time_limit: str) -> tuple[tuple[str, str], ...]:
    """The lines of [Service] that say the same; what systemd has no setting for is left out.

    `time_limit`: the setting for timeout, which differs for what ends by itself (TimeoutStartSec) and what goes on
    (RuntimeMaxSec).
    """
    found: dict[str, str] = {}
    for limit in limits:
        tool, words = limit.tool, limit.text.split()[1:]
        if tool == "nice":
            found |= _nice(words)
        elif tool == "ionice":
            found |= _ionice(words)
        elif tool == "ulimit":
            found |= _ulimit(words)
        elif tool == "umask" and words and re.fullmatch(r"0*[0-7]{1,3}", words[-1]):
            found["UMask"] = words[-1].lstrip("0").rjust(4, "0")
        elif tool == "timeout" and words and (length := re.fullmatch(r"(\d+)([smhd]?)", words[-1])):
            found[time_limit] = f"{length[1]}{length[2] or 's'}"
        elif tool == "taskset" and "-c" in words and re.fullmatch(r"[\d,-]+", words[-1]):
            found["CPUAffinity"] = words[-1]
    return tuple(found.items())


def _nice(words: list[str]) -> dict[str, str]:
    number = re.fullmatch(r"(?:-n ?|--adjustment[= ]|-)?(-?\d+)", " ".join(words))
    return {"Nice": number[1] if number else "10"} if number or not words else {}


def _ionice(words: list[str]) -> dict[str, str]:
    text = " ".join(words)
    scheduling = re.search(r"(?:-\w*c ?|--class[= ])(\S+)", text)
    priority = re.search(r"(?:-n ?|--classdata[= ])([0-7])\b", text)
    named = _CLASSES.get(scheduling[1], scheduling[1]) if scheduling else "best-effort"
    found = {"IOSchedulingClass": named} if named in _CLASSES.values() else {}
    return found | ({"IOSchedulingPriority": priority[1]} if priority and named != "idle" else {})


def _ulimit(words: list[str]) -> dict[str, str]:
    """ulimit -n 4096, -Sn 4096, -n unlimited; several options in one."""
    found: dict[str, str] = {}
    for option, value in re.findall(r"-([A-Za-z]+) ?(\d+|unlimited)", " ".join(words)):
        name, unit = _ULIMITS.get(option[-1], ("", 1))
        if name:
            found[name] = "infinity" if value == "unlimited" else str(int(value) * unit)
    return found
