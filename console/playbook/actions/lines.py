"""A crontab line is disabled, or restored: a mark before it, and no other byte."""

from __future__ import annotations

from console.fleet.plan import LineVerb
from console.playbook.kinds import Action, Given, Inputs
from console.playbook.lines import FOUND, Line, line_of
from console.playbook.model import Shown
from console.playbook.settings import Input


async def _line(given: Given, inputs: Inputs) -> Shown:
    return await _to(given, await line_of(given, inputs.text("entry")), inputs.text("verb") == "disable")


async def _back(given: Given, inputs: Inputs) -> Shown:
    """By its mark, not by the bytes of the whole file: what others have edited around it stays."""
    return await _to(given, await line_of(given, inputs.text("entry")), inputs.text("verb") != "disable")


async def _to(given: Given, line: Line, off: bool) -> Shown:
    wanted = "disabled" if off else "active"
    if line.state == "gone":
        return Shown(
            refused=(f"{line.where} is there no more: somebody has edited the file",),
            evidence=(f"it was: {line.raw.decode('utf-8', 'replace')}",),
        )
    if line.state == wanted:
        by = f", by {line.by}" if line.by else ""
        return Shown(nothing=f"{line.where} is {wanted} already{by}", found=line.found)
    verb: LineVerb = "disable-line" if off else "restore-line"
    plan = await given.actions.plan_crontab(verb, path=line.path, line=line.number, raw=line.raw if off else None)
    return Shown(plan=plan, found=line.found)


LINE = Action(
    "line",
    "a crontab line is disabled, or restored, byte for byte",
    _line,
    {
        "verb": Input(required=True, choices=("disable", "restore")),
        "entry": Input(required=True, about="as worktop schedules names it"),
    },
    finds=FOUND,
    back=_back,
)
