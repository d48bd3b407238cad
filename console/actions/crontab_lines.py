"""Plans that disable one line of a crontab, or restore it: a mark before the line, and no other byte."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

from console.actions.diff import file_diff
from console.actions.draft import plan_id
from console.actions.gates import Gates
from console.errors import HostError
from console.fleet.operations import FileRead
from console.fleet.plan import Consent, FileEdit, LineVerb, Plan, Step
from console.host.client import HostClient
from console.schedules.crontab import WHOLE_FILE, disable, entries, restore, without_header
from console.schedules.inventory import Inventory, Listed
from console.schedules.managed import manager_of
from console.schedules.model import Dialect, Entry, Source
from console.schedules.timing import zone_of
from console.text import mask

_SYSTEM_TAB = "/etc/crontab"
_SYSTEM_FOLDER = "/etc/cron.d/"
_PIDS_SHOWN = 5


class CrontabPlans:
    """Makes plans; changes nothing."""

    def __init__(self, host: HostClient, gates: Gates) -> None:
        self._host = host
        self._gates = gates

    async def plan(self, verb: LineVerb, path: str, line: int, raw: bytes | None, why: str) -> Plan:
        """`line` as in `crontab -e`; `raw`: the bytes it had when it was chosen. HostError: no agent, or a file that is
        no crontab. What stands against it is in the consent."""
        draft = _Draft(verb, source_of(path), line)
        gate = await self._gates.files(path)
        if gate is not None:
            draft.refused += gate.why
            draft.allow += gate.allow
        file = await self._host.read_file(path)
        try:
            inventory = await self._host.schedules()
        except HostError as error:
            inventory = Inventory()
            draft.warnings.append(f"what is alive of it could not be looked at: {error.problem.line()}")
        draft.change(file, raw, inventory.dialect)
        draft.look(inventory)
        return draft.plan(why)


def source_of(path: str) -> Source:
    """What kind of crontab a path is. HostError: it is none whose lines can be changed."""
    folder, _, name = path.rpartition("/")
    if path == _SYSTEM_TAB:
        return Source(kind="system", path=path)
    if path.startswith(_SYSTEM_FOLDER):
        return Source(kind="cron.d", path=path)
    if folder in ("/var/spool/cron/crontabs", "/var/spool/cron"):
        return Source(kind="user", path=path, user=name)
    raise HostError(f"file {path}", "it is no crontab", "only lines of crontabs and /etc/cron.d are disabled")


class _Draft:
    """One plan in the making."""

    def __init__(self, verb: LineVerb, source: Source, line: int) -> None:
        self._verb = verb
        self._source = source
        self._line = line
        self._id = plan_id(time.time())
        self._edit: tuple[FileRead, bytes] | None = None
        self._role = ""
        self.reasons: list[str] = []
        self.warnings: list[str] = []
        self.typed: list[str] = []
        self.refused: list[str] = []
        self.allow: list[str] = []

    @property
    def _off(self) -> bool:
        return self._verb == "disable-line"

    @property
    def _where(self) -> str:
        file = f"the crontab of {self._source.user}" if self._source.user else self._source.path
        return f"line {self._line} of {file}"

    def change(self, file: FileRead, raw: bytes | None, dialect: Dialect) -> None:
        """The bytes as they are to be, and what that means to the other lines."""
        if file.content is None:
            self.refused.append(f"{file.path} {f'cannot be read: {file.problem}' if file.problem else 'is not there'}")
            return
        before = without_header(file.content)
        lines = before.split(b"\n")
        if raw is not None and (self._line > len(lines) or lines[self._line - 1] != raw):
            self.refused.append(f"{self._where} is another than the one that was chosen: the file was edited since")
            self.allow.append("look again: worktop schedules")
            return
        try:
            changed = disable(file.content, self._line, self._id) if self._off else restore(file.content, self._line)
        except ValueError as error:
            self.refused.append(str(error))
            return
        self._edit = file, changed
        self.reasons.append(mask(lines[self._line - 1].decode("utf-8", "replace")))
        manager = manager_of(before, self._line)
        if manager is not None:
            self.warnings.append(mask(manager.warning))
        self._others(entries(before, self._source, dialect), entries(without_header(changed), self._source, dialect))

    def _others(self, before: Sequence[Entry], then: Sequence[Entry]) -> None:
        """One line that is wrong keeps Debian's cron from all of them: that may begin, or end, with this change."""
        was, will = _refusal(before), _refusal(then)
        rest = sum(entry.active for entry in then) - (not self._off)
        others = f"{rest} other line{'' if rest == 1 else 's'}"
        if was and not will and rest:
            self.typed.append(f"now cron ignores the whole file ({was}); after this it runs its {others}")
        elif will:
            self.warnings.append(f"cron ignores the whole file{', then as now' if was else ' after this'}: {will}")

    def look(self, inventory: Inventory) -> None:
        """What the line is, when it runs, what of it is alive, and who else starts the same."""
        listed = next((each for each in inventory.entries if self._is_it(each)), None)
        if listed is None:
            return
        explained = listed.explained
        self._role = listed.role
        roles = ", ".join(role.name for role in explained.roles)
        self.reasons.append(f"{explained.kind.replace('_', ' ')}" + (f" of {roles}" if roles else ""))
        if explained.scheduled is not None:
            upcoming = explained.scheduled.next_runs[:1]
            at = (
                f", next {datetime.fromtimestamp(upcoming[0], zone_of(explained.scheduled.zone)):%H:%M}"
                if upcoming
                else ""
            )
            self.reasons.append(f"{explained.scheduled.words}{at if self._off else ''}")
        if self._off:
            self._alive(listed)
        names = {role.name for role in explained.roles}
        for other in inventory.entries:
            same = bool(other.role and other.role == listed.role) or bool(
                names & {role.name for role in other.explained.roles}
            )
            if other is not listed and same and other.entry.active and not other.entry.problems:
                self.warnings.append(f"{other.name} starts the same: it goes on doing so")

    def _is_it(self, listed: Listed) -> bool:
        return (listed.entry.source.path, listed.entry.line) == (self._source.path, self._line)

    def _alive(self, listed: Listed) -> None:
        pids = [pid for run in listed.alive.runs for pid in run.pids] if listed.alive is not None else []
        if not pids:
            self.warnings.append("it stops nothing that runs: cron only does not start the line any more")
            return
        shown = ", ".join(map(str, pids[:_PIDS_SHOWN])) + (", …" if len(pids) > _PIDS_SHOWN else "")
        told = (
            f"1 process of it goes on (pid {shown}), and nobody starts it again when it ends"
            if len(pids) == 1
            else f"{len(pids)} processes of it go on (pid {shown}), and nobody starts them again when they end"
        )
        self.warnings.append(f"it stops nothing that runs: {told}")

    def plan(self, why: str) -> Plan:
        consent = Consent()
        if self.refused:
            consent = Consent(kind="refused", why=tuple(self.refused), allow=tuple(self.allow))
        elif self.typed:
            word = self._source.path.rpartition("/")[2]
            consent = Consent(kind="typed", word=word, why=tuple(self.typed))
        word = "disable" if self._off else "restore"
        named = f"{self._source.user or self._source.path}:{self._line}"
        return Plan(
            id=self._id,
            made=time.time(),
            verb=self._verb,
            title=f"{word.capitalize()} {self._where}",
            role=self._role,
            risk="high" if self.typed else "medium" if self._off else "low",
            reasons=tuple(self.reasons),
            warnings=tuple(self.warnings),
            steps=(self._step(word),) if self._edit is not None and not self.refused else (),
            command=f"worktop schedules {word} {named}",
            consent=consent,
            why=why,
        )

    def _step(self, word: str) -> Step:
        assert self._edit is not None
        file, changed = self._edit
        return Step(
            kind="file",
            title=f"{word} {self._where}",
            text=file_diff(file.path, file.content, changed, around=1),
            file=FileEdit(path=file.path, expected=file.sha256, content=changed, check="crontab"),
            undo="the file as it was, byte for byte",
        )


def _refusal(found: Sequence[Entry]) -> str:
    """Why cron ignores the whole file; "" when it does not."""
    problems = (entry.problems[-1] for entry in found if entry.active and entry.problems)
    return next((each.partition(f": {WHOLE_FILE}")[0] for each in problems if each.endswith(WHOLE_FILE)), "")


# --- afterwards ------------------------------------------------------------------------------------------------------


async def look_afterwards(host: HostClient, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The file read again, raw: what was seen, and what was not; sentences."""
    edit = next(step.file for step in plan.steps if step.file is not None)
    try:
        now = await host.read_file(edit.path)
    except HostError as error:
        return (), (f"{edit.path} could not be read again: {error.problem.line()}",)
    if now.content != edit.content:
        return (), (f"{edit.path} is not as it was written: somebody else writes it too",)
    return (f"read again: {edit.path} has sha256 {now.sha256}; cron reads it within the minute",), ()
