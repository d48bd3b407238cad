"""The facade of the playbooks: what there is, runs that are begun, taken up, listed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from console.actions.desk import Actions
from console.actions.draft import plan_id
from console.actions.locks import locked
from console.actions.scene import host_answers
from console.actions.who import this_machine, this_person
from console.config import Config
from console.errors import ConfigError, RefusedError, WorktopError
from console.host.client import HostClient
from console.playbook import journal
from console.playbook.clock import Clock
from console.playbook.engine import Run
from console.playbook.journal import At, Before, Head, Record, RunJournal
from console.playbook.kinds import Given, Registry
from console.playbook.library import Library, folders
from console.playbook.model import Playbook, RunStatus, Setting, Settings, Shelved, StepView
from console.playbook.registry import REGISTRY
from console.playbook.showing import Tools, show
from console.playbook.standing import snapshot
from console.playbook.status import status_of
from console.queue.client import QueueClient
from console.state import StateDirectory


def _nothing(point: str) -> None:
    """Nobody listens."""


class Playbooks:
    """Playbooks and their runs. Nothing is changed but by a `Run`."""

    def __init__(
        self,
        actions: Actions,
        config: Config,
        host: HostClient,
        reader: QueueClient | None,
        *,
        registry: Registry = REGISTRY,
        places: Sequence[Path] | None = None,
        clock: Clock | None = None,
        at: At = _nothing,
    ) -> None:
        """`places`: folders of playbooks. `at` is called before and after each line that a run's journal writes."""
        self._tools = Tools(actions, config, host, reader, registry, clock or Clock())
        self._library = Library(registry, folders() if places is None else places)
        self._at = at

    # --- what there is -----------------------------------------------------------------------------------------------

    def shelf(self) -> tuple[Shelved, ...]:
        return self._library.shelf()

    def check(self, path: str) -> Shelved:
        """What is wrong with a file. ConfigError: it cannot be read."""
        return self._library.check(Path(path))

    def book(self, name: str) -> Playbook:
        """ConfigError: there is none of that name, or it has flaws."""
        return self._library.book(name)

    def runs(self) -> tuple[RunStatus, ...]:
        """Newest first."""
        return tuple(self._status(record) for record in journal.every(self._state))

    def status(self, name: str, role: str = "") -> RunStatus:
        """Of a run by its id; or of the newest, an open one before all, of a playbook or a role of that name.
        ConfigError: there is none, or several are open."""
        return self._status(self._record(name, role))

    # --- runs --------------------------------------------------------------------------------------------------------

    async def preview(self, name: str, given: Settings) -> tuple[StepView, ...]:
        """Every step with what it would do as things stand now; later ones may need what earlier ones find out.
        Nothing is written. ConfigError."""
        book = self.book(name)
        values = dict(self.values_of(book, given))
        views: list[StepView] = []
        for step in book.steps:
            view = await show(self._tools, self._given(values), step, begun=bool(views))
            values |= view.shown.found if view.shown is not None else {}
            views.append(view)
        return tuple(views)

    async def start(self, name: str, given: Settings) -> Run:
        """Begin a run, or take up the one that is open for the same playbook and role. ConfigError: a value is missing.
        RefusedError: somebody runs it now, or nothing may be changed here."""
        book = self.book(name)
        values = self.values_of(book, given)
        role = str(values.get("role", ""))
        open_run = next((run for run in self._open_runs() if (run.playbook, run.role) == (book.name, role)), None)
        if open_run is not None:
            return await self.resume(open_run.run)
        self._may_change(f"playbook {book.name}")
        clock = self._tools.clock
        head = Head(
            run=plan_id(clock.now().wall), playbook=book.name, title=book.title, path=book.path, text=book.text,
            values=values, who=this_person(), host=this_machine(), at=clock.now().wall,
        )  # fmt: skip
        with ExitStack() as held:
            await self._hold(held, book.name, role)
            if any((run.playbook, run.role) == (book.name, role) for run in self._open_runs()):
                raise RefusedError(f"playbook {book.name}", "somebody has just begun it", "worktop playbook status")
            written = RunJournal.begin(self._state, head, self._at)
            held.callback(written.close)
            await self._note_before(written, values)
            return Run(self._tools, book, written, held.pop_all())

    async def resume(self, name: str, role: str = "") -> Run:
        """Take up a run by its id, or the open one of a playbook or role. ConfigError: there is none, or several are.
        RefusedError: somebody runs it now."""
        record = self._record(name, role)
        head = record.head
        self._may_change(f"run {head.run}")
        if record.end is not None and record.end.state != "done":
            raise ConfigError(
                f"run {head.run}", f"it is over: {record.end.state}", f"worktop playbook run {head.playbook}"
            )
        book = self._library.as_it_was(head.text, head.path)
        with ExitStack() as held:
            await self._hold(held, head.playbook, str(record.values.get("role", "")))
            written = RunJournal.take_up(self._state, head.run, self._at)
            held.callback(written.close)
            return Run(self._tools, book, written, held.pop_all())

    def values_of(self, book: Playbook, given: Settings) -> Settings:
        """What a run of it works with. ConfigError: one is missing, or is not known."""
        known = {name for name, _ in book.needs} | book.defaults.keys()
        for name in given.keys() - known:
            needs = ", ".join(sorted(known)) or "nothing"
            raise ConfigError(f"playbook {book.name}", f"it takes no {name}", f"it takes {needs}")
        missing = [
            f"{name} ({about})" for name, about in book.needs if not given.get(name) and name not in book.defaults
        ]
        if missing:
            raise ConfigError(f"playbook {book.name}", f"it needs {', '.join(missing)}", "--role, or --set NAME=VALUE")
        values = {**book.defaults, **{name: _like(book.defaults.get(name), value) for name, value in given.items()}}
        role = values.get("role")
        if role and self._tools.config.roles:
            self._tools.config.only(str(role))
        return values

    # -----------------------------------------------------------------------------------------------------------------

    @property
    def _state(self) -> StateDirectory:
        return self._tools.actions.state

    def _open_runs(self) -> tuple[RunStatus, ...]:
        return tuple(run for run in self.runs() if run.state == "open")

    def _record(self, name: str, role: str) -> Record:
        found = [
            record
            for record in journal.every(self._state)
            if name in (record.head.run, record.head.playbook, record.values.get("role"))
            and (not role or record.values.get("role") == role)
        ]
        open_ones = [record for record in found if record.end is None]
        if len(open_ones) > 1:
            several = ", ".join(f"{one.head.run} ({one.values.get('role') or 'no role'})" for one in open_ones)
            raise ConfigError(f"run {name}", f"{len(open_ones)} such runs are open: {several}", "name one of them")
        chosen = next(iter(open_ones or found), None)
        if chosen is None:
            raise journal.unknown(name)
        return chosen

    def _status(self, record: Record) -> RunStatus:
        try:
            book = self._library.as_it_was(record.head.text, record.head.path)
        except ConfigError:
            book = Playbook(name=record.head.playbook, title=record.head.title)
        return status_of(record, book, "another worktop" if journal.held(record) else "")

    def _given(self, values: Settings) -> Given:
        tools = self._tools
        return Given(
            tools.actions, tools.config, tools.host, tools.reader, values=values, now=lambda: tools.clock.now().wall
        )

    def _may_change(self, what: str) -> None:
        if self._tools.actions.read_only:
            raise RefusedError(what, f"read-only: {self._tools.actions.read_only}", "--dry-run shows what it would do")

    async def _hold(self, held: ExitStack, name: str, role: str) -> None:
        """RefusedError tells who runs this playbook for this role, on this host, now."""
        await host_answers(self._tools.host)
        hello = self._tools.host.facts.hello
        what = f"playbook {name}" + (f" of {role}" if role else "")
        try:
            held.enter_context(locked(f"playbook\n{hello.host if hello is not None else ''}", (what,)))
        except RefusedError as error:
            why = error.problem.why.replace(" is acting on it now", " runs it now")
            raise RefusedError(what, why, "worktop playbook status shows how far it is") from None

    async def _note_before(self, written: RunJournal, values: Settings) -> None:
        given = self._given(values)
        if not given.role:
            return
        try:
            before = snapshot(await given.status(), given.now())
        except WorktopError:
            return  # the report says that it is not known
        written.write(Before(before))


def _like(default: Setting | None, value: Setting) -> Setting:
    """A value of the command line as the default is: a number, a truth, a list."""
    if not isinstance(value, str) or default is None or isinstance(default, str):
        return value
    if isinstance(default, bool):
        return value.lower() in ("true", "yes", "1", "on")
    if isinstance(default, tuple):
        return tuple(part for part in value.split(",") if part)
    try:
        return msgspec.convert(value, type(default), strict=False)
    except msgspec.ValidationError:
        raise ConfigError("--set", f"found {value!r}", "expected a number") from None
