"""sd_notify without libsystemd: one datagram to the socket that systemd names in the environment."""

from __future__ import annotations

import os
import socket


class Notifier:
    """Speaks to the service manager; says nothing when there is none (sd_notify(3))."""

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        env = dict(os.environ) if environment is None else environment
        address = env.get("NOTIFY_SOCKET", "")
        # a leading @ stands for the NUL byte of an abstract socket
        self._address = "\0" + address[1:] if address.startswith("@") else address
        microseconds = env.get("WATCHDOG_USEC", "")
        for_us = env.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        self.watchdog: float | None = int(microseconds) / 1e6 if microseconds.isdigit() and for_us else None  # seconds

    def send(self, *lines: str) -> bool:
        """Send `NAME=value` lines; False when nobody listens. A manager that is away never stops the worker."""
        if not self._address:
            return False
        message = "\n".join(line.replace("\n", " ") for line in lines).encode(errors="replace")
        try:
            with socket.socket(
                socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
            ) as channel:
                channel.sendto(message, self._address)
        except OSError:
            return False
        return True
