"""Plans that were cut off, for the commands that say how things are."""

from __future__ import annotations

from console.errors import ConfigError
from console.text import clean, grouped


def cut_off_lines() -> list[str]:
    """One for each plan that was cut off or is being applied; none where nothing is kept."""
    from console.actions.journal import unfinished
    from console.state import StateDirectory

    try:
        found = unfinished(StateDirectory.find())
    except (ConfigError, OSError):
        return []
    lines = []
    for one in found:
        if one.running:
            lines.append(f"{clean(one.who.name)} applies it now: {clean(one.title)} ({one.plan})")
            continue
        lines.append(
            f"cut off after {grouped(one.done)} of {grouped(one.steps)} steps: {clean(one.title)}; "
            f"worktop continue {one.plan}, or worktop abandon {one.plan}"
        )
    return lines
