"""Whether one more worker was worth it: throughput and errors before and after its start. Pure."""

from __future__ import annotations

from typing import Literal

from console.fleet.model import Value
from console.text import grouped

_GAIN = 0.2  # of what one worker did on average: so much must come of one more
_ENOUGH = 4  # jobs ended in a window; of fewer nothing is concluded
_WORSE = 0.05  # the share of failures may grow by this much
_WORSE_JOBS = 2  # and they must be more than so many


class Window(Value, frozen=True, kw_only=True):
    """What ended within some seconds, and what waits at their end."""

    seconds: float
    done: int = 0
    failed: int = 0
    waiting: int | None = None
    capped: bool = False  # more ended than were counted

    @property
    def per_minute(self) -> float:
        return 60 * self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def failures(self) -> float:
        """The share of those that ended."""
        ended = self.done + self.failed
        return self.failed / ended if ended else 0.0


class Worth(Value, frozen=True, kw_only=True):
    """`verdict`: better: go on; worse, no better, enough: stop there; unsure: look for longer, or go on."""

    verdict: Literal["better", "no better", "worse", "enough", "unsure"]
    text: str


def worth(before: Window, after: Window, workers: int) -> Worth:
    """The window before and the one after the start of one more, with which there are `workers`."""
    told = f"{after.per_minute:.0f} jobs a minute with {workers}, {before.per_minute:.0f} before"
    if after.failures > before.failures + _WORSE and after.failed > before.failed + _WORSE_JOBS:
        text = f"{after.failures:.0%} of the jobs fail, {before.failures:.0%} before; {told}"
        return Worth(verdict="worse", text=text)
    if after.waiting == 0:
        return Worth(verdict="enough", text=f"no job waits any more; {told}")
    if before.capped or after.capped or before.done + after.done < _ENOUGH:
        return Worth(verdict="unsure", text=f"too little or too much ended to tell: {told}")
    gain = after.per_minute - before.per_minute
    least = _GAIN * before.per_minute / max(1, workers - 1)
    waits = f", {grouped(after.waiting)} wait" if after.waiting is not None else ""
    if gain < least:
        return Worth(verdict="no better", text=f"one more made it no faster: {told}{waits}")
    return Worth(verdict="better", text=f"{told}{waits}")
