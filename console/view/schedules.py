"""Pure: the schedules of a host as a list: what needs a look first, then launchers, cycles and periodic jobs."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from console.errors import Problem
from console.fleet.model import Value
from console.schedules.crontab import disabled_by
from console.schedules.inventory import Alive, Inventory, Listed, Unread, short_name
from console.text import ago
from console.view.cells import Part, Tone, columns, safe
from console.view.glyphs import Glyphs
from console.view.listing import ListColumn, Look

Parts = tuple[Part, ...]

_WORDS: dict[str, str] = {"short_cycle": "cycle", "unread": "unread"}
_TONES: dict[str, Tone] = {"launcher": "warn", "invalid": "bad", "unread": "bad", "none": "dim"}
_ORDER = ("unread", "growing", "invalid", "launcher", "short_cycle", "periodic", "none")
_NAME_AT_MOST = 34
_SOON = 48 * 3600.0


class Row(Value, frozen=True, kw_only=True):
    """An entry, or a source that could not be read."""

    listed: Listed | None = None
    unread: Unread | None = None

    @property
    def key(self) -> str:
        if self.listed is not None:
            return self.listed.name
        return f"unread {self.unread.source.kind} {self.unread.source.path}" if self.unread is not None else ""

    @property
    def kind(self) -> str:
        """The class of the entry; "unread"."""
        return self.listed.explained.kind if self.listed is not None else "unread"

    @property
    def growing(self) -> bool:
        alive = self.listed.alive if self.listed is not None else None
        return bool(alive and alive.growing and self.kind == "launcher")

    @property
    def rank(self) -> int:
        return _ORDER.index("growing" if self.growing else self.kind)


def rows(inventory: Inventory) -> tuple[Row, ...]:
    """What could not be read first, then what piles up, what cron does not run, launchers, and the rest."""
    found = [Row(unread=each) for each in inventory.unread] + [Row(listed=each) for each in inventory.entries]
    return tuple(sorted(found, key=lambda row: row.rank))


def class_word(kind: str) -> str:
    return _WORDS.get(kind, kind)


def class_parts(row: Row, glyphs: Glyphs) -> Parts:
    """ "▲ launcher", "× invalid"."""
    return class_sign(row.kind, row.growing, glyphs)


def class_sign(kind: str, growing: bool, glyphs: Glyphs) -> Parts:
    sign = {"launcher": glyphs.warning, "invalid": glyphs.bad, "unread": glyphs.bad, "none": glyphs.off}.get(
        kind, glyphs.good
    )
    tone = "bad" if growing else _TONES.get(kind, "")
    return ((f"{sign} {class_word(kind)}", tone),)


def runs_text(at: float, zone: str) -> str:
    """A moment in the zone of its cron: "Mon 2026-11-30 02:30 UTC"."""
    return datetime.fromtimestamp(at, zone_named(zone)).strftime("%a %Y-%m-%d %H:%M %Z")


def zone_named(name: str) -> tzinfo:
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def alive_text(alive: Alive | None, long: bool = False) -> str:
    """ "9 +3": so many are alive and each run adds so many. "" when none is."""
    if alive is None or not alive.count:
        return ""
    if long:
        runs = f"{len(alive.runs)} run{'' if len(alive.runs) == 1 else 's'}"
        more = f"; each run adds {alive.per_run} more" if alive.growing else ""
        return f"{alive.count} alive of {runs}{more}"
    return f"{alive.count} +{alive.per_run}" if alive.growing else str(alive.count)


def really_runs(listed: Listed) -> str:
    """The command with its wrappers taken off: that of the worker, where one is started; else the line's."""
    roles = listed.explained.roles
    first = " ".join(roles[0].argv) if roles else listed.entry.command
    return first + (f" (and {len(roles) - 1} more)" if len(roles) > 1 else "")


def said(listed: Listed) -> tuple[str, ...]:
    """Everything a person should be told of the entry, the gravest first."""
    explained = listed.explained
    scheduled = explained.scheduled
    of_time = scheduled.warnings if scheduled is not None else ()
    return tuple(dict.fromkeys((*listed.entry.problems, *explained.warnings, *of_time)))


# --- columns ---------------------------------------------------------------------------------------------------------


def _name(row: Row, look: Look) -> Parts:
    if row.unread is not None:
        source = row.unread.source
        name = source.user if source.kind == "user" and source.user else source.path
        return ((safe(name, _NAME_AT_MOST), "strong"),)
    if row.listed is None:
        return (("", ""),)
    return ((safe(short_name(row.listed.name), _NAME_AT_MOST), "strong" if row.listed.entry.active else "dim"),)


def _user(row: Row, look: Look) -> Parts:
    return ((safe(row.listed.entry.user, 16) if row.listed is not None else "", ""),)


def _role(row: Row, look: Look) -> Parts:
    if row.listed is None:
        return (("", ""),)
    if row.listed.role:
        return ((safe(row.listed.role, 20), ""),)
    guessed = ", ".join(role.name for role in row.listed.explained.roles) if row.kind == "launcher" else ""
    return ((safe(guessed, 20), "dim"),)


def _when(row: Row, look: Look) -> Parts:
    scheduled = row.listed.explained.scheduled if row.listed is not None else None
    if scheduled is None:
        return ((look.glyphs.none, "dim"),)
    return ((safe(scheduled.words, 40), ""),)


def next_run(row: Row) -> float | None:
    scheduled = row.listed.explained.scheduled if row.listed is not None else None
    return scheduled.next_runs[0] if scheduled is not None and scheduled.next_runs else None


def _next(row: Row, look: Look) -> Parts:
    """In how long; the day, when that is further away."""
    at = next_run(row)
    if at is None:
        return ((look.glyphs.none, "dim"),)
    left = max(0.0, at - look.now)
    if left < _SOON:
        return ((f"in {ago(round(left))}", ""),)
    return ((datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d"), "dim"),)


def _alive(row: Row, look: Look) -> Parts:
    text = alive_text(row.listed.alive if row.listed is not None else None)
    if not text:
        return ((look.glyphs.none, "dim"),)
    return ((text, "bad" if row.growing else ""),)


def _what(row: Row, look: Look) -> Parts:
    """The first thing to be told, else the command."""
    if row.listed is None:
        problem = row.unread.problem if row.unread is not None else Problem("", "")
        return ((safe(f"{problem.why}; {problem.do}" if problem.do else problem.why), "bad"),)
    told = said(row.listed)
    if told and row.kind in ("launcher", "invalid"):
        return ((safe(told[0]), "bad" if row.kind == "invalid" else "warn"),)
    entry = row.listed.entry
    if entry.active:
        return ((safe(really_runs(row.listed)), ""),)
    off = "switched off by worktop" if disabled_by(entry.raw) else "commented out"
    return ((f"{off}: ", "" if disabled_by(entry.raw) else "dim"), (safe(really_runs(row.listed)), "dim"))


def _user_of(row: Row) -> str | None:
    return row.listed.entry.user if row.listed is not None else None


def _role_of(row: Row) -> str | None:
    return (row.listed.role or None) if row.listed is not None else None


_CLASSES = ("unread", "invalid", "launcher", "short_cycle", "periodic", "none")
_CLASS_WIDTH = max(columns(f"x {class_word(kind)}") for kind in _CLASSES)

COLUMNS: tuple[ListColumn[Row], ...] = (
    ListColumn(
        key="class",
        label="CLASS",
        parts=lambda row, look: class_parts(row, look.glyphs),
        sort=lambda row: row.rank,
        least=_CLASS_WIDTH,
        most=_CLASS_WIDTH,
    ),
    ListColumn(key="name", label="ENTRY", parts=_name, sort=lambda row: row.key, most=_NAME_AT_MOST),
    ListColumn(key="user", label="USER", parts=_user, sort=_user_of, leave=7, most=16),
    ListColumn(key="role", label="ROLE", parts=_role, sort=_role_of, leave=4, most=20),
    ListColumn(key="when", label="WHEN", parts=_when, leave=5, most=26),
    ListColumn(key="next", label="NEXT", parts=_next, sort=next_run, right=True, leave=6, least=6),
    ListColumn(
        key="alive",
        label="ALIVE",
        parts=_alive,
        sort=lambda row: row.listed.alive.count if row.listed is not None and row.listed.alive is not None else None,
        descends=True,
        right=True,
        leave=3,
        least=5,
    ),
    ListColumn(key="what", label="WHAT", parts=_what, leave=1, least=14, fill=True, wish=40),
)


def summary_parts(shown: tuple[Row, ...], glyphs: Glyphs, notes: tuple[str, ...] = ()) -> Parts:
    """How many of which class: "× 1 unread  ▲ 2 launchers  ● 4 periodic"."""
    counts = Counter(row.kind for row in shown)
    plural: dict[str, str] = {"launcher": "launchers", "short_cycle": "cycles", "none": "commented out"}
    parts: list[Part] = [(safe(note, 60), "warn") for note in notes]
    growing = sum(row.growing for row in shown)
    if growing:
        parts.append((f"{glyphs.bad} {growing} {'pile grows' if growing == 1 else 'piles grow'}", "bad"))
    for kind in _CLASSES:
        if counts[kind]:
            (sign, tone), *_ = class_sign(kind, False, glyphs)
            word = plural.get(kind, class_word(kind)) if counts[kind] != 1 else class_word(kind)
            parts.append((f"{sign[:1]} {counts[kind]} {word}", tone))
    return tuple(parts)
