"""Everything that starts something on a host, as it is listed: what each entry is, and what is alive of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from console.errors import Problem
from console.fleet.model import Value
from console.schedules.model import Dialect, Entry, Explained, Source, SourceKind

_ORDER: tuple[SourceKind, ...] = (
    *("user", "system", "cron.d", "hourly", "daily", "weekly", "monthly", "anacron"),
    *("rc.local", "supervisord", "pm2", "timer", "unit"),
)
_NAMED_BY_FILE = frozenset({"hourly", "daily", "weekly", "monthly", "rc.local"})
_AT_MOST = 8  # names an error lists


class Run(Value, frozen=True, kw_only=True):
    """The processes alive that one run of an entry has left behind, or still is."""

    started: float  # of the first of them, epoch seconds
    pids: tuple[int, ...]


class Alive(Value, frozen=True, kw_only=True):
    """What is alive now that came from an entry."""

    runs: tuple[Run, ...] = ()  # oldest first
    evidence: str = ""  # how they were told: a sentence
    growing: bool | None = None  # each run adds to what earlier ones left; None: that cannot be told
    per_run: int = 0  # how many the youngest run added
    before: tuple[float, int] | None = None  # (seconds ago, how many were alive then), as long as it was watched

    @property
    def count(self) -> int:
        return sum(len(run.pids) for run in self.runs)


class Listed(Value, frozen=True, kw_only=True):
    """One entry of the inventory. `explained` is without unit text here: that is asked for by name."""

    name: str  # "crontab:deploy:4", "/etc/cron.d/x:2", "timer:apt-daily.timer": what a person types
    explained: Explained
    role: str = ""  # the configured role whose worker it starts
    ignored: str = ""  # why cron passes the whole file over
    alive: Alive | None = None  # None: nobody looked (another host's files)

    @property
    def entry(self) -> Entry:
        return self.explained.entry


class Unread(Value, frozen=True, kw_only=True):
    """A source that could not be read, and what would allow it."""

    source: Source
    problem: Problem


class Inventory(Value, frozen=True, kw_only=True):
    """All of it, in the order of the sources and lines."""

    entries: tuple[Listed, ...] = ()
    unread: tuple[Unread, ...] = ()
    notes: tuple[str, ...] = ()  # what holds for all: no cron is installed
    dialect: Dialect = "debian"
    zone: str = ""
    host: str = ""  # "" for the files of another host


class Translated(Value, frozen=True, kw_only=True):
    """An entry with the text of the units it would become, and what was tried on them before they were offered."""

    listed: Listed
    held: tuple[str, ...] = ()  # sentences: what was proved
    failed: tuple[str, ...] = ()  # what is different, was found fault with, or could not be tried
    lost: tuple[str, ...] = ()  # what a live worker has around it that the unit does not give: sentences


def name_of(entry: Entry) -> str:
    """How a person names the entry; it stays while its file's lines stay."""
    source = entry.source
    base = source.path.rpartition("/")[2]
    if source.kind == "user":
        return f"crontab:{source.user}:{entry.line}"
    if source.kind in _NAMED_BY_FILE:
        return source.path
    if source.kind in ("timer", "unit"):
        return f"{source.kind}:{base}" if not source.user else f"{source.kind}:{source.user}:{base}"
    if source.kind == "supervisord":
        return f"supervisord:{entry.label or source.path}"
    if source.kind == "pm2":
        return f"pm2:{source.user}:{entry.label}"
    return f"{source.path}:{entry.line}"


def short_name(name: str) -> str:
    """ "deploy:4" for "crontab:deploy:4"; other names have no short form."""
    return name.removeprefix("crontab:")


def in_order(entries: Iterable[Listed]) -> tuple[Listed, ...]:
    return tuple(sorted(entries, key=_place))


def _place(listed: Listed) -> tuple[int, str, int, str]:
    entry = listed.entry
    return _ORDER.index(entry.source.kind), entry.source.path, entry.line, listed.name


def find(entries: Sequence[Listed], text: str) -> tuple[Listed, ...]:
    """The entries that the text names: one, or all of a file or an account. None when nothing is called that."""
    exact = tuple(each for each in entries if text in (each.name, short_name(each.name)))
    if exact:
        return exact
    return tuple(
        each
        for each in entries
        if text
        in (each.entry.source.path, f"crontab:{each.entry.source.user}", each.entry.source.path.rpartition("/")[2])
        or (each.entry.source.kind == "user" and text == each.entry.source.user)
        or (each.role and text == each.role)
    )


def accepted(entries: Sequence[Listed]) -> str:
    """What could have been named, for an error."""
    names = [short_name(each.name) for each in entries]
    more = f", … ({len(names) - _AT_MOST} more: worktop schedules)" if len(names) > _AT_MOST else ""
    return f"there are {', '.join(names[:_AT_MOST])}{more}" if names else "there is none"
