"""A crontab with its scripts, explained as the host agent would: every source in it becomes entries."""

from __future__ import annotations

from collections.abc import Mapping

from console.schedules.classify import explain
from console.schedules.crontab import entries
from console.schedules.model import Entry, Explained, ScriptText, Source, Surroundings
from console.schedules.others import anacrontab, service_entry, unit_text, whole_file
from console.schedules.timing import scheduled

NOW = 1_800_000_000.0
NOBODY_LOOKED = Surroundings()


def explained(
    crontab: str, source: Source, scripts: Mapping[str, str] = {}, host: Surroundings = NOBODY_LOOKED
) -> tuple[Explained, ...]:
    """Every entry of the crontab; the other sources among the scripts are known as entries too."""

    def read(path: str) -> ScriptText | None:
        return ScriptText(path=path, text=scripts[path]) if path in scripts else None

    data = crontab.encode()
    own = anacrontab(data, source) if source.kind == "anacron" else entries(data, source)
    others = tuple(entry for path, text in scripts.items() for entry in _entries_of(path, text))
    surroundings = Surroundings(
        accounts=host.accounts, processes=host.processes, entries=own + others, dialect=host.dialect
    )
    return tuple(explain(entry, read, surroundings, scheduled(entry, "debian", "UTC", NOW)) for entry in own)


def _entries_of(path: str, text: str) -> tuple[Entry, ...]:
    if path.startswith("/var/spool/cron/crontabs/"):
        return entries(text.encode(), Source(kind="user", path=path, user=path.rpartition("/")[2]))
    if path.startswith("/etc/cron.d/"):
        return entries(text.encode(), Source(kind="cron.d", path=path))
    if path == "/etc/rc.local":
        return (whole_file(Source(kind="rc.local", path=path), "@reboot"),)
    if path.endswith(".service"):
        return (service_entry(Source(kind="unit", path=path), unit_text((text,))),)
    return ()
