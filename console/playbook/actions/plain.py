"""Steps that change nothing: something to read, the report."""

from __future__ import annotations

from console.playbook.kinds import Action, Given, Inputs
from console.playbook.model import Shown


async def _note(given: Given, inputs: Inputs) -> Shown:
    return Shown(nothing="read and agreed to")


async def _report(given: Given, inputs: Inputs) -> Shown:
    return Shown(
        nothing="the report is written",
        facts=("Before and after, what was changed, and how to go back: a file of Markdown in the state directory.",),
    )


NOTE = Action("note", "something a person reads and agrees to", _note, changes=False)
REPORT = Action("report", "the report of the run, as the last step", _report, changes=False)
