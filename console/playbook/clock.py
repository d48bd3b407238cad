"""Two clocks: one that a person reads, and one that no setting of a clock moves."""

from __future__ import annotations

import time
from pathlib import Path

from console.fleet.model import Value


class Moment(Value, frozen=True, kw_only=True):
    """A moment by both clocks. `boot` counts from the boot with that id; sleep counts too (CLOCK_BOOTTIME)."""

    wall: float  # epoch seconds
    boot: float
    boot_id: str = ""

    def after(self, seconds: float) -> Moment:
        return Moment(wall=self.wall + seconds, boot=self.boot + seconds, boot_id=self.boot_id)


class Clock:
    """Of the machine that worktop runs on."""

    def __init__(self) -> None:
        self._boot_id = ""

    def now(self) -> Moment:
        return Moment(wall=time.time(), boot=time.clock_gettime(time.CLOCK_BOOTTIME), boot_id=self._boot())

    def until(self, moment: Moment) -> float:
        """Seconds, at least 0. After a reboot the clock on the wall must do."""
        now = self.now()
        same = moment.boot_id == now.boot_id
        return max(0.0, moment.boot - now.boot if same else moment.wall - now.wall)

    def _boot(self) -> str:
        if not self._boot_id:
            self._boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return self._boot_id
