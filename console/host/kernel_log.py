"""Kills at a memory limit, from the kernel's own log: the proof that cgroup v1 and a dead unit leave nowhere else.

On cgroup v1 systemd says only Result=signal, and the group with its peak is gone with the unit. The kernel names the
group whose limit was hit:

    [ 2127.066] oom-kill:constraint=CONSTRAINT_MEMCG,…,oom_memcg=/system.slice/…/worker@3.service,…,pid=16728,uid=1500
    [ 2127.067] Memory cgroup out of memory: Killed process 16728 (worker) total-vm:280612kB, anon-rss:97752kB, …
"""

from __future__ import annotations

import ctypes
import re

_READ_ALL, _SIZE = 3, 10  # syslog(2)
_LONGEST = 4 * 1024 * 1024
_SLACK = 3.0  # seconds between the kernel's line and systemd's notice of the exit

_OOM = re.compile(r"\[ *(\d+\.\d+)\] oom-kill:constraint=CONSTRAINT_MEMCG,.*?oom_memcg=(.*?),task_memcg=.*?pid=(\d+)")


def read_all() -> str | None:
    """The kernel's ring buffer; None: not permitted (kernel.dmesg_restrict) or not there."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        size = libc.klogctl(_SIZE, None, 0)
        if not 0 < size <= _LONGEST:
            return None
        buffer = ctypes.create_string_buffer(size)
        length = libc.klogctl(_READ_ALL, buffer, size)
    except (OSError, AttributeError):
        return None
    return buffer.raw[:length].decode("utf-8", "replace") if length > 0 else None


def memory_kill(text: str, unit: str, exited: float, booted: float) -> str:
    """What the kernel said when it killed the unit's process at the unit's own memory limit; "" when it did not.

    `exited` and `booted` are epoch seconds.
    """
    lines = text.split("\n")
    for number in range(len(lines) - 1, -1, -1):
        found = _OOM.search(lines[number])
        if not found or found[2].rstrip("/").rpartition("/")[2] != unit:
            continue
        if abs(booted + float(found[1]) - exited) > _SLACK:
            continue
        about = next(
            (line for line in lines[number : number + 4] if f"Killed process {found[3]} " in line), lines[number]
        )
        return "kernel: " + about.partition("] ")[2]
    return ""
