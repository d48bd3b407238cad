"""The end of a run: a report of before and after, a line of the audit, the last line of its journal."""

from __future__ import annotations

from collections.abc import Callable

from console.actions.who import this_machine, this_person
from console.errors import ConfigError, WorktopError
from console.fleet.plan import AuditEntry
from console.playbook.journal import FOLDER, End, Line, Record
from console.playbook.kinds import Given
from console.playbook.model import Playbook, RunState, Snapshot
from console.playbook.report import report
from console.playbook.showing import Tools
from console.playbook.standing import snapshot
from console.playbook.status import status_of
from console.state import write_new

_WORDS: dict[RunState, str] = {
    "open": "open",
    "done": "followed to its end",
    "rolled-back": "taken back, step by step",
    "abandoned": "given up",
}


class Ending:
    def __init__(self, tools: Tools, book: Playbook, record: Record, write: Callable[[Line], None]) -> None:
        self._tools = tools
        self._book = book
        self._record = record
        self._write = write

    async def finish(self, state: RunState, given: Given) -> None:
        """Report, audit, journal. RefusedError: the journal cannot be written, and the run is not over."""
        after = await self._stands(given)
        status = status_of(self._record, self._book)
        text = report(self._book, status, state, self._record.before, after, self._tools.clock.now().wall)
        path = self._tools.actions.state.folder(FOLDER) / f"{self._record.head.run}.md"
        kept = str(path)
        try:
            path.unlink(missing_ok=True)  # of an end that was cut off, or of before it was taken back
            write_new(path, text)
        except OSError:
            kept = ""
        self.end(state, _WORDS[state], kept)

    def end(self, state: RunState, text: str, report: str = "") -> None:
        head, now = self._record.head, self._tools.clock.now().wall
        self._write(End(state=state, at=now, report=report))
        entry = AuditEntry(
            at=now,
            plan=head.run,
            verb="playbook",
            title=f"Playbook {head.playbook}: {head.title}",
            role=str(self._record.values.get("role", "")),
            who=this_person(),
            host=this_machine(),
            state={"done": "done", "rolled-back": "done"}.get(state, "stopped"),
            text=text + (f"; report in {report}" if report else ""),
        )
        try:
            self._tools.actions.note(entry)
        except (OSError, ConfigError):
            return  # it is over: its own journal and those of its plans tell what was done

    async def _stands(self, given: Given) -> Snapshot | None:
        if not given.role:
            return None
        try:
            return snapshot(await given.status(), given.now())
        except WorktopError:
            return None
