"""The step that enables or disables units at boot."""

from __future__ import annotations

from collections.abc import Sequence

from console.fleet.plan import Step, UnitVerb

_TIMEOUT = 60.0


def switch_step(units: Sequence[str], verb: UnitVerb) -> Step:
    """Enable or disable them, in one call of systemctl: each makes systemd read its files again."""
    named = units[0] if len(units) == 1 else f"{len(units)} units"
    return Step(
        kind="unit",
        title=f"{verb} {named} at boot",
        text=f"systemctl {verb} {' '.join(units)}",
        units=tuple(units),
        verb=verb,
        timeout=_TIMEOUT,
        undo=f"systemctl {'disable' if verb == 'enable' else 'enable'} {'it' if len(units) == 1 else 'them'}",
    )
