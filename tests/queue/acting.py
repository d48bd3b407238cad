"""A console on the database of a real queue library: what it reads, and what it changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from console.config import Config, Database
from console.fleet.model import Job, JobQuery, QueueFacts
from console.fleet.plan import Applied, RowChange, Selection, Verb
from console.queue.client import QueueClient
from console.queue.reads import ListedState
from console.queue.writer import QueueWriter


class Acting:
    """A reader and a writer of one configuration, and the journal of what was done."""

    def __init__(self, database: Database) -> None:
        self.reader = QueueClient(Config(database=database))
        self.writer = QueueWriter(Config(database=database))
        self._journal: list[tuple[tuple[str, ...], Sequence[RowChange]]] = []

    async def facts(self) -> QueueFacts:
        reading = await self.reader.poll()
        assert reading.problem is None, reading.problem.line()
        assert reading.value is not None
        return reading.value

    async def jobs(self, state: ListedState) -> tuple[Job, ...]:
        return (await self.reader.page(JobQuery(state=state))).jobs

    async def job(self, id: object) -> Job:
        found = await self.reader.job(str(id))
        assert found is not None
        return found

    async def apply(self, verb: Any, **selection: Any) -> Applied:
        """What the console would do after its plan was confirmed."""

        def journal(columns: tuple[str, ...], changes: Sequence[RowChange]) -> None:
            self._journal.append((columns, changes))

        self._journal.clear()
        return await self.writer.apply(
            Selection(verb=verb, **selection), batch=1000, before_commit=journal, on_batch=lambda rows, seconds: True
        )

    async def undo(self, verb: Verb) -> int:
        every = [await self.writer.restore(verb, columns, changes) for columns, changes in self._journal]
        return sum(restored.rows for restored in every)

    @property
    def changes(self) -> list[RowChange]:
        """The rows that the last action changed."""
        return [change for _, changes in self._journal for change in changes]

    async def close(self) -> None:
        await self.reader.close()
        await self.writer.close()


@asynccontextmanager
async def acting(dsn: str, **options: Any) -> AsyncIterator[Acting]:
    """Options are those of Database; without any, the queue is recognised."""
    console = Acting(Database(dsn=dsn, configured=True, **({"preset": "auto"} | options)))
    try:
        yield console
    finally:
        await console.close()
