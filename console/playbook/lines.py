"""A line of a crontab that a run is about: where it stands now, whatever was edited around it meanwhile."""

from __future__ import annotations

from typing import Literal

from console.actions.crontab_lines import source_of
from console.errors import ConfigError, HostError
from console.fleet.model import Value
from console.playbook.kinds import Given
from console.playbook.model import Settings
from console.schedules.crontab import disabled_by, entries, mark, without_header
from console.schedules.inventory import Inventory, Listed, accepted, find
from console.schedules.model import Scheduled
from console.schedules.timing import scheduled

FOUND = ("line_entry", "line_path", "line_number", "line_raw")
State = Literal["active", "disabled", "gone"]


class Line(Value, frozen=True, kw_only=True):
    """The line as it was when the run first named it, and what is there now."""

    entry: str  # as it was named
    path: str
    number: int  # now; as it was first when it is gone
    raw: bytes  # without a mark of worktop
    state: State
    by: str = ""  # id of the plan that disabled it

    @property
    def found(self) -> Settings:
        """What the run remembers of it."""
        text = self.raw.decode("latin-1")  # byte for byte
        return {"line_entry": self.entry, "line_path": self.path, "line_number": self.number, "line_raw": text}

    @property
    def where(self) -> str:
        return f"line {self.number} of {self.path}"


async def line_of(given: Given, entry: str) -> Line:
    """HostError, ConfigError: there is no such line, or it is no crontab's."""
    values = given.values
    if values.get("line_entry") == entry:
        path, number = str(values["line_path"]), int(str(values["line_number"]))
        raw = str(values["line_raw"]).encode("latin-1")
    else:
        listed = one_entry(await given.actions.schedules(), entry)
        path, number = listed.entry.source.path, listed.entry.line
        source_of(path)
        raw = _bare(listed.entry.raw)
    file = await given.host.read_file(path)
    if file.problem:
        raise HostError(f"read {path}", file.problem)
    lines = without_header(file.content or b"").split(b"\n")
    same = [place for place, text in enumerate(lines, 1) if _bare(text) == raw]
    if not same:
        return Line(entry=entry, path=path, number=number, raw=raw, state="gone")
    active = [place for place in same if lines[place - 1] == raw]
    place = min(active or same, key=lambda each: abs(each - number))
    by = disabled_by(lines[place - 1])
    return Line(entry=entry, path=path, number=place, raw=raw, state="active" if active else "disabled", by=by)


def one_entry(inventory: Inventory, name: str) -> Listed:
    """ConfigError: none, or several, are called that."""
    found = find(inventory.entries, name)
    if len(found) != 1:
        why = f"{len(found)} entries are called that" if found else "there is no such entry"
        raise ConfigError(f"entry {name}", f"{why}; {accepted(found or inventory.entries)}", "worktop schedules")
    return found[0]


async def runs_of(given: Given, line: Line) -> Scheduled | None:
    """When cron would run it, also while it is disabled. HostError."""
    inventory = await given.actions.schedules()
    parsed = entries(line.raw + b"\n", source_of(line.path), inventory.dialect)
    return scheduled(parsed[0], inventory.dialect, inventory.zone, given.now()) if parsed else None


def _bare(raw: bytes) -> bytes:
    """The line without a mark of worktop."""
    by = disabled_by(raw)
    return raw.removeprefix(mark(by)) if by else raw
