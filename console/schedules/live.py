"""The live processes that are what a line starts, found by their arguments. Pure."""

from __future__ import annotations

from collections import defaultdict

from console.schedules import marks
from console.schedules.alive import BEFORE_ARGV, base_of, is_run_of
from console.schedules.model import LiveProcess, Surroundings

Index = dict[str, list[LiveProcess]]
_LAST: list[tuple[tuple[LiveProcess, ...], Index]] = []  # of the processes that were asked for last


def live_of(argv: tuple[str, ...], user: str, host: Surroundings) -> list[LiveProcess]:
    """Those of this user whose arguments are these (marked) words, whatever stands for a loop variable."""
    processes = host.processes or ()
    if not _LAST or _LAST[0][0] is not processes:
        index: Index = defaultdict(list)
        for process in processes:
            for word in {base_of(each) for each in process.argv[: BEFORE_ARGV + 1]}:
                index[word].append(process)
        _LAST[:] = [(processes, index)]
    wanted = tuple(map(marks.shown, argv))
    found = _LAST[0][1].get(base_of(wanted[0]), ()) if wanted else ()
    return [each for each in found if is_run_of(wanted, each.argv) and each.user in ("", user)]
