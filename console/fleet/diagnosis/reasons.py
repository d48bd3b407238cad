"""Why the last runs of a unit ended: the shortest reason that their journals have in common."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from console.fleet.diagnosis.model import Looked, Run

_LONGEST = 2000  # characters of a line that are looked at
_NUMBERS = re.compile(r"0x[0-9a-fA-F]{1,16}|\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\d+")  # what differs from run to run
_BLANKS = re.compile(r"\s+")
_TELLS = re.compile(
    r"error|exception|fatal|panic|fail|denied|refused|cannot|can't|could not|unable|not found|no such|invalid|missing"
    r"|killed|tim(?:ed )?out|unknown|segfault|exhausted|too many|out of",
    re.IGNORECASE,
)
# lines of a traceback that tell where, not why
_FRAME = re.compile(
    r"\s|File \"|at [\w$.<]+\(|Traceback|During handling|The above exception|Caused by:\s*$|goroutine \d|\^+$"
)
_STOPPING = re.compile(r"Stopping |Stopped target ")
_REFUSED = "Start request repeated too quickly"


class Reason(NamedTuple):
    """A line of the journal, as the newest of the runs that have it wrote it."""

    text: str
    runs: int  # that have it
    of: int  # that ended by themselves and wrote anything


def common_reason(runs: Sequence[Run]) -> Reason | None:
    """The line that most of the failed runs end with, numbers aside; None when none wrote anything.

    A line that tells of an error goes before one that does not; then the one nearer to the end, then the shorter one.
    """
    failed = [run for run in runs if run.ended is not None and not was_asked_to_stop(run) and _own(run)]
    if not failed:
        return None
    seen: dict[str, list[tuple[int, int, str]]] = {}  # by what is the same: run, distance from its end, the line
    for number, run in enumerate(failed):
        for distance, line in enumerate(reversed(_own(run))):
            places = seen.setdefault(_same(line), [])
            if not any(place[0] == number for place in places):
                places.append((number, distance, line))
    least = max(1, (len(failed) + 1) // 2)

    def rank(places: list[tuple[int, int, str]]) -> tuple[bool, int, float, int]:
        line = places[-1][2]
        mean = sum(distance for _, distance, _ in places) / len(places)
        return not _TELLS.search(line[:_LONGEST]), -len(places), mean, len(line)

    wide = [places for places in seen.values() if len(places) >= least]
    chosen = min(wide or seen.values(), key=rank)
    return Reason(text=chosen[-1][2].strip(), runs=len(chosen), of=len(failed))


def _own(run: Run) -> list[str]:
    """The lines that tell something: without the frames of a traceback, if there are others."""
    lines = [line[:_LONGEST] for line in run.lines if line.strip()]
    return [line for line in lines if not _FRAME.match(line)] or lines


def _same(line: str) -> str:
    return _BLANKS.sub(" ", _NUMBERS.sub("#", line)).strip()


def was_asked_to_stop(run: Run) -> bool:
    """systemd began to stop it before it ended: somebody, or another unit, asked for that."""
    return any(_STOPPING.match(line) for line in run.manager)


def refused_start(runs: Sequence[Run]) -> bool:
    """systemd has said that it starts the unit no more."""
    return bool(runs) and any(_REFUSED in line for line in runs[-1].manager)


def last_run(looked: Looked | None) -> Run | None:
    """The last run that ended since the host booted. systemd forgets an instance that was stopped and is not enabled,
    with its times and its result; the journal does not."""
    runs = looked.runs if looked is not None else ()
    ended = [run for run in runs if run.ended is not None and looked is not None and run.ended >= looked.booted]
    return ended[-1] if ended else None


def run_seconds(run: Run) -> float | None:
    """How long it lived, as the journal tells."""
    if run.began is None or run.ended is None or run.ended < run.began:
        return None
    return run.ended - run.began


def short_runs(runs: Sequence[Run], longest: float) -> int:
    """How many of the last runs, counted from the newest that ended, ended by themselves within so many seconds."""
    count = 0
    for run in reversed([run for run in runs if run.ended is not None]):
        lived = run_seconds(run)
        if was_asked_to_stop(run) or lived is None or lived > longest:
            break
        count += 1
    return count
