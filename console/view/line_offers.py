"""Pure: what can be asked for with a line of a crontab."""

from __future__ import annotations

from console.fleet.plan import LineVerb
from console.schedules.inventory import Listed, short_name
from console.view.cells import safe
from console.view.offers import Offer, Request

_CRONTABS = frozenset({"user", "system", "cron.d"})


def line_offers(listed: Listed) -> tuple[Offer, ...]:
    """Switch it off, or on again; nothing for what is no line of a crontab."""
    if listed.entry.source.kind not in _CRONTABS:
        return ()
    off = "" if listed.entry.active else "it is switched off, or a comment"
    on = "it is not switched off" if listed.entry.active else ""
    return (
        _offer("disable-line", "switch off", "a mark before the line, no other byte is changed", listed, off),
        _offer("restore-line", "switch on again", "the file is what it was, byte for byte", listed, on),
    )


def _offer(verb: LineVerb, words: str, help: str, listed: Listed, lacking: str) -> Offer:
    entry = listed.entry
    label = f"{words} {safe(short_name(listed.name), 40)}"
    request = Request(verb=verb, title=label, role=listed.role, path=entry.source.path, line=entry.line, raw=entry.raw)
    return Offer(id=verb, label=label, help=help, request=request, lacking=lacking)
