"""Changes rows of the job table: what the console's actions do, and their undo. The layers above plan and ask.

    survey, holders   what a selection finds now
    statements        exactly what `apply` runs
    apply             batch by batch, each row's former state handed out before its COMMIT
    restore           puts it back, where nobody has changed the row since

Whether a person may do it, and should, is not asked here: `missing_rights` and `refusal` tell.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeVar

import msgspec
import psycopg

from console.config import Config
from console.errors import QueueError
from console.fleet.model import Job, Role
from console.fleet.plan import Applied, HolderRows, Restored, RowChange, Selection, Statement, Survey, Verb
from console.queue import catalog
from console.queue import survey as surveys
from console.queue.batches import NOTIFY, Batches, BeforeCommit, OnBatch
from console.queue.connection import Connection, fetched, queue_error
from console.queue.detect import preset_of, resolve
from console.queue.preset_actions import VERBS
from console.queue.reads import Reads
from console.queue.restore import look, restore
from console.queue.rows import job_of
from console.queue.session import Session
from console.queue.writes import Writes, shown

T = TypeVar("T")

_REMEMBERED = 50  # surveys whose statements may still be asked for


class QueueWriter:
    """The job table of the configuration, to be changed. One connection of its own, opened when it is needed.

    Calls raise QueueError, with nothing changed, unless they say otherwise; ConfigError at once for a wrong preset.
    """

    def __init__(self, config: Config, roles: tuple[Role, ...] | None = None) -> None:
        self._given = self._database = config.database
        self._preset = preset_of(config.database)  # until the tables have been looked at
        self._roles = config.roles if roles is None else roles
        self._session = Session(config.database)
        self._writes = Writes(self._preset, config.database.schema)
        self._missing: tuple[str, ...] = ()  # columns that the preset speaks of and the tables have not
        self._known = False  # whether the queue was found, and the columns of its table read
        self._moments: dict[Selection, tuple[str, list[tuple[str, str]]]] = {}

    async def ready(self) -> None:
        """Find out which queue it is: what is not asynchronous here speaks of worktop's own table before."""
        if not self._known:
            await self._asked("find the job queue", _nothing)

    @property
    def late_finish(self) -> Literal["rejected", "accepted"]:
        """What becomes of a former holder's end of a job that was reclaimed."""
        return self._preset.fence.late_finish

    def refusal(self, verb: Verb) -> str:
        """Why rows of this queue cannot be treated so; "" when they can."""
        actions = self._preset.actions
        if self._missing:
            return f"this is another version of {self._preset.title}: it has no {', '.join(self._missing[:3])}"
        if actions is None:
            return f"the preset {self._preset.name} does not say how rows may be changed"
        if verb in actions.refused:
            return actions.refused[verb]
        if verb in ("pause", "resume"):
            return "" if actions.pause else f"{self._preset.title} has no switch to pause a queue"
        if verb in VERBS and actions.verb(verb) is None:
            return f"{self._preset.title} has no such action"
        return ""

    def irreversible(self, selection: Selection) -> str:
        """Why undo cannot bring the rows back as they were; "" when it can."""
        actions = self._preset.actions
        action = actions.verb(selection.verb) if actions else None
        return action.irreversible if action else ""

    async def identity(self) -> str:
        """The same for everybody who means these rows: system identifier, database, schema and preset; no secret."""

        async def asked(connection: Connection) -> str:
            rows = await fetched(
                connection,
                b"SELECT (SELECT system_identifier FROM pg_control_system())::text, current_database()::text",
            )
            system, name = rows[0]
            return f"{system}/{name}/{self._database.schema}/{self._preset.name}"

        return await self._asked("ask which database this is", asked)

    async def missing_rights(self, verb: Verb) -> tuple[str, ...]:
        """The GRANT statements the user lacks for the verb ("undo": to undo any), () when it is allowed."""
        await self.ready()
        if self.refusal(verb):
            return ()
        return await self._asked(
            "ask what this user may do", lambda connection: catalog.missing_rights(connection, self._writes, verb)
        )

    # --- looking ---------------------------------------------------------------------------------------------------

    async def survey(self, selection: Selection) -> Survey:
        """What the selection finds now; the same condition acts in `apply`."""
        wanted = self._resolved(selection)

        async def asked(connection: Connection) -> Survey:
            found, queues = await surveys.survey(connection, self._writes, wanted)
            moment = str(await surveys.moment_of(connection))
            pairs = await surveys.notices(connection, self._writes, queues)
            self._moments = dict([*self._moments.items()][-_REMEMBERED:]) | {selection: (moment, pairs)}
            return found

        return await self._asked(f"survey for {selection.verb}", asked)

    async def holders(self, selection: Selection) -> tuple[HolderRows, ...]:
        """The running rows of the selection by their holder, the lease that ran out first at the top."""
        wanted = self._resolved(selection)
        return await self._asked(
            f"survey for {selection.verb}", lambda connection: surveys.holders(connection, self._writes, wanted)
        )

    def statements(self, selection: Selection, batch: int) -> tuple[Statement, ...]:
        """What `apply` runs in each batch, until none is left, and the wake-up. After a `survey`: it tells the
        moment, after which rows are not meant, and the columns of rows that are deleted; else the moment is open."""
        moment, pairs = self._moments.get(selection, ("now", []))
        every = []
        for change in self._writes.changes(self._resolved(selection)):
            values = dict(change.values) | {"moment": moment, "batch": batch}
            every.append(shown(self._writes.act(change), values))
        if pairs and selection.verb in ("reclaim", "retry", "run-now"):
            channels, payloads = zip(*pairs, strict=True)
            every.append(shown(NOTIFY.format(), {"channels": list(channels), "payloads": list(payloads)}))
        return tuple(every)

    # --- changing --------------------------------------------------------------------------------------------------

    async def apply(
        self, selection: Selection, *, batch: int, before_commit: BeforeCommit, on_batch: OnBatch
    ) -> Applied:
        """Act on what the selection finds, in batches of `batch` rows at most, each a transaction.

        before_commit(columns, changes) is called with the rows of a batch before its COMMIT: what it writes must be
        on the disk when it returns, and an OSError of it ends the apply. A batch may be rolled back after it: then
        its rows may come again in a later call. on_batch(rows, seconds) is called after each; False stops. What the
        database does in the course is told in the result; QueueError only when nothing could begin.
        """
        wanted = self._resolved(selection)
        await self._asked(selection.verb, self._learn)
        if self._missing:
            raise QueueError(selection.verb, self.refusal(selection.verb))
        batches = Batches(self._session, self._writes, batch, before_commit, on_batch)
        for change in self._writes.changes(wanted):
            await batches.run(change, wanted.rows)
        result = batches.result()
        if not wanted.rows or result.stopped:
            return result
        return msgspec.structs.replace(result, skipped=len(wanted.rows) - result.rows - len(result.blocked))

    async def restore(self, verb: Verb, columns: tuple[str, ...], changes: Sequence[RowChange]) -> Restored:
        """Undo: rows whose columns and token are as the action left them get back what they had."""
        await self.ready()
        if verb in ("pause", "resume"):
            back = await self.set_paused([change.id for change in changes], verb == "resume")
            done = {change.id for change in back}
            return Restored(
                rows=len(done), refused=tuple((one.id, "changed since") for one in changes if one.id not in done)
            )
        query = Reads(self._preset, self._database.schema).job()

        async def looked(connection: Connection, id: str) -> Job | None:
            row = await look(connection, query, id)
            return job_of(row, self._preset) if row else None

        try:
            return await restore(self._session, self._writes, looked, columns, changes)
        except psycopg.Error as error:
            raise queue_error(error, self._database, f"undo {verb}") from None

    async def wake(self, queues: Sequence[str]) -> None:
        """Notify idle workers of waiting jobs in the queues; nothing where they poll."""
        await self.ready()
        wakeup = self._preset.wakeup
        if wakeup.channel or wakeup.channels:
            await self._asked(
                "wake workers", lambda connection: fetched(connection, self._writes.wake(), {"queues": list(queues)})
            )

    async def paused(self) -> frozenset[str]:
        """The queues that are paused; none where the queue has no switch."""
        await self.ready()
        actions = self._preset.actions
        if actions is None or actions.pause is None:
            return frozenset()
        query = self._writes.raw(actions.pause.paused)
        rows = await self._asked("ask what is paused", lambda connection: fetched(connection, query))
        return frozenset(str(row[0]) for row in rows)

    def pause_statements(self, queues: Sequence[str], paused: bool) -> tuple[Statement, ...]:
        """What `set_paused` runs, the wake-up with it; () where the queue has no switch. After `ready`."""
        actions = self._preset.actions
        if actions is None or actions.pause is None:
            return ()
        values = {"queues": list(queues)}
        made = [shown(self._writes.verb_text(actions.pause.change), values | {"paused": paused})]
        wakeup = self._preset.wakeup
        if not paused and (wakeup.channel or wakeup.channels):
            made.append(shown(self._writes.wake(), values))
        return tuple(made)

    async def set_paused(
        self, queues: Sequence[str], paused: bool, before_commit: BeforeCommit | None = None
    ) -> tuple[RowChange, ...]:
        """Pause queues or let them go on; those that changed. Columns: "paused". Workers are woken on resuming."""
        await self.ready()
        verb: Verb = "pause" if paused else "resume"
        actions = self._preset.actions
        if (why := self.refusal(verb)) or actions is None or actions.pause is None:
            raise QueueError(verb, why)
        query = self._writes.verb_text(actions.pause.change)

        async def changed(connection: Connection) -> tuple[RowChange, ...]:
            rows = await fetched(connection, query, {"queues": list(queues), "paused": paused})
            values = (str(not paused).lower(), str(paused).lower())
            changes = tuple(RowChange(id=str(row[0]), before=values[:1], after=values[1:]) for row in rows)
            if before_commit and changes:
                before_commit(("paused",), changes)
            return changes

        changes = await self._asked(verb, changed)
        if changes and not paused:
            await self.wake([change.id for change in changes])
        return changes

    async def close(self) -> None:
        await self._session.close()

    # --- the parts -------------------------------------------------------------------------------------------------

    def _resolved(self, selection: Selection) -> Selection:
        """The selection with the queues and types of its role; without a role, those of all roles."""
        if selection.rows or selection.queues:
            return selection
        if not selection.role:
            queues = dict.fromkeys(queue for role in self._roles for queue in role.queues)
            return msgspec.structs.replace(selection, queues=tuple(queues))
        for role in self._roles:
            if role.name == selection.role:
                types = selection.types or role.types
                return msgspec.structs.replace(selection, queues=role.queues, types=types)
        raise QueueError(selection.verb, f"there is no role {selection.role}", "name one of worktop.toml")

    async def _learn(self, connection: Connection) -> None:
        if self._known:
            return
        resolved = await resolve(connection, self._given)
        self._preset, self._database, self._missing = resolved.preset, resolved.database, resolved.missing
        self._writes = Writes(self._preset, self._database.schema)
        if self._preset.actions:
            columns = await catalog.columns_of(connection, self._writes)
            self._writes = Writes(self._preset, self._database.schema, [column.name for column in columns])
        self._session.database = self._database  # its schema comes first in the search_path
        self._known = True

    async def _asked(self, what: str, call: Callable[[Connection], Awaitable[T]]) -> T:
        async def learned(connection: Connection) -> T:
            await self._learn(connection)
            return await call(connection)

        try:
            return await self._session.ask(learned)
        except psycopg.Error as error:
            raise queue_error(error, self._database, what) from None


async def _nothing(connection: Connection) -> None:
    """What is asked when only the queue is looked for."""
