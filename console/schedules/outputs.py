"""Where the output of a command goes: its redirections, as a unit says them. Pure."""

from __future__ import annotations

from typing import NamedTuple

from console.schedules import marks, units
from console.schedules.starts import Start


class Redirected(NamedTuple):
    """Where the output goes, and how each file is opened (> or >>); "" where it goes to cron."""

    target: str = ""
    mode: str = ""
    both: bool = False  # standard error goes there too
    errors: str = ""  # a file of its own for standard error
    errors_mode: str = ""


def redirected(start: Start) -> Redirected:
    found = Redirected()
    for descriptor, sign, path in start.command.around.outputs:
        if sign in (">&", "<&"):
            found = found._replace(both=True, errors="") if (descriptor, path) == ("2", "1") else found
        elif descriptor == "1" or sign.startswith("&>"):
            found = found._replace(target=path, mode=sign.lstrip("&"), both=found.both or sign.startswith("&>"))
        elif descriptor == "2":
            found = found._replace(errors=path, errors_mode=sign, both=False)
    return found


def output_of(start: Start) -> tuple[units.Output, bool]:
    """Where a worker's unit sends its output, and whether a truncating redirection was left out.

    A log that is opened anew at each start would lose what was there, one within a release belongs to that release,
    one named after the instance or shared with a script's own messages is better read from the journal.
    """
    if start.output is not None:
        return (units.Output(f"append:{start.output}", "inherit") if start.output else units.Output()), False
    target, mode, both, errors, errors_mode = redirected(start)
    if not target or target.startswith("/dev/") or marks.has_marks(target):
        return units.Output(), False
    if mode != ">>":
        return units.Output(), True
    if "/current/" in target or "/releases/" in target:
        return units.Output(), False
    apart = errors.startswith("/") and errors_mode == ">>" and not marks.has_marks(errors)
    return units.Output(f"append:{target}", "inherit" if both else f"append:{errors}" if apart else ""), False
