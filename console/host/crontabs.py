"""Reads the crontabs of this host, and the shell scripts their lines run, when one of them has changed.

Raw bytes of the files, because `crontab -l` hides lines and rewrites control characters. Without the right to read the
spool only the own crontab is asked for (`crontab -l`), and the problem says that there may be more.

Line numbers are those of the file without the three comment lines that Debian's crontab(1) writes above it: an editor
opened by `crontab -e` shows the same ones, and so does everybody who reads the file, with rights or without. (`crontab
-l` hides up to three leading comments, whoever wrote them; asked with CRONTAB_NOHEADER=N it hides none.)
"""

from __future__ import annotations

import pwd
from collections.abc import Iterable

import msgspec

from console.errors import Problem
from console.fleet.model import CronLine, Role
from console.host import tabs
from console.host.rooted import Root
from console.host.scripts import Scripts
from console.host.tabs import MORE_RIGHTS, Tab
from console.schedules.crontab import WHOLE_FILE, entries
from console.schedules.launchers import classify
from console.schedules.model import Dialect, Entry, ScriptText

IGNORED = "file-ignored"


class Crontabs:
    """The lines as they were at the last `refresh`, and what could not be read."""

    def __init__(self, root: str = "/") -> None:
        """`root`: where the host's files begin, for tests."""
        self.lines: tuple[CronLine, ...] = ()
        self.problem: Problem | None = None
        self._root = Root(root)
        self._scripts = Scripts(self._root)
        self._roles: tuple[Role, ...] = ()
        self._stale = True

    def look_for(self, roles: Iterable[Role]) -> None:
        self._roles = tuple(roles)
        self._stale = True

    async def refresh(self) -> None:
        """Read again what changed; a few dozen stat calls when nothing did."""
        if not self._stale and not self._root.changed():
            return
        self._stale = False
        self._root.forget()
        self._scripts.forget()
        dialect = tabs.cron_of(self._root).dialect
        own, why = await tabs.own_tab(self._root)
        found = (*tabs.system_tabs(self._root, dialect), *tabs.user_tabs(self._root, {}), *([own] if own else []))
        self.problem = _problem(found, why)
        self.lines = tuple(line for tab in found if not _unnamed(tab, dialect) for line in self._lines(tab, dialect))

    def _lines(self, tab: Tab, dialect: Dialect) -> list[CronLine]:
        read = entries(tab.content.data, tab.source, dialect)
        return [self._line(entry, tab) for entry in read if entry.active and entry.expression]

    def _line(self, entry: Entry, tab: Tab) -> CronLine:
        home = dict(entry.environment).get("HOME") or _home(entry.user)
        unread: dict[str, str] = {}

        def script(path: str) -> ScriptText | None:
            found = self._scripts.read(path)
            if found is not None and found.problem == "not permitted":
                unread[path] = found.problem
            return found

        line = classify(entry, owner=entry.user, source=tab.source.path, home=home, read=script, roles=self._roles)
        extra = [f"{path} could not be read: {why}" for path, why in unread.items()]
        ignored = tab.ignored or tab.doubt
        problems = (ignored, *entry.problems) if ignored else entry.problems
        unread_by_cron = bool(ignored) or any(problem.endswith(WHOLE_FILE) for problem in problems)
        faults = (*line.faults, IGNORED) if unread_by_cron else line.faults
        return msgspec.structs.replace(line, faults=faults, evidence=(*line.evidence, *extra, *problems))


def _problem(found: tuple[Tab, ...], own: str) -> Problem | None:
    """What may not be read; `own`: why the own crontab could not be asked for either."""
    refused = [tab.source for tab in found if tab.content.denied]
    if any(source.kind == "user" and not source.user for source in refused):
        return Problem("crontabs of other accounts", "not permitted" + (f"; {own}" if own else ""), MORE_RIGHTS)
    return Problem(f"crontab {refused[0].path}", "not permitted", MORE_RIGHTS) if refused else None


def _unnamed(tab: Tab, dialect: Dialect) -> bool:
    """Cron does not even look at a file of that name."""
    return tab.source.kind == "cron.d" and bool(tabs.passed_over(tab.source.path.rpartition("/")[2], dialect))


def _home(account: str) -> str:
    try:
        return pwd.getpwnam(account).pw_dir
    except KeyError:
        return "/"
