"""A pause."""

from __future__ import annotations

from console.playbook.kinds import Check, Given, Inputs
from console.playbook.model import Begun, Seen


async def _nothing(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    return Seen(state="holds", text="waited")


WAIT = Check("wait", "nothing: only the time passes that `for` says", _nothing)
