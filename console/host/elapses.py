"""When the timers of a host elapse next, as systemd-analyze reads their OnCalendar= in the host's zone."""

from __future__ import annotations

from collections.abc import Iterable

from console.host import calendar
from console.schedules.model import Entry
from console.schedules.proof import Window
from console.schedules.timing import NEXT, zone_of

_PREFIX = "OnCalendar="
_AT_MOST = 500  # values


class Elapses:
    """Asks again when one of the moments has passed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, ...]] = {}
        self._zone = ""

    async def refresh(self, entries: Iterable[Entry], zone: str, now: float) -> None:
        """Know of these timers. Raises nothing: where systemd-analyze does not answer there is no next moment."""
        wanted = list(dict.fromkeys(value for entry in entries for value in _values(entry)))[:_AT_MOST]
        passed = any(moments and moments[0] <= now for moments in self._known.values())
        if zone == self._zone and not passed and all(value in self._known for value in wanted):
            return
        self._zone = zone
        self._known = {}
        window = Window(after=int(now))
        answer = await calendar.ask(wanted, NEXT, zone_of(zone), window) if wanted else ()
        if isinstance(answer, str):  # one that it does not understand spoils the answer for all
            answer = tuple([await self._alone(value, zone, window) for value in wanted])
        self._known = {value: tuple(map(float, moments)) for value, moments in zip(wanted, answer, strict=True)}

    async def _alone(self, value: str, zone: str, window: Window) -> tuple[int, ...]:
        answer = await calendar.ask([value], NEXT, zone_of(zone), window)
        return () if isinstance(answer, str) else answer[0]

    def of(self, entry: Entry) -> tuple[float, ...]:
        """The next moments of a timer."""
        moments = {moment for value in _values(entry) for moment in self._known.get(value, ())}
        return tuple(sorted(moments)[:NEXT])


def _values(entry: Entry) -> list[str]:
    if entry.source.kind != "timer" or not entry.active:
        return []
    parts = (part for part in entry.expression.split("; ") if part.startswith(_PREFIX))
    return [part.removeprefix(_PREFIX) for part in parts]
